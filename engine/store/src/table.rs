//! The table as a database sees it: rows to store, and checks of rows that were read.

use super::card::{Card, Cards, Text};
use super::columns::{Column, Extra, Stored};
use super::protection::{Protection, Sealed};
use crate::failure::Failure;

/// A row to store.
pub struct Row<'a> {
    pub card: &'a Card,
    /// Values of the three protected columns and the extra one, instead of the card's own. None if the
    /// application does not encrypt.
    pub sealed: Option<&'a Sealed>,
}

/// A whole row as it was read.
pub struct Found<'a> {
    pub protected: Stored<'a>,
    /// Numbers of unprotected columns; `codes` and `strings` are unprotected as well.
    pub numbers: [i64; 3],
    pub codes: [i16; 3],
    pub strings: [&'a [u8]; 3],
}

pub struct Table {
    pub cards: Cards,
    /// Name of the choice.
    pub choice: String,
    protection: Option<Box<dyn Protection>>,
    /// Row that is being written; its memory is reused.
    card: Card,
    sealed: Sealed,
}

impl Table {
    /// Makes a table of these rows, which the application encrypts by `protection`, if there is one.
    pub fn new(cards: Cards, choice: &str, protection: Option<Box<dyn Protection>>) -> Table {
        let card = cards.card(0);
        Table { cards, choice: choice.to_owned(), protection, card, sealed: Sealed::default() }
    }

    /// Returns the column that the application adds when it encrypts; None if it does not encrypt.
    pub fn sealed(&self) -> Option<Extra> {
        self.protection.as_ref().map(|protection| protection.extra())
    }

    /// Returns the row of this id to store, with fresh ciphertexts.
    pub fn row(&mut self, id: i64) -> Result<Row<'_>, Failure> {
        self.card = self.cards.card(id);
        let sealed = match &mut self.protection {
            Some(protection) => {
                protection.seal(&self.card, &mut self.sealed)?;
                Some(&self.sealed)
            }
            None => None,
        };
        Ok(Row { card: &self.card, sealed })
    }

    /// Returns the code in the column `number_code` by which the row with this card number is found. Returns
    /// None if the search uses the number itself.
    pub fn number_code(&self, number: i64) -> Option<[u8; 32]> {
        self.protection.as_ref().and_then(|protection| protection.number_code(number))
    }

    /// Opens the sealed number of a row, with the row's data key (`extra`) if it has one.
    fn open_number(&mut self, id: i64, number: &[u8], extra: &[u8]) -> Result<i64, Failure> {
        match &mut self.protection {
            Some(protection) => protection.open_number(id, number, extra),
            None => Err(wrong(id, "plain where it is sealed")),
        }
    }

    /// Checks the row that was read as this id, and opens its sealed values for that.
    pub fn check(&mut self, id: i64, found: &Found<'_>) -> Result<(), Failure> {
        let right = self.cards.card(id);
        self.check_protected(&right, found.protected)?;
        let strings = right.strings[1..].iter().zip(found.strings);
        let is_right = right.numbers[1..] == found.numbers
            && right.codes[1..] == found.codes
            && strings.into_iter().all(|(right, found)| right == found);
        if is_right { Ok(()) } else { Err(wrong(id, "a column that is not protected")) }
    }

    fn check_protected(&mut self, right: &Card, stored: Stored<'_>) -> Result<(), Failure> {
        let opened: (i64, i16, Text);
        let (number, code, string): (i64, i16, &[u8]) = match (stored, &mut self.protection) {
            (Stored::Plain { number, code, string }, None) => (number, code, string),
            (Stored::Sealed { .. }, Some(protection)) => {
                opened = protection.open(right.id, stored)?;
                (opened.0, opened.1, &opened.2)
            }
            _ => {
                return Err(wrong(
                    right.id,
                    "a plain value is in a sealed column, or a sealed one in a plain column",
                ));
            }
        };
        let columns = [
            (number == right.numbers[0], Column::Number),
            (code == right.codes[0], Column::Code),
            (string == right.strings[0], Column::String),
        ];
        match columns.iter().find(|(is_right, _)| !is_right) {
            None => Ok(()),
            Some((_, column)) => Err(wrong(right.id, column.name())),
        }
    }

    /// Replaces the application's keys by fresh ones, and returns the old ones for `restore_keys`.
    pub fn exchange_keys(&mut self) -> Result<Option<Box<dyn Protection>>, Failure> {
        let fresh = self.protection.as_ref().map(|protection| protection.with_fresh_keys()).transpose()?;
        Ok(std::mem::replace(&mut self.protection, fresh))
    }

    pub fn restore_keys(&mut self, protection: Option<Box<dyn Protection>>) {
        self.protection = protection;
    }
}

/// Search for a row by its card number, if the application encrypts and there is no index. The numbers of all
/// rows are opened, because another row might have the same one.
pub struct Search {
    id: i64,
    number: i64,
    found: Option<i64>,
}

impl Search {
    pub fn new(table: &Table, id: i64) -> Search {
        Search { id, number: table.cards.number(id), found: None }
    }

    /// Opens the number of the next row, with its data key (`extra`) if it has one.
    pub fn look(&mut self, table: &mut Table, id: i64, number: &[u8], extra: &[u8]) -> Result<(), Failure> {
        if table.open_number(id, number, extra)? == self.number {
            self.found = Some(id);
        }
        Ok(())
    }

    /// Ends the search after the last row. Fails unless the row was found.
    pub fn end(self) -> Result<(), Failure> {
        match self.found {
            Some(found) if found == self.id => Ok(()),
            _ => Err(wrong(self.id, "its card number is not found")),
        }
    }
}

/// Makes the failure of a wrong row.
pub fn wrong(id: i64, what: &str) -> Failure {
    Failure::Failed(format!("row {id} was read wrongly: {what}"))
}
