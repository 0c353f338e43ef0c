//! The sessions that a client keeps: of one server, for all its users.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ::rustls::NamedGroup;
use ::rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use ::rustls::pki_types::ServerName;

/// rustls' own store keeps eight tickets of a server, and each is used once: with more users than that at a
/// time, full handshakes would be counted where resumed ones are asked for.
const MOST_TICKETS: usize = 4096;

#[derive(Debug, Default)]
pub struct Sessions {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// May be resumed any number of times.
    tls12: Option<Tls12ClientSessionValue>,
    /// Each may be resumed once.
    tls13: VecDeque<Tls13ClientSessionValue>,
}

impl Sessions {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientSessionStore for Sessions {
    fn set_kx_hint(&self, _server: ServerName<'static>, _group: NamedGroup) {}

    fn kx_hint(&self, _server: &ServerName<'_>) -> Option<NamedGroup> {
        // The first group offered is the one asked for, whatever a server took before.
        None
    }

    fn set_tls12_session(&self, _server: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.kept().tls12 = Some(value);
    }

    fn tls12_session(&self, _server: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.kept().tls12.clone()
    }

    fn remove_tls12_session(&self, _server: &ServerName<'static>) {
        self.kept().tls12 = None;
    }

    fn insert_tls13_ticket(&self, _server: ServerName<'static>, value: Tls13ClientSessionValue) {
        let mut kept = self.kept();
        if kept.tls13.len() == MOST_TICKETS {
            kept.tls13.pop_front();
        }
        kept.tls13.push_back(value);
    }

    fn take_tls13_ticket(&self, _server: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.kept().tls13.pop_back()
    }
}
