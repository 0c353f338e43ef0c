//! PostgreSQL: pgcrypto encrypts, or the application does, or nothing; and signing in to it.

mod answer;
pub mod client;
mod keys;
pub mod login;
mod rows;
mod server;
pub mod sign_on;
mod sql;

use std::ops::Range;

use postgres_types::ToSql;

use super::channel::Channel;
use super::columns::{Column, Find, ROWS_OF_A_CALL, by, rows_of_a_call};
use super::database::{Database, Promise};
use super::sign_on::{fresh_password, random};
use super::table::{Search, Table, wrong};
use super::task::{self, Authentication, Durability, Server, Settings};
use crate::contract::Task;
use crate::failure::Failure;
use answer::{Answer, Statement, broken};
use client::Client;
use keys::Keys;
use login::{Login, Proof};
use rows::{Arrays, Parameters, check, check_loop, column, copied, look, text};
use server::{administrator, socket_of};
use sql::Form;

/// Returns the implementation of a choice, and its promise for a stored value.
fn choice(task: &Task, table: &Table) -> Result<(Form, Promise), Failure> {
    // Messages of pgcrypto's OpenPGP end with a hash of the plaintext, so that changes are detected.
    const PGP: Promise =
        Promise { wrong_key: Ok(()), changed: Ok(()), ..Promise::none("not bound to its place") };
    const CBC: Promise = Promise {
        wrong_key: Ok(()),
        changed: Err("the cipher does not authenticate"),
        ..Promise::none("not bound to its place")
    };
    const S2K_MODE_3: &str = "cipher-algo=aes256, s2k-mode=3";
    const S2K_MODE_1: &str = "cipher-algo=aes256, s2k-mode=1";
    if let Some(extra) = table.sealed() {
        return Ok((Form::Application(extra), Promise::ALL));
    }
    Ok(match table.choice.as_str() {
        "plaintext" => (Form::Plain, Promise::NOTHING),
        "pgp-pub-encrypt" => match task.number("rsa-bits", 2048)? {
            bits @ (1024 | 2048) => (Form::PgpPublic { bits: bits as usize }, PGP),
            bits => return Err(Failure::Failed(format!("no such `rsa-bits`: {bits} (2048, 1024)"))),
        },
        "pgp-sym-encrypt" => match task.number("s2k-mode", 3)? {
            3 => (Form::PgpSymmetric(S2K_MODE_3), PGP),
            1 => (Form::PgpSymmetric(S2K_MODE_1), PGP),
            mode => return Err(Failure::Failed(format!("no such `s2k-mode`: {mode} (3, 1)"))),
        },
        "encrypt-iv" => (Form::Iv { indexed: false }, CBC),
        "encrypt-iv-hmac" => (Form::Iv { indexed: true }, CBC),
        other => return Err(Failure::Unsupported(format!("PostgreSQL has no `{other}`"))),
    })
}

/// Role of an application that the server authenticates; `pg_hba.conf` contains this name.
const APPLICATION: &str = "tollbar-application";

struct Postgresql {
    client: Client,
    /// Channel of the connection.
    channel: Channel,
    login: Login,
    /// Server, for questions about it.
    server: Server,
    inserts: bool,
    table: Table,
    form: Form,
    promise: Promise,
    keys: Keys,
    /// True if loops inside the server insert and read rows.
    in_server: bool,
    statements: Option<Statements>,
}

/// Prepared statements, for each operation in the variant that is used.
struct Statements {
    insert: Statement,
    /// Bulk insertion; None if the application encrypts.
    insert_all: Option<Statement>,
    read: Statement,
    find: Find<Statement>,
}

/// Connects to the server, and makes it load the extensions that the choice needs.
pub fn open(
    task: &Task,
    server: &Server,
    settings: &Settings,
    table: Table,
) -> Result<Box<dyn Database>, Failure> {
    let (form, promise) = choice(task, &table)?;
    let in_server = task::is_in_server(task, &table)?;
    let (mut client, mut login) = administrator(server)?;
    let channel = Channel::of(server, socket_of(server))?;
    // Over TCP no permissions identify the application.
    if server.address.is_some() || server.authentication == Authentication::ScramSha256 {
        // The password is for this trial, and only the server learns it.
        let password = fresh_password()?;
        let verifier = login::verifier(&password, 4096, &random::<16>()?)?;
        client.tell(&format!("create role \"{APPLICATION}\" superuser login password '{verifier}'"))?;
        client.part()?;
        login = Login { user: APPLICATION.to_owned(), proof: Proof::Scram, password, ..login };
        (client, _) = Client::connect(&channel, &login, server.answer_limit()?)?;
    }
    task.belongs("channel");
    is_as_asked(&mut client, settings.durability)?;
    if form.is_of_server() {
        client.tell("create extension if not exists pgcrypto").map_err(|failure| match failure {
            Failure::Unsupported(words) => Failure::Unsupported(format!(
                "not available here: {words}; to install it: apt-get install postgresql-contrib"
            )),
            other => other,
        })?;
    }
    let keys = Keys::fresh(form)?;
    let (server, inserts) = (server.clone(), settings.access.inserts());
    Ok(Box::new(Postgresql {
        client,
        channel,
        login,
        server,
        inserts,
        table,
        form,
        promise,
        keys,
        in_server,
        statements: None,
    }))
}

/// Checks that the server's configuration flushes commits as requested, because a cost is labelled by it.
fn is_as_asked(client: &mut Client, asked: Durability) -> Result<(), Failure> {
    let (is_on, wanted) = match asked {
        Durability::Off => ("off", "`durability` off"),
        Durability::Flushed => ("on", "`durability` flushed"),
    };
    for name in ["fsync", "synchronous_commit"] {
        let row = one(client.ask("select current_setting($1)", &[&name])?)?;
        let found: &str = column(&row, 0)?;
        if found != is_on {
            return Err(Failure::Failed(format!("PostgreSQL has {name} = {found}, which is not {wanted}")));
        }
    }
    Ok(())
}

impl Database for Postgresql {
    fn create(&mut self) -> Result<(), Failure> {
        // Plans for a dropped table would stay in the process that is measured.
        self.statements = None;
        self.client.forget()?;
        self.client.tell(&self.form.table())?;
        if self.in_server {
            self.client.tell(&self.form.loops())?;
        }
        let [insert, read, find] = self.texts();
        let mut prepare = |text: &str| self.client.prepare(text);
        self.statements = Some(Statements {
            insert: prepare(&insert)?,
            insert_all: self
                .table
                .sealed()
                .is_none()
                .then(|| prepare(&self.form.insert_all()))
                .transpose()?,
            read: prepare(&read)?,
            find: Find::prepare(self.table.sealed(), "cards", &find, prepare)?,
        });
        Ok(())
    }

    fn fill(&mut self, ids: Range<i64>) -> Result<(), Failure> {
        match self.statements()?.insert_all.clone() {
            None => self.copy(ids)?,
            Some(statement) => {
                for ids in by(ROWS_OF_A_CALL, ids) {
                    let arrays = Arrays::of(&self.table, ids)?;
                    let mut parameters = arrays.parameters();
                    parameters.extend(self.keys.to_insert());
                    self.client.execute(&statement, &parameters)?;
                }
            }
        }
        self.client.tell("analyze cards")
    }

    fn insert(&mut self, ids: Range<i64>, rows_per_commit: u64) -> Result<(), Failure> {
        let statement = self.statements()?.insert.clone();
        if self.in_server {
            for ids in by(rows_of_a_call(rows_per_commit), ids) {
                let arrays = Arrays::of(&self.table, ids)?;
                let mut parameters = arrays.parameters();
                parameters.extend(self.keys.to_insert());
                let rows_per_commit = rows_per_commit as i64;
                parameters.push(&rows_per_commit);
                self.client.execute(&statement, &parameters)?;
            }
            return Ok(());
        }
        for ids in by(rows_per_commit as usize, ids) {
            if rows_per_commit > 1 {
                self.client.tell("begin")?;
            }
            for id in ids {
                self.insert_one(id, &statement)?;
            }
            if rows_per_commit > 1 {
                self.client.tell("commit")?;
            }
        }
        Ok(())
    }

    fn read(&mut self, ids: &[i64]) -> Result<(), Failure> {
        let statement = self.statements()?.read.clone();
        if self.in_server {
            for ids in ids.chunks(ROWS_OF_A_CALL) {
                let wanted: Vec<i32> = ids.iter().map(|id| *id as i32).collect();
                self.read_in_server(ids, &statement, &wanted)?;
            }
            return Ok(());
        }
        for id in ids {
            let wanted = *id as i32;
            let mut parameters: Parameters<'_> = vec![&wanted];
            parameters.extend(self.keys.to_read());
            let row = self.client.first(&statement, &parameters)?;
            check(&mut self.table, *id, row.as_ref())?;
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
            for ids in ids.chunks(ROWS_OF_A_CALL) {
                let wanted: Vec<i64> = ids.iter().map(|id| self.table.cards.number(*id)).collect();
                self.read_in_server(ids, &statement, &wanted)?;
            }
            return Ok(());
        }
        for id in ids {
            let number = self.table.cards.number(*id);
            let code = self.table.number_code(number);
            let code = code.as_ref().map(|code| &code[..]);
            let wanted: &(dyn ToSql + Sync) = if code.is_some() { &code } else { &number };
            let mut parameters = vec![wanted];
            parameters.extend(self.keys.to_find());
            let row = self.client.first(&statement, &parameters)?;
            check(&mut self.table, *id, row.as_ref())?;
        }
        Ok(())
    }

    fn connect(&mut self) -> Result<(), Failure> {
        (self.client, _) = Client::connect(&self.channel, &self.login, self.server.answer_limit()?)?;
        // A statement belongs to the connection on which it was prepared; a page needs only one.
        let [insert, read, _] = self.texts();
        let unmade = || Failure::Failed("the table was not made".to_owned());
        let statements = self.statements.as_mut().ok_or_else(unmade)?;
        let (statement, text) =
            if self.inserts { (&mut statements.insert, insert) } else { (&mut statements.read, read) };
        *statement = self.client.prepare(&text)?;
        Ok(())
    }

    fn disconnect(&mut self) -> Result<(), Failure> {
        self.client.part()
    }

    fn connections(&mut self) -> Result<Option<String>, Failure> {
        let (mut client, _) = administrator(&self.server)?;
        let found = client.text_of(
            "select string_agg(pid || ' since ' || backend_start, ', ' order by pid) from pg_stat_activity
             where backend_type = 'client backend' and pid <> pg_backend_pid()",
        )?;
        client.part()?;
        Ok(found)
    }

    fn put_off(&mut self) -> Result<(), Failure> {
        self.client.tell("checkpoint")
    }

    fn size(&mut self) -> Result<u64, Failure> {
        let row = one(self.client.ask("select pg_total_relation_size('cards')", &[])?)?;
        Ok(column::<i64>(&row, 0)? as u64)
    }

    fn parts(&mut self) -> Result<Vec<(String, String)>, Failure> {
        let mut parts = Vec::new();
        let version = one(self.client.ask("select current_setting('server_version')", &[])?)?;
        parts.push(("postgresql".to_owned(), column(&version, 0)?));
        let loaded = "select extversion from pg_extension where extname = 'pgcrypto'";
        let loaded = self.client.ask(loaded, &[])?;
        if let Some(row) = loaded {
            parts.push(("pgcrypto".to_owned(), column(&row, 0)?));
        }
        Ok(parts)
    }

    fn promise(&self) -> Promise {
        self.promise
    }

    fn encrypts_values(&self) -> bool {
        self.form != Form::Plain
    }

    fn stored(&mut self, id: i64, column: Column) -> Result<Vec<u8>, Failure> {
        let text = format!("select {} from cards where card_id = $1", column.name());
        let row = self.client.ask(&text, &[&(id as i32)])?;
        rows::column(&row.ok_or_else(|| wrong(id, "it is not there"))?, 0)
    }

    fn put_stored(&mut self, id: i64, column: Column, bytes: &[u8]) -> Result<(), Failure> {
        let text = format!("update cards set {} = $2 where card_id = $1", column.name());
        match self.client.execute_once(&text, &[&(id as i32), &bytes])? {
            1 => Ok(()),
            _ => Err(wrong(id, "it is not there")),
        }
    }

    fn read_with_wrong_key(&mut self, id: i64) -> Result<Result<(), Failure>, Failure> {
        let protection = self.table.exchange_keys()?;
        let keys = std::mem::replace(&mut self.keys, Keys::fresh(self.form)?);
        let read = self.read(&[id]);
        self.table.restore_keys(protection);
        self.keys = keys;
        Ok(read)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        self.client.close()
    }
}

impl Postgresql {
    /// Returns the statements that insert, read and find rows.
    fn texts(&self) -> [String; 3] {
        if self.in_server {
            [("insert_cards", 13, 1), ("read_cards", 1, 0), ("find_cards", 1, 0)]
                .map(|(name, values, more)| self.form.call(name, values, more))
        } else {
            [self.form.insert(), self.form.read(), self.form.find()]
        }
    }

    fn statements(&self) -> Result<&Statements, Failure> {
        self.statements.as_ref().ok_or_else(|| Failure::Failed("the table was not made".to_owned()))
    }

    fn insert_one(&mut self, id: i64, statement: &Statement) -> Result<(), Failure> {
        let row = self.table.row(id)?;
        let card = row.card;
        let id = id as i32;
        let [first, second, third, fourth] = &card.strings;
        let strings = [text(first)?, text(second)?, text(third)?, text(fourth)?];
        let mut parameters: Parameters<'_> = Vec::with_capacity(16);
        parameters.push(&id);
        parameters.extend(card.numbers.iter().map(|number| number as &(dyn ToSql + Sync)));
        parameters.extend(card.codes.iter().map(|code| code as &(dyn ToSql + Sync)));
        parameters.extend(strings.iter().map(|string| string as &(dyn ToSql + Sync)));
        if let Some(sealed) = row.sealed {
            for (column, bytes) in Column::ALL.into_iter().zip([&sealed.number, &sealed.code, &sealed.string])
            {
                parameters[usize::from(column.place()) - 1] = bytes;
            }
            if !sealed.extra.is_empty() {
                parameters.push(&sealed.extra);
            }
        }
        parameters.extend(self.keys.to_insert());
        self.client.execute(statement, &parameters).map(|_| ())
    }

    /// Inserts rows that the application encrypts, by the server's bulk statement.
    fn copy(&mut self, ids: Range<i64>) -> Result<(), Failure> {
        let table = &mut self.table;
        self.client
            .copy("copy cards from stdin", ids, |id, lines| copied(&table.row(id)?, lines).map_err(broken))
    }

    /// Makes the server send all numbers, and opens them as they arrive.
    fn search(&mut self, id: i64, statement: &Statement) -> Result<(), Failure> {
        let mut search = Search::new(&self.table, id);
        let table = &mut self.table;
        self.client.each(statement, &[], |row| look(&mut search, table, &row))?;
        search.end()
    }

    /// Makes a loop inside the server read the wanted rows, and checks the result.
    fn read_in_server<W: ToSql + Sync>(
        &mut self,
        ids: &[i64],
        statement: &Statement,
        wanted: &W,
    ) -> Result<(), Failure> {
        let mut parameters: Parameters<'_> = vec![wanted];
        parameters.extend(self.keys.to_find());
        let row = one(self.client.first(statement, &parameters)?)?;
        check_loop(&self.table, ids, &row)
    }
}

/// Returns the row of an answer that must have one.
fn one(row: Option<Answer>) -> Result<Answer, Failure> {
    row.ok_or_else(|| broken("it answers with no row where one was asked for"))
}

#[cfg(test)]
mod tests {
    use super::super::card::Cards;
    use super::client::tests::{LIMIT, client_of, done, heard, prepared};
    use super::*;

    /// The statements are forgotten before the table is dropped, because the second time they have the first
    /// ones' names.
    #[test]
    fn statements_of_a_table_are_forgotten_when_it_is_made_anew() -> Result<(), Failure> {
        let made =
            [done("DEALLOCATE ALL"), done("CREATE INDEX"), prepared(), prepared(), prepared(), prepared()];
        let (client, far) = client_of(LIMIT, &[&made[..], &made].concat());
        let form = Form::Plain;
        let server = r#"{"kind": "postgresql", "socket": "/none", "port": null, "user": "tollbar", "database": null,
            "answer_limit_s": 1.0}"#;
        let server: Server = serde_json::from_str(server).expect("a server");
        let (user, database) = (server.user.clone(), String::new());
        let mut database = Postgresql {
            client,
            channel: Channel::Socket(socket_of(&server)),
            login: Login { user, database, proof: Proof::Nothing, password: String::new() },
            server,
            inserts: false,
            table: Table::new(Cards::new(7, ""), "plaintext", None),
            form,
            promise: Promise::NOTHING,
            keys: Keys::fresh(form)?,
            in_server: false,
            statements: None,
        };
        database.create()?;
        database.create()?;
        let told = heard(database.client, far).into_iter().filter(|(kind, _)| "QP".contains(*kind));
        let first = |body: &[u8]| body.split(|byte| *byte == 0).next().unwrap_or_default().to_vec();
        let told: Vec<String> =
            told.map(|(_, body)| String::from_utf8_lossy(&first(&body)).into_owned()).collect();
        let once =
            ["deallocate all".to_owned(), form.table()].into_iter().chain((1..=4).map(|n| format!("s{n}")));
        let once: Vec<String> = once.collect();
        assert_eq!([&once[..], &once].concat(), told);
        Ok(())
    }
}
