//! `cipher`: one buffer encrypted, decrypted, or both.

use std::hint::black_box;

use super::{Prepared, no_such_operation};
use crate::buffers;
use crate::contract::{Failure, Proof, Task};
use crate::operation::Operation;

/// How a cipher notices that a ciphertext is not what was encrypted.
#[derive(Clone, Copy, PartialEq)]
pub enum Check {
    /// A tag of 16 bytes after the ciphertext.
    Tag,
    /// PKCS#7 padding to whole blocks of so many bytes.
    Padding(usize),
    /// Not at all.
    Nothing,
}

pub const TAG_BYTES: usize = 16;

impl Check {
    /// How long the ciphertext of so many bytes is, tag or padding included.
    pub fn sealed_bytes(self, plain: usize) -> usize {
        match self {
            Check::Tag => plain + TAG_BYTES,
            Check::Padding(block) => (plain / block + 1) * block,
            Check::Nothing => plain,
        }
    }
}

/// A cipher with its mode. Output buffers keep their capacity from one operation to the next.
pub trait Cipher: 'static {
    /// A key set up for encryption, and one for decryption.
    type Encryptor;
    type Decryptor;

    fn key_bytes(&self) -> usize;
    fn iv_bytes(&self) -> usize;
    fn check(&self) -> Check;
    fn encryptor(&self, key: &[u8]) -> Result<Self::Encryptor, Failure>;
    fn decryptor(&self, key: &[u8]) -> Result<Self::Decryptor, Failure>;

    /// Leaves the ciphertext, with its tag or padding, in `sealed`.
    fn encrypt(
        &self,
        key: &Self::Encryptor,
        iv: &[u8],
        aad: &[u8],
        plain: &[u8],
        sealed: &mut Vec<u8>,
    ) -> Result<(), Failure>;

    /// Leaves the plaintext in `plain`, or refuses a wrong tag or padding.
    fn decrypt(
        &self,
        key: &Self::Decryptor,
        iv: &[u8],
        aad: &[u8],
        sealed: &[u8],
        plain: &mut Vec<u8>,
    ) -> Result<(), Failure>;
}

pub fn prepare<C: Cipher>(task: &Task, cipher: C) -> Prepared {
    let session = Session::new(task, cipher)?;
    match task.op.as_str() {
        "encrypt" => Ok(Box::new(Encrypt(session))),
        "decrypt" => {
            let mut session = session;
            session.encrypt()?;
            Ok(Box::new(Decrypt(session)))
        }
        "round-trip" => Ok(Box::new(RoundTrip(session))),
        _ => Err(no_such_operation(task)),
    }
}

/// Why a wrong thing cannot be tried on a cipher.
pub const EMPTY: &str = "nothing encrypted is nothing to tamper with";
pub const NO_IV: &str = "the cipher has no IV";
pub const NO_CHECK: &str = "the mode has neither";

struct Known {
    key: Vec<u8>,
    iv: Vec<u8>,
    aad: Vec<u8>,
    plain: Vec<u8>,
}

struct Session<C: Cipher> {
    cipher: C,
    key: Vec<u8>,
    /// The key set up once, where it is kept.
    kept: Option<(C::Encryptor, C::Decryptor)>,
    iv: Vec<u8>,
    plain: Vec<u8>,
    sealed: Vec<u8>,
    opened: Vec<u8>,
    known: Option<Known>,
}

impl<C: Cipher> Session<C> {
    fn new(task: &Task, cipher: C) -> Result<Self, Failure> {
        let bytes = task.bytes(4096)?;
        let key = buffers::filled(cipher.key_bytes(), !task.seed);
        let kept = match task.word("key", "kept")? {
            "kept" => Some((cipher.encryptor(&key)?, cipher.decryptor(&key)?)),
            "fresh" => None,
            other => return Err(Failure::Failed(format!("the setting `key` is kept or fresh, not {other}"))),
        };
        let known = match task.message()? {
            Some(plain) => {
                let (iv, aad) = (task.hex("iv")?.unwrap_or_default(), task.hex("aad")?.unwrap_or_default());
                Some(Known { key: task.need_hex("key")?, iv, aad, plain })
            }
            None => None,
        };
        // Some libraries decrypt in place: the buffer for the plaintext has to hold a ciphertext.
        let most = cipher.check().sealed_bytes(bytes);
        Ok(Session {
            iv: buffers::filled(cipher.iv_bytes(), task.seed.rotate_left(32)),
            plain: buffers::filled(bytes, task.seed),
            sealed: Vec::with_capacity(most),
            opened: Vec::with_capacity(most),
            cipher,
            key,
            kept,
            known,
        })
    }

    /// Encrypts under the next IV. An IV that is used twice gives a stream cipher's secrets away, so no
    /// caller does it.
    fn encrypt(&mut self) -> Result<(), Failure> {
        increment(&mut self.iv);
        let Session { cipher, iv, plain, sealed, .. } = self;
        match &self.kept {
            Some((key, _)) => cipher.encrypt(key, iv, &[], black_box(plain), sealed)?,
            None => cipher.encrypt(&cipher.encryptor(&self.key)?, iv, &[], black_box(plain), sealed)?,
        }
        let (expected, actual) = (self.cipher.check().sealed_bytes(self.plain.len()), self.sealed.len());
        if actual != expected {
            return Err(Failure::Failed(format!("a ciphertext of {actual} bytes instead of {expected}")));
        }
        Ok(())
    }

    fn decrypt(&mut self) -> Result<(), Failure> {
        let Session { cipher, iv, sealed, opened, .. } = self;
        match &self.kept {
            Some((_, key)) => cipher.decrypt(key, iv, &[], black_box(sealed), opened)?,
            None => cipher.decrypt(&cipher.decryptor(&self.key)?, iv, &[], black_box(sealed), opened)?,
        }
        let (expected, actual) = (self.plain.len(), self.opened.len());
        if actual != expected {
            return Err(Failure::Failed(format!("a plaintext of {actual} bytes instead of {expected}")));
        }
        Ok(())
    }

    /// What a wrong (key, IV, ciphertext) gives; None if it is refused.
    fn open(&self, key: &[u8], iv: &[u8], sealed: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        let mut opened = Vec::new();
        let result = self.cipher.decrypt(&self.cipher.decryptor(key)?, iv, &[], sealed, &mut opened);
        Ok(result.ok().map(|()| opened))
    }

    fn prove(&mut self) -> Result<Proof, Failure> {
        let mut proof = Proof::default();
        if let Some(known) = &self.known {
            proof.answer = Some(self.known_answer(known)?);
        }
        self.encrypt()?;
        self.opened.clear();
        self.decrypt()?;
        proof.accept("its own ciphertext", self.opened == self.plain)?;

        if self.sealed.is_empty() {
            proof.leave("a tampered ciphertext, another key", EMPTY);
            return Ok(proof);
        }
        let first = self.sealed.clone();
        self.encrypt()?;
        if self.iv.is_empty() {
            proof.leave("the same ciphertext twice, another IV", NO_IV);
        } else {
            proof.refuse("the same ciphertext twice", self.sealed != first)?;
        }
        let (key, iv, sealed) = (&self.key, &self.iv, &self.sealed);
        let right = Some(self.plain.clone());
        // A mode without a tag gives other plaintext instead of refusing.
        let check = self.cipher.check();
        let wrong =
            |opened: &Option<Vec<u8>>| if check == Check::Tag { opened.is_none() } else { *opened != right };
        proof.refuse("a tampered ciphertext", wrong(&self.open(key, iv, &buffers::tampered(sealed))?))?;
        proof.refuse("another key", wrong(&self.open(&other_key(key), iv, sealed)?))?;
        if !iv.is_empty() {
            proof.refuse("another IV", wrong(&self.open(key, &buffers::tampered(iv), sealed)?))?;
        }
        match check {
            Check::Tag => {
                let mut tampered = sealed.clone();
                *tampered.last_mut().expect("a tag") ^= 1;
                proof.refuse("a tampered tag", self.open(key, iv, &tampered)?.is_none())?;
            }
            Check::Padding(block) => {
                // What the last byte decrypts to is XORed with the byte one block before: the padding's
                // length becomes one that no block has.
                let (mut iv, mut tampered) = (iv.clone(), sealed.clone());
                let byte = match tampered.len().checked_sub(block + 1) {
                    Some(index) => &mut tampered[index],
                    None => &mut iv[block - 1],
                };
                *byte ^= 0x80;
                proof.refuse("a tampered padding", self.open(key, &iv, &tampered)?.is_none())?;
            }
            Check::Nothing => proof.leave("a tampered tag or padding", NO_CHECK),
        }
        Ok(proof)
    }

    fn known_answer(&self, known: &Known) -> Result<String, Failure> {
        let Known { key, iv, aad, plain } = known;
        let (mut sealed, mut opened) = (Vec::new(), Vec::new());
        self.cipher.encrypt(&self.cipher.encryptor(key)?, iv, aad, plain, &mut sealed)?;
        self.cipher.decrypt(&self.cipher.decryptor(key)?, iv, aad, &sealed, &mut opened)?;
        if opened != *plain {
            return Err(Failure::Failed("the known answer does not decrypt to its plaintext".to_owned()));
        }
        // Published answers of block modes are of whole blocks and without padding, which only adds a block.
        if matches!(self.cipher.check(), Check::Padding(_)) {
            sealed.truncate(plain.len());
        }
        Ok(hex::encode(sealed))
    }
}

/// The next IV: a counter in its last bytes, as long as the IV is.
fn increment(iv: &mut [u8]) {
    for byte in iv.iter_mut().rev() {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            break;
        }
    }
}

/// A key that differs in every byte. One bit is not enough: the lowest of a DES key's byte is its parity.
fn other_key(key: &[u8]) -> Vec<u8> {
    key.iter().map(|byte| byte ^ 0x5a).collect()
}

struct Encrypt<C: Cipher>(Session<C>);
struct Decrypt<C: Cipher>(Session<C>);
struct RoundTrip<C: Cipher>(Session<C>);

macro_rules! operation {
    ($operation:ident: $($step:ident),+) => {
        impl<C: Cipher> Operation for $operation<C> {
            fn perform(&mut self) -> Result<(), Failure> {
                $(self.0.$step()?;)+
                black_box(&self.0);
                Ok(())
            }

            fn prove(&mut self) -> Result<Proof, Failure> {
                self.0.prove()
            }

            fn bytes(&self) -> u64 {
                self.0.plain.len() as u64
            }
        }
    };
}

operation!(Encrypt: encrypt);
operation!(Decrypt: decrypt);
operation!(RoundTrip: encrypt, decrypt);
