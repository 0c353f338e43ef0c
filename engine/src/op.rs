//! `op`: perform one task.

use crate::chunks::Chunks;
use crate::contract::{Done, Mode, Offer, Proof, ProviderName, Ready, Receipt, Record, Task};
use crate::failure::Failure;
use crate::provider::{Prepared, Primitive, Provider};
use crate::runner::{self, Lines};
use crate::slices::Sliced;
use crate::team::Team;
use crate::tls::making::{FIRST, WithClients};

pub fn main() -> i32 {
    runner::run(perform)
}

/// The last line: the only one, but for a task that measures.
fn perform(task: &Task, lines: &mut Lines) -> Record<Done> {
    let opened = mask(task).and_then(|()| open(&task.provider, task.word("cpu", "native")?));
    let provider = match opened {
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

/// Masks this process as a task asks for it, before it starts a thread.
pub fn mask(task: &Task) -> Result<(), Failure> {
    match task.provider.kind.as_str() {
        "libcrypto" => crate::libcrypto::mask(task.word("cpu", "native")?),
        // `open` refuses a mask for these.
        _ => Ok(()),
    }
}

/// The provider of this name, ready to be asked; `cpu` says which instruction sets it may use.
pub fn open(name: &ProviderName, cpu: &str) -> Result<Box<dyn Provider>, Failure> {
    // A library that is linked in has looked at the processor before `main`: too late to mask anything.
    if cpu != "native" && name.kind != "libcrypto" {
        return Err(Failure::Unsupported(format!(
            "{} cannot be told to leave instruction sets unused",
            name.kind
        )));
    }
    match name.kind.as_str() {
        "libcrypto" => Ok(Box::new(WithClients(crate::libcrypto::open(name.path.as_deref(), cpu)?))),
        "aws-lc" => Ok(Box::new(crate::aws_lc::AWS_LC)),
        "rustcrypto" => Ok(Box::new(crate::rustcrypto::RUSTCRYPTO)),
        "spin" => Ok(Box::new(crate::spin::Spin)),
        "sqlite" => Ok(Box::new(crate::sqlite::SQLITE)),
        "sqlcipher" => Ok(Box::new(crate::sqlite::SQLCIPHER)),
        kind => {
            let known = "libcrypto, aws-lc, rustcrypto, spin, sqlite, sqlcipher";
            Err(Failure::Failed(format!("no such provider: `{kind}` ({known})")))
        }
    }
}

/// Which code answers.
pub fn receipt(provider: &dyn Provider) -> Receipt {
    Receipt { engine: runner::engine_receipt(), ..provider.receipt() }
}

fn offers(provider: &dyn Provider) -> Vec<Offer> {
    let offers = provider.offers().into_iter();
    offers
        .flat_map(|(family, choices)| choices.into_iter().map(move |choice| Offer { family, choice }))
        .collect()
}

/// Makes a task's primitive ready, and sees that every setting of the task had a part in it.
pub fn prepare(provider: &dyn Provider, task: &Task) -> Prepared {
    // Of what a fresh process does first, nothing is a process too.
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
            "the known answer's inputs are not all there, so it was not tried".to_owned(),
        ));
    }
    Ok(Done { proof: Some(proof), ..Done::default() })
}

fn measure(provider: &dyn Provider, task: &Task, lines: &mut Lines) -> Result<Done, Failure> {
    runner::optimised(cfg!(debug_assertions))?;
    if let Some(threads) = task.threads {
        let mut team = Team::of(task, threads, prepare_anew)?;
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

/// A task's primitive on a provider that is opened for it: no thread of this engine shares what another one opened,
/// but for the library itself.
fn prepare_anew(task: &Task) -> Prepared {
    prepare(open(&task.provider, task.word("cpu", "native")?)?.as_ref(), task)
}

/// The families that have a null choice (the same path, and nothing done at the end of it), and the settings that belong
/// to it: what would vary the others' work.
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

/// The null choice of a task's family.
fn nothing(task: &Task) -> Prepared {
    let row = FAMILIES.iter().find(|(family, _)| *family == task.family);
    let (_, settings) = row.ok_or_else(|| {
        Failure::Unsupported(format!("the engine performs nothing of the family {}", task.family))
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
