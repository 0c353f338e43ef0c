//! The functions whose lengths are `int` in OpenSSL, and `size_t` in AWS-LC and BoringSSL.
//!
//! Called with an `int`, a function that reads a `size_t` finds half of it left to chance. So the library says
//! which of the two it is, and is called by that type.

use std::ffi::{CStr, c_char, c_int, c_uchar, c_uint, c_void};

use libloading::os::unix::Library;

use super::objects::{Handle, Owned};
use crate::contract::Failure;

type Bytes = *const c_uchar;
type Out = *mut c_uchar;
type Pbkdf2<L> = unsafe extern "C" fn(*const c_char, L, Bytes, L, c_int, Handle, L, Out) -> c_int;
type HmacInit<L> = unsafe extern "C" fn(Handle, *const c_void, L, Handle, Handle) -> c_int;
type MemoryBio<L> = unsafe extern "C" fn(*const c_void, L) -> Handle;
type RsaSign<L> = unsafe extern "C" fn(c_int, Bytes, L, Out, *mut c_uint, Handle) -> c_int;
type Number<L> = unsafe extern "C" fn(Bytes, L, Handle) -> Handle;

#[derive(Clone, Copy)]
pub enum Lengths {
    Int(Functions<c_int>),
    Size(Functions<usize>),
}

#[derive(Clone, Copy)]
pub struct Functions<L> {
    pbkdf2: Pbkdf2<L>,
    hmac_init: HmacInit<L>,
    memory_bio: MemoryBio<L>,
    rsa_sign: RsaSign<L>,
    number: Number<L>,
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
            let derive = functions.pbkdf2;
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
            Ok(unsafe { (functions.hmac_init)(context.handle, key_at, length, digest, null) })
        })
    }

    /// `BIO_new_mem_buf`, which does not copy; null where the library has no memory.
    pub fn memory_bio(&self, bytes: &[u8]) -> Result<Handle, Failure> {
        call!(self, functions => {
            let length = length(bytes.len())?;
            // SAFETY: the length is the buffer's, in the library's own type.
            Ok(unsafe { (functions.memory_bio)(bytes.as_ptr().cast(), length) })
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
            let sign = functions.rsa_sign;
            // SAFETY: the key is alive, the length is the digest's, and the caller's promise.
            Ok(unsafe { sign(digest_number, digest.as_ptr(), length, out.as_mut_ptr(), written, key.handle) })
        })
    }

    /// `BN_bin2bn`: a big-endian number; null where the library has no memory.
    pub fn number(&self, bytes: &[u8]) -> Result<Handle, Failure> {
        call!(self, functions => {
            let length = length(bytes.len())?;
            // SAFETY: the length is the buffer's, in the library's own type.
            Ok(unsafe { (functions.number)(bytes.as_ptr(), length, std::ptr::null_mut()) })
        })
    }
}

impl<L> Functions<L> {
    fn bind(library: &Library) -> Result<Functions<L>, &'static str> {
        // SAFETY: each has the type of its name, with lengths as this library has them.
        unsafe {
            Ok(Functions {
                pbkdf2: get(library, c"PKCS5_PBKDF2_HMAC", "PKCS5_PBKDF2_HMAC")?,
                hmac_init: get(library, c"HMAC_Init_ex", "HMAC_Init_ex")?,
                memory_bio: get(library, c"BIO_new_mem_buf", "BIO_new_mem_buf")?,
                rsa_sign: get(library, c"RSA_sign", "RSA_sign")?,
                number: get(library, c"BN_bin2bn", "BN_bin2bn")?,
            })
        }
    }
}

/// # Safety
/// `F` is the type of the function with this name.
unsafe fn get<F: Copy>(library: &Library, symbol: &CStr, name: &'static str) -> Result<F, &'static str> {
    // SAFETY: the caller's promise.
    unsafe { library.get(symbol.to_bytes_with_nul()) }.map(|found| *found).map_err(|_| name)
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
            Lengths::Int(have) => Lengths::Int(Functions { memory_bio: no_bio, number: no_number, ..have }),
            Lengths::Size(have) => Lengths::Size(Functions { memory_bio: no_bio, number: no_number, ..have }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" fn pbkdf2<L>(
        _: *const c_char,
        _: L,
        _: Bytes,
        _: L,
        _: c_int,
        _: Handle,
        _: L,
        _: Out,
    ) -> c_int {
        1
    }
    unsafe extern "C" fn hmac_init<L>(_: Handle, _: *const c_void, _: L, _: Handle, _: Handle) -> c_int {
        1
    }
    /// Gives its length back as the object.
    unsafe extern "C" fn memory_bio_int(_: *const c_void, length: c_int) -> Handle {
        length as usize as Handle
    }
    unsafe extern "C" fn memory_bio_size(_: *const c_void, length: usize) -> Handle {
        length as Handle
    }
    unsafe extern "C" fn rsa_sign<L>(_: c_int, _: Bytes, _: L, _: Out, _: *mut c_uint, _: Handle) -> c_int {
        1
    }
    unsafe extern "C" fn number<L>(_: Bytes, _: L, _: Handle) -> Handle {
        std::ptr::null_mut()
    }

    fn functions<L>(memory_bio: MemoryBio<L>) -> Functions<L> {
        Functions { pbkdf2, hmac_init, memory_bio, rsa_sign, number }
    }

    /// Bytes that are only an address: more of them than an `int` counts, and none is touched.
    fn reserved(bytes: usize) -> &'static [u8] {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: the mapping is readable as zeros, and stays for the life of the process.
        unsafe {
            let at = libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ, flags, -1, 0);
            assert_ne!(libc::MAP_FAILED, at);
            std::slice::from_raw_parts(at.cast(), bytes)
        }
    }

    /// Each flavour gets a length in its own type: whole, or not at all.
    #[test]
    fn a_length_arrives_whole_or_is_refused() {
        let (int, size) =
            (Lengths::Int(functions(memory_bio_int)), Lengths::Size(functions(memory_bio_size)));
        let much = reserved(5 << 30);
        for lengths in [int, size] {
            assert_eq!(17, lengths.memory_bio(&much[..17]).expect("a few bytes") as usize);
        }
        assert_eq!(5 << 30, size.memory_bio(much).expect("many bytes") as usize);
        let refusal = int.memory_bio(much).expect_err("more than an int counts");
        assert!(matches!(refusal, Failure::Failed(reason) if reason.starts_with("5368709120 bytes")));
    }
}
