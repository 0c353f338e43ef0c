//! `op`: performs one task, by one of the providers that a program has.

use crate::chunks::Chunks;
use crate::contract::{Done, Mode, Offer, Proof, ProviderName, Ready, Receipt, Record, Task};
use crate::failure::Failure;
use crate::provider::{Prepared, Primitive, Provider};
use crate::runner::{self, Lines};
use crate::slices::Sliced;
use crate::team::Team;

/// A kind of provider, and the opener of one; `cpu` limits the instruction sets that it may use.
pub type Kind = (&'static str, fn(&ProviderName, &str) -> Opened);
pub type Opened = Result<Box<dyn Provider>, Failure>;

/// Name of the operation that a new process performs first. Its null choice is a process as well.
pub const FIRST: &str = "first";

pub const LIBCRYPTO: Kind =
    ("libcrypto", |name, cpu| Ok(Box::new(crate::libcrypto::open(name.path.as_deref(), cpu)?)));
pub const AWS_LC: Kind = ("aws-lc", |_, _| Ok(Box::new(crate::aws_lc::AWS_LC)));
pub const RUSTCRYPTO: Kind = ("rustcrypto", |_, _| Ok(Box::new(crate::rustcrypto::RUSTCRYPTO)));
pub const SPIN: Kind = ("spin", |_, _| Ok(Box::new(crate::spin::Spin)));

/// Providers of this library.
pub const KINDS: &[Kind] = &[LIBCRYPTO, AWS_LC, RUSTCRYPTO, SPIN];

pub fn main(kinds: &'static [Kind]) -> i32 {
    runner::run(|task, lines| perform(kinds, task, lines))
}

/// Performs a task and returns its last line, which is the only one unless the task measures.
fn perform(kinds: &'static [Kind], task: &Task, lines: &mut Lines) -> Record<Done> {
    let opened = mask(task).and_then(|()| open(kinds, &task.provider, task.word("cpu", "native")?));
    let provider = match opened {
        Ok(provider) => provider,
        Err(failure) => return Record::refusal(failure, None),
    };
    let done = match task.mode {
        Mode::List => Ok(Done { offers: Some(offers(provider.as_ref())), ..Done::default() }),
        Mode::Verify => verify(provider.as_ref(), task),
        Mode::Measure => measure(kinds, provider.as_ref(), task, lines),
    };
    // The receipt is made last: preparing may load modules, which it names.
    let receipt = receipt(provider.as_ref());
    match done {
        // The receipt of a session was part of its `ready` line.
        Ok(done) if task.mode == Mode::Measure => Record::Ok(Box::new(done)),
        Ok(done) => Record::Ok(Box::new(Done { receipt: Some(receipt), ..done })),
        Err(failure) => Record::refusal(failure, Some(receipt)),
    }
}

/// Masks instruction sets as the task requests, before this process starts a thread.
pub fn mask(task: &Task) -> Result<(), Failure> {
    match task.provider.kind.as_str() {
        kind if kind == LIBCRYPTO.0 => crate::libcrypto::mask(task.word("cpu", "native")?),
        // `open` refuses a mask for other providers.
        _ => Ok(()),
    }
}

/// Opens the provider of this name; `cpu` limits the instruction sets that it may use.
pub fn open(kinds: &[Kind], name: &ProviderName, cpu: &str) -> Opened {
    // A linked-in library has read the processor's features before `main`, too late for a mask.
    if cpu != "native" && name.kind != LIBCRYPTO.0 {
        return Err(Failure::Unsupported(format!("{} has no switch for instruction sets", name.kind)));
    }
    let Some((_, open)) = kinds.iter().find(|(kind, _)| *kind == name.kind) else {
        let known: Vec<&str> = kinds.iter().map(|(kind, _)| *kind).collect();
        return Err(Failure::Failed(format!("no such provider: `{}` ({})", name.kind, known.join(", "))));
    };
    open(name, cpu)
}

/// Returns the receipt of the code that answers.
pub fn receipt(provider: &dyn Provider) -> Receipt {
    Receipt { engine: runner::engine_receipt(), ..provider.receipt() }
}

fn offers(provider: &dyn Provider) -> Vec<Offer> {
    let offers = provider.offers().into_iter();
    offers
        .flat_map(|(family, choices)| choices.into_iter().map(move |choice| Offer { family, choice }))
        .collect()
}

/// Prepares a task's primitive, and fails if a setting of the task was not read.
pub fn prepare(provider: &dyn Provider, task: &Task) -> Prepared {
    // The null choice of a fresh process's first operation is a process as well, not an empty primitive.
    let is_nothing = task.choice == "none" && task.op != FIRST;
    let primitive = if is_nothing { nothing(task) } else { provider.prepare(task) }?;
    task.all_settings_read()?;
    Ok(primitive)
}

fn verify(provider: &dyn Provider, task: &Task) -> Result<Done, Failure> {
    let mut primitive = prepare(provider, task)?;
    primitive.perform()?;
    let proof = primitive.prove()?;
    if proof.answer.is_none() && task.text("expected_hex").is_some() {
        return Err(Failure::Failed(
            "an input of the known answer is missing, so it was not tried".to_owned(),
        ));
    }
    Ok(Done { proof: Some(proof), ..Done::default() })
}

fn measure(
    kinds: &'static [Kind],
    provider: &dyn Provider,
    task: &Task,
    lines: &mut Lines,
) -> Result<Done, Failure> {
    runner::optimised(cfg!(debug_assertions))?;
    if let Some(threads) = task.threads {
        let mut team = Team::of(task, threads, move |task| prepare_anew(kinds, task))?;
        let (operation_ns, memory_bytes) = (team.operation_ns, team.memory_bytes);
        let ready = Ready { receipt: receipt(provider), operation_ns, memory_bytes, slices: false };
        runner::session(lines, ready, |advance, _| team.advance(advance))?;
        return Ok(Done::default());
    }
    let primitive = prepare(provider, task)?;
    let (chunks, memory_bytes) = Chunks::warm(primitive, task.lead)?;
    let ready =
        Ready { receipt: receipt(provider), operation_ns: chunks.operation_ns(), memory_bytes, slices: true };
    let mut sliced = Sliced::new(chunks);
    runner::session(lines, ready, |advance, slice| sliced.advance(advance, slice))?;
    Ok(Done::default())
}

/// Prepares a task's primitive on a provider opened for it alone: threads of this engine share only the
/// library.
fn prepare_anew(kinds: &[Kind], task: &Task) -> Prepared {
    prepare(open(kinds, &task.provider, task.word("cpu", "native")?)?.as_ref(), task)
}

/// Families with a null choice (the same code path without work), and the settings that it accepts because
/// they vary the other choices' work.
const FAMILIES: &[(&str, &[&str])] = &[
    ("digest", &["bytes", "input", "fetch"]),
    ("mac", &["bytes"]),
    ("cipher", &["bytes", "key"]),
    ("signature", &["bytes"]),
    ("key-exchange", &[]),
    ("password-hash", &[]),
    ("rsa-api", &["bytes", "call", "digest"]),
    ("tls-client", &[]),
    ("spin", &["iterations"]),
];

/// Returns the null choice of a task's family.
fn nothing(task: &Task) -> Prepared {
    let row = FAMILIES.iter().find(|(family, _)| *family == task.family);
    let (_, settings) = row.ok_or_else(|| {
        Failure::Unsupported(format!("the engine does not perform the family {}", task.family))
    })?;
    settings.iter().for_each(|name| task.belongs(name));
    let bytes = if settings.contains(&"bytes") { task.bytes(0)? as u64 } else { 0 };
    Ok(Box::new(Nothing { bytes }))
}

struct Nothing {
    bytes: u64,
}

impl Primitive for Nothing {
    fn perform(&mut self) -> Result<(), Failure> {
        std::hint::black_box(&self);
        Ok(())
    }

    fn prove(&mut self) -> Result<Proof, Failure> {
        let mut proof = Proof { accepted: vec!["nothing is done".to_owned()], ..Proof::default() };
        proof.leave("a wrong input", "nothing looks at it");
        Ok(proof)
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}
