//! Proof before a number: rows are written and read again, and wrong inputs are refused.

use super::columns::Column;
use super::database::{Database, Tried};
use super::task::Settings;
use crate::contract::Proof;
use crate::failure::Failure;

const ROWS: i64 = 20;

/// Row that is tampered with, after everything else was read right; `OTHER` is a second one.
const TAMPERED: i64 = 3;
const OTHER: i64 = 4;

/// Proves a database with an empty table, and closes it: the caller searches its files.
pub fn verify(mut database: Box<dyn Database>, settings: &Settings) -> Result<Proof, Failure> {
    let mut proof = Proof::default();
    database.create()?;
    // Rows are added in both ways.
    database.insert(1..ROWS / 2 + 1, settings.rows_per_commit.min(3))?;
    database.fill(ROWS / 2 + 1..ROWS + 1)?;
    let ids: Vec<i64> = (1..=ROWS).rev().collect();
    database.read(&ids).map_err(|failure| failure.about("not accepted: "))?;
    proof.accept(&format!("{ROWS} rows, written and read back"), true)?;
    database.find(&ids).map_err(|failure| failure.about("not accepted: "))?;
    proof.accept("each row, found by its card number", true)?;
    wrong_key(database.as_mut(), &mut proof)?;
    tamper(database.as_mut(), &mut proof)?;
    database
        .read(&ids)
        .map_err(|failure| failure.about("not accepted any more, after what was refused: "))?;
    database.prove(&mut proof)?;
    database.close()?;
    Ok(proof)
}

/// Proves a database that needs no table, and closes it.
pub fn alone(mut database: Box<dyn Database>) -> Result<Proof, Failure> {
    let mut proof = Proof::default();
    database.prove(&mut proof)?;
    database.close()?;
    Ok(proof)
}

fn wrong_key(database: &mut dyn Database, proof: &mut Proof) -> Result<(), Failure> {
    match database.promise().wrong_key {
        Ok(()) => {
            let read = database.read_with_wrong_key(TAMPERED)?;
            proof.refuse("a row, with a wrong key", read.is_err())
        }
        Err(why) => {
            proof.leave("a wrong key", why);
            Ok(())
        }
    }
}

/// Function that returns wrong bytes for a stored value.
type Wrong = fn(&mut dyn Database, Column) -> Result<Vec<u8>, Failure>;

fn tamper(database: &mut dyn Database, proof: &mut Proof) -> Result<(), Failure> {
    let promise = database.promise();
    let wrongs: [(&str, Tried, Wrong); 3] = [
        ("a changed value", promise.changed, |database, column| {
            let mut bytes = database.stored(TAMPERED, column)?;
            let last = bytes.last_mut().ok_or_else(|| Failure::Failed("nothing is stored".to_owned()))?;
            *last ^= 1;
            Ok(bytes)
        }),
        ("a value moved from another row", promise.moved_row, |database, column| {
            database.stored(OTHER, column)
        }),
        ("a value moved from another column", promise.moved_column, |database, column| {
            database.stored(TAMPERED, if column == Column::Number { Column::String } else { Column::Number })
        }),
    ];
    for (what, refused, wrong) in wrongs {
        if let Err(why) = refused {
            proof.leave(what, why);
            continue;
        }
        for column in Column::ALL {
            let right = database.stored(TAMPERED, column)?;
            let bytes = wrong(database, column)?;
            database.put_stored(TAMPERED, column, &bytes)?;
            let read = database.read(&[TAMPERED]);
            database.put_stored(TAMPERED, column, &right)?;
            if read.is_ok() {
                return Err(Failure::Failed(format!("not refused: {what} ({})", column.name())));
            }
        }
        proof.refuse(what, true)?;
    }
    Ok(())
}
