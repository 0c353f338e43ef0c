//! A blocking client of PostgreSQL, over any channel. An operation sends one message, and the thread waits
//! for the answer, because an asynchronous runtime's own work would be counted as the application's.

use std::io::{Error, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::time::Duration;

use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend::{self, BindError};
use postgres_types::{IsNull, ToSql, Type};

use super::super::channel::{Channel, is_late};
use super::super::database::unanswered;
use super::answer::{Answer, Prepared, Statement, broken, garbled, said, unsaid};
use super::login::{Exchange, Login, SignedOn};
use crate::failure::Failure;
use crate::tls::Stream;

/// Size of a read, and of a write of copied rows: some hundred rows of this table.
const PIECE_BYTES: usize = 16 * 1024;
/// Limit of a message. A header's four bytes may claim four gigabytes, which the parser would reserve. The
/// longest answer here, that of a loop in the server, has some hundred thousand bytes.
const MOST_MESSAGE_BYTES: u32 = 16 * 1024 * 1024;
/// Format code of a binary column; one code applies to all columns.
const BINARY: i16 = 1;

pub struct Client {
    stream: Stream,
    limit: Duration,
    outgoing: BytesMut,
    incoming: BytesMut,
    piece: Box<[u8; PIECE_BYTES]>,
    /// Number of named statements.
    named: usize,
}

impl Client {
    /// Connects, and signs in. Fails if the server requests another proof than the login has, or does not
    /// give its own proof where the mechanism requires one.
    pub fn connect(channel: &Channel, login: &Login, limit: Duration) -> Result<(Client, SignedOn), Failure> {
        let (stream, _) = channel.open("PostgreSQL", limit, |socket| match ask_for_tls(socket) {
            Ok(b'S') => Ok(()),
            Ok(_) => Err(broken("it has no TLS for this connection")),
            Err(error) if is_late(&error) => Err(unanswered("PostgreSQL", limit)),
            Err(error) => Err(broken(format!("asking it for TLS: {error}"))),
        })?;
        let mut client = Client::over(stream, limit);
        let signed_on = client.sign_on(login)?;
        Ok((client, signed_on))
    }

    pub fn over(stream: Stream, limit: Duration) -> Client {
        Client {
            stream,
            limit,
            outgoing: BytesMut::new(),
            incoming: BytesMut::new(),
            piece: Box::new([0; PIECE_BYTES]),
            named: 0,
        }
    }

    pub fn sign_on(&mut self, login: &Login) -> Result<SignedOn, Failure> {
        let words = [("client_encoding", "UTF8"), ("user", &login.user), ("database", &login.database)];
        frontend::startup_message(words, &mut self.outgoing).map_err(unsaid)?;
        let mut exchange = Exchange::new(login);
        let mut result = self.send()?;
        while let Some(message) = self.next_of(&mut result) {
            // If the two cannot agree the server waits for a proof, and is never ready: nothing more is read.
            exchange.answer(&message, &self.stream, &mut self.outgoing)?;
            if !self.outgoing.is_empty() {
                result = self.send()?;
            }
        }
        result?;
        exchange.end()
    }

    /// Returns the text in the first column of the first row that answers statements without parameters.
    pub fn text_of(&mut self, text: &str) -> Result<Option<String>, Failure> {
        frontend::query(text, &mut self.outgoing).map_err(unsaid)?;
        let mut first = None;
        self.answer(|message| {
            if let (Message::DataRow(body), None) = (&message, &first) {
                let range = body.ranges().next().map_err(garbled)?.flatten();
                first = range.map(|range| String::from_utf8_lossy(&body.buffer()[range]).into_owned());
            }
            Ok(())
        })?;
        Ok(first)
    }

    /// Executes statements without parameters and rows.
    pub fn tell(&mut self, text: &str) -> Result<(), Failure> {
        frontend::query(text, &mut self.outgoing).map_err(unsaid)?;
        self.answer(|_| Ok(()))
    }

    /// Prepares a statement that is used repeatedly.
    pub fn prepare(&mut self, text: &str) -> Result<Statement, Failure> {
        self.named += 1;
        self.parse(format!("s{}", self.named), text)
    }

    /// Makes the server forget all named statements, with their plans: none of them may be used after that.
    pub fn forget(&mut self) -> Result<(), Failure> {
        self.named = 0;
        self.tell("deallocate all")
    }

    /// Returns the row that answers a statement which is used once, or None.
    pub fn ask(&mut self, text: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<Option<Answer>, Failure> {
        let statement = self.parse(String::new(), text)?;
        self.first(&statement, parameters)
    }

    /// Executes a statement which is used once, and returns the number of rows it wrote.
    pub fn execute_once(&mut self, text: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<u64, Failure> {
        let statement = self.parse(String::new(), text)?;
        self.execute(&statement, parameters)
    }

    /// Executes a statement, and returns the number of rows it wrote.
    pub fn execute(
        &mut self,
        statement: &Statement,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, Failure> {
        self.bind(statement, parameters)?;
        let mut rows = 0;
        self.answer(|message| {
            if let Message::CommandComplete(body) = message {
                // A tag is, for example, `INSERT 0 1` or `UPDATE 1`; `CALL` has no number.
                let tag = body.tag().map_err(garbled)?;
                rows = tag.rsplit(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0);
            }
            Ok(())
        })?;
        Ok(rows)
    }

    /// Returns the row that answers a statement, or None.
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

    /// Passes on each row of an answer as it arrives.
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

    /// Executes `copy … from stdin`: `write` appends the line of each id to the outgoing bytes.
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
            let mut put = write(id, &mut lines);
            if put.is_ok() && (lines.len() >= PIECE_BYTES || id + 1 == end) {
                let data = frontend::CopyData::new(&lines[..]).map_err(unsaid);
                put = data.map(|data| data.write(&mut self.outgoing));
                lines.clear();
            }
            if let Err(failure) = put {
                return Err(self.give_up(failure));
            }
            if self.outgoing.len() >= PIECE_BYTES {
                let sent = self.send()?;
                if sent.is_err() {
                    return self.listen(sent, |_| Ok(()));
                }
            }
        }
        // A server that refuses the statement or a row does not read the rest.
        frontend::copy_done(&mut self.outgoing);
        self.answer(|_| Ok(()))
    }

    /// Ends a copy that cannot continue, so that the connection can be used again. Returns the original
    /// failure: the server would only report that the client ended the copy.
    fn give_up(&mut self, failure: Failure) -> Failure {
        let told = frontend::copy_fail("a row could not be made", &mut self.outgoing).map_err(unsaid);
        let _ = told.and_then(|()| self.answer(|_| Ok(())));
        failure
    }

    /// Sends the end; the socket is closed on drop.
    pub fn close(mut self) -> Result<(), Failure> {
        frontend::terminate(&mut self.outgoing);
        self.send()?
    }

    /// Sends the end, and waits until the server has ended the connection as well, so that it has no more
    /// work for it.
    pub fn part(&mut self) -> Result<(), Failure> {
        frontend::terminate(&mut self.outgoing);
        self.send()??;
        loop {
            match self.stream.read(&mut self.piece[..]) {
                Ok(count) if count > 0 => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_late(&error) => return Err(unanswered("PostgreSQL", self.limit)),
                _ => return Ok(()),
            }
        }
    }

    fn parse(&mut self, name: String, text: &str) -> Result<Statement, Failure> {
        frontend::parse(&name, text, [], &mut self.outgoing).map_err(unsaid)?;
        frontend::describe(b'S', &name, &mut self.outgoing).map_err(unsaid)?;
        frontend::sync(&mut self.outgoing);
        // A type that was made in this database is not the type of any value here.
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

    /// Writes the execution of a statement to the outgoing bytes, for `answer` to send.
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
            // A half-written message must not be sent with the next statement.
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

    /// Sends the outgoing bytes, and passes on each message of the answer until the server is ready again.
    fn answer(&mut self, take: impl FnMut(Message) -> Result<(), Failure>) -> Result<(), Failure> {
        let sent = self.send()?;
        self.listen(sent, take)
    }

    /// Passes on each message of an answer until the server is ready again; `result` is the result so far.
    fn listen(
        &mut self,
        mut result: Result<(), Failure>,
        mut take: impl FnMut(Message) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        while let Some(message) = self.next_of(&mut result) {
            result = take(message);
        }
        result
    }

    /// Returns the next message of an answer to process; there is none after an error. Returns None if the
    /// server is ready again, or sends nothing more.
    fn next_of(&mut self, result: &mut Result<(), Failure>) -> Option<Message> {
        loop {
            match self.receive() {
                Ok(Message::ReadyForQuery(_)) => return None,
                Ok(Message::ErrorResponse(body)) => *result = Err(said(&body)),
                // These may come at any time, and are for people or for other clients.
                Ok(Message::NoticeResponse(_) | Message::ParameterStatus(_)) => {}
                Ok(Message::NotificationResponse(_)) => {}
                Ok(message) if result.is_ok() => return Some(message),
                Ok(_) => {}
                // A server that sends the reason for ending a connection is not ready again, and its reason
                // is better than the end itself.
                Err(failure) => {
                    if result.is_ok() {
                        *result = Err(failure);
                    }
                    return None;
                }
            }
        }
    }

    /// Sends the outgoing bytes. The outer failure means that the limit was reached, after which the server
    /// gets no further time. The inner one means that the server ended the connection, and may still have
    /// sent the reason.
    fn send(&mut self) -> Result<Result<(), Failure>, Failure> {
        let sent = self.write_all();
        self.outgoing.clear();
        match sent {
            Err(error) if is_late(&error) => Err(unanswered("PostgreSQL", self.limit)),
            sent => Ok(sent.map_err(|error| broken(format!("sending to it: {error}")))),
        }
    }

    fn write_all(&mut self) -> Result<(), Error> {
        let mut left = &self.outgoing[..];
        while !left.is_empty() {
            match self.stream.write(left) {
                Ok(count) => left = &left[count..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.stream.flush()
    }

    fn receive(&mut self) -> Result<Message, Failure> {
        loop {
            if let Some(&[_, a, b, c, d]) = self.incoming.first_chunk() {
                let bytes = u32::from_be_bytes([a, b, c, d]);
                if bytes > MOST_MESSAGE_BYTES {
                    return Err(broken(format!("a message of it claims to have {bytes} bytes")));
                }
            }
            if let Some(message) = Message::parse(&mut self.incoming).map_err(garbled)? {
                return Ok(message);
            }
            match self.stream.read(&mut self.piece[..]) {
                Ok(0) => return Err(broken("it closed the connection")),
                Ok(count) => self.incoming.extend_from_slice(&self.piece[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_late(&error) => return Err(unanswered("PostgreSQL", self.limit)),
                Err(error) => return Err(broken(format!("the connection to it: {error}"))),
            }
        }
    }
}

/// Reads the byte with which the server accepts or refuses TLS. Reads no further byte, because the next ones
/// are the TLS library's.
fn ask_for_tls(socket: &mut TcpStream) -> Result<u8, Error> {
    let mut request = BytesMut::new();
    frontend::ssl_request(&mut request);
    socket.write_all(&request)?;
    let mut answer = [0];
    socket.read_exact(&mut answer)?;
    Ok(answer[0])
}

#[cfg(test)]
pub mod tests;
