//! A user's connection, if it has one: opened, watched, and advanced as far as its socket allows.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use super::connector::Connector;
use super::counts::Counts;
use super::socket::{self, Epoll, Interest, Ready};
use super::task::{ConnectionReuse, Load};
use super::wire::{Passed, Wire};
use crate::failure::{Failure, Fault};
use crate::sign_in::SignIn;
use crate::sign_in::scheme::Visit;
use crate::tls::Stream;

#[derive(Default)]
pub struct Connection {
    stream: Option<Stream>,
    user: u32,
    /// Number of this user's connections so far.
    generation: u32,
    /// Socket of its last connection, reset and still watched, for the next one.
    idle: Option<OwnedFd>,
    /// Generation that opened the socket: an event of another generation is about a closed socket.
    watched: u32,
    interest: Interest,
    connector: u16,
    /// True once the negotiated parameters are counted, which the connection's first request does.
    pub is_counted: bool,
    /// Traffic on the network, if it is counted.
    wire: Option<Wire>,
    passed: Passed,
}

impl Connection {
    pub fn is_open(&self) -> bool {
        self.stream.is_some()
    }

    /// Returns true if an event is about this connection, not an earlier one of its user.
    #[inline]
    pub fn concerns(&self, generation: u32) -> bool {
        self.watched == generation && self.stream.is_some()
    }

    /// Returns the number of the connection, which each new one changes.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// Returns the number of the next request's connection: this one, or a new one if it is not open.
    #[inline]
    pub fn next_generation(&self) -> u32 {
        if self.is_open() { self.generation } else { self.generation.wrapping_add(1) }
    }

    pub fn close(&mut self) {
        self.look();
        self.sent();
        let Some(stream) = self.stream.take() else { return };
        // A socket whose traffic is counted is not used again, because the kernel counts for the life of a
        // socket.
        self.idle = if self.wire.take().is_none() { stream.reset() } else { None };
    }

    /// Counts the bytes that arrived since the last look, before the client continues.
    #[inline]
    pub fn look(&mut self) {
        if let (Some(wire), Some(stream)) = (&mut self.wire, &self.stream) {
            wire.look(stream, &mut self.passed);
        }
    }

    #[inline]
    fn sent(&mut self) {
        if let (Some(wire), Some(stream)) = (&mut self.wire, &self.stream) {
            wire.sent(stream, &mut self.passed);
        }
    }

    /// Counts the bytes that were sent, and adds all traffic to the totals, after the client continued.
    #[inline]
    pub fn count_passed(&mut self, state: &mut LoopState) {
        if state.counts_wire {
            self.sent();
            state.counts.passed.add(std::mem::take(&mut self.passed));
        }
    }

    /// Opens a new connection.
    pub fn open(
        &mut self,
        user: u32,
        connector: u16,
        interest: Interest,
        state: &mut LoopState,
    ) -> Result<(), Fault> {
        (self.user, self.connector, self.is_counted) = (user, connector, false);
        self.generation = self.generation.wrapping_add(1);
        let socket = self.socket(interest, state)?;
        self.stream = Some(state.connectors[usize::from(connector)].open(socket)?);
        state.counts.connections += 1;
        self.wire = state.counts_wire.then(|| Wire::connecting(&mut self.passed));
        Ok(())
    }

    /// Returns a connecting and watched socket: the last one if possible, which costs a third of a new one.
    fn socket(&mut self, interest: Interest, state: &LoopState) -> Result<OwnedFd, Fault> {
        let connecting = |error: io::Error| Fault::of(&error, "connecting");
        let watching = |error: io::Error| Fault::of(&error, "watching a connection");
        if let Some(socket) = self.idle.take() {
            socket::connect_again(&socket, &state.address).map_err(connecting)?;
            if self.interest != interest {
                let token = Ready::token(self.user, self.watched);
                state.epoll.change(&socket, token, interest).map_err(watching)?;
                self.interest = interest;
            }
            return Ok(socket);
        }
        let socket = socket::connect(&state.address).map_err(connecting)?;
        (self.watched, self.interest) = (self.generation, interest);
        state.epoll.watch(&socket, Ready::token(self.user, self.watched), interest).map_err(watching)?;
        Ok(socket)
    }

    /// Returns true if the event shows that the socket is connected.
    pub fn is_connected(&self, ready: Ready) -> Result<bool, Fault> {
        if let Some(stream) = &self.stream
            && ready.ended()
        {
            socket::pending_error(stream).map_err(|error| Fault::of(&error, "connecting"))?;
        }
        Ok(ready.to_write())
    }

    /// Continues the handshake. Returns true once it is done and its result is the expected one.
    pub fn handshake(&mut self, carries_request: bool, state: &mut LoopState) -> Result<bool, Fault> {
        let Some(stream) = &mut self.stream else { return Ok(false) };
        let shaken = if carries_request { stream.handshake_before_write() } else { stream.handshake() };
        if let Err(error) = shaken {
            let wants_room = stream.wants_write();
            return self.wait(error, wants_room, "shaking hands", state).map(|()| false);
        }
        let negotiated = state.connectors[usize::from(self.connector)].agreed(stream, state.must_resume)?;
        if let Some(negotiated) = &negotiated {
            state.counts.handshake(negotiated);
        }
        if carries_request {
            self.is_counted = true;
            state.counts.negotiated(negotiated);
        }
        Ok(true)
    }

    /// Counts the negotiated parameters, once per connection.
    pub fn count(&mut self, state: &mut LoopState) -> Result<(), Fault> {
        if let Some(stream) = &self.stream
            && !std::mem::replace(&mut self.is_counted, true)
        {
            let negotiated = state.connectors[usize::from(self.connector)].agreed(stream, false)?;
            state.counts.negotiated(negotiated);
        }
        Ok(())
    }

    /// Sends the rest of the request. Returns true once all is sent.
    #[inline]
    pub fn send(&mut self, visit: &Visit, sent: &mut usize, state: &mut LoopState) -> Result<bool, Fault> {
        let Some(stream) = &mut self.stream else { return Ok(false) };
        let bytes = state.sign_in.request(visit);
        let mut result = Ok(());
        while *sent < bytes.len() && result.is_ok() {
            result = stream.write(&bytes[*sent..]).map(|count| {
                *sent += count;
                state.counts.bytes_sent += count as u64;
            });
        }
        if result.is_ok() && stream.wants_write() {
            result = stream.flush();
        }
        match result {
            Ok(()) => {
                state.counts.exchanged.sent(bytes);
                Ok(true)
            }
            Err(error) => self.wait(error, true, "sending", state).map(|()| false),
        }
    }

    /// Waits after an incomplete operation, and watches the socket for room as well if the operation needs
    /// room.
    fn wait(
        &mut self,
        error: io::Error,
        wants_room: bool,
        doing: &str,
        state: &LoopState,
    ) -> Result<(), Fault> {
        if error.kind() != ErrorKind::WouldBlock {
            return Err(Fault::of(&error, doing));
        }
        match &self.stream {
            Some(stream) if wants_room => {
                let token = Ready::token(self.user, self.watched);
                self.interest = Interest::ReadAndWrite;
                let changed = state.epoll.change(stream, token, Interest::ReadAndWrite);
                changed.map_err(|error| Fault::of(&error, "watching a connection"))
            }
            _ => Ok(()),
        }
    }

    /// Reads the bytes that have arrived: 0 at the end, None if there are none.
    #[inline]
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, io::Error> {
        let Some(stream) = &mut self.stream else { return Ok(None) };
        match stream.read(buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            read => read.map(Some),
        }
    }

    /// Returns true if an event will report further bytes; without TLS, after a read that left room
    /// (`short`).
    #[inline]
    pub fn has_emptied_socket(&self, short: bool) -> bool {
        self.stream.as_ref().is_none_or(|stream| stream.has_emptied_socket(short))
    }
}

/// State that the users of one loop share, so that each user stays small.
pub struct LoopState {
    pub address: SocketAddr,
    pub epoll: Epoll,
    pub connectors: Vec<Connector>,
    pub shares: Vec<u32>,
    /// Kind of every connection, if the shares do not apply.
    pub only_connector: Option<u16>,
    pub sign_in: SignIn,
    /// True if a connection is kept for the next operation.
    pub keeps: bool,
    /// True for a server that the lab started and configured to keep connections.
    pub is_lab: bool,
    /// Buffer of all reads, overwritten by the next one.
    pub buffer: Vec<u8>,
    pub counts: Counts,
    /// True if clients that keep sessions have one by now, and must resume it.
    pub must_resume: bool,
    /// True if traffic on the network is counted.
    pub counts_wire: bool,
}

impl LoopState {
    pub fn new(
        load: &Load,
        connectors: Vec<Connector>,
        sign_in: SignIn,
        buffer_bytes: usize,
    ) -> Result<LoopState, Failure> {
        Ok(LoopState {
            address: load.address,
            epoll: Epoll::new().map_err(|error| Failure::Failed(format!("epoll: {error}")))?,
            connectors,
            shares: load.clients.iter().map(|kind| kind.share).collect(),
            only_connector: None,
            sign_in,
            keeps: load.connection == ConnectionReuse::User,
            is_lab: load.is_lab,
            buffer: vec![0; buffer_bytes],
            counts: Counts::default(),
            must_resume: false,
            counts_wire: !load.elsewhere.is_empty(),
        })
    }
}
