//! Channels between a client and a database server: a Unix socket, TCP, or TLS over TCP.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::database::unanswered;
use super::task::Server;
use crate::failure::Failure;
use crate::tls::{Client, Stream};

pub enum Channel {
    Socket(PathBuf),
    Tcp(SocketAddr),
    /// TLS, requested over TCP in the server's own protocol.
    Tls(SocketAddr, Box<Client>),
}

impl Channel {
    /// Makes the channel that a task names; `socket` is the Unix socket for a server without an address.
    pub fn of(server: &Server, socket: PathBuf) -> Result<Channel, Failure> {
        Ok(match (server.address, &server.tls) {
            (None, None) => Channel::Socket(server.pooler.clone().unwrap_or(socket)),
            (Some(address), None) => Channel::Tcp(address),
            (Some(address), Some(spec)) => Channel::Tls(address, Box::new(Client::new(spec)?)),
            (None, Some(_)) => {
                return Err(Failure::Unsupported("TLS of a database needs TCP".to_owned()));
            }
        })
    }

    /// Returns the TLS library; None without TLS.
    pub fn library(&self) -> Option<String> {
        match self {
            Channel::Tls(_, client) => Some(client.library()),
            Channel::Socket(_) | Channel::Tcp(_) => None,
        }
    }

    /// Opens a connection, on which only the channel's own bytes were sent: `ask` requests TLS, and returns
    /// the answer. Each wait on the connection ends at the limit.
    pub fn open<T>(
        &self,
        title: &str,
        limit: Duration,
        ask: impl FnOnce(&mut TcpStream) -> Result<T, Failure>,
    ) -> Result<(Stream, Option<T>), Failure> {
        let late = |error: io::Error, doing: &str| match is_late(&error) {
            true => unanswered(title, limit),
            false => Failure::Failed(format!("{title}: {doing}: {error}")),
        };
        match self {
            Channel::Socket(path) => {
                let opened = UnixStream::connect(path).and_then(|socket| {
                    socket.set_read_timeout(Some(limit))?;
                    socket.set_write_timeout(Some(limit))?;
                    Ok(Stream::plain(OwnedFd::from(socket)))
                });
                let opened =
                    opened.map_err(|error| late(error, &format!("no connection to {}", path.display())));
                Ok((opened?, None))
            }
            Channel::Tcp(address) => {
                let socket = tcp(address, limit);
                let socket = socket.map_err(|error| late(error, &format!("no connection to {address}")))?;
                Ok((Stream::plain(OwnedFd::from(socket)), None))
            }
            Channel::Tls(address, client) => {
                let socket = tcp(address, limit);
                let mut socket =
                    socket.map_err(|error| late(error, &format!("no connection to {address}")))?;
                let told = ask(&mut socket)?;
                let mut stream = client.open(OwnedFd::from(socket))?;
                let begun = Instant::now();
                // The socket blocks: it is not ready only if a wait reached the limit, or if the client has
                // just sent and did not wait.
                loop {
                    match stream.handshake() {
                        Ok(()) => return Ok((stream, Some(told))),
                        Err(error) if is_late(&error) && begun.elapsed() < limit => {}
                        Err(error) => return Err(late(error, "the TLS handshake with it")),
                    }
                }
            }
        }
    }
}

fn tcp(address: &SocketAddr, limit: Duration) -> io::Result<TcpStream> {
    let socket = TcpStream::connect_timeout(address, limit)?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(limit))?;
    socket.set_write_timeout(Some(limit))?;
    Ok(socket)
}

/// Returns true if the socket's limit was reached.
pub fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
