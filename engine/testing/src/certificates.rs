//! Certificates, keys and lists of `fixtures/`.

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("fixtures/", $name, ".pem"))
    };
}

pub const DH_2048: &str = fixture!("dh-2048");
pub const AUTHORITY: &str = fixture!("authority");
pub const REVOCATIONS: &str = fixture!("revocations");
pub const STALE_AUTHORITY: &str = fixture!("stale-authority");
pub const STALE_REVOCATIONS: &str = fixture!("stale-revocations");

/// A certificate with its chain, and its key.
pub struct Certificate {
    pub chain_pem: String,
    pub key_pem: String,
}

/// Returns a certificate of `fixtures/` with its key.
pub fn certificate(name: &str) -> Certificate {
    let (chain, key) = match name {
        "rsa-2048" => (fixture!("rsa-2048"), fixture!("rsa-2048.key")),
        "rsa-1024" => (fixture!("rsa-1024"), fixture!("rsa-1024.key")),
        "ecdsa-p256" => (fixture!("ecdsa-p256"), fixture!("ecdsa-p256.key")),
        "ecdsa-p384" => (fixture!("ecdsa-p384"), fixture!("ecdsa-p384.key")),
        "ed25519" => (fixture!("ed25519"), fixture!("ed25519.key")),
        "ml-dsa-65" => (fixture!("ml-dsa-65"), fixture!("ml-dsa-65.key")),
        "ml-dsa-87" => (fixture!("ml-dsa-87"), fixture!("ml-dsa-87.key")),
        "client" => (fixture!("client"), fixture!("client.key")),
        "revoked" => (fixture!("revoked"), fixture!("revoked.key")),
        "stale" => (fixture!("stale"), fixture!("stale.key")),
        other => panic!("no fixture {other}"),
    };
    Certificate { chain_pem: chain.to_owned(), key_pem: key.to_owned() }
}
