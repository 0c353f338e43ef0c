//! Certificates: read from PEM, described by their key, and pinned.

use std::sync::OnceLock;

use aws_lc_rs::digest;
use rsa::pkcs1::RsaPublicKeyRef;
use rsa::pkcs8::spki::SubjectPublicKeyInfoRef;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::server::ParsedCertificate;
use x509_cert::Certificate;
use x509_cert::der::Decode;

use super::spec::{Identity, Signer};
use crate::failure::Failure;

/// Reads all certificates of a PEM text, leaf first.
pub fn chain(pem: &str) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match chain {
        Ok(chain) if chain.is_empty() => Err(failed("there is no certificate in the PEM text")),
        Ok(chain) => Ok(chain),
        Err(error) => Err(failed(&format!("the certificate cannot be read: {error}"))),
    }
}

/// Reads all lists of revoked certificates of a PEM text.
pub fn revocations(pem: &str) -> Result<Vec<CertificateRevocationListDer<'static>>, Failure> {
    let lists: Result<Vec<_>, _> = CertificateRevocationListDer::pem_slice_iter(pem.as_bytes()).collect();
    let lists = lists.map_err(|error| failed(&format!("the revocations cannot be read: {error}")))?;
    // Without a list every certificate would be accepted.
    if lists.is_empty() { Err(failed("the clients' revocations must be a list in PEM")) } else { Ok(lists) }
}

pub fn private_key(pem: &str) -> Result<PrivateKeyDer<'static>, Failure> {
    PrivateKeyDer::from_pem_slice(pem.as_bytes())
        .map_err(|error| failed(&format!("the private key cannot be read: {error}")))
}

fn failed(reason: &str) -> Failure {
    Failure::Failed(reason.to_owned())
}

impl Identity {
    /// Returns the common name in the leaf.
    pub fn common_name(&self) -> Option<String> {
        common_name(chain(&self.chain_pem).ok()?.first()?)
    }

    /// Returns the kind and size of the leaf's key.
    pub fn key(&self) -> Result<Key, Failure> {
        let chain = chain(&self.chain_pem)?;
        chain
            .first()
            .and_then(|leaf| Key::of(leaf))
            .ok_or_else(|| failed("the certificate has a key of an unknown kind"))
    }
}

/// Returns the common name of a certificate's subject.
pub fn common_name(der: &[u8]) -> Option<String> {
    let certificate = Certificate::from_der(der).ok()?;
    certificate.tbs_certificate().subject().common_name().ok()?.map(|name| name.value().into_owned())
}

/// Public key of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    Rsa { bits: u32 },
    Ecdsa(&'static str),
    Ed25519,
    MlDsa(&'static str),
}

/// Object identifiers of public keys: of the algorithm, or of the curve.
const KINDS: [(&str, Key); 8] = [
    ("1.2.840.113549.1.1.1", Key::Rsa { bits: 0 }),
    ("1.2.840.10045.3.1.7", Key::Ecdsa("P-256")),
    ("1.3.132.0.34", Key::Ecdsa("P-384")),
    ("1.3.132.0.35", Key::Ecdsa("P-521")),
    ("1.3.101.112", Key::Ed25519),
    ("2.16.840.1.101.3.4.3.17", Key::MlDsa("44")),
    ("2.16.840.1.101.3.4.3.18", Key::MlDsa("65")),
    ("2.16.840.1.101.3.4.3.19", Key::MlDsa("87")),
];

impl Key {
    pub fn of(certificate: &[u8]) -> Option<Key> {
        let certificate = CertificateDer::from(certificate);
        let info = ParsedCertificate::try_from(&certificate).ok()?.subject_public_key_info();
        let info = SubjectPublicKeyInfoRef::try_from(&info[..]).ok()?;
        // A curve is a parameter of the elliptic-curve algorithm.
        let identifier = info.algorithm.parameters_oid().unwrap_or(info.algorithm.oid).to_string();
        let (_, kind) = KINDS.iter().find(|(known, _)| *known == identifier)?;
        match kind {
            Key::Rsa { .. } => {
                let key = RsaPublicKeyRef::try_from(info.subject_public_key.as_bytes()?).ok()?;
                let modulus = key.modulus.as_bytes();
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

/// A leaf with its description, computed once instead of for every connection.
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

/// The one certificate that a server must present: a given one, or the first that is seen.
///
/// It replaces a chain to an authority: a lab makes both ends itself, and must only know that the measured
/// certificate is the one that it requested.
#[derive(Debug)]
pub struct Pin(OnceLock<Leaf>);

impl Pin {
    pub fn new(expected_pem: Option<&str>) -> Result<Pin, Failure> {
        match expected_pem {
            None => Ok(Pin(OnceLock::new())),
            Some(pem) => Ok(Pin(OnceLock::from(Leaf::of(&chain(pem)?[0])))),
        }
    }

    /// Checks that this is the pinned certificate; the error describes the difference.
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

    /// Returns the certificate of every accepted connection, or None before the first.
    pub fn leaf(&self) -> Option<&Leaf> {
        self.0.get()
    }
}
