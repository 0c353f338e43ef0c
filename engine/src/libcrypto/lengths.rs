//! The functions whose lengths are `int` in OpenSSL, and `size_t` in AWS-LC and BoringSSL.
//!
//! Called with an `int`, a function that reads a `size_t` finds half of it left to chance. So the library says
//! which of the two it is, and is called by that type.

use std::ffi::{c_char, c_int, c_uchar, c_uint, c_void};

use libloading::os::unix::Library;

use super::objects::{Handle, Owned};
use crate::binding::bind;
use crate::contract::Failure;

type Bytes = *const c_uchar;
type Out = *mut c_uchar;

bind! {
    Functions<L>
    parts {}
    required {
        fn PKCS5_PBKDF2_HMAC(*const c_char, L, Bytes, L, c_int, Handle, L, Out) -> c_int;
        fn HMAC_Init_ex(Handle, *const c_void, L, Handle, Handle) -> c_int;
        fn BIO_new_mem_buf(*const c_void, L) -> Handle;
        fn RSA_sign(c_int, Bytes, L, Out, *mut c_uint, Handle) -> c_int;
        fn RSA_verify(c_int, Bytes, L, Bytes, L, Handle) -> c_int;
        fn BN_bin2bn(Bytes, L, Handle) -> Handle;
        fn RAND_bytes(Out, L) -> c_int;
    }
    optional {}
}

#[derive(Clone)]
pub enum Lengths {
    Int(Functions<c_int>),
    Size(Functions<usize>),
}

/// What the version lines of libraries with `size_t` hold; every other one follows OpenSSL.
const SIZE_T: [&str; 2] = ["AWS-LC", "BoringSSL"];

macro_rules! call {
    ($lengths:expr, $functions:ident => $call:expr) => {
        match $lengths {
            Lengths::Int($functions) => $call,
            Lengths::Size($functions) => $call,
        }
    };
}

impl Lengths {
    pub fn bind(library: &Library) -> Result<Lengths, &'static str> {
        // SAFETY: the function has this type in all these libraries, and gives a string of the library's own.
        let version = unsafe {
            let version: unsafe extern "C" fn(c_int) -> *const c_char =
                *library.get(b"OpenSSL_version\0").map_err(|_| "OpenSSL_version")?;
            super::objects::text(version(0)).unwrap_or_default()
        };
        Ok(match SIZE_T.iter().any(|name| version.contains(name)) {
            true => Lengths::Size(Functions::bind(library)?),
            false => Lengths::Int(Functions::bind(library)?),
        })
    }

    /// `PKCS5_PBKDF2_HMAC`; 1 when done.
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
            let derive = functions.PKCS5_PBKDF2_HMAC;
            let out = out.as_mut_ptr();
            // SAFETY: each length is its buffer's, in the library's own type.
            Ok(unsafe { derive(password_at, password, salt_at, salt, iterations, digest, length, out) })
        })
    }

    /// `HMAC_Init_ex`; 1 when done.
    pub fn hmac_init(&self, context: &Owned, key: &[u8], digest: Handle) -> Result<c_int, Failure> {
        let (key_at, null) = (key.as_ptr().cast(), std::ptr::null_mut());
        call!(self, functions => {
            let length = length(key.len())?;
            // SAFETY: the context is alive, and the length is the key's, in the library's own type.
            Ok(unsafe { (functions.HMAC_Init_ex)(context.handle, key_at, length, digest, null) })
        })
    }

    /// `RAND_bytes`; 1 when done.
    #[inline(always)]
    pub fn random(&self, out: &mut [u8]) -> Result<c_int, Failure> {
        call!(self, functions => {
            let length = length(out.len())?;
            // SAFETY: the length is the buffer's, in the library's own type.
            Ok(unsafe { (functions.RAND_bytes)(out.as_mut_ptr(), length) })
        })
    }

    /// `BIO_new_mem_buf`, which does not copy; null where the library has no memory.
    pub fn memory_bio(&self, bytes: &[u8]) -> Result<Handle, Failure> {
        call!(self, functions => {
            let length = length(bytes.len())?;
            // SAFETY: the length is the buffer's, in the library's own type.
            Ok(unsafe { (functions.BIO_new_mem_buf)(bytes.as_ptr().cast(), length) })
        })
    }

    /// `RSA_sign`; 1 when done.
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
            // SAFETY: the key is alive, the length is the digest's, and the caller's promise.
            Ok(unsafe { sign(digest_number, digest.as_ptr(), length, out.as_mut_ptr(), written, key.handle) })
        })
    }

    /// `RSA_verify`; 1 when the signature is right.
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
            Ok(unsafe { verify(digest_number, digest_at, digest, signature_at, signature, key.handle) })
        })
    }

    /// `BN_bin2bn`: a big-endian number; null where the library has no memory.
    pub fn number(&self, bytes: &[u8]) -> Result<Handle, Failure> {
        call!(self, functions => {
            let length = length(bytes.len())?;
            // SAFETY: the length is the buffer's, in the library's own type.
            Ok(unsafe { (functions.BN_bin2bn)(bytes.as_ptr(), length, std::ptr::null_mut()) })
        })
    }
}

fn length<L: TryFrom<usize>>(bytes: usize) -> Result<L, Failure> {
    L::try_from(bytes).map_err(|_| Failure::Failed(format!("{bytes} bytes are more than this library takes")))
}

#[cfg(test)]
impl Lengths {
    /// The same for a library that has no memory for a reader of bytes, or for a number.
    pub fn without_memory(self) -> Lengths {
        unsafe extern "C" fn no_bio<L>(_: *const c_void, _: L) -> Handle {
            std::ptr::null_mut()
        }
        unsafe extern "C" fn no_number<L>(_: Bytes, _: L, _: Handle) -> Handle {
            std::ptr::null_mut()
        }
        match self {
            Lengths::Int(have) => {
                Lengths::Int(Functions { BIO_new_mem_buf: no_bio, BN_bin2bn: no_number, ..have })
            }
            Lengths::Size(have) => {
                Lengths::Size(Functions { BIO_new_mem_buf: no_bio, BN_bin2bn: no_number, ..have })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each flavour gets a length in its own type: whole, or not at all.
    #[test]
    fn a_length_arrives_whole_or_is_refused() {
        const MUCH: usize = 5 << 30;
        assert_eq!((17, 17), (length::<c_int>(17).expect("a few"), length::<usize>(17).expect("a few")));
        assert_eq!(MUCH, length::<usize>(MUCH).expect("many"));
        let refusal = length::<c_int>(MUCH).expect_err("more than an int counts");
        assert!(matches!(refusal, Failure::Failed(reason) if reason.starts_with("5368709120 bytes")));
    }
}
