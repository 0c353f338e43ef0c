//! Conversion of rows to and from PostgreSQL.

use std::io::Write;
use std::ops::Range;
use std::str::from_utf8;

use postgres_types::{FromSql, ToSql};

use super::super::card::Text;
use super::super::columns::{Column, Stored};
use super::super::table::{Found, Row, Search, Table, wrong};
use super::answer::{Answer, broken};
use crate::failure::Failure;

pub type Parameters<'a> = Vec<&'a (dyn ToSql + Sync)>;

/// The thirteen columns of some rows that the application does not encrypt.
#[derive(Default)]
pub struct Arrays {
    ids: Vec<i32>,
    numbers: [Vec<i64>; 4],
    codes: [Vec<i16>; 4],
    strings: [Vec<String>; 4],
}

impl Arrays {
    pub fn of(table: &Table, ids: Range<i64>) -> Result<Arrays, Failure> {
        let mut arrays = Arrays::default();
        for id in ids {
            let card = table.cards.card(id);
            arrays.ids.push(id as i32);
            for place in 0..4 {
                arrays.numbers[place].push(card.numbers[place]);
                arrays.codes[place].push(card.codes[place]);
                arrays.strings[place].push(text(&card.strings[place])?.to_owned());
            }
        }
        Ok(arrays)
    }

    pub fn parameters(&self) -> Parameters<'_> {
        let mut parameters: Parameters<'_> = vec![&self.ids];
        parameters.extend(self.numbers.iter().map(|numbers| numbers as &(dyn ToSql + Sync)));
        parameters.extend(self.codes.iter().map(|codes| codes as &(dyn ToSql + Sync)));
        parameters.extend(self.strings.iter().map(|strings| strings as &(dyn ToSql + Sync)));
        parameters
    }
}

/// Returns a string of a row. Fails for a mark that was truncated within a character.
pub fn text(bytes: &Text) -> Result<&str, Failure> {
    from_utf8(bytes).map_err(|error| Failure::Failed(format!("a string of a row is not text: {error}")))
}

/// Writes a row that the application encrypts as a line of `copy`.
pub fn copied(row: &Row<'_>, out: &mut impl Write) -> std::io::Result<()> {
    let (card, sealed) = (row.card, row.sealed);
    let bytes = |bytes: &[u8]| format!("\\\\x{}", hex::encode(bytes));
    write!(out, "{}", card.id)?;
    for (place, number) in card.numbers.iter().enumerate() {
        match sealed {
            Some(sealed) if place == 0 => write!(out, "\t{}", bytes(&sealed.number))?,
            _ => write!(out, "\t{number}")?,
        }
    }
    for (place, code) in card.codes.iter().enumerate() {
        match sealed {
            Some(sealed) if place == 0 => write!(out, "\t{}", bytes(&sealed.code))?,
            _ => write!(out, "\t{code}")?,
        }
    }
    for (place, string) in card.strings.iter().enumerate() {
        match sealed {
            Some(sealed) if place == 0 => write!(out, "\t{}", bytes(&sealed.string))?,
            _ => {
                out.write_all(b"\t")?;
                out.write_all(string)?;
            }
        }
    }
    if let Some(sealed) = sealed.filter(|sealed| !sealed.extra.is_empty()) {
        write!(out, "\t{}", bytes(&sealed.extra))?;
    }
    out.write_all(b"\n")
}

/// Checks that the row is that of this id.
pub fn check(table: &mut Table, id: i64, row: Option<&Answer>) -> Result<(), Failure> {
    let row = row.ok_or_else(|| wrong(id, "it is not there"))?;
    let bytes = |at: usize| row.get::<&[u8]>(at);
    let string = |at: usize| row.get::<&str>(at).map(str::as_bytes);
    let read = || -> Result<Found<'_>, String> {
        let protected = if table.sealed().is_some() {
            let extra = if row.len() > 12 { bytes(12)? } else { &[] };
            Stored::Sealed { number: bytes(0)?, code: bytes(1)?, string: bytes(2)?, extra }
        } else {
            Stored::Plain { number: row.get(0)?, code: row.get(1)?, string: string(2)? }
        };
        Ok(Found {
            protected,
            numbers: [row.get(3)?, row.get(4)?, row.get(5)?],
            codes: [row.get(6)?, row.get(7)?, row.get(8)?],
            strings: [string(9)?, string(10)?, string(11)?],
        })
    };
    let found = read().map_err(|error| wrong(id, &error))?;
    table.check(id, &found)
}

/// Returns the value of a row's column. Fails if it has another type.
pub fn column<'a, T: FromSql<'a>>(row: &'a Answer, at: usize) -> Result<T, Failure> {
    row.get(at).map_err(broken)
}

/// Continues a search without an index.
pub fn look(search: &mut Search, table: &mut Table, row: &Answer) -> Result<(), Failure> {
    let id = i64::from(column::<i32>(row, 0)?);
    let data_key: &[u8] = if row.len() > 2 { column(row, 2)? } else { &[] };
    search.look(table, id, column(row, 1)?, data_key)
}

/// Checks the result of a loop inside the server: the sums of the rows' numbers and codes, and all strings.
pub fn check_loop(table: &Table, ids: &[i64], row: &Answer) -> Result<(), Failure> {
    let strings: Vec<&str> = column(row, 2)?;
    if strings.len() != ids.len() {
        return Err(Failure::Failed(format!("{} rows were read instead of {}", strings.len(), ids.len())));
    }
    let (mut numbers, mut codes) = (0_i64, 0_i64);
    for (id, string) in ids.iter().zip(strings) {
        let card = table.cards.card(*id);
        numbers += card.numbers[0];
        codes += i64::from(card.codes[0]);
        if string.as_bytes() != card.strings[0] {
            return Err(wrong(*id, Column::String.name()));
        }
    }
    if (numbers, codes) != (column(row, 0)?, column(row, 1)?) {
        let words = "rows were read wrongly: the sum of their numbers, or of their codes";
        return Err(Failure::Failed(format!("{} {words}", ids.len())));
    }
    Ok(())
}
