//! What other providers need of this one where their own library has no way to do it.

use rsa::RsaPrivateKey;
use rsa::pkcs8::{DecodePrivateKey, EncodePublicKey, SecretDocument};

use super::signature::with_digest;
use crate::contract::{Failure, Task};
use crate::families::failed;

/// The task's private key, a PKCS#8 document.
pub fn pkcs8_der(task: &Task) -> Result<Vec<u8>, Failure> {
    let pem = task.text("private_key_pem");
    let pem = pem.ok_or_else(|| Failure::Failed("the input `private_key_pem` is missing".to_owned()))?;
    let (label, document) = SecretDocument::from_pem(pem).map_err(failed("reading the private key's PEM"))?;
    match label {
        "PRIVATE KEY" => Ok(document.as_bytes().to_vec()),
        label => Err(Failure::Failed(format!("the private key is a {label}, not a PKCS#8 document"))),
    }
}

/// The SubjectPublicKeyInfo of a private RSA key.
pub fn rsa_public_key_der(pkcs8: &[u8]) -> Result<Vec<u8>, Failure> {
    let key = RsaPrivateKey::from_pkcs8_der(pkcs8).map_err(failed("reading the private key"))?;
    let der = key.to_public_key().to_public_key_der().map_err(failed("writing the public key"))?;
    Ok(der.into_vec())
}

/// A signature by `algorithm` (rsa, with PKCS#1 v1.5 padding, or ecdsa-*) of a message hashed with `digest`.
pub fn sign(algorithm: &str, digest: &str, pkcs8: &[u8], message: &[u8]) -> Result<Vec<u8>, Failure> {
    use super::signature::{P256, P384, P521, Pkcs1};
    macro_rules! sign_with {
        ($scheme:ident) => {
            with_digest!(digest, H => $scheme::<H>::sign_pkcs8(pkcs8, message))
        };
    }
    match algorithm {
        "rsa" => sign_with!(Pkcs1),
        "ecdsa-p256" => sign_with!(P256),
        "ecdsa-p384" => sign_with!(P384),
        "ecdsa-p521" => sign_with!(P521),
        other => Err(Failure::Failed(format!("nobody signs with {other} for another provider"))),
    }
}

/// Expands an ML-KEM seed into the private key of FIPS 203.
pub type ExpandSeed = fn(&[u8]) -> Result<Vec<u8>, Failure>;

// The expanded form is out of favour, but it is what many libraries import.
#[allow(deprecated)]
pub fn expand_seed<K>(seed: &[u8]) -> Result<Vec<u8>, Failure>
where
    K: ml_kem::Kem<DecapsulationKey: From<ml_kem::Seed> + ml_kem::ExpandedKeyEncoding>,
{
    let seed = ml_kem::Seed::try_from(seed).map_err(failed("the seed"))?;
    Ok(ml_kem::ExpandedKeyEncoding::to_expanded_bytes(&K::DecapsulationKey::from(seed)).to_vec())
}
