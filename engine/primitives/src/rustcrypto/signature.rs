//! RSA, DSA, ECDSA, Ed25519, ML-DSA and SLH-DSA.

use std::marker::PhantomData;

use getrandom::SysRng;
use getrandom::rand_core::UnwrapErr;
use hmac::EagerHash;
use ml_dsa::{Generate, MlDsa44, MlDsa65, MlDsa87, MlDsaParams};
use rsa::pkcs8::{AssociatedOid, DecodePrivateKey, DecodePublicKey, SecretDocument};
use rsa::{RsaPrivateKey, pkcs1v15, pss};
use sha2::Digest;
use sha2::digest::{FixedOutputReset, Output};
use signature::hazmat::{PrehashSigner, PrehashVerifier};
use signature::{Keypair, RandomizedSigner, SignatureEncoding, Signer, Verifier};

use crate::contract::Task;
use crate::failure::Failure;
use crate::families::signature::{Scheme, long_key, prepare};
use crate::families::{Prepared, Row, failed};

pub const SIGNATURES: &[Row] = &[
    ("rsa-1024", |task| rsa(task, 1024)),
    ("rsa-2048", |task| rsa(task, 2048)),
    ("rsa-3072", |task| rsa(task, 3072)),
    ("rsa-4096", |task| rsa(task, 4096)),
    ("dsa-1024", dsa),
    ("dsa-2048", dsa),
    ("ecdsa-p256", |task| with_digest!(digest_of(task)?, H => prepare(task, P256::<H>(PhantomData)))),
    ("ecdsa-p384", |task| with_digest!(digest_of(task)?, H => prepare(task, P384::<H>(PhantomData)))),
    ("ecdsa-p521", |task| with_digest!(digest_of(task)?, H => prepare(task, P521::<H>(PhantomData)))),
    ("ed25519", |task| prepare(task, Ed25519)),
    ("ml-dsa-44", |task| prepare(task, MlDsa::<MlDsa44>(PhantomData))),
    ("ml-dsa-65", |task| prepare(task, MlDsa::<MlDsa65>(PhantomData))),
    ("ml-dsa-87", |task| prepare(task, MlDsa::<MlDsa87>(PhantomData))),
    ("slh-dsa-128s", |task| prepare(task, SlhDsa::<slh_dsa::Sha2_128s>(PhantomData))),
    ("slh-dsa-128f", |task| prepare(task, SlhDsa::<slh_dsa::Sha2_128f>(PhantomData))),
];

/// Returns the task's private key, a PKCS#8 document.
pub fn private_key(task: &Task) -> Result<Vec<u8>, Failure> {
    let pem = task.text("private_key_pem");
    let pem = pem.ok_or_else(|| Failure::Failed("the input `private_key_pem` is missing".to_owned()))?;
    let (label, document) = SecretDocument::from_pem(pem).map_err(failed("reading the private key's PEM"))?;
    match label {
        "PRIVATE KEY" => Ok(document.as_bytes().to_vec()),
        label => Err(Failure::Failed(format!("the private key is a {label}, not a PKCS#8 document"))),
    }
}

/// Input of a signature: the message's hash, or the message itself.
pub trait Prehash: 'static {
    /// Digest of the signature; SHA-256 if the signature has none but the crate needs a type.
    type Digest: EagerHash + FixedOutputReset + AssociatedOid + 'static;
    type Output<'a>: AsRef<[u8]>;
    const HASHED: bool;

    fn prehash(message: &[u8]) -> Self::Output<'_>;
}

pub struct Hashed<D>(PhantomData<D>);

impl<D: EagerHash + FixedOutputReset + AssociatedOid + 'static> Prehash for Hashed<D> {
    type Digest = D;
    type Output<'a> = Output<D>;
    const HASHED: bool = true;

    fn prehash(message: &[u8]) -> Output<D> {
        <D as Digest>::digest(message)
    }
}

pub struct AsIs;

impl Prehash for AsIs {
    type Digest = sha2::Sha256;
    type Output<'a> = &'a [u8];
    const HASHED: bool = false;

    fn prehash(message: &[u8]) -> &[u8] {
        message
    }
}

/// Evaluates an expression with `$hash` defined as the type that the setting `digest` names.
macro_rules! with_digest {
    ($digest:expr, $hash:ident => $prepared:expr) => {{
        use $crate::rustcrypto::signature::{AsIs, Hashed};
        match $digest {
            "sha-1" => {
                type $hash = Hashed<sha1::Sha1>;
                $prepared
            }
            "sha-256" => {
                type $hash = Hashed<sha2::Sha256>;
                $prepared
            }
            "sha-384" => {
                type $hash = Hashed<sha2::Sha384>;
                $prepared
            }
            "sha-512" => {
                type $hash = Hashed<sha2::Sha512>;
                $prepared
            }
            "none" => {
                type $hash = AsIs;
                $prepared
            }
            other => Err($crate::failure::Failure::Unsupported(format!("rustcrypto does not sign {other}"))),
        }
    }};
}
pub(super) use with_digest;

/// Returns the setting `digest`, which generating a key does not need.
fn digest_of(task: &Task) -> Result<&str, Failure> {
    task.word("digest", "sha-256")
}

/// Returns true if a signature can be parsed and is accepted.
fn accepted<S, E>(
    signature: Result<S, E>,
    verify: impl FnOnce(&S) -> Result<(), E>,
) -> Result<bool, Failure> {
    Ok(signature.and_then(|signature| verify(&signature)).is_ok())
}

fn rsa(task: &Task, bits: usize) -> Prepared {
    match (task.word("padding", "pkcs1")?, digest_of(task)?) {
        ("pkcs1", digest) => with_digest!(digest, H => prepare(task, Pkcs1::<H> { bits, hash: PhantomData })),
        ("pss", "none") => Err(Failure::Unsupported("rsa does not pad with PSS without a digest".to_owned())),
        // The modulus must have room for a hash, a salt of the same length and two bytes more.
        ("pss", "sha-512") if bits < 8 * (2 * 64 + 2) => {
            Err(Failure::Unsupported("PSS with SHA-512 does not fit into a key this short".to_owned()))
        }
        ("pss", digest) => with_digest!(digest, H => prepare(task, Pss::<H> { bits, hash: PhantomData })),
        (other, _) => Err(Failure::Unsupported(format!("rsa does not offer the padding {other}"))),
    }
}

/// Defines one padding of RSA. These keys blind their private operation, with randomness from the system.
macro_rules! rsa_scheme {
    ($scheme:ident, $padding:ident, $key:expr, $public_key:expr) => {
        pub struct $scheme<H> {
            pub bits: usize,
            pub hash: PhantomData<H>,
        }

        impl<H: Prehash> Scheme for $scheme<H> {
            type Private = $padding::SigningKey<H::Digest>;
            type Public = $padding::VerifyingKey<H::Digest>;
            type Signature = Box<[u8]>;

            fn generate(&self) -> Result<Self::Private, Failure> {
                let key = RsaPrivateKey::new(&mut UnwrapErr(SysRng), self.bits);
                Ok($key(key.map_err(failed("generating the key"))?))
            }

            fn private(&self, task: &Task) -> Result<Self::Private, Failure> {
                let key = RsaPrivateKey::from_pkcs8_der(&private_key(task)?);
                Ok($key(key.map_err(failed("reading the private key"))?))
            }

            fn another(&self) -> Result<Self::Private, Failure> {
                long_key()
            }

            fn public(&self, key: &Self::Private) -> Result<Self::Public, Failure> {
                Ok(key.verifying_key())
            }

            fn read_public(&self, der: &[u8]) -> Result<Self::Public, Failure> {
                let key = rsa::RsaPublicKey::from_public_key_der(der);
                Ok($public_key(key.map_err(failed("reading the public key"))?))
            }

            fn sign(&self, key: &Self::Private, message: &[u8]) -> Result<Box<[u8]>, Failure> {
                let signature = key.sign_prehash(H::prehash(message).as_ref()).map_err(failed("signing"))?;
                Ok(signature.to_bytes())
            }

            fn verify(&self, key: &Self::Public, message: &[u8], signature: &[u8]) -> Result<bool, Failure> {
                accepted($padding::Signature::try_from(signature), |signature| {
                    key.verify_prehash(H::prehash(message).as_ref(), signature)
                })
            }
        }
    };
}

rsa_scheme!(
    Pkcs1,
    pkcs1v15,
    |key| if H::HASHED { pkcs1v15::SigningKey::new(key) } else { pkcs1v15::SigningKey::new_unprefixed(key) },
    |key| if H::HASHED {
        pkcs1v15::VerifyingKey::new(key)
    } else {
        pkcs1v15::VerifyingKey::new_unprefixed(key)
    }
);
// The salt has the digest's length by default.
rsa_scheme!(Pss, pss, pss::SigningKey::new, pss::VerifyingKey::new);

fn dsa(task: &Task) -> Prepared {
    let key =
        dsa::SigningKey::from_pkcs8_der(&private_key(task)?).map_err(failed("reading the private key"))?;
    with_digest!(digest_of(task)?, H => prepare(task, Dsa::<H>(key, PhantomData)))
}

/// DSA, with the domain parameters of the task's key: a new key is a new number, not a new group.
struct Dsa<H>(dsa::SigningKey, PhantomData<H>);

impl<H: Prehash> Scheme for Dsa<H> {
    type Private = dsa::SigningKey;
    type Public = dsa::VerifyingKey;
    type Signature = Box<[u8]>;

    fn generate(&self) -> Result<dsa::SigningKey, Failure> {
        let components = self.0.verifying_key().components().clone();
        dsa::SigningKey::try_generate_from_rng_with_components(&mut SysRng, components)
            .map_err(failed("generating the key"))
    }

    fn private(&self, _: &Task) -> Result<dsa::SigningKey, Failure> {
        Ok(self.0.clone())
    }

    fn public(&self, key: &dsa::SigningKey) -> Result<dsa::VerifyingKey, Failure> {
        Ok(key.verifying_key().clone())
    }

    fn read_public(&self, der: &[u8]) -> Result<dsa::VerifyingKey, Failure> {
        dsa::VerifyingKey::from_public_key_der(der).map_err(failed("reading the public key"))
    }

    fn sign(&self, key: &dsa::SigningKey, message: &[u8]) -> Result<Box<[u8]>, Failure> {
        let signature = key.sign_prehashed_rfc6979::<H::Digest>(H::prehash(message).as_ref());
        Ok(signature.map_err(failed("signing"))?.to_bytes())
    }

    fn verify(&self, key: &dsa::VerifyingKey, message: &[u8], signature: &[u8]) -> Result<bool, Failure> {
        let message = H::prehash(message);
        accepted(dsa::Signature::try_from(signature), |it| key.verify_prehash(message.as_ref(), it))
    }
}

/// Defines the public keys of a scheme whose crate derives and reads them by the common traits.
macro_rules! public_keys {
    () => {
        fn public(&self, key: &Self::Private) -> Result<Self::Public, Failure> {
            Ok(Keypair::verifying_key(key))
        }

        fn read_public(&self, der: &[u8]) -> Result<Self::Public, Failure> {
            Self::Public::from_public_key_der(der).map_err(failed("reading the public key"))
        }
    };
}

/// Defines ECDSA on one curve, with signatures in DER as TLS carries them.
macro_rules! ecdsa_scheme {
    ($scheme:ident, $curve:ident) => {
        pub struct $scheme<H>(pub PhantomData<H>);

        impl<H: Prehash> Scheme for $scheme<H> {
            type Private = $curve::ecdsa::SigningKey;
            type Public = $curve::ecdsa::VerifyingKey;
            type Signature = $curve::ecdsa::DerSignature;

            fn generate(&self) -> Result<Self::Private, Failure> {
                Self::Private::try_generate_from_rng(&mut SysRng).map_err(failed("generating the key"))
            }

            public_keys!();

            fn sign(&self, key: &Self::Private, message: &[u8]) -> Result<Self::Signature, Failure> {
                key.sign_prehash(H::prehash(message).as_ref()).map_err(failed("signing"))
            }

            fn verify(&self, key: &Self::Public, message: &[u8], signature: &[u8]) -> Result<bool, Failure> {
                accepted($curve::ecdsa::DerSignature::try_from(signature), |signature| {
                    key.verify_prehash(H::prehash(message).as_ref(), signature)
                })
            }
        }
    };
}

ecdsa_scheme!(P256, p256);
ecdsa_scheme!(P384, p384);
ecdsa_scheme!(P521, p521);

struct Ed25519;

impl Scheme for Ed25519 {
    type Private = ed25519_dalek::SigningKey;
    type Public = ed25519_dalek::VerifyingKey;
    type Signature = [u8; ed25519_dalek::SIGNATURE_LENGTH];

    fn generate(&self) -> Result<Self::Private, Failure> {
        Ok(ed25519_dalek::SigningKey::generate(&mut UnwrapErr(SysRng)))
    }

    public_keys!();

    fn sign(&self, key: &Self::Private, message: &[u8]) -> Result<Self::Signature, Failure> {
        Ok(key.try_sign(message).map_err(failed("signing"))?.to_bytes())
    }

    fn verify(&self, key: &Self::Public, message: &[u8], signature: &[u8]) -> Result<bool, Failure> {
        accepted(ed25519_dalek::Signature::from_slice(signature), |it| key.verify(message, it))
    }
}

struct MlDsa<P>(PhantomData<P>);

impl<P> Scheme for MlDsa<P>
where
    P: MlDsaParams + 'static,
    ml_dsa::VerifyingKey<P>: DecodePublicKey,
{
    type Private = ml_dsa::SigningKey<P>;
    type Public = ml_dsa::VerifyingKey<P>;
    type Signature = ml_dsa::EncodedSignature<P>;

    fn generate(&self) -> Result<Self::Private, Failure> {
        Self::Private::try_generate_from_rng(&mut SysRng).map_err(failed("generating the key"))
    }

    public_keys!();

    /// Signs with randomness. The number of signing attempts depends on message and randomness, so that
    /// without the latter every operation would repeat one draw.
    fn sign(&self, key: &Self::Private, message: &[u8]) -> Result<Self::Signature, Failure> {
        let signature = key.expanded_key().try_sign_with_rng(&mut SysRng, message);
        Ok(signature.map_err(failed("signing"))?.encode())
    }

    fn verify(&self, key: &Self::Public, message: &[u8], signature: &[u8]) -> Result<bool, Failure> {
        accepted(ml_dsa::Signature::try_from(signature), |it| key.verify(message, it))
    }
}

struct SlhDsa<P>(PhantomData<P>);

impl<P: slh_dsa::ParameterSet + 'static> Scheme for SlhDsa<P> {
    type Private = slh_dsa::SigningKey<P>;
    type Public = slh_dsa::VerifyingKey<P>;
    type Signature = Vec<u8>;

    fn generate(&self) -> Result<Self::Private, Failure> {
        Ok(slh_dsa::SigningKey::new(&mut UnwrapErr(SysRng)))
    }

    public_keys!();

    fn sign(&self, key: &Self::Private, message: &[u8]) -> Result<Vec<u8>, Failure> {
        Ok(key.try_sign_with_rng(&mut SysRng, message).map_err(failed("signing"))?.to_vec())
    }

    fn verify(&self, key: &Self::Public, message: &[u8], signature: &[u8]) -> Result<bool, Failure> {
        accepted(slh_dsa::Signature::try_from(signature), |it| key.verify(message, it))
    }
}
