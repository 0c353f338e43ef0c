//! One user: a connection and what is under way on it. It never waits; it goes as far as its socket lets it.

use super::draws::Draws;
use super::fault::{self, Fault};
use super::kinds::{Kind, would_block};
use super::request::Prebuilt;
use super::response::{Expected, Response, Taken};
use super::socket::{self, Epoll, Ready};
use super::tally::Tally;
use crate::tls::Stream;

/// What the users of one loop share, so that each of them stays small.
pub struct LoopState {
    pub address: std::net::SocketAddr,
    pub epoll: Epoll,
    pub kinds: Vec<Kind>,
    pub shares: Vec<u32>,
    /// Where every connection is to be of one kind, whatever the shares.
    pub only_kind: Option<u16>,
    pub requests: Vec<Prebuilt>,
    pub expected: Expected,
    /// Whether a connection is kept for the next request.
    pub keeps: bool,
    /// Everything is read into here, and gone with the next read.
    pub buffer: Vec<u8>,
    pub tally: Tally,
    /// Whether a kind that resumes has to by now.
    pub resumed_by_now: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// No connection, or one that waits for a request.
    Resting,
    Connecting,
    Handshaking,
    /// So many bytes of the request were taken.
    Sending(usize),
    Receiving,
}

pub struct User {
    stream: Option<Stream>,
    stage: Stage,
    /// Told apart from the events of this user's earlier connections.
    generation: u32,
    kind: u16,
    path: u16,
    /// Has a request; without one a connection is made and then rests.
    asking: bool,
    /// What was negotiated is counted with the first request that it carries.
    counted: bool,
    unique: u64,
    /// When the request was to start: latency counts from here.
    pub intended_ns: u64,
    /// When it did: its limit counts from here.
    pub began_ns: u64,
    response: Response,
    pub draws: Draws,
}

#[derive(Debug)]
pub enum Step {
    /// Under way: an event will tell.
    Waiting,
    /// The answer is whole and right.
    Answered,
    /// The connection is made, and rests.
    Opened,
    /// The server ended a connection on which nothing was under way.
    Lost,
    Failed(Fault),
}

impl User {
    pub fn new(draws: Draws) -> User {
        User {
            stream: None,
            stage: Stage::Resting,
            generation: 0,
            kind: 0,
            path: 0,
            asking: false,
            counted: false,
            unique: 0,
            intended_ns: 0,
            began_ns: 0,
            response: Response::default(),
            draws,
        }
    }

    pub fn busy(&self) -> bool {
        self.stage != Stage::Resting
    }

    /// Status and bytes of the last answer.
    pub fn answer(&self) -> (u16, u64) {
        (self.response.status, self.response.bytes)
    }

    /// What it is at, for the words of one that took too long.
    pub fn doing(&self) -> &'static str {
        match self.stage {
            Stage::Resting => "resting",
            Stage::Connecting => "not connected",
            Stage::Handshaking => "the handshake not done",
            Stage::Sending(_) => "the request not sent",
            Stage::Receiving => "no whole answer",
        }
    }

    /// Whether an event is about this user's connection of now.
    #[inline]
    pub fn concerns(&self, generation: u32) -> bool {
        self.generation == generation && self.stream.is_some()
    }

    /// Asks for the next thing it draws, on the connection it has or on a new one of this kind.
    #[inline]
    pub fn ask(&mut self, index: u32, state: &mut LoopState) -> Step {
        (self.path, self.unique) = self.draws.request(state.requests.len());
        self.asking = true;
        self.response.begin();
        let Some(stream) = &self.stream else { return self.connect(index, state) };
        if !self.counted {
            self.counted = true;
            state.tally.negotiated(stream.negotiated());
        }
        self.stage = Stage::Sending(0);
        self.go_on(Ready::TO_WRITE, state)
    }

    /// Makes a connection that will rest.
    pub fn open(&mut self, index: u32, state: &mut LoopState) -> Step {
        self.asking = false;
        self.connect(index, state)
    }

    /// Begins a phase: its own draws, and perhaps what was negotiated before counts in it.
    pub fn enter(&mut self, draws: Draws, counts_anew: bool) {
        (self.draws, self.counted) = (draws, self.counted && !counts_anew);
    }

    fn connect(&mut self, index: u32, state: &mut LoopState) -> Step {
        self.kind = state.only_kind.unwrap_or_else(|| self.draws.kind(&state.shares));
        self.counted = false;
        self.generation = self.generation.wrapping_add(1);
        let stream = match state.kinds[usize::from(self.kind)].open(&state.address) {
            Ok(stream) => stream,
            Err(fault) => return Step::Failed(fault),
        };
        let token = u64::from(self.generation) << 32 | u64::from(index);
        let watched = state.epoll.watch(stream.fd(), token);
        self.stream = Some(stream);
        state.tally.connections += 1;
        // One that is kept was made before anything was asked.
        state.tally.reopened += u64::from(state.keeps && self.asking);
        if let Err(error) = watched {
            return self.fail(Fault::of(&error, "watching a connection"));
        }
        if !self.asking {
            // Nothing to send that would find out whether it is connected.
            self.stage = Stage::Connecting;
            return Step::Waiting;
        }
        self.stage = Stage::Handshaking;
        // On the loopback a connection is made by now: to try costs less than to be told.
        self.go_on(Ready::TO_WRITE, state)
    }

    /// Goes as far as the socket lets it.
    #[inline]
    pub fn go_on(&mut self, ready: Ready, state: &mut LoopState) -> Step {
        match self.attempt(ready, state) {
            Ok(step) => step,
            Err(fault) => self.fail(fault),
        }
    }

    /// Ends the connection, and with it what was under way.
    pub fn close(&mut self) {
        self.stream = None;
        self.stage = Stage::Resting;
    }

    fn fail(&mut self, fault: Fault) -> Step {
        self.close();
        Step::Failed(fault)
    }

    #[inline]
    fn attempt(&mut self, ready: Ready, state: &mut LoopState) -> Result<Step, Fault> {
        match self.stage {
            Stage::Resting if ready.to_read() => return self.look(state),
            Stage::Resting => return Ok(Step::Waiting),
            Stage::Connecting | Stage::Handshaking => {
                if !self.make(ready, state)? {
                    return Ok(Step::Waiting);
                }
                if !self.asking {
                    // Its end may have come with its beginning, and is told of once.
                    let lost = ready.ended() && matches!(self.look(state)?, Step::Lost);
                    return Ok(if lost { Step::Lost } else { Step::Opened });
                }
            }
            _ => {}
        }
        if let Stage::Sending(sent) = self.stage {
            self.send(sent, state)?;
        }
        if ready.to_read() { self.receive(ready, state) } else { Ok(Step::Waiting) }
    }

    /// Connects and shakes hands; true once that is done.
    fn make(&mut self, ready: Ready, state: &mut LoopState) -> Result<bool, Fault> {
        let Some(stream) = &mut self.stream else { return Ok(false) };
        if self.stage == Stage::Connecting {
            if ready.ended() {
                let pending = socket::pending_error(stream.fd());
                pending.map_err(|error| Fault::of(&error, "connecting"))?;
            }
            if !ready.connected() {
                return Ok(false);
            }
            self.stage = Stage::Handshaking;
        }
        match stream.handshake() {
            Ok(()) => {}
            Err(error) if would_block(&error) => return Ok(false),
            Err(error) => return Err(Fault::of(&error, "shaking hands")),
        }
        let negotiated = stream.negotiated();
        if let Some(negotiated) = &negotiated {
            state.tally.handshake(negotiated.resumed);
            let kind = &state.kinds[usize::from(self.kind)];
            kind.check(negotiated)?;
            if state.resumed_by_now {
                kind.check_resumed(negotiated)?;
            }
        }
        self.stage = Stage::Resting;
        if self.asking {
            self.stage = Stage::Sending(0);
            self.counted = true;
            state.tally.negotiated(negotiated);
        }
        Ok(true)
    }

    #[inline]
    fn send(&mut self, mut sent: usize, state: &mut LoopState) -> Result<(), Fault> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        let bytes = state.requests[usize::from(self.path)].with(self.unique);
        while sent < bytes.len() {
            match stream.write(&bytes[sent..]) {
                Ok(count) => {
                    sent += count;
                    state.tally.bytes_sent += count as u64;
                }
                Err(error) if would_block(&error) => {
                    self.stage = Stage::Sending(sent);
                    return Ok(());
                }
                Err(error) => return Err(Fault::of(&error, "sending")),
            }
        }
        if stream.wants_write() {
            match stream.flush() {
                Ok(()) => {}
                Err(error) if would_block(&error) => {
                    self.stage = Stage::Sending(sent);
                    return Ok(());
                }
                Err(error) => return Err(Fault::of(&error, "sending")),
            }
        }
        self.stage = Stage::Receiving;
        Ok(())
    }

    #[inline]
    fn receive(&mut self, ready: Ready, state: &mut LoopState) -> Result<Step, Fault> {
        let Some(stream) = &mut self.stream else { return Ok(Step::Waiting) };
        let plain = matches!(stream, Stream::Plain(_));
        loop {
            let count = match stream.read(&mut state.buffer) {
                Ok(0) => {
                    self.response.end()?;
                    self.response.check(&state.expected)?;
                    self.close();
                    return Ok(Step::Answered);
                }
                Ok(count) => count,
                Err(error) if would_block(&error) => return Ok(Step::Waiting),
                Err(error) => return Err(Fault::of(&error, "receiving")),
            };
            state.tally.bytes_received += count as u64;
            match self.response.take(&state.buffer[..count], &state.expected)? {
                Taken::Whole(length) => {
                    self.response.check(&state.expected)?;
                    if length < count {
                        let words = format!("{} bytes more than the answer", count - length);
                        return Err(Fault::new(fault::NOT_HTTP, words));
                    }
                    // An answer before the request was sent whole: its rest would be taken for the next.
                    let whole = self.stage == Stage::Receiving;
                    if !(whole && state.keeps && self.response.keeps) || ready.ended() {
                        self.close();
                    }
                    self.stage = Stage::Resting;
                    return Ok(Step::Answered);
                }
                // In clear a short read has emptied the socket, and more will be told of.
                Taken::More if plain && count < state.buffer.len() && !ready.ended() => {
                    return Ok(Step::Waiting);
                }
                Taken::More => {}
            }
        }
    }

    /// Looks at a connection on which nothing is under way.
    fn look(&mut self, state: &mut LoopState) -> Result<Step, Fault> {
        let Some(stream) = &mut self.stream else { return Ok(Step::Waiting) };
        match stream.read(&mut state.buffer) {
            Err(error) if would_block(&error) => Ok(Step::Waiting),
            Ok(count) if count > 0 => {
                Err(Fault::new(fault::NOT_HTTP, format!("{count} bytes that no request asked for")))
            }
            _ => {
                self.close();
                Ok(Step::Lost)
            }
        }
    }
}
