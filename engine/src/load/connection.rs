//! A user's connection, if it has one: made, watched, and moved along as far as its socket lets it.

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
    /// The number of this user's connections so far.
    generation: u32,
    /// The socket of its last connection, reset and still watched, for the next one.
    idle: Option<OwnedFd>,
    /// The generation that opened the socket: an event that names another one is about a socket that is closed.
    watched: u32,
    interest: Interest,
    connector: u16,
    /// What was negotiated is counted with the first request that it carries.
    pub is_counted: bool,
    /// What passes on the network, where that is counted.
    wire: Option<Wire>,
    passed: Passed,
}

impl Connection {
    pub fn is_open(&self) -> bool {
        self.stream.is_some()
    }

    /// Whether an event is about this connection, and not an earlier one of its user.
    #[inline]
    pub fn concerns(&self, generation: u32) -> bool {
        self.watched == generation && self.stream.is_some()
    }

    /// Another number after each new one.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// The number of the connection that the next request goes on: this one, or if it is not open, another.
    #[inline]
    pub fn next_generation(&self) -> u32 {
        if self.is_open() { self.generation } else { self.generation.wrapping_add(1) }
    }

    pub fn close(&mut self) {
        self.look();
        self.sent();
        let Some(stream) = self.stream.take() else { return };
        // The kernel's counts of a connection are looked at where its network's traffic is counted: one socket has one.
        self.idle = if self.wire.take().is_none() { stream.reset() } else { None };
    }

    /// Before the client goes on with it: what has come since.
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

    /// After it: what was sent; and all that passed is counted.
    #[inline]
    pub fn count_passed(&mut self, state: &mut LoopState) {
        if state.counts_wire {
            self.sent();
            state.counts.passed.add(std::mem::take(&mut self.passed));
        }
    }

    /// Begins a new one.
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

    /// A socket that connects and is watched: the last one again, which costs a third of a new one.
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

    /// Whether the socket is connected, as far as an event tells.
    pub fn is_connected(&self, ready: Ready) -> Result<bool, Fault> {
        if let Some(stream) = &self.stream
            && ready.ended()
        {
            socket::pending_error(stream).map_err(|error| Fault::of(&error, "connecting"))?;
        }
        Ok(ready.to_write())
    }

    /// Goes on with the handshake; true once that is done, and what came out of it is as it should be.
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

    /// Counts what was negotiated, if that was not done before.
    pub fn count(&mut self, state: &mut LoopState) -> Result<(), Fault> {
        if let Some(stream) = &self.stream
            && !std::mem::replace(&mut self.is_counted, true)
        {
            let negotiated = state.connectors[usize::from(self.connector)].agreed(stream, false)?;
            state.counts.negotiated(negotiated);
        }
        Ok(())
    }

    /// Sends on; true once all is sent.
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

    /// After what the socket would not do at once: has it watched for room too, if room is what it lacks.
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

    /// Reads what has come: 0 at the end, None where nothing has.
    #[inline]
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, io::Error> {
        let Some(stream) = &mut self.stream else { return Ok(None) };
        match stream.read(buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            read => read.map(Some),
        }
    }

    /// Whether an event will say of anything more that comes; in clear, after a read that left room (`short`).
    #[inline]
    pub fn has_emptied_socket(&self, short: bool) -> bool {
        self.stream.as_ref().is_none_or(|stream| stream.has_emptied_socket(short))
    }
}

/// What the users of one loop share, so that each of them stays small.
pub struct LoopState {
    pub address: SocketAddr,
    pub epoll: Epoll,
    pub connectors: Vec<Connector>,
    pub shares: Vec<u32>,
    /// Where every connection is to be of one kind, whatever the shares.
    pub only_connector: Option<u16>,
    pub sign_in: SignIn,
    /// Whether a connection is kept for the next operation.
    pub keeps: bool,
    /// True for a server that the lab started and configured to keep connections.
    pub is_lab: bool,
    /// Everything is read into here, and gone with the next read.
    pub buffer: Vec<u8>,
    pub counts: Counts,
    /// Whether clients that keep sessions have one by now, and have to resume it.
    pub must_resume: bool,
    /// Whether what passes on the network is counted.
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
