//! One user that sends one request at a time, each on a connection of its own: what proofs are made with.

use super::connector::Connector;
use super::counts::Counts;
use super::phase::nanoseconds;
use super::state::LoopState;
use super::user::{Step, User};
use crate::clock;
use crate::contract::Failure;
use crate::exchanges::exchange::Exchange;
use crate::exchanges::scheme::Wrong;
use crate::fault::{self, Fault};
use crate::load_task::{ConnectionReuse, Load};
use crate::random::UserRandom;
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
        Probe::with(load, connector, |load| Exchange::proof(load, path))
    }

    /// One that signs in wrongly, or will (`do_wrong`).
    pub fn wrong(load: &Load, connector: Connector, path: &str, wrong: Wrong) -> Result<Probe, Failure> {
        Probe::with(load, connector, |load| Exchange::wrong(load, path, wrong))
    }

    fn with(
        load: &Load,
        connector: Connector,
        exchange: impl FnOnce(&Load) -> Result<Exchange, Failure>,
    ) -> Result<Probe, Failure> {
        let load = Load { connection: ConnectionReuse::New, ..load.clone() };
        let exchange = exchange(&load)?;
        Probe::of(load, connector, exchange)
    }

    /// One that performs an exchange, on the connections that the load has it perform it on.
    pub fn of(mut load: Load, connector: Connector, exchange: Exchange) -> Result<Probe, Failure> {
        load.clients.truncate(1);
        let state = LoopState::new(&load, vec![connector], exchange, 64 << 10)?;
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
                Step::Lost => return Err(Fault::new(fault::CLOSED_EARLY, "the connection was closed")),
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
        let user = self.state.exchange.user(self.user.operation());
        let signed_in = user.map(|user| SignedIn { user: user.to_owned(), seen });
        Ok(Answer { status, bytes, negotiated, signed_in })
    }

    /// Why this server has not to refuse that; None: it has to.
    pub fn why_not(&self, wrong: &'static str) -> Option<&'static str> {
        self.state.exchange.why_not(wrong)
    }

    /// From now on does what a scheme's server has to refuse.
    pub fn do_wrong(&mut self, wrong: &'static str) {
        self.state.exchange.do_wrong(wrong);
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
