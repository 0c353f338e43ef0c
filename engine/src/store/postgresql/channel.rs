//! How a client and a PostgreSQL server reach each other: a Unix socket, TCP, or TLS over TCP.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use postgres_protocol::message::frontend;

use super::super::database::unanswered;
use super::super::task::Server;
use super::answer::broken;
use crate::failure::Failure;
use crate::tls::{Client, Stream};

pub enum Channel {
    Socket(PathBuf),
    Tcp(SocketAddr),
    /// Asked for by PostgreSQL's own request over TCP (SSLRequest).
    Tls(SocketAddr, Box<Client>),
}

impl Channel {
    /// The server's Unix socket, for whom its permissions let in.
    pub fn socket_of(server: &Server) -> Channel {
        Channel::Socket(server.socket.join(format!(".s.PGSQL.{}", server.port.unwrap_or(5432))))
    }

    /// The one that a task names: its Unix socket where it says no address.
    pub fn of(server: &Server) -> Result<Channel, Failure> {
        Ok(match (server.address, &server.tls) {
            (None, None) => server.pooler.clone().map_or_else(|| Channel::socket_of(server), Channel::Socket),
            (Some(address), None) => Channel::Tcp(address),
            (Some(address), Some(spec)) => Channel::Tls(address, Box::new(Client::new(spec)?)),
            (None, Some(_)) => {
                return Err(Failure::Unsupported("PostgreSQL has TLS over TCP alone".to_owned()));
            }
        })
    }

    /// The TLS library at work; None in clear.
    pub fn library(&self) -> Option<String> {
        match self {
            Channel::Tls(_, client) => Some(client.library()),
            Channel::Socket(_) | Channel::Tcp(_) => None,
        }
    }

    /// A connection on which nothing was said yet but what its channel takes. Each wait on it ends at the limit.
    pub fn open(&self, limit: Duration) -> Result<Stream, Failure> {
        let late = |error: io::Error, doing: &str| match is_late(&error) {
            true => unanswered("PostgreSQL", limit),
            false => broken(format!("{doing}: {error}")),
        };
        match self {
            Channel::Socket(path) => {
                let opened = UnixStream::connect(path).and_then(|socket| {
                    socket.set_read_timeout(Some(limit))?;
                    socket.set_write_timeout(Some(limit))?;
                    Ok(Stream::plain(OwnedFd::from(socket)))
                });
                opened.map_err(|error| late(error, &format!("no connection to {}", path.display())))
            }
            Channel::Tcp(address) => {
                let socket = tcp(address, limit);
                let socket = socket.map_err(|error| late(error, &format!("no connection to {address}")))?;
                Ok(Stream::plain(OwnedFd::from(socket)))
            }
            Channel::Tls(address, client) => {
                let socket = tcp(address, limit);
                let mut socket =
                    socket.map_err(|error| late(error, &format!("no connection to {address}")))?;
                match ask_for_tls(&mut socket).map_err(|error| late(error, "asking it for TLS"))? {
                    b'S' => {}
                    _ => return Err(broken("it has no TLS for this connection")),
                }
                let mut stream = client.open(OwnedFd::from(socket))?;
                let begun = Instant::now();
                // A blocking socket: it is not ready only where one of its waits took as long as the limit, or where the
                // client has just spoken and nothing was waited for.
                loop {
                    match stream.handshake() {
                        Ok(()) => return Ok(stream),
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

/// The one byte with which the server says whether it goes on in TLS. No more is read: what comes after it is the library's.
fn ask_for_tls(socket: &mut TcpStream) -> io::Result<u8> {
    let mut request = BytesMut::new();
    frontend::ssl_request(&mut request);
    socket.write_all(&request)?;
    let mut answer = [0];
    socket.read_exact(&mut answer)?;
    Ok(answer[0])
}

/// Whether the socket's limit ran out.
pub fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
