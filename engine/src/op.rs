//! `op`: perform one task.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::calls;
use crate::chunks::Chunks;
use crate::contract::{self, Chunk, Done, Failure, Mode, Offer, Ready, Receipt, Record, Task};
use crate::null;
use crate::operation::Prepared;
use crate::provider::Provider;
use crate::providers;
use crate::session::{Advance, Lines, say};

pub fn main() -> i32 {
    runner(perform)
}

/// A runner, whose task is performed by this, and answered by one last line; the exit status.
pub fn runner<Task: DeserializeOwned, Done: Serialize>(
    perform: impl FnOnce(&Task, &mut Lines) -> Record<Done>,
) -> i32 {
    crate::guard::die_with_parent();
    let mut lines = Lines::new();
    let record = match contract::task(&mut lines) {
        Ok(task) => perform(&task, &mut lines),
        Err(reason) => Record::refusal(Failure::Failed(reason), None),
    };
    i32::from(!say(&record))
}

/// The last line: the only one, but for a task that measures.
fn perform(task: &Task, lines: &mut Lines) -> Record<Done> {
    let provider = match task.word("cpu", "native").and_then(|cpu| providers::open(&task.provider, cpu)) {
        Ok(provider) => provider,
        Err(failure) => return Record::refusal(failure, None),
    };
    let done = match task.mode {
        Mode::List => Ok(Done { offers: Some(offers(provider.as_ref())), ..Done::default() }),
        Mode::Verify => verify(provider.as_ref(), task),
        Mode::Measure => measure(provider.as_ref(), task, lines),
    };
    // Made afterwards: preparing may load modules, which a receipt names.
    let receipt = receipt(provider.as_ref());
    match done {
        // A session has shown its receipt when it was ready.
        Ok(done) if task.mode == Mode::Measure => Record::Ok(Box::new(done)),
        Ok(done) => Record::Ok(Box::new(Done { receipt: Some(receipt), ..done })),
        Err(failure) => Record::refusal(failure, Some(receipt)),
    }
}

/// Which code answers.
pub fn receipt(provider: &dyn Provider) -> Receipt {
    Receipt { engine: engine_receipt(), ..provider.receipt() }
}

pub fn engine_receipt() -> String {
    let profile = if cfg!(debug_assertions) { "debug" } else { "optimised" };
    format!("tollbar-engine {} ({profile})", env!("CARGO_PKG_VERSION"))
}

fn offers(provider: &dyn Provider) -> Vec<Offer> {
    let offers = provider.offers().into_iter();
    offers
        .flat_map(|(family, choices)| choices.into_iter().map(move |choice| Offer { family, choice }))
        .collect()
}

/// Makes a task's operation ready, and sees that every setting of the task had a part in it.
pub fn prepare(provider: &dyn Provider, task: &Task) -> Prepared {
    let operation = if task.choice == "none" { null::prepare(task) } else { provider.prepare(task) }?;
    task.all_settings_read()?;
    Ok(operation)
}

fn verify(provider: &dyn Provider, task: &Task) -> Result<Done, Failure> {
    let mut operation = prepare(provider, task)?;
    operation.perform()?;
    let proof = operation.prove()?;
    if proof.answer.is_none() && task.text("expected_hex").is_some() {
        return Err(Failure::Failed(
            "the known answer's inputs are not all there, so it was not tried".to_owned(),
        ));
    }
    Ok(Done { proof: Some(proof), ..Done::default() })
}

/// What a debug build says instead of a number.
pub fn optimised(debug: bool) -> Result<(), Failure> {
    match debug {
        true => Err(Failure::Failed("this engine is a debug build, and measures nothing".to_owned())),
        false => Ok(()),
    }
}

fn measure(provider: &dyn Provider, task: &Task, lines: &mut Lines) -> Result<Done, Failure> {
    optimised(cfg!(debug_assertions))?;
    let operation = prepare(provider, task)?;
    let (mut chunks, memory_bytes) = Chunks::warm(operation, task.lead)?;
    let ready = Ready { receipt: receipt(provider), operation_ns: chunks.operation_ns(), memory_bytes };
    session(lines, ready, |advance| chunks.advance(advance))?;
    Ok(Done::default())
}

/// A session up to the end of the input: ready, and a chunk for each line that says how far to go on.
pub fn session<Observed: Serialize>(
    lines: &mut Lines,
    ready: Ready,
    mut advance: impl FnMut(Advance) -> Result<Chunk<Observed>, Failure>,
) -> Result<(), Failure> {
    tell(&Line::<Observed>::Ready(ready))?;
    while let Some(asked) = lines.advance().map_err(Failure::Failed)? {
        tell(&Line::Chunk(advance(asked)?))?;
        calls::say();
    }
    Ok(())
}

/// What a session says before its last line.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
enum Line<Observed> {
    Ready(Ready),
    #[serde(untagged)]
    Chunk(Chunk<Observed>),
}

fn tell(line: &impl Serialize) -> Result<(), Failure> {
    say(line).then_some(()).ok_or_else(|| Failure::Failed("nothing reads what this runner says".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_debug_build_measures_nothing() {
        let refusal = optimised(true).expect_err("a debug build");
        assert!(matches!(refusal, Failure::Failed(reason) if reason.contains("debug build")));
        assert!(optimised(false).is_ok());
    }
}
