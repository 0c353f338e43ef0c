//! Conversion of rows to and from MariaDB.

use mysql::{Row as Answer, Value};

use super::super::columns::{Column, Stored};
use super::super::table::{Found, Row, Search, Table, wrong};
use crate::failure::Failure;

/// Returns the parameters of an insert; each value that the server encrypts is followed by its key.
pub fn parameters(row: &Row<'_>, key: Option<&Value>) -> Vec<Value> {
    let (card, sealed) = (row.card, row.sealed);
    let mut values = Vec::with_capacity(16);
    // A ciphertext is copied instead of its plaintext.
    let protect = |values: &mut Vec<Value>, plain: &dyn Fn() -> Value, bytes: Option<&Vec<u8>>| {
        values.push(bytes.map_or_else(plain, |bytes| Value::Bytes(bytes.clone())));
        values.extend(key.cloned());
    };
    values.push(Value::Int(card.id));
    protect(&mut values, &|| Value::Int(card.numbers[0]), sealed.map(|sealed| &sealed.number));
    values.extend(card.numbers[1..].iter().map(|number| Value::Int(*number)));
    protect(&mut values, &|| Value::Int(card.codes[0].into()), sealed.map(|sealed| &sealed.code));
    values.extend(card.codes[1..].iter().map(|code| Value::Int((*code).into())));
    protect(&mut values, &|| Value::Bytes(card.strings[0].to_vec()), sealed.map(|sealed| &sealed.string));
    values.extend(card.strings[1..].iter().map(|string| Value::Bytes(string.to_vec())));
    let extra = sealed.map(|sealed| &sealed.extra).filter(|extra| !extra.is_empty());
    values.extend(extra.map(|extra| Value::Bytes(extra.clone())));
    values
}

/// Writes a row as a line of the file that `load data` reads.
pub fn write_line(row: &Row<'_>, out: &mut Vec<u8>) {
    let values = parameters(row, None);
    let protected = |place: usize| {
        row.sealed.is_some() && Column::ALL.iter().any(|one| usize::from(one.place()) == place)
    };
    for (place, value) in (1..).zip(values) {
        if place > 1 {
            out.push(b'\t');
        }
        match value {
            Value::Bytes(bytes) if place > 13 || protected(place) => out.extend(hex::encode(bytes).bytes()),
            Value::Bytes(bytes) => out.extend(bytes),
            Value::Int(number) => out.extend(number.to_string().bytes()),
            _ => {}
        }
    }
    out.push(b'\n');
}

/// Checks that the row is that of this id.
pub fn check(table: &mut Table, id: i64, row: Option<Answer>) -> Result<(), Failure> {
    let row = row.ok_or_else(|| wrong(id, "it is not there"))?;
    let bytes = |at: usize| bytes(&row, at, id);
    let number = |at: usize| integer(&row, at).ok_or_else(|| wrong(id, "no number where one is stored"));
    let code = |at: usize| {
        number(at).and_then(|code| i16::try_from(code).map_err(|_| wrong(id, "too large a code")))
    };
    let protected = if table.sealed().is_some() {
        let extra = if row.len() > 12 { bytes(12)? } else { &[] };
        Stored::Sealed { number: bytes(0)?, code: bytes(1)?, string: bytes(2)?, extra }
    } else {
        Stored::Plain { number: number(0)?, code: code(1)?, string: bytes(2)? }
    };
    let found = Found {
        protected,
        numbers: [number(3)?, number(4)?, number(5)?],
        codes: [code(6)?, code(7)?, code(8)?],
        strings: [bytes(9)?, bytes(10)?, bytes(11)?],
    };
    table.check(id, &found)
}

/// Continues a search without an index.
pub fn look(search: &mut Search, table: &mut Table, row: &Answer) -> Result<(), Failure> {
    let id = integer(row, 0).ok_or_else(|| Failure::Failed("a row has no id".to_owned()))?;
    let data_key = if row.len() > 2 { bytes(row, 2, id)? } else { &[] };
    search.look(table, id, bytes(row, 1, id)?, data_key)
}

/// Checks the result of a loop inside the server: the sums of the rows' numbers, of their codes, and of their
/// strings' checksums.
pub fn check_loop(table: &Table, ids: &[i64], row: Option<Answer>) -> Result<(), Failure> {
    let mut right = [0_i64; 3];
    for id in ids {
        let card = table.cards.card(*id);
        right[0] += card.numbers[0];
        right[1] += i64::from(card.codes[0]);
        right[2] += i64::from(crc32fast::hash(&card.strings[0]));
    }
    let sums = row.map(|row| [integer(&row, 0), integer(&row, 1), integer(&row, 2)]);
    if sums == Some(right.map(Some)) {
        return Ok(());
    }
    let words = "rows were read wrongly: the sums of their numbers, codes and strings are not right";
    Err(Failure::Failed(format!("{} {words}", ids.len())))
}

fn bytes(row: &Answer, at: usize, id: i64) -> Result<&[u8], Failure> {
    match row.as_ref(at) {
        Some(Value::Bytes(bytes)) => Ok(bytes),
        other => Err(wrong(id, &format!("{other:?} where bytes are stored"))),
    }
}

fn integer(row: &Answer, at: usize) -> Option<i64> {
    match row.as_ref(at)? {
        Value::Int(number) => Some(*number),
        Value::UInt(number) => i64::try_from(*number).ok(),
        _ => None,
    }
}
