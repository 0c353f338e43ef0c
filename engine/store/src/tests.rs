//! Parts of the embedded database and the application's encryption that no proof covers.

use std::path::{Path, PathBuf};

use super::card::Cards;
use super::columns::{Extra, Stored};
use super::database::Database;
use super::protection::{self, Keys, Sealed};
use super::sqlite::{self, Embedded};
use super::table::Table;
use super::task::Settings;
use crate::contract;
use crate::failure::Failure;

const IN_APPLICATION: [&str; 5] = ["aes-256-gcm", "blind-index", "envelope-aes", "envelope-rsa", "rsa-oaep"];

/// A directory of a test, which is removed with it.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("tollbar-store-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).expect("a new directory");
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn task(choice: &str, setting: &str) -> contract::Task {
    let text = format!(
        r#"{{"mode": "measure", "provider": {{"kind": "sqlite"}}, "family": "storage", "op": "insert",
            "choice": "{choice}", "setting": {setting}}}"#
    );
    serde_json::from_str(&text).expect("a task")
}

fn database(directory: &Path, choice: &str) -> Result<Embedded, Failure> {
    let task = task(choice, "{}");
    let settings = Settings::of(&task)?;
    let table = Table::new(Cards::new(7, ""), choice, protection::of(choice, &Keys::default())?);
    sqlite::open(&tollbar_sqlite::PLAIN, directory, &task, &settings, table)
}

fn stored(sealed: &Sealed) -> Stored<'_> {
    Stored::Sealed {
        number: &sealed.number,
        code: &sealed.code,
        string: &sealed.string,
        extra: &sealed.extra,
    }
}

/// Counts the commits in SQLite's log: frames with the database's size after them.
fn commits(log: &[u8]) -> usize {
    const HEADER: usize = 32;
    const FRAME: usize = 24 + 4096;
    log[HEADER..].chunks_exact(FRAME).filter(|frame| frame[4..8] != [0; 4]).count()
}

#[test]
fn a_commit_falls_after_so_many_rows_and_after_the_last() -> Result<(), Failure> {
    for (rows, rows_per_commit, expected) in [(10, 4, 3), (8, 4, 2), (3, 1, 3), (3, 250, 1)] {
        let directory = Directory::new(&format!("commits-{rows}-{rows_per_commit}"));
        let mut database = database(&directory.0, "plaintext")?;
        database.create()?;
        let log = directory.0.join("cards.sqlite-wal");
        let before = commits(&std::fs::read(&log).expect("a log"));
        database.insert(1..rows + 1, rows_per_commit)?;
        let after = commits(&std::fs::read(&log).expect("a log"));
        assert_eq!(expected, after - before, "{rows} rows by {rows_per_commit}");
        Box::new(database).close()?;
    }
    Ok(())
}

#[test]
fn what_was_put_off_is_in_the_file_afterwards() -> Result<(), Failure> {
    let directory = Directory::new("put-off");
    let mut database = database(&directory.0, "plaintext")?;
    database.create()?;
    database.insert(1..1001, 250)?;
    let bytes = |name: &str| directory.0.join(name).metadata().map_or(0, |about| about.len());
    assert!(bytes("cards.sqlite-wal") > 100_000 && bytes("cards.sqlite") < 100_000);
    database.put_off()?;
    assert_eq!(0, bytes("cards.sqlite-wal"));
    assert_eq!(database.size()?, bytes("cards.sqlite"));
    Box::new(database).close()
}

#[test]
fn a_table_made_anew_is_empty_and_as_small_as_the_first() -> Result<(), Failure> {
    let directory = Directory::new("anew");
    let mut database = database(&directory.0, "envelope-aes")?;
    database.create()?;
    let empty = database.size()?;
    database.insert(1..1001, 250)?;
    assert!(database.size()? > empty);
    database.create()?;
    assert_eq!(empty, database.size()?);
    assert!(database.read(&[1]).is_err(), "there is no row");
    Box::new(database).close()
}

#[test]
fn a_directory_that_is_not_empty_is_left_alone() {
    let directory = Directory::new("full");
    std::fs::write(directory.0.join("cards.sqlite"), "of the user's own").expect("a file");
    assert!(database(&directory.0, "plaintext").is_err());
}

#[test]
fn each_protection_opens_what_it_sealed_and_never_seals_alike() -> Result<(), Failure> {
    let card = Cards::new(7, "").card(12);
    for choice in IN_APPLICATION {
        let mut protection = protection::of(choice, &Keys::default())?.expect("one of the application's");
        let (mut sealed, mut again) = (Sealed::default(), Sealed::default());
        protection.seal(&card, &mut sealed)?;
        protection.seal(&card, &mut again)?;
        let opened = protection.open(card.id, stored(&sealed))?;
        assert_eq!((card.numbers[0], card.codes[0], card.strings[0]), opened, "{choice}");
        for (one, other) in
            [(&sealed.number, &again.number), (&sealed.code, &again.code), (&sealed.string, &again.string)]
        {
            assert_ne!(one, other, "{choice}: the same value, encrypted twice");
        }
    }
    Ok(())
}

#[test]
fn each_protection_binds_a_value_to_its_row_and_its_column() -> Result<(), Failure> {
    for choice in IN_APPLICATION {
        let mut protection = protection::of(choice, &Keys::default())?.expect("one of the application's");
        let mut sealed = Sealed::default();
        protection.seal(&Cards::new(7, "").card(12), &mut sealed)?;
        assert!(protection.open(13, stored(&sealed)).is_err(), "{choice}: another row");
        let mut moved = sealed.clone();
        std::mem::swap(&mut moved.number, &mut moved.code);
        assert!(protection.open(12, stored(&moved)).is_err(), "{choice}: another column");
        let mut fresh = protection.with_fresh_keys()?;
        assert!(fresh.open(12, stored(&sealed)).is_err(), "{choice}: another key");
        assert!(protection.open(12, stored(&sealed)).is_ok(), "{choice}");
    }
    Ok(())
}

#[test]
fn the_data_key_of_another_row_opens_nothing() -> Result<(), Failure> {
    for choice in ["envelope-aes", "envelope-rsa"] {
        let mut protection = protection::of(choice, &Keys::default())?.expect("one of the application's");
        assert_eq!(Extra::DataKey, protection.extra());
        let (mut sealed, mut other) = (Sealed::default(), Sealed::default());
        protection.seal(&Cards::new(7, "").card(12), &mut sealed)?;
        protection.seal(&Cards::new(7, "").card(13), &mut other)?;
        // The whole of another row is refused, also with its data key.
        assert!(protection.open(12, stored(&other)).is_err(), "{choice}");
        sealed.extra = other.extra;
        assert!(protection.open(12, stored(&sealed)).is_err(), "{choice}");
    }
    Ok(())
}

#[test]
fn a_number_has_one_code_and_another_key_has_another() -> Result<(), Failure> {
    let protection = protection::of("blind-index", &Keys::default())?.expect("one of the application's");
    let code = protection.number_code(5).expect("a code");
    assert_eq!(Some(code), protection.number_code(5));
    assert_ne!(Some(code), protection.number_code(6));
    assert_ne!(Some(code), protection.with_fresh_keys()?.number_code(5));
    Ok(())
}

#[test]
fn settings_are_read_where_they_mean_something() {
    for (setting, is_right) in [
        (r#"{"rows-per-commit": 1}"#, true),
        (r#"{"durability": "flushed"}"#, true),
        (r#"{"rows": 5}"#, false),
        (r#"{"rows-per-commit": 0}"#, false),
        (r#"{"durability": "sometimes"}"#, false),
    ] {
        let task = task("plaintext", setting);
        let read = Settings::of(&task).and_then(|_| task.all_settings_read());
        assert_eq!(is_right, read.is_ok(), "{setting}: {read:?}");
    }
}
