//! rustls with exactly the requested parameters and no fallback.

use ::rustls::crypto::aws_lc_rs::{self, kx_group};
use ::rustls::crypto::{CryptoProvider, SupportedKxGroup};
use ::rustls::version::{TLS12, TLS13};
use ::rustls::{SupportedCipherSuite, SupportedProtocolVersion};

use crate::failure::Failure;
use crate::provider::crates;
use crate::spec::{Asked, Cipher, KeyExchange, Protocol, Signer};

/// Least size of an RSA key with which AWS-LC signs or verifies.
const LEAST_RSA_BITS: u32 = 2048;

/// Returns the feature that rustls deliberately does not have, or None if it supports the request.
pub fn lacks(asked: &Asked, rsa_bits: Option<u32>) -> Option<String> {
    match (asked.key_exchange, asked.cipher, rsa_bits) {
        (Some(KeyExchange::Rsa), ..) => Some("rustls has no RSA key exchange".to_owned()),
        (Some(KeyExchange::Dhe), ..) => Some("rustls has no finite-field Diffie–Hellman".to_owned()),
        (Some(KeyExchange::P384MlKem1024), ..) => Some(format!("{} has no SecP384r1MLKEM1024", library())),
        (_, Some(Cipher::Aes128Cbc), _) => Some("rustls has no CBC suites".to_owned()),
        (.., Some(bits)) if bits < LEAST_RSA_BITS => Some(format!(
            "rustls on AWS-LC refuses RSA keys under {LEAST_RSA_BITS} bits; this one has {bits}"
        )),
        _ => None,
    }
}

pub fn versions(protocol: Option<Protocol>) -> Vec<&'static SupportedProtocolVersion> {
    match protocol {
        Some(Protocol::Tls12) => vec![&TLS12],
        Some(Protocol::Tls13) => vec![&TLS13],
        None => vec![&TLS13, &TLS12],
    }
}

/// Returns a provider with the requested suites and groups, in TLS 1.2 those for certificates of these kinds.
pub fn exactly(asked: &Asked) -> Result<CryptoProvider, Failure> {
    let wanted = asked.suites();
    let suites = aws_lc_rs::ALL_CIPHER_SUITES.iter().copied();
    let suites: Vec<_> = suites.filter(|suite| wanted.contains(&name(*suite))).collect();
    if suites.is_empty() {
        return Err(Failure::Unsupported("rustls has no suite for what is asked".to_owned()));
    }
    Ok(CryptoProvider { cipher_suites: suites, kx_groups: groups(asked), ..aws_lc_rs::default_provider() })
}

fn groups(asked: &Asked) -> Vec<&'static dyn SupportedKxGroup> {
    let mut groups = match asked.key_exchange {
        Some(KeyExchange::EcdheP256) => vec![kx_group::SECP256R1],
        Some(KeyExchange::EcdheP384) => vec![kx_group::SECP384R1],
        Some(KeyExchange::X25519) => vec![kx_group::X25519],
        Some(KeyExchange::X25519MlKem768) => vec![kx_group::X25519MLKEM768],
        Some(KeyExchange::P256MlKem768) => vec![kx_group::SECP256R1MLKEM768],
        Some(KeyExchange::MlKem768) => vec![kx_group::MLKEM768],
        Some(KeyExchange::MlKem1024) => vec![kx_group::MLKEM1024],
        Some(KeyExchange::Rsa | KeyExchange::Dhe | KeyExchange::P384MlKem1024) | None => {
            vec![kx_group::X25519, kx_group::SECP256R1, kx_group::SECP384R1, kx_group::X25519MLKEM768]
        }
    };
    // Before TLS 1.3 this list also limits the curves of a certificate, and OpenSSL enforces that. The
    // requested curve stays first; its use is checked after the handshake.
    if asked.protocol != Some(Protocol::Tls13) && asked.signer.is_none_or(|signer| signer == Signer::Ecdsa) {
        for curve in [kx_group::SECP256R1, kx_group::SECP384R1] {
            if groups.iter().all(|group| group.name() != curve.name()) {
                groups.push(curve);
            }
        }
    }
    groups
}

/// Returns the registered name; rustls has its own prefix for those of TLS 1.3.
pub fn name(suite: SupportedCipherSuite) -> String {
    suite.suite().as_str().unwrap_or_default().replacen("TLS13_", "TLS_", 1)
}

/// Returns the name and version, for example `rustls 0.23.46 (aws-lc-rs 1.19.1)`.
pub fn library() -> String {
    let version = |name| crates().find(|(found, _)| *found == name).map_or("", |(_, version)| version);
    format!("rustls {} (aws-lc-rs {})", version("rustls"), version("aws-lc-rs"))
}

pub fn unsupported(error: ::rustls::Error) -> Failure {
    Failure::Unsupported(format!("rustls: {error}"))
}
