//! Operations and proofs that are the same for every provider of a family.
//!
//! A provider supplies the calls of its library; buffers, keys, order and checks are common to all, so that
//! two providers differ only in their library's code. All of it is generic: the compiler makes one loop for
//! each choice, without a lookup at run time.

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

/// An offer: the name of the choice or of its algorithm, and the function that prepares it.
pub type Row = (&'static str, fn(&Task) -> Prepared);
/// Offers of a provider, by family.
pub type Table = &'static [(&'static str, &'static [Row])];

/// A linked-in provider: its name in refusals, its receipt, and its offers.
pub struct Linked {
    pub name: &'static str,
    pub receipt: fn() -> Receipt,
    pub table: Table,
    /// Choices of `storage` that the provider performs in a database with `tollbar-engine store`.
    pub storage: &'static [&'static [&'static str]],
}

/// Choices that the application encrypts, on any database, and the plaintext that they are compared with.
pub const IN_APPLICATION: &[&str] =
    &["plaintext", "aes-256-gcm", "blind-index", "envelope-aes", "envelope-rsa", "rsa-oaep"];

/// Choices that a server encrypts itself.
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

/// Returns the row of a task: that of its choice, or of its algorithm if a choice is an algorithm with
/// parameters.
pub fn row<'a, R>(provider: &str, task: &Task, rows: &'a [(&'static str, R)]) -> Result<&'a R, Failure> {
    let wanted = task.word("algorithm", &task.choice)?;
    let row = rows.iter().find(|(name, _)| *name == wanted);
    row.map(|(_, row)| row).ok_or_else(|| not_offered(provider, &format!("{wanted} ({})", task.family)))
}

/// Returns the choices of the rows that a library supports.
pub fn offered<R>(rows: &[(&'static str, R)], has: impl Fn(&R) -> bool) -> Vec<&'static str> {
    rows.iter().filter(|row| has(&row.1)).map(|row| row.0).collect()
}

pub fn not_offered(provider: &str, what: &str) -> Failure {
    Failure::Unsupported(format!("{provider} does not offer {what}"))
}

/// Turns a library's error into a failure that names the operation.
pub fn failed<E: Display>(doing: &'static str) -> impl Fn(E) -> Failure {
    move |error| Failure::Failed(format!("{doing}: {error}"))
}
