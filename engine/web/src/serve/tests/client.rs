//! A client that waits, with or without TLS.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{Shutdown, shutdown};
use serde_json::Value;

use crate::tls::{self, ClientSpec, Stream};

/// Time limit, long enough for a busy machine; only a hang reaches it.
const PATIENCE: Timespec = Timespec { tv_sec: 30, tv_nsec: 0 };

pub struct Client {
    pub socket: Waiting,
    pub held: Vec<u8>,
}

/// A stream that waits for its socket.
pub struct Waiting(Stream);

impl Waiting {
    /// Waits until the step is done. `plainly` is the event without TLS; under TLS the stream knows it.
    fn until<T>(
        &mut self,
        plainly: PollFlags,
        mut step: impl FnMut(&mut Stream) -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            match step(&mut self.0) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => (),
                outcome => return outcome,
            }
            let events = match &self.0 {
                Stream::Plain(_) => plainly,
                stream if stream.wants_write() => PollFlags::OUT,
                _ => PollFlags::IN,
            };
            assert_eq!(Ok(1), poll(&mut [PollFd::new(&self.0, events)], Some(&PATIENCE)), "nothing came");
        }
    }
}

impl Read for Waiting {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.until(PollFlags::IN, |stream| stream.read(into))
    }
}

impl Write for Waiting {
    /// Writes a piece, which under TLS gets its own record.
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        let count = self.until(PollFlags::OUT, |stream| stream.write(from))?;
        self.flush().map(|()| count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.until(PollFlags::OUT, Stream::flush)
    }
}

impl AsFd for Waiting {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[derive(Debug, PartialEq, Clone)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Client {
    /// Makes a client, with TLS if there is a `spec`.
    pub fn new(socket: TcpStream, spec: Option<&Value>) -> Client {
        socket.set_nodelay(true).unwrap();
        socket.set_nonblocking(true).unwrap();
        let stream = match spec {
            None => Stream::plain(OwnedFd::from(socket)),
            Some(spec) => {
                let spec: ClientSpec = serde_json::from_value(spec.clone()).unwrap();
                let stream = tls::Client::new(&spec).and_then(|client| client.open(OwnedFd::from(socket)));
                stream.unwrap_or_else(|failure| panic!("no connection for {spec:?}: {failure:?}"))
            }
        };
        let mut socket = Waiting(stream);
        socket.until(PollFlags::IN, Stream::handshake).unwrap();
        Client { socket, held: Vec::new() }
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.socket.write_all(bytes.as_ref()).unwrap();
    }

    pub fn end_sending(&self) {
        shutdown(&self.socket, Shutdown::Write).unwrap();
    }

    pub fn reply(&mut self) -> Reply {
        self.reply_to("GET")
    }

    pub fn reply_to(&mut self, method: &str) -> Reply {
        let end = loop {
            if let Some(end) = self.held.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            assert!(self.read_more() > 0, "the connection ended in a head: {:?}", self.held);
        };
        let head = String::from_utf8(self.held.drain(..end).collect()).unwrap();
        let length = header(&head, "Content-Length").expect("a length").parse().unwrap();
        let length = if method == "HEAD" { 0 } else { length };
        while self.held.len() < length {
            assert!(self.read_more() > 0, "the connection ended in a body");
        }
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Reply { status, head, body: self.held.drain(..length).collect() }
    }

    pub fn read_more(&mut self) -> usize {
        let mut piece = [0; 65536];
        let count = self.socket.read(&mut piece).unwrap();
        self.held.extend_from_slice(&piece[..count]);
        count
    }

    /// Returns true if the server has ended the connection without further bytes. Under TLS an end without a
    /// closing alert is a fault of the library's.
    pub fn is_ended(&mut self) -> bool {
        self.held.is_empty() && self.read_more() == 0
    }
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}
