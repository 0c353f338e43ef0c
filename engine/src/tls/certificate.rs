//! Certificates: read from PEM, described by their key, and held to.

use std::sync::OnceLock;

use aws_lc_rs::digest;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::ParsedCertificate;

use super::spec::{Identity, Signer};
use crate::contract::Failure;

/// All certificates of a PEM text, leaf first.
pub fn chain(pem: &str) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match chain {
        Ok(chain) if chain.is_empty() => Err(failed("there is no certificate in the PEM text")),
        Ok(chain) => Ok(chain),
        Err(error) => Err(failed(&format!("the certificate cannot be read: {error}"))),
    }
}

pub fn private_key(pem: &str) -> Result<PrivateKeyDer<'static>, Failure> {
    PrivateKeyDer::from_pem_slice(pem.as_bytes())
        .map_err(|error| failed(&format!("the private key cannot be read: {error}")))
}

fn failed(reason: &str) -> Failure {
    Failure::Failed(reason.to_owned())
}

impl Identity {
    /// The kind and size of the key that the leaf certifies.
    pub fn key(&self) -> Result<Key, Failure> {
        let chain = chain(&self.chain_pem)?;
        chain
            .first()
            .and_then(|leaf| Key::of(leaf))
            .ok_or_else(|| failed("the certificate holds a key of an unknown kind"))
    }
}

/// The public key of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    Rsa { bits: u32 },
    Ecdsa(&'static str),
    Ed25519,
    MlDsa(&'static str),
}

/// Object identifiers in DER, of what a public key can be.
const KINDS: [(&[u8], Key); 8] = [
    (b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01", Key::Rsa { bits: 0 }),
    (b"\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07", Key::Ecdsa("P-256")),
    (b"\x06\x05\x2b\x81\x04\x00\x22", Key::Ecdsa("P-384")),
    (b"\x06\x05\x2b\x81\x04\x00\x23", Key::Ecdsa("P-521")),
    (b"\x06\x03\x2b\x65\x70", Key::Ed25519),
    (b"\x06\x09\x60\x86\x48\x01\x65\x03\x04\x03\x11", Key::MlDsa("44")),
    (b"\x06\x09\x60\x86\x48\x01\x65\x03\x04\x03\x12", Key::MlDsa("65")),
    (b"\x06\x09\x60\x86\x48\x01\x65\x03\x04\x03\x13", Key::MlDsa("87")),
];

impl Key {
    pub fn of(certificate: &[u8]) -> Option<Key> {
        let certificate = CertificateDer::from(certificate);
        let info = ParsedCertificate::try_from(&certificate).ok()?.subject_public_key_info();
        let (content, _) = element(&info, 0x30)?;
        let (algorithm, rest) = element(content, 0x30)?;
        // A curve's own identifier comes last in the algorithm, behind the one that says "elliptic curve".
        let (_, kind) = KINDS.iter().find(|(identifier, _)| {
            algorithm.windows(identifier.len()).any(|window| window == *identifier)
        })?;
        match kind {
            Key::Rsa { .. } => {
                let (key, _) = element(rest, 0x03)?;
                let (numbers, _) = element(key.strip_prefix(&[0])?, 0x30)?;
                let (modulus, _) = element(numbers, 0x02)?;
                let leading = modulus.iter().take_while(|byte| **byte == 0).count();
                let modulus = modulus.get(leading..)?;
                let bits = u32::try_from(modulus.len() * 8).ok()? - modulus.first()?.leading_zeros();
                Some(Key::Rsa { bits })
            }
            other => Some(other.clone()),
        }
    }

    pub fn rsa_bits(&self) -> Option<u32> {
        match self {
            Key::Rsa { bits } => Some(*bits),
            _ => None,
        }
    }

    pub fn signer(&self) -> Signer {
        match self {
            Key::Rsa { .. } => Signer::Rsa,
            Key::Ecdsa(_) => Signer::Ecdsa,
            Key::Ed25519 => Signer::Ed25519,
            Key::MlDsa(_) => Signer::MlDsa,
        }
    }

    pub fn describe(&self) -> String {
        let kind = self.signer().key();
        match self {
            Key::Rsa { bits } => format!("{kind} {bits}"),
            Key::Ecdsa(curve) => format!("{kind} {curve}"),
            Key::Ed25519 => kind.to_owned(),
            Key::MlDsa(size) => format!("{kind}-{size}"),
        }
    }
}

/// The content of one DER element of this kind, and what follows it.
fn element(bytes: &[u8], kind: u8) -> Option<(&[u8], &[u8])> {
    let (first, rest) = bytes.split_first()?;
    let (length, rest) = rest.split_first()?;
    let (length, rest) = match *length {
        short @ 0..0x80 => (short as usize, rest),
        long => {
            let count = (long & 0x7f) as usize;
            let (length, rest) = rest.split_at_checked(count)?;
            let wide =
                length.iter().try_fold(0usize, |sum, byte| Some(sum.checked_mul(256)? + *byte as usize));
            (wide?, rest)
        }
    };
    if *first == kind { rest.split_at_checked(length) } else { None }
}

/// A leaf with what is said of it, worked out once and not for every connection.
#[derive(Debug)]
pub struct Leaf {
    der: Vec<u8>,
    /// SHA-256, in hexadecimal.
    pub fingerprint: String,
    pub key: String,
}

impl Leaf {
    pub fn of(der: &[u8]) -> Leaf {
        Leaf {
            der: der.to_vec(),
            fingerprint: fingerprint(der),
            key: Key::of(der).map(|key| key.describe()).unwrap_or_default(),
        }
    }
}

fn fingerprint(der: &[u8]) -> String {
    hex::encode(digest::digest(&digest::SHA256, der))
}

/// The one certificate that a server must present: given, or the first that is seen.
///
/// This stands in for a chain to an authority: a lab makes both ends itself, and what it has to know is that
/// the certificate it asked for is the one that was measured.
#[derive(Debug)]
pub struct Pin(OnceLock<Leaf>);

impl Pin {
    pub fn new(expected_pem: Option<&str>) -> Result<Pin, Failure> {
        match expected_pem {
            None => Ok(Pin(OnceLock::new())),
            Some(pem) => Ok(Pin(OnceLock::from(Leaf::of(&chain(pem)?[0])))),
        }
    }

    /// Whether this is the certificate, in words if not.
    pub fn hold(&self, der: &[u8]) -> Result<(), String> {
        let held = self.0.get_or_init(|| Leaf::of(der));
        if held.der == der {
            return Ok(());
        }
        Err(format!(
            "the server presented another certificate: SHA-256 {} instead of {}",
            fingerprint(der),
            held.fingerprint
        ))
    }

    /// What every connection that got through has been shown; None before the first.
    pub fn leaf(&self) -> Option<&Leaf> {
        self.0.get()
    }
}
