//! SQLCipher, with its own names for SQLite's functions and without cryptography of its own.
//!
//! A crate of its own because its compiler works for half a minute and needs nothing of another library.

use std::ffi::{c_char, c_int, c_uchar, c_void};

/// Functions by which SQLCipher encrypts pages and derives keys: `sqlcipher_provider` of its source.
#[repr(C)]
pub struct Cryptography {
    pub init: Option<unsafe extern "C" fn() -> c_int>,
    pub shutdown: Option<unsafe extern "C" fn()>,
    pub name: unsafe extern "C" fn(*mut c_void) -> *const c_char,
    pub add_random: unsafe extern "C" fn(*mut c_void, *const c_void, c_int) -> c_int,
    pub random: unsafe extern "C" fn(*mut c_void, *mut c_void, c_int) -> c_int,
    /// Context, algorithm, key and its bytes, two messages and their bytes, code.
    pub hmac: unsafe extern "C" fn(
        *mut c_void,
        c_int,
        *const c_uchar,
        c_int,
        *const c_uchar,
        c_int,
        *const c_uchar,
        c_int,
        *mut c_uchar,
    ) -> c_int,
    /// Context, algorithm, passphrase and salt and their bytes, iterations, bytes of the key, key.
    pub kdf: unsafe extern "C" fn(
        *mut c_void,
        c_int,
        *const c_uchar,
        c_int,
        *const c_uchar,
        c_int,
        c_int,
        c_int,
        *mut c_uchar,
    ) -> c_int,
    /// Context, 1 to encrypt, key and its bytes, initialisation vector, input and its bytes, output.
    pub cipher: unsafe extern "C" fn(
        *mut c_void,
        c_int,
        *const c_uchar,
        c_int,
        *const c_uchar,
        *const c_uchar,
        c_int,
        *mut c_uchar,
    ) -> c_int,
    pub cipher_name: unsafe extern "C" fn(*mut c_void) -> *const c_char,
    pub key_bytes: unsafe extern "C" fn(*mut c_void) -> c_int,
    pub iv_bytes: unsafe extern "C" fn(*mut c_void) -> c_int,
    pub block_bytes: unsafe extern "C" fn(*mut c_void) -> c_int,
    pub hmac_bytes: unsafe extern "C" fn(*mut c_void, c_int) -> c_int,
    pub open: unsafe extern "C" fn(*mut *mut c_void) -> c_int,
    pub close: unsafe extern "C" fn(*mut *mut c_void) -> c_int,
    pub fips: unsafe extern "C" fn(*mut c_void) -> c_int,
    pub version: unsafe extern "C" fn(*mut c_void) -> *const c_char,
    /// The next of SQLCipher's list, which it sets itself.
    pub next: *mut Cryptography,
}

/// SHA-1, SHA-256 and SHA-512, as SQLCipher numbers them for codes and for keys.
pub const SHA_1: c_int = 0;
pub const SHA_256: c_int = 1;
pub const SHA_512: c_int = 2;

unsafe extern "C" {
    /// Table of SQLite's functions, in the order of src/table.c.
    pub static tollbar_sqlcipher: c_void;
    static tollbar_sqlcipher_provider_bytes: usize;
    fn tollbar_sqlcipher_use(cryptography: *const Cryptography);
}

/// Gives SQLCipher its cryptography. Without it no database opens.
///
/// # Safety
/// Each function keeps its promise of SQLCipher's source, and no database of it is open or being opened.
pub unsafe fn encrypt_by(cryptography: &Cryptography) {
    // SAFETY: the number is a constant; the table is copied, and the caller promises the rest.
    unsafe {
        assert_eq!(tollbar_sqlcipher_provider_bytes, size_of::<Cryptography>(), "another SQLCipher");
        tollbar_sqlcipher_use(cryptography);
    }
}
