//! Operations that other providers borrow from this one because their own library does not support them.

use std::marker::PhantomData;

use rsa::RsaPrivateKey;
use rsa::pkcs8::{DecodePrivateKey, EncodePublicKey};

use super::signature::{P256, P384, P521, Pkcs1, with_digest};
use crate::failure::Failure;
use crate::families::failed;
use crate::families::signature::Scheme;

/// Signs a message with `algorithm` (rsa, with PKCS#1 v1.5 padding, or ecdsa-*), hashed with `digest`.
pub fn sign(algorithm: &str, digest: &str, pkcs8: &[u8], message: &[u8]) -> Result<Vec<u8>, Failure> {
    match algorithm {
        "rsa" => {
            with_digest!(digest, H => sign_by(Pkcs1::<H> { bits: 0, hash: PhantomData }, pkcs8, message))
        }
        "ecdsa-p256" => with_digest!(digest, H => sign_by(P256::<H>(PhantomData), pkcs8, message)),
        "ecdsa-p384" => with_digest!(digest, H => sign_by(P384::<H>(PhantomData), pkcs8, message)),
        "ecdsa-p521" => with_digest!(digest, H => sign_by(P521::<H>(PhantomData), pkcs8, message)),
        other => Err(Failure::Failed(format!("{other} cannot sign for another provider"))),
    }
}

fn sign_by<S>(scheme: S, pkcs8: &[u8], message: &[u8]) -> Result<Vec<u8>, Failure>
where
    S: Scheme<Private: DecodePrivateKey>,
{
    let key = S::Private::from_pkcs8_der(pkcs8).map_err(failed("reading the private key"))?;
    Ok(scheme.sign(&key, message)?.as_ref().to_vec())
}

/// Returns the SubjectPublicKeyInfo of a private RSA key.
pub fn rsa_public_key_der(pkcs8: &[u8]) -> Result<Vec<u8>, Failure> {
    let key = RsaPrivateKey::from_pkcs8_der(pkcs8).map_err(failed("reading the private key"))?;
    let der = key.to_public_key().to_public_key_der().map_err(failed("writing the public key"))?;
    Ok(der.into_vec())
}

/// Function that expands an ML-KEM seed into the private key of FIPS 203.
pub type ExpandSeed = fn(&[u8]) -> Result<Vec<u8>, Failure>;

// The expanded form is deprecated, but many libraries import only that.
#[allow(deprecated)]
pub fn expand_seed<K>(seed: &[u8]) -> Result<Vec<u8>, Failure>
where
    K: ml_kem::Kem<DecapsulationKey: From<ml_kem::Seed> + ml_kem::ExpandedKeyEncoding>,
{
    let seed = ml_kem::Seed::try_from(seed).map_err(failed("the seed"))?;
    Ok(ml_kem::ExpandedKeyEncoding::to_expanded_bytes(&K::DecapsulationKey::from(seed)).to_vec())
}
