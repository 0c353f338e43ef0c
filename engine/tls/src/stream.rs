//! A connection, whatever carries it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::connect_unspec;

use super::certificate::common_name;
use super::spec::{Agreement, Negotiated};
use super::{libssl, rustls, socket};

/// A connection over a non-blocking socket. Dropping it closes the socket.
///
/// Errors are `io::Error`: `WouldBlock` if the caller must wait for the socket (for writing if `wants_write`,
/// otherwise for reading); a TLS fault is `InvalidData` with the library's message.
pub enum Stream {
    Plain(OwnedFd),
    RustlsClient(Box<rustls::ClientStream>),
    RustlsServer(Box<rustls::ServerStream>),
    Libssl(libssl::Tls),
}

/// Calls the variant's method without `dyn`: the library is chosen once for a connection, so that the branch
/// is predicted.
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

    /// Continues the handshake. Returns Ok once it is complete, WouldBlock until then.
    pub fn handshake(&mut self) -> io::Result<()> {
        on!(self, plain _socket => Ok(()), tls stream => stream.handshake())
    }

    /// Continues the handshake of a client that writes at once. Its last message goes into the segment of
    /// that write, if the library leaves sending to this program.
    pub fn handshake_before_write(&mut self) -> io::Result<()> {
        match self {
            Stream::RustlsClient(tls) => tls.handshake_before_write(),
            other => other.handshake(),
        }
    }

    /// Reads the bytes that have arrived, at most a buffer full. Ok(0): the peer has ended the connection.
    ///
    /// Under TLS more bytes may wait here than in the socket, and no event reports them. Read until the
    /// expected bytes have come, or until WouldBlock. 16 KiB or more of room save a copy.
    pub fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        crate::calls::note("stream read");
        on!(self, plain socket => socket::receive(socket, into), tls stream => stream.read(into))
    }

    /// Takes bytes to send, and returns their number. After WouldBlock the same bytes must be offered again,
    /// because a library may have sealed them already.
    pub fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        on!(self, plain socket => socket::send(socket, from), tls stream => stream.write(from))
    }

    /// Returns true if the socket must become writable: bytes that were taken still wait, and `flush` sends
    /// them.
    pub fn wants_write(&self) -> bool {
        on!(self, plain _socket => false, tls stream => stream.wants_write())
    }

    /// Sends the bytes that were taken. Ok if none are left.
    pub fn flush(&mut self) -> io::Result<()> {
        on!(self, plain _socket => Ok(()), tls stream => stream.flush())
    }

    /// Tells the peer that nothing more will come, as far as the socket accepts it at once. A server must do
    /// this for clients that distinguish an end from a cut cable; the socket stays open until the stream is
    /// dropped.
    pub fn say_goodbye(&mut self) {
        on!(self, plain _socket => (), tls stream => stream.say_goodbye())
    }

    /// Returns true if an event of the socket will report further bytes: none wait in it, nor here. Without
    /// TLS only the reader knows that, by a last read that was `short` of its room.
    #[inline]
    pub fn has_emptied_socket(&self, short: bool) -> bool {
        match self {
            Stream::Plain(_) => short,
            Stream::RustlsClient(tls) => tls.has_emptied_socket(),
            Stream::RustlsServer(tls) => tls.has_emptied_socket(),
            // The library reads ahead, and does not report its buffered bytes.
            Stream::Libssl(_) => false,
        }
    }

    /// Returns true if the library holds bytes that it took from the socket, or the peer's end: no event of
    /// the socket reports them.
    #[inline]
    pub fn holds_more(&self) -> bool {
        on!(self, plain _socket => false, tls stream => stream.holds_more())
    }

    /// Ends the connection by a reset, and returns its socket, unconnected; None if it cannot be used again.
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

    /// Returns the agreed parameters by their numbers, if they are known: `negotiated` changes whenever this
    /// does.
    #[inline]
    pub fn agreement(&self) -> Option<Agreement> {
        match self {
            Stream::RustlsClient(tls) => tls.agreement(),
            Stream::RustlsServer(tls) => tls.agreement(),
            Stream::Plain(_) | Stream::Libssl(_) => None,
        }
    }

    /// Returns the common name in the peer's verified certificate, if the peer has sent one.
    pub fn peer_name(&self) -> Option<String> {
        let certificate = on!(self, plain _socket => None, tls stream => stream.peer_certificate());
        common_name(&certificate?)
    }

    /// Returns the agreed parameters; None without TLS, and before the handshake is complete.
    pub fn negotiated(&self) -> Option<Negotiated> {
        on!(self, plain _socket => None, tls stream => stream.negotiated())
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        on!(self, plain socket => socket.as_fd(), tls stream => stream.as_fd())
    }
}
