//! Every family's null choice: the same path, and nothing done at the end of it.

use crate::contract::{Failure, Proof, Task};
use crate::operation::Operation;

/// The families that have a null choice, and the settings that belong to it: what would vary the others' work.
const FAMILIES: &[(&str, &[&str])] = &[
    ("digest", &["bytes", "input"]),
    ("mac", &["bytes"]),
    ("cipher", &["bytes", "key"]),
    ("signature", &["bytes"]),
    ("key-exchange", &[]),
    ("password-hash", &[]),
    ("rsa-api", &["bytes", "call", "digest"]),
    ("spin", &["iterations"]),
];

pub fn prepare(task: &Task) -> Result<Box<dyn Operation>, Failure> {
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

impl Operation for Nothing {
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
