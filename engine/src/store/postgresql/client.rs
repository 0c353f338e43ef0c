//! A blocking client of PostgreSQL, over its socket. What is sent for an operation is one message, and the thread waits
//! for the answer: an asynchronous runtime's own work would be counted as the application's.

use std::io::{Error, ErrorKind, Read, Write};
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend::{self, BindError};
use postgres_types::{IsNull, ToSql, Type};

use super::super::database::unanswered;
use super::answer::{Answer, Prepared, Statement, broken, garbled, said, unsaid};
use crate::contract::Failure;

/// How much is read at once, and sent at once of rows that are copied: some hundred rows of this table.
const PIECE_BYTES: usize = 16 * 1024;
/// The format of a column that is not text. One of it is for all columns.
const BINARY: i16 = 1;

pub struct Client {
    socket: UnixStream,
    limit: Duration,
    outgoing: BytesMut,
    incoming: BytesMut,
    piece: Box<[u8; PIECE_BYTES]>,
    /// How many statements have a name.
    named: usize,
}

impl Client {
    /// Connects as a user whom the socket itself vouches for.
    pub fn connect(
        folder: &Path,
        port: u16,
        user: &str,
        database: &str,
        limit: Duration,
    ) -> Result<Client, Failure> {
        let path = folder.join(format!(".s.PGSQL.{port}"));
        let open = || -> Result<UnixStream, Error> {
            let socket = UnixStream::connect(&path)?;
            socket.set_read_timeout(Some(limit))?;
            socket.set_write_timeout(Some(limit))?;
            Ok(socket)
        };
        let socket =
            open().map_err(|error| broken(format!("no connection to {}: {error}", path.display())))?;
        let mut client = Client {
            socket,
            limit,
            outgoing: BytesMut::new(),
            incoming: BytesMut::new(),
            piece: Box::new([0; PIECE_BYTES]),
            named: 0,
        };
        let words = [("client_encoding", "UTF8"), ("user", user), ("database", database)];
        frontend::startup_message(words, &mut client.outgoing).map_err(unsaid)?;
        client.answer(|message| match message {
            Message::AuthenticationOk | Message::BackendKeyData(_) => Ok(()),
            _ => {
                let words = "it asks for more than who is at the other end of its socket: let `pg_hba.conf` say `trust` or `peer`";
                Err(broken(words))
            }
        })?;
        Ok(client)
    }

    /// Has statements performed that have no parameters and no answer.
    pub fn tell(&mut self, text: &str) -> Result<(), Failure> {
        frontend::query(text, &mut self.outgoing).map_err(unsaid)?;
        self.answer(|_| Ok(()))
    }

    /// Has a statement parsed that is used again and again.
    pub fn prepare(&mut self, text: &str) -> Result<Statement, Failure> {
        self.named += 1;
        self.parse(format!("s{}", self.named), text)
    }

    /// The row that answers a statement which is used once; None where there is none.
    pub fn ask(&mut self, text: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<Option<Answer>, Failure> {
        let statement = self.parse(String::new(), text)?;
        self.first(&statement, parameters)
    }

    /// Performs a statement. How many rows it wrote.
    pub fn execute(
        &mut self,
        statement: &Statement,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, Failure> {
        self.bind(statement, parameters)?;
        let mut rows = 0;
        self.answer(|message| {
            if let Message::CommandComplete(body) = message {
                // `INSERT 0 1`, `UPDATE 1`; `CALL` has no number.
                let tag = body.tag().map_err(garbled)?;
                rows = tag.rsplit(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0);
            }
            Ok(())
        })?;
        Ok(rows)
    }

    /// The row that answers a statement; None where there is none.
    pub fn first(
        &mut self,
        statement: &Statement,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Option<Answer>, Failure> {
        let mut first = None;
        self.each(statement, parameters, |row| match first.replace(row) {
            None => Ok(()),
            Some(_) => Err(broken("it answers with several rows where one was asked for")),
        })?;
        Ok(first)
    }

    /// Hands over each row of an answer as it comes.
    pub fn each(
        &mut self,
        statement: &Statement,
        parameters: &[&(dyn ToSql + Sync)],
        mut take: impl FnMut(Answer) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.bind(statement, parameters)?;
        self.answer(|message| match message {
            Message::DataRow(body) => take(Answer::new(statement, body)?),
            _ => Ok(()),
        })
    }

    /// Performs `copy … from stdin`: `write` puts the line of each id at the end of what is sent.
    pub fn copy(
        &mut self,
        text: &str,
        ids: Range<i64>,
        mut write: impl FnMut(i64, &mut Vec<u8>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        frontend::query(text, &mut self.outgoing).map_err(unsaid)?;
        let mut lines = Vec::with_capacity(PIECE_BYTES);
        let end = ids.end;
        for id in ids {
            write(id, &mut lines)?;
            if lines.len() >= PIECE_BYTES || id + 1 == end {
                frontend::CopyData::new(&lines[..]).map_err(unsaid)?.write(&mut self.outgoing);
                lines.clear();
                self.send()?;
            }
        }
        // A server that refuses the statement or a row leaves unread what comes after it.
        frontend::copy_done(&mut self.outgoing);
        self.answer(|_| Ok(()))
    }

    /// Says goodbye; the socket is closed when this is dropped.
    pub fn close(mut self) -> Result<(), Failure> {
        frontend::terminate(&mut self.outgoing);
        self.send()
    }

    fn parse(&mut self, name: String, text: &str) -> Result<Statement, Failure> {
        frontend::parse(&name, text, [], &mut self.outgoing).map_err(unsaid)?;
        frontend::describe(b'S', &name, &mut self.outgoing).map_err(unsaid)?;
        frontend::sync(&mut self.outgoing);
        // A type that was made in this database is none that a value here is of.
        let kind = |oid| Type::from_oid(oid).unwrap_or(Type::UNKNOWN);
        let (mut parameters, mut columns) = (Vec::new(), Vec::new());
        self.answer(|message| {
            match message {
                Message::ParameterDescription(body) => {
                    parameters = body.parameters().map(|oid| Ok(kind(oid))).collect().map_err(garbled)?;
                }
                Message::RowDescription(body) => {
                    columns =
                        body.fields().map(|field| Ok(kind(field.type_oid()))).collect().map_err(garbled)?;
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(Statement::new(Prepared { name, parameters, columns }))
    }

    /// Writes down what has a statement performed, for `answer` to send.
    fn bind(&mut self, statement: &Statement, parameters: &[&(dyn ToSql + Sync)]) -> Result<(), Failure> {
        let Prepared { name, parameters: kinds, .. } = &**statement;
        if parameters.len() != kinds.len() {
            let counts = format!("{} for {} parameters", parameters.len(), kinds.len());
            return Err(broken(format!("a statement was given the wrong number of values: {counts}")));
        }
        let formats =
            parameters.iter().zip(kinds).map(|(parameter, kind)| parameter.encode_format(kind) as i16);
        let values = parameters.iter().zip(kinds);
        let write = |(value, kind): (&&(dyn ToSql + Sync), &Type), out: &mut BytesMut| {
            Ok(match value.to_sql_checked(kind, out)? {
                IsNull::No => postgres_protocol::IsNull::No,
                IsNull::Yes => postgres_protocol::IsNull::Yes,
            })
        };
        let bound = frontend::bind("", name, formats, values, write, [BINARY], &mut self.outgoing);
        if let Err(error) = bound {
            // What is half written must not be sent with the next statement.
            self.outgoing.clear();
            return Err(match error {
                BindError::Conversion(error) => broken(format!("a value cannot be sent: {error}")),
                BindError::Serialization(error) => unsaid(error),
            });
        }
        frontend::execute("", 0, &mut self.outgoing).map_err(unsaid)?;
        frontend::sync(&mut self.outgoing);
        Ok(())
    }

    /// Sends what is written down, and hands over each message of the answer until the server is ready again.
    fn answer(&mut self, mut take: impl FnMut(Message) -> Result<(), Failure>) -> Result<(), Failure> {
        // Of a connection that the server has ended, it may still have said why.
        let mut result = self.send();
        loop {
            match self.receive() {
                Ok(Message::ReadyForQuery(_)) => return result,
                Ok(Message::ErrorResponse(body)) => result = Err(said(&body)),
                // Those may come at any time, and are for people or for other clients.
                Ok(Message::NoticeResponse(_) | Message::ParameterStatus(_)) => {}
                Ok(Message::NotificationResponse(_)) => {}
                Ok(message) if result.is_ok() => result = take(message),
                Ok(_) => {}
                // Nor does one that says why it ends a connection get ready again.
                Err(error) => return result.and(Err(error)),
            }
        }
    }

    fn send(&mut self) -> Result<(), Failure> {
        let sent = self.socket.write_all(&self.outgoing);
        self.outgoing.clear();
        sent.map_err(|error| self.failed("sending to it", error))
    }

    fn receive(&mut self) -> Result<Message, Failure> {
        loop {
            if let Some(message) = Message::parse(&mut self.incoming).map_err(garbled)? {
                return Ok(message);
            }
            match self.socket.read(&mut self.piece[..]) {
                Ok(0) => return Err(broken("it closed the connection")),
                Ok(count) => self.incoming.extend_from_slice(&self.piece[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed("the connection to it", error)),
            }
        }
    }

    fn failed(&self, what: &str, error: Error) -> Failure {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => unanswered("PostgreSQL", self.limit),
            _ => broken(format!("{what}: {error}")),
        }
    }
}
