//! A blocking client of PostgreSQL, over any channel. What is sent for an operation is one message, and the thread waits
//! for the answer: an asynchronous runtime's own work would be counted as the application's.

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

/// How much is read at once, and sent at once of rows that are copied: some hundred rows of this table.
const PIECE_BYTES: usize = 16 * 1024;
/// A longer message is not read. A header's four bytes may claim four gigabytes, which the parser would reserve; the
/// longest that is asked for here, what a loop in the server has read, is of some hundred thousand bytes.
const MOST_MESSAGE_BYTES: u32 = 16 * 1024 * 1024;
/// The format of a column that is not text. One of it is for all columns.
const BINARY: i16 = 1;

pub struct Client {
    stream: Stream,
    limit: Duration,
    outgoing: BytesMut,
    incoming: BytesMut,
    piece: Box<[u8; PIECE_BYTES]>,
    /// How many statements have a name.
    named: usize,
}

impl Client {
    /// Connects, and signs in. An error where the server asks for another proof than the login has, or gives none itself
    /// where it has to.
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
            // Where the two cannot agree it waits for a proof, and is never ready: nothing more is read.
            exchange.answer(&message, &self.stream, &mut self.outgoing)?;
            if !self.outgoing.is_empty() {
                result = self.send()?;
            }
        }
        result?;
        exchange.end()
    }

    /// The text in the first column of the first row that answers statements without parameters.
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

    /// Has the server forget all statements that have a name, with their plans: none of them may be used any more.
    pub fn forget(&mut self) -> Result<(), Failure> {
        self.named = 0;
        self.tell("deallocate all")
    }

    /// The row that answers a statement which is used once; None where there is none.
    pub fn ask(&mut self, text: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<Option<Answer>, Failure> {
        let statement = self.parse(String::new(), text)?;
        self.first(&statement, parameters)
    }

    /// Performs a statement which is used once. How many rows it wrote.
    pub fn execute_once(&mut self, text: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<u64, Failure> {
        let statement = self.parse(String::new(), text)?;
        self.execute(&statement, parameters)
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
        // A server that refuses the statement or a row leaves unread what comes after it.
        frontend::copy_done(&mut self.outgoing);
        self.answer(|_| Ok(()))
    }

    /// Ends a copy that cannot go on, so that the connection can be used for something else. Returns why it cannot: what
    /// the server says then is that it was told to end it.
    fn give_up(&mut self, failure: Failure) -> Failure {
        let told = frontend::copy_fail("a row could not be made", &mut self.outgoing).map_err(unsaid);
        let _ = told.and_then(|()| self.answer(|_| Ok(())));
        failure
    }

    /// Says goodbye; the socket is closed when this is dropped.
    pub fn close(mut self) -> Result<(), Failure> {
        frontend::terminate(&mut self.outgoing);
        self.send()?
    }

    /// Says goodbye, and waits until the server has ended the connection as well: it has nothing left to do for it but to
    /// leave.
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
    fn answer(&mut self, take: impl FnMut(Message) -> Result<(), Failure>) -> Result<(), Failure> {
        let sent = self.send()?;
        self.listen(sent, take)
    }

    /// Hands over each message of an answer until the server is ready again; `result` is what there is so far.
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

    /// The next message of an answer that is to be looked at, which is none after an error. None where the server is ready
    /// again, or says nothing more.
    fn next_of(&mut self, result: &mut Result<(), Failure>) -> Option<Message> {
        loop {
            match self.receive() {
                Ok(Message::ReadyForQuery(_)) => return None,
                Ok(Message::ErrorResponse(body)) => *result = Err(said(&body)),
                // Those may come at any time, and are for people or for other clients.
                Ok(Message::NoticeResponse(_) | Message::ParameterStatus(_)) => {}
                Ok(Message::NotificationResponse(_)) => {}
                Ok(message) if result.is_ok() => return Some(message),
                Ok(_) => {}
                // A server that says why it ends a connection does not get ready again: that it ends says less.
                Err(failure) => {
                    if result.is_ok() {
                        *result = Err(failure);
                    }
                    return None;
                }
            }
        }
    }

    /// Sends what is written down. A failure of the outer kind where the limit ran out, after which a server is not waited
    /// for once more; the inner one is of a connection that the server has ended, and it may still have said why.
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

/// The one byte with which the server says whether it goes on in TLS. No more is read: what comes after it is the library's.
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
