//! What every provider of a family does alike: the operations, and how each proves itself.
//!
//! A provider fills in the calls of its own library; buffers, keys, order and checks are the same for all,
//! so that two providers differ by their code and by nothing else. All of it is generic: the compiler makes
//! one loop for each choice, and nothing is looked up while it runs.

pub mod cipher;
pub mod digest;
pub mod key_exchange;
pub mod password_hash;
pub mod signature;
#[cfg(test)]
mod tests;

use std::fmt::Display;

use crate::contract::{Receipt, Task};
use crate::failure::Failure;
use crate::provider::{Offers, Provider};

pub use crate::provider::Prepared;

/// One promise: the name of the choice or of its algorithm, and how it is made ready.
pub type Row = (&'static str, fn(&Task) -> Prepared);
/// Everything a provider promises, by family.
pub type Table = &'static [(&'static str, &'static [Row])];

/// A provider that is linked in: how refusals name it, which code it is, and everything it promises.
pub struct Linked {
    pub name: &'static str,
    pub receipt: fn() -> Receipt,
    pub table: Table,
    /// The choices of `storage` that it performs, which `tollbar-engine store` does, on a database.
    pub storage: &'static [&'static [&'static str]],
}

/// What is encrypted by the application, on any database; and what is compared with it.
pub const IN_APPLICATION: &[&str] =
    &["plaintext", "aes-256-gcm", "blind-index", "envelope-aes", "envelope-rsa", "rsa-oaep"];

/// What a server encrypts itself.
pub const IN_SERVER: &[&str] = &[
    "pgp-pub-encrypt",
    "pgp-sym-encrypt",
    "encrypt-iv",
    "encrypt-iv-hmac",
    "aes-encrypt",
    "table-encryption",
];

impl Provider for Linked {
    fn receipt(&self) -> Receipt {
        (self.receipt)()
    }

    fn offers(&self) -> Offers {
        let choices = |rows: &[Row]| rows.iter().map(|(choice, _)| *choice).collect();
        let stored = (!self.storage.is_empty()).then(|| ("storage", self.storage.concat()));
        self.table.iter().map(|(family, rows)| (*family, choices(rows))).chain(stored).collect()
    }

    fn prepare(&self, task: &Task) -> Prepared {
        match self.table.iter().find(|(family, _)| *family == task.family) {
            Some((_, rows)) => row(self.name, task, rows)?(task),
            None if task.family == "storage" => {
                Err(Failure::Unsupported("storage is performed by `tollbar-engine store`".to_owned()))
            }
            None => Err(not_offered(self.name, &format!("the family {}", task.family))),
        }
    }
}

/// A task's row among those of its family: that of its choice, or of the algorithm where a choice is an algorithm with
/// parameters.
pub fn row<'a, R>(provider: &str, task: &Task, rows: &'a [(&'static str, R)]) -> Result<&'a R, Failure> {
    let wanted = task.word("algorithm", &task.choice)?;
    let row = rows.iter().find(|(name, _)| *name == wanted);
    row.map(|(_, row)| row).ok_or_else(|| not_offered(provider, &format!("{wanted} ({})", task.family)))
}

/// The choices of those rows that a library turns out to have.
pub fn offered<R>(rows: &[(&'static str, R)], has: impl Fn(&R) -> bool) -> Vec<&'static str> {
    rows.iter().filter(|row| has(&row.1)).map(|row| row.0).collect()
}

pub fn not_offered(provider: &str, what: &str) -> Failure {
    Failure::Unsupported(format!("{provider} does not offer {what}"))
}

/// Turns a library's error into a failure that says what was being done.
pub fn failed<E: Display>(doing: &'static str) -> impl Fn(E) -> Failure {
    move |error| Failure::Failed(format!("{doing}: {error}"))
}
