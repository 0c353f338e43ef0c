//! Shared state of a client's connections: its context, its sessions, and the check of a server's
//! certificate.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::api::{Api, Handle, Owned};
use super::context::{Context, VERIFY_PEER};
use crate::certificate::Pin;
use crate::spec::Negotiated;

/// State that must live as long as any connection of a client.
pub struct Shared {
    // Declared before its callback's argument, so that it is dropped first.
    pub context: Context,
    trust: Arc<Trust>,
    pub sessions: Option<Sessions>,
}

/// Argument of the library's callback that checks a server.
struct Trust {
    api: &'static Api,
    pin: Pin,
}

impl Shared {
    pub fn new(context: Context, pin: Pin, sessions: Option<Sessions>) -> Shared {
        let api = context.api;
        let trust = Arc::new(Trust { api, pin });
        // SAFETY: the context is dropped before the callback's argument, and moving an `Arc` keeps pointers
        // to its value valid.
        unsafe {
            (api.SSL_CTX_set_cert_verify_callback)(context.raw(), judge, given_to_judge(&trust));
            (api.SSL_CTX_set_verify)(context.raw(), VERIFY_PEER, std::ptr::null_mut());
        }
        Shared { context, trust, sessions }
    }

    /// Adds the description of the server's certificate.
    pub fn describe(&self, negotiated: &mut Negotiated) {
        if let Some(leaf) = self.trust.pin.leaf() {
            negotiated.certificate.clone_from(&leaf.fingerprint);
            negotiated.certificate_key.clone_from(&leaf.key);
        }
    }
}

/// Returns the argument of `judge`: a pointer that stays valid wherever the `Arc` is moved, and for as long
/// as it lives.
fn given_to_judge<T>(trust: &Arc<T>) -> Handle {
    Arc::as_ptr(trust).cast_mut().cast()
}

thread_local! {
    static REFUSAL: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Returns the reason why the last server on this thread was refused, if it was.
pub fn refusal() -> Option<String> {
    REFUSAL.take()
}

/// Records the reason why the server of the current step is refused.
pub fn refuse(words: String) {
    REFUSAL.set(Some(words));
}

/// Checks a server's certificate for the library, instead of building a chain to an authority. The library
/// itself verifies the signature in the handshake.
unsafe extern "C" fn judge(verification: Handle, given: Handle) -> c_int {
    // SAFETY: the pointer was set in `Shared::new`, and is alive while any connection is.
    let trust = unsafe { &*given.cast::<Trust>() };
    // SAFETY: the library owns it, and it is alive during this call.
    let certificate = unsafe { (trust.api.X509_STORE_CTX_get0_cert)(verification) };
    let verdict = match der(trust.api, certificate) {
        None => Err("the server presented no certificate that can be read".to_owned()),
        Some(der) => trust.pin.hold(&der),
    };
    match verdict {
        Ok(()) => 1,
        Err(words) => {
            refuse(words);
            0
        }
    }
}

/// Returns the bytes of a certificate.
pub fn der(api: &Api, certificate: Handle) -> Option<Vec<u8>> {
    if certificate.is_null() {
        return None;
    }
    // SAFETY: the certificate is alive; without a buffer the call only returns its length.
    let length = unsafe { (api.i2d_X509)(certificate, std::ptr::null_mut()) };
    let mut der = vec![0; usize::try_from(length).ok()?];
    let mut at = der.as_mut_ptr();
    // SAFETY: the buffer has the certificate's length.
    let written = unsafe { (api.i2d_X509)(certificate, &mut at) };
    (written == length && length > 0).then_some(der)
}

/// Limit of tickets, the same as that of rustls here; each is used once.
const MOST_TICKETS: usize = 4096;
const TLS_13: c_int = 0x0304;

/// Sessions of a client, of one server, for all its users.
pub struct Sessions {
    api: &'static Api,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// Session of TLS 1.2, which may be resumed any number of times.
    tls12: Option<Owned>,
    /// Sessions of TLS 1.3, which may be resumed once each.
    tls13: VecDeque<Owned>,
}

impl Sessions {
    pub fn new(api: &'static Api) -> Sessions {
        Sessions { api, kept: Mutex::default() }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a new connection offer a kept session, if there is one.
    pub fn offer(&self, connection: Handle) {
        let mut kept = self.kept();
        let once = kept.tls13.pop_back();
        if let Some(session) = once.as_ref().or(kept.tls12.as_ref()) {
            // SAFETY: both are alive, and the connection takes its own reference.
            unsafe { (self.api.SSL_set_session)(connection, session.raw()) };
        }
    }

    /// Keeps the session of a finished handshake of TLS 1.2. If a server renews the ticket of a resumption,
    /// OpenSSL discards the old session without granting the new one through the callback.
    pub fn finished(&self, connection: Handle) {
        if self.is_13(connection) {
            return;
        }
        // SAFETY: the connection is alive, and the caller must free the result.
        let session =
            unsafe { Owned::new((self.api.SSL_get1_session)(connection), self.api.SSL_SESSION_free) };
        if let Some(session) = session {
            self.keep(connection, session);
        }
    }

    fn is_13(&self, connection: Handle) -> bool {
        // SAFETY: the connection is alive.
        (unsafe { (self.api.SSL_version)(connection) }) >= TLS_13
    }

    fn keep(&self, connection: Handle, session: Owned) {
        let mut kept = self.kept();
        if !self.is_13(connection) {
            kept.tls12 = Some(session);
            return;
        }
        if kept.tls13.len() == MOST_TICKETS {
            kept.tls13.pop_front();
        }
        kept.tls13.push_back(session);
    }

    /// Performs a step of a connection in which its server may grant sessions.
    pub fn during<T>(&self, step: impl FnOnce() -> T) -> T {
        GRANTED_TO.set(self);
        let answer = step();
        GRANTED_TO.set(std::ptr::null());
        answer
    }
}

thread_local! {
    /// Sessions to which this thread's current step adds. The library's callback only gets the connection,
    /// which does not show the library whose functions must be called.
    static GRANTED_TO: Cell<*const Sessions> = const { Cell::new(std::ptr::null()) };
}

/// Keeps a session that a server grants, as the library's callback. Returns 1 if this program must free the
/// session.
pub unsafe extern "C" fn granted(connection: Handle, session: Handle) -> c_int {
    // SAFETY: `during` sets it, and its borrow lasts as long as the step that calls this.
    let Some(sessions) = (unsafe { GRANTED_TO.get().as_ref() }) else {
        return 0;
    };
    // SAFETY: the library passes ownership to this function, which returns that it took it.
    let Some(session) = (unsafe { Owned::new(session, sessions.api.SSL_SESSION_free) }) else {
        return 0;
    };
    sessions.keep(connection, session);
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pointer made from a reference to a `Box` would be invalid after a move of the box; Miri detects
    /// that.
    #[test]
    fn what_a_callback_is_given_outlives_a_move() {
        let trust = Arc::new(7_u64);
        let given = given_to_judge(&trust);
        let moved = Box::new(trust);
        // SAFETY: the `Arc` is alive.
        assert_eq!(7, unsafe { *given.cast::<u64>() });
        assert_eq!(given, given_to_judge(&moved));
    }
}
