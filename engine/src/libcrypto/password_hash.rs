//! Password hashes.

use std::ffi::c_int;

use super::api::{Api, Handle, Param, have};
use super::digest;
use crate::contract::{Failure, Task};
use crate::families::password_hash::parameter;
use crate::families::{self, Prepared};

#[derive(Clone, Copy)]
enum Algorithm {
    /// One hash over salt and password.
    Salted {
        digest: &'static str,
    },
    Pbkdf2 {
        digest: &'static str,
    },
    Scrypt,
    Argon2id,
}

/// The setting `algorithm`, and how libcrypto does it.
const ALGORITHMS: &[(&str, Algorithm)] = &[
    ("salted-sha-1", Algorithm::Salted { digest: "sha-1" }),
    ("salted-sha-256", Algorithm::Salted { digest: "sha-256" }),
    ("pbkdf2-sha-1", Algorithm::Pbkdf2 { digest: "sha-1" }),
    ("pbkdf2-sha-256", Algorithm::Pbkdf2 { digest: "sha-256" }),
    ("pbkdf2-sha-512", Algorithm::Pbkdf2 { digest: "sha-512" }),
    ("scrypt", Algorithm::Scrypt),
    ("argon2id", Algorithm::Argon2id),
];

const HASH_BYTES: usize = 32;
const SHA_1_BYTES: usize = 20;

/// The algorithms; their parameters are part of the catalogue's choices.
pub fn offers(api: &Api) -> Vec<&'static str> {
    let offered = |algorithm| match algorithm {
        Algorithm::Scrypt => api.EVP_PBE_scrypt.is_some(),
        Algorithm::Argon2id => argon2id(api).is_ok(),
        Algorithm::Salted { .. } | Algorithm::Pbkdf2 { .. } => true,
    };
    ALGORITHMS.iter().filter(|row| offered(row.1)).map(|row| row.0).collect()
}

pub fn prepare(api: &'static Api, task: &Task) -> Prepared {
    let algorithm = *families::row("libcrypto", task, ALGORITHMS)?;
    let work = match algorithm {
        Algorithm::Salted { digest } => Work::Salted { digest: digest::find(api, digest)? },
        Algorithm::Pbkdf2 { digest } => {
            let iterations = parameter(task, "iterations")? as c_int;
            Work::Pbkdf2 { digest: digest::find(api, digest)?, iterations }
        }
        Algorithm::Scrypt => {
            let cost = 1_u64.checked_shl(parameter(task, "n-log2")?).unwrap_or(0);
            Work::Scrypt { cost, block: parameter(task, "r")?.into(), parallel: parameter(task, "p")?.into() }
        }
        Algorithm::Argon2id => Work::Argon2id {
            kdf: argon2id(api)?,
            memory_kib: parameter(task, "memory-kib")?,
            passes: parameter(task, "passes")?,
            lanes: parameter(task, "lanes")?,
        },
    };
    let bytes =
        if matches!(algorithm, Algorithm::Salted { digest: "sha-1" }) { SHA_1_BYTES } else { HASH_BYTES };
    families::password_hash::prepare(task, bytes, move |password, salt, out| {
        work.hash(api, password, salt, out)
    })
}

fn argon2id(api: &Api) -> Result<Handle, Failure> {
    api.find(api.EVP_KDF_fetch, None, "ARGON2ID")
}

enum Work {
    Salted { digest: Handle },
    Pbkdf2 { digest: Handle, iterations: c_int },
    Scrypt { cost: u64, block: u64, parallel: u64 },
    Argon2id { kdf: Handle, memory_kib: u32, passes: u32, lanes: u32 },
}

impl Work {
    fn hash(&self, api: &Api, password: &[u8], salt: &[u8], out: &mut [u8]) -> Result<(), Failure> {
        let done = match *self {
            Work::Salted { digest } => {
                let hash = digest::one_shot(api, digest, &[salt, password].concat())?;
                out.copy_from_slice(hash.as_ref());
                1
            }
            Work::Pbkdf2 { digest, iterations } => {
                api.lengths.pbkdf2(password, salt, iterations, digest, out)?
            }
            Work::Scrypt { cost, block, parallel } => {
                // OpenSSL's own bound of 32 MiB is below the parameters that are recommended today.
                let most = 128 * block * (cost + parallel + 2) + (1 << 20);
                let derive = have(api.EVP_PBE_scrypt, "EVP_PBE_scrypt")?;
                let (password, password_length) = (password.as_ptr().cast(), password.len());
                let (salt, salt_length, length) = (salt.as_ptr(), salt.len(), out.len());
                let out = out.as_mut_ptr();
                // SAFETY: lengths are those of their buffers.
                unsafe {
                    derive(
                        password,
                        password_length,
                        salt,
                        salt_length,
                        cost,
                        block,
                        parallel,
                        most,
                        out,
                        length,
                    )
                }
            }
            Work::Argon2id { kdf, memory_kib, passes, lanes } => {
                let (memory_kib, passes, lanes) =
                    (memory_kib.to_ne_bytes(), passes.to_ne_bytes(), lanes.to_ne_bytes());
                let params = [
                    Param::octets(c"pass", password),
                    Param::octets(c"salt", salt),
                    Param::number(c"iter", &passes),
                    Param::number(c"memcost", &memory_kib),
                    Param::number(c"lanes", &lanes),
                    Param::end(),
                ];
                let new = have(api.EVP_KDF_CTX_new, "EVP_KDF_CTX_new")?;
                let derive = have(api.EVP_KDF_derive, "EVP_KDF_derive")?;
                let free = have(api.EVP_KDF_CTX_free, "EVP_KDF_CTX_free")?;
                // SAFETY: the algorithm is the library's own.
                let context = api.own(unsafe { new(kdf) }, free, "EVP_KDF_CTX_new")?;
                // SAFETY: the context is alive, the length is the buffer's, and the parameters end with the mark for it.
                unsafe { derive(context.handle, out.as_mut_ptr(), out.len(), params.as_ptr()) }
            }
        };
        api.ensure(done == 1, "the password cannot be hashed")
    }
}
