//! Password hashes.

use std::ffi::c_int;

use super::api::{Api, Handle, Param, have};
use super::digest;
use crate::contract::Task;
use crate::failure::Failure;
use crate::families::password_hash::{self as family, HASH_BYTES, kibibytes, log2, parameter};
use crate::families::{self, Prepared};

#[derive(Clone, Copy)]
enum Algorithm {
    /// Plain hash over salt and password, of this number of bytes.
    Salted {
        digest: &'static str,
        bytes: usize,
    },
    Pbkdf2 {
        digest: &'static str,
        bytes: usize,
    },
    Scrypt,
    Argon2id,
}

/// Values of the setting `algorithm`, each with its implementation in libcrypto.
const ALGORITHMS: &[(&str, Algorithm)] = &[
    ("salted-sha-1", Algorithm::Salted { digest: "sha-1", bytes: 20 }),
    ("salted-sha-256", Algorithm::Salted { digest: "sha-256", bytes: 32 }),
    ("pbkdf2-sha-1", Algorithm::Pbkdf2 { digest: "sha-1", bytes: 20 }),
    ("pbkdf2-sha-256", Algorithm::Pbkdf2 { digest: "sha-256", bytes: HASH_BYTES }),
    ("pbkdf2-sha-512", Algorithm::Pbkdf2 { digest: "sha-512", bytes: HASH_BYTES }),
    ("scrypt", Algorithm::Scrypt),
    ("argon2id", Algorithm::Argon2id),
];

/// Returns the algorithms; their parameters are part of the choices.
pub fn offers(api: &Api) -> Vec<&'static str> {
    families::offered(ALGORITHMS, |algorithm| match algorithm {
        Algorithm::Scrypt => api.EVP_PBE_scrypt.is_some(),
        Algorithm::Argon2id => find_argon2id(api).is_ok(),
        Algorithm::Salted { .. } | Algorithm::Pbkdf2 { .. } => true,
    })
}

pub fn prepare(api: &'static Api, task: &Task) -> Prepared {
    match *families::row("libcrypto", task, ALGORITHMS)? {
        Algorithm::Salted { digest, bytes } => {
            let digest = digest::find(api, digest)?;
            family::prepare(task, bytes, move |password, salt, out| {
                family::copy(digest::one_shot(api, digest, &[salt, password].concat())?.as_ref(), out)
            })
        }
        Algorithm::Pbkdf2 { digest, bytes } => {
            let digest = digest::find(api, digest)?;
            let iterations = c_int::try_from(parameter(task, "iterations")?);
            let iterations = iterations.map_err(families::failed("the setting `iterations`"))?;
            family::prepare(task, bytes, move |password, salt, out| {
                let done = api.dialect.pbkdf2(password, salt, iterations, digest, out)?;
                api.ensure(done == 1, "PKCS5_PBKDF2_HMAC")
            })
        }
        Algorithm::Scrypt => scrypt(api, task),
        Algorithm::Argon2id => argon2id(api, task),
    }
}

fn scrypt(api: &'static Api, task: &Task) -> Prepared {
    let derive = have(api.EVP_PBE_scrypt, "EVP_PBE_scrypt")?;
    let n = 1_u64 << log2(task, "n")?;
    let (r, p) = (u64::from(parameter(task, "r")?), u64::from(parameter(task, "p")?));
    // OpenSSL's own limit of 32 MiB is below the parameters that are recommended today.
    let most = (128 * r).saturating_mul(n.saturating_add(p + 2)).saturating_add(1 << 20);
    family::prepare(task, HASH_BYTES, move |password, salt, out| {
        let (password_at, salt_at) = (password.as_ptr().cast(), salt.as_ptr());
        let (length, out) = (out.len(), out.as_mut_ptr());
        // SAFETY: lengths are those of their buffers.
        let done = unsafe {
            derive(password_at, password.len(), salt_at, salt.len(), n, r, p, most, out, length) == 1
        };
        api.ensure(done, "EVP_PBE_scrypt")
    })
}

fn argon2id(api: &'static Api, task: &Task) -> Prepared {
    let kdf = find_argon2id(api)?;
    let (memory_kib, passes, lanes) =
        (kibibytes(task, "memory")?, parameter(task, "passes")?, parameter(task, "lanes")?);
    let [memory_kib, passes, lanes] = [memory_kib, passes, lanes].map(u32::to_ne_bytes);
    let new = have(api.EVP_KDF_CTX_new, "EVP_KDF")?;
    let (derive, free) = (have(api.EVP_KDF_derive, "EVP_KDF")?, have(api.EVP_KDF_CTX_free, "EVP_KDF")?);
    family::prepare(task, HASH_BYTES, move |password, salt, out| {
        let mut params = [
            Param::octets(c"pass", password),
            Param::octets(c"salt", salt),
            Param::number(c"iter", &passes),
            Param::number(c"memcost", &memory_kib),
            Param::number(c"lanes", &lanes),
            Param::end(),
        ];
        // SAFETY: the library owns the algorithm, and the caller the context.
        let context = unsafe { api.own(new(kdf), free, "EVP_KDF_CTX_new")? };
        // SAFETY: context and parameters are alive, and the length is the buffer's.
        let done = unsafe { derive(context.raw(), out.as_mut_ptr(), out.len(), Param::list(&mut params)) };
        api.ensure(done == 1, "EVP_KDF_derive")
    })
}

fn find_argon2id(api: &Api) -> Result<Handle, Failure> {
    api.find(api.EVP_KDF_fetch, None, "ARGON2ID")
}
