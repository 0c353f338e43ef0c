//! `digest` and `mac`: one message in one call; a MAC sets its key each time. A digest may be that of a file.

use std::fs::File;
use std::hint::black_box;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use rustix::fs::MemfdFlags;

use crate::contract::{Proof, Task};
use crate::failure::Failure;
use crate::provider::{Prepared, Primitive};
use crate::random;

const KEY_BYTES: usize = 32;

/// Prepares a digest of a message in memory or of a file's content; `hash` computes it.
pub fn digest<O: AsRef<[u8]> + 'static>(
    task: &Task,
    hash: impl Fn(&[u8]) -> Result<O, Failure> + 'static,
) -> Prepared {
    task.operation(&[("hash", ())])?;
    let known = task.message()?;
    match task.one_of("input", &[("memory", false), ("file", true)])? {
        false => prepare(task, None, known.map(|message| (Vec::new(), message)), move |_, data| hash(data)),
        true => {
            let data = random::filled(task.bytes(4096)?, task.seed);
            let file = MemoryFile::holding(&data).map_err(|error| failed(&error))?;
            Ok(Box::new(OfFile { file, data, known, hash }))
        }
    }
}

/// Prepares a MAC; `tag` computes it from (key, message).
pub fn mac<O: AsRef<[u8]> + 'static>(
    task: &Task,
    tag: impl Fn(&[u8], &[u8]) -> Result<O, Failure> + 'static,
) -> Prepared {
    task.operation(&[("authenticate", ())])?;
    let key = random::filled(KEY_BYTES, !task.seed);
    prepare(task, Some(key), task.hex("key")?.zip(task.message()?), tag)
}

fn prepare<O, F>(task: &Task, key: Option<Vec<u8>>, known: Option<(Vec<u8>, Vec<u8>)>, compute: F) -> Prepared
where
    O: AsRef<[u8]> + 'static,
    F: Fn(&[u8], &[u8]) -> Result<O, Failure> + 'static,
{
    let (data, is_keyed) = (random::filled(task.bytes(4096)?, task.seed), key.is_some());
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

impl<O: AsRef<[u8]>, F: Fn(&[u8], &[u8]) -> Result<O, Failure>> Primitive for Code<F> {
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
        proof.refuse("a tampered message", right != compute(&self.key, &random::tampered(&self.data))?)?;
        if self.is_keyed {
            proof.refuse("another key", right != compute(&random::tampered(&self.key), &self.data)?)?;
        }
        Ok(proof)
    }

    fn bytes(&self) -> u64 {
        self.data.len() as u64
    }
}

/// A file without a name in any directory, which is gone with the process. Its content is in the page cache,
/// like files that a web server often sends: reading it costs calls into the kernel and a copy.
struct MemoryFile {
    path: PathBuf,
    /// File that must stay open while the path is used.
    _file: File,
}

impl MemoryFile {
    fn holding(data: &[u8]) -> io::Result<MemoryFile> {
        let file = File::from(rustix::fs::memfd_create("hashed", MemfdFlags::CLOEXEC)?);
        file.write_all_at(data, 0)?;
        Ok(MemoryFile { path: PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd())), _file: file })
    }

    /// Opens the file, fills `data` from it, and closes it.
    fn read(&self, data: &mut [u8]) -> io::Result<()> {
        File::open(&self.path)?.read_exact(data)
    }
}

fn failed(error: &io::Error) -> Failure {
    Failure::Failed(format!("the file to hash cannot be used: {error}"))
}

struct OfFile<F> {
    file: MemoryFile,
    /// Content that was read last, in a buffer that is kept as a server keeps one.
    data: Vec<u8>,
    known: Option<Vec<u8>>,
    hash: F,
}

impl<O: AsRef<[u8]>, F: Fn(&[u8]) -> Result<O, Failure>> Primitive for OfFile<F> {
    fn perform(&mut self) -> Result<(), Failure> {
        self.file.read(&mut self.data).map_err(|error| failed(&error))?;
        black_box((self.hash)(black_box(&self.data))?);
        Ok(())
    }

    fn prove(&mut self) -> Result<Proof, Failure> {
        let of_file = |content: &[u8]| -> Result<Vec<u8>, Failure> {
            let mut data = vec![0; content.len()];
            let read = MemoryFile::holding(content).and_then(|file| file.read(&mut data));
            read.map_err(|error| failed(&error))?;
            Ok((self.hash)(&data)?.as_ref().to_vec())
        };
        let mut proof = Proof::default();
        if let Some(message) = &self.known {
            proof.answer = Some(hex::encode(of_file(message)?));
        }
        let content = self.data.clone();
        let right = (self.hash)(&content)?.as_ref().to_vec();
        proof.accept("the message in memory", right == of_file(&content)?)?;
        proof.refuse("a tampered file", right != of_file(&random::tampered(&content))?)?;
        // The proof must use the file that is timed, not the buffer's earlier content.
        self.data.fill(0);
        self.perform()?;
        proof.accept("the file that is timed", self.data == content)?;
        Ok(proof)
    }

    fn bytes(&self) -> u64 {
        self.data.len() as u64
    }
}
