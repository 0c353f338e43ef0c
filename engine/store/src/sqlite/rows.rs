//! The table in SQLite, and the statements of its operations.

use std::ops::Range;

use super::super::columns::{COLUMNS, Extra, Find, Stored, names};
use super::super::table::{Found, Search, Table, wrong};
use crate::failure::Failure;
use tollbar_sqlite::{Connection, Statement};

/// Returns statements that make a table whose rows the application encrypts (`sealed`) or not.
pub fn layout(sealed: Option<Extra>) -> String {
    let mut columns = vec!["card_id integer primary key".to_owned()];
    for (name, kind) in &COLUMNS[1..] {
        // The first column of each kind is protected.
        let kind = if sealed.is_some() && name.ends_with('1') { "blob" } else { kind };
        columns.push(format!("{name} {kind} not null"));
    }
    let (extra, index) = match sealed {
        Some(Extra::DataKey) => (Some("data_key blob not null"), None),
        Some(Extra::NumberCode) => (Some("number_code blob not null"), Some("number_code")),
        Some(Extra::Nothing) => (None, None),
        None => (None, Some("card_number1, security_code1")),
    };
    columns.extend(extra.map(str::to_owned));
    let index = index.map(|columns| format!("CREATE INDEX card_number ON card ({columns});"));
    format!("CREATE TABLE card ({}); {}", columns.join(", "), index.unwrap_or_default())
}

pub struct Statements {
    begin: Statement,
    commit: Statement,
    insert: Statement,
    read: Statement,
    find: Find<Statement>,
}

impl Statements {
    pub fn prepare(connection: &Connection, sealed: Option<Extra>) -> Result<Statements, String> {
        let columns = names()[1..].join(", ");
        let data_key = if sealed == Some(Extra::DataKey) { ", data_key" } else { "" };
        let places = COLUMNS.len() + usize::from(matches!(sealed, Some(extra) if extra != Extra::Nothing));
        let values: Vec<String> = (1..=places).map(|place| format!("?{place}")).collect();
        let select = |by: &str| format!("SELECT {columns}{data_key} FROM card WHERE {by} = ?1");
        let number = if sealed == Some(Extra::NumberCode) { "number_code" } else { "card_number1" };
        let prepare = |text: &str| connection.prepare(text);
        Ok(Statements {
            begin: prepare("BEGIN")?,
            commit: prepare("COMMIT")?,
            insert: prepare(&format!("INSERT INTO card VALUES ({})", values.join(", ")))?,
            read: prepare(&select("card_id"))?,
            find: Find::prepare(sealed, "card", &select(number), prepare)?,
        })
    }

    /// Inserts rows, with a commit after each `rows_per_commit` and after the last.
    pub fn insert(
        &mut self,
        ids: Range<i64>,
        rows_per_commit: u64,
        table: &mut Table,
    ) -> Result<(), Failure> {
        self.insert_all(ids, rows_per_commit, table).map_err(|failure| failure.about("inserting rows: "))
    }

    fn insert_all(
        &mut self,
        ids: Range<i64>,
        rows_per_commit: u64,
        table: &mut Table,
    ) -> Result<(), Failure> {
        // A single statement is a transaction by itself.
        let begins = rows_per_commit > 1;
        let mut open = 0;
        for id in ids {
            if begins && open == 0 {
                run(&mut self.begin)?;
            }
            self.insert_one(id, table)?;
            open += 1;
            if begins && open == rows_per_commit {
                run(&mut self.commit)?;
                open = 0;
            }
        }
        if begins && open > 0 { run(&mut self.commit) } else { Ok(()) }
    }

    fn insert_one(&mut self, id: i64, table: &mut Table) -> Result<(), Failure> {
        let statement = &mut self.insert;
        let row = table.row(id)?;
        let card = row.card;
        let mut bind = || {
            statement.bind_int64(1, id)?;
            for place in 1..4 {
                statement.bind_int64(2 + place as i32, card.numbers[place])?;
                statement.bind_int64(6 + place as i32, card.codes[place].into())?;
                // SAFETY: the row is the table's until its next one is made; this statement has run by then,
                // and it is not run again before the next row is bound.
                unsafe { statement.bind_text(10 + place as i32, &card.strings[place])? };
            }
            // SAFETY: the row is the table's until its next one is made, and the statement has run by then.
            unsafe {
                match row.sealed {
                    None => {
                        statement.bind_int64(2, card.numbers[0])?;
                        statement.bind_int64(6, card.codes[0].into())?;
                        statement.bind_text(10, &card.strings[0])?;
                    }
                    Some(sealed) => {
                        statement.bind_blob(2, &sealed.number)?;
                        statement.bind_blob(6, &sealed.code)?;
                        statement.bind_blob(10, &sealed.string)?;
                        if !sealed.extra.is_empty() {
                            statement.bind_blob(14, &sealed.extra)?;
                        }
                    }
                }
            }
            Ok(())
        };
        bind().map_err(Failure::Failed)?;
        run(statement)
    }

    pub fn read(&mut self, ids: &[i64], table: &mut Table) -> Result<(), Failure> {
        for id in ids {
            self.read.bind_int64(1, *id).map_err(Failure::Failed)?;
            read_one(&mut self.read, *id, table)?;
        }
        Ok(())
    }

    pub fn find(&mut self, ids: &[i64], table: &mut Table) -> Result<(), Failure> {
        for id in ids {
            let statement = match &mut self.find {
                Find::One(statement) => statement,
                Find::All(statement) => {
                    let found = search(statement, *id, table);
                    statement.reset();
                    found?;
                    self.read(&[*id], table)?;
                    continue;
                }
            };
            let number = table.cards.number(*id);
            let code = table.number_code(number);
            let bound = match &code {
                None => statement.bind_int64(1, number),
                // SAFETY: the code exists until the statement has run, and another is bound before it runs
                // again.
                Some(code) => unsafe { statement.bind_blob(1, code) },
            };
            bound.map_err(Failure::Failed)?;
            read_one(statement, *id, table)?;
        }
        Ok(())
    }
}

/// Decrypts the card number of every row. Fails unless this row has the wanted one.
fn search(rows: &mut Statement, id: i64, table: &mut Table) -> Result<(), Failure> {
    let mut search = Search::new(table, id);
    while rows.step().map_err(Failure::Failed)? {
        let data_key = if table.sealed() == Some(Extra::DataKey) { rows.bytes(2) } else { &[] };
        search.look(table, rows.int64(0), rows.bytes(1), data_key)?;
    }
    search.end()
}

/// Runs a statement without rows.
fn run(statement: &mut Statement) -> Result<(), Failure> {
    let ran = statement.step();
    statement.reset();
    ran.map(|_| ()).map_err(Failure::Failed)
}

/// Runs a query that is bound to this id, and checks its row.
fn read_one(statement: &mut Statement, id: i64, table: &mut Table) -> Result<(), Failure> {
    let read = match statement.step() {
        Ok(true) => check(statement, id, table),
        Ok(false) => Err(wrong(id, "it is not there")),
        Err(error) => Err(Failure::Failed(format!("reading row {id}: {error}"))),
    };
    statement.reset();
    read
}

#[inline]
fn check(row: &Statement, id: i64, table: &mut Table) -> Result<(), Failure> {
    let protected = match table.sealed() {
        None => Stored::Plain { number: row.int64(0), code: row.int64(4) as i16, string: row.bytes(8) },
        Some(extra) => {
            let extra = if extra == Extra::DataKey { row.bytes(12) } else { &[] };
            Stored::Sealed { number: row.bytes(0), code: row.bytes(4), string: row.bytes(8), extra }
        }
    };
    let found = Found {
        protected,
        numbers: [row.int64(1), row.int64(2), row.int64(3)],
        codes: [row.int64(5) as i16, row.int64(6) as i16, row.int64(7) as i16],
        strings: [row.bytes(9), row.bytes(10), row.bytes(11)],
    };
    table.check(id, &found)
}
