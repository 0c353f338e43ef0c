//! Key encapsulation: ML-KEM and its hybrids.

use super::super::api::{Api, Owned, Param, have};
use super::super::keys::{self, Kind};
use super::{Known, LONGEST};
use crate::buffers::tampered;
use crate::contract::{Failure, Proof, Task};
use crate::operation::Operation;

/// A key encapsulation mechanism, hybrids included.
pub struct Encapsulation {
    api: &'static Api,
    name: &'static str,
    client: bool,
    /// The other side's key: what a server encapsulates to. Only its parameters serve a client.
    peer_key: Owned,
    peer_share: Vec<u8>,
    /// A ciphertext of the right form.
    sealed: Vec<u8>,
    pub known: Option<Known>,
}

impl Encapsulation {
    pub fn new(api: &'static Api, name: &'static str, client: bool) -> Result<Encapsulation, Failure> {
        let peer_key = keys::generate(api, Kind::Named(name), None)?;
        let peer_share = keys::encoded_public(api, &peer_key)?;
        let mut exchange =
            Encapsulation { api, name, client, peer_key, peer_share, sealed: Vec::new(), known: None };
        exchange.sealed = exchange.encapsulate(&exchange.peer_share)?.0;
        Ok(exchange)
    }

    /// The server's part: reads the client's share, gives (ciphertext, secret).
    fn encapsulate(&self, share: &[u8]) -> Result<(Vec<u8>, Vec<u8>), Failure> {
        let api = self.api;
        let key = keys::peer(api, Kind::Named(self.name), &self.peer_key, share)?;
        let context = keys::context(api, &key)?;
        let init = have(api.EVP_PKEY_encapsulate_init, "EVP_PKEY_encapsulate")?;
        let encapsulate = have(api.EVP_PKEY_encapsulate, "EVP_PKEY_encapsulate")?;
        let (mut sealed, mut secret) = ([0; LONGEST], [0; LONGEST]);
        let (mut sealed_length, mut secret_length) = (LONGEST, LONGEST);
        let done = unsafe {
            init(context.handle, std::ptr::null()) == 1
                && encapsulate(
                    context.handle,
                    sealed.as_mut_ptr(),
                    &mut sealed_length,
                    secret.as_mut_ptr(),
                    &mut secret_length,
                ) == 1
        };
        if !done {
            return Err(api.failed("encapsulate"));
        }
        Ok((sealed[..sealed_length].to_vec(), secret[..secret_length].to_vec()))
    }

    fn decapsulate(&self, key: &Owned, sealed: &[u8]) -> Result<Vec<u8>, Failure> {
        let api = self.api;
        let context = keys::context(api, key)?;
        let init = have(api.EVP_PKEY_decapsulate_init, "EVP_PKEY_decapsulate")?;
        let decapsulate = have(api.EVP_PKEY_decapsulate, "EVP_PKEY_decapsulate")?;
        let (mut secret, mut length) = ([0; LONGEST], LONGEST);
        let done = unsafe {
            init(context.handle, std::ptr::null()) == 1
                && decapsulate(
                    context.handle,
                    secret.as_mut_ptr(),
                    &mut length,
                    sealed.as_ptr(),
                    sealed.len(),
                ) == 1
        };
        if done { Ok(secret[..length].to_vec()) } else { Err(api.failed("decapsulate")) }
    }
}

impl Operation for Encapsulation {
    fn perform(&mut self) -> Result<(), Failure> {
        if self.client {
            let own = keys::generate(self.api, Kind::Named(self.name), None)?;
            // What the ciphertext holds does not change the time, so one that was made for another key
            // serves: implicit rejection gives a secret that nobody shares.
            std::hint::black_box(self.decapsulate(&own, &self.sealed)?);
        } else {
            std::hint::black_box(self.encapsulate(&self.peer_share)?);
        }
        Ok(())
    }

    fn prove(&mut self) -> Result<Proof, Failure> {
        let mut proof = Proof::default();
        let (sealed, secret) = self.encapsulate(&self.peer_share)?;
        proof
            .accept("the same secret on both sides", self.decapsulate(&self.peer_key, &sealed)? == secret)?;
        // ML-KEM answers a wrong ciphertext with a secret of its own (implicit rejection).
        let wrong = self.decapsulate(&self.peer_key, &tampered(&sealed));
        self.api.clear_errors();
        proof.refuse("a tampered ciphertext", wrong.map_or(true, |other| other != secret))?;
        if let Some(known) = &self.known {
            let key = keys::from_data(self.api, self.name, vec![Param::octets(c"priv", &known.private)])?;
            proof.answer = Some(hex::encode(self.decapsulate(&key, &known.peer)?));
        }
        Ok(proof)
    }
}

/// A hybrid's private key is its parts' one after the other, ML-KEM's written out from its seed.
pub fn hybrid_private(api: &'static Api, task: &Task) -> Result<Option<Vec<u8>>, Failure> {
    let Some(seed) = task.hex("ml_kem_seed")? else { return Ok(None) };
    let key = keys::from_data(api, "ML-KEM-768", vec![Param::octets(c"seed", &seed)])?;
    let read = have(api.EVP_PKEY_get_octet_string_param, "EVP_PKEY_get_octet_string_param")?;
    let (mut private, mut length) = (vec![0; 2 * LONGEST], 0);
    let done =
        unsafe { read(key.handle, c"priv".as_ptr(), private.as_mut_ptr(), private.len(), &mut length) };
    if done != 1 {
        return Err(api.failed("ML-KEM's private key"));
    }
    private.truncate(length);
    private.extend(task.need_hex("x25519_private")?);
    Ok(Some(private))
}
