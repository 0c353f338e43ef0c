//! The embedded database: SQLite or SQLCipher, in a file of the task's directory.

mod file;
mod rows;

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::columns::Column;
use super::database::{Database, Promise};
use super::table::Table;
use super::task::{Durability, Settings};
use crate::contract::{Proof, Task};
use crate::failure::Failure;
use tollbar_sqlite::{Api, Connection};

use file::FileKey;
use rows::Statements;

const FILE: &str = "cards.sqlite";
/// Suffixes of the files next to the database: SQLite's log, and its index.
const BESIDE: [&str; 2] = ["-wal", "-shm"];

/// Settings of every connection. The log is written into the file only on this program's request, and
/// temporary space is in memory.
const ALWAYS: &str = "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; PRAGMA temp_store = MEMORY;";

/// Part of the file that is kept in memory, as a value of `PRAGMA cache_size`: KiB if negative, or pages.
#[derive(Debug, Clone, Copy)]
enum Cache {
    /// All of it, for more rows than a study has.
    All = -4_194_304,
    /// 16 pages: every operation reads its pages from the file, and decrypts them if the file is encrypted.
    Small = 16,
}

pub struct Embedded {
    /// Open connection; None while the database is closed.
    opened: Option<Opened>,
    /// Number of times it was opened.
    times: u64,
    table: Table,
    api: &'static Api,
    path: PathBuf,
    /// Key of the whole file.
    key: Option<FileKey>,
    durability: Durability,
    cache: Cache,
}

/// Open connection with its statements, which must be dropped first.
struct Opened {
    statements: Statements,
    connection: Connection,
}

/// Opens the database of a task in this directory, which must be empty.
pub fn open(
    api: &'static Api,
    directory: &Path,
    task: &Task,
    settings: &Settings,
    table: Table,
) -> Result<Embedded, Failure> {
    let is_empty = directory.read_dir().map(|mut entries| entries.next().is_none());
    if !is_empty.map_err(|error| Failure::Failed(format!("{}: {error}", directory.display())))? {
        return Err(Failure::Failed(format!("{} is not empty", directory.display())));
    }
    let key = if task.choice == "sqlcipher" { Some(FileKey::of(task)?) } else { None };
    let cache = task.one_of("cache", &[("all", Cache::All), ("small", Cache::Small)])?;
    let (path, durability) = (directory.join(FILE), settings.durability);
    Ok(Embedded { opened: None, times: 0, table, api, path, key, durability, cache })
}

impl Embedded {
    fn connection(&self) -> Result<Connection, String> {
        let connection = Connection::open(self.api, &self.path)?;
        if let Some(key) = &self.key {
            connection.execute(&key.pragma())?;
        }
        let synchronous = match self.durability {
            Durability::Off => "OFF",
            Durability::Flushed => "FULL",
        };
        let (cache, synchronous) = (self.cache as i32, format!("PRAGMA synchronous = {synchronous};"));
        connection.execute(&format!("{ALWAYS} {synchronous} PRAGMA cache_size = {cache};"))?;
        Ok(connection)
    }

    /// Opens the database if it is closed.
    fn opened(&mut self) -> Result<(&mut Opened, &mut Table), Failure> {
        if self.opened.is_none() {
            self.times += 1;
            let connection = self.connection().map_err(failed("opening the database"))?;
            let statements =
                Statements::prepare(&connection, self.table.sealed()).map_err(failed("its table"))?;
            self.opened = Some(Opened { statements, connection });
        }
        let opened = self.opened.as_mut().expect("it was opened above");
        Ok((opened, &mut self.table))
    }

    /// Closes the database, after which its file is complete.
    fn shut(&mut self) -> Result<(), Failure> {
        let Some(Opened { statements, connection }) = self.opened.take() else { return Ok(()) };
        drop(statements);
        connection.close().map_err(failed("closing the database"))
    }

    fn remove(&self) -> std::io::Result<()> {
        for end in [&[""][..], &BESIDE].concat() {
            let mut path = self.path.clone().into_os_string();
            path.push(end);
            match std::fs::remove_file(path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Database for Embedded {
    fn create(&mut self) -> Result<(), Failure> {
        self.shut()?;
        // A dropped table would leave its pages in the file.
        self.remove().map_err(|error| Failure::Failed(format!("removing the database: {error}")))?;
        let connection = self.connection().map_err(failed("making the database"))?;
        let made = connection.execute(&rows::layout(self.table.sealed()));
        made.map_err(failed("making the table"))?;
        let statements =
            Statements::prepare(&connection, self.table.sealed()).map_err(failed("the table"))?;
        self.opened = Some(Opened { statements, connection });
        Ok(())
    }

    fn fill(&mut self, ids: Range<i64>) -> Result<(), Failure> {
        self.insert(ids, u64::MAX)
    }

    fn insert(&mut self, ids: Range<i64>, rows_per_commit: u64) -> Result<(), Failure> {
        let (opened, table) = self.opened()?;
        opened.statements.insert(ids, rows_per_commit, table)
    }

    fn read(&mut self, ids: &[i64]) -> Result<(), Failure> {
        let (opened, table) = self.opened()?;
        opened.statements.read(ids, table)
    }

    fn find(&mut self, ids: &[i64]) -> Result<(), Failure> {
        let (opened, table) = self.opened()?;
        opened.statements.find(ids, table)
    }

    fn open(&mut self, ids: &[i64]) -> Result<(), Failure> {
        for id in ids {
            self.shut()?;
            self.read(&[*id])?;
        }
        self.shut()
    }

    fn connect(&mut self) -> Result<(), Failure> {
        self.opened().map(|_| ())
    }

    fn disconnect(&mut self) -> Result<(), Failure> {
        self.shut()
    }

    fn connections(&mut self) -> Result<Option<String>, Failure> {
        let about = |error| Failure::Failed(format!("this process's open files: {error}"));
        let files = std::fs::read_dir("/proc/self/fd").map_err(about)?.flatten();
        let is_open = files.filter_map(|file| file.path().read_link().ok()).any(|file| file == self.path);
        Ok(is_open.then(|| format!("opened {} times", self.times)))
    }

    fn put_off(&mut self) -> Result<(), Failure> {
        self.opened()?.0.connection.checkpoint().map_err(failed("a checkpoint"))
    }

    fn size(&mut self) -> Result<u64, Failure> {
        let connection = &self.opened()?.0.connection;
        let number = |pragma| connection.number(pragma).map_err(failed("the size of the database"));
        Ok((number("PRAGMA page_count")? * number("PRAGMA page_size")?) as u64)
    }

    fn promise(&self) -> Promise {
        match (&self.key, self.table.sealed()) {
            (_, Some(_)) => Promise::ALL,
            (Some(_), None) => Promise {
                wrong_key: Ok(()),
                ..Promise::none("not values are encrypted, but pages of the file, and they are tried")
            },
            (None, None) => Promise::NOTHING,
        }
    }

    fn encrypts_values(&self) -> bool {
        self.table.sealed().is_some()
    }

    fn stored(&mut self, id: i64, column: Column) -> Result<Vec<u8>, Failure> {
        let connection = &self.opened()?.0.connection;
        let sql = format!("SELECT {} FROM card WHERE card_id = {id}", column.name());
        let read = || {
            let mut statement = connection.prepare(&sql)?;
            if statement.step()? { Ok(statement.bytes(0).to_vec()) } else { Err(format!("no row {id}")) }
        };
        read().map_err(failed("reading what is stored"))
    }

    fn put_stored(&mut self, id: i64, column: Column, bytes: &[u8]) -> Result<(), Failure> {
        let (name, bytes) = (column.name(), hex::encode(bytes));
        let sql = format!("UPDATE card SET {name} = x'{bytes}' WHERE card_id = {id}");
        self.opened()?.0.connection.execute(&sql).map_err(failed("changing what is stored"))
    }

    fn read_with_wrong_key(&mut self, id: i64) -> Result<Result<(), Failure>, Failure> {
        if let Some(key) = &self.key {
            let wrong = key.another()?;
            self.shut()?;
            let right = self.key.replace(wrong);
            let read = self.read(&[id]);
            self.opened = None;
            self.key = right;
            return Ok(read);
        }
        let right = self.table.exchange_keys()?;
        let read = self.read(&[id]);
        self.table.restore_keys(right);
        Ok(read)
    }

    fn prove(&mut self, proof: &mut Proof) -> Result<(), Failure> {
        if self.key.is_none() {
            return Ok(());
        }
        self.shut()?;
        let path = self.path.clone();
        file::prove(&path, proof, |id| {
            let read = self.read(&[id]);
            // A connection to a spoiled file may fail to close; only the read counts.
            self.opened = None;
            read
        })
    }

    fn close(mut self: Box<Self>) -> Result<(), Failure> {
        self.shut()
    }
}

fn failed(doing: &'static str) -> impl Fn(String) -> Failure {
    move |error| Failure::Failed(format!("{doing}: {error}"))
}
