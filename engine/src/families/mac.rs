//! `mac`: one message authenticated under a key that is set each time.

use std::hint::black_box;

use super::prepared::{Prepared, no_such_operation};
use crate::buffers;
use crate::contract::{Failure, Proof, Task};
use crate::operation::Operation;

const KEY_BYTES: usize = 32;

/// `tag` computes the tag of (key, message).
pub fn prepare<O: AsRef<[u8]> + 'static>(
    task: &Task,
    tag: impl Fn(&[u8], &[u8]) -> Result<O, Failure> + 'static,
) -> Prepared {
    if task.op != "authenticate" {
        return Err(no_such_operation(task));
    }
    Ok(Box::new(Authenticate {
        key: buffers::filled(KEY_BYTES, !task.seed),
        data: buffers::filled(task.bytes(4096)?, task.seed),
        known: task.hex("key")?.zip(task.message()?),
        tag,
    }))
}

struct Authenticate<F> {
    key: Vec<u8>,
    data: Vec<u8>,
    known: Option<(Vec<u8>, Vec<u8>)>,
    tag: F,
}

impl<O: AsRef<[u8]>, F: Fn(&[u8], &[u8]) -> Result<O, Failure>> Operation for Authenticate<F> {
    fn perform(&mut self) -> Result<(), Failure> {
        black_box((self.tag)(black_box(&self.key), black_box(&self.data))?);
        Ok(())
    }

    fn prove(&mut self) -> Result<Proof, Failure> {
        let tag = |key: &[u8], data: &[u8]| Ok((self.tag)(key, data)?.as_ref().to_vec());
        let mut proof = Proof::default();
        if let Some((key, message)) = &self.known {
            proof.answer = Some(hex::encode(tag(key, message)?));
        }
        let right = tag(&self.key, &self.data)?;
        proof.accept("its own tag", right == tag(&self.key, &self.data)?)?;
        proof.refuse("a tampered message", right != tag(&self.key, &buffers::tampered(&self.data))?)?;
        proof.refuse("another key", right != tag(&buffers::tampered(&self.key), &self.data)?)?;
        Ok(proof)
    }

    fn bytes(&self) -> u64 {
        self.data.len() as u64
    }
}
