//! `digest` and `mac`: one message in one call; a mac under a key that is set each time.

use std::hint::black_box;

use crate::buffers;
use crate::contract::{Failure, Proof, Task};
use crate::operation::{Operation, Prepared};

const KEY_BYTES: usize = 32;

/// `hash` computes the digest of a message.
pub fn digest<O: AsRef<[u8]> + 'static>(
    task: &Task,
    hash: impl Fn(&[u8]) -> Result<O, Failure> + 'static,
) -> Prepared {
    task.operation(&[("hash", ())])?;
    prepare(task, None, task.message()?.map(|message| (Vec::new(), message)), move |_, data| hash(data))
}

/// `tag` computes the tag of (key, message).
pub fn mac<O: AsRef<[u8]> + 'static>(
    task: &Task,
    tag: impl Fn(&[u8], &[u8]) -> Result<O, Failure> + 'static,
) -> Prepared {
    task.operation(&[("authenticate", ())])?;
    let key = buffers::filled(KEY_BYTES, !task.seed);
    prepare(task, Some(key), task.hex("key")?.zip(task.message()?), tag)
}

fn prepare<O, F>(task: &Task, key: Option<Vec<u8>>, known: Option<(Vec<u8>, Vec<u8>)>, compute: F) -> Prepared
where
    O: AsRef<[u8]> + 'static,
    F: Fn(&[u8], &[u8]) -> Result<O, Failure> + 'static,
{
    let (data, is_keyed) = (buffers::filled(task.bytes(4096)?, task.seed), key.is_some());
    Ok(Box::new(Code { key: key.unwrap_or_default(), is_keyed, data, known, compute }))
}

struct Code<F> {
    key: Vec<u8>,
    is_keyed: bool,
    data: Vec<u8>,
    /// Key and message of a known answer.
    known: Option<(Vec<u8>, Vec<u8>)>,
    compute: F,
}

impl<O: AsRef<[u8]>, F: Fn(&[u8], &[u8]) -> Result<O, Failure>> Operation for Code<F> {
    fn perform(&mut self) -> Result<(), Failure> {
        black_box((self.compute)(black_box(&self.key), black_box(&self.data))?);
        Ok(())
    }

    fn prove(&mut self) -> Result<Proof, Failure> {
        let compute = |key: &[u8], data: &[u8]| Ok((self.compute)(key, data)?.as_ref().to_vec());
        let mut proof = Proof::default();
        if let Some((key, message)) = &self.known {
            proof.answer = Some(hex::encode(compute(key, message)?));
        }
        let right = compute(&self.key, &self.data)?;
        proof.accept("the same message again", right == compute(&self.key, &self.data)?)?;
        proof.refuse("a tampered message", right != compute(&self.key, &buffers::tampered(&self.data))?)?;
        if self.is_keyed {
            proof.refuse("another key", right != compute(&buffers::tampered(&self.key), &self.data)?)?;
        }
        Ok(proof)
    }

    fn bytes(&self) -> u64 {
        self.data.len() as u64
    }
}
