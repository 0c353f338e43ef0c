//! One user that sends one request at a time, each on a connection of its own: what proofs are made with.

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

/// Which user signed in, and which one the server says that it saw.
pub struct SignedIn {
    pub user: String,
    pub seen: Option<String>,
}

impl Probe {
    pub fn new(load: &Load, connector: Connector, path: &str) -> Result<Probe, Failure> {
        Probe::with(load, connector, |visitors| SignIn::proof(visitors, path))
    }

    /// One that signs in wrongly, or will (`do_wrong`).
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

    /// One that signs in so, on the connections that the load has it do that on.
    pub fn of(mut load: Load, connector: Connector, sign_in: SignIn) -> Result<Probe, Failure> {
        load.clients.truncate(1);
        let state = LoopState::new(&load, vec![connector], sign_in, 64 << 10)?;
        // Its queries are no user's: those of a trial come to a server that has not seen them.
        let mut user = User::default();
        user.enter(UserRandom::new(0x7665_7269_6679, u32::MAX, clock::wall_ns()), false);
        Ok(Probe { state, user, limit_ns: nanoseconds(load.request_limit_s) })
    }

    /// The answer, if it is whole and as expected.
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

    /// So many operations have the share of those that the server remembers.
    pub fn whole(&self) -> u64 {
        self.state.sign_in.whole()
    }

    /// How many of the requests so far the server had to verify.
    pub fn sign_ons(&self) -> u64 {
        self.state.counts.exchanged.sign_ons
    }

    /// Why this server has not to refuse that; None: it has to.
    pub fn why_not(&self, wrong: &'static str) -> Option<&'static str> {
        self.state.sign_in.why_not(wrong)
    }

    /// What a wrong thing comes to with this server.
    pub fn says(&self, wrong: &'static str) -> Option<String> {
        self.state.sign_in.says(wrong)
    }

    /// From now on does what a scheme's server has to refuse.
    pub fn do_wrong(&mut self, wrong: &'static str) {
        self.state.sign_in.do_wrong(wrong);
    }

    /// How many pages it was given in the last operation before what had to be refused.
    pub fn given_before(&self) -> u64 {
        self.state.sign_in.given_before()
    }

    /// How many connections the last request was sent on.
    #[cfg(test)]
    pub fn connections(&self) -> u64 {
        self.state.counts.connections
    }

    /// Gives back the connector, with the sessions it has kept.
    pub fn into_connector(mut self) -> Connector {
        self.user.close();
        self.state.connectors.swap_remove(0)
    }
}
