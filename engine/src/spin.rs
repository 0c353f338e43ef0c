//! Work of a known amount: the lab is tested with it before it is believed about anything else.

use crate::contract::{Failure, Proof, Receipt, Task};
use crate::operation::Operation;
use crate::provider::{Offers, Provider};

pub struct Spin;

impl Provider for Spin {
    fn receipt(&self) -> Receipt {
        Receipt {
            provider: format!("spin {}", env!("CARGO_PKG_VERSION")),
            name: format!("spin {}", env!("CARGO_PKG_VERSION")),
            ..Receipt::default()
        }
    }

    fn offers(&self) -> Offers {
        vec![("spin", vec!["spin-1", "spin-1-again", "spin-2", "spin-5"])]
    }

    fn prepare(&self, task: &Task) -> Result<Box<dyn Operation>, Failure> {
        match task.family.as_str() {
            "spin" => Ok(Box::new(Iterate { iterations: task.number("iterations", 0)?, x: START })),
            family => Err(Failure::Unsupported(format!("spin performs nothing of the family {family}"))),
        }
    }
}

/// Where a chain begins for a known answer.
const START: u64 = 1;

/// A chain of multiplications in which each needs the one before: its time is proportional to its
/// length on any processor.
///
/// Each operation goes on where the last one ended. A processor runs ahead of what it waits for: of chains that
/// begin anew it would work on the next one while this one ends, and twice the length would take more than twice
/// as long.
struct Iterate {
    iterations: u64,
    x: u64,
}

impl Iterate {
    fn chain(&self, mut x: u64) -> u64 {
        for _ in 0..self.iterations {
            // The compiler must not see through a step: it would fold several of them into one.
            // SAFETY: there is no instruction in it.
            unsafe { std::arch::asm!("/* {0} */", inout(reg) x, options(pure, nomem, nostack)) };
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        }
        x
    }
}

impl Operation for Iterate {
    fn perform(&mut self) -> Result<(), Failure> {
        self.x = std::hint::black_box(self.chain(self.x));
        Ok(())
    }

    fn prove(&mut self) -> Result<Proof, Failure> {
        let right = self.chain(START);
        let mut proof = Proof { answer: Some(format!("{right:016x}")), ..Proof::default() };
        let longer = Iterate { iterations: self.iterations + 1, x: START };
        proof.refuse("a chain one step longer", longer.chain(START) != right)?;
        proof.refuse("a chain from elsewhere", self.chain(START + 1) != right)?;
        Ok(proof)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_goes_on_from_operation_to_operation() {
        let mut three = Iterate { iterations: 7, x: START };
        three.batch(3).expect("a batch");
        assert_eq!(Iterate { iterations: 21, x: START }.chain(START), three.x);
        // The known answer is of a chain from the start, however many went before.
        let fresh = Iterate { iterations: 7, x: START }.prove().expect("a proof");
        assert_eq!(fresh.answer, three.prove().expect("a proof").answer);
    }
}
