//! A connection: rustls converts bytes, and this module moves them through the socket.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use ::rustls::client::UnbufferedClientConnection;
use ::rustls::server::UnbufferedServerConnection;
use ::rustls::unbuffered::{ConnectionState, UnbufferedStatus};
use ::rustls::{HandshakeKind, ProtocolVersion};

use super::provider;
use super::records::{OVERHEAD, RECORD, Side, Then, encode, fault, finish};
use crate::certificate::Pin;
use crate::names;
use crate::socket::{Buffer, receive, send};
use crate::spec::{Agreement, Negotiated, Protocol};

/// Limit of bytes taken at once from the writer, and of waiting bytes beyond which no more are taken.
const MOST_TAKEN: usize = 4 * RECORD;
/// Limit of unparsed handshake bytes: longer than any chain of certificates here.
const MOST_WAITING: usize = 256 * 1024;

pub type ClientStream = Tls<UnbufferedClientConnection>;
pub type ServerStream = Tls<UnbufferedServerConnection>;

pub struct Tls<S> {
    socket: OwnedFd,
    connection: S,
    /// Records that arrived and are not opened yet.
    incoming: Buffer,
    /// Records that were sealed and are not sent yet.
    outgoing: Buffer,
    /// Opened bytes that did not fit into the reader's buffer.
    plaintext: Buffer,
    /// True if the last read did not fill its room: nothing was left in the socket.
    emptied: bool,
    /// True if the peer announced the end.
    ended: bool,
    /// True if a fault was reported; rustls must not be called any more.
    broken: bool,
    /// Pinned certificate of a client's server.
    pin: Option<Arc<Pin>>,
}

impl<S: Side> Tls<S> {
    pub fn new(socket: OwnedFd, connection: S, pin: Option<Arc<Pin>>) -> Tls<S> {
        let (incoming, outgoing, plaintext) = Default::default();
        let (emptied, ended, broken) = (true, false, false);
        Tls { socket, connection, incoming, outgoing, plaintext, emptied, ended, broken, pin }
    }

    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub fn handshake(&mut self) -> io::Result<()> {
        self.handshake_before_write()?;
        self.flush()
    }

    /// Continues the handshake, and leaves its last message in `outgoing` for the write that follows.
    pub fn handshake_before_write(&mut self) -> io::Result<()> {
        loop {
            self.advance(&mut [], Then::Rest)?;
            if !self.connection.state().is_handshaking() {
                return Ok(());
            }
            let has_spoken = self.wants_write();
            self.flush()?;
            // The peer answers only after the bytes that were just sent: reading at once could only fail.
            if has_spoken && self.emptied {
                return Err(ErrorKind::WouldBlock.into());
            }
            if self.ended || self.fill()? == 0 {
                let words = "the peer ended the connection in the middle of the handshake";
                return Err(io::Error::new(ErrorKind::UnexpectedEof, words));
            }
        }
    }

    pub fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        if !self.plaintext.is_empty() {
            let count = self.plaintext.len().min(into.len());
            into[..count].copy_from_slice(&self.plaintext.waiting()[..count]);
            self.plaintext.take(count);
            return Ok(count);
        }
        loop {
            if !self.incoming.is_empty() {
                let count = self.advance(into, Then::Rest)?;
                if !self.outgoing.is_empty() {
                    // The bytes answer the peer's protocol; the rest is sent with the next write.
                    let _ = self.flush();
                }
                if count > 0 {
                    return Ok(count);
                }
            }
            if self.ended || self.fill()? == 0 {
                return Ok(0);
            }
        }
    }

    pub fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        if self.outgoing.len() >= MOST_TAKEN {
            self.flush()?;
        }
        let taken = &from[..from.len().min(MOST_TAKEN)];
        self.advance(&mut [], Then::Seal(taken))?;
        match self.flush() {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            _ => Ok(taken.len()),
        }
    }

    pub fn wants_write(&self) -> bool {
        !self.outgoing.is_empty()
    }

    pub fn flush(&mut self) -> io::Result<()> {
        while !self.outgoing.is_empty() {
            let count = send(&self.socket, self.outgoing.waiting())?;
            self.outgoing.take(count);
        }
        Ok(())
    }

    pub fn say_goodbye(&mut self) {
        if self.advance(&mut [], Then::SayGoodbye).is_ok() {
            let _ = self.flush();
        }
    }

    pub fn agreement(&self) -> Option<Agreement> {
        let state = self.connection.state();
        if state.is_handshaking() {
            return None;
        }
        Some(Agreement {
            version: state.protocol_version()?.into(),
            suite: state.negotiated_cipher_suite()?.suite().into(),
            group: state.negotiated_key_exchange_group().map_or(0, |group| group.name().into()),
            resumed: state.handshake_kind()? == HandshakeKind::Resumed,
        })
    }

    pub fn peer_certificate(&self) -> Option<Vec<u8>> {
        self.connection.state().peer_certificates()?.first().map(|leaf| leaf.to_vec())
    }

    pub fn negotiated(&self) -> Option<Negotiated> {
        let agreement = self.agreement()?;
        let version = match ProtocolVersion::from(agreement.version) {
            ProtocolVersion::TLSv1_2 => Protocol::Tls12.name().to_owned(),
            ProtocolVersion::TLSv1_3 => Protocol::Tls13.name().to_owned(),
            other => format!("{other:?}"),
        };
        let leaf = self.pin.as_ref().and_then(|pin| pin.leaf());
        // The peer of a server may have sent certificates too.
        let shown =
            self.connection.state().peer_certificates().filter(|_| leaf.is_some() && !agreement.resumed);
        Some(Negotiated {
            version,
            suite: provider::name(self.connection.state().negotiated_cipher_suite()?),
            // rustls has no CBC suites.
            mac_order: None,
            group: if agreement.group == 0 { String::new() } else { names::group(agreement.group) },
            certificate: leaf.map(|leaf| leaf.fingerprint.clone()).unwrap_or_default(),
            certificate_key: leaf.map(|leaf| leaf.key.clone()).unwrap_or_default(),
            certificate_bytes: shown.unwrap_or_default().iter().map(|one| one.len() as u64).sum(),
            resumed: agreement.resumed,
        })
    }

    /// Receives the bytes that have arrived. Ok(0): the peer has closed its end.
    fn fill(&mut self) -> io::Result<usize> {
        self.check_unbroken()?;
        if self.incoming.len() > MOST_WAITING {
            return Err(io::Error::new(ErrorKind::InvalidData, "the peer's messages have no end"));
        }
        let room = self.incoming.room(RECORD + OVERHEAD);
        let most = room.len();
        let received = receive(&self.socket, room);
        self.emptied = received.as_ref().map_or(true, |count| *count < most);
        match received {
            Ok(count) => self.incoming.add(count),
            Err(_) => self.incoming.let_go(),
        }
        received
    }

    pub fn has_emptied_socket(&self) -> bool {
        self.emptied && self.incoming.is_empty() && self.plaintext.is_empty()
    }

    /// Returns true if bytes, or the peer's end, wait here that no event of the socket reports.
    pub fn holds_more(&self) -> bool {
        self.ended || !self.incoming.is_empty() || !self.plaintext.is_empty()
    }

    pub fn into_socket(self) -> OwnedFd {
        self.socket
    }

    fn check_unbroken(&self) -> io::Result<()> {
        if self.broken {
            return Err(io::Error::new(ErrorKind::InvalidData, "the connection has failed before"));
        }
        Ok(())
    }

    /// Opens records until `into` is nearly full or there are no more, and queues bytes to send. Returns the
    /// number of bytes written to `into`.
    fn advance(&mut self, into: &mut [u8], then: Then<'_>) -> io::Result<usize> {
        self.check_unbroken()?;
        let mut filled = 0;
        loop {
            let status = self.connection.records(self.incoming.waiting());
            let mut discard = status.discard;
            let mut go_on = true;
            match status.state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record.map_err(fault)?;
                        discard += record.discard;
                        let fits = record.payload.len().min(into.len() - filled);
                        let (now, later) = record.payload.split_at(fits);
                        into[filled..filled + fits].copy_from_slice(now);
                        filled += fits;
                        if !later.is_empty() {
                            self.plaintext.room(later.len())[..later.len()].copy_from_slice(later);
                            self.plaintext.add(later.len());
                        }
                    }
                    // A record that does not fit is copied twice, so that it stays sealed until there is
                    // room. A caller that only writes must get past it.
                    go_on = into.len() - filled >= RECORD || into.is_empty();
                }
                Ok(ConnectionState::EncodeTlsData(data)) => encode(data, &mut self.outgoing)?,
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                Ok(ConnectionState::PeerClosed) => self.ended = true,
                Ok(ConnectionState::WriteTraffic(traffic)) => {
                    finish(traffic, &then, &mut self.outgoing)?;
                    go_on = false;
                }
                Ok(ConnectionState::BlockedHandshake) => match then {
                    Then::Seal(_) => return Err(ErrorKind::NotConnected.into()),
                    Then::Rest | Then::SayGoodbye => go_on = false,
                },
                Ok(_) => match then {
                    Then::Seal(_) => return Err(ErrorKind::BrokenPipe.into()),
                    Then::Rest | Then::SayGoodbye => go_on = false,
                },
                Err(error) => {
                    self.incoming.take(discard);
                    self.broken = true;
                    self.send_alert();
                    return Err(fault(error));
                }
            }
            self.incoming.take(discard);
            if !go_on {
                return Ok(filled);
            }
        }
    }

    /// Sends an alert for a fault, as far as the socket accepts it at once.
    fn send_alert(&mut self) {
        // rustls only encodes its alert here, and does not parse the faulty bytes again.
        while self.connection.state().wants_write() {
            let UnbufferedStatus { discard, state, .. } = self.connection.records(self.incoming.waiting());
            let Ok(ConnectionState::EncodeTlsData(data)) = state else { break };
            if encode(data, &mut self.outgoing).is_err() {
                break;
            }
            self.incoming.take(discard);
        }
        let _ = self.flush();
    }
}
