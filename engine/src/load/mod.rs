//! `load`: clients of a server, and the account of what answering them cost it.

mod account;
mod arrivals;
mod chunked;
mod draws;
mod ending;
mod event_loop;
mod fault;
mod kinds;
mod latencies;
mod phase;
mod proc;
mod record;
mod refusals;
mod request;
mod response;
mod slices;
mod socket;
mod source;
mod tally;
mod task;
#[cfg(test)]
mod tests;
mod trial;
mod user;
mod verify;

use crate::contract::{Failure, Mode, Receipt, answer};
use kinds::Kind;
use record::{LoadRecord, Measured, Outcome, Record};
use task::{Load, Task};

pub fn main() -> i32 {
    crate::guard::die_with_parent();
    answer(|task| match task {
        Ok(task) => perform(&task),
        Err(reason) => refusal(Failure::Failed(reason), None),
    })
}

fn perform(task: &Task) -> Record {
    if task.mode == Mode::List {
        return record(Outcome::Ok, None, Some(receipt(&[])));
    }
    let load = match task.load() {
        Ok(load) => load,
        Err(reason) => return refusal(Failure::Failed(reason), Some(receipt(&[]))),
    };
    let libraries = match libraries(load) {
        Ok(libraries) => libraries,
        Err(failure) => return refusal(failure, Some(receipt(&[]))),
    };
    let receipt = receipt(&libraries);
    let done = match task.mode {
        Mode::Measure => measure(task, load, libraries),
        _ => {
            verify::verify(load).map(|proof| Record { proof: Some(proof), ..record(Outcome::Ok, None, None) })
        }
    };
    match done {
        Ok(done) => Record { receipt: Some(receipt), ..done },
        Err(failure) => refusal(failure, Some(receipt)),
    }
}

fn measure(task: &Task, load: &Load, client_libraries: Vec<String>) -> Result<Record, Failure> {
    if cfg!(debug_assertions) {
        return Err(Failure::Failed("this engine is a debug build, and measures nothing".to_owned()));
    }
    let ending = trial::measure(load, task.warm_up_s, task.duration_s, task.seed)?;
    let measured = ending.measured.map(|measured| {
        let load = LoadRecord { client_libraries, ..measured.load };
        Measured { load, ..measured }
    });
    Ok(Record { measured, ..record(ending.outcome, ending.reason, None) })
}

/// The TLS libraries that this load's clients work with, each once.
fn libraries(load: &Load) -> Result<Vec<String>, Failure> {
    let mut libraries = Vec::new();
    for kind in &load.clients {
        if let Some(library) = Kind::new(kind)?.library()
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

fn record(outcome: Outcome, reason: Option<String>, receipt: Option<Receipt>) -> Record {
    Record { outcome, reason, receipt, proof: None, measured: None }
}

fn refusal(failure: Failure, receipt: Option<Receipt>) -> Record {
    match failure {
        Failure::Unsupported(reason) => record(Outcome::Unsupported, Some(reason), receipt),
        Failure::Failed(reason) => record(Outcome::Failed, Some(reason), receipt),
    }
}
