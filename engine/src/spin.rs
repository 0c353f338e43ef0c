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
            "spin" => Ok(Box::new(Iterate { iterations: task.number("iterations", 0)? })),
            family => Err(Failure::Unsupported(format!("spin performs nothing of the family {family}"))),
        }
    }
}

/// A chain of multiplications in which each needs the one before: its time is proportional to its
/// length on any processor.
struct Iterate {
    iterations: u64,
}

impl Iterate {
    fn chain(&self) -> u64 {
        let mut x: u64 = 1;
        for _ in 0..self.iterations {
            // The compiler must not see through a step: it would fold several of them into one.
            unsafe { std::arch::asm!("/* {0} */", inout(reg) x, options(pure, nomem, nostack)) };
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        }
        x
    }
}

impl Operation for Iterate {
    fn perform(&mut self) -> Result<(), Failure> {
        std::hint::black_box(self.chain());
        Ok(())
    }

    fn prove(&mut self) -> Result<Proof, Failure> {
        let mut proof = Proof { answer: Some(format!("{:016x}", self.chain())), ..Proof::default() };
        let longer = Iterate { iterations: self.iterations + 1 };
        proof.refuse("a chain one step longer", longer.chain() != self.chain())?;
        Ok(proof)
    }
}
