//! RSA key transport: a secret encrypted to the server's key, as TLS 1.2 did without forward secrecy.

use super::super::api::{Api, Owned};
use super::super::keys;
use super::super::signature::set_pkcs1;
use super::{LONGEST, PREMASTER_BYTES};
use crate::buffers::filled;
use crate::contract::{Failure, Proof};
use crate::operation::Operation;

/// RSA key transport.
pub struct Transport {
    api: &'static Api,
    client: bool,
    context: Owned,
    _key: Owned,
    secret: Vec<u8>,
    sealed: Vec<u8>,
    known: Option<Vec<u8>>,
}

impl Transport {
    pub fn new(
        api: &'static Api,
        key: Owned,
        client: bool,
        known: Option<Vec<u8>>,
        seed: u64,
    ) -> Result<Transport, Failure> {
        let context = keys::context(api, &key)?;
        let ready =
            unsafe { (api.EVP_PKEY_encrypt_init)(context.handle) } == 1 && set_pkcs1(api, context.handle);
        if !ready {
            return Err(api.unsupported("RSA encryption"));
        }
        let secret = filled(PREMASTER_BYTES, seed);
        let mut transport = Transport { api, client, context, _key: key, secret, sealed: Vec::new(), known };
        transport.sealed = transport.encrypt()?;
        if !client {
            let context = transport.context.handle;
            let ready = unsafe { (api.EVP_PKEY_decrypt_init)(context) } == 1 && set_pkcs1(api, context);
            if !ready {
                return Err(api.unsupported("RSA decryption"));
            }
        }
        Ok(transport)
    }

    fn encrypt(&self) -> Result<Vec<u8>, Failure> {
        let (mut out, mut length) = ([0; LONGEST], LONGEST);
        let (secret, size) = (self.secret.as_ptr(), self.secret.len());
        let done = unsafe {
            (self.api.EVP_PKEY_encrypt)(self.context.handle, out.as_mut_ptr(), &mut length, secret, size)
        };
        if done == 1 { Ok(out[..length].to_vec()) } else { Err(self.api.failed("EVP_PKEY_encrypt")) }
    }

    fn decrypt(&self, context: &Owned, sealed: &[u8]) -> Result<Vec<u8>, Failure> {
        let (mut out, mut length) = ([0; LONGEST], LONGEST);
        let decrypt = self.api.EVP_PKEY_decrypt;
        let done =
            unsafe { decrypt(context.handle, out.as_mut_ptr(), &mut length, sealed.as_ptr(), sealed.len()) };
        if done == 1 { Ok(out[..length].to_vec()) } else { Err(self.api.failed("EVP_PKEY_decrypt")) }
    }
}

impl Operation for Transport {
    fn perform(&mut self) -> Result<(), Failure> {
        if self.client {
            std::hint::black_box(self.encrypt()?);
            return Ok(());
        }
        let secret = self.decrypt(&self.context, &self.sealed)?;
        if secret == self.secret {
            Ok(())
        } else {
            Err(Failure::Failed("another secret came out".to_owned()))
        }
    }

    fn prove(&mut self) -> Result<Proof, Failure> {
        let mut proof = Proof::default();
        let api = self.api;
        let context = keys::context(api, &self._key)?;
        if unsafe { (api.EVP_PKEY_decrypt_init)(context.handle) } != 1 || !set_pkcs1(api, context.handle) {
            return Err(api.unsupported("RSA decryption"));
        }
        let opens = self.decrypt(&context, &self.sealed)?;
        proof.accept("the same secret on both sides", opens == self.secret)?;
        // A padding that fails is an error in some versions, and a random secret in others.
        let mut wrong = self.sealed.clone();
        if let Some(last) = wrong.last_mut() {
            *last ^= 1;
        }
        let other = self.decrypt(&context, &wrong);
        api.clear_errors();
        proof.refuse("a tampered ciphertext", other.map_or(true, |other| other != self.secret))?;
        if let Some(known) = &self.known {
            proof.answer = Some(hex::encode(self.decrypt(&context, known)?));
        }
        Ok(proof)
    }
}
