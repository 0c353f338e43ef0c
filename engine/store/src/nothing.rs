//! The null choice: the loop that reads rows, without a database.

use std::hint::black_box;
use std::ops::Range;

use super::columns::{Column, Stored};
use super::database::{Database, Promise};
use super::table::{Found, Table};
use super::task::{Access, Settings};
use crate::contract::{Proof, Task};
use crate::failure::Failure;

struct Nothing(Table);

/// Opens the null choice. Fails for operations other than reads.
pub fn open(task: &Task, settings: &Settings, table: Table) -> Result<Box<dyn Database>, Failure> {
    if settings.access != Access::Read {
        let words = format!("`none` of storage supports only reading, not `{}`", task.op);
        return Err(Failure::Unsupported(words));
    }
    for name in ["cache", "loop", "key", "s2k-mode", "log"] {
        task.belongs(name);
    }
    Ok(Box::new(Nothing(table)))
}

/// Returns the proof: there is nothing to write, and so nothing to read back.
pub fn prove() -> Proof {
    let mut proof = Proof { accepted: vec!["nothing is stored".to_owned()], ..Proof::default() };
    proof.leave("a wrong row", "nothing is read");
    proof
}

impl Database for Nothing {
    fn create(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn fill(&mut self, _: Range<i64>) -> Result<(), Failure> {
        Ok(())
    }

    fn insert(&mut self, _: Range<i64>, _: u64) -> Result<(), Failure> {
        Ok(())
    }

    fn read(&mut self, ids: &[i64]) -> Result<(), Failure> {
        for id in ids {
            // The row is made instead of read: making a row and checking it is part of the loop.
            let card = black_box(self.0.cards.card(*id));
            let [string, strings @ ..] = &card.strings;
            let protected = Stored::Plain { number: card.numbers[0], code: card.codes[0], string };
            let found = Found {
                protected,
                numbers: [card.numbers[1], card.numbers[2], card.numbers[3]],
                codes: [card.codes[1], card.codes[2], card.codes[3]],
                strings: [&strings[0], &strings[1], &strings[2]],
            };
            self.0.check(*id, &found)?;
        }
        Ok(())
    }

    fn find(&mut self, ids: &[i64]) -> Result<(), Failure> {
        self.read(ids)
    }

    fn put_off(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn size(&mut self) -> Result<u64, Failure> {
        Ok(0)
    }

    fn promise(&self) -> Promise {
        Promise::none("nothing is stored")
    }

    fn encrypts_values(&self) -> bool {
        false
    }

    fn stored(&mut self, _: i64, _: Column) -> Result<Vec<u8>, Failure> {
        Ok(Vec::new())
    }

    fn put_stored(&mut self, _: i64, _: Column, _: &[u8]) -> Result<(), Failure> {
        Ok(())
    }

    fn read_with_wrong_key(&mut self, _: i64) -> Result<Result<(), Failure>, Failure> {
        Ok(Ok(()))
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}
