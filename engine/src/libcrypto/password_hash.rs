//! Password hashes.

use std::ffi::c_int;

use super::api::{Api, Handle, Param, c_name, have};
use super::digest;
use crate::buffers::{filled, tampered};
use crate::contract::{Failure, Proof, Task};
use crate::operation::Operation;

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
const ALGORITHMS: [(&str, Algorithm); 7] = [
    ("salted-sha-1", Algorithm::Salted { digest: "sha-1" }),
    ("salted-sha-256", Algorithm::Salted { digest: "sha-256" }),
    ("pbkdf2-sha-1", Algorithm::Pbkdf2 { digest: "sha-1" }),
    ("pbkdf2-sha-256", Algorithm::Pbkdf2 { digest: "sha-256" }),
    ("pbkdf2-sha-512", Algorithm::Pbkdf2 { digest: "sha-512" }),
    ("scrypt", Algorithm::Scrypt),
    ("argon2id", Algorithm::Argon2id),
];

const PASSWORD: &[u8] = b"a password of 24 letters";
const SALT_BYTES: usize = 16;
const HASH_BYTES: usize = 32;

/// The algorithms; their parameters are part of the catalogue's choices.
pub fn offers(api: &Api) -> Vec<&'static str> {
    let offered = |algorithm| match algorithm {
        Algorithm::Scrypt => api.EVP_PBE_scrypt.is_some(),
        Algorithm::Argon2id => argon2id(api).is_ok(),
        Algorithm::Salted { .. } | Algorithm::Pbkdf2 { .. } => true,
    };
    ALGORITHMS.iter().filter(|row| offered(row.1)).map(|row| row.0).collect()
}

pub fn prepare(api: &'static Api, task: &Task) -> Result<Box<dyn Operation>, Failure> {
    let name = task.word("algorithm", "")?;
    let row = ALGORITHMS.iter().find(|row| row.0 == name);
    let algorithm =
        row.map(|row| row.1).ok_or_else(|| Failure::Unsupported(format!("libcrypto has no {name}")))?;
    let work = match algorithm {
        Algorithm::Salted { digest } => Work::Salted { digest: digest::find(api, digest)? },
        Algorithm::Pbkdf2 { digest } => Work::Pbkdf2 {
            digest: digest::find(api, digest)?,
            iterations: task.number("iterations", 0)? as c_int,
        },
        Algorithm::Scrypt => {
            let cost = 1 << task.number("n-log2", 0)?.min(40);
            Work::Scrypt { cost, block: task.number("r", 0)?, parallel: task.number("p", 0)? }
        }
        Algorithm::Argon2id => Work::Argon2id {
            kdf: argon2id(api)?,
            memory_kib: task.number("memory-kib", 0)? as u32,
            passes: task.number("passes", 0)? as u32,
            lanes: task.number("lanes", 0)? as u32,
        },
    };
    let known = match task.text("password") {
        None => None,
        Some(password) => {
            let length = task.hex("expected")?.map_or(HASH_BYTES, |expected| expected.len());
            Some((password.as_bytes().to_vec(), task.need_hex("salt")?, length))
        }
    };
    Ok(Box::new(Hash { api, work, salt: filled(SALT_BYTES, task.seed), known }))
}

fn argon2id(api: &Api) -> Result<Handle, Failure> {
    let fetch = have(api.EVP_KDF_fetch, "EVP_KDF_fetch")?;
    api.clear_errors();
    let kdf = unsafe { fetch(std::ptr::null_mut(), c_name("ARGON2ID").as_ptr(), std::ptr::null()) };
    if kdf.is_null() { Err(api.unsupported("ARGON2ID")) } else { Ok(kdf) }
}

enum Work {
    Salted { digest: Handle },
    Pbkdf2 { digest: Handle, iterations: c_int },
    Scrypt { cost: u64, block: u64, parallel: u64 },
    Argon2id { kdf: Handle, memory_kib: u32, passes: u32, lanes: u32 },
}

struct Hash {
    api: &'static Api,
    work: Work,
    salt: Vec<u8>,
    known: Option<(Vec<u8>, Vec<u8>, usize)>,
}

impl Hash {
    fn hash(&self, password: &[u8], salt: &[u8], length: usize) -> Result<Vec<u8>, Failure> {
        let api = self.api;
        let mut out = vec![0; length];
        let (password_at, salt_at, out_at) = (password.as_ptr(), salt.as_ptr(), out.as_mut_ptr());
        let done = match self.work {
            Work::Salted { digest } => return digest::one_shot(api, digest, &[salt, password].concat()),
            Work::Pbkdf2 { digest, iterations } => unsafe {
                (api.PKCS5_PBKDF2_HMAC)(
                    password_at.cast(),
                    password.len() as c_int,
                    salt_at,
                    salt.len() as c_int,
                    iterations,
                    digest,
                    length as c_int,
                    out_at,
                )
            },
            Work::Scrypt { cost, block, parallel } => unsafe {
                // OpenSSL's own bound of 32 MiB is below the parameters that are recommended today.
                let most = 128 * block * (cost + parallel + 2) + (1 << 20);
                have(api.EVP_PBE_scrypt, "EVP_PBE_scrypt")?(
                    password_at.cast(),
                    password.len(),
                    salt_at,
                    salt.len(),
                    cost,
                    block,
                    parallel,
                    most,
                    out_at,
                    length,
                )
            },
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
                let (derive, free) = (
                    have(api.EVP_KDF_derive, "EVP_KDF_derive")?,
                    have(api.EVP_KDF_CTX_free, "EVP_KDF_CTX_free")?,
                );
                unsafe {
                    let context = new(kdf);
                    let done = derive(context, out_at, length, params.as_ptr());
                    free(context);
                    done
                }
            }
        };
        if done == 1 { Ok(out) } else { Err(api.failed("the password cannot be hashed")) }
    }
}

impl Operation for Hash {
    fn perform(&mut self) -> Result<(), Failure> {
        std::hint::black_box(self.hash(PASSWORD, &self.salt, HASH_BYTES)?);
        Ok(())
    }

    fn prove(&mut self) -> Result<Proof, Failure> {
        let mut proof = Proof::default();
        let hash = self.hash(PASSWORD, &self.salt, HASH_BYTES)?;
        proof.accept("the same password again", hash == self.hash(PASSWORD, &self.salt, HASH_BYTES)?)?;
        proof.refuse("another password", hash != self.hash(&tampered(PASSWORD), &self.salt, HASH_BYTES)?)?;
        proof.refuse("another salt", hash != self.hash(PASSWORD, &tampered(&self.salt), HASH_BYTES)?)?;
        if let Some((password, salt, length)) = &self.known {
            proof.answer = Some(hex::encode(self.hash(password, salt, *length)?));
        }
        Ok(proof)
    }
}
