//! Symmetric ciphers. Which calls make up an operation is said in METHOD.md, because published tools
//! differ here by a third for no other reason.

mod context;

use super::api::{Api, Handle, c_name};
use super::modules::load_legacy;
use crate::buffers::{filled, tampered};
use crate::contract::{Failure, Proof, Task};
use crate::families::cipher::{EMPTY, NO_CHECK, NO_IV};
use crate::operation::Operation;

use context::{Cipher, Context, Way};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Whole blocks, PKCS#7 padding, a fresh initialisation vector for each message.
    Cbc,
    /// A fresh initial counter for each message.
    Ctr,
    /// A fresh nonce for each message, and a tag that is made and checked.
    Aead,
    /// No initialisation vector: a stream that must be keyed anew for each message.
    Stream,
}

pub struct Row {
    choice: &'static str,
    name: &'static str,
    mode: Mode,
    key_bytes: usize,
    iv_bytes: usize,
    /// OpenSSL 3 keeps it in its legacy module.
    legacy: bool,
}

const fn row(choice: &'static str, name: &'static str, mode: Mode, key_bytes: usize, iv_bytes: usize) -> Row {
    Row { choice, name, mode, key_bytes, iv_bytes, legacy: false }
}

const fn legacy(
    choice: &'static str,
    name: &'static str,
    mode: Mode,
    key_bytes: usize,
    iv_bytes: usize,
) -> Row {
    Row { choice, name, mode, key_bytes, iv_bytes, legacy: true }
}

const CIPHERS: &[Row] = &[
    legacy("des-cbc", "DES-CBC", Mode::Cbc, 8, 8),
    row("3des-cbc", "DES-EDE3-CBC", Mode::Cbc, 24, 8),
    legacy("rc2-cbc", "RC2-CBC", Mode::Cbc, 16, 8),
    legacy("rc4", "RC4", Mode::Stream, 16, 0),
    row("aes-128-cbc", "AES-128-CBC", Mode::Cbc, 16, 16),
    row("aes-192-cbc", "AES-192-CBC", Mode::Cbc, 24, 16),
    row("aes-256-cbc", "AES-256-CBC", Mode::Cbc, 32, 16),
    row("aes-128-ctr", "AES-128-CTR", Mode::Ctr, 16, 16),
    row("aes-192-ctr", "AES-192-CTR", Mode::Ctr, 24, 16),
    row("aes-256-ctr", "AES-256-CTR", Mode::Ctr, 32, 16),
    row("aes-128-gcm", "AES-128-GCM", Mode::Aead, 16, 12),
    row("aes-192-gcm", "AES-192-GCM", Mode::Aead, 24, 12),
    row("aes-256-gcm", "AES-256-GCM", Mode::Aead, 32, 12),
    row("chacha20-poly1305", "ChaCha20-Poly1305", Mode::Aead, 32, 12),
    row("camellia-256-cbc", "CAMELLIA-256-CBC", Mode::Cbc, 32, 16),
    row("aria-256-cbc", "ARIA-256-CBC", Mode::Cbc, 32, 16),
];

const TAG_BYTES: usize = 16;
const LONGEST_BLOCK: usize = 16;

pub fn offers(api: &Api) -> Vec<&'static str> {
    CIPHERS.iter().filter(|row| find(api, row).is_ok()).map(|row| row.choice).collect()
}

fn find(api: &Api, row: &Row) -> Result<Handle, Failure> {
    if row.legacy {
        load_legacy(api)?;
    }
    api.clear_errors();
    let name = c_name(row.name);
    let cipher = match api.EVP_CIPHER_fetch {
        Some(fetch) => unsafe { fetch(std::ptr::null_mut(), name.as_ptr(), std::ptr::null()) },
        None => unsafe { (api.EVP_get_cipherbyname)(name.as_ptr()) },
    };
    if cipher.is_null() { Err(api.unsupported(row.name)) } else { Ok(cipher) }
}

pub fn prepare(api: &'static Api, task: &Task) -> Result<Box<dyn Operation>, Failure> {
    let row = CIPHERS.iter().find(|row| row.choice == task.choice);
    let row = row.ok_or_else(|| Failure::Unsupported(format!("libcrypto has no cipher {}", task.choice)))?;
    let cipher = Cipher { api, row, handle: find(api, row)? };
    let key = filled(row.key_bytes, task.seed.wrapping_add(1));
    let iv = filled(row.iv_bytes, task.seed.wrapping_add(2));
    let data = filled(task.bytes(4096)?, task.seed);
    let fresh_key = match task.word("key", "kept")? {
        "kept" => false,
        "fresh" => true,
        other => return Err(Failure::Failed(format!("no such `key`: `{other}` (kept, fresh)"))),
    };
    let mut sealed = vec![0; data.len() + LONGEST_BLOCK];
    let mut tag = [0; TAG_BYTES];
    let length = cipher.context(Way::Encrypt, Some(&key))?.seal(&iv, &data, &mut sealed, &mut tag)?;
    sealed.truncate(length);
    let known = known_answer(task)?;
    let crypt = Crypt {
        encrypt: cipher.context(Way::Encrypt, Some(&key))?,
        decrypt: cipher.context(Way::Decrypt, Some(&key))?,
        output: vec![0; data.len() + LONGEST_BLOCK],
        opened: vec![0; data.len() + 2 * LONGEST_BLOCK],
        fresh_iv: iv.clone(),
        cipher,
        key,
        iv,
        data,
        sealed,
        tag,
        output_tag: [0; TAG_BYTES],
        fresh_key,
        known,
    };
    match task.op.as_str() {
        "encrypt" => Ok(Box::new(Encrypt(crypt))),
        "decrypt" => Ok(Box::new(Decrypt(crypt))),
        "round-trip" => Ok(Box::new(RoundTrip(crypt))),
        op => Err(Failure::Failed(format!("a cipher does not `{op}` (encrypt, decrypt, round-trip)"))),
    }
}

struct Known {
    key: Vec<u8>,
    iv: Vec<u8>,
    aad: Vec<u8>,
    of: Vec<u8>,
}

fn known_answer(task: &Task) -> Result<Option<Known>, Failure> {
    let Some(of) = task.message()? else { return Ok(None) };
    let (iv, aad) = (task.hex("iv")?.unwrap_or_default(), task.hex("aad")?.unwrap_or_default());
    Ok(Some(Known { key: task.need_hex("key")?, iv, aad, of }))
}

/// What all three operations hold.
struct Crypt {
    cipher: Cipher,
    encrypt: Context,
    decrypt: Context,
    key: Vec<u8>,
    /// The vector of the ciphertext that is decrypted over and over.
    iv: Vec<u8>,
    /// The vector of the next message: never the same twice.
    fresh_iv: Vec<u8>,
    data: Vec<u8>,
    sealed: Vec<u8>,
    tag: [u8; TAG_BYTES],
    /// The latest message of one's own, and its tag.
    output_tag: [u8; TAG_BYTES],
    output: Vec<u8>,
    opened: Vec<u8>,
    fresh_key: bool,
    known: Option<Known>,
}

impl Crypt {
    fn next_iv(&mut self) {
        for byte in &mut self.fresh_iv {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                break;
            }
        }
    }

    /// One message of one's own: with a fresh key everything is made and thrown away again.
    fn encrypt_once(&mut self) -> Result<usize, Failure> {
        self.next_iv();
        let Crypt { cipher, key, fresh_iv, data, output, output_tag: tag, .. } = self;
        if self.fresh_key || cipher.row.mode == Mode::Stream {
            let made;
            let context = if self.fresh_key {
                made = cipher.context(Way::Encrypt, None)?;
                &made
            } else {
                &self.encrypt
            };
            context.init(std::ptr::null_mut(), key, fresh_iv)?;
            context.seal_ready(data, output, tag)
        } else {
            self.encrypt.seal(fresh_iv, data, output, tag)
        }
    }

    fn decrypt_once(&mut self, own: bool, length: usize) -> Result<usize, Failure> {
        let Crypt { cipher, key, opened, .. } = self;
        let (iv, sealed, tag) = match own {
            true => (&self.fresh_iv, &self.output[..length], &self.output_tag),
            false => (&self.iv, &self.sealed[..], &self.tag),
        };
        if self.fresh_key || cipher.row.mode == Mode::Stream {
            let made;
            let context = if self.fresh_key {
                made = cipher.context(Way::Decrypt, None)?;
                &made
            } else {
                &self.decrypt
            };
            context.init(std::ptr::null_mut(), key, iv)?;
            context.open_ready(sealed, tag, opened)
        } else {
            self.decrypt.open(iv, sealed, tag, opened)
        }
    }

    fn opens_to(&self, key: &[u8], iv: &[u8], sealed: &[u8], tag: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        let context = self.cipher.context(Way::Decrypt, Some(key))?;
        let mut out = vec![0; sealed.len() + 2 * LONGEST_BLOCK];
        context.init(std::ptr::null_mut(), key, iv)?;
        let opened = context.open_ready(sealed, tag, &mut out).ok();
        self.cipher.api.clear_errors();
        Ok(opened.map(|length| out[..length].to_vec()))
    }

    fn prove(&mut self) -> Result<Proof, Failure> {
        let mut proof = Proof::default();
        let plain = Some(self.data.clone());
        let (key, iv, sealed, tag) = (&self.key, &self.iv, &self.sealed, &self.tag);
        proof.accept("its own ciphertext", self.opens_to(key, iv, sealed, tag)? == plain)?;
        if sealed.is_empty() && self.cipher.row.mode != Mode::Aead {
            proof.leave("a tampered ciphertext, another key", EMPTY);
            self.answer(&mut proof)?;
            return Ok(proof);
        }
        // Every bit of it other: DES leaves the lowest bit of each byte out of account.
        let other_key: Vec<u8> = key.iter().map(|byte| !byte).collect();
        proof.refuse("another key", self.opens_to(&other_key, iv, sealed, tag)? != plain)?;
        proof.refuse("a tampered ciphertext", self.opens_to(key, iv, &tampered(sealed), tag)? != plain)?;
        if self.cipher.row.mode == Mode::Aead {
            let opened = self.opens_to(key, iv, &tampered(sealed), tag)?;
            proof.refuse("a tampered ciphertext, by its tag", opened.is_none())?;
            proof.refuse("a tampered tag", self.opens_to(key, iv, sealed, &tampered(tag))?.is_none())?;
        } else if self.cipher.row.mode != Mode::Cbc {
            proof.leave("a tampered tag or padding", NO_CHECK);
        }
        let first = self.encrypt_once().map(|length| self.output[..length].to_vec())?;
        let second = self.encrypt_once().map(|length| self.output[..length].to_vec())?;
        // A stream cipher without a vector gives the same twice, and has to be keyed anew by its caller.
        if self.cipher.row.mode == Mode::Stream {
            proof.leave("the same ciphertext twice, another IV", NO_IV);
        } else {
            proof.refuse("the same ciphertext twice", first != second)?;
        }
        self.answer(&mut proof)?;
        Ok(proof)
    }

    /// The known answer, where the task carries one.
    fn answer(&self, proof: &mut Proof) -> Result<(), Failure> {
        if let Some(known) = &self.known {
            let cipher = &self.cipher;
            let mut context = cipher.context(Way::Encrypt, None)?;
            if cipher.row.mode == Mode::Cbc {
                context = context.without_padding();
            }
            context.init(std::ptr::null_mut(), &known.key, &known.iv)?;
            if !known.aad.is_empty() {
                context.associate(&known.aad)?;
            }
            let (mut out, mut tag) = (vec![0; known.of.len() + LONGEST_BLOCK], [0; TAG_BYTES]);
            let length = context.seal_ready(&known.of, &mut out, &mut tag)?;
            out.truncate(length);
            if cipher.row.mode == Mode::Aead {
                out.extend_from_slice(&tag);
            }
            proof.answer = Some(hex::encode(out));
        }
        Ok(())
    }
}

macro_rules! operation {
    ($name:ident, |$crypt:ident| $perform:expr) => {
        struct $name(Crypt);

        impl Operation for $name {
            fn perform(&mut self) -> Result<(), Failure> {
                let $crypt = &mut self.0;
                $perform
            }

            fn prove(&mut self) -> Result<Proof, Failure> {
                self.0.prove()
            }

            fn bytes(&self) -> u64 {
                self.0.data.len() as u64
            }
        }
    };
}

operation!(Encrypt, |crypt| crypt.encrypt_once().map(|_| ()));
operation!(Decrypt, |crypt| check_length(crypt.decrypt_once(false, 0)?, crypt.data.len()));
operation!(RoundTrip, |crypt| {
    let length = crypt.encrypt_once()?;
    check_length(crypt.decrypt_once(true, length)?, crypt.data.len())
});

fn check_length(found: usize, expected: usize) -> Result<(), Failure> {
    if found == expected {
        return Ok(());
    }
    Err(Failure::Failed(format!("decrypted to {found} bytes instead of {expected}")))
}
