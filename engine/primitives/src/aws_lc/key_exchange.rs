//! ECDH, X25519, ML-KEM, the hybrid of the last two, and RSA key transport.

use aws_lc_rs::agreement::{self, UnparsedPublicKey};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::kem;
use aws_lc_rs::rsa::{Pkcs1PrivateDecryptingKey, Pkcs1PublicEncryptingKey, PrivateDecryptingKey};

use crate::contract::Task;
use crate::failure::Failure;
use crate::families::key_exchange::{self as family, Agreement, Hybrid, Kem, Transport};
use crate::families::{Prepared, Row, failed};
use crate::rustcrypto::{self, ExpandSeed};

const X25519: Group = Group(&agreement::X25519);
const ML_KEM_512: MlKem = MlKem(&kem::ML_KEM_512, rustcrypto::expand_seed::<ml_kem::MlKem512>);
const ML_KEM_768: MlKem = MlKem(&kem::ML_KEM_768, rustcrypto::expand_seed::<ml_kem::MlKem768>);
const ML_KEM_1024: MlKem = MlKem(&kem::ML_KEM_1024, rustcrypto::expand_seed::<ml_kem::MlKem1024>);

pub const KEY_EXCHANGES: &[Row] = &[
    ("ecdh-p256", |task| family::agreement(task, Group(&agreement::ECDH_P256))),
    ("ecdh-p384", |task| family::agreement(task, Group(&agreement::ECDH_P384))),
    ("x25519", |task| family::agreement(task, X25519)),
    ("rsa-2048", rsa),
    ("rsa-3072", rsa),
    ("ml-kem-512", |task| family::kem(task, ML_KEM_512)),
    ("ml-kem-768", |task| family::kem(task, ML_KEM_768)),
    ("ml-kem-1024", |task| family::kem(task, ML_KEM_1024)),
    ("x25519mlkem768", |task| family::kem(task, Hybrid(ML_KEM_768, X25519))),
];

struct Group(&'static agreement::Algorithm);

impl Agreement for Group {
    type Private = agreement::PrivateKey;
    type Public = agreement::PublicKey;
    // The library lends the secret to a closure only; keeping it needs a copy, as in a TLS stack.
    type Secret = Vec<u8>;

    fn generate(&self) -> Result<(agreement::PrivateKey, agreement::PublicKey), Failure> {
        let private = agreement::PrivateKey::generate(self.0).map_err(failed("generating the key"))?;
        let public = private.compute_public_key().map_err(failed("computing the public value"))?;
        Ok((private, public))
    }

    fn read_private(&self, bytes: &[u8]) -> Result<agreement::PrivateKey, Failure> {
        agreement::PrivateKey::from_private_key(self.0, bytes).map_err(failed("reading the private key"))
    }

    fn agree(&self, key: &agreement::PrivateKey, peer: &[u8]) -> Result<Vec<u8>, Failure> {
        let peer = UnparsedPublicKey::new(self.0, peer);
        agreement::agree(key, peer, Unspecified, |secret| Ok(secret.to_vec())).map_err(failed("agreeing"))
    }
}

/// A public key in its encoded form.
struct PublicKey(kem::EncapsulationKeyBytes<'static>);

impl AsRef<[u8]> for PublicKey {
    fn as_ref(&self) -> &[u8] {
        self.0.as_ref()
    }
}

/// A parameter set, and the function that expands a seed for it: this interface imports expanded keys only.
struct MlKem(&'static kem::Algorithm, ExpandSeed);

impl Kem for MlKem {
    type Private = kem::DecapsulationKey;
    type Public = PublicKey;
    type Ciphertext = kem::Ciphertext<'static>;
    type Secret = kem::SharedSecret;

    fn generate(&self) -> Result<(Self::Private, Self::Public), Failure> {
        let private = kem::DecapsulationKey::generate(self.0).map_err(failed("generating the key"))?;
        let public = private.encapsulation_key().and_then(|key| key.key_bytes());
        Ok((private, PublicKey(public.map_err(failed("writing the public key"))?)))
    }

    fn read_seed(&self, seed: &[u8]) -> Result<Self::Private, Failure> {
        self.read_expanded(&(self.1)(seed)?)
    }

    fn read_expanded(&self, private: &[u8]) -> Result<Self::Private, Failure> {
        kem::DecapsulationKey::new(self.0, private).map_err(failed("reading the private key"))
    }

    fn encapsulate(&self, public: &[u8]) -> Result<(Self::Ciphertext, Self::Secret), Failure> {
        let key = kem::EncapsulationKey::new(self.0, public).map_err(failed("reading the public key"))?;
        key.encapsulate().map_err(failed("encapsulating"))
    }

    fn decapsulate(&self, key: &Self::Private, ciphertext: &[u8]) -> Result<Self::Secret, Failure> {
        key.decapsulate(ciphertext.into()).map_err(failed("decapsulating"))
    }
}

fn rsa(task: &Task) -> Prepared {
    let key = PrivateDecryptingKey::from_pkcs8(&rustcrypto::pkcs8_der(task)?);
    let key = key.map_err(failed("reading the private key"))?;
    let public = Pkcs1PublicEncryptingKey::new(key.public_key()).map_err(failed("the public key"))?;
    let private = Pkcs1PrivateDecryptingKey::new(key).map_err(failed("the private key"))?;
    family::transport(task, Rsa { public, private })
}

struct Rsa {
    public: Pkcs1PublicEncryptingKey,
    private: Pkcs1PrivateDecryptingKey,
}

impl Transport for Rsa {
    fn encrypt(&self, secret: &[u8], sealed: &mut Vec<u8>) -> Result<(), Failure> {
        sealed.resize(self.public.ciphertext_size(), 0);
        self.public.encrypt(secret, sealed).map_err(failed("encrypting"))?;
        Ok(())
    }

    fn decrypt<'a>(&self, sealed: &[u8], opened: &'a mut [u8]) -> Result<&'a [u8], Failure> {
        let opened = self.private.decrypt(sealed, opened).map_err(failed("decrypting"))?;
        Ok(opened)
    }

    fn key_bytes(&self) -> usize {
        self.private.key_size_bytes()
    }
}
