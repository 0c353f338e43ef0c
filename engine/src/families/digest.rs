//! `digest`: one message, one hash, in one call.

use std::hint::black_box;

use super::prepared::{Prepared, no_such_operation};
use crate::buffers;
use crate::contract::{Failure, Proof, Task};
use crate::operation::Operation;

/// `hash` computes the digest of a message.
pub fn prepare<O: AsRef<[u8]> + 'static>(
    task: &Task,
    hash: impl Fn(&[u8]) -> Result<O, Failure> + 'static,
) -> Prepared {
    if task.op != "hash" {
        return Err(no_such_operation(task));
    }
    let data = buffers::filled(task.bytes(4096)?, task.seed);
    Ok(Box::new(Hash { data, known: task.message()?, hash }))
}

struct Hash<F> {
    data: Vec<u8>,
    known: Option<Vec<u8>>,
    hash: F,
}

impl<O: AsRef<[u8]>, F: Fn(&[u8]) -> Result<O, Failure>> Operation for Hash<F> {
    fn perform(&mut self) -> Result<(), Failure> {
        black_box((self.hash)(black_box(&self.data))?);
        Ok(())
    }

    fn prove(&mut self) -> Result<Proof, Failure> {
        let hash = |data: &[u8]| Ok((self.hash)(data)?.as_ref().to_vec());
        let mut proof = Proof::default();
        if let Some(message) = &self.known {
            proof.answer = Some(hex::encode(hash(message)?));
        }
        let right = hash(&self.data)?;
        proof.accept("the same message again", right == hash(&self.data)?)?;
        proof.refuse("a tampered message", right != hash(&buffers::tampered(&self.data))?)?;
        Ok(proof)
    }

    fn bytes(&self) -> u64 {
        self.data.len() as u64
    }
}
