//! AES in CBC, CTR and GCM, and ChaCha20-Poly1305.

use aws_lc_rs::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::cipher::{
    self, DecryptingKey, DecryptionContext, EncryptingKey, EncryptionContext, PaddedBlockDecryptingKey,
    PaddedBlockEncryptingKey, UnboundCipherKey,
};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::iv::FixedLength;

use crate::contract::{Failure, Task};
use crate::families::cipher::{Check, Cipher, TAG_BYTES, prepare};
use crate::families::{Prepared, Row, failed};

pub const CIPHERS: &[Row] = &[
    ("aes-128-cbc", |task| cbc(task, &cipher::AES_128)),
    ("aes-192-cbc", |task| cbc(task, &cipher::AES_192)),
    ("aes-256-cbc", |task| cbc(task, &cipher::AES_256)),
    ("aes-128-ctr", |task| ctr(task, &cipher::AES_128)),
    ("aes-192-ctr", |task| ctr(task, &cipher::AES_192)),
    ("aes-256-ctr", |task| ctr(task, &cipher::AES_256)),
    ("aes-128-gcm", |task| prepare(task, Aead(&aead::AES_128_GCM))),
    ("aes-192-gcm", |task| prepare(task, Aead(&aead::AES_192_GCM))),
    ("aes-256-gcm", |task| prepare(task, Aead(&aead::AES_256_GCM))),
    ("chacha20-poly1305", |task| prepare(task, Aead(&aead::CHACHA20_POLY1305))),
];

struct Aead(&'static aead::Algorithm);

impl Aead {
    fn key(&self, key: &[u8]) -> Result<LessSafeKey, Failure> {
        UnboundKey::new(self.0, key).map(LessSafeKey::new).map_err(failed("setting up the key"))
    }
}

fn nonce(iv: &[u8]) -> Result<Nonce, Failure> {
    Nonce::try_assume_unique_for_key(iv).map_err(failed("the nonce"))
}

impl Cipher for Aead {
    type Encryptor = LessSafeKey;
    type Decryptor = LessSafeKey;

    fn key_bytes(&self) -> usize {
        self.0.key_len()
    }

    fn iv_bytes(&self) -> usize {
        self.0.nonce_len()
    }

    fn check(&self) -> Check {
        Check::Tag
    }

    fn encryptor(&self, key: &[u8]) -> Result<LessSafeKey, Failure> {
        self.key(key)
    }

    fn decryptor(&self, key: &[u8]) -> Result<LessSafeKey, Failure> {
        self.key(key)
    }

    fn encrypt(
        &self,
        key: &LessSafeKey,
        iv: &[u8],
        aad: &[u8],
        plain: &[u8],
        sealed: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        sealed.resize(plain.len() + TAG_BYTES, 0);
        let (ciphertext, tag) = sealed.split_at_mut(plain.len());
        key.seal_out_of_place_scatter(nonce(iv)?, Aad::from(aad), plain, ciphertext, &[], tag)
            .map_err(failed("encrypting"))
    }

    fn decrypt(
        &self,
        key: &LessSafeKey,
        iv: &[u8],
        aad: &[u8],
        sealed: &[u8],
        plain: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let bytes = sealed.len().checked_sub(TAG_BYTES);
        let bytes = bytes.ok_or_else(|| Failure::Failed("a ciphertext shorter than its tag".to_owned()))?;
        let (ciphertext, tag) = sealed.split_at(bytes);
        plain.resize(bytes, 0);
        key.open_separate_gather(nonce(iv)?, Aad::from(aad), ciphertext, tag, plain)
            .map_err(failed("decrypting"))
    }
}

/// How a mode makes its keys: (encrypting, decrypting).
type Keys<E, D> =
    (fn(UnboundCipherKey) -> Result<E, Unspecified>, fn(UnboundCipherKey) -> Result<D, Unspecified>);
type Context<C> = fn(FixedLength<16>) -> C;
type Decrypt<D> = for<'a> fn(&D, &'a mut [u8], DecryptionContext) -> Result<&'a mut [u8], Unspecified>;

/// A mode of AES. This interface works in place, so an operation includes copying its input into the output
/// buffer.
struct Mode<E: 'static, D: 'static> {
    algorithm: &'static cipher::Algorithm,
    key_bytes: usize,
    check: Check,
    keys: Keys<E, D>,
    contexts: (Context<EncryptionContext>, Context<DecryptionContext>),
    encrypt: fn(&E, &mut Vec<u8>, EncryptionContext) -> Result<DecryptionContext, Unspecified>,
    decrypt: Decrypt<D>,
}

fn key_bytes(algorithm: &'static cipher::Algorithm) -> usize {
    // The interface does not say how long a key is; it takes only the right length.
    [16, 24, 32]
        .into_iter()
        .find(|bytes| UnboundCipherKey::new(algorithm, &vec![0; *bytes]).is_ok())
        .unwrap_or(0)
}

fn cbc(task: &Task, algorithm: &'static cipher::Algorithm) -> Prepared {
    let mode = Mode {
        algorithm,
        key_bytes: key_bytes(algorithm),
        check: Check::Padding(algorithm.block_len()),
        keys: (PaddedBlockEncryptingKey::cbc_pkcs7, PaddedBlockDecryptingKey::cbc_pkcs7),
        contexts: (EncryptionContext::Iv128, DecryptionContext::Iv128),
        encrypt: PaddedBlockEncryptingKey::less_safe_encrypt,
        decrypt: PaddedBlockDecryptingKey::decrypt,
    };
    prepare(task, mode)
}

fn ctr(task: &Task, algorithm: &'static cipher::Algorithm) -> Prepared {
    let mode = Mode {
        algorithm,
        key_bytes: key_bytes(algorithm),
        check: Check::Nothing,
        keys: (EncryptingKey::ctr, DecryptingKey::ctr),
        contexts: (EncryptionContext::Iv128, DecryptionContext::Iv128),
        encrypt: |key, in_out, context| key.less_safe_encrypt(in_out, context),
        decrypt: DecryptingKey::decrypt,
    };
    prepare(task, mode)
}

impl<E, D> Mode<E, D> {
    fn unbound(&self, key: &[u8]) -> Result<UnboundCipherKey, Failure> {
        UnboundCipherKey::new(self.algorithm, key).map_err(failed("reading the key"))
    }
}

fn iv_of(iv: &[u8]) -> Result<FixedLength<16>, Failure> {
    FixedLength::try_from(iv).map_err(failed("the IV"))
}

impl<E, D> Cipher for Mode<E, D> {
    type Encryptor = E;
    type Decryptor = D;

    fn key_bytes(&self) -> usize {
        self.key_bytes
    }

    fn iv_bytes(&self) -> usize {
        self.algorithm.block_len()
    }

    fn check(&self) -> Check {
        self.check
    }

    fn encryptor(&self, key: &[u8]) -> Result<E, Failure> {
        (self.keys.0)(self.unbound(key)?).map_err(failed("setting up the key"))
    }

    fn decryptor(&self, key: &[u8]) -> Result<D, Failure> {
        (self.keys.1)(self.unbound(key)?).map_err(failed("setting up the key"))
    }

    fn encrypt(
        &self,
        key: &E,
        iv: &[u8],
        _: &[u8],
        plain: &[u8],
        sealed: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        sealed.clear();
        sealed.extend_from_slice(plain);
        (self.encrypt)(key, sealed, self.contexts.0(iv_of(iv)?)).map_err(failed("encrypting"))?;
        Ok(())
    }

    fn decrypt(
        &self,
        key: &D,
        iv: &[u8],
        _: &[u8],
        sealed: &[u8],
        plain: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        plain.clear();
        plain.extend_from_slice(sealed);
        let bytes =
            (self.decrypt)(key, plain, self.contexts.1(iv_of(iv)?)).map_err(failed("decrypting"))?.len();
        plain.truncate(bytes);
        Ok(())
    }
}
