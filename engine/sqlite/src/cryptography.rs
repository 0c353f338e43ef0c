//! Cryptography of SQLCipher by AWS-LC.
//!
//! SQLCipher's own provider for OpenSSL needs OpenSSL 3 (`EVP_MAC`), which AWS-LC does not have. These functions make
//! the same calls as that one, except for the code of a page: HMAC with its context on the stack.

use std::ffi::{CStr, c_char, c_int, c_uchar, c_void};
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};

use aws_lc_sys as aws_lc;
use rusqlite::ffi::{SQLITE_ERROR, SQLITE_OK};
use tollbar_sqlcipher::{Cryptography, SHA_1, SHA_256, SHA_512};

pub const AWS_LC: Cryptography = Cryptography {
    init: None,
    shutdown: None,
    name,
    add_random,
    random,
    hmac,
    kdf,
    cipher,
    cipher_name,
    key_bytes,
    iv_bytes,
    block_bytes,
    hmac_bytes,
    open,
    close: open,
    fips,
    version,
    next: null_mut(),
};

const NAME: &CStr = c"aws-lc";
const CIPHER: &CStr = c"aes-256-cbc";

fn status(done: bool) -> c_int {
    if done { SQLITE_OK } else { SQLITE_ERROR }
}

unsafe extern "C" fn name(_: *mut c_void) -> *const c_char {
    NAME.as_ptr()
}

unsafe extern "C" fn version(_: *mut c_void) -> *const c_char {
    // SAFETY: it takes a number, and returns a constant text.
    unsafe { aws_lc::OpenSSL_version(aws_lc::OPENSSL_VERSION) }
}

/// Adds nothing: AWS-LC seeds itself, and takes nothing from an application.
unsafe extern "C" fn add_random(_: *mut c_void, _: *const c_void, _: c_int) -> c_int {
    SQLITE_OK
}

unsafe extern "C" fn random(_: *mut c_void, buffer: *mut c_void, bytes: c_int) -> c_int {
    // SAFETY: SQLCipher passes a buffer of this length.
    status(unsafe { aws_lc::RAND_bytes(buffer.cast(), bytes as usize) } == 1)
}

/// Returns the digest of SQLCipher's number, or null.
fn digest(algorithm: c_int) -> *const aws_lc::EVP_MD {
    // SAFETY: each returns a constant.
    unsafe {
        match algorithm {
            SHA_1 => aws_lc::EVP_sha1(),
            SHA_256 => aws_lc::EVP_sha256(),
            SHA_512 => aws_lc::EVP_sha512(),
            _ => null(),
        }
    }
}

unsafe extern "C" fn hmac(
    _: *mut c_void,
    algorithm: c_int,
    key: *const c_uchar,
    key_bytes: c_int,
    first: *const c_uchar,
    first_bytes: c_int,
    second: *const c_uchar,
    second_bytes: c_int,
    out: *mut c_uchar,
) -> c_int {
    let digest = digest(algorithm);
    if digest.is_null() || first.is_null() {
        return SQLITE_ERROR;
    }
    let mut context = MaybeUninit::<aws_lc::HMAC_CTX>::uninit();
    let context = context.as_mut_ptr();
    // SAFETY: the context is made before it is used and cleaned up after it; SQLCipher passes keys and messages of
    // these lengths, and room for a digest.
    unsafe {
        aws_lc::HMAC_CTX_init(context);
        let done = aws_lc::HMAC_Init_ex(context, key.cast(), key_bytes as usize, digest, null_mut()) == 1
            && aws_lc::HMAC_Update(context, first, first_bytes as usize) == 1
            && (second.is_null() || aws_lc::HMAC_Update(context, second, second_bytes as usize) == 1)
            && aws_lc::HMAC_Final(context, out, null_mut()) == 1;
        aws_lc::HMAC_CTX_cleanup(context);
        status(done)
    }
}

unsafe extern "C" fn kdf(
    _: *mut c_void,
    algorithm: c_int,
    passphrase: *const c_uchar,
    passphrase_bytes: c_int,
    salt: *const c_uchar,
    salt_bytes: c_int,
    iterations: c_int,
    key_bytes: c_int,
    key: *mut c_uchar,
) -> c_int {
    let digest = digest(algorithm);
    if digest.is_null() {
        return SQLITE_ERROR;
    }
    // SAFETY: SQLCipher passes inputs and a key of these lengths.
    let done = unsafe {
        aws_lc::PKCS5_PBKDF2_HMAC(
            passphrase.cast(),
            passphrase_bytes as usize,
            salt,
            salt_bytes as usize,
            iterations as u32,
            digest,
            key_bytes as usize,
            key,
        )
    };
    status(done == 1)
}

unsafe extern "C" fn cipher(
    _: *mut c_void,
    encrypts: c_int,
    key: *const c_uchar,
    _key_bytes: c_int,
    iv: *const c_uchar,
    input: *const c_uchar,
    input_bytes: c_int,
    out: *mut c_uchar,
) -> c_int {
    let (mut part, mut rest) = (0, 0);
    // SAFETY: the context is used while it exists; SQLCipher passes whole blocks, room for as many, a key and an
    // initialisation vector of the lengths that it was told.
    unsafe {
        let context = aws_lc::EVP_CIPHER_CTX_new();
        if context.is_null() {
            return SQLITE_ERROR;
        }
        let cipher = aws_lc::EVP_aes_256_cbc();
        let done = aws_lc::EVP_CipherInit_ex(context, cipher, null_mut(), null(), null(), encrypts) == 1
            && aws_lc::EVP_CIPHER_CTX_set_padding(context, 0) == 1
            && aws_lc::EVP_CipherInit_ex(context, null(), null_mut(), key, iv, encrypts) == 1
            && aws_lc::EVP_CipherUpdate(context, out, &mut part, input, input_bytes) == 1
            && aws_lc::EVP_CipherFinal_ex(context, out.offset(part as isize), &mut rest) == 1
            && part + rest == input_bytes;
        aws_lc::EVP_CIPHER_CTX_free(context);
        status(done)
    }
}

unsafe extern "C" fn cipher_name(_: *mut c_void) -> *const c_char {
    CIPHER.as_ptr()
}

unsafe extern "C" fn key_bytes(_: *mut c_void) -> c_int {
    // SAFETY: the cipher is a constant.
    unsafe { aws_lc::EVP_CIPHER_key_length(aws_lc::EVP_aes_256_cbc()) as c_int }
}

unsafe extern "C" fn iv_bytes(_: *mut c_void) -> c_int {
    // SAFETY: the cipher is a constant.
    unsafe { aws_lc::EVP_CIPHER_iv_length(aws_lc::EVP_aes_256_cbc()) as c_int }
}

unsafe extern "C" fn block_bytes(_: *mut c_void) -> c_int {
    // SAFETY: the cipher is a constant.
    unsafe { aws_lc::EVP_CIPHER_block_size(aws_lc::EVP_aes_256_cbc()) as c_int }
}

unsafe extern "C" fn hmac_bytes(_: *mut c_void, algorithm: c_int) -> c_int {
    let digest = digest(algorithm);
    // SAFETY: the digest is a constant.
    if digest.is_null() { 0 } else { unsafe { aws_lc::EVP_MD_size(digest) as c_int } }
}

/// Opens or closes a context, which these functions do not need.
unsafe extern "C" fn open(_: *mut *mut c_void) -> c_int {
    SQLITE_OK
}

unsafe extern "C" fn fips(_: *mut c_void) -> c_int {
    0
}
