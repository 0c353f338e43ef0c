//! Work of a known amount. The lab is tested with it before its other results are believed, and uses it
//! between chunks to detect whether the core was quiet.

mod held;
mod lengths;
mod work;

use held::Held;
use lengths::Lengths;
use work::{Chain, Narrow, START, Wide, Work};

use crate::clock;
use crate::contract::{Proof, Receipt, Task};
use crate::failure::Failure;
use crate::provider::{Offers, Provider};
use crate::provider::{Prepared, Primitive};

pub struct Spin;

const CHOICES: &[&str] = &[
    "spin-1",
    "spin-1-again",
    "spin-2",
    "spin-5",
    "spin-periodic",
    "spin-rare",
    "spin-heavy-tailed",
    "spin-drifting",
    "spin-wide-1",
    "spin-wide-2",
    "spin-parts",
    "spin-locked",
    "spin-waiting",
];

/// Steps of the probe, 15 to 40 µs of work in registers. Loads would displace neighbouring work from the
/// caches: P-256 signatures cost 3 % more between such probes. The amount is the same on every machine, so
/// that readings of one machine can be compared whenever they were taken.
const PROBE_STEPS: u64 = 12_000;
/// Steps of the probe's session before its clock starts, because it has just been woken.
const PROBE_LEAD_STEPS: u64 = 3_000;
/// Steps before the clock if the process is already working: only the probe's code must return to the caches.
const RUNNING_LEAD_STEPS: u64 = 300;

impl Provider for Spin {
    fn receipt(&self) -> Receipt {
        Receipt {
            provider: format!("spin {}", env!("CARGO_PKG_VERSION")),
            name: format!("spin {}", env!("CARGO_PKG_VERSION")),
            ..Receipt::default()
        }
    }

    fn offers(&self) -> Offers {
        vec![("spin", CHOICES.to_vec())]
    }

    fn prepare(&self, task: &Task) -> Prepared {
        if task.family != "spin" {
            return Err(Failure::Unsupported(format!("spin does not perform the family {}", task.family)));
        }
        let prepare = task.operation::<fn(&Task) -> Prepared>(&[("spin", spin), ("probe", probe)])?;
        prepare(task)
    }
}

fn spin(task: &Task) -> Prepared {
    let locked = task.number("locked", 0)?;
    if locked > 0 {
        return Held::of(task, locked);
    }
    let prepare = task.one_of::<fn(Lengths) -> Box<dyn Primitive>>(
        "work",
        &[
            ("chain", |lengths| Box::new(Spinning::<Chain>::of(lengths, 0))),
            ("wide", |lengths| Box::new(Spinning::<Wide>::of(lengths, 0))),
        ],
    )?;
    Ok(prepare(Lengths::of(task)?))
}

fn probe(_: &Task) -> Prepared {
    Ok(Box::new(Spinning::<Narrow>::of(Lengths::even(PROBE_STEPS), PROBE_LEAD_STEPS)))
}

/// The probe inside a process that measures other work: the same steps and the same code.
pub struct Probe(Narrow);

impl Probe {
    pub fn new() -> Probe {
        Probe(Narrow::starting_at(START))
    }

    /// Returns the elapsed nanoseconds of the probe's work now. No system call separates it from neighbouring
    /// work.
    pub fn read_ns(&mut self) -> u64 {
        self.0.steps(RUNNING_LEAD_STEPS);
        let began_ns = clock::wall_ns();
        self.0.steps(PROBE_STEPS);
        (clock::wall_ns() - began_ns).max(1)
    }
}

/// Work, and the number of its steps in each operation.
struct Spinning<W> {
    work: W,
    lengths: Lengths,
    lead: u64,
}

impl<W: Work> Spinning<W> {
    fn of(lengths: Lengths, lead: u64) -> Spinning<W> {
        Spinning { work: W::starting_at(START), lengths, lead }
    }
}

impl<W: Work> Primitive for Spinning<W> {
    fn perform(&mut self) -> Result<(), Failure> {
        self.work.steps(self.lengths.next());
        Ok(())
    }

    fn lead_in(&mut self) {
        self.work.steps(self.lead);
    }

    /// Proves the work. The answer is that of a whole period from the start, however many operations went
    /// before. It is right only if the period has exactly the steps that its mean promises.
    fn prove(&mut self) -> Result<Proof, Failure> {
        let whole = self.lengths.whole();
        let from = |start| {
            let mut work = W::starting_at(start);
            whole.iter().for_each(|steps| work.steps(*steps));
            work
        };
        let mut right = from(START);
        let answer = right.answer();
        let mut proof = Proof { answer: Some(format!("{answer:016x}")), ..Proof::default() };
        right.steps(1);
        proof.refuse("one step more", right.answer() != answer)?;
        proof.refuse("a start from elsewhere", from(START + 1).answer() != answer)?;
        Ok(proof)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunks::Chunks;
    use crate::runner::Advance;

    fn answer(operation: &mut impl Primitive) -> Option<String> {
        operation.prove().expect("a proof").answer
    }

    #[test]
    fn operations_go_on_and_the_known_answer_does_not() {
        let mut three = Spinning::<Chain>::of(Lengths::even(7), 0);
        three.batch(3).expect("a batch");
        let mut chain = Chain::starting_at(START);
        chain.steps(21);
        assert_eq!(chain.answer(), three.work.answer());
        assert_eq!(answer(&mut Spinning::<Chain>::of(Lengths::even(7), 0)), answer(&mut three));
    }

    /// A chunk of one probe performs one, with the steps before its clock and no others.
    #[test]
    fn a_probe_is_one_operation() {
        use std::cell::Cell;
        use std::rc::Rc;
        struct Counted(Rc<Cell<u64>>);
        impl Work for Counted {
            fn starting_at(_: u64) -> Counted {
                Counted(Rc::default())
            }
            fn steps(&mut self, count: u64) {
                self.0.set(self.0.get() + count);
                // An unmoved clock would mean an operation without any cost.
                Chain::starting_at(START).steps(count);
            }
            fn answer(&self) -> u64 {
                0
            }
        }
        let counted = Spinning::<Counted>::of(Lengths::even(PROBE_STEPS), PROBE_LEAD_STEPS);
        let steps = counted.work.0.clone();
        let (mut chunks, _) = Chunks::warm(Box::new(counted), true).expect("a probe");
        for _ in 0..5 {
            let before = steps.get();
            let chunk = chunks.advance(Advance { seconds: 0.0, operations: 1 }).expect("a chunk");
            assert_eq!((1, PROBE_LEAD_STEPS + PROBE_STEPS), (chunk.operations, steps.get() - before));
        }
    }
}
