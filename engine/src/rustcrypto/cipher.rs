//! Block ciphers in CBC and CTR, AEADs, and RC4.

use std::marker::PhantomData;

use aes::{Aes128, Aes192, Aes256};
use aes_gcm::aead::{AeadCore, AeadInOut};
use aes_gcm::{Aes128Gcm, Aes256Gcm, AesGcm};
use chacha20poly1305::ChaCha20Poly1305;
use cipher::block_padding::Pkcs7;
use cipher::consts::{U12, U16};
use cipher::{
    BlockCipherDecrypt, BlockCipherEncrypt, BlockModeDecrypt, BlockModeEncrypt, BlockSizeUser, InOutBuf,
    InnerIvInit, Iv, KeyInit, StreamCipher, StreamCipherCoreWrapper,
};
use ctr::CtrCore;
use ctr::flavors::Ctr128BE;

use crate::contract::{Failure, Task};
use crate::families::cipher::{Check, Cipher, TAG_BYTES, prepare};
use crate::families::{Prepared, Row, failed};

pub const CIPHERS: &[Row] = &[
    ("des-cbc", cbc::<des::Des, 8>),
    ("3des-cbc", cbc::<des::TdesEde3, 24>),
    // A key of 16 bytes is 128 bits effective in this crate, too.
    ("rc2-cbc", cbc::<rc2::Rc2, 16>),
    ("rc4", |task| prepare(task, Rc4)),
    ("aes-128-cbc", cbc::<Aes128, 16>),
    ("aes-192-cbc", cbc::<Aes192, 24>),
    ("aes-256-cbc", cbc::<Aes256, 32>),
    ("aes-128-ctr", ctr::<Aes128, 16>),
    ("aes-192-ctr", ctr::<Aes192, 24>),
    ("aes-256-ctr", ctr::<Aes256, 32>),
    ("aes-128-gcm", aead::<Aes128Gcm>),
    ("aes-192-gcm", aead::<AesGcm<Aes192, U12>>),
    ("aes-256-gcm", aead::<Aes256Gcm>),
    ("chacha20-poly1305", aead::<ChaCha20Poly1305>),
    ("camellia-256-cbc", cbc::<camellia::Camellia256, 32>),
    ("aria-256-cbc", cbc::<aria::Aria256, 32>),
];

fn cbc<C, const KEY: usize>(task: &Task) -> Prepared
where
    C: KeyInit + BlockCipherEncrypt + BlockCipherDecrypt + 'static,
{
    prepare(task, Cbc::<C, KEY>(PhantomData))
}

fn ctr<C, const KEY: usize>(task: &Task) -> Prepared
where
    C: KeyInit + BlockCipherEncrypt + BlockSizeUser<BlockSize = U16> + 'static,
{
    prepare(task, Ctr::<C, KEY>(PhantomData))
}

fn aead<A: AeadInOut + KeyInit + 'static>(task: &Task) -> Prepared {
    prepare(task, Aead::<A>(PhantomData))
}

fn key_of<C: KeyInit>(key: &[u8]) -> Result<C, Failure> {
    C::new_from_slice(key).map_err(failed("setting up the key"))
}

/// CBC with PKCS#7 padding. The mode borrows the key that was set up: only the IV is new each time.
struct Cbc<C, const KEY: usize>(PhantomData<C>);

impl<C, const KEY: usize> Cipher for Cbc<C, KEY>
where
    C: KeyInit + BlockCipherEncrypt + BlockCipherDecrypt + 'static,
{
    type Encryptor = C;
    type Decryptor = C;

    fn key_bytes(&self) -> usize {
        KEY
    }

    fn iv_bytes(&self) -> usize {
        C::block_size()
    }

    fn check(&self) -> Check {
        Check::Padding(C::block_size())
    }

    fn encryptor(&self, key: &[u8]) -> Result<C, Failure> {
        key_of(key)
    }

    fn decryptor(&self, key: &[u8]) -> Result<C, Failure> {
        key_of(key)
    }

    fn encrypt(
        &self,
        key: &C,
        iv: &[u8],
        _: &[u8],
        plain: &[u8],
        sealed: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        sealed.resize(self.check().sealed_bytes(plain.len()), 0);
        let iv: &Iv<cbc::Encryptor<&C>> = iv.try_into().map_err(failed("the IV"))?;
        let mode = cbc::Encryptor::inner_iv_init(key, iv);
        mode.encrypt_padded_b2b::<Pkcs7>(plain, sealed).map_err(failed("encrypting"))?;
        Ok(())
    }

    fn decrypt(
        &self,
        key: &C,
        iv: &[u8],
        _: &[u8],
        sealed: &[u8],
        plain: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        plain.resize(sealed.len(), 0);
        let iv: &Iv<cbc::Decryptor<&C>> = iv.try_into().map_err(failed("the IV"))?;
        let mode = cbc::Decryptor::inner_iv_init(key, iv);
        let bytes = mode.decrypt_padded_b2b::<Pkcs7>(sealed, plain).map_err(failed("decrypting"))?.len();
        plain.truncate(bytes);
        Ok(())
    }
}

struct Ctr<C, const KEY: usize>(PhantomData<C>);

impl<C, const KEY: usize> Cipher for Ctr<C, KEY>
where
    C: KeyInit + BlockCipherEncrypt + BlockSizeUser<BlockSize = U16> + 'static,
{
    type Encryptor = C;
    type Decryptor = C;

    fn key_bytes(&self) -> usize {
        KEY
    }

    fn iv_bytes(&self) -> usize {
        C::block_size()
    }

    fn check(&self) -> Check {
        Check::Nothing
    }

    fn encryptor(&self, key: &[u8]) -> Result<C, Failure> {
        key_of(key)
    }

    fn decryptor(&self, key: &[u8]) -> Result<C, Failure> {
        key_of(key)
    }

    fn encrypt(
        &self,
        key: &C,
        iv: &[u8],
        _: &[u8],
        plain: &[u8],
        sealed: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        sealed.resize(plain.len(), 0);
        let iv: &Iv<CtrCore<&C, Ctr128BE>> = iv.try_into().map_err(failed("the IV"))?;
        let core = CtrCore::<&C, Ctr128BE>::inner_iv_init(key, iv);
        StreamCipherCoreWrapper::from_core(core).apply_keystream_b2b(plain, sealed);
        Ok(())
    }

    fn decrypt(
        &self,
        key: &C,
        iv: &[u8],
        aad: &[u8],
        sealed: &[u8],
        plain: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        self.encrypt(key, iv, aad, sealed, plain)
    }
}

struct Aead<A>(PhantomData<A>);

impl<A: AeadInOut + KeyInit + 'static> Cipher for Aead<A> {
    type Encryptor = A;
    type Decryptor = A;

    fn key_bytes(&self) -> usize {
        A::key_size()
    }

    fn iv_bytes(&self) -> usize {
        aes_gcm::Nonce::<<A as AeadCore>::NonceSize>::default().len()
    }

    fn check(&self) -> Check {
        Check::Tag
    }

    fn encryptor(&self, key: &[u8]) -> Result<A, Failure> {
        key_of(key)
    }

    fn decryptor(&self, key: &[u8]) -> Result<A, Failure> {
        key_of(key)
    }

    fn encrypt(
        &self,
        key: &A,
        iv: &[u8],
        aad: &[u8],
        plain: &[u8],
        sealed: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        sealed.resize(plain.len() + TAG_BYTES, 0);
        let (ciphertext, tag) = sealed.split_at_mut(plain.len());
        let nonce = iv.try_into().map_err(failed("the nonce"))?;
        let buffer = InOutBuf::new(plain, ciphertext).map_err(failed("the buffers"))?;
        tag.copy_from_slice(&key.encrypt_inout_detached(nonce, aad, buffer).map_err(failed("encrypting"))?);
        Ok(())
    }

    fn decrypt(
        &self,
        key: &A,
        iv: &[u8],
        aad: &[u8],
        sealed: &[u8],
        plain: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let bytes = sealed.len().checked_sub(TAG_BYTES);
        let bytes = bytes.ok_or_else(|| Failure::Failed("a ciphertext shorter than its tag".to_owned()))?;
        let (ciphertext, tag) = sealed.split_at(bytes);
        plain.resize(bytes, 0);
        let nonce = iv.try_into().map_err(failed("the nonce"))?;
        let tag = tag.try_into().map_err(failed("the tag"))?;
        let buffer = InOutBuf::new(ciphertext, plain).map_err(failed("the buffers"))?;
        key.decrypt_inout_detached(nonce, aad, buffer, tag).map_err(failed("decrypting"))
    }
}

/// RC4 has no IV: a key that is kept gives everything away. It is set up anew for each operation, whatever
/// the setting `key` says.
struct Rc4;

impl Cipher for Rc4 {
    type Encryptor = Vec<u8>;
    type Decryptor = Vec<u8>;

    fn key_bytes(&self) -> usize {
        16
    }

    fn iv_bytes(&self) -> usize {
        0
    }

    fn check(&self) -> Check {
        Check::Nothing
    }

    fn encryptor(&self, key: &[u8]) -> Result<Vec<u8>, Failure> {
        Ok(key.to_vec())
    }

    fn decryptor(&self, key: &[u8]) -> Result<Vec<u8>, Failure> {
        Ok(key.to_vec())
    }

    fn encrypt(
        &self,
        key: &Vec<u8>,
        _: &[u8],
        _: &[u8],
        plain: &[u8],
        sealed: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        sealed.resize(plain.len(), 0);
        key_of::<rc4::Rc4>(key)?.apply_keystream_b2b(plain, sealed);
        Ok(())
    }

    fn decrypt(
        &self,
        key: &Vec<u8>,
        iv: &[u8],
        aad: &[u8],
        sealed: &[u8],
        plain: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        self.encrypt(key, iv, aad, sealed, plain)
    }
}
