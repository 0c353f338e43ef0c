//! MariaDB: it encrypts values or whole tables, or the application encrypts, or nothing does; and signing in
//! to it.

pub mod client;
mod connection;
mod rows;
pub mod sign_on;
mod sql;

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use aws_lc_rs::rand;
use mysql::{Statement, Value};

use super::columns::{Column, Find, ROWS_OF_A_CALL, by, rows_of_a_call};
use super::database::{Database, Promise};
use super::table::{Search, Table, wrong};
use super::task::{self, Durability, Server, Settings};
use crate::contract::{Proof, Task};
use crate::failure::Failure;
use connection::Connection;
use rows::{check, check_loop, look, parameters, write_line};
use sql::{DIGITS, Form};

/// Length to which `AES_ENCRYPT` folds longer keys, by exclusive or.
const KEY_BYTES: usize = 16;

/// Returns the implementation of a choice, and its promise for a stored value.
fn choice(table: &Table) -> Result<(Form, Promise), Failure> {
    const ECB: Promise = Promise {
        wrong_key: Ok(()),
        changed: Err("the cipher does not authenticate"),
        ..Promise::none("not bound to its place")
    };
    if let Some(extra) = table.sealed() {
        return Ok((Form::Application(extra), Promise::ALL));
    }
    match table.choice.as_str() {
        "plaintext" => Ok((Form::Plain, Promise::NOTHING)),
        "table-encryption" => {
            Ok((Form::Table, Promise::none("the server encrypts pages, and has the key itself")))
        }
        "aes-encrypt" => Ok((Form::Aes, ECB)),
        other => Err(Failure::Unsupported(format!("MariaDB has no `{other}`"))),
    }
}

struct Mariadb {
    connection: Connection,
    /// File that the server loads on request.
    lines: Arc<Mutex<Vec<u8>>>,
    table: Table,
    form: Form,
    promise: Promise,
    /// Key of values that the server encrypts.
    key: Option<Value>,
    /// True if loops inside the server insert and read rows.
    in_server: bool,
    statements: Option<Statements>,
}

/// Prepared statements, for each operation in the variant that is used.
struct Statements {
    insert: Statement,
    read: Statement,
    find: Find<Statement>,
}

/// Connects to the server.
pub fn open(
    task: &Task,
    server: &Server,
    settings: &Settings,
    table: Table,
) -> Result<Box<dyn Database>, Failure> {
    let (form, promise) = choice(&table)?;
    let in_server = task::is_in_server(task, &table)?;
    let lines = Arc::new(Mutex::new(Vec::new()));
    let mut connection = Connection::open(server, &lines)?;
    is_as_asked(
        &mut connection,
        "innodb_flush_log_at_trx_commit",
        match settings.durability {
            Durability::Off => ("0", "`durability` off"),
            Durability::Flushed => ("1", "`durability` flushed"),
        },
    )?;
    if form == Form::Table {
        let log = [("encrypted", ("1", "`log` encrypted")), ("plain", ("0", "`log` plain"))];
        is_as_asked(&mut connection, "innodb_encrypt_log", task.one_of("log", &log)?)?;
    }
    let key = if form == Form::Aes { Some(fresh_key()?) } else { None };
    Ok(Box::new(Mariadb { connection, lines, table, form, promise, key, in_server, statements: None }))
}

/// Checks that the server's configuration has the requested setting, because a cost is labelled by it.
/// `asked` is the value, and the text for it.
fn is_as_asked(connection: &mut Connection, name: &str, asked: (&str, &str)) -> Result<(), Failure> {
    let found: Option<String> = connection.ask(&format!("select @@{name}"))?;
    let found = found.unwrap_or_default();
    if found == asked.0 {
        return Ok(());
    }
    Err(Failure::Failed(format!("MariaDB has {name} = {found}, which is not {}", asked.1)))
}

fn fresh_key() -> Result<Value, Failure> {
    let mut key = [0; KEY_BYTES];
    rand::fill(&mut key).map_err(|_| Failure::Failed("AWS-LC failed at drawing random bytes".to_owned()))?;
    Ok(Value::Bytes(key.to_vec()))
}

impl Database for Mariadb {
    fn create(&mut self) -> Result<(), Failure> {
        let mut words = self.form.table();
        words.extend(Form::staged());
        if self.in_server {
            words.extend(self.form.loops());
        }
        for words in words {
            self.connection.tell(&words).map_err(|failed| self.why_not(failed))?;
        }
        let (insert, read, find) = if self.in_server {
            let call = |name| format!("call {name}(?, ?, ?)");
            ("call insert_cards(?, ?, ?, ?)".to_owned(), call("read_cards"), call("find_cards"))
        } else {
            (self.form.insert(), self.form.read(), self.form.find())
        };
        let mut prepare = |text: &str| self.connection.prepare(text);
        self.statements = Some(Statements {
            insert: prepare(&insert)?,
            read: prepare(&read)?,
            find: Find::prepare(self.table.sealed(), "cards", &find, prepare)?,
        });
        Ok(())
    }

    fn fill(&mut self, ids: Range<i64>) -> Result<(), Failure> {
        const AT_ONCE: usize = 5000;
        let name = if self.key.is_some() { "staged" } else { "cards" };
        for ids in by(AT_ONCE, ids) {
            self.load(name, ids)?;
            if let Some(key) = &self.key {
                let text = self.form.insert_staged("", "?");
                let keys = vec![key.clone(); Column::ALL.len()];
                self.connection.execute(text, keys)?;
                self.tell("delete from staged")?;
            }
        }
        self.tell("analyze table cards")
    }

    fn insert(&mut self, ids: Range<i64>, rows_per_commit: u64) -> Result<(), Failure> {
        let statement = self.statements()?.insert.clone();
        if self.in_server {
            for ids in by(rows_of_a_call(rows_per_commit), ids) {
                self.load("staged", ids.clone())?;
                let numbers = [ids.start, ids.end - 1, rows_per_commit as i64].map(Value::Int);
                let parameters: Vec<Value> = numbers.into_iter().chain([self.key_or_null()]).collect();
                self.connection.execute(&statement, parameters)?;
                self.tell("delete from staged")?;
            }
            return Ok(());
        }
        for ids in by(rows_per_commit as usize, ids) {
            if rows_per_commit > 1 {
                self.tell("start transaction")?;
            }
            for id in ids {
                let row = parameters(&self.table.row(id)?, self.key.as_ref());
                self.connection.execute(&statement, row)?;
            }
            if rows_per_commit > 1 {
                self.tell("commit")?;
            }
        }
        Ok(())
    }

    fn read(&mut self, ids: &[i64]) -> Result<(), Failure> {
        let statement = self.statements()?.read.clone();
        if self.in_server {
            return self.read_in_server(ids, &statement, |_, id| format!("{id:0DIGITS$}"));
        }
        for id in ids {
            let parameters = self.to_read([Value::Int(*id)]);
            self.read_one(*id, &statement, parameters)?;
        }
        Ok(())
    }

    fn find(&mut self, ids: &[i64]) -> Result<(), Failure> {
        let statement = match self.statements()?.find.clone() {
            Find::One(statement) => statement,
            Find::All(statement) => {
                for id in ids {
                    self.search(*id, &statement)?;
                    self.read(&[*id])?;
                }
                return Ok(());
            }
        };
        if self.in_server {
            return self.read_in_server(ids, &statement, |table, id| table.cards.number(id).to_string());
        }
        for id in ids {
            let number = self.table.cards.number(*id);
            let code = self.table.number_code(number);
            let by = code.map_or(Value::Int(number), |code| Value::Bytes(code.to_vec()));
            let parameters = self.to_read(std::iter::once(by).chain(self.key.clone()));
            self.read_one(*id, &statement, parameters)?;
        }
        Ok(())
    }

    fn put_off(&mut self) -> Result<(), Failure> {
        // This writes all changed pages, not those of one table; it returns when they are written.
        self.tell("set global innodb_log_checkpoint_now = on")
    }

    fn size(&mut self) -> Result<u64, Failure> {
        self.tell("analyze table cards")?;
        let text = "select data_length + index_length from information_schema.tables \
                    where table_schema = database() and table_name = 'cards'";
        let size: Option<u64> = self.connection.ask(text)?;
        size.ok_or_else(|| Failure::Failed("MariaDB does not know how large its table is".to_owned()))
    }

    fn parts(&mut self) -> Result<Vec<(String, String)>, Failure> {
        let mut parts = Vec::new();
        let mut ask = |name: &str, text: &str| -> Result<(), Failure> {
            let said: Option<String> = self.connection.ask(text)?;
            parts.extend(said.map(|said| (name.to_owned(), said)));
            Ok(())
        };
        ask("mariadb", "select version()")?;
        if self.form == Form::Table {
            ask("file_key_management", "select @@file_key_management_encryption_algorithm")?;
        }
        Ok(parts)
    }

    fn promise(&self) -> Promise {
        self.promise
    }

    fn encrypts_values(&self) -> bool {
        matches!(self.form, Form::Application(_) | Form::Aes)
    }

    fn stored(&mut self, id: i64, column: Column) -> Result<Vec<u8>, Failure> {
        let text = format!("select {} from cards where card_id = ?", column.name());
        let row = self.connection.first(text, (id,))?;
        connection::column(row.ok_or_else(|| wrong(id, "it is not there"))?, 0)
    }

    fn put_stored(&mut self, id: i64, column: Column, bytes: &[u8]) -> Result<(), Failure> {
        let text = format!("update cards set {} = ? where card_id = ?", column.name());
        self.connection.execute(text, (bytes, id))
    }

    fn read_with_wrong_key(&mut self, id: i64) -> Result<Result<(), Failure>, Failure> {
        let protection = self.table.exchange_keys()?;
        let fresh = if self.key.is_some() { Some(fresh_key()?) } else { None };
        let key = std::mem::replace(&mut self.key, fresh);
        let read = self.read(&[id]);
        self.table.restore_keys(protection);
        self.key = key;
        Ok(read)
    }

    fn prove(&mut self, proof: &mut Proof) -> Result<(), Failure> {
        if self.form != Form::Table {
            return Ok(());
        }
        let text = "select encryption_scheme * min_key_version from information_schema.innodb_tablespaces_encryption \
                    where name = concat(database(), '/cards')";
        let version: Option<i64> = self.connection.ask(text)?;
        proof.accept(
            "the table's pages, which the server says are encrypted",
            version.is_some_and(|version| version > 0),
        )
    }

    fn close(mut self: Box<Self>) -> Result<(), Failure> {
        // The waiting rows are gone, and the connection is closed on drop.
        self.tell("drop temporary table if exists staged")
    }
}

impl Mariadb {
    fn statements(&self) -> Result<&Statements, Failure> {
        self.statements.as_ref().ok_or_else(|| Failure::Failed("the table was not made".to_owned()))
    }

    fn tell(&mut self, words: &str) -> Result<(), Failure> {
        self.connection.tell(words)
    }

    /// Adds the server's warning to the failure of a statement: only that gives the reason for an impossible
    /// table.
    fn why_not(&mut self, failed: Failure) -> Failure {
        match failed {
            Failure::Unsupported(words) => Failure::Unsupported(match self.connection.warning() {
                Some(why) => format!("{words}: {why}"),
                None => words,
            }),
            other => other,
        }
    }

    fn key_or_null(&self) -> Value {
        self.key.clone().unwrap_or(Value::NULL)
    }

    /// Returns the parameters of a read: the key for each value that the server decrypts, and then `last`.
    /// The client owns its parameters, so that each is a copy, as in every program that uses it.
    fn to_read(&self, last: impl IntoIterator<Item = Value>) -> Vec<Value> {
        let mut parameters = Vec::with_capacity(Column::ALL.len() + 2);
        if let Some(key) = &self.key {
            parameters.extend(std::iter::repeat_n(key, Column::ALL.len()).cloned());
        }
        parameters.extend(last);
        parameters
    }

    fn read_one(&mut self, id: i64, statement: &Statement, parameters: Vec<Value>) -> Result<(), Failure> {
        let row = self.connection.first(statement, parameters)?;
        check(&mut self.table, id, row)
    }

    /// Makes the server send all numbers, and opens them as they arrive.
    fn search(&mut self, id: i64, statement: &Statement) -> Result<(), Failure> {
        let mut search = Search::new(&self.table, id);
        let table = &mut self.table;
        self.connection.each(statement, |row| look(&mut search, table, row))?;
        search.end()
    }

    fn read_in_server(
        &mut self,
        ids: &[i64],
        statement: &Statement,
        digits: impl Fn(&Table, i64) -> String,
    ) -> Result<(), Failure> {
        for ids in ids.chunks(ROWS_OF_A_CALL) {
            let wanted: String = ids.iter().map(|id| digits(&self.table, *id)).collect();
            let parameters = (wanted, ids.len(), self.key_or_null());
            let row = self.connection.first(statement, parameters)?;
            check_loop(&self.table, ids, row)?;
        }
        Ok(())
    }

    /// Inserts rows into a table by the server's bulk statement.
    fn load(&mut self, name: &str, ids: Range<i64>) -> Result<(), Failure> {
        {
            let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
            lines.clear();
            for id in ids {
                write_line(&self.table.row(id)?, &mut lines);
            }
        }
        self.tell(&self.form.load(name))
    }
}
