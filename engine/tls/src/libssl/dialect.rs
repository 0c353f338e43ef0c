//! Differences between OpenSSL's libssl and those of AWS-LC and BoringSSL. Commands of `SSL_CTX_ctrl`, which
//! OpenSSL's headers hide behind macros, are functions in the forks, which do not have `SSL_CTX_ctrl`. Some
//! common functions take other number types.

use std::ffi::{CStr, c_char, c_int, c_long, c_uchar, c_uint, c_void};

use libloading::os::unix::Library;

use crate::binding::bind;
use crate::libcrypto::api::{Handle, Owned};
use crate::libcrypto::dialect::is_fork;

type Text = *const c_char;
/// Function that a library calls with each extension of the peer's hello: the connection, its side, the
/// extension's number, its content and a given pointer.
pub type NoteExtension = unsafe extern "C" fn(Handle, c_int, c_int, *const c_uchar, c_int, *mut c_void);
/// A callback whose type depends on its command.
type Callback = unsafe extern "C" fn();

// Commands of `SSL_CTX_ctrl` and `SSL_ctrl`.
const SET_TMP_DH: c_int = 3;
const MODE: c_int = 33;
const SET_READ_AHEAD: c_int = 41;
const SET_SESSION_CACHE_MODE: c_int = 44;
const SET_HOST_NAME: c_int = 55;
const SET_NOTE_EXTENSION: c_int = 56;
const CHAIN_CERTIFICATE: c_int = 89;
const SET_GROUPS_LIST: c_int = 92;
const SET_SIGNATURES_LIST: c_int = 98;
const GET_PEER_EXCHANGE_KEY: c_int = 109;
const SET_LEAST_PROTOCOL: c_int = 123;
const SET_MOST_PROTOCOL: c_int = 124;
const GET_OWN_EXCHANGE_KEY: c_int = 133;
const GET_GROUP: c_int = 134;

/// Modes: a write may take a part and be repeated from another address, and an idle connection releases its
/// buffers, which the forks' do by default.
const MODES: u32 = 0x1 | 0x2 | 0x10;
/// Option that treats a closed socket without an alert as the end.
const OPTION_IGNORE_UNEXPECTED_END: u64 = 1 << 7;

bind! {
    OpenSsl
    parts {}
    required {
        fn SSL_CTX_ctrl(Handle, c_int, c_long, *mut c_void) -> c_long;
        fn SSL_ctrl(Handle, c_int, c_long, *mut c_void) -> c_long;
        fn SSL_callback_ctrl(Handle, c_int, Callback) -> c_long;
        fn SSL_CTX_set_options(Handle, u64) -> u64;
        fn SSL_CTX_set_security_level(Handle, c_int);
        fn SSL_CTX_set_ciphersuites(Handle, Text) -> c_int;
        fn SSL_CTX_set_session_id_context(Handle, *const c_uchar, c_uint) -> c_int;
        fn OPENSSL_sk_num(Handle) -> c_int;
        fn OPENSSL_sk_value(Handle, c_int) -> Handle;
    }
    optional {
        fn DH_bits(Handle) -> c_int;
    }
}

bind! {
    Fork
    parts {}
    required {
        fn SSL_CTX_set_mode(Handle, u32) -> u32;
        fn SSL_CTX_set_options(Handle, u32) -> u32;
        fn SSL_CTX_set_session_cache_mode(Handle, c_int) -> c_int;
        fn SSL_CTX_set_min_proto_version(Handle, u16) -> c_int;
        fn SSL_CTX_set_max_proto_version(Handle, u16) -> c_int;
        fn SSL_CTX_set1_groups_list(Handle, Text) -> c_int;
        fn SSL_CTX_set1_sigalgs_list(Handle, Text) -> c_int;
        fn SSL_CTX_add1_chain_cert(Handle, Handle) -> c_int;
        fn SSL_CTX_set_session_id_context(Handle, *const c_uchar, usize) -> c_int;
        fn SSL_set_tlsext_host_name(Handle, Text) -> c_int;
        fn SSL_get_group_id(Handle) -> u16;
        fn OPENSSL_sk_num(Handle) -> usize;
        fn OPENSSL_sk_value(Handle, usize) -> Handle;
    }
    optional {
        // Only AWS-LC has this: BoringSSL chooses suites of TLS 1.3 by the processor and by the other side's
        // offer.
        fn SSL_CTX_set_ciphersuites(Handle, Text) -> c_int;
    }
}

#[derive(Clone)]
pub enum Dialect {
    OpenSsl(OpenSsl),
    Fork(Fork),
}

impl Dialect {
    pub fn bind(library: &Library) -> Result<Dialect, &'static str> {
        Ok(match is_fork(library)? {
            true => Dialect::Fork(Fork::bind(library)?),
            false => Dialect::OpenSsl(OpenSsl::bind(library)?),
        })
    }

    pub fn is_fork(&self) -> bool {
        matches!(self, Dialect::Fork(_))
    }

    /// Sets the options of every context here.
    pub fn settle(&self, context: &Owned) {
        match self {
            // SAFETY: the context is alive, and these commands take a number.
            Dialect::OpenSsl(functions) => unsafe {
                // Weak keys and old hashes are among the measured choices, so that nothing is refused for its
                // strength.
                (functions.SSL_CTX_set_security_level)(context.raw(), 0);
                (functions.SSL_CTX_set_options)(context.raw(), OPTION_IGNORE_UNEXPECTED_END);
                (functions.SSL_CTX_ctrl)(context.raw(), MODE, c_long::from(MODES), std::ptr::null_mut());
                // Otherwise every record takes two calls: one for its header, one for the rest.
                (functions.SSL_CTX_ctrl)(context.raw(), SET_READ_AHEAD, 1, std::ptr::null_mut());
            },
            // SAFETY: the context is alive.
            Dialect::Fork(functions) => unsafe {
                (functions.SSL_CTX_set_mode)(context.raw(), MODES);
            },
        }
    }

    /// Sets options whose bits are the same in all libraries.
    pub fn options(&self, context: &Owned, options: u32) {
        match self {
            // SAFETY: the context is alive.
            Dialect::OpenSsl(functions) => unsafe {
                (functions.SSL_CTX_set_options)(context.raw(), u64::from(options));
            },
            // SAFETY: the context is alive.
            Dialect::Fork(functions) => unsafe {
                (functions.SSL_CTX_set_options)(context.raw(), options);
            },
        }
    }

    pub fn session_cache(&self, context: &Owned, mode: c_int) {
        match self {
            Dialect::OpenSsl(functions) => {
                functions.control(context, SET_SESSION_CACHE_MODE, c_long::from(mode), std::ptr::null());
            }
            // SAFETY: the context is alive.
            Dialect::Fork(functions) => unsafe {
                (functions.SSL_CTX_set_session_cache_mode)(context.raw(), mode);
            },
        }
    }

    /// Sets the first and the last protocol, by their numbers on the wire. Returns true if the library
    /// supports both.
    pub fn protocols(&self, context: &Owned, least: u16, most: u16) -> bool {
        match self {
            Dialect::OpenSsl(functions) => [(SET_LEAST_PROTOCOL, least), (SET_MOST_PROTOCOL, most)]
                .into_iter()
                .all(|(command, number)| {
                    functions.control(context, command, c_long::from(number), std::ptr::null()) == 1
                }),
            // SAFETY: the context is alive.
            Dialect::Fork(functions) => unsafe {
                (functions.SSL_CTX_set_min_proto_version)(context.raw(), least) == 1
                    && (functions.SSL_CTX_set_max_proto_version)(context.raw(), most) == 1
            },
        }
    }

    pub fn groups(&self, context: &Owned, names: &CStr) -> bool {
        match self {
            Dialect::OpenSsl(functions) => {
                functions.control(context, SET_GROUPS_LIST, 0, names.as_ptr().cast()) == 1
            }
            // SAFETY: the context is alive, and the list ends with a zero.
            Dialect::Fork(functions) => unsafe {
                (functions.SSL_CTX_set1_groups_list)(context.raw(), names.as_ptr()) == 1
            },
        }
    }

    pub fn signatures(&self, context: &Owned, names: &CStr) -> bool {
        match self {
            Dialect::OpenSsl(functions) => {
                functions.control(context, SET_SIGNATURES_LIST, 0, names.as_ptr().cast()) == 1
            }
            // SAFETY: the context is alive, and the list ends with a zero.
            Dialect::Fork(functions) => unsafe {
                (functions.SSL_CTX_set1_sigalgs_list)(context.raw(), names.as_ptr()) == 1
            },
        }
    }

    /// Selects the suite of TLS 1.3. If the library offers no choice the other side decides, and the result
    /// is compared with the request afterwards.
    pub fn suite_13(&self, context: &Owned, name: &CStr) -> bool {
        let set = match self {
            Dialect::OpenSsl(functions) => functions.SSL_CTX_set_ciphersuites,
            Dialect::Fork(functions) => match functions.SSL_CTX_set_ciphersuites {
                Some(set) => set,
                None => return true,
            },
        };
        // SAFETY: the context is alive, and the name ends with a zero.
        unsafe { set(context.raw(), name.as_ptr()) == 1 }
    }

    /// Adds a certificate to the chain of the one that was added last; the context takes its own reference.
    pub fn chain_certificate(&self, context: &Owned, certificate: &Owned) -> bool {
        match self {
            // With the number 1 the library takes its own reference.
            Dialect::OpenSsl(functions) => {
                functions.control(context, CHAIN_CERTIFICATE, 1, certificate.raw()) == 1
            }
            // SAFETY: both are alive.
            Dialect::Fork(functions) => unsafe {
                (functions.SSL_CTX_add1_chain_cert)(context.raw(), certificate.raw()) == 1
            },
        }
    }

    /// Sets the name of the server whose sessions these are.
    pub fn sessions_of(&self, context: &Owned, name: &[u8]) -> bool {
        match self {
            // SAFETY: the context is alive, and the length is the name's.
            Dialect::OpenSsl(functions) => unsafe {
                let length = name.len() as c_uint;
                (functions.SSL_CTX_set_session_id_context)(context.raw(), name.as_ptr(), length) == 1
            },
            // SAFETY: the context is alive, and the length is the name's.
            Dialect::Fork(functions) => unsafe {
                (functions.SSL_CTX_set_session_id_context)(context.raw(), name.as_ptr(), name.len()) == 1
            },
        }
    }

    /// Sets the server's name that a connection sends.
    pub fn host_name(&self, connection: &Owned, name: &CStr) {
        match self {
            // SAFETY: the connection is alive, and the name ends with a zero.
            Dialect::OpenSsl(functions) => unsafe {
                let name = name.as_ptr().cast_mut().cast();
                (functions.SSL_ctrl)(connection.raw(), SET_HOST_NAME, 0, name);
            },
            // SAFETY: the connection is alive, and the name ends with a zero.
            Dialect::Fork(functions) => unsafe {
                (functions.SSL_set_tlsext_host_name)(connection.raw(), name.as_ptr());
            },
        }
    }

    /// Passes each extension of the peer's hello to a function, if the library reports them.
    pub fn note_extensions(&self, connection: &Owned, note: NoteExtension) {
        let Dialect::OpenSsl(functions) = self else { return };
        // SAFETY: the connection is alive, and with this command the library calls a function of the type that `note` has.
        unsafe {
            let note = std::mem::transmute::<NoteExtension, Callback>(note);
            (functions.SSL_callback_ctrl)(connection.raw(), SET_NOTE_EXTENSION, note);
        }
    }

    /// Returns the agreed group by its number on the wire, if the library reports that.
    pub fn group_on_the_wire(&self, connection: &Owned) -> Option<u16> {
        match self {
            Dialect::OpenSsl(_) => None,
            // SAFETY: the connection is alive.
            Dialect::Fork(functions) => Some(unsafe { (functions.SSL_get_group_id)(connection.raw()) }),
        }
    }

    /// Returns the group by OpenSSL's own number, 0 if it has kept none.
    pub fn group_number(&self, connection: &Owned) -> c_long {
        match self {
            // SAFETY: the connection is alive, and the command takes no argument.
            Dialect::OpenSsl(functions) => unsafe {
                (functions.SSL_ctrl)(connection.raw(), GET_GROUP, 0, std::ptr::null_mut())
            },
            Dialect::Fork(_) => 0,
        }
    }

    /// Returns the ephemeral keys that a connection still has, the peer's first; the caller must free each.
    pub fn exchange_keys(&self, connection: &Owned) -> Vec<Handle> {
        let Dialect::OpenSsl(functions) = self else { return Vec::new() };
        let keys = [GET_PEER_EXCHANGE_KEY, GET_OWN_EXCHANGE_KEY].into_iter().filter_map(|which| {
            let mut key: Handle = std::ptr::null_mut();
            // SAFETY: the connection is alive, and the command writes a key.
            let found = unsafe {
                (functions.SSL_ctrl)(connection.raw(), which, 0, std::ptr::from_mut(&mut key).cast())
            };
            (found == 1).then_some(key)
        });
        keys.collect()
    }

    /// Sets a context's parameters of finite-field exchanges, which it copies. Returns their bits, or None if
    /// it refuses them. The forks do not support these exchanges in TLS.
    pub fn diffie_hellman(&self, context: &Owned, parameters: &Owned) -> Option<c_int> {
        let Dialect::OpenSsl(functions) = self else { return None };
        // SAFETY: the parameters are alive.
        let bits = functions.DH_bits.map_or(0, |bits| unsafe { bits(parameters.raw()) });
        (functions.control(context, SET_TMP_DH, 0, parameters.raw()) == 1).then_some(bits)
    }

    /// Returns the length of a list.
    ///
    /// # Safety
    /// The list is alive, or null.
    pub unsafe fn count(&self, list: Handle) -> usize {
        // SAFETY: the caller's promise; for null OpenSSL returns -1.
        unsafe {
            match self {
                Dialect::OpenSsl(functions) => {
                    usize::try_from((functions.OPENSSL_sk_num)(list)).unwrap_or_default()
                }
                Dialect::Fork(functions) => (functions.OPENSSL_sk_num)(list),
            }
        }
    }

    /// Returns all elements of a list.
    ///
    /// # Safety
    /// The list is alive, or null.
    pub unsafe fn all_of(&self, list: Handle) -> Vec<Handle> {
        // SAFETY: the caller's promise, and the indices are below the length.
        unsafe {
            let each = (0..self.count(list)).map(|at| match self {
                Dialect::OpenSsl(functions) => (functions.OPENSSL_sk_value)(list, at as c_int),
                Dialect::Fork(functions) => (functions.OPENSSL_sk_value)(list, at),
            });
            each.collect()
        }
    }
}

impl OpenSsl {
    fn control(&self, context: &Owned, command: c_int, number: c_long, pointer: *const c_void) -> c_long {
        // SAFETY: the context is alive, and callers pass the arguments of each command.
        unsafe { (self.SSL_CTX_ctrl)(context.raw(), command, number, pointer.cast_mut()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollbar_testing::headers::{AWS_LC, OPENSSL, forks};

    #[test]
    fn a_function_of_a_dialect_has_the_type_that_its_headers_give_it() {
        let openssl = OPENSSL.compare(&OpenSsl::signatures(), &[]);
        assert!(openssl.differs.is_empty() && openssl.undeclared.is_empty(), "{openssl:#?}");
        for headers in forks() {
            let fork = headers.compare(&Fork::signatures(), &[]);
            let undeclared = fork.undeclared.iter().all(|name| name == "SSL_CTX_set_ciphersuites");
            assert!(fork.differs.is_empty() && undeclared, "{fork:#?}");
        }
    }

    /// Otherwise the table of one dialect could bind a libssl of the other.
    #[test]
    fn neither_dialect_is_the_others() {
        let fork = OPENSSL.compare(&Fork::signatures(), &[]);
        let openssl = AWS_LC.compare(&OpenSsl::signatures(), &[]);
        assert!(fork.undeclared.contains("SSL_CTX_set_mode"), "{fork:#?}");
        assert!(openssl.undeclared.contains("SSL_CTX_ctrl"), "{openssl:#?}");
    }
}
