//! `password-hash`: one password hashed with one salt, at the cost that its parameters set.

use std::hint::black_box;

use crate::contract::{Proof, Task};
use crate::failure::Failure;
use crate::provider::{Prepared, Primitive};
use crate::random;

const PASSWORD: &[u8] = b"correct horse battery staple";
const SALT_BYTES: usize = 16;

/// Length of a hash, unless its digest is shorter. One byte more would make PBKDF2 compute a second block
/// with as much work again, which an attacker who guesses passwords can skip.
pub const HASH_BYTES: usize = 32;

/// Prepares a password hash. `hash` fills the output from (password, salt); `bytes` is the output's length
/// unless a known answer has another.
pub fn prepare(
    task: &Task,
    bytes: usize,
    hash: impl Fn(&[u8], &[u8], &mut [u8]) -> Result<(), Failure> + 'static,
) -> Prepared {
    task.operation(&[("hash", ())])?;
    let known = match task.text("password") {
        Some(password) => {
            let (salt, bytes) = (task.need_hex("salt")?, task.need_hex("expected")?.len());
            if bytes == 0 {
                return Err(Failure::Failed("a known answer must have at least one byte".to_owned()));
            }
            Some(Known { password: password.as_bytes().to_vec(), salt, bytes })
        }
        None => None,
    };
    let salt = random::filled(SALT_BYTES, task.seed);
    Ok(Box::new(HashPassword { salt, output: vec![0; bytes], known, hash }))
}

/// Reads a parameter of 32 bits. It has no default, which would be this program's choice.
pub fn parameter(task: &Task, name: &str) -> Result<u32, Failure> {
    let number = task.number(name, 0)?;
    match u32::try_from(number) {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(Failure::Failed(format!("the setting `{name}` must be from 1 to 2^32 - 1, not {number}"))),
    }
}

/// Reads a memory parameter, bytes in studies, as the KiB that Argon2 counts in.
pub fn kibibytes(task: &Task, name: &str) -> Result<u32, Failure> {
    let bytes = task.number(name, 0)?;
    match u32::try_from(bytes / 1024) {
        Ok(kibibytes) if kibibytes > 0 && bytes % 1024 == 0 => Ok(kibibytes),
        _ => Err(Failure::Failed(format!(
            "the setting `{name}` must be whole KiB, at most 2^32 - 1, not {bytes} bytes"
        ))),
    }
}

/// Reads a parameter that is a power of two, as its exponent.
pub fn log2(task: &Task, name: &str) -> Result<u8, Failure> {
    let number = task.number(name, 0)?;
    match number.is_power_of_two() {
        true => Ok(number.ilog2() as u8),
        false => Err(Failure::Failed(format!("the setting `{name}` must be a power of two, not {number}"))),
    }
}

/// Fails if the machine does not have this memory: otherwise the allocation would end the process, not only
/// the cell.
pub fn affordable(bytes: Option<u64>) -> Result<(), Failure> {
    // SAFETY: it takes a name, and returns a number, or -1.
    let pages = unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) };
    let machine = u64::try_from(pages).unwrap_or(0).saturating_mul(rustix::param::page_size() as u64);
    if bytes.is_some_and(|bytes| bytes <= machine) {
        return Ok(());
    }
    let much = bytes.map_or("more than 2^64".to_owned(), |bytes| bytes.to_string());
    Err(Failure::Unsupported(format!("a hash needs {much} bytes of memory; the machine has {machine}")))
}

/// Copies the front of a hash to the output.
pub fn copy(hash: &[u8], output: &mut [u8]) -> Result<(), Failure> {
    let front = hash.get(..output.len());
    output.copy_from_slice(
        front.ok_or_else(|| Failure::Failed("the output is longer than that of the hash".to_owned()))?,
    );
    Ok(())
}

struct Known {
    password: Vec<u8>,
    salt: Vec<u8>,
    bytes: usize,
}

struct HashPassword<F> {
    salt: Vec<u8>,
    output: Vec<u8>,
    known: Option<Known>,
    hash: F,
}

impl<F: Fn(&[u8], &[u8], &mut [u8]) -> Result<(), Failure>> Primitive for HashPassword<F> {
    fn perform(&mut self) -> Result<(), Failure> {
        (self.hash)(black_box(PASSWORD), black_box(&self.salt), &mut self.output)?;
        black_box(&self.output);
        Ok(())
    }

    fn prove(&mut self) -> Result<Proof, Failure> {
        let hash = |password: &[u8], salt: &[u8], bytes: usize| {
            let mut output = vec![0; bytes];
            (self.hash)(password, salt, &mut output).map(|()| output)
        };
        let mut proof = Proof::default();
        if let Some(known) = &self.known {
            proof.answer = Some(hex::encode(hash(&known.password, &known.salt, known.bytes)?));
        }
        let bytes = self.output.len();
        let right = hash(PASSWORD, &self.salt, bytes)?;
        proof.accept("the same password", right == hash(PASSWORD, &self.salt, bytes)?)?;
        proof.refuse("another password", right != hash(&random::tampered(PASSWORD), &self.salt, bytes)?)?;
        proof.refuse("another salt", right != hash(PASSWORD, &random::tampered(&self.salt), bytes)?)?;
        Ok(proof)
    }
}
