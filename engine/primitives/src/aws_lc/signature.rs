//! RSA, ECDSA, Ed25519 and ML-DSA.

use aws_lc_rs::digest::{self, Digest, SHA1_FOR_LEGACY_USE_ONLY, SHA256, SHA384, SHA512};
use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair as RsaKeyPair, KeySize};
use aws_lc_rs::signature::{
    self as api, ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING,
    ECDSA_P521_SHA256_ASN1_SIGNING, ECDSA_P521_SHA384_ASN1_SIGNING, ECDSA_P521_SHA512_ASN1_SIGNING,
    EcdsaKeyPair, KeyPair, ParsedPublicKey, VerificationAlgorithm,
};

use crate::contract::Task;
use crate::failure::Failure;
use crate::families::signature::{Scheme, long_key, prepare};
use crate::families::{Prepared, Row, failed};
use crate::rustcrypto;

pub const SIGNATURES: &[Row] = &[
    ("rsa-1024", |task| rsa(task, RSA_1024, None)),
    ("rsa-2048", |task| rsa(task, RSA, Some(KeySize::Rsa2048))),
    ("rsa-3072", |task| rsa(task, RSA, Some(KeySize::Rsa3072))),
    ("rsa-4096", |task| rsa(task, RSA, Some(KeySize::Rsa4096))),
    ("ecdsa-p256", ecdsa),
    ("ecdsa-p384", ecdsa),
    ("ecdsa-p521", ecdsa),
    ("ed25519", |task| prepare(task, Ed25519)),
    ("ml-dsa-44", |task| prepare(task, MlDsa(&api::ML_DSA_44_SIGNING, &api::ML_DSA_44))),
    ("ml-dsa-65", |task| prepare(task, MlDsa(&api::ML_DSA_65_SIGNING, &api::ML_DSA_65))),
    ("ml-dsa-87", |task| prepare(task, MlDsa(&api::ML_DSA_87_SIGNING, &api::ML_DSA_87))),
];

fn unsupported(what: &str) -> Failure {
    Failure::Unsupported(format!("aws-lc-rs does not {what}"))
}

fn public_key(
    algorithm: &'static dyn VerificationAlgorithm,
    bytes: &[u8],
) -> Result<ParsedPublicKey, Failure> {
    ParsedPublicKey::new(algorithm, bytes).map_err(failed("reading the public key"))
}

/// Public keys of a scheme whose key pairs export them as bytes.
macro_rules! public_keys {
    ($scheme:ident, $verification:expr) => {
        fn public(&$scheme, key: &Self::Private) -> Result<ParsedPublicKey, Failure> {
            public_key($verification, key.public_key().as_ref())
        }

        fn read_public(&$scheme, der: &[u8]) -> Result<ParsedPublicKey, Failure> {
            public_key($verification, der)
        }
    };
}

/// A padding and a digest of RSA, with the encoding that signs (None: verify only) and the one that verifies.
type RsaRow =
    (&'static str, &'static str, Option<&'static api::RsaSignatureEncoding>, &'static api::RsaParameters);

const RSA: &[RsaRow] = &[
    ("pkcs1", "sha-1", None, &api::RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY),
    ("pkcs1", "sha-256", Some(&api::RSA_PKCS1_SHA256), &api::RSA_PKCS1_2048_8192_SHA256),
    ("pkcs1", "sha-384", Some(&api::RSA_PKCS1_SHA384), &api::RSA_PKCS1_2048_8192_SHA384),
    ("pkcs1", "sha-512", Some(&api::RSA_PKCS1_SHA512), &api::RSA_PKCS1_2048_8192_SHA512),
    ("pss", "sha-256", Some(&api::RSA_PSS_SHA256), &api::RSA_PSS_2048_8192_SHA256),
    ("pss", "sha-384", Some(&api::RSA_PSS_SHA384), &api::RSA_PSS_2048_8192_SHA384),
    ("pss", "sha-512", Some(&api::RSA_PSS_SHA512), &api::RSA_PSS_2048_8192_SHA512),
];

/// Rows of keys that are long enough only for verifying.
const RSA_1024: &[RsaRow] = &[
    ("pkcs1", "sha-1", None, &api::RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY),
    ("pkcs1", "sha-256", None, &api::RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY),
    ("pkcs1", "sha-512", None, &api::RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY),
];

fn rsa(task: &Task, rows: &'static [RsaRow], size: Option<KeySize>) -> Prepared {
    let (padding, digest) = (task.word("padding", "pkcs1")?, task.word("digest", "sha-256")?);
    let what = format!("{} with {padding} and {digest}", task.choice);
    let (_, digest, encoding, verification) = *rows
        .iter()
        .find(|row| (row.0, row.1) == (padding, digest))
        .ok_or_else(|| unsupported(&format!("offer {what}")))?;
    match (task.op.as_str(), encoding, size) {
        ("sign", None, _) => Err(unsupported(&format!("sign {what}, only verify it"))),
        ("generate-key", _, None) => Err(unsupported(&format!("generate keys of {}", task.choice))),
        _ => prepare(task, Rsa { digest, encoding, verification, size }),
    }
}

struct Rsa {
    digest: &'static str,
    encoding: Option<&'static api::RsaSignatureEncoding>,
    verification: &'static api::RsaParameters,
    size: Option<KeySize>,
}

enum RsaKey {
    Pair(RsaKeyPair),
    /// PKCS#8 document of a key that this library accepts for verifying only.
    Foreign(Vec<u8>),
}

impl Scheme for Rsa {
    type Private = RsaKey;
    type Public = ParsedPublicKey;
    type Signature = Vec<u8>;

    fn generate(&self) -> Result<RsaKey, Failure> {
        let size = self.size.ok_or_else(|| unsupported("generate RSA keys this short"))?;
        RsaKeyPair::generate(size).map(RsaKey::Pair).map_err(failed("generating the key"))
    }

    fn private(&self, task: &Task) -> Result<RsaKey, Failure> {
        let pkcs8 = rustcrypto::pkcs8_der(task)?;
        match self.encoding {
            Some(_) => {
                RsaKeyPair::from_pkcs8(&pkcs8).map(RsaKey::Pair).map_err(failed("reading the private key"))
            }
            None => Ok(RsaKey::Foreign(pkcs8)),
        }
    }

    fn another(&self) -> Result<RsaKey, Failure> {
        long_key()
    }

    fn public(&self, key: &RsaKey) -> Result<ParsedPublicKey, Failure> {
        match key {
            RsaKey::Pair(pair) => {
                let der = pair.public_key().as_der().map_err(failed("writing the public key"))?;
                public_key(self.verification, der.as_ref())
            }
            RsaKey::Foreign(pkcs8) => public_key(self.verification, &rustcrypto::rsa_public_key_der(pkcs8)?),
        }
    }

    fn read_public(&self, der: &[u8]) -> Result<ParsedPublicKey, Failure> {
        public_key(self.verification, der)
    }

    fn sign(&self, key: &RsaKey, message: &[u8]) -> Result<Vec<u8>, Failure> {
        let (RsaKey::Pair(pair), Some(encoding)) = (key, self.encoding) else {
            return Err(unsupported("sign with this digest or a key this short"));
        };
        // The interface needs the caller's buffer, of exactly this length.
        let mut signature = vec![0; pair.public_modulus_len()];
        pair.sign(encoding, &SystemRandom::new(), message, &mut signature).map_err(failed("signing"))?;
        Ok(signature)
    }

    fn sign_anyhow(&self, key: &RsaKey, message: &[u8]) -> Result<Vec<u8>, Failure> {
        let pkcs8 = match key {
            RsaKey::Pair(_) if self.encoding.is_some() => return self.sign(key, message),
            RsaKey::Pair(pair) => {
                let der: Pkcs8V1Der = pair.as_der().map_err(failed("writing the private key"))?;
                der.as_ref().to_vec()
            }
            RsaKey::Foreign(pkcs8) => pkcs8.clone(),
        };
        rustcrypto::sign("rsa", self.digest, &pkcs8, message)
    }

    fn verify(&self, key: &ParsedPublicKey, message: &[u8], signature: &[u8]) -> Result<bool, Failure> {
        Ok(key.verify_sig(message, signature).is_ok())
    }
}

type Signing = &'static api::EcdsaSigningAlgorithm;
type Verification = &'static api::EcdsaVerificationAlgorithm;

/// A curve and a digest of ECDSA, with the algorithm that signs (None: verify only) and the one that
/// verifies.
type EcdsaRow = (&'static str, &'static str, &'static digest::Algorithm, Option<Signing>, Verification);

const ECDSA: &[EcdsaRow] = &[
    ("ecdsa-p256", "sha-1", &SHA1_FOR_LEGACY_USE_ONLY, None, &api::ECDSA_P256_SHA1_ASN1),
    ("ecdsa-p256", "sha-256", &SHA256, Some(&ECDSA_P256_SHA256_ASN1_SIGNING), &api::ECDSA_P256_SHA256_ASN1),
    ("ecdsa-p256", "sha-384", &SHA384, None, &api::ECDSA_P256_SHA384_ASN1),
    ("ecdsa-p256", "sha-512", &SHA512, None, &api::ECDSA_P256_SHA512_ASN1),
    ("ecdsa-p384", "sha-256", &SHA256, None, &api::ECDSA_P384_SHA256_ASN1),
    ("ecdsa-p384", "sha-384", &SHA384, Some(&ECDSA_P384_SHA384_ASN1_SIGNING), &api::ECDSA_P384_SHA384_ASN1),
    ("ecdsa-p384", "sha-512", &SHA512, None, &api::ECDSA_P384_SHA512_ASN1),
    ("ecdsa-p521", "sha-1", &SHA1_FOR_LEGACY_USE_ONLY, None, &api::ECDSA_P521_SHA1_ASN1),
    ("ecdsa-p521", "sha-256", &SHA256, Some(&ECDSA_P521_SHA256_ASN1_SIGNING), &api::ECDSA_P521_SHA256_ASN1),
    ("ecdsa-p521", "sha-384", &SHA384, Some(&ECDSA_P521_SHA384_ASN1_SIGNING), &api::ECDSA_P521_SHA384_ASN1),
    ("ecdsa-p521", "sha-512", &SHA512, Some(&ECDSA_P521_SHA512_ASN1_SIGNING), &api::ECDSA_P521_SHA512_ASN1),
];

fn ecdsa(task: &Task) -> Prepared {
    let rows = || ECDSA.iter().filter(|row| row.0 == task.choice);
    // The keys are made by the row that signs, even if the requested digest is only verified.
    let own = rows().find(|row| row.3.is_some()).ok_or_else(|| unsupported("make keys of this curve"))?;
    let default = if task.op == "generate-key" { own.1 } else { "sha-256" };
    let (asked, bytes) = (task.word("digest", default)?, task.bytes(32)?);
    let is_raw = asked == "none";
    // Bytes are signed without hashing if their length is that of a digest that the row signs.
    let row = rows().find(|row| match is_raw {
        true => row.2.output_len == bytes && row.3.is_some(),
        false => row.1 == asked,
    });
    let what = match is_raw {
        true => format!("sign {bytes} bytes as they are with {}", task.choice),
        false => format!("offer {} with {asked}", task.choice),
    };
    let (curve, digest, algorithm, signing, verification) = *row.ok_or_else(|| unsupported(&what))?;
    if task.op == "sign" && signing.is_none() {
        return Err(unsupported(&format!("sign {curve} with {digest}, only verify it")));
    }
    let keys = signing.or(own.3).ok_or_else(|| unsupported("make keys of this curve"))?;
    prepare(task, Ecdsa { curve, digest, algorithm, is_raw, is_own: signing.is_some(), keys, verification })
}

struct Ecdsa {
    curve: &'static str,
    digest: &'static str,
    algorithm: &'static digest::Algorithm,
    /// True if the bytes are used as a digest, and signed without hashing.
    is_raw: bool,
    /// True if it signs with this digest; false if it only verifies.
    is_own: bool,
    keys: Signing,
    verification: Verification,
}

impl Ecdsa {
    fn digest(&self, bytes: &[u8]) -> Result<Digest, Failure> {
        Digest::import_less_safe(bytes, self.algorithm).map_err(failed("taking the bytes for a digest"))
    }
}

impl Scheme for Ecdsa {
    type Private = EcdsaKeyPair;
    type Public = ParsedPublicKey;
    type Signature = api::Signature;

    fn generate(&self) -> Result<EcdsaKeyPair, Failure> {
        EcdsaKeyPair::generate(self.keys).map_err(failed("generating the key"))
    }

    public_keys!(self, self.verification);

    fn sign(&self, key: &EcdsaKeyPair, message: &[u8]) -> Result<api::Signature, Failure> {
        let signature = match self.is_raw {
            true => key.sign_digest(&self.digest(message)?),
            false => key.sign(&SystemRandom::new(), message),
        };
        signature.map_err(failed("signing"))
    }

    fn sign_anyhow(&self, key: &EcdsaKeyPair, message: &[u8]) -> Result<Vec<u8>, Failure> {
        if self.is_own {
            return Ok(self.sign(key, message)?.as_ref().to_vec());
        }
        let pkcs8 = key.to_pkcs8v1().map_err(failed("writing the private key"))?;
        rustcrypto::sign(self.curve, self.digest, pkcs8.as_ref(), message)
    }

    fn verify(&self, key: &ParsedPublicKey, message: &[u8], signature: &[u8]) -> Result<bool, Failure> {
        match self.is_raw {
            true => Ok(key.verify_digest_sig(&self.digest(message)?, signature).is_ok()),
            false => Ok(key.verify_sig(message, signature).is_ok()),
        }
    }
}

struct Ed25519;

impl Scheme for Ed25519 {
    type Private = api::Ed25519KeyPair;
    type Public = ParsedPublicKey;
    type Signature = api::Signature;

    fn generate(&self) -> Result<api::Ed25519KeyPair, Failure> {
        api::Ed25519KeyPair::generate().map_err(failed("generating the key"))
    }

    public_keys!(self, &api::ED25519);

    fn sign(&self, key: &api::Ed25519KeyPair, message: &[u8]) -> Result<api::Signature, Failure> {
        key.try_sign(message).map_err(failed("signing"))
    }

    fn verify(&self, key: &ParsedPublicKey, message: &[u8], signature: &[u8]) -> Result<bool, Failure> {
        Ok(key.verify_sig(message, signature).is_ok())
    }
}

struct MlDsa(&'static api::PqdsaSigningAlgorithm, &'static api::PqdsaVerificationAlgorithm);

impl Scheme for MlDsa {
    type Private = api::PqdsaKeyPair;
    type Public = ParsedPublicKey;
    type Signature = Vec<u8>;

    fn generate(&self) -> Result<api::PqdsaKeyPair, Failure> {
        api::PqdsaKeyPair::generate(self.0).map_err(failed("generating the key"))
    }

    public_keys!(self, self.1);

    fn sign(&self, key: &api::PqdsaKeyPair, message: &[u8]) -> Result<Vec<u8>, Failure> {
        // The interface needs the caller's buffer.
        let mut signature = vec![0; self.0.signature_len()];
        key.sign(message, &mut signature).map_err(failed("signing"))?;
        Ok(signature)
    }

    fn verify(&self, key: &ParsedPublicKey, message: &[u8], signature: &[u8]) -> Result<bool, Failure> {
        Ok(key.verify_sig(message, signature).is_ok())
    }
}
