//! A trial: prepared, and advanced chunk by chunk, with the accounts opened and closed around each.

use std::sync::Arc;
use std::time::Duration;

use super::counts::Counts;
use super::phase::{Phase, Plan, Work, nanoseconds};
use super::record::{Chunk, LoadRecord, NegotiatedCount, Observed};
use super::tallies::{was_found, were_used};
use super::task::{ClientKind, ConnectionReuse, Load, MOST_HZ};
use super::workers::Workers;
use crate::accounting::{Accounts, Opening};
use crate::clock::{self, Clocks};
use crate::failure::Failure;
use crate::pacing::{WarmUp, Warmth};
use crate::runner::Advance;
use crate::sign_in::SignIn;
use crate::sign_in::verified::Found;
use crate::store::Connection;
use crate::{proc, process};

pub struct Trial {
    plan: Arc<Plan>,
    workers: Workers,
    accounts: Accounts,
    /// Number of the next chunk.
    chunk: u32,
    /// Counts of all chunks, for the last line.
    total: Counts,
    run_queue_wait_ns: u64,
    switches: u64,
    /// CPU time of the components in all chunks; `paced_ns` is the time of these chunks.
    paced_busy_ns: u64,
    paced_ns: u64,
    /// Connections reopened over the whole trial.
    reopened: u64,
    /// Credentials that a server's cache must have found over the whole trial.
    found: Found,
    /// Pages served over the whole trial.
    pages: u64,
    /// True if the sign-in prepares for each window or chunk.
    prepares: bool,
}

/// Two windows that agree to this extent are a steady state. A closer agreement would take longer without
/// use, because the neighbours of a window disturb it more. The time counts from when there were enough
/// requests.
const WARMTH: Warmth = Warmth { steady: 0.05, least_ns: 0.0, most_ns: 60_000_000.0 };
const WINDOW_NS: u64 = 10_000_000;
/// Requests before a process is warm. Slow ones agree long before. For example, password hashes of a server
/// took 20 ms each until its allocator kept their memory, after ten of them, and 15 ms from then on.
const LEAST_WARM_REQUESTS: u64 = 12;
/// Steps of pacing. Each leaves about a tenth of the previous error: the third is within a per cent of the
/// rate.
const PACING_STEPS: u32 = 3;
/// Time of a pacing step. Arrivals are random: a request of 30 µs has a thousand in this time at half of a
/// core, whose relative deviation is 3 %.
const PACING_NS: u64 = 60_000_000;
const LEAST_PACED_REQUESTS: u64 = 8;
/// Accepted range of the utilisation, relative to the requested one: arrivals are random, and costs drift
/// within a trial.
const LEAST_OF_SHARE: f64 = 0.5;
const MOST_OF_SHARE: f64 = 1.6;
/// Requests of each user of a closed loop in a chunk: one at its start, and one at its own pace.
const LEAST_A_USER: u64 = 2;

/// Limit of preparing: ten thousand tickets of a directory that takes 20 ms for one.
const LONGEST_PREPARING_NS: u64 = 200_000_000_000;

impl Trial {
    /// Opens connections that are held, fetches sessions to resume, and signs in.
    pub fn open(load: &Load, seed: u64) -> Result<Trial, Failure> {
        fits(load)?;
        let accounts = Accounts::open(&load.components).and_then(|here| here.with_others(&load.elsewhere));
        let accounts = accounts.map_err(Failure::Failed)?;
        let plan = Arc::new(Plan::new(load, seed));
        let prepares = SignIn::new(&load.visitors())?.prepares();
        let workers = Workers::start(&plan)?;
        let (total, chunk) = (Counts::default(), 0);
        let mut trial = Trial {
            plan,
            workers,
            accounts,
            chunk,
            total,
            run_queue_wait_ns: 0,
            switches: 0,
            paced_busy_ns: 0,
            paced_ns: 0,
            reopened: 0,
            found: Found::default(),
            pages: 0,
            prepares,
        };
        if let Some(kind) = remembered(load) {
            was_found(load, kind, None)?;
        }
        were_used(load, any_kind(load), None)?;
        if load.connection == ConnectionReuse::User || load.idle > 0 {
            trial.once(Work::Open)?;
        }
        if load.connection == ConnectionReuse::New {
            for kind in resuming(load) {
                trial.once(Work::Prime(kind))?;
            }
        }
        if load.visitors().scheme()?.keeps_state {
            trial.once(Work::SignIn)?;
        }
        Ok(trial)
    }

    /// Asks until the cost of a request is steady. Returns that cost in CPU nanoseconds, the server's, or the
    /// client's without components.
    pub fn warm_up(&mut self) -> Result<u64, Failure> {
        let enough =
            if self.plan.is_open_loop() { 1 } else { LEAST_WARM_REQUESTS.max(self.plan.load.users.into()) };
        let (mut warm_up, mut requests, mut enough_since) = (WarmUp::new(WARMTH), 0, None);
        let mut window = 0;
        loop {
            self.prepare(Work::PrepareWindow(window), WINDOW_NS, 1)?;
            let opening = self.accounts.begin();
            let found = self.account(&opening, Work::WarmUp(window), WINDOW_NS, 1)?;
            let Observed { bill, counts, .. } = found.observed;
            requests += counts.ended;
            let paid_ns = if bill.components.is_empty() { counts.cpu_ns } else { bill.components_ns() };
            let cost_ns = paid_ns as f64 / counts.ended as f64;
            let is_enough = requests >= enough;
            let spent_ns = match is_enough {
                true => enough_since.get_or_insert_with(Clocks::read).elapsed_ns(),
                false => 0,
            };
            if warm_up.is_over(cost_ns, spent_ns as f64) && is_enough {
                return self.paced(cost_ns, window + 1);
            }
            window += 1;
        }
    }

    /// Sets the arrival rate that gives the requested utilisation, if there is one, and returns the cost of a
    /// request at that rate. A server that is idle between requests takes longer for each, so that the rate
    /// is found in some steps.
    fn paced(&mut self, mut cost_ns: f64, mut window: u32) -> Result<u64, Failure> {
        let share = self.plan.load.utilisation;
        for _ in 0..if share > 0.0 { PACING_STEPS } else { 0 } {
            self.plan.pace((share * 1e9 / cost_ns).min(MOST_HZ));
            self.prepare(Work::PrepareWindow(window), PACING_NS, LEAST_PACED_REQUESTS)?;
            let work = Work::WarmUp(window);
            let opening = self.accounts.begin();
            let found = self.account(&opening, work, PACING_NS, LEAST_PACED_REQUESTS)?;
            let Observed { bill, counts, .. } = found.observed;
            cost_ns = bill.components_ns() as f64 / counts.ended as f64;
            window += 1;
        }
        Ok(cost_ns as u64)
    }

    /// Performs a chunk: first all slow readings, then uncounted requests of some users, then the counted
    /// requests within the accounts, which start by reading clocks only.
    pub fn advance(&mut self, advance: Advance) -> Result<Chunk, Failure> {
        let chunk = self.chunk;
        self.chunk += 1;
        let users = u64::from(self.plan.load.users);
        let least = match self.plan.load.utilisation {
            // If each chunk waited for only one arrival, a server of long requests would be idle before every
            // one.
            share if share > 0.0 => LEAST_PACED_REQUESTS,
            _ if self.plan.is_open_loop() => 1,
            _ => LEAST_A_USER * users,
        };
        let (length_ns, least) = (nanoseconds(advance.seconds), advance.operations.max(least));
        self.prepare(Work::PrepareChunk(chunk), length_ns, least)?;
        let mut opening = self.accounts.begin();
        let (switches, run_queue_wait_ns) = of_own_threads();
        if self.plan.load.lead {
            self.once(Work::Lead(chunk))?;
        }
        self.accounts.start(&mut opening);
        let chunk = self.account(&opening, Work::Timed(chunk), length_ns, least)?;
        self.paced_busy_ns += chunk.observed.bill.components_ns();
        self.paced_ns += chunk.wall_ns;
        let (switches_now, run_queue_wait_now_ns) = of_own_threads();
        self.switches += switches_now.saturating_sub(switches);
        self.run_queue_wait_ns += run_queue_wait_now_ns.saturating_sub(run_queue_wait_ns);
        self.total.merge_negotiated(&chunk.observed.counts);
        Ok(chunk)
    }

    /// Ends the trial, and returns the record of all chunks.
    pub fn end(mut self, client_libraries: Vec<String>) -> Result<LoadRecord, Failure> {
        let load = &self.plan.load;
        as_busy_as_asked(load.utilisation, self.paced_busy_ns as f64 / self.paced_ns.max(1) as f64)?;
        if let Some(kind) = remembered(load) {
            was_found(load, kind, Some(self.found))?;
        }
        were_used(load, any_kind(load), Some(self.pages))?;
        let negotiated = std::mem::take(&mut self.total.negotiated).into_iter();
        Ok(LoadRecord {
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
            round_trip_ns: self.accounts.round_trips_ns(),
            components: self.accounts.close(),
        })
    }

    /// Prepares the sign-in for the next phase, which has this length.
    fn prepare(&self, work: Work, length_ns: u64, least: u64) -> Result<(), Failure> {
        if !self.prepares {
            return Ok(());
        }
        let prepared = self.workers.run(Phase { work, length_ns, least, longest_ns: LONGEST_PREPARING_NS });
        prepared.map(|_| ()).map_err(|failure| failure.about(&format!("while {}: ", work.name())))
    }

    /// Performs a phase from this opening to a reading of the accounts, each with no request in progress.
    fn account(
        &mut self,
        opening: &Opening,
        work: Work,
        length_ns: u64,
        least: u64,
    ) -> Result<Chunk, Failure> {
        let counts = self.pass(work, length_ns, least)?;
        let wall_ns = self.whole(&counts, length_ns);
        let mut bill = self.accounts.bill(opening);
        if self.plan.load.rows.is_some_and(|rows| rows.connection == Connection::EachRequest) {
            bill = bill.of_processes();
        }
        self.accounts.all_there().map_err(Failure::Failed)?;
        let speaks_tls = self.plan.load.clients.iter().any(|kind| kind.tls.is_some());
        Ok(Chunk {
            operations: counts.right,
            // This is the loops' own threads' time: starting them and adding up their counts is not part of
            // asking.
            cpu_ns: counts.cpu_ns,
            wall_ns,
            observed: Observed {
                bill,
                exchanged: self.plan.load.exchange.is_some().then_some(counts.exchanged),
                passed: (!self.plan.load.elsewhere.is_empty()).then_some(counts.passed),
                certificate_bytes: speaks_tls.then_some(counts.certificate_bytes),
                counts,
            },
        })
    }

    /// Returns the duration of a phase. An open loop waits for its end, because a time without arrivals is
    /// part of the load.
    fn whole(&self, counts: &Counts, length_ns: u64) -> u64 {
        if !self.plan.is_open_loop() {
            return counts.wall_ns();
        }
        let ends_ns = counts.began_ns + length_ns;
        std::thread::sleep(Duration::from_nanos(ends_ns.saturating_sub(clock::wall_ns())));
        counts.wall_ns().max(length_ns)
    }

    /// Performs a phase that ends with its work, whose time the limit of each request bounds.
    fn once(&mut self, work: Work) -> Result<Counts, Failure> {
        self.pass(work, 3 * self.plan.request_limit_ns, 0)
    }

    fn pass(&mut self, work: Work, length_ns: u64, least: u64) -> Result<Counts, Failure> {
        let longest_ns = self.plan.longest_ns(length_ns);
        let counts = self.workers.run(Phase { work, length_ns, least, longest_ns })?;
        self.reopened += counts.reopened;
        let misses = counts.exchanged.sign_ons;
        self.found.hits += counts.right.saturating_sub(misses);
        self.found.misses += misses;
        self.pages += counts.right;
        // A user's own server may close connections: that is reported, and is not a failure.
        let kept = self.plan.load.is_lab;
        if counts.faults.total > 0 {
            // The clocks show whether the server has ended.
            self.accounts.read();
        }
        // After a lead-in no clock is read, and the chunk that follows checks the components.
        let is_lead = matches!(work, Work::Lead(_)) && counts.faults.total == 0;
        let there = if is_lead { Ok(()) } else { self.accounts.all_there() };
        judge(work, &counts, least, there, kept)?;
        Ok(counts)
    }
}

/// Checks a phase: no errors, all components there, no lost connection that was to be kept, and the requested
/// number of requests.
fn judge(
    work: Work,
    counts: &Counts,
    least: u64,
    there: Result<(), String>,
    kept: bool,
) -> Result<(), Failure> {
    let mut reasons = Vec::new();
    if counts.faults.total > 0 {
        let what = if work == Work::Open { "connections" } else { "requests" };
        reasons.push(counts.faults.reason(counts.ended, what));
    } else if kept && counts.reopened > 0 {
        reasons.push(format!("the server closed {} connections that must be kept", counts.reopened));
    }
    reasons.extend(there.err());
    let place = if let Work::Timed(_) = work { String::new() } else { format!("while {}: ", work.name()) };
    if !reasons.is_empty() {
        return Err(Failure::Failed(reasons.join("; ")).about(&place));
    }
    if counts.ended < least {
        let reason = format!("only {} of at least {least} requests were done in time", counts.ended);
        return Err(Failure::TimedOut(reason).about(&place));
    }
    Ok(())
}

/// Checks that a server's utilisation was near the requested one.
pub fn as_busy_as_asked(asked: f64, found: f64) -> Result<(), Failure> {
    if asked == 0.0 || (LEAST_OF_SHARE..=MOST_OF_SHARE).contains(&(found / asked)) {
        return Ok(());
    }
    let (found, asked) = (100.0 * found, 100.0 * asked);
    Err(Failure::Failed(format!("its server must be {asked:.0} % busy, but was {found:.0} % busy")))
}

/// Returns a kind of client for questions to a server that remembers credentials.
fn remembered(load: &Load) -> Option<&ClientKind> {
    load.exchange.as_ref()?.cache?;
    Some(any_kind(load))
}

/// Returns a kind of client that is used; a load without one is refused.
fn any_kind(load: &Load) -> &ClientKind {
    load.clients.iter().find(|kind| kind.share > 0).unwrap_or(&load.clients[0])
}

/// Returns the kinds of client that resume sessions.
fn resuming(load: &Load) -> Vec<u16> {
    let kinds = load.clients.iter().enumerate();
    let resuming =
        kinds.filter(|(_, kind)| kind.share > 0 && kind.tls.as_ref().is_some_and(|tls| tls.resume));
    resuming.map(|(kind, _)| kind as u16).collect()
}

/// Returns the context switches of this process, and the time its threads have waited for a core.
fn of_own_threads() -> (u64, u64) {
    let own = std::process::id() as i32;
    (proc::context_switches(own).unwrap_or(0), proc::run_queue_wait_ns(own).unwrap_or(0))
}

/// Descriptors besides connections: standard streams, epoll, `/proc`, libraries' files.
const OTHER_DESCRIPTORS: u64 = 64;

fn fits(load: &Load) -> Result<(), Failure> {
    let connections = u64::from(load.users) + u64::from(load.idle);
    let limit = process::raise_open_files(u64::MAX);
    if connections + OTHER_DESCRIPTORS + u64::from(load.threads) > limit {
        let (connections, limit) = (thousands(connections), thousands(limit));
        return Err(Failure::Failed(format!(
            "{connections} connections do not fit in the {limit} file descriptors this process may have"
        )));
    }
    Ok(())
}

/// Formats a number with separators: `10,000`.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}
