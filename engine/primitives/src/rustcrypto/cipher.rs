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

use crate::failure::Failure;
use crate::families::cipher::{Check, Cipher, Direction, Message, Shape, TAG_BYTES, prepare};
use crate::families::{Row, failed};

pub const CIPHERS: &[Row] = &[
    ("des-cbc", |task| prepare(task, Cbc::<des::Des, 8>(PhantomData))),
    ("3des-cbc", |task| prepare(task, Cbc::<des::TdesEde3, 24>(PhantomData))),
    // A key of 16 bytes has 128 effective bits in this crate as well.
    ("rc2-cbc", |task| prepare(task, Cbc::<rc2::Rc2, 16>(PhantomData))),
    ("rc4", |task| prepare(task, Rc4)),
    ("aes-128-cbc", |task| prepare(task, Cbc::<Aes128, 16>(PhantomData))),
    ("aes-192-cbc", |task| prepare(task, Cbc::<Aes192, 24>(PhantomData))),
    ("aes-256-cbc", |task| prepare(task, Cbc::<Aes256, 32>(PhantomData))),
    ("aes-128-ctr", |task| prepare(task, Ctr::<Aes128, 16>(PhantomData))),
    ("aes-192-ctr", |task| prepare(task, Ctr::<Aes192, 24>(PhantomData))),
    ("aes-256-ctr", |task| prepare(task, Ctr::<Aes256, 32>(PhantomData))),
    ("aes-128-gcm", |task| prepare(task, Aead::<Aes128Gcm>(PhantomData))),
    ("aes-192-gcm", |task| prepare(task, Aead::<AesGcm<Aes192, U12>>(PhantomData))),
    ("aes-256-gcm", |task| prepare(task, Aead::<Aes256Gcm>(PhantomData))),
    ("chacha20-poly1305", |task| prepare(task, Aead::<ChaCha20Poly1305>(PhantomData))),
    ("camellia-256-cbc", |task| prepare(task, Cbc::<camellia::Camellia256, 32>(PhantomData))),
    ("aria-256-cbc", |task| prepare(task, Cbc::<aria::Aria256, 32>(PhantomData))),
];

fn key_of<C: KeyInit>(key: &[u8]) -> Result<C, Failure> {
    C::new_from_slice(key).map_err(failed("setting up the key"))
}

fn random(into: &mut [u8]) -> Result<(), Failure> {
    getrandom::fill(into).map_err(failed("random bytes"))
}

/// CBC with PKCS#7 padding. The mode borrows the prepared key: only the IV is new each time.
struct Cbc<C, const KEY: usize>(PhantomData<C>);

impl<C, const KEY: usize> Cipher for Cbc<C, KEY>
where
    C: KeyInit + BlockCipherEncrypt + BlockCipherDecrypt + 'static,
{
    type Key = C;

    fn shape(&self) -> Shape {
        let block = C::block_size();
        Shape { key_bytes: KEY, iv_bytes: block, check: Check::Padding(block) }
    }

    fn random(&self, into: &mut [u8]) -> Result<(), Failure> {
        random(into)
    }

    fn key(&self, key: &[u8], _: Direction) -> Result<C, Failure> {
        key_of(key)
    }

    fn crypt(&self, key: &C, message: Message, out: &mut Vec<u8>) -> Result<(), Failure> {
        let Message { direction, iv, data, .. } = message;
        match direction {
            Direction::Encrypt => {
                out.resize(self.shape().check.sealed_bytes(data.len()), 0);
                let iv: &Iv<cbc::Encryptor<&C>> = iv.try_into().map_err(failed("the IV"))?;
                let mode = cbc::Encryptor::inner_iv_init(key, iv);
                mode.encrypt_padded_b2b::<Pkcs7>(data, out).map_err(failed("encrypting"))?;
            }
            Direction::Decrypt => {
                out.resize(data.len(), 0);
                let iv: &Iv<cbc::Decryptor<&C>> = iv.try_into().map_err(failed("the IV"))?;
                let mode = cbc::Decryptor::inner_iv_init(key, iv);
                let plain = mode.decrypt_padded_b2b::<Pkcs7>(data, out).map_err(failed("decrypting"))?;
                let bytes = plain.len();
                out.truncate(bytes);
            }
        }
        Ok(())
    }
}

struct Ctr<C, const KEY: usize>(PhantomData<C>);

impl<C, const KEY: usize> Cipher for Ctr<C, KEY>
where
    C: KeyInit + BlockCipherEncrypt + BlockSizeUser<BlockSize = U16> + 'static,
{
    type Key = C;

    fn shape(&self) -> Shape {
        Shape { key_bytes: KEY, iv_bytes: C::block_size(), check: Check::Nothing }
    }

    fn random(&self, into: &mut [u8]) -> Result<(), Failure> {
        random(into)
    }

    fn key(&self, key: &[u8], _: Direction) -> Result<C, Failure> {
        key_of(key)
    }

    fn crypt(&self, key: &C, message: Message, out: &mut Vec<u8>) -> Result<(), Failure> {
        out.resize(message.data.len(), 0);
        let iv: &Iv<CtrCore<&C, Ctr128BE>> = message.iv.try_into().map_err(failed("the IV"))?;
        let core = CtrCore::<&C, Ctr128BE>::inner_iv_init(key, iv);
        StreamCipherCoreWrapper::from_core(core).apply_keystream_b2b(message.data, out);
        Ok(())
    }
}

struct Aead<A>(PhantomData<A>);

impl<A: AeadInOut + KeyInit + 'static> Cipher for Aead<A> {
    type Key = A;

    fn shape(&self) -> Shape {
        let iv_bytes = aes_gcm::Nonce::<<A as AeadCore>::NonceSize>::default().len();
        Shape { key_bytes: A::key_size(), iv_bytes, check: Check::Tag }
    }

    fn random(&self, into: &mut [u8]) -> Result<(), Failure> {
        random(into)
    }

    fn key(&self, key: &[u8], _: Direction) -> Result<A, Failure> {
        key_of(key)
    }

    fn crypt(&self, key: &A, message: Message, out: &mut Vec<u8>) -> Result<(), Failure> {
        let nonce = message.iv.try_into().map_err(failed("the nonce"))?;
        match message.direction {
            Direction::Encrypt => {
                out.resize(message.data.len() + TAG_BYTES, 0);
                let (ciphertext, tag) = out.split_at_mut(message.data.len());
                let buffer = InOutBuf::new(message.data, ciphertext).map_err(failed("the buffers"))?;
                let made = key.encrypt_inout_detached(nonce, message.aad, buffer);
                tag.copy_from_slice(&made.map_err(failed("encrypting"))?);
                Ok(())
            }
            Direction::Decrypt => {
                let (ciphertext, tag) = message.split_tag()?;
                out.resize(ciphertext.len(), 0);
                let tag = tag.as_slice().try_into().map_err(failed("the tag"))?;
                let buffer = InOutBuf::new(ciphertext, out).map_err(failed("the buffers"))?;
                key.decrypt_inout_detached(nonce, message.aad, buffer, tag).map_err(failed("decrypting"))
            }
        }
    }
}

/// RC4 has no IV, and a reused key reveals everything. The key is set up again for each operation, whatever
/// the setting `key` is.
struct Rc4;

impl Cipher for Rc4 {
    type Key = Vec<u8>;

    fn shape(&self) -> Shape {
        Shape { key_bytes: 16, iv_bytes: 0, check: Check::Nothing }
    }

    fn random(&self, into: &mut [u8]) -> Result<(), Failure> {
        random(into)
    }

    fn key(&self, key: &[u8], _: Direction) -> Result<Vec<u8>, Failure> {
        Ok(key.to_vec())
    }

    fn crypt(&self, key: &Vec<u8>, message: Message, out: &mut Vec<u8>) -> Result<(), Failure> {
        out.resize(message.data.len(), 0);
        key_of::<rc4::Rc4>(key)?.apply_keystream_b2b(message.data, out);
        Ok(())
    }
}
