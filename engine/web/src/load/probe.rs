//! A user that sends one request at a time, each on its own connection, for proofs.

use super::connection::LoopState;
use super::connector::Connector;
use super::counts::Counts;
use super::phase::nanoseconds;
use super::task::{ConnectionReuse, Load};
use super::user::{Step, User};
use crate::clock;
use crate::failure::{self, Failure, Fault};
use crate::random::UserRandom;
use crate::sign_in::scheme::Wrong;
use crate::sign_in::{SignIn, Visitors};
use crate::tls::Negotiated;

pub struct Probe {
    state: LoopState,
    user: User,
    limit_ns: u64,
}

/// A right answer.
pub struct Answer {
    pub status: u16,
    pub bytes: u64,
    pub negotiated: Option<Negotiated>,
    pub signed_in: Option<SignedIn>,
}

/// The user that signed in, and the one that the server reports.
pub struct SignedIn {
    pub user: String,
    pub seen: Option<String>,
}

impl Probe {
    pub fn new(load: &Load, connector: Connector, path: &str) -> Result<Probe, Failure> {
        Probe::with(load, connector, |visitors| SignIn::proof(visitors, path))
    }

    /// Makes a probe that signs in wrongly, or will (`do_wrong`).
    pub fn wrong(load: &Load, connector: Connector, path: &str, wrong: Wrong) -> Result<Probe, Failure> {
        Probe::with(load, connector, |visitors| SignIn::wrong(visitors, path, wrong))
    }

    fn with(
        load: &Load,
        connector: Connector,
        sign_in: impl FnOnce(&Visitors) -> Result<SignIn, Failure>,
    ) -> Result<Probe, Failure> {
        let load = Load { connection: ConnectionReuse::New, ..load.clone() };
        let sign_in = sign_in(&load.visitors())?;
        Probe::of(load, connector, sign_in)
    }

    /// Makes a probe with this sign-in, on connections as the load configures them.
    pub fn of(mut load: Load, connector: Connector, sign_in: SignIn) -> Result<Probe, Failure> {
        load.clients.truncate(1);
        let state = LoopState::new(&load, vec![connector], sign_in, 64 << 10)?;
        // Its queries differ from those of every user, so that a trial's queries are new to the server.
        let mut user = User::default();
        user.enter(UserRandom::new(0x7665_7269_6679, u32::MAX, clock::wall_ns()), false);
        Ok(Probe { state, user, limit_ns: nanoseconds(load.request_limit_s) })
    }

    /// Sends a request, and returns the answer if it is complete and as expected.
    pub fn send(&mut self) -> Result<Answer, Fault> {
        self.state.counts = Counts::default();
        let end_ns = clock::wall_ns() + self.limit_ns;
        let mut step = self.user.start(0, &mut self.state);
        loop {
            match step {
                Step::Answered => break,
                Step::Failed(fault) => return Err(fault),
                Step::Waiting | Step::Opened => {}
                Step::Lost => return Err(Fault::new(failure::CLOSED_EARLY, "the connection was closed")),
            }
            let now = clock::wall_ns();
            if now >= end_ns {
                return Err(self.user.time_out(self.limit_ns));
            }
            step = Step::Waiting;
            let count = self.state.epoll.wait(now, end_ns).map_err(|error| Fault::of(&error, "waiting"))?;
            let mut ready = (0..count).map(|index| self.state.epoll.ready(index));
            if let Some(ready) =
                ready.find(|ready| matches!(ready.about(), (0, of) if self.user.concerns(of)))
            {
                step = self.user.go_on(ready, &mut self.state);
            }
        }
        let (status, bytes) = self.user.answer();
        let negotiated = self.state.counts.negotiated.first();
        let negotiated = negotiated.map(|(negotiated, _)| (**negotiated).clone());
        let seen = self.user.seen().map(str::to_owned);
        let user = self.state.sign_in.user(self.user.visit());
        let signed_in = user.map(|user| SignedIn { user: user.to_owned(), seen });
        Ok(Answer { status, bytes, negotiated, signed_in })
    }

    /// Returns the number of operations in which the share of remembered credentials is exact.
    pub fn whole(&self) -> u64 {
        self.state.sign_in.whole()
    }

    /// Returns the number of requests so far that the server had to verify.
    pub fn sign_ons(&self) -> u64 {
        self.state.counts.exchanged.sign_ons
    }

    /// Returns the reason why this server need not refuse a wrong input; None if it must.
    pub fn why_not(&self, wrong: &'static str) -> Option<&'static str> {
        self.state.sign_in.why_not(wrong)
    }

    /// Describes a wrong input as it applies to this server.
    pub fn says(&self, wrong: &'static str) -> Option<String> {
        self.state.sign_in.says(wrong)
    }

    /// Makes later operations use an input that a scheme's server must refuse.
    pub fn do_wrong(&mut self, wrong: &'static str) {
        self.state.sign_in.do_wrong(wrong);
    }

    /// Returns the number of pages that the last operation got before the input to refuse.
    pub fn given_before(&self) -> u64 {
        self.state.sign_in.given_before()
    }

    /// Returns the number of connections that the last request opened.
    #[cfg(test)]
    pub fn connections(&self) -> u64 {
        self.state.counts.connections
    }

    /// Returns the connector, with the sessions it has kept.
    pub fn into_connector(mut self) -> Connector {
        self.user.close();
        self.state.connectors.swap_remove(0)
    }
}
