//! The table's columns, as servers are told of them, how a row is found, and how much a loop inside a server does at once.

use super::table::{Column, Extra};

/// All columns, in their order.
pub const COLUMNS: [&str; 13] = [
    "card_id",
    "card_number1",
    "card_number2",
    "card_number3",
    "card_number4",
    "security_code1",
    "security_code2",
    "security_code3",
    "security_code4",
    "secure_string1",
    "secure_string2",
    "secure_string3",
    "secure_string4",
];

/// How many rows a server's loop has in one call: a sum of so many card numbers is still a number of 64 bits, and one
/// call more does not show.
pub const ROWS_OF_A_CALL: usize = 1000;

/// How a row is found by its card number: a prepared statement.
#[derive(Clone)]
pub enum Find<S> {
    /// By the database, which has an index, or the key to decrypt all numbers with.
    One(S),
    /// By the application, which alone has the key: all numbers with their ids, and their data keys where they have any.
    All(S),
}

impl<S> Find<S> {
    /// `one` is what the database would be asked; `sealed`, whether the application encrypts the rows of `table`.
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

/// The column of this place that a choice protects, if it is one of those. Places are from 1.
pub fn protected(place: usize) -> Option<Column> {
    Column::ALL.into_iter().find(|column| usize::from(column.place()) == place)
}

/// Each column with its place, from 1.
pub fn placed() -> impl Iterator<Item = (usize, &'static str)> {
    (1..).zip(COLUMNS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_protected_columns_are_where_they_say() {
        for column in Column::ALL {
            assert_eq!(column.name(), COLUMNS[usize::from(column.place()) - 1]);
        }
        assert_eq!(3, placed().filter(|(place, _)| protected(*place).is_some()).count());
    }
}
