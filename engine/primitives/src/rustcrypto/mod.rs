//! Crates of the RustCrypto project, and those it uses or is grouped with here (dalek, BLAKE3, bcrypt).

mod cipher;
mod digest;
mod foreign;
mod key_exchange;
mod password_hash;
mod signature;

use aws_lc_rs::digest::{SHA256, digest};

use crate::contract::Receipt;
use crate::families::Linked;
use crate::provider::{BUILD, parts};
pub use foreign::{ExpandSeed, expand_seed, rsa_public_key_der, sign};
pub use signature::private_key as pkcs8_der;

pub const RUSTCRYPTO: Linked = Linked {
    name: "rustcrypto",
    receipt,
    table: &[
        ("digest", digest::DIGESTS),
        ("mac", digest::MACS),
        ("cipher", cipher::CIPHERS),
        ("signature", signature::SIGNATURES),
        ("key-exchange", key_exchange::KEY_EXCHANGES),
        ("password-hash", password_hash::ALGORITHMS),
    ],
    storage: &[],
};

/// Crates of this provider, whose code its rows measure.
const CRATES: &[&str] = &[
    "aes",
    "aes-gcm",
    "argon2",
    "aria",
    "bcrypt",
    "blake2",
    "blake3",
    "camellia",
    "cbc",
    "chacha20poly1305",
    "cipher",
    "ctr",
    "des",
    "dsa",
    "ed25519-dalek",
    "getrandom",
    "hmac",
    "md-5",
    "ml-dsa",
    "ml-kem",
    "p256",
    "p384",
    "p521",
    "pbkdf2",
    "poly1305",
    "rayon",
    "rc2",
    "rc4",
    "rsa",
    "scrypt",
    "sha1",
    "sha2",
    "sha3",
    "signature",
    "slh-dsa",
    "x25519-dalek",
];

/// Returns the provider's name, for example `rustcrypto 3f9a1c2b-rc`. Crates are released one by one, so that
/// the version is a hash of theirs, and another set of them is another library. Some are release candidates;
/// the receipt's parts show which.
fn name() -> String {
    let parts = parts(CRATES);
    let all: String = parts.iter().map(|(name, version)| format!("{name} {version}\n")).collect();
    let hash = hex::encode(&digest(&SHA256, all.as_bytes()).as_ref()[..4]);
    let early = if parts.values().any(|version| version.contains("-rc")) { "-rc" } else { "" };
    format!("rustcrypto {hash}{early}")
}

fn receipt() -> Receipt {
    Receipt {
        provider: format!("RustCrypto, as locked by tollbar-engine {}", env!("CARGO_PKG_VERSION")),
        name: name(),
        cflags: Some(BUILD.to_owned()),
        parts: parts(CRATES),
        ..Receipt::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::crates;

    /// Other crates of the engine.
    const OTHERS: &[&str] = &[
        "aws-lc-rs",
        "aws-lc-sys",
        "base64",
        "bytes",
        "cc",
        "crc32fast",
        "fallible-iterator",
        "hdrhistogram",
        "hex",
        "httparse",
        "jsonwebtoken",
        "libc",
        "libloading",
        "moka",
        "mysql",
        "postgres-protocol",
        "postgres-types",
        "regex",
        "rusqlite",
        "rustix",
        "rustls",
        "serde",
        "serde_json",
        "sqlcipher-src",
        "x509-cert",
        "zeroize",
    ];

    #[test]
    fn every_crate_is_known_to_be_the_provider_or_not() {
        for (name, _) in crates() {
            assert!(CRATES.contains(&name) != OTHERS.contains(&name), "{name}");
        }
        for name in CRATES {
            assert!(crates().any(|(found, _)| found == *name), "{name}");
        }
    }

    #[test]
    fn a_release_candidate_is_in_the_name() {
        let early: Vec<_> = parts(CRATES).into_values().filter(|version| version.contains('-')).collect();
        assert_eq!(!early.is_empty(), name().ends_with("-rc"), "{early:?}");
    }
}
