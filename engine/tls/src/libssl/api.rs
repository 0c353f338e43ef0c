//! Functions of a libssl, bound at run time together with the libcrypto that it uses.
//!
//! Every function is looked up through the libssl, so that the bound libcrypto is the one that it uses
//! itself. A function of OpenSSL since 1.1.1 that AWS-LC and BoringSSL have too is required, and a file
//! without it is refused. A function that only some have is an `Option`.

use std::ffi::{c_char, c_int, c_uchar, c_ulong, c_void};

use libloading::os::unix::Library;

use super::dialect::Dialect;
use crate::binding::bind;
use crate::failure::Failure;
use crate::libcrypto::api as libcrypto;
pub use crate::libcrypto::api::{Handle, Owned, c_name, text};

type Text = *const c_char;
/// Pointer that is always null here.
type Unused = Handle;
pub type Verify = unsafe extern "C" fn(Handle, Handle) -> c_int;
type ReadPem = unsafe extern "C" fn(Handle, *mut Handle, Unused, Unused) -> Handle;
type Free = unsafe extern "C" fn(Handle);
pub type NewSession = unsafe extern "C" fn(Handle, Handle) -> c_int;

bind! {
    parts {
        crypto: libcrypto::Api;
        dialect: Dialect;
    }
    required {
        fn PEM_read_bio_X509(Handle, *mut Handle, Unused, Unused) -> Handle;
        fn X509_free(Handle);
        fn i2d_X509(Handle, *mut *mut c_uchar) -> c_int;
        fn X509_STORE_add_cert(Handle, Handle) -> c_int;
        fn X509_STORE_add_crl(Handle, Handle) -> c_int;
        fn X509_STORE_set_flags(Handle, c_ulong) -> c_int;
        fn PEM_read_bio_X509_CRL(Handle, *mut Handle, Unused, Unused) -> Handle;
        fn X509_CRL_free(Handle);
        fn X509_STORE_CTX_get0_cert(Handle) -> Handle;
        fn TLS_client_method() -> Handle;
        fn TLS_server_method() -> Handle;
        fn SSL_CTX_new(Handle) -> Handle;
        fn SSL_CTX_free(Handle);
        fn SSL_CTX_set_cipher_list(Handle, Text) -> c_int;
        fn SSL_CTX_use_certificate(Handle, Handle) -> c_int;
        fn SSL_CTX_use_PrivateKey(Handle, Handle) -> c_int;
        fn SSL_CTX_set_verify(Handle, c_int, Unused);
        fn SSL_CTX_set_cert_verify_callback(Handle, Verify, Handle);
        fn SSL_CTX_get_cert_store(Handle) -> Handle;
        fn SSL_CTX_load_verify_locations(Handle, Text, Text) -> c_int;
        fn X509_STORE_get0_objects(Handle) -> Handle;
        fn SSL_CTX_add_client_CA(Handle, Handle) -> c_int;
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
        fn SSL_version(Handle) -> c_int;
        fn SSL_get_current_cipher(Handle) -> Handle;
        fn SSL_CIPHER_standard_name(Handle) -> Text;
        fn SSL_get_peer_cert_chain(Handle) -> Handle;
        fn SSL_get1_session(Handle) -> Handle;
        fn SSL_set_session(Handle, Handle) -> c_int;
        fn SSL_session_reused(Handle) -> c_int;
    }
    optional {
        fn SSL_get0_group_name(Handle) -> Text;
        fn SSL_has_pending(Handle) -> c_int;
        fn SSL_get1_peer_certificate(Handle) -> Handle;
        fn SSL_get_peer_certificate(Handle) -> Handle;
        fn SSL_CTX_set0_tmp_dh_pkey(Handle, Handle) -> c_int;
        fn PEM_read_bio_Parameters(Handle, *mut Handle) -> Handle;
        fn PEM_read_bio_DHparams(Handle, *mut Handle, Unused, Unused) -> Handle;
        fn DH_free(Handle);
        fn EVP_PKEY_get_bits(Handle) -> c_int;
        fn EVP_PKEY_bits(Handle) -> c_int;
        fn EVP_PKEY_get_id(Handle) -> c_int;
        fn EVP_PKEY_id(Handle) -> c_int;
    }
}

impl Api {
    /// Returns the library's message for its last error, after the attempted operation.
    pub fn words(&self, trying: &str) -> String {
        format!("{}: {}", self.name(), self.crypto.words(trying))
    }

    pub fn unsupported(&self, trying: &str) -> Failure {
        Failure::Unsupported(self.words(trying))
    }

    pub fn clear_errors(&self) {
        self.crypto.clear_errors();
    }

    /// Returns the library's name, for example `openssl 3.0.19`.
    pub fn name(&self) -> String {
        self.crypto.name()
    }

    /// Reads all certificates of a PEM text.
    pub fn certificates(&self, pem: &str) -> Result<Vec<Owned>, Failure> {
        // SAFETY: both functions are for certificates.
        unsafe { self.all_of(pem, self.PEM_read_bio_X509, self.X509_free) }
    }

    /// Reads all lists of revoked certificates of a PEM text.
    pub fn revocations(&self, pem: &str) -> Result<Vec<Owned>, Failure> {
        // SAFETY: both functions are for lists.
        unsafe { self.all_of(pem, self.PEM_read_bio_X509_CRL, self.X509_CRL_free) }
    }

    /// Reads all objects of a PEM text.
    ///
    /// # Safety
    /// `free` frees the objects that `read` reads.
    unsafe fn all_of(&self, pem: &str, read: ReadPem, free: Free) -> Result<Vec<Owned>, Failure> {
        let none: Unused = std::ptr::null_mut();
        let objects = self.crypto.read_from(pem.as_bytes(), |source| {
            std::iter::from_fn(|| {
                // SAFETY: the source is alive, null means no object to reuse and no password callback, and
                // the caller promises that `free` fits.
                unsafe { Owned::new(read(source, std::ptr::null_mut(), none, none), free) }
            })
            .collect()
        })?;
        // The library has recorded the end of the text as an error.
        self.clear_errors();
        Ok(objects)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollbar_testing::headers::{OPENSSL, forks};

    /// Function that is newer than the oldest headers of the tests.
    const SINCE_3_2: &str = "SSL_get0_group_name";

    #[test]
    fn a_function_has_the_type_that_the_headers_give_it() {
        let compared = OPENSSL.compare(&Api::signatures(), &[]);
        assert!(compared.differs.is_empty(), "{compared:#?}");
        let undeclared: Vec<&String> = compared.undeclared.iter().filter(|name| *name != SINCE_3_2).collect();
        assert!(undeclared.is_empty(), "functions that no header declares: {undeclared:?}");
        for headers in forks() {
            let fork = headers.compare(&Api::signatures(), &[]);
            assert!(fork.differs.is_empty(), "{fork:#?}");
        }
    }
}
