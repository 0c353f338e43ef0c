//! A user: its connection, and the operation in progress on it. It never blocks.

use super::connection::{Connection, LoopState};
use super::socket::{Interest, Ready};
use crate::failure::{self, Fault};
use crate::http::response::{Response, Taken};
use crate::random::UserRandom;
use crate::sign_in::scheme::{Judgement, Visit};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Stage {
    /// No connection, or one that waits for a request.
    #[default]
    Resting,
    Connecting,
    Handshaking,
    /// Sending; the number is that of the request's bytes sent so far.
    Sending(usize),
    Receiving,
}

#[derive(Default)]
pub struct User {
    connection: Connection,
    stage: Stage,
    /// True if it has a request; without one a connection is opened and then rests.
    has_request: bool,
    /// True while a request on a kept connection has no byte of an answer: the server may have closed the
    /// connection before it read the request.
    may_ask_again: bool,
    visit: Visit,
    /// Intended start of the operation, from which latency counts.
    pub intended_ns: u64,
    /// Actual start, from which its limit counts.
    pub began_ns: u64,
    response: Response,
    random: UserRandom,
}

#[derive(Debug)]
pub enum Step {
    /// In progress: an event will report when to continue.
    Waiting,
    /// The operation is done, and its answers were right.
    Answered,
    /// The connection is open, and rests.
    Opened,
    /// The server ended a connection on which no operation was in progress.
    Lost,
    Failed(Fault),
}

impl User {
    pub fn busy(&self) -> bool {
        self.stage != Stage::Resting
    }

    /// Returns status and bytes of the last answer.
    pub fn answer(&self) -> (u16, u64) {
        (self.response.status, self.response.bytes)
    }

    /// Returns the user that the server saw in the last request, if the server reported it and the answer's
    /// head was kept.
    pub fn seen(&self) -> Option<&str> {
        self.response.header("X-User")
    }

    pub fn visit(&self) -> &Visit {
        &self.visit
    }

    /// Returns true if an event is about this user's current connection.
    #[inline]
    pub fn concerns(&self, generation: u32) -> bool {
        self.connection.concerns(generation)
    }

    /// Begins a phase with its own random numbers; with `counts_anew` earlier negotiations count in it.
    pub fn enter(&mut self, random: UserRandom, counts_anew: bool) {
        self.random = random;
        self.connection.is_counted &= !counts_anew;
    }

    /// Starts the next operation it draws, on its connection or on a new one.
    #[inline]
    pub fn start(&mut self, index: u32, state: &mut LoopState) -> Step {
        self.visit = state.sign_in.draw(index, self.connection.next_generation(), &mut self.random);
        self.has_request = true;
        if let Err(fault) = state.sign_in.begin(&self.visit) {
            return self.fail(fault);
        }
        self.start_leg(state)
    }

    /// Opens a connection that will rest.
    pub fn open(&mut self, index: u32, state: &mut LoopState) -> Step {
        self.visit.user = index;
        self.has_request = false;
        self.connect(state)
    }

    /// Ends the connection, and with it the operation in progress.
    pub fn close(&mut self) {
        self.connection.close();
        self.stage = Stage::Resting;
    }

    /// Ends an operation that has taken too long.
    pub fn time_out(&mut self, taken_ns: u64) -> Fault {
        let state = match self.stage {
            Stage::Resting => "resting",
            Stage::Connecting => "not connected",
            Stage::Handshaking => "the handshake not done",
            Stage::Sending(_) => "the request not sent",
            Stage::Receiving => "no whole answer",
        };
        self.close();
        Fault::new(failure::TIMEOUT, format!("{state} after {} ms", taken_ns / 1_000_000))
    }

    /// Sends the request of this leg.
    #[inline]
    fn start_leg(&mut self, state: &mut LoopState) -> Step {
        self.response.begin();
        // A later leg needs the connection of the first. A server of the lab must not close one: that fails
        // the trial.
        self.may_ask_again = !state.is_lab && self.connection.is_open() && self.visit.leg == 0;
        if !self.connection.is_open() {
            return self.connect(state);
        }
        if let Err(fault) = self.connection.count(state) {
            return self.fail(fault);
        }
        self.visit.connection = self.connection.generation();
        self.stage = Stage::Sending(0);
        self.go_on(Ready::TO_WRITE, state)
    }

    fn connect(&mut self, state: &mut LoopState) -> Step {
        let connector = state.only_connector.unwrap_or_else(|| self.random.connector(&state.shares));
        // On the loopback a connection is established by now, and has room for a request: an attempt costs
        // less than an event.
        let interest = if self.has_request { Interest::Read } else { Interest::ReadAndWrite };
        // A connection to be kept was opened before the phase, so that a new one replaces it.
        state.counts.reopened += u64::from(state.keeps && self.has_request);
        if let Err(fault) = self.connection.open(self.visit.user, connector, interest, state) {
            return self.fail(fault);
        }
        self.visit.connection = self.connection.generation();
        if !self.has_request {
            // Without a request only an event shows that it is connected.
            self.stage = Stage::Connecting;
            return Step::Waiting;
        }
        self.stage = Stage::Handshaking;
        self.go_on(Ready::TO_WRITE, state)
    }

    /// Continues as far as the socket allows.
    #[inline]
    pub fn go_on(&mut self, ready: Ready, state: &mut LoopState) -> Step {
        self.connection.look();
        let step = match self.attempt(ready, state) {
            Ok(step) => step,
            Err(fault) if self.may_ask_again && fault.is_of_closing() => {
                self.connection.count_passed(state);
                return self.ask_again(state);
            }
            Err(fault) => self.fail(fault),
        };
        self.connection.count_passed(state);
        step
    }

    /// Sends the request again on a new connection, which RFC 9112, section 9.3.1, allows if the server
    /// closes a kept one before its answer. A request on a new connection is not sent again.
    #[cold]
    fn ask_again(&mut self, state: &mut LoopState) -> Step {
        self.close();
        self.start_leg(state)
    }

    fn fail(&mut self, fault: Fault) -> Step {
        self.close();
        Step::Failed(fault)
    }

    #[inline]
    fn attempt(&mut self, ready: Ready, state: &mut LoopState) -> Result<Step, Fault> {
        let mut may_have_come = ready.to_read();
        match self.stage {
            Stage::Resting if ready.to_read() => return self.check_resting(state),
            Stage::Resting => return Ok(Step::Waiting),
            Stage::Connecting | Stage::Handshaking => {
                if self.stage == Stage::Connecting && !self.connection.is_connected(ready)? {
                    return Ok(Step::Waiting);
                }
                self.stage = Stage::Handshaking;
                if !self.connection.handshake(self.has_request, state)? {
                    return Ok(Step::Waiting);
                }
                if !self.has_request {
                    self.stage = Stage::Resting;
                    // Its end may have come together with its beginning, and is reported once.
                    let lost = ready.ended() && matches!(self.check_resting(state)?, Step::Lost);
                    return Ok(if lost { Step::Lost } else { Step::Opened });
                }
                self.stage = Stage::Sending(0);
                // No answer comes before its request: a read could only fail.
                may_have_come &= ready.ended() || !self.connection.has_emptied_socket(false);
            }
            Stage::Sending(_) | Stage::Receiving => {}
        }
        if let Stage::Sending(mut sent) = self.stage {
            let done = self.connection.send(&self.visit, &mut sent, state)?;
            self.stage = if done { Stage::Receiving } else { Stage::Sending(sent) };
        }
        if may_have_come { self.receive(ready, state) } else { Ok(Step::Waiting) }
    }

    #[inline]
    fn receive(&mut self, ready: Ready, state: &mut LoopState) -> Result<Step, Fault> {
        loop {
            let read = self.connection.read(&mut state.buffer);
            let Some(count) = read.map_err(|error| Fault::of(&error, "receiving"))? else {
                return Ok(Step::Waiting);
            };
            state.counts.bytes_received += count as u64;
            self.may_ask_again &= count == 0;
            let taken = match count {
                0 => self.response.end().map(|()| Taken::Whole(0)),
                _ => self.response.take(&state.buffer[..count], state.sign_in.expected(&self.visit)),
            };
            match taken? {
                Taken::Whole(length) => {
                    let judgement = state.sign_in.judge(&self.visit, &self.response)?;
                    if length < count {
                        let words = format!("the server sent {} bytes more than the answer", count - length);
                        return Err(Fault::new(failure::NOT_HTTP, words));
                    }
                    // The answer came before the request was sent completely: the rest would be parsed as the
                    // next request.
                    let whole = self.stage == Stage::Receiving;
                    let keeps = whole && self.response.keeps && count > 0 && !ready.ended();
                    return Ok(self.conclude(&judgement, keeps, state));
                }
                Taken::More => {
                    let short = count < state.buffer.len();
                    if self.connection.has_emptied_socket(short) && !ready.ended() {
                        return Ok(Step::Waiting);
                    }
                }
            }
        }
    }

    /// Continues after a right answer: with the next leg, or the end of the operation.
    #[inline]
    fn conclude(&mut self, judgement: &Judgement, keeps: bool, state: &mut LoopState) -> Step {
        let done = *judgement == Judgement::Done;
        if !keeps || (done && !state.keeps) {
            self.close();
        }
        self.stage = Stage::Resting;
        if done {
            state.counts.exchanged.sign_ons += u64::from(state.sign_in.signs_on(&self.visit));
            return Step::Answered;
        }
        self.visit.leg += 1;
        self.start_leg(state)
    }

    /// Reads from a connection without an operation: its end, or bytes that no request asked for.
    fn check_resting(&mut self, state: &mut LoopState) -> Result<Step, Fault> {
        match self.connection.read(&mut state.buffer) {
            Ok(None) => Ok(Step::Waiting),
            Ok(Some(count)) if count > 0 => {
                Err(Fault::new(failure::NOT_HTTP, format!("the server sent {count} bytes without a request")))
            }
            _ => {
                self.close();
                Ok(Step::Lost)
            }
        }
    }
}
