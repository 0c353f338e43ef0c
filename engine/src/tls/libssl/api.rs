//! The functions of a libssl and of the libcrypto it stands on, bound at run time.
//!
//! Everything is looked up through the libssl, so that what is bound is what it uses itself. What OpenSSL has
//! had since 1.1.1 is bound or the file is refused; what only some versions have is an `Option`.

use std::ffi::{CStr, CString, c_char, c_int, c_long, c_uchar, c_uint, c_ulong, c_void};

use libloading::os::unix::Library;

use crate::binding::bind;
use crate::contract::Failure;
use crate::libcrypto::lengths::Lengths;

/// Any of the library's own objects.
pub type Handle = *mut c_void;
type Text = *const c_char;
/// What is always null here.
type Unused = Handle;
pub type Verify = unsafe extern "C" fn(Handle, Handle) -> c_int;
pub type NewSession = unsafe extern "C" fn(Handle, Handle) -> c_int;

bind! {
    parts {
        lengths: Lengths;
    }
    required {
        fn ERR_clear_error();
        // A number of 32 bits, in whichever type it comes: `unsigned long` or `uint32_t`.
        fn ERR_peek_last_error() -> c_uint;
        fn ERR_error_string_n(c_ulong, *mut c_char, usize);
        fn OpenSSL_version(c_int) -> Text;
        fn BIO_free(Handle) -> c_int;
        fn PEM_read_bio_X509(Handle, Unused, Unused, Unused) -> Handle;
        fn PEM_read_bio_PrivateKey(Handle, Unused, Unused, Unused) -> Handle;
        fn X509_free(Handle);
        fn i2d_X509(Handle, *mut *mut c_uchar) -> c_int;
        fn X509_STORE_add_cert(Handle, Handle) -> c_int;
        fn X509_STORE_CTX_get0_cert(Handle) -> Handle;
        fn EVP_PKEY_free(Handle);
        fn TLS_client_method() -> Handle;
        fn TLS_server_method() -> Handle;
        fn SSL_CTX_new(Handle) -> Handle;
        fn SSL_CTX_free(Handle);
        fn SSL_CTX_ctrl(Handle, c_int, c_long, *mut c_void) -> c_long;
        fn SSL_CTX_set_options(Handle, u64) -> u64;
        fn SSL_CTX_set_security_level(Handle, c_int);
        fn SSL_CTX_set_cipher_list(Handle, Text) -> c_int;
        fn SSL_CTX_set_ciphersuites(Handle, Text) -> c_int;
        fn SSL_CTX_use_certificate(Handle, Handle) -> c_int;
        fn SSL_CTX_use_PrivateKey(Handle, Handle) -> c_int;
        fn SSL_CTX_set_verify(Handle, c_int, Unused);
        fn SSL_CTX_set_cert_verify_callback(Handle, Verify, Handle);
        fn SSL_CTX_get_cert_store(Handle) -> Handle;
        fn SSL_CTX_add_client_CA(Handle, Handle) -> c_int;
        fn SSL_CTX_set_session_id_context(Handle, *const c_uchar, c_uint) -> c_int;
        fn SSL_CTX_sess_set_new_cb(Handle, NewSession);
        fn SSL_CTX_set_num_tickets(Handle, usize) -> c_int;
        fn SSL_SESSION_free(Handle);
        fn SSL_new(Handle) -> Handle;
        fn SSL_free(Handle);
        fn SSL_set_fd(Handle, c_int) -> c_int;
        fn SSL_set_connect_state(Handle);
        fn SSL_set_accept_state(Handle);
        fn SSL_do_handshake(Handle) -> c_int;
        fn SSL_is_init_finished(Handle) -> c_int;
        fn SSL_read(Handle, *mut c_void, c_int) -> c_int;
        fn SSL_write(Handle, *const c_void, c_int) -> c_int;
        fn SSL_get_error(Handle, c_int) -> c_int;
        fn SSL_shutdown(Handle) -> c_int;
        fn SSL_set_shutdown(Handle, c_int);
        fn SSL_ctrl(Handle, c_int, c_long, *mut c_void) -> c_long;
        fn SSL_version(Handle) -> c_int;
        fn SSL_get_current_cipher(Handle) -> Handle;
        fn SSL_CIPHER_standard_name(Handle) -> Text;
        fn SSL_get1_session(Handle) -> Handle;
        fn SSL_set_session(Handle, Handle) -> c_int;
        fn SSL_session_reused(Handle) -> c_int;
    }
    optional {
        fn SSL_get0_group_name(Handle) -> Text;
        fn SSL_CTX_set0_tmp_dh_pkey(Handle, Handle) -> c_int;
        fn PEM_read_bio_Parameters(Handle, Unused) -> Handle;
        fn PEM_read_bio_DHparams(Handle, Unused, Unused, Unused) -> Handle;
        fn DH_free(Handle);
        fn DH_bits(Handle) -> c_int;
        fn EVP_PKEY_get_bits(Handle) -> c_int;
        fn EVP_PKEY_bits(Handle) -> c_int;
        fn EVP_PKEY_get_id(Handle) -> c_int;
        fn EVP_PKEY_id(Handle) -> c_int;
    }
}

impl Api {
    /// The library's own words for the last thing that went wrong, behind what was being tried.
    pub fn words(&self, trying: &str) -> String {
        let code = unsafe { (self.ERR_peek_last_error)() };
        if code == 0 {
            return format!("{}: {trying} is refused without a reason", self.name());
        }
        let mut text = [0; 256];
        unsafe { (self.ERR_error_string_n)(c_ulong::from(code), text.as_mut_ptr(), text.len()) };
        let text = unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy();
        format!("{}: {trying}: {text}", self.name())
    }

    pub fn unsupported(&self, trying: &str) -> Failure {
        Failure::Unsupported(self.words(trying))
    }

    pub fn clear_errors(&self) {
        unsafe { (self.ERR_clear_error)() }
    }

    /// `openssl 3.0.19`
    pub fn name(&self) -> String {
        let version = unsafe { text((self.OpenSSL_version)(0)) };
        version.split_whitespace().take(2).collect::<Vec<_>>().join(" ").to_lowercase()
    }

    /// Has one of the library's readers read PEM.
    pub fn with_pem<T>(&self, pem: &str, read: impl FnOnce(Handle) -> T) -> Result<T, Failure> {
        self.clear_errors();
        let source = self.lengths.memory_bio(pem.as_bytes())?;
        if source.is_null() {
            return Err(Failure::Failed(self.words("BIO_new_mem_buf")));
        }
        let answer = read(source);
        unsafe { (self.BIO_free)(source) };
        Ok(answer)
    }

    /// All certificates of a PEM text.
    pub fn certificates(&'static self, pem: &str) -> Result<Vec<Owned>, Failure> {
        let none = std::ptr::null_mut;
        let certificates = self.with_pem(pem, |source| {
            std::iter::from_fn(|| {
                let next = unsafe { (self.PEM_read_bio_X509)(source, none(), none(), none()) };
                Owned::new(next, self.X509_free)
            })
            .collect()
        })?;
        // The end of the text has been noted as an error.
        self.clear_errors();
        Ok(certificates)
    }
}

/// # Safety
/// A string of the library's own, or null.
pub unsafe fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

/// A name as C wants it; no name that means anything to a library holds a zero byte.
pub fn c_name(name: &str) -> CString {
    CString::new(name).unwrap_or_default()
}

/// One of the library's objects, freed when it goes out of scope.
pub struct Owned {
    pub handle: Handle,
    free: unsafe extern "C" fn(Handle),
}

impl Owned {
    pub fn new(handle: Handle, free: unsafe extern "C" fn(Handle)) -> Option<Owned> {
        (!handle.is_null()).then_some(Owned { handle, free })
    }

    /// The library owns it from now on.
    pub fn give_away(self) -> Handle {
        let handle = self.handle;
        std::mem::forget(self);
        handle
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        unsafe { (self.free)(self.handle) }
    }
}

// Certificates, contexts and sessions count their references atomically and may go where they like; no object
// is used from two threads at once but contexts, which lock for themselves.
unsafe impl Send for Owned {}
unsafe impl Sync for Owned {}
