//! `load`: clients of a server, and the account of the server's cost of answering them.

mod arrivals;
mod connection;
pub mod connector;
mod counts;
mod event_loop;
mod latencies;
mod phase;
pub mod probe;
mod record;
mod refusals;
mod socket;
mod source;
mod tallies;
pub mod task;
#[cfg(test)]
mod tests;
pub mod trial;
mod user;
pub mod verify;
mod wire;
mod workers;

use crate::contract::{Mode, Ready, Receipt, Record};
use crate::failure::Failure;
use crate::runner::{self, Lines};
use crate::scheduling;
use crate::sign_in::SignIn;
use connector::Connector;
use record::Done;
use task::{Load, Task};
use trial::Trial;

pub fn main() -> i32 {
    scheduling::give_way();
    runner::run(perform)
}

fn perform(task: &Task, lines: &mut Lines) -> Record<Done> {
    let mut known = receipt(&[]);
    match answer(task, lines, &mut known) {
        Ok(done) => Record::Ok(Box::new(Done { receipt: Some(known), ..done })),
        Err(failure) => Record::refusal(failure, Some(known)),
    }
}

fn answer(task: &Task, lines: &mut Lines, known: &mut Receipt) -> Result<Done, Failure> {
    if task.mode == Mode::List {
        return Ok(Done::default());
    }
    let load = task.load().map_err(Failure::Failed)?;
    let libraries = libraries(load)?;
    *known = receipt(&libraries);
    if task.mode == Mode::Verify {
        return Ok(Done { proof: Some(verify::verify(load)?), ..Done::default() });
    }
    runner::optimised(cfg!(debug_assertions))?;
    let mut trial = Trial::open(load, task.seed)?;
    let operation_ns = trial.warm_up()? as f64;
    let ready = Ready { receipt: known.clone(), operation_ns, memory_bytes: None, slices: false };
    runner::session(lines, ready, |advance, _| trial.advance(advance))?;
    Ok(Done { load: Some(trial.end(libraries)?), ..Done::default() })
}

/// Returns the libraries of this load's clients, each once: for TLS, and for signing in.
fn libraries(load: &Load) -> Result<Vec<String>, Failure> {
    let mut libraries = Vec::new();
    for kind in &load.clients {
        if let Some(library) = Connector::new(kind)?.library()
            && !libraries.contains(&library)
        {
            libraries.push(library);
        }
    }
    libraries.extend(SignIn::new(&load.visitors())?.library().map(str::to_owned));
    Ok(libraries)
}

fn receipt(libraries: &[String]) -> Receipt {
    let name = format!("tollbar-engine {}", env!("CARGO_PKG_VERSION"));
    let provider = [&[format!("{name} load")], libraries].concat().join(", ");
    Receipt { provider, name, engine: runner::engine_receipt(), ..Receipt::default() }
}
