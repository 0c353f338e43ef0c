//! Password hashes.

use argon2::{Algorithm, Argon2, Params, Version};
use base64::engine::GeneralPurpose;
use base64::engine::general_purpose::NO_PAD;
use base64::{Engine, alphabet};
use hmac::EagerHash;
use pbkdf2::pbkdf2_hmac;
use sha2::Digest;

use crate::contract::Task;
use crate::failure::Failure;
use crate::families::password_hash::{HASH_BYTES, affordable, copy, kibibytes, log2, parameter, prepare};
use crate::families::{Prepared, Row, failed};

/// Values of the setting `algorithm`, which a choice sets together with its parameters.
pub const ALGORITHMS: &[Row] = &[
    ("salted-sha-1", salted::<sha1::Sha1>),
    ("salted-sha-256", salted::<sha2::Sha256>),
    ("pbkdf2-sha-1", pbkdf2::<sha1::Sha1>),
    ("pbkdf2-sha-256", pbkdf2::<sha2::Sha256>),
    ("pbkdf2-sha-512", pbkdf2::<sha2::Sha512>),
    ("bcrypt", bcrypt),
    ("scrypt", scrypt),
    ("argon2id", argon2id),
];

fn salted<D: Digest>(task: &Task) -> Prepared {
    prepare(task, <D as Digest>::output_size(), |password, salt, output| {
        let hash = D::new().chain_update(salt).chain_update(password).finalize();
        copy(&hash, output)
    })
}

fn pbkdf2<D: EagerHash + Digest>(task: &Task) -> Prepared {
    let iterations = parameter(task, "iterations")?;
    prepare(task, <D as Digest>::output_size().min(HASH_BYTES), move |password, salt, output| {
        pbkdf2_hmac::<D>(password, salt, iterations, output);
        Ok(())
    })
}

/// Part of the 24 computed bytes that a bcrypt hash keeps.
const BCRYPT_BYTES: usize = 23;
const BCRYPT_BASE64: GeneralPurpose = GeneralPurpose::new(&alphabet::BCRYPT, NO_PAD);

fn bcrypt(task: &Task) -> Prepared {
    let cost = parameter(task, "cost")?;
    prepare(task, BCRYPT_BYTES, move |password, salt, output| {
        let salt = salt.try_into().map_err(failed("the salt must have 16 bytes"))?;
        // The crate returns the hash as text only; the cost of decoding it is negligible compared with
        // bcrypt.
        let text = bcrypt::hash_with_salt_bytes(password, cost, salt).map_err(failed("bcrypt"))?;
        copy(&BCRYPT_BASE64.decode(&text[29..]).map_err(failed("bcrypt's text"))?, output)
    })
}

fn scrypt(task: &Task) -> Prepared {
    let (n, r, p) = (log2(task, "n")?, parameter(task, "r")?, parameter(task, "p")?);
    // The crate multiplies the two in 32 bits, and checks the truncated product.
    r.checked_mul(p)
        .ok_or_else(|| Failure::Failed(format!("scrypt's parameters: {r} times {p} is too many")))?;
    let params = scrypt::Params::new(n, r, p).map_err(failed("scrypt's parameters"))?;
    // Memory is N blocks of 128·r bytes (RFC 7914, 2), and p blocks more (RFC 7914, 6).
    let blocks = 1u64.checked_shl(n.into()).and_then(|n| n.checked_add(p.into()));
    affordable(blocks.and_then(|blocks| blocks.checked_mul(128 * u64::from(r))))?;
    prepare(task, 32, move |password, salt, output| {
        scrypt::scrypt(password, salt, &params, output).map_err(failed("scrypt"))
    })
}

/// Prepares Argon2id. The crate's feature `parallel` computes lanes on the threads of rayon; their CPU time
/// is counted on whichever thread it is spent.
fn argon2id(task: &Task) -> Prepared {
    let (memory_kib, passes, lanes) =
        (kibibytes(task, "memory")?, parameter(task, "passes")?, parameter(task, "lanes")?);
    let params = Params::new(memory_kib, passes, lanes, None).map_err(failed("Argon2's parameters"))?;
    affordable(Some(1024 * u64::from(memory_kib)))?;
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    // The pool has as many threads as lanes, whatever the machine has, because an idle thread of rayon spends
    // time looking for work. A process does one task, so that an existing pool can only be that of another
    // test.
    let _ = rayon::ThreadPoolBuilder::new().num_threads(lanes as usize).build_global();
    prepare(task, 32, move |password, salt, output| {
        argon2.hash_password_into(password, salt, output).map_err(failed("Argon2"))
    })
}
