//! `cipher`: one buffer encrypted, decrypted, or both.

use std::hint::black_box;

use crate::contract::{Proof, Task};
use crate::failure::Failure;
use crate::provider::{Prepared, Primitive};
use crate::random;

/// Method by which a cipher detects a wrong ciphertext.
#[derive(Clone, Copy, PartialEq)]
pub enum Check {
    /// A tag of 16 bytes after the ciphertext.
    Tag,
    /// PKCS#7 padding to whole blocks of this number of bytes.
    Padding(usize),
    /// No detection.
    Nothing,
}

pub const TAG_BYTES: usize = 16;
/// Bytes for which a counter value of CTR is used: a block of AES.
const STREAM_BLOCK: usize = 16;

impl Check {
    /// Returns the length of the ciphertext of `plain` bytes, tag or padding included.
    pub fn sealed_bytes(self, plain: usize) -> usize {
        match self {
            Check::Tag => plain + TAG_BYTES,
            // A block is a power of two long, and a division would be visible in the cost of a short message.
            Check::Padding(block) => (plain | (block - 1)) + 1,
            Check::Nothing => plain,
        }
    }

    /// Returns the length of the padded blocks, 0 without padding.
    pub fn block_bytes(self) -> usize {
        match self {
            Check::Padding(block) => block,
            Check::Tag | Check::Nothing => 0,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Encrypt,
    Decrypt,
}

/// Lengths of a cipher's inputs in bytes, and its detection of a wrong ciphertext.
#[derive(Clone, Copy)]
pub struct Shape {
    pub key_bytes: usize,
    pub iv_bytes: usize,
    pub check: Check,
}

/// Message of a cipher: a plaintext, or a ciphertext with its tag or padding.
#[derive(Clone, Copy)]
pub struct Message<'a> {
    pub direction: Direction,
    pub iv: &'a [u8],
    pub aad: &'a [u8],
    pub data: &'a [u8],
}

impl<'a> Message<'a> {
    /// Splits a ciphertext from its tag.
    pub fn split_tag(&self) -> Result<(&'a [u8], &'a [u8; TAG_BYTES]), Failure> {
        let parts = self.data.split_last_chunk();
        parts.ok_or_else(|| Failure::Failed("a ciphertext shorter than its tag".to_owned()))
    }
}

/// A cipher with its mode.
pub trait Cipher: 'static {
    /// A key set up for one direction.
    type Key;

    fn shape(&self) -> Shape;

    fn key(&self, key: &[u8], direction: Direction) -> Result<Self::Key, Failure>;

    /// Fills a buffer with random bytes from this library, as its users would.
    fn random(&self, into: &mut [u8]) -> Result<(), Failure>;

    /// Writes to `out` the ciphertext with its tag or padding, or the plaintext; a wrong tag or padding is
    /// refused. `out` keeps its capacity from one message to the next.
    fn crypt(&self, key: &Self::Key, message: Message, out: &mut Vec<u8>) -> Result<(), Failure>;

    /// Does the same as `crypt` with a key that is set up for this message only.
    fn crypt_once(&self, key: &[u8], message: Message, out: &mut Vec<u8>) -> Result<(), Failure> {
        self.crypt(&self.key(key, message.direction)?, message, out)
    }
}

pub fn prepare<C: Cipher>(task: &Task, cipher: C) -> Prepared {
    let mut session = Session::new(task, cipher)?;
    if !session.encrypts {
        session.encrypt()?;
    }
    Ok(Box::new(session))
}

struct Known {
    key: Vec<u8>,
    iv: Vec<u8>,
    aad: Vec<u8>,
    plain: Vec<u8>,
}

struct Session<C: Cipher> {
    encrypts: bool,
    decrypts: bool,
    cipher: C,
    shape: Shape,
    key: Vec<u8>,
    /// Key set up once for each direction, if it is kept.
    kept: Option<[C::Key; 2]>,
    iv: Vec<u8>,
    plain: Vec<u8>,
    sealed: Vec<u8>,
    opened: Vec<u8>,
    known: Option<Known>,
}

impl<C: Cipher> Session<C> {
    fn new(task: &Task, cipher: C) -> Result<Self, Failure> {
        let operations =
            [("encrypt", (true, false)), ("decrypt", (false, true)), ("round-trip", (true, true))];
        let (encrypts, decrypts) = task.operation(&operations)?;
        let (bytes, shape) = (task.bytes(4096)?, cipher.shape());
        let key = random::filled(shape.key_bytes, !task.seed);
        let kept = match task.one_of("key", &[("kept", true), ("fresh", false)])? {
            true => Some([cipher.key(&key, Direction::Encrypt)?, cipher.key(&key, Direction::Decrypt)?]),
            false => None,
        };
        let known = match task.message()? {
            Some(plain) => {
                let (iv, aad) = (task.hex("iv")?.unwrap_or_default(), task.hex("aad")?.unwrap_or_default());
                Some(Known { key: task.need_hex("key")?, iv, aad, plain })
            }
            None => None,
        };
        // Some libraries decrypt in place: the buffer for the plaintext must have room for a ciphertext.
        let most = shape.check.sealed_bytes(bytes) + shape.check.block_bytes();
        Ok(Session {
            iv: random::filled(shape.iv_bytes, task.seed.rotate_left(32)),
            plain: random::filled(bytes, task.seed),
            sealed: Vec::with_capacity(most),
            opened: Vec::with_capacity(most),
            encrypts,
            decrypts,
            cipher,
            shape,
            key,
            kept,
            known,
        })
    }

    /// Encrypts under an IV that its mode is safe with (NIST SP 800-38A appendix C, 800-38D section 8.2.1).
    /// Drawing it is timed, as a caller pays for it too.
    #[inline]
    fn encrypt(&mut self) -> Result<(), Failure> {
        match self.shape.check {
            // A nonce must never repeat.
            Check::Tag => add(&mut self.iv, 1),
            // An IV must be unpredictable.
            Check::Padding(_) => self.cipher.random(&mut self.iv)?,
            // The mode increments the counter for each block, and no two blocks may have the same counter.
            Check::Nothing => add(&mut self.iv, self.plain.len().div_ceil(STREAM_BLOCK).max(1) as u64),
        }
        let Session { cipher, shape, kept, key, iv, plain, sealed, .. } = self;
        let message = Message { direction: Direction::Encrypt, iv, aad: &[], data: black_box(plain) };
        match kept {
            Some([key, _]) => cipher.crypt(key, message, sealed)?,
            None => cipher.crypt_once(key, message, sealed)?,
        }
        expect_bytes("ciphertext", shape.check.sealed_bytes(plain.len()), sealed)
    }

    #[inline]
    fn decrypt(&mut self) -> Result<(), Failure> {
        let Session { cipher, kept, key, iv, plain, sealed, opened, .. } = self;
        let message = Message { direction: Direction::Decrypt, iv, aad: &[], data: black_box(sealed) };
        match kept {
            Some([_, key]) => cipher.crypt(key, message, opened)?,
            None => cipher.crypt_once(key, message, opened)?,
        }
        expect_bytes("plaintext", plain.len(), opened)
    }

    /// Returns the plaintext of a wrong (key, IV, ciphertext), or None if it is refused.
    fn open(&self, key: &[u8], iv: &[u8], sealed: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        let (key, mut opened) = (self.cipher.key(key, Direction::Decrypt)?, Vec::new());
        let message = Message { direction: Direction::Decrypt, iv, aad: &[], data: sealed };
        Ok(self.cipher.crypt(&key, message, &mut opened).ok().map(|()| opened))
    }

    fn known_answer(&self, known: &Known) -> Result<String, Failure> {
        let Known { key, iv, aad, plain } = known;
        let (mut sealed, mut opened) = (Vec::new(), Vec::new());
        let message = |direction, data| Message { direction, iv, aad, data };
        self.cipher.crypt_once(key, message(Direction::Encrypt, plain), &mut sealed)?;
        self.cipher.crypt_once(key, message(Direction::Decrypt, &sealed), &mut opened)?;
        if opened != *plain {
            return Err(Failure::Failed("the known answer does not decrypt to its plaintext".to_owned()));
        }
        // Published answers of block modes have whole blocks and no padding, which only adds a block.
        if matches!(self.shape.check, Check::Padding(_)) {
            sealed.truncate(plain.len());
        }
        Ok(hex::encode(sealed))
    }
}

impl<C: Cipher> Primitive for Session<C> {
    fn perform(&mut self) -> Result<(), Failure> {
        if self.encrypts {
            self.encrypt()?;
        }
        if self.decrypts {
            self.decrypt()?;
        }
        black_box(&self);
        Ok(())
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
            proof.leave("a tampered ciphertext, another key", "nothing encrypted is nothing to tamper with");
            return Ok(proof);
        }
        let first = self.sealed.clone();
        self.encrypt()?;
        if self.iv.is_empty() {
            proof.leave("the same ciphertext twice, another IV", "the cipher has no IV");
        } else {
            proof.refuse("the same ciphertext twice", self.sealed != first)?;
        }
        let (key, iv, sealed) = (&self.key, &self.iv, &self.sealed);
        let right = Some(self.plain.clone());
        // A key that opens nothing would refuse every wrong input.
        proof.accept(
            "its own ciphertext, opened as the wrong ones are",
            self.open(key, iv, sealed)? == right,
        )?;
        // A mode without a tag returns a different plaintext instead of refusing.
        let check = self.shape.check;
        let wrong =
            |opened: &Option<Vec<u8>>| if check == Check::Tag { opened.is_none() } else { *opened != right };
        proof.refuse("a tampered ciphertext", wrong(&self.open(key, iv, &random::tampered(sealed))?))?;
        proof.refuse("another key", wrong(&self.open(&other_key(key), iv, sealed)?))?;
        if !iv.is_empty() {
            proof.refuse("another IV", wrong(&self.open(key, &random::tampered(iv), sealed)?))?;
        }
        match check {
            Check::Tag => {
                let mut tampered = sealed.clone();
                *tampered.last_mut().expect("a tag") ^= 1;
                proof.refuse("a tampered tag", self.open(key, iv, &tampered)?.is_none())?;
            }
            Check::Padding(block) => {
                // The last decrypted byte is XORed with the byte one block before, so that the padding's
                // length becomes one that no block has.
                let (mut iv, mut tampered) = (iv.clone(), sealed.clone());
                let byte = match tampered.len().checked_sub(block + 1) {
                    Some(index) => &mut tampered[index],
                    None => &mut iv[block - 1],
                };
                *byte ^= 0x80;
                proof.refuse("a tampered padding", self.open(key, &iv, &tampered)?.is_none())?;
            }
            Check::Nothing => proof.leave("a tampered tag or padding", "the mode has neither"),
        }
        Ok(proof)
    }

    fn bytes(&self) -> u64 {
        self.plain.len() as u64
    }
}

fn expect_bytes(what: &str, expected: usize, actual: &[u8]) -> Result<(), Failure> {
    match actual.len() {
        actual if actual == expected => Ok(()),
        actual => Err(Failure::Failed(format!("a {what} of {actual} bytes instead of {expected}"))),
    }
}

/// Adds to a number of any length, whose last byte is its lowest.
#[inline]
fn add(number: &mut [u8], mut more: u64) {
    for byte in number.iter_mut().rev() {
        if more == 0 {
            break;
        }
        more += u64::from(*byte);
        *byte = more as u8;
        more >>= 8;
    }
}

/// Returns a key that differs in every byte. One bit is not enough: the lowest bit of a DES key's byte is its
/// parity.
fn other_key(key: &[u8]) -> Vec<u8> {
    key.iter().map(|byte| byte ^ 0x5a).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_length_is_said() {
        assert!(expect_bytes("tag", 2, &[0; 2]).is_ok());
        for bytes in [[0; 3].as_slice(), &[0], &[]] {
            let words = expect_bytes("tag", 2, bytes).map_err(Failure::into_words).expect_err("a failure");
            assert_eq!(format!("a tag of {} bytes instead of 2", bytes.len()), words);
        }
    }

    #[test]
    fn a_ciphertext_is_as_long_as_its_check_makes_it() {
        for (check, plain, sealed, block) in [
            (Check::Tag, 5, 5 + TAG_BYTES, 0),
            (Check::Padding(16), 5, 16, 16),
            (Check::Padding(16), 16, 32, 16),
            (Check::Padding(8), 0, 8, 8),
            (Check::Nothing, 5, 5, 0),
        ] {
            assert_eq!((sealed, block), (check.sealed_bytes(plain), check.block_bytes()), "{plain} bytes");
        }
    }

    #[test]
    fn another_key_has_no_byte_of_the_first() {
        let key: Vec<u8> = (0..=255).collect();
        assert!(std::iter::zip(&key, other_key(&key)).all(|(one, other)| *one != other));
    }

    #[test]
    fn a_counter_goes_on_into_its_next_byte_and_round() {
        for (from, more, to) in [
            ([0, 0, 0], 1, [0, 0, 1]),
            ([0, 0, 255], 1, [0, 1, 0]),
            ([0, 1, 250], 0x0106, [0, 3, 0]),
            ([255, 255, 255], 2, [0, 0, 1]),
            ([0, 0, 9], 0, [0, 0, 9]),
        ] {
            let mut number = from;
            add(&mut number, more);
            assert_eq!(to, number);
        }
        add(&mut [], 7);
    }

    /// A mode that records the IV of every message.
    struct Told(Shape, std::cell::RefCell<Vec<Vec<u8>>>);

    impl Cipher for Told {
        type Key = ();

        fn shape(&self) -> Shape {
            self.0
        }

        fn key(&self, _key: &[u8], _direction: Direction) -> Result<(), Failure> {
            Ok(())
        }

        fn random(&self, into: &mut [u8]) -> Result<(), Failure> {
            into.fill(0xAA ^ self.1.borrow().len() as u8);
            Ok(())
        }

        fn crypt(&self, _key: &(), message: Message, out: &mut Vec<u8>) -> Result<(), Failure> {
            self.1.borrow_mut().push(message.iv.to_vec());
            out.resize(self.0.check.sealed_bytes(message.data.len()), 0);
            Ok(())
        }
    }

    fn ivs(check: Check, iv_bytes: usize, bytes: u64) -> Vec<Vec<u8>> {
        let task = serde_json::json!({"mode": "measure", "provider": {"kind": "test"}, "family": "cipher",
            "op": "encrypt", "choice": "test", "setting": {"bytes": bytes}, "seed": 7});
        let task: Task = serde_json::from_value(task).expect("a task");
        let told = Told(Shape { key_bytes: 16, iv_bytes, check }, Vec::new().into());
        let mut session = Session::new(&task, told).expect("a session");
        (0..3).for_each(|_| session.encrypt().expect("encrypted"));
        session.cipher.1.take()
    }

    fn number(iv: &[u8]) -> u128 {
        iv.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
    }

    /// No CTR counter is used for two blocks, no GCM nonce for two messages, and each CBC IV is drawn.
    #[test]
    fn every_message_has_an_iv_that_its_mode_is_safe_with() {
        for (check, iv_bytes, bytes, step) in [
            (Check::Tag, 12, 4096, 1),
            (Check::Nothing, 16, 4096, 256),
            (Check::Nothing, 16, 1, 1),
            (Check::Nothing, 16, 17, 2),
            (Check::Nothing, 16, 0, 1),
        ] {
            let ivs = ivs(check, iv_bytes, bytes);
            let steps: Vec<u128> = ivs.windows(2).map(|pair| number(&pair[1]) - number(&pair[0])).collect();
            assert_eq!(vec![step; 2], steps, "{bytes}");
        }
        assert_eq!(
            [vec![0xAA; 16], vec![0xAB; 16], vec![0xA8; 16]].as_slice(),
            ivs(Check::Padding(16), 16, 64)
        );
    }
}
