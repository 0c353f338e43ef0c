//! Hash functions.

use std::ffi::c_uint;

use super::api::{Api, Handle, c_name};
use crate::buffers::{filled, tampered};
use crate::contract::{Failure, Proof, Task};
use crate::operation::Operation;

/// Choice and the name that libcrypto knows it by.
const DIGESTS: [(&str, &str); 12] = [
    ("md5", "MD5"),
    ("sha-1", "SHA1"),
    ("sha-224", "SHA224"),
    ("sha-256", "SHA256"),
    ("sha-384", "SHA384"),
    ("sha-512", "SHA512"),
    ("sha-512-256", "SHA512-256"),
    ("sha3-256", "SHA3-256"),
    ("sha3-512", "SHA3-512"),
    ("blake2b-512", "BLAKE2b512"),
    ("blake2s-256", "BLAKE2s256"),
    ("blake3", "BLAKE3"),
];

/// No digest is longer: EVP_MAX_MD_SIZE.
const LONGEST: usize = 64;

pub fn offers(api: &Api) -> Vec<&'static str> {
    DIGESTS.iter().map(|row| row.0).filter(|choice| find(api, choice).is_ok()).collect()
}

/// The library's object for a digest, fetched once so that no operation pays for the look-up.
pub fn find(api: &Api, choice: &str) -> Result<Handle, Failure> {
    let name = name(choice)?;
    api.clear_errors();
    let digest = match api.EVP_MD_fetch {
        Some(fetch) => unsafe { fetch(std::ptr::null_mut(), c_name(name).as_ptr(), std::ptr::null()) },
        None => by_name(api, name),
    };
    if digest.is_null() { Err(api.unsupported(name)) } else { Ok(digest) }
}

/// The same without fetching: on OpenSSL 3 every use then looks the algorithm up again.
pub fn find_implicit(api: &Api, choice: &str) -> Result<Handle, Failure> {
    let name = name(choice)?;
    let digest = by_name(api, name);
    if digest.is_null() { Err(api.unsupported(name)) } else { Ok(digest) }
}

pub fn name(choice: &str) -> Result<&'static str, Failure> {
    let row = DIGESTS.iter().find(|row| row.0 == choice);
    row.map(|row| row.1).ok_or_else(|| Failure::Unsupported(format!("libcrypto has no digest {choice}")))
}

fn by_name(api: &Api, name: &str) -> Handle {
    unsafe { (api.EVP_get_digestbyname)(c_name(name).as_ptr()) }
}

pub fn prepare(api: &'static Api, task: &Task) -> Result<Box<dyn Operation>, Failure> {
    let data = filled(task.bytes(4096)?, task.seed);
    Ok(Box::new(Hash { api, digest: find(api, &task.choice)?, data, known: task.message()? }))
}

/// `EVP_Digest`: the whole message in one call, as most callers do it.
struct Hash {
    api: &'static Api,
    digest: Handle,
    data: Vec<u8>,
    known: Option<Vec<u8>>,
}

impl Hash {
    fn hash(&self, data: &[u8]) -> Result<Vec<u8>, Failure> {
        one_shot(self.api, self.digest, data)
    }
}

/// The digest of some data.
pub fn one_shot(api: &Api, digest: Handle, data: &[u8]) -> Result<Vec<u8>, Failure> {
    let mut out = [0; LONGEST];
    let mut length: c_uint = 0;
    let null = std::ptr::null_mut();
    let done =
        unsafe { (api.EVP_Digest)(data.as_ptr(), data.len(), out.as_mut_ptr(), &mut length, digest, null) };
    if done != 1 {
        return Err(api.failed("EVP_Digest"));
    }
    Ok(out[..length as usize].to_vec())
}

impl Operation for Hash {
    fn perform(&mut self) -> Result<(), Failure> {
        let mut out = [0; LONGEST];
        let null = std::ptr::null_mut();
        let (data, length) = (self.data.as_ptr(), self.data.len());
        let done = unsafe {
            (self.api.EVP_Digest)(data, length, out.as_mut_ptr(), std::ptr::null_mut(), self.digest, null)
        };
        std::hint::black_box(&out);
        if done == 1 { Ok(()) } else { Err(self.api.failed("EVP_Digest")) }
    }

    fn prove(&mut self) -> Result<Proof, Failure> {
        let mut proof = Proof::default();
        let answer = self.hash(&self.data)?;
        proof.accept("the same message again", answer == self.hash(&self.data)?)?;
        proof.refuse("a tampered message", answer != self.hash(&tampered(&self.data))?)?;
        if let Some(known) = &self.known {
            proof.answer = Some(hex::encode(self.hash(known)?));
        }
        Ok(proof)
    }

    fn bytes(&self) -> u64 {
        self.data.len() as u64
    }
}
