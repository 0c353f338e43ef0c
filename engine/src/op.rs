//! `op`: perform one task.

use crate::clock;
use crate::contract::{Done, Failure, Measured, Mode, Offer, ProofRecord, Receipt, Record, Task, answer};
use crate::null;
use crate::operation::Operation;
use crate::provider::Provider;
use crate::providers;

pub fn main() -> i32 {
    crate::guard::die_with_parent();
    answer(|task| match task {
        Ok(task) => perform(&task),
        Err(reason) => Record::Failed { reason, receipt: None },
    })
}

fn perform(task: &Task) -> Record {
    let provider = match task.word("cpu", "native").and_then(|cpu| providers::open(&task.provider, cpu)) {
        Ok(provider) => provider,
        Err(failure) => return refusal(failure, None),
    };
    let receipt = Receipt { engine: engine_receipt(), ..provider.receipt() };
    let done = match task.mode {
        Mode::List => Ok(Done { offers: Some(offers(provider.as_ref())), ..Done::default() }),
        Mode::Verify => verify(provider.as_ref(), task),
        Mode::Measure => measure(provider.as_ref(), task),
    };
    match done {
        Ok(done) => Record::Ok(Box::new(Done { receipt, ..done })),
        Err(failure) => refusal(failure, Some(receipt)),
    }
}

fn refusal(failure: Failure, receipt: Option<Receipt>) -> Record {
    match failure {
        Failure::Unsupported(reason) => Record::Unsupported { reason, receipt },
        Failure::Failed(reason) => Record::Failed { reason, receipt },
    }
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

pub fn prepare(provider: &dyn Provider, task: &Task) -> Result<Box<dyn Operation>, Failure> {
    if task.choice == "none" { null::prepare(task) } else { provider.prepare(task) }
}

fn verify(provider: &dyn Provider, task: &Task) -> Result<Done, Failure> {
    let mut operation = prepare(provider, task)?;
    operation.perform()?;
    let proof = operation.prove()?;
    let proof = ProofRecord { answer: proof.answer, accepted: proof.accepted, refused: proof.refused };
    Ok(Done { proof: Some(proof), ..Done::default() })
}

/// A batch is long enough that reading the clock (some 0.2 µs) is lost in it, and short enough that
/// a trial holds dozens: their spread shows what disturbed it.
const BATCH_NS: u64 = 1_000_000;

fn measure(provider: &dyn Provider, task: &Task) -> Result<Done, Failure> {
    if cfg!(debug_assertions) {
        return Err(Failure::Failed("this engine is a debug build, and measures nothing".to_owned()));
    }
    let mut operation = prepare(provider, task)?;
    // One operation in a fresh process: after many, an allocator holds what it likes, and not what one needs.
    let (resting, _) = clock::memory_bytes();
    operation.batch(1)?;
    let (_, peak) = clock::memory_bytes();
    let (per_batch, warm_up_operations) = warm_up(operation.as_mut(), task.warm_up_s)?;

    let duration_ns = (task.duration_s * 1e9) as u64;
    // Reserved beforehand, so that it does not grow in between what the operations allocate and free.
    let (mut batches, mut operations) = (Vec::with_capacity(1 << 16), 0);
    let wall_start = clock::wall_ns();
    let cpu_start = clock::process_cpu_ns();
    let mut cpu = cpu_start;
    // Bounded by wall time as well: a core that is given away still has to give a record in time.
    while operations == 0
        || (cpu - cpu_start < duration_ns && clock::wall_ns() - wall_start < 4 * duration_ns)
    {
        operation.batch(per_batch)?;
        let now = clock::process_cpu_ns();
        batches.push((per_batch, now - cpu));
        (cpu, operations) = (now, operations + per_batch);
    }
    let wall_ns = clock::wall_ns() - wall_start;
    let measured = Measured {
        operations,
        bytes: operations * operation.bytes(),
        cpu_ns: cpu - cpu_start,
        wall_ns,
        batches,
        checked: operations,
        memory_bytes: peak.saturating_sub(resting),
        warm_up_operations: warm_up_operations + 1,
    };
    Ok(Done { measured: Some(measured), ..Done::default() })
}

/// Runs the operation for a while and finds how many fill a batch. Returns (per batch, performed).
fn warm_up(operation: &mut dyn Operation, warm_up_s: f64) -> Result<(u64, u64), Failure> {
    let warm_up_ns = (warm_up_s * 1e9) as u64;
    let (mut count, mut performed) = (1, 0);
    let start = clock::process_cpu_ns();
    loop {
        let before = clock::process_cpu_ns();
        operation.batch(count)?;
        performed += count;
        let now = clock::process_cpu_ns();
        let each_ns = (now - before) as f64 / count as f64;
        let fill = (BATCH_NS as f64 / each_ns.max(0.1)) as u64;
        // Grown by steps: the first operations are slower than the rest, some by a lot.
        count = fill.clamp(1, count.saturating_mul(10));
        if now - start >= warm_up_ns && count >= fill.max(1) {
            return Ok((count, performed));
        }
    }
}
