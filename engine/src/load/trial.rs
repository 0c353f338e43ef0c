//! One trial: made ready, advanced chunk by chunk, with the accounts opened and closed around each.

use std::sync::Arc;

use super::account::{Accounts, Paid, Reading};
use super::crew::Crew;
use super::ending::{Stop, judge};
use super::phase::{Phase, Plan, Work, nanoseconds};
use super::proc;
use super::record::{Chunk, ComponentCost, LoadRecord, NegotiatedCount, Observed};
use super::socket;
use super::tally::Tally;
use super::task::{ConnectionReuse, Load};
use crate::clock;
use crate::contract::Failure;
use crate::session::Advance;

pub struct Trial {
    plan: Arc<Plan>,
    crew: Crew,
    accounts: Accounts,
    /// The number of the next chunk.
    chunk: u32,
    /// Of all chunks: what is told at the end.
    counted: Tally,
    run_queue_wait_ns: u64,
    switches: u64,
    /// Of everything.
    reopened: u64,
}

/// What was asked within accounts, and what it cost.
struct Counted {
    tally: Tally,
    cpu_ns: u64,
    components: std::collections::BTreeMap<String, Paid>,
    ticks: bool,
    unsettled: bool,
}

/// Two windows of a warm-up that agree so far are a steady state; more would take longer than it is worth, for
/// what a window's neighbours do is more than that.
const STEADY: f64 = 0.05;
const WINDOW_NS: u64 = 10_000_000;
/// For how long two windows may go on to disagree, once there was a request for each user.
const LONGEST_UNSTEADY_NS: u64 = 60_000_000;

/// A user of a closed loop asks at least so often in a chunk: once at its start, and once at its own pace.
const LEAST_A_USER: u64 = 2;

impl Trial {
    /// Connects what is to be held, and fetches sessions that are to be resumed.
    pub fn open(load: &Load, seed: u64) -> Result<Trial, Stop> {
        fits(load)?;
        // Looks at the server's clocks come when they are due.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
        let accounts = Accounts::open(&load.components).map_err(Failure::Failed)?;
        let plan = Arc::new(Plan::new(load, seed));
        let crew = Crew::start(&plan)?;
        let (counted, chunk) = (Tally::new(), 0);
        let mut trial =
            Trial { plan, crew, accounts, chunk, counted, run_queue_wait_ns: 0, switches: 0, reopened: 0 };
        if load.connection == ConnectionReuse::User || load.idle > 0 {
            trial.once(Work::Open)?;
        }
        if load.connection == ConnectionReuse::New {
            for kind in resuming(load) {
                trial.once(Work::Prime(kind))?;
            }
        }
        Ok(trial)
    }

    /// Asks until a request costs as much as it did a moment ago: CPU nanoseconds of one, the server's, or the
    /// client's where there are no components.
    pub fn warm_up(&mut self) -> Result<u64, Stop> {
        let enough = if self.plan.is_open_loop() { 1 } else { u64::from(self.plan.load.users) };
        let (mut requests, mut enough_ns, mut former) = (0, None, None);
        for window in 0.. {
            let counted = self.account(Work::WarmUp(window), WINDOW_NS, 1)?;
            requests += counted.tally.ended;
            let cost = counted.server_ns().unwrap_or(counted.cpu_ns) as f64 / counted.tally.ended as f64;
            let steady = former.is_some_and(|former: f64| (cost / former - 1.0).abs() <= STEADY);
            former = Some(cost);
            let now = clock::wall_ns();
            if requests >= enough && now - *enough_ns.get_or_insert(now) >= LONGEST_UNSTEADY_NS {
                break;
            }
            if requests >= enough && steady {
                break;
            }
        }
        Ok(former.unwrap_or_default() as u64)
    }

    /// A chunk: each user asks once, uncounted; then so long and so many within the accounts.
    pub fn advance(&mut self, advance: Advance) -> Result<Chunk, Stop> {
        let chunk = self.chunk;
        self.chunk += 1;
        let users = u64::from(self.plan.load.users);
        let least = if self.plan.is_open_loop() { 1 } else { LEAST_A_USER * users };
        if self.plan.load.lead {
            self.once(Work::Lead(chunk))?;
        }
        let own = std::process::id() as i32;
        let (switches, run_queue_wait_ns) = (context_switches(), proc::run_queue_wait_ns(own).unwrap_or(0));
        let work = Work::Timed(chunk);
        let counted = self.account(work, nanoseconds(advance.seconds), advance.operations.max(least))?;
        self.switches += context_switches() - switches;
        self.run_queue_wait_ns += proc::run_queue_wait_ns(own).unwrap_or(0).saturating_sub(run_queue_wait_ns);
        self.counted.negotiated_as(&counted.tally);
        Ok(counted.told())
    }

    /// What is told once, at the end.
    pub fn end(mut self, client_libraries: Vec<String>) -> LoadRecord {
        let negotiated = std::mem::take(&mut self.counted.negotiated).into_iter();
        LoadRecord {
            negotiated: negotiated.map(|(negotiated, count)| NegotiatedCount { negotiated, count }).collect(),
            client_libraries,
            client_context_switches: self.switches,
            client_memory_bytes: clock::memory_bytes().1,
            client_run_queue_wait_ns: self.run_queue_wait_ns,
            reopened: self.reopened,
            components: self.accounts.close(),
        }
    }

    /// A phase between two readings of the accounts, each with nothing in flight.
    fn account(&mut self, work: Work, length_ns: u64, least: u64) -> Result<Counted, Stop> {
        let settled = self.accounts.settle();
        let opening = self.accounts.read();
        let cpu_ns = clock::process_cpu_ns();
        let tally = self.pass(work, length_ns, least)?;
        let cpu_ns = clock::process_cpu_ns() - cpu_ns;
        let settled = self.accounts.settle() && settled;
        let closing: Reading = self.accounts.read();
        self.accounts.all_there().map_err(Failure::Failed)?;
        let components = closing.since(&opening);
        let ticks = closing.inexact != opening.inexact;
        Ok(Counted { tally, cpu_ns, components, ticks, unsettled: !settled })
    }

    /// A phase that ends with its work, which the limit of each request bounds.
    fn once(&mut self, work: Work) -> Result<Tally, Stop> {
        self.pass(work, 3 * self.plan.request_limit_ns, 0)
    }

    fn pass(&mut self, work: Work, length_ns: u64, least: u64) -> Result<Tally, Stop> {
        let longest_ns = self.plan.longest_ns(length_ns);
        let tally = self.crew.pass(Phase { work, length_ns, least, longest_ns })?;
        self.reopened += tally.reopened;
        // A server of the user's own may close what it likes; that is said, and not held against it.
        let kept = !self.plan.load.components.is_empty();
        if tally.faults.total > 0 {
            // What became of the server shows in its clocks.
            self.accounts.read();
        }
        judge(work, &tally, least, self.accounts.all_there(), kept)?;
        Ok(tally)
    }
}

impl Counted {
    /// None without components.
    fn server_ns(&self) -> Option<u64> {
        (!self.components.is_empty()).then(|| self.components.values().map(|paid| paid.cpu_ns).sum())
    }

    fn told(self) -> Chunk {
        let cost =
            |paid: Paid| ComponentCost { cpu_ns: paid.cpu_ns, run_queue_wait_ns: paid.run_queue_wait_ns };
        let tally = self.tally;
        Chunk {
            operations: tally.right,
            cpu_ns: self.cpu_ns,
            wall_ns: tally.wall_ns(),
            observed: Observed {
                components: self.components.into_iter().map(|(name, paid)| (name, cost(paid))).collect(),
                requests: tally.ended,
                errors: tally.faults.counts.clone(),
                latency_us: tally.latencies.buckets_us(),
                steady: tally.steady,
                bytes_sent: tally.bytes_sent,
                bytes_received: tally.bytes_received,
                connections: tally.connections,
                handshakes_full: tally.handshakes_full,
                handshakes_resumed: tally.handshakes_resumed,
                reopened: tally.reopened,
                ticks: self.ticks,
                unsettled: self.unsettled,
            },
        }
    }
}

/// The kinds of client that resume sessions.
fn resuming(load: &Load) -> Vec<u16> {
    let kinds = load.clients.iter().enumerate();
    let resuming =
        kinds.filter(|(_, kind)| kind.share > 0 && kind.tls.as_ref().is_some_and(|tls| tls.resume));
    resuming.map(|(kind, _)| kind as u16).collect()
}

/// Of this process, all its threads, voluntary and not.
fn context_switches() -> u64 {
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
    (usage.ru_nvcsw + usage.ru_nivcsw) as u64
}

/// What this process may open besides its connections: standard streams, epoll, `/proc`, libraries' files.
const OTHER_DESCRIPTORS: u64 = 64;

fn fits(load: &Load) -> Result<(), Failure> {
    let connections = u64::from(load.users) + u64::from(load.idle);
    let limit = socket::raise_descriptor_limit();
    if connections + OTHER_DESCRIPTORS + u64::from(load.threads) > limit {
        let (connections, limit) = (thousands(connections), thousands(limit));
        return Err(Failure::Failed(format!(
            "{connections} connections do not fit in the {limit} file descriptors this process may have"
        )));
    }
    Ok(())
}

/// `10,000`.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}
