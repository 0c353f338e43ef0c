//! Texts that a server issued to its users, for a cookie or a token: random, and stored in SQL by their hash.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::database::{Database, Sql};
use super::text::Lookup;
use crate::failure::Failure;
use crate::sign_in::verified::{Identity, Verifier};
use crate::{calls, clock};

/// Length of 144 bits: RFC 6749, 10.10, requires at least 128; in base64 without padding they are 24
/// characters.
const SECRET_BYTES: usize = 18;
/// Interval after which the next login removes expired texts.
const PURGED_EVERY_S: u64 = 60;

const SELECT: &str = "SELECT name, expires_s FROM held WHERE hash = ?1 AND expires_s > ?2";
const INSERT: &str = "INSERT INTO held VALUES (?1, ?2, ?3)";
const DELETE: &str = "DELETE FROM held WHERE hash = ?1";
const FIRST_WRITE: &str = "INSERT INTO held VALUES (x'', '', 0); DELETE FROM held WHERE hash = x''";
const PURGE: &str = "DELETE FROM held WHERE expires_s <= ?1";

/// Random texts in a table `held (hash blob primary key, name text, expires_s integer) without rowid`: the
/// SHA-256 of each text, its user, and the second since 1970 from which it is invalid.
pub struct Held {
    database: Database,
    purged_s: u64,
}

impl Held {
    pub fn open(sql: &Sql) -> Result<Held, Failure> {
        let database = Database::open(sql, FIRST_WRITE, SELECT);
        let database = database.map_err(|why| Failure::Failed(format!("what is held in {why}")))?;
        Ok(Held { database, purged_s: 0 })
    }

    fn find(&self, text: &[u8], now_s: u64) -> Result<Option<Identity>, String> {
        self.database.row(SELECT, (hash(text), now_s as i64), |row| {
            Ok(Identity { name: row.get(0)?, expires_s: Some(row.get::<_, i64>(1)? as u64) })
        })
    }
}

impl Verifier for Held {
    fn identity(&mut self, text: &[u8]) -> Result<Option<Identity>, String> {
        self.find(text, clock::unix_s())
    }

    fn ends(&self) -> bool {
        true
    }

    fn end(&mut self, text: &[u8]) -> Result<(), String> {
        Lookup::end(self, text)
    }
}

impl Lookup for Held {
    fn user(&mut self, text: &[u8], now_s: u64) -> Result<Option<String>, String> {
        Ok(self.find(text, now_s)?.map(|identity| identity.name))
    }

    fn issue(&mut self, name: &str, now_s: u64, expires_s: u64) -> Result<String, String> {
        if now_s >= self.purged_s + PURGED_EVERY_S {
            self.database.change(PURGE, (now_s as i64,))?;
            self.purged_s = now_s;
        }
        let mut secret = [0; SECRET_BYTES];
        rand::fill(&mut secret).map_err(|_| "the system gives no random bytes".to_owned())?;
        let text = URL_SAFE_NO_PAD.encode(secret);
        self.database.change(INSERT, (hash(text.as_bytes()), name, expires_s as i64))?;
        Ok(text)
    }

    fn ends(&self) -> bool {
        true
    }

    fn end(&mut self, text: &[u8]) -> Result<(), String> {
        self.database.change(DELETE, (hash(text),))
    }
}

/// Returns the stored hash of a text: a stolen table contains nothing that the server would accept.
pub fn hash(text: &[u8]) -> [u8; 32] {
    calls::tally("SHA-256");
    let mut kept = [0; 32];
    kept.copy_from_slice(digest(&SHA256, text).as_ref());
    kept
}

#[cfg(test)]
pub mod tests {
    use std::path::Path;

    use rusqlite::Connection;

    use super::super::database::tests::Folder;
    use super::*;

    /// Makes a database with these texts, users, and expiry times.
    pub fn fill(path: &Path, held: &[(&str, &str, u64)]) {
        let mut connection = Connection::open(path).expect("a database");
        // All rows are in one transaction, because each transaction waits for the disk at its end.
        let transaction = connection.transaction().expect("a transaction");
        let table = "CREATE TABLE held (hash BLOB PRIMARY KEY, name TEXT NOT NULL, expires_s INTEGER NOT NULL) WITHOUT ROWID";
        transaction.execute_batch(table).expect("a table");
        for (text, name, expires_s) in held {
            transaction.execute(INSERT, (hash(text.as_bytes()), name, *expires_s as i64)).expect("a row");
        }
        transaction.commit().expect("a table of rows");
    }

    fn rows(held: &Held) -> i64 {
        held.database.0.query_row("SELECT count(*) FROM held", (), |row| row.get(0)).expect("a number")
    }

    #[test]
    fn a_text_is_taken_until_it_expires_or_is_ended() {
        let folder = Folder::new("lookup");
        fill(&folder.0.join("from.sqlite"), &[("old", "u1", 50), ("good", "u2", 5000)]);
        let mut lookup = Held::open(&folder.spec()).expect("a lookup");
        let issued = lookup.issue("u3", 100, 200).expect("a text");
        assert_eq!(24, issued.len());
        let user =
            |lookup: &mut Held, text: &str, now_s| lookup.user(text.as_bytes(), now_s).expect("an answer");
        assert_eq!(Some("u3".to_owned()), user(&mut lookup, &issued, 199));
        assert_eq!(None, user(&mut lookup, &issued, 200));
        assert_eq!(Some("u2".to_owned()), user(&mut lookup, "good", 199));
        assert_eq!(None, user(&mut lookup, "old", 100));
        assert_eq!(None, user(&mut lookup, "unknown", 100));
        Lookup::end(&mut lookup, issued.as_bytes()).expect("ended");
        assert_eq!(None, user(&mut lookup, &issued, 150));
        // The first login has removed the expired rows, and the next one within a minute does not search.
        assert_eq!(1, rows(&lookup));
        lookup.issue("u3", 101, 102).expect("a text");
        lookup.issue("u3", 159, 300).expect("a text");
        assert_eq!(3, rows(&lookup));
        lookup.issue("u3", 160, 300).expect("a text");
        assert_eq!(3, rows(&lookup));
    }

    /// A stolen table contains nothing that the server would accept.
    #[test]
    fn a_stolen_table_holds_no_login() {
        let folder = Folder::new("stolen");
        fill(&folder.0.join("from.sqlite"), &[("good", "u2", 5000)]);
        let mut lookup = Held::open(&folder.spec()).expect("a lookup");
        let issued = lookup.issue("u3", 100, 200).expect("a text");
        let mut statement = lookup.database.0.prepare("SELECT hash FROM held").expect("a statement");
        let stolen: Vec<Vec<u8>> = statement
            .query_map((), |row| row.get(0))
            .expect("rows")
            .map(|hash| hash.expect("a hash"))
            .collect();
        drop(statement);
        assert_eq!(2, stolen.len());
        for hash in &stolen {
            for shown in
                [hash.clone(), hex::encode(hash).into_bytes(), URL_SAFE_NO_PAD.encode(hash).into_bytes()]
            {
                assert_ne!(issued.as_bytes(), shown);
                assert_eq!(Ok(None), lookup.user(&shown, 150));
            }
        }
    }

    /// An update without a change writes nothing, and SQLite checks an empty log differently.
    #[test]
    fn the_log_is_not_empty_when_the_first_request_comes() {
        let folder = Folder::new("log");
        fill(&folder.0.join("from.sqlite"), &[("good", "u2", 5000)]);
        let lookup = Held::open(&folder.spec()).expect("a lookup");
        assert!(std::fs::metadata(folder.0.join("at.sqlite-wal")).expect("a log").len() > 0);
        assert_eq!(1, rows(&lookup));
    }

    #[test]
    fn what_cannot_be_opened_is_refused_in_words() {
        let folder = Folder::new("refused");
        let spec = folder.spec();
        let words = |spec: &Sql| match Held::open(spec) {
            Err(Failure::Failed(words)) => words,
            _ => panic!("opened"),
        };
        assert!(words(&spec).contains("No such file"));
        std::fs::write(
            folder.0.join("from.sqlite"),
            "no database, but long enough to be looked at as one would be",
        )
        .expect("a file");
        assert!(words(&spec).contains("not a database"));
        assert!(words(&spec).contains("is there already"));
    }
}
