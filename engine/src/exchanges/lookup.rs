//! What stands for a user in a cookie or a token: random text, of which the server keeps the hash in SQL and looks it up
//! for each request. One table, one statement and one set of pragmas, whichever scheme gives the text out.

use std::path::PathBuf;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rusqlite::{Connection, OpenFlags, OptionalExtension};
use serde::Deserialize;

use crate::calls;
use crate::contract::Failure;

/// 144 bits: RFC 6749, 10.10, asks for 128 at least; in base64 without padding they are 24 characters.
const SECRET_BYTES: usize = 18;
/// What has expired is removed by the first login after so long.
const PURGED_EVERY_S: u64 = 60;

const SELECT: &str = "SELECT name FROM held WHERE hash = ?1 AND expires_s > ?2";
const INSERT: &str = "INSERT INTO held VALUES (?1, ?2, ?3)";
const DELETE: &str = "DELETE FROM held WHERE hash = ?1";
const FIRST_WRITE: &str = "INSERT INTO held VALUES (x'', '', 0); DELETE FROM held WHERE hash = x''";
const PURGE: &str = "DELETE FROM held WHERE expires_s <= ?1";

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// An SQLite database. Here, with a table `held (hash blob primary key, name text, expires_s integer) without rowid`:
    /// the SHA-256 of each text, its user, and the second since 1970 from which it is not taken.
    from: PathBuf,
    /// Where the server has its own copy, which it writes.
    at: PathBuf,
}

/// Opens a server's own copy of a database as servers set SQLite up: what is written is in the log when it is answered, and
/// on the disk soon after. `first_write` leaves all as it was, and `reads` is what will be asked.
///
/// One way for everything that is looked up, for what SQLite does for a statement depends on it: it locks and looks at the
/// file otherwise in another mode, or where the log is empty, as it is in no server that is in use.
pub fn open(spec: &Spec, first_write: &str, reads: &str) -> Result<Connection, String> {
    let Spec { from, at } = spec;
    let refuse = |why: String| format!("{}: {why}", from.display());
    // An older journal beside it would be read as this one's.
    if at.exists() {
        return Err(refuse(format!("{} is there already", at.display())));
    }
    std::fs::copy(from, at).map_err(|error| refuse(error.to_string()))?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = || -> rusqlite::Result<Connection> {
        let connection = Connection::open_with_flags(at, flags)?;
        connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL")?;
        connection.prepare_cached(reads)?;
        connection.execute_batch(first_write)?;
        Ok(connection)
    };
    opened().map_err(|error| refuse(error.to_string()))
}

pub struct Lookup {
    connection: Connection,
    purged_s: u64,
}

impl Lookup {
    pub fn open(spec: &Spec) -> Result<Lookup, Failure> {
        let connection = open(spec, FIRST_WRITE, SELECT);
        connection
            .map(|connection| Lookup { connection, purged_s: 0 })
            .map_err(|why| Failure::Failed(format!("what is held in {why}")))
    }

    /// Whose it is, if it is held and has not expired.
    pub fn user(&self, text: &[u8], now_s: u64) -> Result<Option<String>, String> {
        calls::tally("SQL statement");
        self.connection
            .prepare_cached(SELECT)
            .and_then(|mut statement| {
                statement.query_row((hash(text), now_s as i64), |row| row.get(0)).optional()
            })
            .map_err(|error| error.to_string())
    }

    /// A new text for this user.
    pub fn issue(&mut self, name: &str, now_s: u64, expires_s: u64) -> Result<String, String> {
        if now_s >= self.purged_s + PURGED_EVERY_S {
            self.change(PURGE, (now_s as i64,))?;
            self.purged_s = now_s;
        }
        let mut secret = [0; SECRET_BYTES];
        rand::fill(&mut secret).map_err(|_| "no random bytes are to be had".to_owned())?;
        let text = URL_SAFE_NO_PAD.encode(secret);
        self.change(INSERT, (hash(text.as_bytes()), name, expires_s as i64))?;
        Ok(text)
    }

    /// It is not taken from now on.
    pub fn end(&mut self, text: &[u8]) -> Result<(), String> {
        self.change(DELETE, (hash(text),))
    }

    fn change(&self, statement: &str, values: impl rusqlite::Params) -> Result<(), String> {
        calls::tally("SQL statement");
        let changed =
            self.connection.prepare_cached(statement).and_then(|mut statement| statement.execute(values));
        changed.map(|_| ()).map_err(|error| error.to_string())
    }
}

/// What is kept of a text: a stolen table holds nothing that the server would take.
fn hash(text: &[u8]) -> [u8; 32] {
    calls::tally("SHA-256");
    let mut kept = [0; 32];
    kept.copy_from_slice(digest(&SHA256, text).as_ref());
    kept
}

#[cfg(test)]
pub mod tests {
    use std::path::Path;

    use super::*;

    /// A database with these texts, users, and when they expire.
    pub fn fill(path: &Path, held: &[(&str, &str, u64)]) {
        let connection = Connection::open(path).expect("a database");
        let table = "CREATE TABLE held (hash BLOB PRIMARY KEY, name TEXT NOT NULL, expires_s INTEGER NOT NULL) WITHOUT ROWID";
        connection.execute_batch(table).expect("a table");
        for (text, name, expires_s) in held {
            connection.execute(INSERT, (hash(text.as_bytes()), name, *expires_s as i64)).expect("a row");
        }
    }

    fn rows(lookup: &Lookup) -> i64 {
        lookup.connection.query_row("SELECT count(*) FROM held", (), |row| row.get(0)).expect("a number")
    }

    /// Where a test keeps its files, until it ends.
    pub struct Folder(pub PathBuf);

    impl Folder {
        pub fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("tollbar-{}-{name}", std::process::id()));
            std::fs::create_dir(&path).expect("a folder");
            Folder(path)
        }

        fn spec(&self) -> Spec {
            Spec { from: self.0.join("from.sqlite"), at: self.0.join("at.sqlite") }
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_text_is_taken_until_it_expires_or_is_ended() {
        let folder = Folder::new("lookup");
        fill(&folder.0.join("from.sqlite"), &[("old", "u1", 50), ("good", "u2", 5000)]);
        let mut lookup = Lookup::open(&folder.spec()).expect("a lookup");
        let issued = lookup.issue("u3", 100, 200).expect("a text");
        assert_eq!(24, issued.len());
        let user =
            |lookup: &Lookup, text: &str, now_s| lookup.user(text.as_bytes(), now_s).expect("an answer");
        assert_eq!(Some("u3".to_owned()), user(&lookup, &issued, 199));
        assert_eq!(None, user(&lookup, &issued, 200));
        assert_eq!(Some("u2".to_owned()), user(&lookup, "good", 199));
        assert_eq!(None, user(&lookup, "old", 100));
        assert_eq!(None, user(&lookup, "unknown", 100));
        lookup.end(issued.as_bytes()).expect("ended");
        assert_eq!(None, user(&lookup, &issued, 150));
        // The first login has removed what had expired, and the next one within a minute looks for nothing.
        assert_eq!(1, rows(&lookup));
        lookup.issue("u3", 101, 102).expect("a text");
        lookup.issue("u3", 159, 300).expect("a text");
        assert_eq!(3, rows(&lookup));
        lookup.issue("u3", 160, 300).expect("a text");
        assert_eq!(3, rows(&lookup));
    }

    /// A thief of the table finds nothing in it that the server would take.
    #[test]
    fn a_stolen_table_holds_no_login() {
        let folder = Folder::new("stolen");
        fill(&folder.0.join("from.sqlite"), &[("good", "u2", 5000)]);
        let mut lookup = Lookup::open(&folder.spec()).expect("a lookup");
        let issued = lookup.issue("u3", 100, 200).expect("a text");
        let mut statement = lookup.connection.prepare("SELECT hash FROM held").expect("a statement");
        let stolen: Vec<Vec<u8>> = statement
            .query_map((), |row| row.get(0))
            .expect("rows")
            .map(|hash| hash.expect("a hash"))
            .collect();
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

    /// An update that changes nothing writes nothing, and an empty log is looked at otherwise.
    #[test]
    fn the_log_is_not_empty_when_the_first_request_comes() {
        let folder = Folder::new("log");
        fill(&folder.0.join("from.sqlite"), &[("good", "u2", 5000)]);
        let lookup = Lookup::open(&folder.spec()).expect("a lookup");
        assert!(std::fs::metadata(folder.0.join("at.sqlite-wal")).expect("a log").len() > 0);
        assert_eq!(1, rows(&lookup));
    }

    #[test]
    fn what_cannot_be_opened_is_refused_in_words() {
        let folder = Folder::new("refused");
        let spec = folder.spec();
        let words = |spec: &Spec| match Lookup::open(spec) {
            Err(Failure::Failed(words)) => words,
            _ => panic!("opened"),
        };
        assert!(words(&spec).contains("No such file"));
        std::fs::write(&spec.from, "no database, but long enough to be looked at as one would be")
            .expect("a file");
        assert!(words(&spec).contains("not a database"));
        assert!(words(&spec).contains("is there already"));
    }
}
