//! `op`: perform one task.

use crate::clock::{self, Clocks};
use crate::company::Company;
use crate::contract::{Chunk, Done, Mode, Offer, Proof, ProviderName, Ready, Receipt, Record, Task};
use crate::failure::Failure;
use crate::pacing::{Pace, USUAL, WINDOW_NS, WarmUp, memory_of};
use crate::provider::{Prepared, Primitive, Provider};
use crate::runner::{self, Advance, Lines};
use crate::tls::making::FIRST;

pub fn main() -> i32 {
    runner::run(perform)
}

/// The last line: the only one, but for a task that measures.
fn perform(task: &Task, lines: &mut Lines) -> Record<Done> {
    let provider = match task.word("cpu", "native").and_then(|cpu| open(&task.provider, cpu)) {
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
        "libcrypto" => crate::libcrypto::open(name.path.as_deref(), cpu),
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
        let mut company = Company::of(task, threads, prepare_anew)?;
        let (operation_ns, memory_bytes) = (company.operation_ns, company.memory_bytes);
        let ready = Ready { receipt: receipt(provider), operation_ns, memory_bytes };
        runner::session(lines, ready, |advance| company.advance(advance))?;
        return Ok(Done::default());
    }
    let primitive = prepare(provider, task)?;
    let (mut chunks, memory_bytes) = Chunks::warm(primitive, task.lead)?;
    let ready = Ready { receipt: receipt(provider), operation_ns: chunks.operation_ns(), memory_bytes };
    runner::session(lines, ready, |advance| chunks.advance(advance))?;
    Ok(Done::default())
}

/// A task's primitive on a provider that is opened for it: no thread of this engine shares what another one opened,
/// but for the library itself.
fn prepare_anew(task: &Task) -> Prepared {
    prepare(open(&task.provider, task.word("cpu", "native")?)?.as_ref(), task)
}

/// What is longer than a window is warm after so many.
const MOST_SLOW_OPERATIONS: u64 = 2;

/// A primitive that is ready and warm, advanced chunk by chunk.
pub struct Chunks {
    primitive: Box<dyn Primitive>,
    /// By CPU time.
    pace: Pace,
    lead: bool,
}

impl Chunks {
    /// Performs the primitive once while looking at memory, then until it is steady. Returns the growth of resident
    /// memory in that first operation, in bytes, where it can be seen.
    pub fn warm(primitive: Box<dyn Primitive>, lead: bool) -> Result<(Chunks, Option<u64>), Failure> {
        let mut chunks = Chunks { primitive, pace: Pace::new(1), lead };
        let memory_bytes = memory_of(|| chunks.window(1).map(|_| ()))?;
        chunks.until_steady()?;
        Ok((chunks, memory_bytes))
    }

    /// CPU time of one operation, lately.
    pub fn operation_ns(&self) -> f64 {
        self.pace.each_ns()
    }

    /// Goes on for at least so long and at least so many operations.
    pub fn advance(&mut self, asked: Advance) -> Result<Chunk, Failure> {
        self.lead_in(asked)?;
        self.counted(asked, &Clocks::read())
    }

    /// What comes before the clocks of a chunk start.
    pub fn lead_in(&mut self, asked: Advance) -> Result<(), Failure> {
        if !self.lead {
            return Ok(());
        }
        self.primitive.lead_in();
        match self.pace.lead(asked) {
            0 => Ok(()),
            leading => self.primitive.batch(leading),
        }
    }

    /// A chunk, from the moment at which its clocks were read.
    pub fn counted(&mut self, asked: Advance, clocks: &Clocks) -> Result<Chunk, Failure> {
        let Chunks { primitive, pace, .. } = self;
        let before_ns = primitive.elsewhere_ns();
        let operations = pace.work(asked, clocks, |count| primitive.batch(count))?;
        let (own_ns, wall_ns) = clocks.since();
        let cpu_ns = elsewhere(primitive.as_ref(), before_ns).unwrap_or(own_ns);
        pace.note(cpu_ns, operations);
        Ok(Chunk { operations, cpu_ns, wall_ns, ..Chunk::default() })
    }

    /// Works for about so long, and counts nothing.
    pub fn go_on(&mut self, time_ns: f64) -> Result<(), Failure> {
        self.primitive.batch(self.pace.filling(time_ns))
    }

    /// Goes on until two windows in a row agree.
    fn until_steady(&mut self) -> Result<(), Failure> {
        let (mut warm_up, mut performed) = (WarmUp::new(USUAL), 0);
        let (start_ns, mut count) = (clock::process_cpu_ns(), self.pace.filling(WINDOW_NS));
        loop {
            let taken_ns = self.window(count)? as f64;
            performed += count;
            let is_slow = self.pace.each_ns() > WINDOW_NS && performed >= MOST_SLOW_OPERATIONS;
            let spent_ns = (clock::process_cpu_ns() - start_ns) as f64;
            if warm_up.is_over(self.pace.each_ns(), spent_ns) || is_slow {
                return Ok(());
            }
            // A first operation may be slower than the rest by a lot: short windows find only how long one has to be.
            if taken_ns < WINDOW_NS / 2.0 {
                warm_up.forget();
            }
            // Grown by steps, for the same reason.
            count = self.pace.filling(WINDOW_NS).min(count.saturating_mul(10));
        }
    }

    /// So many operations, which then set the pace. Their CPU time.
    fn window(&mut self, count: u64) -> Result<u64, Failure> {
        let (start_ns, before_ns) = (clock::process_cpu_ns(), self.primitive.elsewhere_ns());
        self.primitive.batch(count)?;
        let own_ns = clock::process_cpu_ns() - start_ns;
        let taken_ns = elsewhere(self.primitive.as_ref(), before_ns).unwrap_or(own_ns);
        self.pace.set(taken_ns, count);
        Ok(taken_ns)
    }
}

/// CPU time of other processes since a moment, where they do the work.
fn elsewhere(primitive: &dyn Primitive, before_ns: Option<u64>) -> Option<u64> {
    Some(primitive.elsewhere_ns()? - before_ns?)
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;

    /// Works for so much CPU time, and counts how often.
    struct Work {
        cpu_ns: u64,
        performed: Rc<Cell<u64>>,
    }

    impl Primitive for Work {
        fn perform(&mut self) -> Result<(), Failure> {
            let end = clock::process_cpu_ns() + self.cpu_ns;
            while clock::process_cpu_ns() < end {}
            self.performed.set(self.performed.get() + 1);
            Ok(())
        }

        fn prove(&mut self) -> Result<Proof, Failure> {
            Ok(Proof::default())
        }
    }

    fn warm(cpu_ns: u64, lead: bool) -> (Chunks, Rc<Cell<u64>>) {
        let performed = Rc::new(Cell::new(0));
        let work = Work { cpu_ns, performed: performed.clone() };
        let (chunks, _) = Chunks::warm(Box::new(work), lead).expect("an operation");
        (chunks, performed)
    }

    /// How many operations a chunk of 5 ms performs beside those that it counts.
    fn lead_of(cpu_ns: u64, lead: bool) -> u64 {
        let (mut chunks, performed) = warm(cpu_ns, lead);
        let before = performed.get();
        let chunk = chunks.advance(Advance { seconds: 0.005, operations: 1 }).expect("a chunk");
        performed.get() - before - chunk.operations
    }

    #[test]
    fn a_chunk_has_a_lead_unless_an_operation_is_long() {
        // An operation takes at least so long, whatever else the machine does: longer ones have none.
        assert_eq!(0, lead_of(2_000_000, true));
        assert_eq!(0, lead_of(20_000, false));
        assert!(lead_of(20_000, true) >= 1);
    }

    #[test]
    fn what_is_slow_is_warmed_up_by_two_more() {
        let (chunks, performed) = warm(20_000_000, true);
        assert_eq!(3, performed.get());
        assert!(chunks.pace.each_ns() >= 20e6);
    }

    #[test]
    fn a_chunk_is_at_least_as_long_and_as_many_as_asked() {
        let (mut chunks, _) = warm(50_000, true);
        for (seconds, operations) in [(0.0, 1), (0.0, 70), (0.004, 1), (0.001, 40)] {
            let chunk = chunks.advance(Advance { seconds, operations }).expect("a chunk");
            assert!(chunk.operations >= operations && chunk.wall_ns as f64 >= seconds * 1e9, "{chunk:?}");
        }
    }

    #[test]
    fn an_error_ends_a_chunk() {
        struct Failing(u32);
        impl Primitive for Failing {
            fn perform(&mut self) -> Result<(), Failure> {
                self.0 += 1;
                if self.0 > 2 { Err(Failure::Failed("a wrong answer".to_owned())) } else { Ok(()) }
            }
            fn prove(&mut self) -> Result<Proof, Failure> {
                Ok(Proof::default())
            }
        }
        let mut pace = Pace::new(1);
        pace.set(10_000_000, 1);
        let mut chunks = Chunks { primitive: Box::new(Failing(0)), pace, lead: true };
        let asked = Advance { seconds: 0.0, operations: 2 };
        assert_eq!(2, chunks.advance(asked).expect("a chunk").operations);
        assert!(chunks.advance(asked).is_err());
    }
}
