//! What OpenSSL's libssl and those of AWS-LC and BoringSSL are told in different ways: a number of `SSL_CTX_ctrl`'s there,
//! which its headers hide behind macros, is a function of its own here, and `SSL_CTX_ctrl` is not there at all. Some that
//! both have take other numbers.

use std::ffi::{CStr, c_char, c_int, c_long, c_uchar, c_uint, c_void};

use libloading::os::unix::Library;

use crate::binding::bind;
use crate::libcrypto::api::{Handle, Owned};
use crate::libcrypto::dialect::is_fork;

type Text = *const c_char;
/// The function that a library calls with each extension of the peer's hello: the connection, which side it is of, its number, its
/// content and what was given.
pub type NoteExtension = unsafe extern "C" fn(Handle, c_int, c_int, *const c_uchar, c_int, *mut c_void);
/// A callback whose type depends on the command that it is given with.
type Callback = unsafe extern "C" fn();

// Numbers of SSL_CTX_ctrl and SSL_ctrl.
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

/// A write may take a part and be offered again from elsewhere; an idle connection gives its buffers back, which the
/// forks' do by themselves.
const MODES: u32 = 0x1 | 0x2 | 0x10;
/// A peer that closes its socket without a word has closed it.
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
        // AWS-LC's alone: BoringSSL chooses suites of TLS 1.3 by the processor and by what the other side offers.
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

    /// A new context as each is used here.
    pub fn settle(&self, context: &Owned) {
        match self {
            // SAFETY: the context is alive, and these commands take a number.
            Dialect::OpenSsl(functions) => unsafe {
                // Weak keys and old hashes are among what is measured: nothing is refused for its strength.
                (functions.SSL_CTX_set_security_level)(context.raw(), 0);
                (functions.SSL_CTX_set_options)(context.raw(), OPTION_IGNORE_UNEXPECTED_END);
                (functions.SSL_CTX_ctrl)(context.raw(), MODE, c_long::from(MODES), std::ptr::null_mut());
                // Else every record takes two calls: one for its header, one for the rest.
                (functions.SSL_CTX_ctrl)(context.raw(), SET_READ_AHEAD, 1, std::ptr::null_mut());
            },
            // SAFETY: the context is alive.
            Dialect::Fork(functions) => unsafe {
                (functions.SSL_CTX_set_mode)(context.raw(), MODES);
            },
        }
    }

    /// Options whose bits are the same in all of them.
    pub fn options(&self, context: &Owned, options: u32) {
        match self {
            // SAFETY: the context is alive.
            Dialect::OpenSsl(functions) => unsafe {
                (functions.SSL_CTX_set_options)(context.raw(), u64::from(options));
            },
            // SAFETY: as above.
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

    /// The first and the last protocol to speak, by their numbers on the wire; whether it has both.
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

    /// Chooses the suite of TLS 1.3. Where a library leaves no choice, what comes out is up to the other side, and is
    /// held against what was asked when it has.
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

    /// Adds a certificate to the chain of the one that was added last; the context counts its own reference.
    pub fn chain_certificate(&self, context: &Owned, certificate: &Owned) -> bool {
        match self {
            // The number that makes the library count its own reference.
            Dialect::OpenSsl(functions) => {
                functions.control(context, CHAIN_CERTIFICATE, 1, certificate.raw()) == 1
            }
            // SAFETY: both are alive.
            Dialect::Fork(functions) => unsafe {
                (functions.SSL_CTX_add1_chain_cert)(context.raw(), certificate.raw()) == 1
            },
        }
    }

    /// Names the server whose sessions these are.
    pub fn sessions_of(&self, context: &Owned, name: &[u8]) -> bool {
        match self {
            // SAFETY: the context is alive, and the length is the name's.
            Dialect::OpenSsl(functions) => unsafe {
                let length = name.len() as c_uint;
                (functions.SSL_CTX_set_session_id_context)(context.raw(), name.as_ptr(), length) == 1
            },
            // SAFETY: as above.
            Dialect::Fork(functions) => unsafe {
                (functions.SSL_CTX_set_session_id_context)(context.raw(), name.as_ptr(), name.len()) == 1
            },
        }
    }

    /// The name that a connection sends of the server it means.
    pub fn host_name(&self, connection: &Owned, name: &CStr) {
        match self {
            // SAFETY: the connection is alive, and the name ends with a zero.
            Dialect::OpenSsl(functions) => unsafe {
                let name = name.as_ptr().cast_mut().cast();
                (functions.SSL_ctrl)(connection.raw(), SET_HOST_NAME, 0, name);
            },
            // SAFETY: as above.
            Dialect::Fork(functions) => unsafe {
                (functions.SSL_set_tlsext_host_name)(connection.raw(), name.as_ptr());
            },
        }
    }

    /// Has each extension of the peer's hello noted, where the library tells of them.
    pub fn note_extensions(&self, connection: &Owned, note: NoteExtension) {
        let Dialect::OpenSsl(functions) = self else { return };
        // SAFETY: the connection is alive, and with this command the library calls a function of the type that `note` has.
        unsafe {
            let note = std::mem::transmute::<NoteExtension, Callback>(note);
            (functions.SSL_callback_ctrl)(connection.raw(), SET_NOTE_EXTENSION, note);
        }
    }

    /// The group that a connection agreed on, by its number on the wire, where the library says that one.
    pub fn group_on_the_wire(&self, connection: &Owned) -> Option<u16> {
        match self {
            Dialect::OpenSsl(_) => None,
            // SAFETY: the connection is alive.
            Dialect::Fork(functions) => Some(unsafe { (functions.SSL_get_group_id)(connection.raw()) }),
        }
    }

    /// The group by OpenSSL's own number; 0 where it has kept none.
    pub fn group_number(&self, connection: &Owned) -> c_long {
        match self {
            // SAFETY: the connection is alive, and the command takes nothing.
            Dialect::OpenSsl(functions) => unsafe {
                (functions.SSL_ctrl)(connection.raw(), GET_GROUP, 0, std::ptr::null_mut())
            },
            Dialect::Fork(_) => 0,
        }
    }

    /// The ephemeral keys that a connection still has, the peer's first; each is the caller's to free.
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

    /// Gives a context parameters of finite-field exchanges, which it copies; their bits, or None where it takes none.
    /// The forks have left these exchanges out of TLS.
    pub fn diffie_hellman(&self, context: &Owned, parameters: &Owned) -> Option<c_int> {
        let Dialect::OpenSsl(functions) = self else { return None };
        // SAFETY: the parameters are alive.
        let bits = functions.DH_bits.map_or(0, |bits| unsafe { bits(parameters.raw()) });
        (functions.control(context, SET_TMP_DH, 0, parameters.raw()) == 1).then_some(bits)
    }

    /// How many are in a list.
    ///
    /// # Safety
    /// The list is alive, or null.
    pub unsafe fn count(&self, list: Handle) -> usize {
        // SAFETY: the caller's promise; of null OpenSSL says -1.
        unsafe {
            match self {
                Dialect::OpenSsl(functions) => {
                    usize::try_from((functions.OPENSSL_sk_num)(list)).unwrap_or_default()
                }
                Dialect::Fork(functions) => (functions.OPENSSL_sk_num)(list),
            }
        }
    }

    /// All that are in a list.
    ///
    /// # Safety
    /// The list is alive, or null.
    pub unsafe fn all_of(&self, list: Handle) -> Vec<Handle> {
        // SAFETY: the caller's promise, and there are so many.
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
        // SAFETY: the context is alive, and callers give each command what it takes.
        unsafe { (self.SSL_CTX_ctrl)(context.raw(), command, number, pointer.cast_mut()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binding::headers::{AWS_LC, OPENSSL, forks};

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

    /// Else a libssl of the one could be bound by the other's table.
    #[test]
    fn neither_dialect_is_the_others() {
        let fork = OPENSSL.compare(&Fork::signatures(), &[]);
        let openssl = AWS_LC.compare(&OpenSsl::signatures(), &[]);
        assert!(fork.undeclared.contains("SSL_CTX_set_mode"), "{fork:#?}");
        assert!(openssl.undeclared.contains("SSL_CTX_ctrl"), "{openssl:#?}");
    }
}
