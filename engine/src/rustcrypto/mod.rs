//! The crates of the RustCrypto project, with those it is built on or stands beside (dalek, BLAKE3, bcrypt).

mod cipher;
mod digest;
mod foreign;
mod key_exchange;
mod password_hash;
mod pkcs8;
mod signature;

use crate::contract::Receipt;
use crate::crates;
use crate::families::Linked;
pub use foreign::{ExpandSeed, expand_seed, sign};
pub use pkcs8::{private_key as pkcs8_der, rsa_public_key_der};

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
};

/// What the engine is built from besides cryptography, and another provider.
const OTHER_CRATES: &[&str] = &[
    "aws-lc-rs",
    "aws-lc-sys",
    "cc",
    "hdrhistogram",
    "hex",
    "httparse",
    "libc",
    "libloading",
    "rusqlite",
    "rustix",
    "rustls",
    "serde",
    "serde_json",
    "sqlcipher-src",
];

fn receipt() -> Receipt {
    let parts = crates::all().filter(|(name, _)| !OTHER_CRATES.contains(name));
    Receipt {
        // Crates are released one by one: what has a version is the set of them that this engine locks.
        provider: format!("RustCrypto, as locked by tollbar-engine {}", env!("CARGO_PKG_VERSION")),
        name: format!("rustcrypto {}", env!("CARGO_PKG_VERSION")),
        cflags: Some(crates::BUILD.to_owned()),
        parts: parts.map(|(name, version)| (name.to_owned(), version.to_owned())).collect(),
        ..Receipt::default()
    }
}
