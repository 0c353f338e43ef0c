//! What the connections of a client share: its context, the sessions it keeps, and how a server's certificate is judged.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::api::{Api, Handle, Owned};
use super::context::{Context, VERIFY_PEER};
use crate::tls::certificate::Pin;
use crate::tls::spec::Negotiated;

/// What all connections of a client need for as long as any of them lives.
pub struct Shared {
    // Before what its callback is given, so that it goes first.
    pub context: Context,
    trust: Arc<Trust>,
    pub sessions: Option<Sessions>,
}

/// What the library's callback is given to judge a server by.
struct Trust {
    api: &'static Api,
    pin: Pin,
}

impl Shared {
    pub fn new(context: Context, pin: Pin, sessions: Option<Sessions>) -> Shared {
        let api = context.api;
        let trust = Arc::new(Trust { api, pin });
        // SAFETY: the context goes before what its callback is given, and moving an `Arc` leaves pointers to its value valid.
        unsafe {
            (api.SSL_CTX_set_cert_verify_callback)(context.raw(), judge, given_to_judge(&trust));
            (api.SSL_CTX_set_verify)(context.raw(), VERIFY_PEER, std::ptr::null_mut());
        }
        Shared { context, trust, sessions }
    }

    /// Adds what is known of the server's certificate.
    pub fn describe(&self, negotiated: &mut Negotiated) {
        if let Some(leaf) = self.trust.pin.leaf() {
            negotiated.certificate.clone_from(&leaf.fingerprint);
            negotiated.certificate_key.clone_from(&leaf.key);
        }
    }
}

/// The argument of `judge`: a pointer that stays valid wherever the `Arc` is moved to, and for as long as it lives.
fn given_to_judge<T>(trust: &Arc<T>) -> Handle {
    Arc::as_ptr(trust).cast_mut().cast()
}

thread_local! {
    static REFUSAL: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Why the last server on this thread was refused, if it was.
pub fn refusal() -> Option<String> {
    REFUSAL.take()
}

/// Notes why the server of the step under way is refused.
pub fn refuse(words: String) {
    REFUSAL.set(Some(words));
}

/// What the library asks about a server's certificates, in place of building a chain to an authority. It
/// verifies the signature in the handshake by itself.
unsafe extern "C" fn judge(verification: Handle, given: Handle) -> c_int {
    // SAFETY: given in `Shared::new`, and alive while any connection is.
    let trust = unsafe { &*given.cast::<Trust>() };
    // SAFETY: the library's own, alive during this call.
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

/// The bytes of a certificate.
pub fn der(api: &Api, certificate: Handle) -> Option<Vec<u8>> {
    if certificate.is_null() {
        return None;
    }
    // SAFETY: the certificate is alive; without a buffer its length alone is told.
    let length = unsafe { (api.i2d_X509)(certificate, std::ptr::null_mut()) };
    let mut der = vec![0; usize::try_from(length).ok()?];
    let mut at = der.as_mut_ptr();
    // SAFETY: there is as much room as the certificate takes.
    let written = unsafe { (api.i2d_X509)(certificate, &mut at) };
    (written == length && length > 0).then_some(der)
}

/// As many as rustls' are; each is used once.
const MOST_TICKETS: usize = 4096;
const TLS_13: c_int = 0x0304;

/// The sessions that a client keeps: of one server, for all its users.
pub struct Sessions {
    api: &'static Api,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// May be resumed any number of times.
    tls12: Option<Owned>,
    /// Each may be resumed once.
    tls13: VecDeque<Owned>,
}

impl Sessions {
    pub fn new(api: &'static Api) -> Sessions {
        Sessions { api, kept: Mutex::default() }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a new connection offer what is kept, if anything is.
    pub fn offer(&self, connection: Handle) {
        let mut kept = self.kept();
        let once = kept.tls13.pop_back();
        if let Some(session) = once.as_ref().or(kept.tls12.as_ref()) {
            // SAFETY: both are alive, and the connection counts its own reference.
            unsafe { (self.api.SSL_set_session)(connection, session.raw()) };
        }
    }

    /// Keeps what a finished handshake of TLS 1.2 leaves. When a server renews the ticket it was resumed by, OpenSSL
    /// gives up the old session without granting the new one in the usual way.
    pub fn finished(&self, connection: Handle) {
        if self.is_13(connection) {
            return;
        }
        // SAFETY: the connection is alive, and what it gives is the caller's to free.
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
    /// Who is being granted sessions on this thread. The library's callback is told the connection alone, and
    /// which library's functions to ask it with is not to be seen from that.
    static GRANTED_TO: Cell<*const Sessions> = const { Cell::new(std::ptr::null()) };
}

/// What the library calls with each session that a server grants. 1: the session is ours to free.
pub unsafe extern "C" fn granted(connection: Handle, session: Handle) -> c_int {
    // SAFETY: set by `during`, whose borrow lasts as long as the step that calls this.
    let Some(sessions) = (unsafe { GRANTED_TO.get().as_ref() }) else {
        return 0;
    };
    // SAFETY: the library gives it to this function, which says that it has taken it.
    let Some(session) = (unsafe { Owned::new(session, sessions.api.SSL_SESSION_free) }) else {
        return 0;
    };
    sessions.keep(connection, session);
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pointer made from a reference to a `Box` would end with the next move of the box. Miri finds that.
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
