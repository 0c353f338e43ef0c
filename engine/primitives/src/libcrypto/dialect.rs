//! Functions whose number types differ between OpenSSL on one side and AWS-LC and BoringSSL on the other.
//! Most have lengths that are `int` in OpenSSL and `size_t` in the forks.
//!
//! A function that reads a `size_t` but gets an `int` finds undefined bits in the other half. So the
//! library's version decides the type by which it is called.

use std::ffi::{CStr, c_char, c_int, c_uchar, c_uint, c_ulong, c_void};

use libloading::os::unix::Library;

use super::objects::{Handle, Owned};
use crate::binding::bind;
use crate::failure::Failure;

type Bytes = *const c_uchar;
type Out = *mut c_uchar;

bind! {
    OpenSsl
    parts {}
    required {
        fn PKCS5_PBKDF2_HMAC(*const c_char, c_int, Bytes, c_int, c_int, Handle, c_int, Out) -> c_int;
        fn HMAC_Init_ex(Handle, *const c_void, c_int, Handle, Handle) -> c_int;
        fn BIO_new_mem_buf(*const c_void, c_int) -> Handle;
        fn RSA_sign(c_int, Bytes, c_uint, Out, *mut c_uint, Handle) -> c_int;
        fn RSA_verify(c_int, Bytes, c_uint, Bytes, c_uint, Handle) -> c_int;
        fn BN_bin2bn(Bytes, c_int, Handle) -> Handle;
        fn RAND_bytes(Out, c_int) -> c_int;
        fn RSA_size(Handle) -> c_int;
        fn ERR_peek_last_error() -> c_ulong;
        fn ERR_error_string_n(c_ulong, *mut c_char, usize);
    }
    optional {}
}

bind! {
    Fork
    parts {}
    required {
        fn PKCS5_PBKDF2_HMAC(*const c_char, usize, Bytes, usize, c_uint, Handle, usize, Out) -> c_int;
        fn HMAC_Init_ex(Handle, *const c_void, usize, Handle, Handle) -> c_int;
        fn BIO_new_mem_buf(*const c_void, isize) -> Handle;
        fn RSA_sign(c_int, Bytes, usize, Out, *mut c_uint, Handle) -> c_int;
        fn RSA_verify(c_int, Bytes, usize, Bytes, usize, Handle) -> c_int;
        fn BN_bin2bn(Bytes, usize, Handle) -> Handle;
        fn RAND_bytes(Out, usize) -> c_int;
        fn RSA_size(Handle) -> c_uint;
        fn ERR_peek_last_error() -> c_uint;
        fn ERR_error_string_n(c_uint, *mut c_char, usize) -> *mut c_char;
    }
    optional {}
}

#[derive(Clone)]
pub enum Dialect {
    OpenSsl(OpenSsl),
    Fork(Fork),
}

/// Words in the version lines of the forks; every other library follows OpenSSL.
const FORKS: [&str; 2] = ["AWS-LC", "BoringSSL"];

/// Returns true if the library, or one that it links to, reports that it is one of the forks.
pub fn is_fork(library: &Library) -> Result<bool, &'static str> {
    // SAFETY: the function has this type in all these libraries, and gives a string that the library owns.
    let version = unsafe {
        let version: unsafe extern "C" fn(c_int) -> *const c_char =
            *library.get(b"OpenSSL_version\0").map_err(|_| "OpenSSL_version")?;
        super::objects::text(version(0)).unwrap_or_default()
    };
    Ok(FORKS.iter().any(|name| version.contains(name)))
}

macro_rules! call {
    ($dialect:expr, $functions:ident => $call:expr) => {
        match $dialect {
            Dialect::OpenSsl($functions) => $call,
            Dialect::Fork($functions) => $call,
        }
    };
}

impl Dialect {
    pub fn bind(library: &Library) -> Result<Dialect, &'static str> {
        Ok(match is_fork(library)? {
            true => Dialect::Fork(Fork::bind(library)?),
            false => Dialect::OpenSsl(OpenSsl::bind(library)?),
        })
    }

    /// Returns the library's message for its last error, or None if it has none.
    pub fn last_error(&self) -> Option<String> {
        let mut text: [c_char; 256] = [0; 256];
        call!(self, functions => {
            // SAFETY: it takes no arguments.
            let code = unsafe { (functions.ERR_peek_last_error)() };
            if code == 0 {
                return None;
            }
            // SAFETY: the length is the buffer's.
            unsafe { (functions.ERR_error_string_n)(code, text.as_mut_ptr(), text.len()) };
        });
        // SAFETY: the written text ends with a zero.
        Some(unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned())
    }

    /// Calls `PKCS5_PBKDF2_HMAC`. Returns 1 on success.
    pub fn pbkdf2(
        &self,
        password: &[u8],
        salt: &[u8],
        iterations: c_int,
        digest: Handle,
        out: &mut [u8],
    ) -> Result<c_int, Failure> {
        let (password_at, salt_at) = (password.as_ptr().cast(), salt.as_ptr());
        call!(self, functions => {
            let (password, salt, length) = (length(password.len())?, length(salt.len())?, length(out.len())?);
            let (iterations, derive) = (count(iterations)?, functions.PKCS5_PBKDF2_HMAC);
            let out = out.as_mut_ptr();
            // SAFETY: each length is its buffer's, in the library's own type.
            Ok(unsafe { derive(password_at, password, salt_at, salt, iterations, digest, length, out) })
        })
    }

    /// Calls `HMAC_Init_ex`. Returns 1 on success.
    pub fn hmac_init(&self, context: &Owned, key: &[u8], digest: Handle) -> Result<c_int, Failure> {
        let (key_at, null) = (key.as_ptr().cast(), std::ptr::null_mut());
        call!(self, functions => {
            let length = length(key.len())?;
            // SAFETY: the context is alive, and the length is the key's, in the library's own type.
            Ok(unsafe { (functions.HMAC_Init_ex)(context.raw(), key_at, length, digest, null) })
        })
    }

    /// Calls `RAND_bytes`. Returns 1 on success.
    #[inline(always)]
    pub fn random(&self, out: &mut [u8]) -> Result<c_int, Failure> {
        call!(self, functions => {
            let length = length(out.len())?;
            // SAFETY: the length is the buffer's, in the library's own type.
            Ok(unsafe { (functions.RAND_bytes)(out.as_mut_ptr(), length) })
        })
    }

    /// Calls `BIO_new_mem_buf`, which does not copy. Returns null if the library has no memory.
    ///
    /// # Safety
    /// The bytes outlive the result.
    pub unsafe fn memory_bio(&self, bytes: &[u8]) -> Result<Handle, Failure> {
        call!(self, functions => {
            let length = length(bytes.len())?;
            // SAFETY: the length is the buffer's, in the library's own type, and the caller promises that the
            // bytes live.
            Ok(unsafe { (functions.BIO_new_mem_buf)(bytes.as_ptr().cast(), length) })
        })
    }

    /// Calls `RSA_size`, which returns the bytes of a signature.
    pub fn rsa_size(&self, key: &Owned) -> usize {
        call!(self, functions => {
            // SAFETY: the key is alive.
            usize::try_from(unsafe { (functions.RSA_size)(key.raw()) }).unwrap_or(usize::MAX)
        })
    }

    /// Calls `RSA_sign`. Returns 1 on success.
    ///
    /// # Safety
    /// `out` has `RSA_size` bytes of room.
    pub unsafe fn rsa_sign(
        &self,
        digest_number: c_int,
        digest: &[u8],
        out: &mut [u8],
        written: &mut c_uint,
        key: &Owned,
    ) -> Result<c_int, Failure> {
        call!(self, functions => {
            let length = length(digest.len())?;
            let sign = functions.RSA_sign;
            // SAFETY: the key is alive, the length is the digest's, and the caller promises the room.
            Ok(unsafe { sign(digest_number, digest.as_ptr(), length, out.as_mut_ptr(), written, key.raw()) })
        })
    }

    /// Calls `RSA_verify`. Returns 1 if the signature is right.
    pub fn rsa_verify(
        &self,
        digest_number: c_int,
        digest: &[u8],
        signature: &[u8],
        key: &Owned,
    ) -> Result<c_int, Failure> {
        let (digest_at, signature_at) = (digest.as_ptr(), signature.as_ptr());
        call!(self, functions => {
            let (digest, signature) = (length(digest.len())?, length(signature.len())?);
            let verify = functions.RSA_verify;
            // SAFETY: the key is alive, and each length is its buffer's, in the library's own type.
            Ok(unsafe { verify(digest_number, digest_at, digest, signature_at, signature, key.raw()) })
        })
    }

    /// Calls `BN_bin2bn`, which reads a big-endian number. Returns null if the library has no memory.
    pub fn number(&self, bytes: &[u8]) -> Result<Handle, Failure> {
        call!(self, functions => {
            let length = length(bytes.len())?;
            // SAFETY: the length is the buffer's, in the library's own type.
            Ok(unsafe { (functions.BN_bin2bn)(bytes.as_ptr(), length, std::ptr::null_mut()) })
        })
    }
}

fn length<L: TryFrom<usize>>(bytes: usize) -> Result<L, Failure> {
    L::try_from(bytes).map_err(|_| Failure::Failed(format!("{bytes} bytes are too many for this library")))
}

fn count<N: TryFrom<c_int>>(times: c_int) -> Result<N, Failure> {
    N::try_from(times)
        .map_err(|_| Failure::Failed(format!("{times} iterations are too many for this library")))
}

/// For tests, here and of TLS.
impl Dialect {
    /// Returns the dialect of a library that has no memory for a reader of bytes, or for a number.
    pub fn without_memory(self) -> Dialect {
        unsafe extern "C" fn no_bio<L>(_: *const c_void, _: L) -> Handle {
            std::ptr::null_mut()
        }
        unsafe extern "C" fn no_number<L>(_: Bytes, _: L, _: Handle) -> Handle {
            std::ptr::null_mut()
        }
        match self {
            Dialect::OpenSsl(have) => {
                Dialect::OpenSsl(OpenSsl { BIO_new_mem_buf: no_bio, BN_bin2bn: no_number, ..have })
            }
            Dialect::Fork(have) => {
                Dialect::Fork(Fork { BIO_new_mem_buf: no_bio, BN_bin2bn: no_number, ..have })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each dialect gets a length in its own type, complete, or refuses it.
    #[test]
    fn a_length_arrives_whole_or_is_refused() {
        const MUCH: usize = 5 << 30;
        assert_eq!((17, 17), (length::<c_int>(17).expect("a few"), length::<usize>(17).expect("a few")));
        assert_eq!(MUCH, length::<usize>(MUCH).expect("many"));
        let refusal = length::<c_int>(MUCH).expect_err("more than an int counts");
        assert!(matches!(refusal, Failure::Failed(reason) if reason.starts_with("5368709120 bytes")));
    }
}
