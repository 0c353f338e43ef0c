//! Columns of the table, the protected ones and their stored values, and the ways to find a row and to
//! iterate over many.

use std::ops::Range;

/// All columns in order, as (name, type).
pub const COLUMNS: [(&str, &str); 13] = [
    ("card_id", "integer"),
    ("card_number1", BIGINT),
    ("card_number2", BIGINT),
    ("card_number3", BIGINT),
    ("card_number4", BIGINT),
    ("security_code1", SMALLINT),
    ("security_code2", SMALLINT),
    ("security_code3", SMALLINT),
    ("security_code4", SMALLINT),
    ("secure_string1", TEXT),
    ("secure_string2", TEXT),
    ("secure_string3", TEXT),
    ("secure_string4", TEXT),
];
pub const BIGINT: &str = "bigint";
pub const SMALLINT: &str = "smallint";
pub const TEXT: &str = "varchar(36)";

/// Returns the names of the columns.
pub fn names() -> Vec<&'static str> {
    COLUMNS.iter().map(|(name, _)| *name).collect()
}

/// The three columns that a choice protects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    Number,
    Code,
    String,
}

impl Column {
    pub const ALL: [Column; 3] = [Column::Number, Column::Code, Column::String];

    pub fn name(self) -> &'static str {
        match self {
            Column::Number => "card_number1",
            Column::Code => "security_code1",
            Column::String => "secure_string1",
        }
    }

    /// Returns the place in the table, from 1: a value is bound to it and to its row.
    pub fn place(self) -> u8 {
        match self {
            Column::Number => 2,
            Column::Code => 6,
            Column::String => 10,
        }
    }
}

/// Column that the application adds to a row's thirteen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extra {
    Nothing,
    /// A column `data_key`.
    DataKey,
    /// An indexed column `number_code`, by which a row is found.
    NumberCode,
}

/// The three protected values as they were read.
#[derive(Debug, Clone, Copy)]
pub enum Stored<'a> {
    /// Plaintext, or values that a server has decrypted itself.
    Plain { number: i64, code: i16, string: &'a [u8] },
    /// Ciphertexts of the application.
    Sealed { number: &'a [u8], code: &'a [u8], string: &'a [u8], extra: &'a [u8] },
}

/// Rows of one call of a server's loop: a sum of this number of card numbers fits into 64 bits, and a further
/// call has no visible cost.
pub const ROWS_OF_A_CALL: usize = 1000;

/// Splits ids into ranges of `count`: the rows of a commit, or of a call.
pub fn by(count: usize, ids: Range<i64>) -> impl Iterator<Item = Range<i64>> {
    let end = ids.end;
    ids.step_by(count).map(move |first| first..first.saturating_add(count as i64).min(end))
}

/// Returns the number of rows in a call that has whole commits.
pub fn rows_of_a_call(rows_per_commit: u64) -> usize {
    rows_per_commit as usize * (ROWS_OF_A_CALL / rows_per_commit as usize).max(1)
}

/// Prepared statement that finds a row by its card number.
#[derive(Clone)]
pub enum Find<S> {
    /// Search by the database, which has an index, or the key to decrypt all numbers.
    One(S),
    /// Search by the application, which alone has the key: it reads all numbers with their ids, and their
    /// data keys if they have any.
    All(S),
}

impl<S> Find<S> {
    /// Prepares the search. `one` is the query for the database; `sealed` is Some if the application encrypts
    /// the rows of `table`.
    pub fn prepare<E>(
        sealed: Option<Extra>,
        table: &str,
        one: &str,
        mut prepare: impl FnMut(&str) -> Result<S, E>,
    ) -> Result<Find<S>, E> {
        let all = |data_key: &str| format!("select card_id, card_number1{data_key} from {table}");
        match sealed {
            None | Some(Extra::NumberCode) => prepare(one).map(Find::One),
            Some(Extra::Nothing) => prepare(&all("")).map(Find::All),
            Some(Extra::DataKey) => prepare(&all(", data_key")).map(Find::All),
        }
    }
}

/// Returns the protected column of this place, if it is one. Places are from 1.
pub fn protected(place: usize) -> Option<Column> {
    Column::ALL.into_iter().find(|column| usize::from(column.place()) == place)
}

/// Returns each column as (place, name), with places from 1.
pub fn placed() -> impl Iterator<Item = (usize, &'static str)> {
    (1..).zip(names())
}

/// Returns the select list of a row: the three protected columns as `open` writes them, the nine others, and
/// a data key.
pub fn selected(open: impl Fn(Column) -> String, data_key: bool) -> String {
    let others = placed().filter(|(place, _)| *place > 1 && protected(*place).is_none());
    let words = Column::ALL.into_iter().map(open).chain(others.map(|(_, name)| name.to_owned()));
    words.chain(data_key.then(|| "data_key".to_owned())).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_protected_columns_are_where_they_say() {
        for column in Column::ALL {
            assert_eq!(column.name(), COLUMNS[usize::from(column.place()) - 1].0);
        }
        assert_eq!(3, placed().filter(|(place, _)| protected(*place).is_some()).count());
    }
}
