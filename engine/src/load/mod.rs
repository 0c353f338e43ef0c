//! `load`: clients of a server, and the account of what answering them cost it.

mod arrivals;
mod check;
mod chunked;
mod connection;
mod connector;
mod counts;
mod ending;
mod event_loop;
mod exchange;
mod fault;
mod head;
mod latencies;
mod phase;
mod probe;
mod random;
mod record;
mod refusals;
mod request;
mod response;
mod socket;
mod source;
mod state;
mod task;
#[cfg(test)]
mod tests;
mod trial;
mod user;
mod verify;
mod workers;

use crate::contract::{self, Failure, Mode, Receipt};
use crate::session::{Lines, say};
use connector::Connector;
use ending::Stop;
use record::{LoadRecord, Outcome, Ready, Record, Warm};
use task::{Load, Task};
use trial::Trial;

pub fn main() -> i32 {
    crate::guard::die_with_parent();
    let mut lines = Lines::new();
    let record = match contract::task::<Task>(&mut lines) {
        Ok(task) => perform(&task, &mut lines),
        Err(reason) => refusal(Failure::Failed(reason).into(), None),
    };
    i32::from(!say(&record))
}

fn perform(task: &Task, lines: &mut Lines) -> Record {
    let mut known = receipt(&[]);
    match answer(task, lines, &mut known) {
        Ok(done) => Record { receipt: Some(known), ..done },
        Err(stop) => refusal(stop, Some(known)),
    }
}

fn answer(task: &Task, lines: &mut Lines, known: &mut Receipt) -> Result<Record, Stop> {
    if task.mode == Mode::List {
        return Ok(ok());
    }
    let load = task.load().map_err(Failure::Failed)?;
    let libraries = libraries(load)?;
    *known = receipt(&libraries);
    if task.mode == Mode::Verify {
        return Ok(Record { proof: Some(verify::verify(load)?), ..ok() });
    }
    let summary = measure(load, task.seed, lines, known, libraries)?;
    Ok(Record { load: Some(summary), ..ok() })
}

/// A session: ready, a chunk for each line that says how far to go on, and at the end of the input a
/// summary.
fn measure(
    load: &Load,
    seed: u64,
    lines: &mut Lines,
    receipt: &Receipt,
    client_libraries: Vec<String>,
) -> Result<LoadRecord, Stop> {
    if cfg!(debug_assertions) {
        let reason = "this engine is a debug build, and measures nothing".to_owned();
        return Err(Failure::Failed(reason).into());
    }
    let mut trial = Trial::open(load, seed)?;
    let operation_ns = trial.warm_up()?;
    let unheard = || Failure::Failed("there is nothing to write to any more".to_owned());
    if !say(&Ready { ready: Warm { receipt: receipt.clone(), operation_ns } }) {
        return Err(unheard().into());
    }
    while let Some(advance) = lines.advance().map_err(Failure::Failed)? {
        if !say(&trial.advance(advance)?) {
            return Err(unheard().into());
        }
    }
    Ok(trial.end(client_libraries))
}

/// The TLS libraries that this load's clients work with, each once.
fn libraries(load: &Load) -> Result<Vec<String>, Failure> {
    let mut libraries = Vec::new();
    for kind in &load.clients {
        if let Some(library) = Connector::new(kind)?.library()
            && !libraries.contains(&library)
        {
            libraries.push(library);
        }
    }
    Ok(libraries)
}

fn receipt(libraries: &[String]) -> Receipt {
    let version = env!("CARGO_PKG_VERSION");
    let profile = if cfg!(debug_assertions) { "debug" } else { "optimised" };
    let mut provider = vec![format!("tollbar-engine {version} load")];
    provider.extend(libraries.iter().cloned());
    Receipt {
        provider: provider.join(", "),
        name: format!("tollbar-engine {version}"),
        engine: format!("tollbar-engine {version} ({profile})"),
        ..Receipt::default()
    }
}

fn ok() -> Record {
    Record { outcome: Outcome::Ok, reason: None, receipt: None, proof: None, load: None }
}

fn refusal(stop: Stop, receipt: Option<Receipt>) -> Record {
    Record { outcome: stop.outcome, reason: Some(stop.reason), receipt, ..ok() }
}
