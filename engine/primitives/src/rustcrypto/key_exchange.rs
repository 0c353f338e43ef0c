//! ECDH, X25519, ML-KEM, the hybrid of the last two, and RSA key transport.

use std::marker::PhantomData;

use getrandom::SysRng;
use getrandom::rand_core::{TryRng, UnwrapErr};
use ml_kem::{Decapsulate, Encapsulate, Generate, KeyExport, MlKem512, MlKem768, MlKem1024, TryKeyInit};
use p256::elliptic_curve::sec1::ToSec1Point;
use rsa::pkcs8::DecodePrivateKey;
use rsa::traits::PublicKeyParts;
use rsa::{Pkcs1v15Encrypt, RsaPrivateKey, RsaPublicKey};

use super::signature::private_key;
use crate::contract::Task;
use crate::failure::Failure;
use crate::families::key_exchange::{self as family, Agreement, Hybrid, Kem, Transport};
use crate::families::{Prepared, Row, failed};

pub const KEY_EXCHANGES: &[Row] = &[
    ("ecdh-p256", |task| family::agreement(task, P256)),
    ("ecdh-p384", |task| family::agreement(task, P384)),
    ("x25519", |task| family::agreement(task, X25519)),
    ("rsa-2048", rsa),
    ("rsa-3072", rsa),
    ("ml-kem-512", |task| family::kem(task, MlKem::<MlKem512>(PhantomData))),
    ("ml-kem-768", |task| family::kem(task, MlKem::<MlKem768>(PhantomData))),
    ("ml-kem-1024", |task| family::kem(task, MlKem::<MlKem1024>(PhantomData))),
    ("x25519mlkem768", |task| family::kem(task, Hybrid(MlKem::<MlKem768>(PhantomData), X25519))),
];

macro_rules! ecdh {
    ($group:ident, $curve:ident) => {
        struct $group;

        impl Agreement for $group {
            type Private = $curve::SecretKey;
            type Public = $curve::Sec1Point;
            type Secret = $curve::FieldBytes;

            fn generate(&self) -> Result<(Self::Private, Self::Public), Failure> {
                let private = $curve::SecretKey::try_generate_from_rng(&mut SysRng);
                let private = private.map_err(failed("generating the key"))?;
                let public = private.public_key().to_sec1_point(false);
                Ok((private, public))
            }

            fn read_private(&self, bytes: &[u8]) -> Result<Self::Private, Failure> {
                $curve::SecretKey::from_slice(bytes).map_err(failed("reading the private key"))
            }

            fn agree(&self, key: &Self::Private, peer: &[u8]) -> Result<Self::Secret, Failure> {
                let peer =
                    $curve::PublicKey::from_sec1_bytes(peer).map_err(failed("reading the public value"))?;
                Ok(*key.diffie_hellman(&peer).raw_secret_bytes())
            }
        }
    };
}

ecdh!(P256, p256);
ecdh!(P384, p384);

struct X25519;

impl Agreement for X25519 {
    type Private = x25519_dalek::StaticSecret;
    type Public = x25519_dalek::PublicKey;
    type Secret = x25519_dalek::SharedSecret;

    fn generate(&self) -> Result<(Self::Private, Self::Public), Failure> {
        let mut bytes = [0; 32];
        SysRng.try_fill_bytes(&mut bytes).map_err(failed("generating the key"))?;
        let private = x25519_dalek::StaticSecret::from(bytes);
        let public = x25519_dalek::PublicKey::from(&private);
        Ok((private, public))
    }

    fn read_private(&self, bytes: &[u8]) -> Result<Self::Private, Failure> {
        let bytes: [u8; 32] = bytes.try_into().map_err(failed("reading the private key"))?;
        Ok(bytes.into())
    }

    fn agree(&self, key: &Self::Private, peer: &[u8]) -> Result<Self::Secret, Failure> {
        let peer: [u8; 32] = peer.try_into().map_err(failed("reading the public value"))?;
        let secret = key.diffie_hellman(&peer.into());
        // TLS requires refusing a peer that makes the secret zero (RFC 8446, section 7.4.2).
        match secret.was_contributory() {
            true => Ok(secret),
            false => Err(Failure::Failed("a public value of low order".to_owned())),
        }
    }
}

struct MlKem<K>(PhantomData<K>);

#[allow(deprecated)] // Known answers may come with expanded keys.
impl<K> Kem for MlKem<K>
where
    K: ml_kem::Kem<
            DecapsulationKey: Decapsulate<Kem = K> + From<ml_kem::Seed> + ml_kem::ExpandedKeyEncoding,
            EncapsulationKey: Encapsulate<Kem = K>,
        >,
{
    type Private = K::DecapsulationKey;
    type Public = ml_kem::Key<K::EncapsulationKey>;
    type Ciphertext = ml_kem::kem::Ciphertext<K>;
    type Secret = ml_kem::kem::SharedKey<K>;

    fn generate(&self) -> Result<(Self::Private, Self::Public), Failure> {
        let (private, public) = K::generate_keypair_from_rng(&mut UnwrapErr(SysRng));
        let public = public.to_bytes();
        Ok((private, public))
    }

    fn read_seed(&self, seed: &[u8]) -> Result<Self::Private, Failure> {
        Ok(ml_kem::Seed::try_from(seed).map_err(failed("the seed"))?.into())
    }

    fn read_expanded(&self, private: &[u8]) -> Result<Self::Private, Failure> {
        let private = private.try_into().map_err(failed("the private key"))?;
        ml_kem::ExpandedKeyEncoding::from_expanded_bytes(private).map_err(failed("reading the private key"))
    }

    fn encapsulate(&self, public: &[u8]) -> Result<(Self::Ciphertext, Self::Secret), Failure> {
        let public = public.try_into().map_err(failed("the public key"))?;
        let key =
            <K::EncapsulationKey as TryKeyInit>::new(public).map_err(failed("reading the public key"))?;
        Ok(key.encapsulate_with_rng(&mut UnwrapErr(SysRng)))
    }

    fn decapsulate(&self, key: &Self::Private, ciphertext: &[u8]) -> Result<Self::Secret, Failure> {
        key.decapsulate_slice(ciphertext).map_err(failed("decapsulating"))
    }
}

fn rsa(task: &Task) -> Prepared {
    let private = RsaPrivateKey::from_pkcs8_der(&private_key(task)?);
    let private = private.map_err(failed("reading the private key"))?;
    family::transport(task, Rsa { public: private.to_public_key(), private })
}

struct Rsa {
    public: RsaPublicKey,
    private: RsaPrivateKey,
}

/// RSA key transport. This crate returns new vectors, so that an operation includes copying them to their
/// destination.
impl Transport for Rsa {
    fn encrypt(&self, secret: &[u8], sealed: &mut Vec<u8>) -> Result<(), Failure> {
        let ciphertext = self.public.encrypt(&mut UnwrapErr(SysRng), Pkcs1v15Encrypt, secret);
        *sealed = ciphertext.map_err(failed("encrypting"))?;
        Ok(())
    }

    fn decrypt<'a>(&self, sealed: &[u8], opened: &'a mut [u8]) -> Result<&'a [u8], Failure> {
        let secret = self.private.decrypt_blinded(&mut UnwrapErr(SysRng), Pkcs1v15Encrypt, sealed);
        let secret = secret.map_err(failed("decrypting"))?;
        let opened = opened.get_mut(..secret.len());
        let opened = opened.ok_or_else(|| Failure::Failed("the secret is longer than the key".to_owned()))?;
        opened.copy_from_slice(&secret);
        Ok(opened)
    }

    fn key_bytes(&self) -> usize {
        self.public.size()
    }
}
