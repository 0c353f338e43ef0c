//! One connection, whatever carries it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::connect_unspec;

use super::certificate::common_name;
use super::spec::{Agreement, Negotiated};
use super::{libssl, rustls, socket};

/// One connection over a socket that does not block. Dropping it closes the socket.
///
/// Errors are `io::Error`: `WouldBlock` when the socket has to be waited for (for writing if `wants_write`,
/// else for reading); a TLS fault is `InvalidData` with the library's words.
pub enum Stream {
    Plain(OwnedFd),
    RustlsClient(Box<rustls::ClientStream>),
    RustlsServer(Box<rustls::ServerStream>),
    Libssl(libssl::Tls),
}

/// No `dyn`: which library it is, is decided once for a connection and predicted ever after.
macro_rules! on {
    ($stream:expr, plain $socket:ident => $plain:expr, tls $tls:ident => $secured:expr) => {
        match $stream {
            Stream::Plain($socket) => $plain,
            Stream::RustlsClient($tls) => $secured,
            Stream::RustlsServer($tls) => $secured,
            Stream::Libssl($tls) => $secured,
        }
    };
}

impl Stream {
    pub fn plain(socket: OwnedFd) -> Stream {
        Stream::Plain(socket)
    }

    /// Goes on with the handshake. Ok once it is complete; WouldBlock until then.
    pub fn handshake(&mut self) -> io::Result<()> {
        on!(self, plain _socket => Ok(()), tls stream => stream.handshake())
    }

    /// Does the same for a client that writes at once: its last handshake message goes into the segment of that write,
    /// where the library leaves sending to this program.
    pub fn handshake_before_write(&mut self) -> io::Result<()> {
        match self {
            Stream::RustlsClient(tls) => tls.handshake_before_write(),
            other => other.handshake(),
        }
    }

    /// Reads what has come, at most a buffer full. Ok(0): the peer has ended the connection.
    ///
    /// Under TLS more may wait in here than in the socket, where nothing will tell of it: read until what is
    /// expected has come, or until WouldBlock. 16 KiB or more of room spare a copy.
    pub fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        #[cfg(test)]
        crate::calls::tests::note("stream read");
        on!(self, plain socket => socket::receive(socket, into), tls stream => stream.read(into))
    }

    /// Takes bytes to send, and says how many it took. After WouldBlock the same bytes have to be offered
    /// again, because a library may have sealed them already.
    pub fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        on!(self, plain socket => socket::send(socket, from), tls stream => stream.write(from))
    }

    /// Whether the socket has to become writable: bytes that were taken still wait, and `flush` sends them.
    pub fn wants_write(&self) -> bool {
        on!(self, plain _socket => false, tls stream => stream.wants_write())
    }

    /// Sends what was taken. Ok when nothing is left.
    pub fn flush(&mut self) -> io::Result<()> {
        on!(self, plain _socket => Ok(()), tls stream => stream.flush())
    }

    /// Tells the peer that nothing more will come, as far as the socket takes it at once. A server owes this
    /// to clients that tell an end from a cut cable; the socket stays open until the stream is dropped.
    pub fn say_goodbye(&mut self) {
        on!(self, plain _socket => (), tls stream => stream.say_goodbye())
    }

    /// Whether an event of the socket will say of anything more that comes: nothing waits in it, nor in here.
    /// In clear only the reader knows, whose last read was `short` of its room.
    #[inline]
    pub fn has_emptied_socket(&self, short: bool) -> bool {
        match self {
            Stream::Plain(_) => short,
            Stream::RustlsClient(tls) => tls.has_emptied_socket(),
            Stream::RustlsServer(tls) => tls.has_emptied_socket(),
            // Reads ahead, and keeps what it read to itself.
            Stream::Libssl(_) => false,
        }
    }

    /// Returns whether the library holds bytes that it took from the socket, or the peer's end: no event of the socket reports them.
    #[inline]
    pub fn holds_more(&self) -> bool {
        on!(self, plain _socket => false, tls stream => stream.holds_more())
    }

    /// Ends the connection by a reset, and returns its socket, unconnected; None where it cannot be used again.
    pub fn reset(self) -> Option<OwnedFd> {
        let socket = match self {
            Stream::Plain(socket) => socket,
            Stream::RustlsClient(tls) => tls.into_socket(),
            Stream::RustlsServer(tls) => tls.into_socket(),
            // The library closes a connection with its descriptor.
            Stream::Libssl(_) => return None,
        };
        connect_unspec(&socket).ok().map(|()| socket)
    }

    /// What was agreed on, where that is known without its names: as often as it changes, `negotiated` does.
    #[inline]
    pub fn agreement(&self) -> Option<Agreement> {
        match self {
            Stream::RustlsClient(tls) => tls.agreement(),
            Stream::RustlsServer(tls) => tls.agreement(),
            Stream::Plain(_) | Stream::Libssl(_) => None,
        }
    }

    /// The common name in the certificate that the peer has shown and that was verified, if it has shown one.
    pub fn peer_name(&self) -> Option<String> {
        let certificate = on!(self, plain _socket => None, tls stream => stream.peer_certificate());
        common_name(&certificate?)
    }

    /// What was agreed on; None in clear, and before the handshake is complete.
    pub fn negotiated(&self) -> Option<Negotiated> {
        on!(self, plain _socket => None, tls stream => stream.negotiated())
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        on!(self, plain socket => socket.as_fd(), tls stream => stream.as_fd())
    }
}
