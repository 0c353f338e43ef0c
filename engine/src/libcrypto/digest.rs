//! Hash functions.

use std::ffi::c_uint;

use super::api::{Api, Handle};
use crate::contract::Task;
use crate::failure::Failure;
use crate::families::{self, Prepared};

/// Choice and the name that libcrypto knows it by.
const DIGESTS: &[(&str, &str)] = &[
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

pub fn offers(api: &Api) -> Vec<&'static str> {
    DIGESTS.iter().map(|row| row.0).filter(|choice| find(api, choice).is_ok()).collect()
}

/// The library's object for a digest, fetched once so that no operation pays for the look-up.
pub fn find(api: &Api, choice: &str) -> Result<Handle, Failure> {
    api.find(api.EVP_MD_fetch, Some(api.EVP_get_digestbyname), name(choice)?)
}

/// The same without fetching: on OpenSSL 3 every use then looks the algorithm up again.
pub fn find_implicit(api: &Api, choice: &str) -> Result<Handle, Failure> {
    api.find(None, Some(api.EVP_get_digestbyname), name(choice)?)
}

pub fn name(choice: &str) -> Result<&'static str, Failure> {
    let row = DIGESTS.iter().find(|row| row.0 == choice);
    row.map(|row| row.1).ok_or_else(|| families::not_offered("libcrypto", &format!("the digest {choice}")))
}

/// `EVP_Digest`: the whole message in one call, as most callers do it.
pub fn prepare(api: &'static Api, task: &Task) -> Prepared {
    let digest = find(api, &task.choice)?;
    families::digest::digest(task, move |data| one_shot(api, digest, data))
}

/// The digest of some data.
pub fn one_shot(api: &Api, digest: Handle, data: &[u8]) -> Result<Output, Failure> {
    let mut out = Output::default();
    let (mut length, bytes): (c_uint, _) = (0, out.bytes.as_mut_ptr());
    // SAFETY: the digest is the library's own, and no digest is longer than the output.
    let done = unsafe {
        (api.EVP_Digest)(data.as_ptr(), data.len(), bytes, &mut length, digest, std::ptr::null_mut())
    };
    out.length = length as usize;
    api.ensure(done == 1, "EVP_Digest")?;
    Ok(out)
}

/// A digest or a code: as many bytes as there are of the longest, EVP_MAX_MD_SIZE.
pub struct Output {
    pub bytes: [u8; 64],
    pub length: usize,
}

impl Default for Output {
    fn default() -> Self {
        Output { bytes: [0; 64], length: 0 }
    }
}

impl AsRef<[u8]> for Output {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}
