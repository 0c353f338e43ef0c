//! Encryption in the application, by AWS-LC: sealing the three values of a row, and opening them.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::hmac;
use aws_lc_rs::rand;
use aws_lc_rs::rsa::{
    KeySize, OAEP_SHA256_MGF1SHA256, OaepPrivateDecryptingKey, OaepPublicEncryptingKey, PrivateDecryptingKey,
};
use zeroize::Zeroizing;

use super::card::{Card, STRING_BYTES, Text};
use super::columns::{Column, Extra, Stored};
use crate::contract::Task;
use crate::failure::Failure;

/// Stored bytes of a row's protected values.
#[derive(Debug, Default, Clone)]
pub struct Sealed {
    pub number: Vec<u8>,
    pub code: Vec<u8>,
    pub string: Vec<u8>,
    /// Value of the column that the choice adds: a data key, or the code of the card number; empty without
    /// such a column.
    pub extra: Vec<u8>,
}

/// Protection of a row's three values by the application. Each is bound to its row and column.
pub trait Protection {
    fn seal(&mut self, card: &Card, sealed: &mut Sealed) -> Result<(), Failure>;

    /// Opens the three values. Fails if they are not the ones sealed for this row.
    fn open(&mut self, id: i64, stored: Stored<'_>) -> Result<(i64, i16, Text), Failure>;

    /// Opens only the card number, for a search that decrypts every row.
    fn open_number(&mut self, id: i64, number: &[u8], extra: &[u8]) -> Result<i64, Failure>;

    fn extra(&self) -> Extra {
        Extra::Nothing
    }

    /// Returns the code by which the row with this card number is found.
    fn number_code(&self, _number: i64) -> Option<[u8; 32]> {
        None
    }

    /// Returns the same protection with other keys.
    fn with_fresh_keys(&self) -> Result<Box<dyn Protection>, Failure>;
}

const KEY_BYTES: usize = 32;
const TAG_BYTES: usize = 16;
const RSA_BYTES: usize = 256;

/// Keys from a task, so that another program can read the stored values, and write them. Keys that the task
/// does not bring are random, and nothing else knows them.
#[derive(Default)]
pub struct Keys {
    /// AES-256 key.
    aes: Option<Vec<u8>>,
    /// Key of the code by which a card number is found.
    code: Option<Vec<u8>>,
    /// RSA private key, in PKCS #8.
    rsa: Option<Vec<u8>>,
}

impl Keys {
    pub fn of(task: &Task) -> Result<Keys, Failure> {
        Ok(Keys { aes: task.hex("aes_key")?, code: task.hex("code_key")?, rsa: task.hex("rsa_key")? })
    }
}

/// Makes the application's protection for a choice. Returns None if the application does not perform the
/// choice.
pub fn of(choice: &str, keys: &Keys) -> Result<Option<Box<dyn Protection>>, Failure> {
    Ok(Some(match choice {
        "aes-256-gcm" => Box::new(Values(Aead::with(keys)?)),
        "blind-index" => Box::new(BlindIndex::with(keys)?),
        "envelope-aes" => Box::new(Envelope(Aead::with(keys)?)),
        "envelope-rsa" => Box::new(Envelope(Rsa::with(keys)?)),
        "rsa-oaep" => Box::new(Values(Rsa::with(keys)?)),
        _ => return Ok(None),
    }))
}

/// A cipher with its own key, which binds a ciphertext to a context.
trait Cipher: Sized + 'static {
    fn with(keys: &Keys) -> Result<Self, Failure>;

    fn fresh() -> Result<Self, Failure> {
        Self::with(&Keys::default())
    }

    fn seal(&self, bound_to: &[u8], value: &[u8], out: &mut Vec<u8>) -> Result<(), Failure>;
    /// Decrypts into `value`, whose length must be that of the plaintext; a ciphertext of another length is
    /// refused.
    fn open(&self, bound_to: &[u8], sealed: &[u8], value: &mut [u8]) -> Result<(), Failure>;
}

/// AES-256-GCM: a random nonce, the ciphertext, the tag.
struct Aead(LessSafeKey);

impl Aead {
    fn new(key: &[u8; KEY_BYTES]) -> Result<Aead, Failure> {
        let key = UnboundKey::new(&AES_256_GCM, key).map_err(|_| failed("setting up an AES key"))?;
        Ok(Aead(LessSafeKey::new(key)))
    }
}

impl Cipher for Aead {
    fn with(keys: &Keys) -> Result<Aead, Failure> {
        Aead::new(&given_or_random("aes_key", keys.aes.as_deref())?)
    }

    fn seal(&self, bound_to: &[u8], value: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        let nonce: [u8; NONCE_LEN] = random()?;
        out.clear();
        out.extend_from_slice(&nonce);
        out.resize(NONCE_LEN + value.len() + TAG_BYTES, 0);
        let (ciphertext, tag) = out[NONCE_LEN..].split_at_mut(value.len());
        let nonce = Nonce::assume_unique_for_key(nonce);
        self.0
            .seal_out_of_place_scatter(nonce, Aad::from(bound_to), value, ciphertext, &[], tag)
            .map_err(|_| failed("encrypting a value"))
    }

    fn open(&self, bound_to: &[u8], sealed: &[u8], value: &mut [u8]) -> Result<(), Failure> {
        if sealed.len() != NONCE_LEN + value.len() + TAG_BYTES {
            return Err(refused());
        }
        let (nonce, sealed) = sealed.split_at(NONCE_LEN);
        let (ciphertext, tag) = sealed.split_at(value.len());
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| refused())?;
        let opened = self.0.open_separate_gather(nonce, Aad::from(bound_to), ciphertext, tag, value);
        opened.map_err(|_| refused())
    }
}

/// RSA-2048 with OAEP and SHA-256. The context of a ciphertext is OAEP's label.
struct Rsa {
    public: OaepPublicEncryptingKey,
    private: OaepPrivateDecryptingKey,
}

impl Cipher for Rsa {
    fn with(keys: &Keys) -> Result<Rsa, Failure> {
        let private = match keys.rsa.as_deref() {
            Some(pkcs8) => PrivateDecryptingKey::from_pkcs8(pkcs8)
                .ok()
                .filter(|key| key.key_size_bytes() == RSA_BYTES)
                .ok_or_else(|| {
                    Failure::Failed("the input `rsa_key_hex` must be an RSA-2048 key".to_owned())
                })?,
            None => {
                PrivateDecryptingKey::generate(KeySize::Rsa2048).map_err(|_| failed("making an RSA key"))?
            }
        };
        let both = OaepPublicEncryptingKey::new(private.public_key())
            .and_then(|public| Ok(Rsa { public, private: OaepPrivateDecryptingKey::new(private)? }));
        both.map_err(|_| failed("setting up an RSA key"))
    }

    fn seal(&self, bound_to: &[u8], value: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        out.resize(RSA_BYTES, 0);
        let sealed = self.public.encrypt(&OAEP_SHA256_MGF1SHA256, value, out, Some(bound_to));
        sealed.map(|_| ()).map_err(|_| failed("encrypting a value"))
    }

    fn open(&self, bound_to: &[u8], sealed: &[u8], value: &mut [u8]) -> Result<(), Failure> {
        // The plaintext may be a data key, so that it is cleared.
        let mut plain = Zeroizing::new([0; RSA_BYTES]);
        let opened = self.private.decrypt(&OAEP_SHA256_MGF1SHA256, sealed, &mut plain[..], Some(bound_to));
        match opened {
            Ok(opened) if opened.len() == value.len() => {
                value.copy_from_slice(opened);
                Ok(())
            }
            _ => Err(refused()),
        }
    }
}

/// Each value encrypted by itself, with one key.
struct Values<C>(C);

impl<C: Cipher> Protection for Values<C> {
    fn seal(&mut self, card: &Card, sealed: &mut Sealed) -> Result<(), Failure> {
        sealed.extra.clear();
        seal_values(&self.0, card, sealed)
    }

    fn open(&mut self, id: i64, stored: Stored<'_>) -> Result<(i64, i16, Text), Failure> {
        open_values(&self.0, id, stored)
    }

    fn open_number(&mut self, id: i64, number: &[u8], _: &[u8]) -> Result<i64, Failure> {
        open_number(&self.0, id, number)
    }

    fn with_fresh_keys(&self) -> Result<Box<dyn Protection>, Failure> {
        Ok(Box::new(Values(C::fresh()?)))
    }
}

/// AES-256-GCM for each value, and HMAC-SHA-256 of the card number with a separate key, to find the row.
struct BlindIndex {
    values: Values<Aead>,
    codes: hmac::Key,
}

impl BlindIndex {
    fn with(keys: &Keys) -> Result<BlindIndex, Failure> {
        let codes = given_or_random("code_key", keys.code.as_deref())?;
        Ok(BlindIndex { values: Values(Aead::with(keys)?), codes: hmac::Key::new(hmac::HMAC_SHA256, &codes) })
    }

    fn code(&self, number: i64) -> [u8; 32] {
        let mut code = [0; 32];
        code.copy_from_slice(hmac::sign(&self.codes, &number.to_be_bytes()).as_ref());
        code
    }
}

impl Protection for BlindIndex {
    fn seal(&mut self, card: &Card, sealed: &mut Sealed) -> Result<(), Failure> {
        self.values.seal(card, sealed)?;
        sealed.extra.extend_from_slice(&self.code(card.numbers[0]));
        Ok(())
    }

    fn open(&mut self, id: i64, stored: Stored<'_>) -> Result<(i64, i16, Text), Failure> {
        self.values.open(id, stored)
    }

    fn open_number(&mut self, id: i64, number: &[u8], extra: &[u8]) -> Result<i64, Failure> {
        self.values.open_number(id, number, extra)
    }

    fn extra(&self) -> Extra {
        Extra::NumberCode
    }

    fn number_code(&self, number: i64) -> Option<[u8; 32]> {
        Some(self.code(number))
    }

    fn with_fresh_keys(&self) -> Result<Box<dyn Protection>, Failure> {
        Ok(Box::new(BlindIndex::with(&Keys::default())?))
    }
}

/// A data key for each row, sealed with a permanent key; the values are encrypted with the data key. The data
/// key is cleared as soon as it is set up, as in a careful application: AWS-LC clears its own copy.
struct Envelope<C>(C);

/// Number instead of a column's place, to which a data key is bound besides its row.
const DATA_KEY_PLACE: u8 = 14;

impl<C: Cipher> Envelope<C> {
    fn data_key(&self, id: i64, sealed: &[u8]) -> Result<Aead, Failure> {
        let mut data_key = Zeroizing::new([0; KEY_BYTES]);
        self.0.open(&bound_to(id, DATA_KEY_PLACE), sealed, &mut data_key[..])?;
        Aead::new(&data_key)
    }
}

impl<C: Cipher> Protection for Envelope<C> {
    fn seal(&mut self, card: &Card, sealed: &mut Sealed) -> Result<(), Failure> {
        // The key is cleared in place at the end of the block, because a move would leave a copy.
        let values = {
            let mut data_key = Zeroizing::new([0; KEY_BYTES]);
            fill_randomly(&mut data_key[..])?;
            self.0.seal(&bound_to(card.id, DATA_KEY_PLACE), &data_key[..], &mut sealed.extra)?;
            Aead::new(&data_key)?
        };
        seal_values(&values, card, sealed)
    }

    fn open(&mut self, id: i64, stored: Stored<'_>) -> Result<(i64, i16, Text), Failure> {
        let Stored::Sealed { extra, .. } = stored else { return Err(refused()) };
        open_values(&self.data_key(id, extra)?, id, stored)
    }

    fn open_number(&mut self, id: i64, number: &[u8], extra: &[u8]) -> Result<i64, Failure> {
        open_number(&self.data_key(id, extra)?, id, number)
    }

    fn extra(&self) -> Extra {
        Extra::DataKey
    }

    fn with_fresh_keys(&self) -> Result<Box<dyn Protection>, Failure> {
        Ok(Box::new(Envelope(C::fresh()?)))
    }
}

fn seal_values(cipher: &impl Cipher, card: &Card, sealed: &mut Sealed) -> Result<(), Failure> {
    let at = |column: Column| bound_to(card.id, column.place());
    cipher.seal(&at(Column::Number), &card.numbers[0].to_be_bytes(), &mut sealed.number)?;
    cipher.seal(&at(Column::Code), &card.codes[0].to_be_bytes(), &mut sealed.code)?;
    cipher.seal(&at(Column::String), &card.strings[0], &mut sealed.string)
}

fn open_values(cipher: &impl Cipher, id: i64, stored: Stored<'_>) -> Result<(i64, i16, Text), Failure> {
    let Stored::Sealed { number, code, string, .. } = stored else { return Err(refused()) };
    let at = |column: Column| bound_to(id, column.place());
    let (mut code_bytes, mut text) = ([0; 2], [0; STRING_BYTES]);
    let number = open_number(cipher, id, number)?;
    cipher.open(&at(Column::Code), code, &mut code_bytes)?;
    cipher.open(&at(Column::String), string, &mut text)?;
    Ok((number, i16::from_be_bytes(code_bytes), text))
}

fn open_number(cipher: &impl Cipher, id: i64, number: &[u8]) -> Result<i64, Failure> {
    let mut bytes = [0; 8];
    cipher.open(&bound_to(id, Column::Number.place()), number, &mut bytes)?;
    Ok(i64::from_be_bytes(bytes))
}

/// Returns the context of a value: its row and its column.
fn bound_to(id: i64, place: u8) -> [u8; 9] {
    let mut bytes = [place; 9];
    bytes[..8].copy_from_slice(&id.to_be_bytes());
    bytes
}

/// Returns random bytes of AWS-LC.
fn random<const BYTES: usize>() -> Result<[u8; BYTES], Failure> {
    let mut bytes = [0; BYTES];
    fill_randomly(&mut bytes)?;
    Ok(bytes)
}

fn fill_randomly(bytes: &mut [u8]) -> Result<(), Failure> {
    rand::fill(bytes).map_err(|_| failed("drawing random bytes"))
}

fn given_or_random(name: &str, given: Option<&[u8]>) -> Result<[u8; KEY_BYTES], Failure> {
    given.map_or_else(random, |bytes| {
        bytes.try_into().map_err(|_| {
            Failure::Failed(format!(
                "the input `{name}_hex` must have {KEY_BYTES} bytes, not {}",
                bytes.len()
            ))
        })
    })
}

fn failed(doing: &str) -> Failure {
    Failure::Failed(format!("AWS-LC failed at {doing}"))
}

fn refused() -> Failure {
    Failure::Failed("a stored value is not the one that was encrypted for its place".to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::super::card::Cards;
    use super::*;

    /// Values of two columns differ in length, which alone causes a refusal; here the lengths are equal.
    fn binds<C: Cipher>() {
        let cipher = C::fresh().expect("a key");
        let (value, mut sealed, mut opened) = ([7; 8], Vec::new(), [0; 8]);
        cipher.seal(&bound_to(1, 2), &value, &mut sealed).expect("sealed");
        assert!(cipher.open(&bound_to(1, 6), &sealed, &mut opened).is_err(), "another column");
        assert!(cipher.open(&bound_to(2, 2), &sealed, &mut opened).is_err(), "another row");
        assert!(cipher.open(&bound_to(1, 2), &sealed, &mut [0; 7]).is_err(), "another length");
        cipher.open(&bound_to(1, 2), &sealed, &mut opened).expect("opened");
        assert_eq!(value, opened);
    }

    /// Returns the bytes that a thread's calls have left below this call's frame on its stack.
    fn left_on_the_stack() -> Vec<u8> {
        let mut left = vec![0; 64 << 10];
        let memory = std::fs::File::open("/proc/self/mem").expect("this process's memory");
        let here = (&raw const memory).addr() as u64;
        memory.read_exact_at(&mut left, here - (64 << 10)).expect("the rest of the stack");
        left
    }

    /// Calls a function from a frame that later calls do not overwrite.
    #[inline(never)]
    fn deep_down<T>(call: impl FnOnce() -> T) -> T {
        let room = [0_u8; 16 << 10];
        std::hint::black_box(&room);
        call()
    }

    fn clears<C: Cipher + Send>() {
        let mut envelope = Envelope(C::fresh().expect("a key"));
        let card = Cards::new(1, "").card(1);
        let mut sealed = Sealed::default();
        deep_down(|| envelope.seal(&card, &mut sealed)).expect("sealed");
        let after_sealing = left_on_the_stack();
        let number = deep_down(|| envelope.open_number(1, &sealed.number, &sealed.extra));
        let after_opening = left_on_the_stack();
        assert_eq!(Ok(card.numbers[0]), number.map_err(Failure::into_words));
        let mut key = vec![0; KEY_BYTES];
        envelope.0.open(&bound_to(1, DATA_KEY_PLACE), &sealed.extra, &mut key).expect("the data key");
        for (left, when) in [(after_sealing, "sealing"), (after_opening, "opening")] {
            assert!(!left.windows(KEY_BYTES).any(|bytes| bytes == key), "a data key is left after {when}");
        }
    }

    #[test]
    fn an_envelope_clears_its_data_keys() {
        for clears in [clears::<Aead>, clears::<Rsa>] {
            std::thread::spawn(clears).join().expect("no data key is left");
        }
    }

    #[test]
    fn a_cipher_binds_a_value_to_its_place() {
        binds::<Aead>();
        binds::<Rsa>();
    }
}
