//! Symmetric ciphers, including DES, RC2 and RC4, which an OpenSSL 3 keeps in a separate module.

use std::ffi::{CStr, c_int};

use super::api::{Api, Handle, Owned, c_name, text};
use crate::binding::file_of;
use crate::contract::Task;
use crate::failure::Failure;
use crate::families::cipher::{self as family, Check, Direction, Message, Shape, TAG_BYTES};
use crate::families::{self, Prepared};

/// Name of a cipher in libcrypto, its inputs, and whether OpenSSL 3 keeps it in its legacy module.
type Row = (&'static str, Shape, bool);

const fn cbc(name: &'static str, key_bytes: usize, block: usize) -> Row {
    (name, Shape { key_bytes, iv_bytes: block, check: Check::Padding(block) }, false)
}

const fn ctr(name: &'static str, key_bytes: usize) -> Row {
    (name, Shape { key_bytes, iv_bytes: 16, check: Check::Nothing }, false)
}

const fn aead(name: &'static str, key_bytes: usize) -> Row {
    (name, Shape { key_bytes, iv_bytes: 12, check: Check::Tag }, false)
}

const fn legacy((name, shape, _): Row) -> Row {
    (name, shape, true)
}

const RC4: Shape = Shape { key_bytes: 16, iv_bytes: 0, check: Check::Nothing };

const CIPHERS: &[(&str, Row)] = &[
    ("des-cbc", legacy(cbc("DES-CBC", 8, 8))),
    ("3des-cbc", cbc("DES-EDE3-CBC", 24, 8)),
    ("rc2-cbc", legacy(cbc("RC2-CBC", 16, 8))),
    ("rc4", ("RC4", RC4, true)),
    ("aes-128-cbc", cbc("AES-128-CBC", 16, 16)),
    ("aes-192-cbc", cbc("AES-192-CBC", 24, 16)),
    ("aes-256-cbc", cbc("AES-256-CBC", 32, 16)),
    ("aes-128-ctr", ctr("AES-128-CTR", 16)),
    ("aes-192-ctr", ctr("AES-192-CTR", 24)),
    ("aes-256-ctr", ctr("AES-256-CTR", 32)),
    ("aes-128-gcm", aead("AES-128-GCM", 16)),
    ("aes-192-gcm", aead("AES-192-GCM", 24)),
    ("aes-256-gcm", aead("AES-256-GCM", 32)),
    ("chacha20-poly1305", aead("ChaCha20-Poly1305", 32)),
    ("camellia-256-cbc", cbc("CAMELLIA-256-CBC", 32, 16)),
    ("aria-256-cbc", cbc("ARIA-256-CBC", 32, 16)),
];

const CTRL_AEAD_GET_TAG: c_int = 0x10;
const CTRL_AEAD_SET_TAG: c_int = 0x11;

pub fn offers(api: &Api) -> Vec<&'static str> {
    families::offered(CIPHERS, |row| find(api, row).is_ok())
}

fn find(api: &Api, (name, _, is_legacy): &Row) -> Result<Handle, Failure> {
    if *is_legacy {
        load_legacy(api)?;
    }
    api.find(api.EVP_CIPHER_fetch, Some(api.EVP_get_cipherbyname), name)
}

pub fn prepare(api: &'static Api, task: &Task) -> Prepared {
    let row = families::row("libcrypto", task, CIPHERS)?;
    family::prepare(task, Cipher { api, shape: row.1, handle: find(api, row)? })
}

struct Cipher {
    api: &'static Api,
    shape: Shape,
    handle: Handle,
}

/// A context with a key's schedule.
struct Key {
    context: Owned,
    /// Key that each message must set again: that of a stream cipher without an IV.
    again: Option<Vec<u8>>,
}

impl family::Cipher for Cipher {
    type Key = Key;

    fn shape(&self) -> Shape {
        self.shape
    }

    #[inline(always)]
    fn random(&self, into: &mut [u8]) -> Result<(), Failure> {
        let done = self.api.dialect.random(into)?;
        self.api.ensure(done == 1, "random bytes")
    }

    fn key(&self, key: &[u8], direction: Direction) -> Result<Key, Failure> {
        let context = self.context()?;
        self.init(&context, direction, self.handle, Some(key), None)?;
        Ok(Key { context, again: (self.shape.iv_bytes == 0).then(|| key.to_vec()) })
    }

    // Inlined with its callees: the direction is then a constant, and only a few nanoseconds remain around
    // the library's calls.
    #[inline(always)]
    fn crypt(&self, key: &Key, message: Message, out: &mut Vec<u8>) -> Result<(), Failure> {
        let (cipher, again) = (std::ptr::null_mut(), key.again.as_deref());
        self.init(&key.context, message.direction, cipher, again, Some(message.iv))?;
        self.run(&key.context, message, out)
    }

    /// Sets cipher, key and IV in one call, like a program that knows them all.
    fn crypt_once(&self, key: &[u8], message: Message, out: &mut Vec<u8>) -> Result<(), Failure> {
        let context = self.context()?;
        self.init(&context, message.direction, self.handle, Some(key), Some(message.iv))?;
        self.run(&context, message, out)
    }
}

impl Cipher {
    fn context(&self) -> Result<Owned, Failure> {
        let api = self.api;
        // SAFETY: it takes no arguments, and gives a context that the caller owns.
        unsafe { api.own((api.EVP_CIPHER_CTX_new)(), api.EVP_CIPHER_CTX_free, "EVP_CIPHER_CTX_new") }
    }

    /// Calls `EVP_EncryptInit_ex` or `EVP_DecryptInit_ex`; null arguments leave their part unchanged.
    #[inline(always)]
    fn init(
        &self,
        context: &Owned,
        direction: Direction,
        cipher: Handle,
        key: Option<&[u8]>,
        iv: Option<&[u8]>,
    ) -> Result<(), Failure> {
        let pointer = |bytes: Option<&[u8]>, length: usize| match bytes {
            None => Ok(std::ptr::null()),
            Some(bytes) if bytes.len() == length => Ok(bytes.as_ptr()),
            Some(bytes) => {
                let given = bytes.len();
                Err(Failure::Failed(format!("the key or IV has {given} bytes; it must have {length}")))
            }
        };
        let (key, iv) = (pointer(key, self.shape.key_bytes)?, pointer(iv, self.shape.iv_bytes)?);
        let init = match direction {
            Direction::Encrypt => self.api.EVP_EncryptInit_ex,
            Direction::Decrypt => self.api.EVP_DecryptInit_ex,
        };
        // SAFETY: key and IV are null, or have this cipher's lengths.
        let done = unsafe { init(context.raw(), cipher, std::ptr::null_mut(), key, iv) };
        self.api.ensure(done == 1, "the cipher cannot be set up")
    }

    /// Encrypts and stores the tag, or checks the tag or padding and decrypts.
    #[inline(always)]
    fn run(&self, context: &Owned, message: Message, out: &mut Vec<u8>) -> Result<(), Failure> {
        let (api, context) = (self.api, context.raw());
        let Message { direction, aad, .. } = message;
        let has_tag = self.shape.check == Check::Tag;
        let (update, finish) = match direction {
            Direction::Encrypt => (api.EVP_EncryptUpdate, api.EVP_EncryptFinal_ex),
            Direction::Decrypt => (api.EVP_DecryptUpdate, api.EVP_DecryptFinal_ex),
        };
        let (data, room, tag) = match direction {
            Direction::Encrypt => (message.data, self.shape.check.sealed_bytes(message.data.len()), None),
            Direction::Decrypt if has_tag => {
                let (data, tag) = message.split_tag()?;
                (data, data.len(), Some(tag))
            }
            // Decrypting with padding needs room for one block more than the input (EVP_EncryptInit(3)).
            Direction::Decrypt => (message.data, message.data.len() + self.shape.check.block_bytes(), None),
        };
        out.resize(room, 0);
        let (mut length, mut rest) = (0, 0);
        // SAFETY: the library writes at most a ciphertext with its padding, a plaintext and a block, and the
        // tag after the ciphertext, and there is room for them; lengths are below 2^30 (`Task::bytes`).
        let done = unsafe {
            let tag_bytes = TAG_BYTES as c_int;
            let control = api.EVP_CIPHER_CTX_ctrl;
            let at = out.as_mut_ptr();
            (aad.is_empty()
                || update(context, std::ptr::null_mut(), &mut length, aad.as_ptr(), aad.len() as c_int) == 1)
                && update(context, at, &mut length, data.as_ptr(), data.len() as c_int) == 1
                && tag.is_none_or(|tag| {
                    control(context, CTRL_AEAD_SET_TAG, tag_bytes, tag.as_ptr().cast_mut().cast()) == 1
                })
                && finish(context, at.add(length as usize), &mut rest) == 1
                && (!has_tag
                    || direction == Direction::Decrypt
                    || control(context, CTRL_AEAD_GET_TAG, tag_bytes, at.add(data.len()).cast()) == 1)
        };
        api.ensure(done, if direction == Direction::Encrypt { "encrypting" } else { "decrypting" })?;
        let tag_bytes = if has_tag && direction == Direction::Encrypt { TAG_BYTES } else { 0 };
        out.truncate((length + rest) as usize + tag_bytes);
        Ok(())
    }
}

/// Loads DES, RC2 and RC4 if OpenSSL 3 keeps them in a separate module.
fn load_legacy(api: &Api) -> Result<(), Failure> {
    // Older libraries and forks have them built in.
    let (Some(load), Some(unload)) = (api.OSSL_PROVIDER_load, api.OSSL_PROVIDER_unload) else {
        return Ok(());
    };
    let null = std::ptr::null_mut();
    let load = |name: &CStr| -> Option<Handle> {
        // SAFETY: the name ends with a zero; a null library context means the default one.
        let module = unsafe { load(null, name.as_ptr()) };
        (!module.is_null()).then_some(module)
    };
    api.clear_errors();
    // The default module must be loaded first, because loading another one stops its automatic loading.
    load(c"default").ok_or_else(|| api.failed("the default module"))?;
    let Some(module) = load(c"legacy").or_else(|| search_next_to(api).and_then(|()| load(c"legacy"))) else {
        api.clear_errors();
        return Err(Failure::Unsupported(format!(
            "this library has no legacy module: {}",
            modules_folder(api)
        )));
    };
    api.modules.stand_on(api.version_function()).inspect_err(|_| {
        // SAFETY: it was loaded above, and no part of it is in use.
        unsafe { unload(module) };
    })?;
    api.clear_errors();
    Ok(())
}

/// Names the folder in which the library looks for modules by itself.
fn modules_folder(api: &Api) -> String {
    const OPENSSL_INFO_MODULES_DIR: c_int = 1003;
    // SAFETY: every number gives a string that the library owns, or null.
    let folder = api.OPENSSL_info.and_then(|info| unsafe { text(info(OPENSSL_INFO_MODULES_DIR)) });
    format!("it searches {}", folder.as_deref().unwrap_or("a folder that it does not name"))
}

/// Makes the library look for modules in its own folder, because it may have been moved with them after the
/// build.
fn search_next_to(api: &Api) -> Option<()> {
    let folder = file_of(api.version_function())?.parent()?.join("ossl-modules");
    let folder = folder.is_dir().then(|| c_name(&folder.to_string_lossy()))?;
    let search_in = api.OSSL_PROVIDER_set_default_search_path?;
    // SAFETY: the name ends with a zero.
    (unsafe { search_in(std::ptr::null_mut(), folder.as_ptr()) } == 1).then_some(())
}
