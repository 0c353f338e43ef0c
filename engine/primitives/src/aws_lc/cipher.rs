//! AES in CBC, CTR and GCM, and ChaCha20-Poly1305.

use aws_lc_rs::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::cipher::{
    self, DecryptingKey, DecryptionContext, EncryptingKey, EncryptionContext, PaddedBlockDecryptingKey,
    PaddedBlockEncryptingKey, UnboundCipherKey,
};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::iv::FixedLength;
use aws_lc_rs::rand;

use crate::contract::Task;
use crate::failure::Failure;
use crate::families::cipher::{Check, Cipher, Direction, Message, Shape, TAG_BYTES, prepare};
use crate::families::{Prepared, Row, failed};

pub const CIPHERS: &[Row] = &[
    ("aes-128-cbc", |task| cbc(task, &cipher::AES_128, 16)),
    ("aes-192-cbc", |task| cbc(task, &cipher::AES_192, 24)),
    ("aes-256-cbc", |task| cbc(task, &cipher::AES_256, 32)),
    ("aes-128-ctr", |task| ctr(task, &cipher::AES_128, 16)),
    ("aes-192-ctr", |task| ctr(task, &cipher::AES_192, 24)),
    ("aes-256-ctr", |task| ctr(task, &cipher::AES_256, 32)),
    ("aes-128-gcm", |task| prepare(task, Aead(&aead::AES_128_GCM))),
    ("aes-192-gcm", |task| prepare(task, Aead(&aead::AES_192_GCM))),
    ("aes-256-gcm", |task| prepare(task, Aead(&aead::AES_256_GCM))),
    ("chacha20-poly1305", |task| prepare(task, Aead(&aead::CHACHA20_POLY1305))),
];

fn random(into: &mut [u8]) -> Result<(), Failure> {
    rand::fill(into).map_err(failed("random bytes"))
}

struct Aead(&'static aead::Algorithm);

impl Cipher for Aead {
    type Key = LessSafeKey;

    fn shape(&self) -> Shape {
        Shape { key_bytes: self.0.key_len(), iv_bytes: self.0.nonce_len(), check: Check::Tag }
    }

    fn random(&self, into: &mut [u8]) -> Result<(), Failure> {
        random(into)
    }

    fn key(&self, key: &[u8], _: Direction) -> Result<LessSafeKey, Failure> {
        UnboundKey::new(self.0, key).map(LessSafeKey::new).map_err(failed("setting up the key"))
    }

    fn crypt(&self, key: &LessSafeKey, message: Message, out: &mut Vec<u8>) -> Result<(), Failure> {
        let nonce = Nonce::try_assume_unique_for_key(message.iv).map_err(failed("the nonce"))?;
        let aad = Aad::from(message.aad);
        match message.direction {
            Direction::Encrypt => {
                out.resize(message.data.len() + TAG_BYTES, 0);
                let (ciphertext, tag) = out.split_at_mut(message.data.len());
                key.seal_out_of_place_scatter(nonce, aad, message.data, ciphertext, &[], tag)
                    .map_err(failed("encrypting"))
            }
            Direction::Decrypt => {
                let (ciphertext, tag) = message.split_tag()?;
                out.resize(ciphertext.len(), 0);
                key.open_separate_gather(nonce, aad, ciphertext, tag, out).map_err(failed("decrypting"))
            }
        }
    }
}

/// Constructors of a mode's keys: (encrypting, decrypting).
type Keys<E, D> =
    (fn(UnboundCipherKey) -> Result<E, Unspecified>, fn(UnboundCipherKey) -> Result<D, Unspecified>);
type Decrypt<D> = for<'a> fn(&D, &'a mut [u8], DecryptionContext) -> Result<&'a mut [u8], Unspecified>;

/// A mode of AES with a key of `key_bytes` bytes. This interface works in place, so an operation includes
/// copying its input into the output buffer.
struct Mode<E: 'static, D: 'static> {
    algorithm: &'static cipher::Algorithm,
    key_bytes: usize,
    check: Check,
    keys: Keys<E, D>,
    encrypt: fn(&E, &mut Vec<u8>, EncryptionContext) -> Result<DecryptionContext, Unspecified>,
    decrypt: Decrypt<D>,
}

enum Key<E, D> {
    Encrypting(E),
    Decrypting(D),
}

fn cbc(task: &Task, algorithm: &'static cipher::Algorithm, key_bytes: usize) -> Prepared {
    let mode = Mode {
        algorithm,
        key_bytes,
        check: Check::Padding(algorithm.block_len()),
        keys: (PaddedBlockEncryptingKey::cbc_pkcs7, PaddedBlockDecryptingKey::cbc_pkcs7),
        encrypt: PaddedBlockEncryptingKey::less_safe_encrypt,
        decrypt: PaddedBlockDecryptingKey::decrypt,
    };
    prepare(task, mode)
}

fn ctr(task: &Task, algorithm: &'static cipher::Algorithm, key_bytes: usize) -> Prepared {
    let mode = Mode {
        algorithm,
        key_bytes,
        check: Check::Nothing,
        keys: (EncryptingKey::ctr, DecryptingKey::ctr),
        encrypt: |key, in_out, context| key.less_safe_encrypt(in_out, context),
        decrypt: DecryptingKey::decrypt,
    };
    prepare(task, mode)
}

impl<E, D> Cipher for Mode<E, D> {
    type Key = Key<E, D>;

    fn shape(&self) -> Shape {
        Shape { key_bytes: self.key_bytes, iv_bytes: self.algorithm.block_len(), check: self.check }
    }

    #[inline]
    fn random(&self, into: &mut [u8]) -> Result<(), Failure> {
        random(into)
    }

    fn key(&self, key: &[u8], direction: Direction) -> Result<Key<E, D>, Failure> {
        let key = UnboundCipherKey::new(self.algorithm, key).map_err(failed("reading the key"))?;
        let key = match direction {
            Direction::Encrypt => (self.keys.0)(key).map(Key::Encrypting),
            Direction::Decrypt => (self.keys.1)(key).map(Key::Decrypting),
        };
        key.map_err(failed("setting up the key"))
    }

    fn crypt(&self, key: &Key<E, D>, message: Message, out: &mut Vec<u8>) -> Result<(), Failure> {
        out.clear();
        out.extend_from_slice(message.data);
        let iv = FixedLength::try_from(message.iv).map_err(failed("the IV"))?;
        match key {
            Key::Encrypting(key) => {
                (self.encrypt)(key, out, EncryptionContext::Iv128(iv)).map_err(failed("encrypting"))?;
            }
            Key::Decrypting(key) => {
                let plain = (self.decrypt)(key, out, DecryptionContext::Iv128(iv));
                let bytes = plain.map_err(failed("decrypting"))?.len();
                out.truncate(bytes);
            }
        }
        Ok(())
    }
}
