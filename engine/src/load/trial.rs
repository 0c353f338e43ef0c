//! One trial: made ready, advanced chunk by chunk, with the accounts opened and closed around each.

use std::num::NonZeroU64;
use std::sync::Arc;

use rustix::thread::set_current_timer_slack;

use super::counts::Counts;
use super::ending::{Stop, judge};
use super::phase::{Phase, Plan, Work, nanoseconds};
use super::record::{Chunk, LoadRecord, NegotiatedCount, Observed};
use super::task::{ConnectionReuse, Load};
use super::workers::Workers;
use crate::accounting::{Accounts, Paid};
use crate::contract::Failure;
use crate::session::Advance;
use crate::{clock, guard, proc};

pub struct Trial {
    plan: Arc<Plan>,
    workers: Workers,
    accounts: Accounts,
    /// The number of the next chunk.
    chunk: u32,
    /// Of all chunks: what is said at the end.
    total: Counts,
    run_queue_wait_ns: u64,
    switches: u64,
    /// Of everything.
    reopened: u64,
}

/// What was asked within accounts, and what it cost.
struct Counted {
    counts: Counts,
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
        // Readings of the server's clocks come when they are due, and not the 50 µs later that a thread may oversleep.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        let accounts = Accounts::open(&load.components).map_err(Failure::Failed)?;
        let plan = Arc::new(Plan::new(load, seed));
        let workers = Workers::start(&plan)?;
        let (total, chunk) = (Counts::default(), 0);
        let mut trial =
            Trial { plan, workers, accounts, chunk, total, run_queue_wait_ns: 0, switches: 0, reopened: 0 };
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
            requests += counted.counts.ended;
            let cost = counted.server_ns().unwrap_or(counted.cpu_ns) as f64 / counted.counts.ended as f64;
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
        self.total.merge_negotiated(&counted.counts);
        Ok(counted.into_chunk())
    }

    /// What is said once, at the end.
    pub fn end(mut self, client_libraries: Vec<String>) -> LoadRecord {
        let negotiated = std::mem::take(&mut self.total.negotiated).into_iter();
        LoadRecord {
            negotiated: negotiated
                .map(|(negotiated, count)| NegotiatedCount {
                    negotiated: Arc::unwrap_or_clone(negotiated),
                    count,
                })
                .collect(),
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
        let counts = self.pass(work, length_ns, least)?;
        let cpu_ns = clock::process_cpu_ns() - cpu_ns;
        let settled = self.accounts.settle() && settled;
        let closing = self.accounts.read();
        self.accounts.all_there().map_err(Failure::Failed)?;
        let components = closing.since(&opening);
        let ticks = closing.inexact != opening.inexact;
        Ok(Counted { counts, cpu_ns, components, ticks, unsettled: !settled })
    }

    /// A phase that ends with its work, which the limit of each request bounds.
    fn once(&mut self, work: Work) -> Result<Counts, Stop> {
        self.pass(work, 3 * self.plan.request_limit_ns, 0)
    }

    fn pass(&mut self, work: Work, length_ns: u64, least: u64) -> Result<Counts, Stop> {
        let longest_ns = self.plan.longest_ns(length_ns);
        let counts = self.workers.run(Phase { work, length_ns, least, longest_ns })?;
        self.reopened += counts.reopened;
        // A server of the user's own may close what it likes; that is said, and not held against it.
        let kept = !self.plan.load.components.is_empty();
        if counts.faults.total > 0 {
            // What became of the server shows in its clocks.
            self.accounts.read();
        }
        judge(work, &counts, least, self.accounts.all_there(), kept)?;
        Ok(counts)
    }
}

impl Counted {
    /// None without components.
    fn server_ns(&self) -> Option<u64> {
        (!self.components.is_empty()).then(|| self.components.values().map(|paid| paid.cpu_ns).sum())
    }

    fn into_chunk(self) -> Chunk {
        let counts = self.counts;
        Chunk {
            operations: counts.right,
            cpu_ns: self.cpu_ns,
            wall_ns: counts.wall_ns(),
            observed: Observed {
                components: self.components,
                requests: counts.ended,
                errors: counts.faults.counts.clone(),
                latency_us: counts.latencies.buckets_us(),
                steady: counts.steady,
                bytes_sent: counts.bytes_sent,
                bytes_received: counts.bytes_received,
                connections: counts.connections,
                handshakes_full: counts.handshakes_full,
                handshakes_resumed: counts.handshakes_resumed,
                reopened: counts.reopened,
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
    // SAFETY: all zeros are a `rusage`.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one `rusage`.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
    (usage.ru_nvcsw + usage.ru_nivcsw) as u64
}

/// What this process may open besides its connections: standard streams, epoll, `/proc`, libraries' files.
const OTHER_DESCRIPTORS: u64 = 64;

fn fits(load: &Load) -> Result<(), Failure> {
    let connections = u64::from(load.users) + u64::from(load.idle);
    let limit = guard::raise_open_files(u64::MAX);
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
