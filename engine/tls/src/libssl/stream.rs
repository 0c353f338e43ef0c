//! A connection: the library reads and writes the socket by itself.

use std::cell::Cell;
use std::ffi::{CStr, c_int, c_uchar, c_void};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use super::api::{Api, Handle, Owned, text};
use super::context::Context;
use super::shared::{Shared, der, refusal};
use crate::failure::Failure;
use crate::spec::{MacOrder, Negotiated, Protocol};

const ERROR_SSL: c_int = 1;
const ERROR_WANT_READ: c_int = 2;
const ERROR_WANT_WRITE: c_int = 3;
const ERROR_SYSCALL: c_int = 5;
const ERROR_ZERO_RETURN: c_int = 6;
/// Flag that the alert was sent and received: both sides are done.
const SHUT_DOWN: c_int = 3;
const TLS_12: c_int = 0x0303;

pub struct Tls {
    // The drop order matters: the connection, the socket it uses, the state that its context's callbacks use.
    connection: Owned,
    socket: OwnedFd,
    api: &'static Api,
    /// True if the last step stopped because the socket accepted no more.
    wants_write: bool,
    client: Option<Arc<Shared>>,
    /// Values of the context, for a library whose connection does not keep them.
    group_bits: c_int,
    only_group: Option<&'static str>,
    /// MAC order of a client's connection; None: not recorded.
    mac_order: Option<MacOrder>,
}

impl Tls {
    pub fn new(context: &Context, socket: OwnedFd, client: Option<Arc<Shared>>) -> Result<Tls, Failure> {
        let api = context.api;
        api.clear_errors();
        // SAFETY: the context is alive, and the caller owns the connection.
        let connection = unsafe { api.crypto.own((api.SSL_new)(context.raw()), api.SSL_free, "SSL_new")? };
        // SAFETY: the connection is alive, and the socket outlives it.
        let done = unsafe { (api.SSL_set_fd)(connection.raw(), socket.as_raw_fd()) };
        api.crypto.ensure(done == 1, "SSL_set_fd")?;
        Ok(Tls {
            connection,
            socket,
            api,
            wants_write: false,
            client,
            group_bits: context.group_bits,
            only_group: context.only_group,
            mac_order: None,
        })
    }

    pub fn raw(&self) -> Handle {
        self.connection.raw()
    }

    /// Makes the client send the server's name.
    pub fn names(&self, name: &CStr) {
        self.api.dialect.host_name(&self.connection, name);
    }

    /// Records the order of MAC and encryption that the server agrees to.
    pub fn note_mac_order(&mut self) {
        self.mac_order = Some(MacOrder::MacThenEncrypt);
        self.api.dialect.note_extensions(&self.connection, note_extension);
    }

    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub fn handshake(&mut self) -> io::Result<()> {
        let step = self.api.SSL_do_handshake;
        ENCRYPTS_THEN_MACS.set(false);
        // SAFETY: the step gets this connection, which is alive.
        let done = self.step("handshake", |connection| unsafe { step(connection) });
        if ENCRYPTS_THEN_MACS.get() {
            self.mac_order = Some(MacOrder::EncryptThenMac);
        }
        match done? {
            0 => {
                let words = "the peer ended the connection in the middle of the handshake";
                Err(io::Error::new(ErrorKind::UnexpectedEof, words))
            }
            _ => {
                if let Some(sessions) = self.client.as_ref().and_then(|client| client.sessions.as_ref()) {
                    sessions.finished(self.raw());
                }
                Ok(())
            }
        }
    }

    pub fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        let (read, length) = (self.api.SSL_read, whole(into.len()));
        // SAFETY: the connection is alive, and the length is at most the buffer's.
        self.step("reading", |connection| unsafe { read(connection, into.as_mut_ptr().cast(), length) })
    }

    pub fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        if from.is_empty() {
            return Ok(0);
        }
        let (write, length) = (self.api.SSL_write, whole(from.len()));
        // SAFETY: the connection is alive, and the length is at most the buffer's.
        match self.step("writing", |connection| unsafe { write(connection, from.as_ptr().cast(), length) })? {
            0 => Err(ErrorKind::BrokenPipe.into()),
            count => Ok(count),
        }
    }

    pub fn wants_write(&self) -> bool {
        self.wants_write
    }

    /// Clears the flag. The next step of any kind sends the library's bytes, of which it takes no more than
    /// it can send.
    pub fn flush(&mut self) -> io::Result<()> {
        self.wants_write = false;
        Ok(())
    }

    /// Returns true if the library holds bytes that it read ahead, or cannot tell; in that case it must be
    /// read until it waits.
    pub fn holds_more(&self) -> bool {
        // SAFETY: the connection is alive.
        self.api.SSL_has_pending.is_none_or(|has_pending| unsafe { has_pending(self.raw()) } == 1)
    }

    pub fn say_goodbye(&mut self) {
        if self.is_finished() {
            let shut_down = self.api.SSL_shutdown;
            // SAFETY: the connection is alive.
            let _ = self.step("closing", |connection| unsafe { shut_down(connection) });
        }
    }

    fn is_finished(&self) -> bool {
        // SAFETY: the connection is alive.
        (unsafe { (self.api.SSL_is_init_finished)(self.raw()) }) == 1
    }

    /// Performs a step and interprets its result. Ok(0): the peer has ended the connection.
    fn step(&mut self, what: &str, step: impl FnOnce(Handle) -> c_int) -> io::Result<usize> {
        // Errors of another connection on this thread must not be reported for this one.
        self.api.clear_errors();
        refusal();
        clear_errno();
        self.wants_write = false;
        let connection = self.raw();
        let answer = match self.client.as_ref().and_then(|client| client.sessions.as_ref()) {
            Some(sessions) => sessions.during(|| step(connection)),
            None => step(connection),
        };
        if answer > 0 {
            return Ok(answer as usize);
        }
        // The error is read before anything else can change it.
        let system = io::Error::last_os_error();
        // SAFETY: the connection is alive.
        match unsafe { (self.api.SSL_get_error)(connection, answer) } {
            ERROR_WANT_READ => Err(ErrorKind::WouldBlock.into()),
            ERROR_WANT_WRITE => {
                self.wants_write = true;
                Err(ErrorKind::WouldBlock.into())
            }
            ERROR_ZERO_RETURN => Ok(0),
            ERROR_SYSCALL if answer == 0 || system.raw_os_error() == Some(0) => Ok(0),
            ERROR_SYSCALL => Err(system),
            ERROR_SSL => {
                let words = refusal().unwrap_or_else(|| self.api.words(what));
                Err(io::Error::new(ErrorKind::InvalidData, words))
            }
            other => Err(io::Error::other(format!("{}: {what}: SSL_get_error {other}", self.api.name()))),
        }
    }

    pub fn peer_certificate(&self) -> Option<Vec<u8>> {
        let get = self.api.SSL_get1_peer_certificate.or(self.api.SSL_get_peer_certificate)?;
        // SAFETY: the connection is alive, and returns a certificate that the caller must free, or null.
        let certificate = unsafe { Owned::new(get(self.raw()), self.api.X509_free)? };
        der(self.api, certificate.raw())
    }

    pub fn negotiated(&self) -> Option<Negotiated> {
        let (api, connection) = (self.api, self.raw());
        if !self.is_finished() {
            return None;
        }
        // SAFETY: the connection is alive, and so are its suite and the suite's name.
        let (number, suite, resumed) = unsafe {
            let suite = (api.SSL_get_current_cipher)(connection);
            let suite = if suite.is_null() { None } else { text((api.SSL_CIPHER_standard_name)(suite)) };
            let resumed = (api.SSL_session_reused)(connection) == 1;
            ((api.SSL_version)(connection), suite.unwrap_or_default(), resumed)
        };
        let version = match number {
            TLS_12 => Protocol::Tls12.name().to_owned(),
            0x0304 => Protocol::Tls13.name().to_owned(),
            other => format!("version {other:#06x}"),
        };
        let group = match resumed && number <= TLS_12 {
            true => String::new(),
            false => self.group(&suite),
        };
        let mac_order = self.mac_order.filter(|_| suite.contains("_CBC_"));
        let (certificate, certificate_key) = Default::default();
        // The peer of a server may have sent certificates too.
        let certificate_bytes = if self.client.is_some() && !resumed { self.shown_bytes() } else { 0 };
        let mut negotiated = Negotiated {
            version,
            suite,
            mac_order,
            group,
            certificate,
            certificate_key,
            certificate_bytes,
            resumed,
        };
        if let Some(client) = &self.client {
            client.describe(&mut negotiated);
        }
        Some(negotiated)
    }

    /// Returns the bytes in DER of all certificates that the server has sent.
    fn shown_bytes(&self) -> u64 {
        let api = self.api;
        // SAFETY: the connection is alive, and owns the chain, or returns null.
        let chain = unsafe { api.dialect.all_of((api.SSL_get_peer_cert_chain)(self.raw())) };
        // SAFETY: the chain's certificates are alive while it is; without a buffer the call only returns the
        // length.
        let bytes = |one| unsafe { (api.i2d_X509)(one, std::ptr::null_mut()) };
        chain.into_iter().map(|one| u64::try_from(bytes(one)).unwrap_or_default()).sum()
    }

    fn group(&self, suite: &str) -> String {
        if suite.starts_with("TLS_RSA_") {
            return "RSA".to_owned();
        }
        if suite.starts_with("TLS_DHE_") {
            return format!("DHE {} bits", self.exchange_key().map_or(self.group_bits, |(_, bits)| bits));
        }
        if let Some(name) = self.api.SSL_get0_group_name {
            // SAFETY: the connection is alive, and returns a string that the library owns, or null.
            if let Some(name) = unsafe { text(name(self.raw())) } {
                return name;
            }
        }
        if let Some(number) = self.api.dialect.group_on_the_wire(&self.connection) {
            return crate::names::group(number);
        }
        // These are the library's own numbers, the same in every version.
        match (self.api.dialect.group_number(&self.connection), self.exchange_key()) {
            (415, _) | (_, Some((408, 256))) => "secp256r1".to_owned(),
            (715, _) | (_, Some((408, 384))) => "secp384r1".to_owned(),
            (716, _) | (_, Some((408, 521))) => "secp521r1".to_owned(),
            (1034, _) | (_, Some((1034, _))) => "x25519".to_owned(),
            (1035, _) | (_, Some((1035, _))) => "x448".to_owned(),
            (0, None) => self.only_group.unwrap_or_default().to_owned(),
            (number, _) => format!("group {number}"),
        }
    }

    /// Returns kind and bits of the peer's ephemeral key, or else one's own.
    fn exchange_key(&self) -> Option<(c_int, c_int)> {
        let api = self.api;
        let kind = api.EVP_PKEY_get_id.or(api.EVP_PKEY_id)?;
        let bits = api.EVP_PKEY_get_bits.or(api.EVP_PKEY_bits)?;
        let keys = api.dialect.exchange_keys(&self.connection).into_iter();
        // SAFETY: this owner must free each key.
        let keys: Vec<Owned> =
            keys.filter_map(|key| unsafe { Owned::new(key, api.crypto.EVP_PKEY_free) }).collect();
        // SAFETY: the key is alive.
        keys.first().map(|key| unsafe { (kind(key.raw()), bits(key.raw())) })
    }
}

impl Drop for Tls {
    fn drop(&mut self) {
        // A connection freed without a closing alert invalidates its session, on either side, so that it
        // would never be resumed. Most HTTP clients just close and still resume; so must these.
        // SAFETY: the connection is alive until its field is dropped.
        unsafe { (self.api.SSL_set_shutdown)(self.raw(), SHUT_DOWN) };
    }
}

thread_local! {
    /// True if the server of the current step has accepted encrypt-then-MAC.
    static ENCRYPTS_THEN_MACS: Cell<bool> = const { Cell::new(false) };
}

/// Number of the extension encrypt-then-MAC (RFC 7366) in a hello.
const ENCRYPT_THEN_MAC: c_int = 22;

/// Records encrypt-then-MAC; the library calls this with each extension in the server's hello.
unsafe extern "C" fn note_extension(
    _connection: Handle,
    _is_servers: c_int,
    extension: c_int,
    _content: *const c_uchar,
    _length: c_int,
    _given: *mut c_void,
) {
    if extension == ENCRYPT_THEN_MAC {
        ENCRYPTS_THEN_MACS.set(true);
    }
}

/// Clears the system's error. Not every failure of the library sets it, and it may be left from any earlier
/// call.
fn clear_errno() {
    // SAFETY: the variable is this thread's own.
    unsafe { *libc::__errno_location() = 0 }
}

fn whole(length: usize) -> c_int {
    c_int::try_from(length).unwrap_or(c_int::MAX)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::super::context::Method;
    use super::super::library;
    use super::super::shared::refuse;
    use super::*;
    use crate::spec::Asked;

    const ANYTHING: Asked = Asked { protocol: None, key_exchange: None, cipher: None, signer: None };

    /// Returns a client's connection, and the other end of its socket, or None without a libssl.
    fn connected() -> Option<(Tls, UnixStream)> {
        let api = library::open(None).ok()?;
        let context = Context::new(api, Method::Client, ANYTHING, true).expect("a context");
        let (near, far) = UnixStream::pair().expect("a pair of sockets");
        near.set_nonblocking(true).expect("a socket that does not block");
        let tls = Tls::new(&context, near.into(), None).expect("a connection");
        // SAFETY: the connection is alive.
        unsafe { (api.SSL_set_connect_state)(tls.raw()) };
        Some((tls, far))
    }

    /// A failure of the library without a system error must not be reported with an earlier one.
    #[test]
    fn an_old_error_of_the_system_is_not_told_of_a_connection() {
        let Some((mut tls, _far)) = connected() else { return };
        // SAFETY: the variable is this thread's own.
        unsafe { *libc::__errno_location() = libc::ECONNRESET };
        assert_eq!(0, tls.step("a step", |_| -1).expect("an end without a word"));
    }

    /// Neither the refusal of another server nor an earlier error of the library is reported for this
    /// connection.
    #[test]
    fn the_refusal_of_another_connection_is_not_told_of_this_one() {
        let Some((mut tls, mut far)) = connected() else { return };
        refuse("the certificate of another".to_owned());
        assert!(tls.api.certificates("-----BEGIN CERTIFICATE-----\nrubbish").expect("read").is_empty());
        far.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").expect("no TLS");
        let words = tls.handshake().expect_err("no TLS").to_string();
        assert!(words.contains("handshake") && !words.contains("another"), "{words}");
    }

    /// A library without memory for reading PEM, or without a protocol, is refused with a reason.
    #[test]
    fn what_a_library_does_not_give_is_a_reason() {
        let Ok(api) = library::open(None) else { return };
        unsafe extern "C" fn none() -> Handle {
            std::ptr::null_mut()
        }
        let mut poor = api.clone();
        poor.crypto.dialect = poor.crypto.dialect.without_memory();
        poor.TLS_client_method = none;
        let poor: &'static Api = Box::leak(Box::new(poor));
        assert!(poor.certificates("").is_err());
        assert!(Context::new(poor, Method::Client, ANYTHING, true).is_err());
    }
}
