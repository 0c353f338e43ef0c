//! Functions of a libcrypto, bound at run time from a shared object that the user names.
//!
//! The build needs no part of OpenSSL. A function that every libcrypto since OpenSSL 1.1.1 has, including
//! AWS-LC and BoringSSL, is required, and a file without it is refused. A function that only some have is an
//! `Option`.

use std::ffi::{CStr, c_int, c_long, c_uchar, c_uint, c_void};
use std::marker::PhantomData;
#[cfg(test)]
use std::mem::offset_of;
use std::path::Path;

use libloading::os::unix::Library;

use super::dialect::Dialect;
use super::modules::Modules;
use super::objects::Text;
pub use super::objects::{Free, Handle, Owned, c_name, text};
use crate::binding::{self, bind};
use crate::failure::Failure;
#[cfg(test)]
use tollbar_testing::headers::Field;

type Bytes = *const c_uchar;
type Out = *mut c_uchar;
type Size = usize;
pub type Fetch = unsafe extern "C" fn(Handle, Text, Text) -> Handle;
pub type ReadPem = unsafe extern "C" fn(Handle, *mut Handle, *const c_void, *mut c_void) -> Handle;
pub type ReadDer = unsafe extern "C" fn(*mut Handle, *mut Bytes, c_long) -> Handle;
pub type ByName = unsafe extern "C" fn(Text) -> Handle;

/// `OSSL_PARAM`: a named value, as OpenSSL 3 passes them.
#[repr(C)]
pub struct RawParam {
    key: Text,
    kind: c_uint,
    data: *mut c_void,
    size: Size,
    returned: Size,
}

/// A `RawParam` that borrows its data, so that it cannot outlive them.
#[repr(transparent)]
pub struct Param<'a> {
    raw: RawParam,
    data: PhantomData<&'a [u8]>,
}

bind! {
    parts {
        dialect: Dialect;
        modules: Modules;
    }
    required {
        fn ERR_clear_error();
        fn OpenSSL_version(c_int) -> Text;
        fn OBJ_sn2nid(Text) -> c_int;
        fn EVP_get_digestbyname(Text) -> Handle;
        fn EVP_get_cipherbyname(Text) -> Handle;
        fn EVP_Digest(Bytes, Size, Out, *mut c_uint, Handle, Handle) -> c_int;
        fn EVP_MD_CTX_new() -> Handle;
        fn EVP_MD_CTX_free(Handle);
        fn EVP_CIPHER_CTX_new() -> Handle;
        fn EVP_CIPHER_CTX_free(Handle);
        fn EVP_CIPHER_CTX_ctrl(Handle, c_int, c_int, *mut c_void) -> c_int;
        fn EVP_EncryptInit_ex(Handle, Handle, Handle, Bytes, Bytes) -> c_int;
        fn EVP_EncryptUpdate(Handle, Out, *mut c_int, Bytes, c_int) -> c_int;
        fn EVP_EncryptFinal_ex(Handle, Out, *mut c_int) -> c_int;
        fn EVP_DecryptInit_ex(Handle, Handle, Handle, Bytes, Bytes) -> c_int;
        fn EVP_DecryptUpdate(Handle, Out, *mut c_int, Bytes, c_int) -> c_int;
        fn EVP_DecryptFinal_ex(Handle, Out, *mut c_int) -> c_int;
        fn HMAC_CTX_new() -> Handle;
        fn HMAC_CTX_free(Handle);
        fn HMAC_Update(Handle, Bytes, Size) -> c_int;
        fn HMAC_Final(Handle, Out, *mut c_uint) -> c_int;
        fn EVP_DigestSignInit(Handle, *mut Handle, Handle, Handle, Handle) -> c_int;
        fn EVP_DigestSign(Handle, Out, *mut Size, Bytes, Size) -> c_int;
        fn EVP_DigestVerifyInit(Handle, *mut Handle, Handle, Handle, Handle) -> c_int;
        fn EVP_DigestVerify(Handle, Bytes, Size, Bytes, Size) -> c_int;
        fn EVP_PKEY_new() -> Handle;
        fn EVP_PKEY_free(Handle);
        fn EVP_PKEY_copy_parameters(Handle, Handle) -> c_int;
        fn EVP_PKEY_CTX_new(Handle, Handle) -> Handle;
        fn EVP_PKEY_CTX_new_id(c_int, Handle) -> Handle;
        fn EVP_PKEY_CTX_free(Handle);
        fn EVP_PKEY_keygen_init(Handle) -> c_int;
        fn EVP_PKEY_keygen(Handle, *mut Handle) -> c_int;
        fn EVP_PKEY_sign_init(Handle) -> c_int;
        fn EVP_PKEY_sign(Handle, Out, *mut Size, Bytes, Size) -> c_int;
        fn EVP_PKEY_verify_init(Handle) -> c_int;
        fn EVP_PKEY_verify(Handle, Bytes, Size, Bytes, Size) -> c_int;
        fn EVP_PKEY_derive_init(Handle) -> c_int;
        fn EVP_PKEY_derive_set_peer(Handle, Handle) -> c_int;
        fn EVP_PKEY_derive(Handle, Out, *mut Size) -> c_int;
        fn EVP_PKEY_encrypt_init(Handle) -> c_int;
        fn EVP_PKEY_encrypt(Handle, Out, *mut Size, Bytes, Size) -> c_int;
        fn EVP_PKEY_decrypt_init(Handle) -> c_int;
        fn EVP_PKEY_decrypt(Handle, Out, *mut Size, Bytes, Size) -> c_int;
        fn BIO_free(Handle) -> c_int;
        fn PEM_read_bio_PrivateKey(Handle, *mut Handle, *const c_void, *mut c_void) -> Handle;
        fn PEM_read_bio_RSAPrivateKey(Handle, *mut Handle, *const c_void, *mut c_void) -> Handle;
        fn PEM_read_bio_PUBKEY(Handle, *mut Handle, *const c_void, *mut c_void) -> Handle;
        fn PEM_read_bio_RSAPublicKey(Handle, *mut Handle, *const c_void, *mut c_void) -> Handle;
        fn d2i_AutoPrivateKey(*mut Handle, *mut Bytes, c_long) -> Handle;
        fn d2i_RSAPrivateKey(*mut Handle, *mut Bytes, c_long) -> Handle;
        fn d2i_RSAPublicKey(*mut Handle, *mut Bytes, c_long) -> Handle;
        fn d2i_PUBKEY(*mut Handle, *mut Bytes, c_long) -> Handle;
        fn EVP_PKEY_set1_RSA(Handle, Handle) -> c_int;
        fn RSA_new() -> Handle;
        fn RSA_free(Handle);
        fn RSA_set0_key(Handle, Handle, Handle, Handle) -> c_int;
        fn RSA_set0_factors(Handle, Handle, Handle) -> c_int;
        fn RSA_set0_crt_params(Handle, Handle, Handle, Handle) -> c_int;
        fn BN_free(Handle);
    }
    optional {
        // A library has one of each pair, or both: a macro here is a function there.
        fn CRYPTO_free(*mut c_void, Text, c_int);
        fn OPENSSL_free(*mut c_void);
        fn EVP_PKEY_get_size(Handle) -> c_int;
        fn EVP_PKEY_size(Handle) -> c_int;
        fn EVP_PKEY_CTX_ctrl(Handle, c_int, c_int, c_int, c_int, *mut c_void) -> c_int;
        fn OPENSSL_info(c_int) -> Text;
        fn OSSL_PROVIDER_load(Handle, Text) -> Handle;
        fn OSSL_PROVIDER_unload(Handle) -> c_int;
        fn OSSL_PROVIDER_set_default_search_path(Handle, Text) -> c_int;
        fn EVP_MD_fetch(Handle, Text, Text) -> Handle;
        fn EVP_CIPHER_fetch(Handle, Text, Text) -> Handle;
        fn EVP_MAC_fetch(Handle, Text, Text) -> Handle;
        fn EVP_MAC_CTX_new(Handle) -> Handle;
        fn EVP_MAC_CTX_free(Handle);
        fn EVP_MAC_CTX_set_params(Handle, *const RawParam) -> c_int;
        fn EVP_MAC_init(Handle, Bytes, Size, *const RawParam) -> c_int;
        fn EVP_MAC_update(Handle, Bytes, Size) -> c_int;
        fn EVP_MAC_final(Handle, Out, *mut Size, Size) -> c_int;
        fn EVP_KDF_fetch(Handle, Text, Text) -> Handle;
        fn EVP_KDF_CTX_new(Handle) -> Handle;
        fn EVP_KDF_CTX_free(Handle);
        fn EVP_KDF_derive(Handle, Out, Size, *const RawParam) -> c_int;
        fn EVP_PBE_scrypt(Text, Size, Bytes, Size, u64, u64, u64, u64, Out, Size) -> c_int;
        fn EVP_PKEY_CTX_new_from_name(Handle, Text, Text) -> Handle;
        fn EVP_PKEY_CTX_set_rsa_keygen_bits(Handle, c_int) -> c_int;
        fn EVP_PKEY_CTX_set_rsa_padding(Handle, c_int) -> c_int;
        fn EVP_PKEY_CTX_set_rsa_pss_saltlen(Handle, c_int) -> c_int;
        fn EVP_PKEY_CTX_set_signature_md(Handle, Handle) -> c_int;
        fn EVP_PKEY_CTX_set_ec_paramgen_curve_nid(Handle, c_int) -> c_int;
        fn EVP_PKEY_CTX_set_group_name(Handle, Text) -> c_int;
        fn EVP_PKEY_fromdata_init(Handle) -> c_int;
        fn EVP_PKEY_fromdata(Handle, *mut Handle, c_int, *mut RawParam) -> c_int;
        fn EVP_PKEY_get_octet_string_param(Handle, Text, Out, Size, *mut Size) -> c_int;
        fn EVP_PKEY_get1_encoded_public_key(Handle, *mut Out) -> Size;
        fn EVP_PKEY_set1_encoded_public_key(Handle, Bytes, Size) -> c_int;
        fn EVP_PKEY_get1_tls_encodedpoint(Handle, *mut Out) -> Size;
        fn EVP_PKEY_set1_tls_encodedpoint(Handle, Bytes, Size) -> c_int;
        fn EVP_PKEY_new_raw_public_key(c_int, Handle, Bytes, Size) -> Handle;
        fn EVP_PKEY_new_raw_private_key(c_int, Handle, Bytes, Size) -> Handle;
        fn EVP_PKEY_encapsulate_init(Handle, *const RawParam) -> c_int;
        fn EVP_PKEY_encapsulate(Handle, Out, *mut Size, Out, *mut Size) -> c_int;
        fn EVP_PKEY_decapsulate_init(Handle, *const RawParam) -> c_int;
        fn EVP_PKEY_decapsulate(Handle, Out, *mut Size, Bytes, Size) -> c_int;
    }
}

impl Api {
    pub fn open(path: &str) -> Result<&'static Api, Failure> {
        binding::open(Path::new(path), "libcrypto of OpenSSL 1.1.1 or later", Api::bind)
            .map_err(Failure::Failed)
    }

    /// Returns the library's message for its last error, after the attempted operation.
    pub fn words(&self, trying: &str) -> String {
        let Some(words) = self.dialect.last_error() else {
            return format!("{trying}: this library does not support it, and gives no reason");
        };
        // The error is cleared, because a later failure without a message must not get this one.
        self.clear_errors();
        format!("{trying}: {words}")
    }

    /// Returns a failure for an unsupported operation, with the library's message.
    pub fn unsupported(&self, trying: &str) -> Failure {
        Failure::Unsupported(self.words(trying))
    }

    /// Returns a failure for an operation that should have worked, with the library's message.
    pub fn failed(&self, trying: &str) -> Failure {
        Failure::Failed(self.words(trying))
    }

    /// Fails with the library's message unless the operation was done.
    pub fn ensure(&self, done: bool, trying: &str) -> Result<(), Failure> {
        if done { Ok(()) } else { Err(self.failed(trying)) }
    }

    /// Returns the output of a call. It gets a buffer of `room` bytes and its length, and sets the length
    /// that it used.
    #[inline]
    pub fn filled(
        &self,
        room: usize,
        trying: &str,
        call: impl FnOnce(Out, *mut Size) -> c_int,
    ) -> Result<Vec<u8>, Failure> {
        let (mut out, mut length) = (vec![0; room], room);
        let done = call(out.as_mut_ptr(), &mut length);
        self.ensure(done == 1, trying)?;
        out.truncate(length);
        Ok(out)
    }

    /// Takes ownership of an object that the library has just returned, or fails with its message.
    ///
    /// # Safety
    /// The handle is null, or an object that only the caller may free, by `free`.
    pub unsafe fn own(&self, handle: Handle, free: Free, trying: &str) -> Result<Owned, Failure> {
        // SAFETY: the caller's promise.
        unsafe { Owned::new(handle, free) }.ok_or_else(|| self.failed(trying))
    }

    /// Returns the library's object for an algorithm, fetched if possible, so that no operation pays for the
    /// look-up.
    pub fn find(&self, fetch: Option<Fetch>, by_name: Option<ByName>, name: &str) -> Result<Handle, Failure> {
        self.clear_errors();
        let text = c_name(name);
        let found = match (fetch, by_name) {
            // SAFETY: the name ends with a zero; a null context and null properties mean the default ones.
            (Some(fetch), _) => unsafe { fetch(std::ptr::null_mut(), text.as_ptr(), std::ptr::null()) },
            // SAFETY: the name ends with a zero.
            (None, Some(by_name)) => unsafe { by_name(text.as_ptr()) },
            (None, None) => std::ptr::null_mut(),
        };
        if found.is_null() { Err(self.unsupported(name)) } else { Ok(found) }
    }

    /// Calls `EVP_PKEY_CTX_ctrl`. Returns -2, its result for unknown commands, if the library does not have
    /// it.
    pub fn key_control(
        &self,
        context: Handle,
        key_kind: c_int,
        operations: c_int,
        (command, number): (c_int, c_int),
        pointer: Handle,
    ) -> c_int {
        match self.EVP_PKEY_CTX_ctrl {
            // SAFETY: the context is alive, and these commands take a number or one of the library's own objects.
            Some(control) => unsafe { control(context, key_kind, operations, command, number, pointer) },
            None => -2,
        }
    }

    /// Clears errors, so that a message found later belongs to the next operation.
    pub fn clear_errors(&self) {
        // SAFETY: it takes no arguments.
        unsafe { (self.ERR_clear_error)() }
    }

    /// Passes these bytes to one of the library's readers, and returns its result.
    pub fn read_from<T>(&self, bytes: &[u8], read: impl FnOnce(Handle) -> T) -> Result<T, Failure> {
        self.clear_errors();
        // SAFETY: it is freed below.
        let source = unsafe { self.dialect.memory_bio(bytes)? };
        self.ensure(!source.is_null(), "BIO_new_mem_buf")?;
        let answer = read(source);
        // SAFETY: it was made above, and the reader keeps no reference to it.
        unsafe { (self.BIO_free)(source) };
        Ok(answer)
    }

    /// Returns the address of a function that every libcrypto has, which identifies the library.
    pub fn version_function(&self) -> *const c_void {
        self.OpenSSL_version as *const c_void
    }

    /// Returns one of the library's version lines; see `OpenSSL_version(3)`.
    pub fn version(&self, which: c_int) -> String {
        // SAFETY: every number gives a string that the library owns.
        unsafe { text((self.OpenSSL_version)(which)) }.unwrap_or_default()
    }

    /// Shortens `OpenSSL 3.0.19 27 Jan 2026 (Library: …)` to `openssl 3.0.19`; BoringSSL has no version to
    /// shorten.
    pub fn name(&self) -> String {
        self.version(0).split_whitespace().take(2).collect::<Vec<_>>().join(" ").to_lowercase()
    }
}

/// Returns a function that only some libraries have, or refuses the operation.
pub fn have<F>(function: Option<F>, name: &str) -> Result<F, Failure> {
    function.ok_or_else(|| Failure::Unsupported(format!("this library has no {name}")))
}

#[cfg(test)]
impl RawParam {
    /// Returns the fields by OpenSSL's names.
    pub fn fields() -> [Field; 5] {
        [
            Field::of("key", offset_of!(RawParam, key), |param: RawParam| param.key),
            Field::of("data_type", offset_of!(RawParam, kind), |param: RawParam| param.kind),
            Field::of("data", offset_of!(RawParam, data), |param: RawParam| param.data),
            Field::of("data_size", offset_of!(RawParam, size), |param: RawParam| param.size),
            Field::of("return_size", offset_of!(RawParam, returned), |param: RawParam| param.returned),
        ]
    }
}

impl Param<'_> {
    pub fn octets<'a>(key: &'static CStr, data: &'a [u8]) -> Param<'a> {
        Param::new(key, 5, data)
    }

    pub fn utf8<'a>(key: &'static CStr, data: &'a CStr) -> Param<'a> {
        Param::new(key, 4, data.to_bytes())
    }

    /// Makes a whole number in the machine's byte order, of any length.
    pub fn number<'a>(key: &'static CStr, data: &'a [u8]) -> Param<'a> {
        Param::new(key, 2, data)
    }

    /// Makes the end mark of a list.
    pub const fn end() -> Param<'static> {
        let null = std::ptr::null_mut();
        let raw = RawParam { key: std::ptr::null(), kind: 0, data: null, size: 0, returned: 0 };
        Param { raw, data: PhantomData }
    }

    fn new<'a>(key: &'static CStr, kind: c_uint, data: &'a [u8]) -> Param<'a> {
        let (at, size) = (data.as_ptr().cast_mut().cast(), data.len());
        let raw = RawParam { key: key.as_ptr(), kind, data: at, size, returned: usize::MAX };
        Param { raw, data: PhantomData }
    }

    /// Returns the list's pointer. The library reads up to the end mark, which must be there.
    pub fn list(params: &mut [Param]) -> *mut RawParam {
        assert!(params.last().is_some_and(|last| last.raw.key.is_null()), "parameters without an end");
        params.as_mut_ptr().cast()
    }
}
