//! Digests, and the functions that use them: HMAC and PBKDF2.

use std::num::NonZeroU32;

use aws_lc_rs::{digest, hmac, pbkdf2};

use crate::contract::Task;
use crate::families::password_hash::HASH_BYTES;
use crate::families::{self, Prepared, Row};

macro_rules! rows {
    ($prepare:ident: $($choice:literal = $algorithm:path),+ $(,)?) => {
        &[$(($choice, |task| $prepare(task, &$algorithm))),+]
    };
}

pub const DIGESTS: &[Row] = rows!(hash:
    "sha-1" = digest::SHA1_FOR_LEGACY_USE_ONLY,
    "sha-224" = digest::SHA224,
    "sha-256" = digest::SHA256,
    "sha-384" = digest::SHA384,
    "sha-512" = digest::SHA512,
    "sha-512-256" = digest::SHA512_256,
    "sha3-256" = digest::SHA3_256,
    "sha3-512" = digest::SHA3_512,
);

pub const MACS: &[Row] = rows!(authenticate:
    "hmac-sha-1" = hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
    "hmac-sha-256" = hmac::HMAC_SHA256,
    "hmac-sha-512" = hmac::HMAC_SHA512,
);

/// Values of the setting `algorithm`, which a choice sets together with its parameters.
pub const ALGORITHMS: &[Row] = &[
    ("salted-sha-1", |task| salted(task, &digest::SHA1_FOR_LEGACY_USE_ONLY)),
    ("salted-sha-256", |task| salted(task, &digest::SHA256)),
    ("pbkdf2-sha-1", |task| pbkdf2(task, pbkdf2::PBKDF2_HMAC_SHA1, 20)),
    ("pbkdf2-sha-256", |task| pbkdf2(task, pbkdf2::PBKDF2_HMAC_SHA256, HASH_BYTES)),
    ("pbkdf2-sha-512", |task| pbkdf2(task, pbkdf2::PBKDF2_HMAC_SHA512, HASH_BYTES)),
];

fn hash(task: &Task, algorithm: &'static digest::Algorithm) -> Prepared {
    families::digest::digest(task, move |data| Ok(digest::digest(algorithm, data)))
}

fn authenticate(task: &Task, algorithm: &'static hmac::Algorithm) -> Prepared {
    families::digest::mac(task, |key, data| Ok(hmac::sign(&hmac::Key::new(*algorithm, key), data)))
}

fn salted(task: &Task, algorithm: &'static digest::Algorithm) -> Prepared {
    families::password_hash::prepare(task, algorithm.output_len, move |password, salt, output| {
        let mut context = digest::Context::new(algorithm);
        context.update(salt);
        context.update(password);
        families::password_hash::copy(context.finish().as_ref(), output)
    })
}

fn pbkdf2(task: &Task, algorithm: pbkdf2::Algorithm, bytes: usize) -> Prepared {
    let iterations = families::password_hash::parameter(task, "iterations")?;
    let iterations = NonZeroU32::new(iterations).expect("a parameter is not zero");
    families::password_hash::prepare(task, bytes, move |password, salt, output| {
        pbkdf2::derive(algorithm, iterations, salt, password, output);
        Ok(())
    })
}
