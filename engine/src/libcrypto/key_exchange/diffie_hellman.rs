//! Diffie–Hellman, in finite fields and on curves: both sides generate, read and derive.

use super::super::api::{Api, Owned, Param, c_name, have};
use super::super::keys::{self, Kind};
use super::Known;
use super::LONGEST;
use crate::contract::{Failure, Proof};
use crate::operation::Operation;

/// Client and server pay the same.
pub struct DiffieHellman {
    api: &'static Api,
    kind: Kind,
    peer_key: Owned,
    peer_share: Vec<u8>,
    known: Option<Known>,
}

impl DiffieHellman {
    pub fn new(api: &'static Api, kind: Kind, known: Option<Known>) -> Result<DiffieHellman, Failure> {
        let peer_key = keys::generate(api, kind, None)?;
        let peer_share = keys::encoded_public(api, &peer_key)?;
        Ok(DiffieHellman { api, kind, peer_key, peer_share, known })
    }

    fn exchange(&self) -> Result<(Owned, Vec<u8>), Failure> {
        let own = keys::generate(self.api, self.kind, None)?;
        let peer = keys::peer(self.api, self.kind, &own, &self.peer_share)?;
        let secret = derive(self.api, &own, &peer)?;
        Ok((own, secret))
    }

    /// The private key of a known answer.
    fn private(&self, private: &[u8]) -> Result<Owned, Failure> {
        let api = self.api;
        let key = match self.kind {
            Kind::Named(name) => {
                let number = unsafe { (api.OBJ_sn2nid)(c_name(name).as_ptr()) };
                let new = have(api.EVP_PKEY_new_raw_private_key, "EVP_PKEY_new_raw_private_key")?;
                unsafe { new(number, std::ptr::null_mut(), private.as_ptr(), private.len()) }
            }
            Kind::Curve(curve) => {
                let document = [curve_prefix(curve), private].concat();
                let mut at = document.as_ptr();
                unsafe { (api.d2i_AutoPrivateKey)(std::ptr::null_mut(), &mut at, document.len() as _) }
            }
            Kind::Group(group) => {
                let number: Vec<u8> = private.iter().rev().copied().collect();
                let group = c_name(group);
                return keys::from_data(
                    api,
                    "DH",
                    vec![Param::utf8(c"group", &group), Param::number(c"priv", &number)],
                );
            }
            Kind::Rsa { .. } | Kind::Dsa => std::ptr::null_mut(),
        };
        keys::own(api, key, "the known answer's private key cannot be read")
    }
}

/// PKCS#8 around a bare scalar: what stands before it.
fn curve_prefix(curve: &str) -> &'static [u8] {
    match curve {
        "prime256v1" => &[
            0x30, 0x41, 0x02, 0x01, 0x00, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01,
            0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x04, 0x27, 0x30, 0x25, 0x02, 0x01,
            0x01, 0x04, 0x20,
        ],
        _ => &[
            0x30, 0x4e, 0x02, 0x01, 0x00, 0x30, 0x10, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01,
            0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x22, 0x04, 0x37, 0x30, 0x35, 0x02, 0x01, 0x01, 0x04, 0x30,
        ],
    }
}

impl Operation for DiffieHellman {
    fn perform(&mut self) -> Result<(), Failure> {
        std::hint::black_box(self.exchange()?);
        Ok(())
    }

    fn prove(&mut self) -> Result<Proof, Failure> {
        let mut proof = Proof::default();
        let (own, secret) = self.exchange()?;
        let theirs = derive(
            self.api,
            &self.peer_key,
            &keys::peer(self.api, self.kind, &self.peer_key, &keys::encoded_public(self.api, &own)?)?,
        )?;
        proof.accept("the same secret on both sides", secret == theirs)?;
        proof.refuse("the same secret twice", self.exchange()?.1 != secret)?;
        if let Some(known) = &self.known {
            let private = self.private(&known.private)?;
            let peer = keys::peer(self.api, self.kind, &self.peer_key, &known.peer)?;
            // A finite-field secret may begin with zeros, which some versions leave out.
            let secret = derive(self.api, &private, &peer)?;
            let length = if matches!(self.kind, Kind::Group(_)) { known.peer.len() } else { secret.len() };
            proof.answer = Some(format!("{:0>width$}", hex::encode(secret), width = 2 * length));
        }
        Ok(proof)
    }
}

fn derive(api: &Api, own: &Owned, peer: &Owned) -> Result<Vec<u8>, Failure> {
    let context = keys::context(api, own)?;
    let (mut secret, mut length) = ([0; LONGEST], LONGEST);
    let done = unsafe {
        (api.EVP_PKEY_derive_init)(context.handle) == 1
            && (api.EVP_PKEY_derive_set_peer)(context.handle, peer.handle) == 1
            && (api.EVP_PKEY_derive)(context.handle, secret.as_mut_ptr(), &mut length) == 1
    };
    if done { Ok(secret[..length].to_vec()) } else { Err(api.failed("the secret cannot be derived")) }
}
