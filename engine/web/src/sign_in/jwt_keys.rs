//! Verification keys of tokens, parsed once for a process. `jsonwebtoken`'s own provider stores a key's bytes
//! and parses them for each token, unlike a server that has its key ready.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::LazyLock;

use aws_lc_rs::hmac;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256, VerificationAlgorithm,
};
use jsonwebtoken::crypto::aws_lc::DEFAULT_PROVIDER;
use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::signature::{Error, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey};

use crate::calls;

static PROVIDER: LazyLock<CryptoProvider> =
    LazyLock::new(|| CryptoProvider { verifier_factory: verifier, ..DEFAULT_PROVIDER.clone() });

thread_local! {
    static PARSED: RefCell<Vec<Parsed>> = const { RefCell::new(Vec::new()) };
}

struct Parsed {
    algorithm: Algorithm,
    bytes: Vec<u8>,
    key: Rc<Key>,
}

enum Key {
    Secret(Box<hmac::Key>),
    Public(ParsedPublicKey),
}

/// Makes the library take keys from here from now on.
pub fn keep() {
    // The first provider of a process is final, and all calls install this one.
    let _ = PROVIDER.install_default();
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    let bytes = key.try_get_as_bytes()?;
    let kept = PARSED.with_borrow(|parsed| {
        let same = |one: &&Parsed| one.algorithm == *algorithm && one.bytes == bytes;
        parsed.iter().find(same).map(|one| Rc::clone(&one.key))
    });
    let key = match kept {
        Some(key) => key,
        None => {
            let key = Rc::new(parse(*algorithm, key.family(), bytes)?);
            let parsed = Parsed { algorithm: *algorithm, bytes: bytes.to_vec(), key: Rc::clone(&key) };
            PARSED.with_borrow_mut(|all| all.push(parsed));
            key
        }
    };
    Ok(Box::new(Ready { algorithm: *algorithm, key }))
}

/// Parses a key. A key of another family than the algorithm's is refused, because a public key must not
/// become a secret.
fn parse(algorithm: Algorithm, family: AlgorithmFamily, bytes: &[u8]) -> Result<Key> {
    let by: &'static dyn VerificationAlgorithm = match (algorithm, family) {
        (Algorithm::HS256, AlgorithmFamily::Hmac) => {
            return Ok(Key::Secret(Box::new(hmac::Key::new(hmac::HMAC_SHA256, bytes))));
        }
        (Algorithm::RS256, AlgorithmFamily::Rsa) => &RSA_PKCS1_2048_8192_SHA256,
        (Algorithm::ES256, AlgorithmFamily::Ec) => &ECDSA_P256_SHA256_FIXED,
        (Algorithm::EdDSA, AlgorithmFamily::Ed) => &ED25519,
        _ => return Err(ErrorKind::InvalidKeyFormat.into()),
    };
    ParsedPublicKey::new(by, bytes).map(Key::Public).map_err(|_| ErrorKind::InvalidKeyFormat.into())
}

struct Ready {
    algorithm: Algorithm,
    key: Rc<Key>,
}

impl Verifier<Vec<u8>> for Ready {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        calls::tally("signature verified");
        let verified = match self.key.as_ref() {
            Key::Secret(key) => hmac::verify(key, message, signature),
            Key::Public(key) => key.verify_sig(message, signature),
        };
        verified.map_err(|_| Error::new())
    }
}

impl JwtVerifier for Ready {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count() -> usize {
        PARSED.with_borrow(Vec::len)
    }

    #[test]
    fn a_key_is_parsed_once() {
        let (one, other) = (DecodingKey::from_secret(&[1; 32]), DecodingKey::from_secret(&[2; 32]));
        for key in [&one, &other, &one, &other, &one] {
            verifier(&Algorithm::HS256, key).expect("a verifier");
        }
        assert_eq!(2, count());
    }

    #[test]
    fn a_key_of_another_family_is_refused() {
        let secret = DecodingKey::from_secret(&[1; 32]);
        for algorithm in [Algorithm::RS256, Algorithm::ES256, Algorithm::EdDSA, Algorithm::HS512] {
            assert!(verifier(&algorithm, &secret).is_err(), "{algorithm:?}");
        }
        assert!(verifier(&Algorithm::HS256, &DecodingKey::from_ed_der(&[1; 32])).is_err());
        assert_eq!(0, count());
    }
}
