//! What a server looks up of those who ask: what it knows of a user's password, in a file that is read at start or in SQL;
//! and what stands for a user in a cookie or a token, random text of which it keeps the hash in SQL. One way to SQL for all
//! of it, whichever scheme asks.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Params, Row};
use serde::Deserialize;

use super::accounts::is_name;
use super::password;
use super::verified::{Identity, Verifier};
use crate::failure::Failure;
use crate::{calls, clock};

/// A database of SQLite, as it comes in.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Sql {
    from: PathBuf,
    /// Where the server has its own copy, which it writes.
    at: PathBuf,
}

/// A server's own copy of a database.
struct Database(Connection);

impl Database {
    /// Opens it as servers set SQLite up: what is written is in the log when it is answered, and on the disk soon after.
    /// `first_write` leaves all as it was, and `reads` is what will be asked.
    ///
    /// One way for everything that is looked up, for what SQLite does for a statement depends on it: it locks and looks at
    /// the file otherwise in another mode, or where the log is empty, as it is in no server that is in use.
    fn open(Sql { from, at }: &Sql, first_write: &str, reads: &str) -> Result<Database, String> {
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
        opened().map(Database).map_err(|error| refuse(error.to_string()))
    }

    /// What is read of the row that a query has; None where it has none.
    fn row<T>(
        &self,
        query: &str,
        values: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, String> {
        calls::tally("SQL statement");
        let statement = self.0.prepare_cached(query);
        let found = statement.and_then(|mut statement| statement.query_row(values, read).optional());
        found.map_err(|error| error.to_string())
    }

    fn change(&self, statement: &str, values: impl Params) -> Result<(), String> {
        calls::tally("SQL statement");
        let changed = self.0.prepare_cached(statement).and_then(|mut statement| statement.execute(values));
        changed.map(|_| ()).map_err(|error| error.to_string())
    }
}

/// `store`, as it comes in.
#[derive(Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum StoreSpec {
    /// `name:stored`, a line each.
    File(PathBuf),
    /// An SQLite database with a table `accounts (name text primary key, hash text) without rowid`.
    Sql(Sql),
}

pub struct Store {
    kept: Kept,
    /// What is stored of some user: a password of no user is checked against it.
    any: String,
}

enum Kept {
    File(HashMap<String, String>),
    Sql(Database),
}

impl Store {
    pub fn open(spec: &StoreSpec) -> Result<Store, Failure> {
        let about =
            |path: &Path, why: String| Failure::Failed(format!("the accounts in {}: {why}", path.display()));
        match spec {
            StoreSpec::File(path) => {
                let stored = std::fs::read_to_string(path)
                    .map_err(|error| error.to_string())
                    .and_then(|text| parse(&text))
                    .map_err(|why| about(path, why))?;
                let any = stored.values().next().cloned().unwrap_or_default();
                Ok(Store { kept: Kept::File(stored), any })
            }
            StoreSpec::Sql(sql) => {
                let opened = Database::open(sql, FIRST_ACCOUNT, HASH_OF).and_then(|database| {
                    let first = "SELECT hash FROM accounts LIMIT 1";
                    let any = database.0.query_row(first, (), |row| row.get(0)).optional();
                    let any: Option<String> = any.map_err(|error| error.to_string())?;
                    Ok((Kept::Sql(database), any.ok_or("a database in which no account is")?))
                });
                let (kept, any) = opened.map_err(|why| Failure::Failed(format!("the accounts in {why}")))?;
                Ok(Store { kept, any })
            }
        }
    }

    /// What is stored of a user, if it is one.
    fn find(&self, name: &str) -> Result<Option<Cow<'_, str>>, String> {
        match &self.kept {
            Kept::File(stored) => Ok(stored.get(name).map(|text| Cow::Borrowed(text.as_str()))),
            Kept::Sql(database) => Ok(database.row(HASH_OF, [name], |row| row.get(0))?.map(Cow::Owned)),
        }
    }

    /// The same, and for a name that no user has what is stored of another one: whether there is such a user. Credentials
    /// are then checked alike, for the time that it takes would tell an attacker which users there are.
    pub fn find_any(&self, name: &str) -> Result<(Cow<'_, str>, bool), String> {
        Ok(self.find(name)?.map_or((Cow::Borrowed(self.any.as_str()), false), |stored| (stored, true)))
    }

    /// Whether this is the password of a user, where hashes of passwords are stored.
    pub fn is_password(&self, name: &str, given: &[u8]) -> Result<bool, String> {
        let (hash, is_user) = self.find_any(name)?;
        Ok(password::matches(&hash, given)? && is_user)
    }
}

const HASH_OF: &str = "SELECT hash FROM accounts WHERE name = ?1";
const FIRST_ACCOUNT: &str = "INSERT INTO accounts VALUES ('', ''); DELETE FROM accounts WHERE name = ''";

fn parse(text: &str) -> Result<HashMap<String, String>, String> {
    let mut stored = HashMap::new();
    for (number, line) in text.lines().enumerate() {
        match line.split_once(':') {
            Some((name, hash)) if is_name(name.as_bytes()) && !hash.is_empty() => {
                stored.insert(name.to_owned(), hash.to_owned());
            }
            _ => return Err(format!("line {} is not a name, a colon and what is stored", number + 1)),
        }
    }
    if stored.is_empty() { Err("no account is there".to_owned()) } else { Ok(stored) }
}

/// Whose a text is that a client shows, a cookie's or a token's.
pub trait Lookup {
    /// Whose it is, where it is one of ours and has not expired.
    fn user(&mut self, text: &[u8], now_s: u64) -> Result<Option<String>, String>;

    /// A new text for this user, which fits in a cookie.
    fn issue(&mut self, name: &str, now_s: u64, expires_s: u64) -> Result<String, String>;

    /// Whether the server can end one before it expires.
    fn ends(&self) -> bool {
        false
    }

    /// It is not taken from now on.
    fn end(&mut self, _text: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

/// 144 bits: RFC 6749, 10.10, asks for 128 at least; in base64 without padding they are 24 characters.
const SECRET_BYTES: usize = 18;
/// What has expired is removed by the first login after so long.
const PURGED_EVERY_S: u64 = 60;

const SELECT: &str = "SELECT name, expires_s FROM held WHERE hash = ?1 AND expires_s > ?2";
const INSERT: &str = "INSERT INTO held VALUES (?1, ?2, ?3)";
const DELETE: &str = "DELETE FROM held WHERE hash = ?1";
const FIRST_WRITE: &str = "INSERT INTO held VALUES (x'', '', 0); DELETE FROM held WHERE hash = x''";
const PURGE: &str = "DELETE FROM held WHERE expires_s <= ?1";

/// Texts that are random, looked up in a table `held (hash blob primary key, name text, expires_s integer) without rowid`:
/// the SHA-256 of each text, its user, and the second since 1970 from which it is not taken.
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

/// What a server's store has of a credential, as another than the server revokes it: it is not found any more.
pub enum Entry {
    Account(String),
    Held([u8; 32]),
}

impl Entry {
    pub fn account(name: &str) -> Entry {
        Entry::Account(name.to_owned())
    }

    pub fn held(text: &[u8]) -> Entry {
        Entry::Held(hash(text))
    }

    pub fn revoke(&self, store: &Path) -> Result<(), String> {
        self.change(store, false)
    }

    /// Takes that back.
    pub fn restore(&self, store: &Path) -> Result<(), String> {
        self.change(store, true)
    }

    fn change(&self, store: &Path, back: bool) -> Result<(), String> {
        let changed = Connection::open_with_flags(store, OpenFlags::SQLITE_OPEN_READ_WRITE).and_then(|open| {
            open.busy_timeout(Duration::from_secs(1))?;
            match self {
                Entry::Account(name) => open.execute(
                    "UPDATE accounts SET name = iif(?2, ?1, 'revoked ' || ?1) WHERE name = iif(?2, 'revoked ' || ?1, ?1)",
                    (name, back),
                ),
                Entry::Held(hash) => {
                    open.execute("UPDATE held SET expires_s = -expires_s WHERE hash = ?1", (hash,))
                }
            }
        });
        match changed {
            Ok(1) => Ok(()),
            Ok(_) => Err(format!("{} has no such credential", store.display())),
            Err(error) => Err(format!("{}: {error}", store.display())),
        }
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
        rand::fill(&mut secret).map_err(|_| "no random bytes are to be had".to_owned())?;
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

/// What is kept of a text: a stolen table holds nothing that the server would take.
fn hash(text: &[u8]) -> [u8; 32] {
    calls::tally("SHA-256");
    let mut kept = [0; 32];
    kept.copy_from_slice(digest(&SHA256, text).as_ref());
    kept
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A database with these texts, users, and when they expire.
    pub fn fill(path: &Path, held: &[(&str, &str, u64)]) {
        let mut connection = Connection::open(path).expect("a database");
        // One, since the disk is waited for at the end of each.
        let transaction = connection.transaction().expect("a transaction");
        let table = "CREATE TABLE held (hash BLOB PRIMARY KEY, name TEXT NOT NULL, expires_s INTEGER NOT NULL) WITHOUT ROWID";
        transaction.execute_batch(table).expect("a table");
        for (text, name, expires_s) in held {
            transaction.execute(INSERT, (hash(text.as_bytes()), name, *expires_s as i64)).expect("a row");
        }
        transaction.commit().expect("a table of rows");
    }

    #[test]
    fn a_file_of_accounts_has_names_and_what_is_stored() {
        let stored = parse("u1:a:b\nu2:c\n").expect("two accounts");
        assert_eq!(("a:b", "c", 2), (stored["u1"].as_str(), stored["u2"].as_str(), stored.len()));
        for (text, expected) in [
            ("u1\n", "line 1 is not a name, a colon and what is stored"),
            ("u1:a\n:b\n", "line 2 is not a name, a colon and what is stored"),
            ("u1:a\nu2:\n", "line 2 is not a name, a colon and what is stored"),
            ("u 1:a\n", "line 1 is not a name, a colon and what is stored"),
            ("", "no account is there"),
        ] {
            assert_eq!(Err(expected.to_owned()), parse(text), "{text:?}");
        }
    }

    fn rows(held: &Held) -> i64 {
        held.database.0.query_row("SELECT count(*) FROM held", (), |row| row.get(0)).expect("a number")
    }

    /// Where a test keeps its files, until it ends.
    pub struct Folder(pub PathBuf);

    impl Folder {
        pub fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("tollbar-{}-{name}", std::process::id()));
            std::fs::create_dir(&path).expect("a folder");
            Folder(path)
        }

        fn spec(&self) -> Sql {
            Sql { from: self.0.join("from.sqlite"), at: self.0.join("at.sqlite") }
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

    /// An update that changes nothing writes nothing, and an empty log is looked at otherwise.
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
        std::fs::write(&spec.from, "no database, but long enough to be looked at as one would be")
            .expect("a file");
        assert!(words(&spec).contains("not a database"));
        assert!(words(&spec).contains("is there already"));
    }

    fn store(any: &str) -> Store {
        Store { kept: Kept::File([("u1".to_owned(), "right".to_owned())].into()), any: any.to_owned() }
    }

    #[test]
    fn a_name_of_no_user_has_what_is_stored_of_another() {
        let store = store("right");
        assert_eq!(Ok(("right".into(), true)), store.find_any("u1"));
        assert_eq!(Ok(("right".into(), false)), store.find_any("u2"));
    }

    /// A hash is made for it, or what cannot be one would be no failure here.
    #[test]
    fn a_password_of_no_user_is_hashed_all_the_same() {
        let hash = bcrypt::hash("secret", 4).expect("a hash");
        assert_eq!(Ok(false), store(&hash).is_password("u2", b"secret"));
        assert!(store("no hash at all").is_password("u2", b"secret").is_err());
    }
}
