//! One measured trial: loops in their threads, phases one after the other, accounts opened and closed between.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use super::account::Accounts;
use super::ending::{Ending, Spent, figures, hung, judge, spoilt};
use super::event_loop::EventLoop;
use super::phase::{Phase, Plan, Work, nanoseconds};
use super::proc;
use super::slices::{Slices, context_switches};
use super::socket;
use super::tally::Tally;
use super::task::{Keeping, Load};
use crate::clock;
use crate::contract::Failure;

/// The server's own closing work, after its last answer has left.
const CLOSING: Duration = Duration::from_millis(2);

/// A count of requests with no duration to bound it has that long.
const LONGEST_COUNT_NS: u64 = 600_000_000_000;

pub fn measure(load: &Load, warm_up_s: f64, duration_s: f64, seed: u64) -> Result<Ending, Failure> {
    fits(load)?;
    let mut trial = Trial::start(load, seed)?;
    if let Some(ending) = trial.warm_up(load, nanoseconds(warm_up_s))? {
        return Ok(ending);
    }
    trial.timed(load, nanoseconds(duration_s))
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

struct Trial {
    plan: Arc<Plan>,
    commands: Vec<Sender<Phase>>,
    reports: Receiver<Result<Tally, Failure>>,
    resuming: Vec<u16>,
}

impl Trial {
    fn start(load: &Load, seed: u64) -> Result<Trial, Failure> {
        let plan = Arc::new(Plan::new(load, seed));
        let (report, reports) = channel();
        let mut commands = Vec::new();
        for thread in 0..load.threads {
            let (command, phases) = channel::<Phase>();
            commands.push(command);
            let (plan, report) = (Arc::clone(&plan), report.clone());
            let name = format!("load {thread}");
            let body = move || perform(plan, thread, &phases, &report);
            std::thread::Builder::new()
                .name(name)
                .spawn(body)
                .map_err(|error| Failure::Failed(format!("a thread cannot be started: {error}")))?;
        }
        // Each loop says first whether it could be made.
        for _ in 0..load.threads {
            match reports.recv() {
                Ok(Ok(_)) => {}
                Ok(Err(failure)) => return Err(failure),
                Err(_) => return Err(Failure::Failed("a loop ended before it began".to_owned())),
            }
        }
        let kinds = load.clients.iter().enumerate();
        let resuming =
            kinds.filter(|(_, kind)| kind.share > 0 && kind.tls.as_ref().is_some_and(|tls| tls.resume));
        let resuming = resuming.map(|(kind, _)| kind as u16).collect();
        Ok(Trial { plan, commands, reports, resuming })
    }

    /// Everything that is not counted; an ending if that already went wrong.
    fn warm_up(&mut self, load: &Load, warm_up_ns: u64) -> Result<Option<Ending>, Failure> {
        let mut works = Vec::new();
        if load.connection == Keeping::User || load.idle > 0 {
            works.push((Work::Open, 0));
        }
        if load.connection == Keeping::New {
            works.extend(self.resuming.iter().map(|kind| (Work::Prime(*kind), 0)));
        }
        if warm_up_ns > 0 {
            works.push((Work::WarmUp, warm_up_ns));
        }
        for (work, length_ns) in works {
            let phase = self.phase(work, length_ns, None);
            match self.pass(phase, None)? {
                None => return Ok(Some(hung(work))),
                Some(tally) if tally.faults.total > 0 => return Ok(Some(spoilt(work, tally))),
                Some(_) => {}
            }
        }
        Ok(None)
    }

    fn phase(&self, work: Work, length_ns: u64, quota: Option<u64>) -> Phase {
        let begins_ns = clock::wall_ns();
        let limit_ns = self.plan.request_limit_ns;
        let (stop_ns, give_up_ns) = match work {
            // These end with their work; the limit of each request bounds them.
            Work::Open | Work::Prime(_) => (begins_ns + 3 * limit_ns, begins_ns + 3 * limit_ns),
            Work::WarmUp => (begins_ns + length_ns, begins_ns + length_ns),
            Work::Timed => {
                let longest_ns = if length_ns > 0 { 4 * length_ns } else { LONGEST_COUNT_NS };
                let stop_ns = if quota.is_some() { longest_ns } else { length_ns };
                (begins_ns + stop_ns, begins_ns + longest_ns)
            }
        };
        let abandon_ns = give_up_ns + limit_ns + limit_ns / 4;
        Phase { work, begins_ns, stop_ns, give_up_ns, abandon_ns, quota }
    }

    /// Lets all loops perform a phase, and ends slices while they do; None if one did not come to an end in time.
    fn pass(&self, phase: Phase, mut slices: Option<&mut Slices>) -> Result<Option<Tally>, Failure> {
        for counter in &self.plan.ended {
            counter.0.store(0, Relaxed);
        }
        for command in &self.commands {
            // A loop that is gone does not report either, which is where it is noticed.
            let _ = command.send(phase.clone());
        }
        // Loops keep to the phase's own times; this is for one that does not.
        let hung_ns = phase.abandon_ns + self.plan.request_limit_ns + 1_000_000_000;
        let mut total: Option<Tally> = None;
        let mut left = self.commands.len();
        while left > 0 {
            let now = clock::wall_ns();
            let wake_ns = slices.as_ref().map_or(hung_ns, |slices| slices.next_ns.min(hung_ns));
            match self.reports.recv_timeout(Duration::from_nanos(wake_ns.saturating_sub(now))) {
                Ok(Ok(tally)) => {
                    left -= 1;
                    match &mut total {
                        None => total = Some(tally),
                        Some(total) => total.merge(tally),
                    }
                }
                Ok(Err(failure)) => return Err(failure),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Failure::Failed(format!(
                        "a loop of this client ended while {}",
                        phase.work.name()
                    )));
                }
                Err(RecvTimeoutError::Timeout) if clock::wall_ns() >= hung_ns => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(slices) = &mut slices {
                        slices.end_one(self.ended());
                    }
                }
            }
        }
        Ok(total)
    }

    fn ended(&self) -> u64 {
        self.plan.ended.iter().map(|counter| counter.0.load(Relaxed)).sum()
    }

    fn timed(&mut self, load: &Load, duration_ns: u64) -> Result<Ending, Failure> {
        // The warm-up's own end is not the timed part's to pay for.
        std::thread::sleep(CLOSING);
        let accounts = Accounts::open(&load.components).map_err(Failure::Failed)?;
        let own = std::process::id() as i32;
        let (switches, held_up_ns) = (context_switches(), proc::held_up_ns(own).unwrap_or(0));
        let mut slices = Slices::open(accounts, duration_ns, load.requests.is_some());
        let phase = self.phase(Work::Timed, duration_ns, load.requests);
        let tally = match self.pass(phase, Some(&mut slices))? {
            None => return Ok(hung(Work::Timed)),
            Some(tally) => tally,
        };
        let wall_ns = clock::wall_ns() - slices.opened_ns;
        let client_cpu_last_ns = clock::process_cpu_ns();
        let client_cpu_ns = client_cpu_last_ns - slices.client_cpu_first_ns;
        let switches = context_switches() - switches;
        let held_up_ns = proc::held_up_ns(own).unwrap_or(0).saturating_sub(held_up_ns);
        std::thread::sleep(CLOSING);
        let (components, there) = slices.close(tally.ended, client_cpu_last_ns);
        let short = load.requests.filter(|requests| tally.ended < *requests);
        let (outcome, reason) = judge(&tally, short, there);
        let spent = Spent { wall_ns, client_cpu_ns, held_up_ns, switches, series: slices.done, components };
        Ok(Ending { outcome, reason, measured: Some(figures(tally, spent)) })
    }
}

/// One loop's thread: made, then through the phases it is told, until nobody tells it any more.
fn perform(plan: Arc<Plan>, thread: u32, phases: &Receiver<Phase>, report: &Sender<Result<Tally, Failure>>) {
    // Arrivals come when they are due, and not the 50 µs later that a thread is allowed to oversleep.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
    let mut made = match EventLoop::new(plan, thread) {
        Ok(made) => made,
        Err(failure) => {
            let _ = report.send(Err(failure));
            return;
        }
    };
    let _ = report.send(Ok(Tally::new()));
    while let Ok(phase) = phases.recv() {
        if report.send(made.run(&phase)).is_err() {
            return;
        }
    }
}
