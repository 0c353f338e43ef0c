//! The sessions that a client keeps: of one server, for all its users.

use std::cell::Cell;
use std::collections::VecDeque;
use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::api::{Api, Handle, Owned};

/// As many as rustls' are; each is used once.
const MOST_TICKETS: usize = 4096;
const TLS_13: c_int = 0x0304;

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
