//! Threads of a load: each with its own loop, all in the same phases.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use super::counts::Counts;
use super::event_loop::EventLoop;
use super::phase::{Phase, Plan};
use crate::clock;
use crate::failure::Failure;
use crate::team::keep_on;

pub struct Workers {
    plan: Arc<Plan>,
    commands: Vec<Sender<Phase>>,
    reports: Receiver<Report>,
}

pub type Report = Result<Counts, Failure>;

/// Time beyond a phase's own limits, which the loops keep, after which a loop counts as hung.
const HUNG_NS: u64 = 1_000_000_000;

impl Workers {
    pub fn start(plan: &Arc<Plan>) -> Result<Workers, Failure> {
        let (report, reports) = channel();
        let mut commands = Vec::new();
        for thread in 0..plan.load.threads {
            let (command, phases) = channel::<Phase>();
            commands.push(command);
            let plan = Arc::clone(plan);
            let body = move |report: &Sender<Report>| perform(plan, thread, &phases, report);
            spawn(format!("load {thread}"), report.clone(), body)?;
        }
        drop(report);
        let workers = Workers { plan: Arc::clone(plan), commands, reports };
        // Each loop first reports whether it could be made.
        workers
            .gather(u64::MAX)?
            .ok_or_else(|| Failure::Failed("an event loop could not be made".to_owned()))?;
        Ok(workers)
    }

    /// Performs a phase on all loops.
    pub fn run(&self, phase: Phase) -> Result<Counts, Failure> {
        for command in &self.commands {
            // A loop that has ended does not report, which the collection of reports detects.
            let _ = command.send(phase);
        }
        let limit_ns = self.plan.request_limit_ns;
        let hung_ns = clock::wall_ns() + phase.longest_ns + 3 * limit_ns + HUNG_NS;
        self.gather(hung_ns)?.ok_or_else(|| {
            let doing = phase.work.name();
            Failure::TimedOut(format!("the load client did not end: {doing}"))
        })
    }

    /// Adds up a report of each loop. Returns None if one of them did not come in time.
    fn gather(&self, until_ns: u64) -> Result<Option<Counts>, Failure> {
        let mut total: Option<Counts> = None;
        for _ in &self.commands {
            let left = Duration::from_nanos(until_ns.saturating_sub(clock::wall_ns()));
            let counts = match self.reports.recv_timeout(left) {
                Ok(report) => report?,
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Failure::Failed("the threads of this client have ended".to_owned()));
                }
            };
            match &mut total {
                Some(total) => total.merge(counts),
                None => total = Some(counts),
            }
        }
        Ok(total)
    }
}

/// Starts a thread whose panic becomes a report, because the others would wait for a silent loop.
pub fn spawn(
    name: String,
    report: Sender<Report>,
    body: impl FnOnce(&Sender<Report>) + Send + 'static,
) -> Result<(), Failure> {
    let thread = std::thread::Builder::new().name(name.clone());
    let guarded = move || {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| body(&report))) {
            let words = panic.downcast_ref::<String>().map(String::as_str);
            let words = words.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no words");
            let reason = format!("the client's thread `{name}` panicked: {words}");
            let _ = report.send(Err(Failure::Failed(reason)));
        }
    };
    match thread.spawn(guarded) {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::Failed(format!("a thread cannot be started: {error}"))),
    }
}

/// Runs one loop's thread: makes the loop, and performs phases until there are no more.
fn perform(plan: Arc<Plan>, thread: u32, phases: &Receiver<Phase>, report: &Sender<Report>) {
    let core = plan.load.cores.get(thread as usize).copied();
    let made = keep_on(core).and_then(|()| EventLoop::new(Arc::clone(&plan), thread));
    let mut made = match made {
        Ok(made) => made,
        Err(failure) => {
            let _ = report.send(Err(failure));
            return;
        }
    };
    let _ = report.send(Ok(Counts::default()));
    while let Ok(phase) = phases.recv() {
        let counts = made.run(&phase);
        if counts.is_err() {
            // The others must not wait for this one.
            plan.stop.store(true, Relaxed);
        }
        if report.send(counts).is_err() {
            return;
        }
    }
}
