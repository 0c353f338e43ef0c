//! Every library with every other, over socket pairs, both ends driven by one thread.

mod agreement;
mod forks;
mod refusals;
mod resumption;
mod segments;

use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use tollbar_testing::{
    AUTHORITY, Certificate, DH_2048, REVOCATIONS, STALE_AUTHORITY, STALE_REVOCATIONS, certificate, wheel,
};

use super::spec::{Cipher, Identity, MacOrder, Resumption};
use super::*;

/// Returns a certificate of the fixtures with its key.
pub fn identity(name: &str) -> Identity {
    let Certificate { chain_pem, key_pem } = certificate(name);
    Identity { chain_pem, key_pem }
}

/// Returns the length of all certificates of a chain, in DER.
pub fn der_bytes(identity: &Identity) -> u64 {
    let chain = certificate::chain(&identity.chain_pem).expect("a chain");
    chain.iter().map(|one| one.len() as u64).sum()
}

/// A library to test, and its name in a spec.
#[derive(Clone, Debug)]
pub struct Subject {
    pub library: Library,
    pub libcrypto: Option<String>,
    /// True if it has the features since OpenSSL 3.5: ML-KEM and ML-DSA.
    pub today: bool,
}

/// Returns rustls, the system's libssl, and another if there is one: the named one, or one from the
/// environment's wheels.
pub fn subjects() -> Vec<Subject> {
    let mut subjects = vec![
        Subject { library: Library::Rustls, libcrypto: None, today: true },
        libssl(None).expect("a system with a libssl"),
    ];
    let another = [named(), wheel()].into_iter().flatten().find_map(|path| libssl(Some(path)));
    if another.is_none() {
        lacking("no libssl in a wheel; name its libcrypto in TOLLBAR_LIBCRYPTO");
    }
    subjects.extend(another);
    subjects
}

/// Returns the libcrypto to test, whose folder must have a libssl.
fn named() -> Option<String> {
    std::env::var("TOLLBAR_LIBCRYPTO").ok()
}

/// Returns a subject, or None for a fork's, which has its own tests. A file that exists but does not load is
/// a failure.
fn libssl(libcrypto: Option<String>) -> Option<Subject> {
    let mut subject = Subject { library: Library::Libssl, libcrypto, today: false };
    let name = client(&subject.client(Protocol::Tls13)).library();
    let version: Vec<u32> =
        name.strip_prefix("openssl ")?.split('.').filter_map(|part| part.parse().ok()).collect();
    subject.today = version.as_slice() >= [3, 5].as_slice();
    Some(subject)
}

impl Subject {
    pub fn client(&self, protocol: Protocol) -> ClientSpec {
        ClientSpec {
            library: self.library,
            libcrypto: self.libcrypto.clone(),
            protocol: Some(protocol),
            key_exchange: Some(KeyExchange::X25519),
            cipher: Some(Cipher::Aes128Gcm),
            mac_order: None,
            signer: None,
            certificate_pem: None,
            rsa_bits: 0,
            identity: None,
            revoked: None,
            resume: false,
            name: "localhost".to_owned(),
        }
    }

    pub fn server(&self, protocol: Protocol) -> ServerSpec {
        ServerSpec {
            library: self.library,
            libcrypto: self.libcrypto.clone(),
            protocol: Some(protocol),
            key_exchange: Some(KeyExchange::X25519),
            cipher: Some(Cipher::Aes128Gcm),
            mac_order: None,
            dh_parameters_pem: None,
            identities: vec![identity("ecdsa-p256")],
            resumption: Resumption::None,
            client_authority_pem: None,
            client_revocations_pem: None,
        }
    }
}

/// Returns each pair of libraries: the client's and the server's.
pub fn pairs() -> Vec<(Subject, Subject)> {
    let all = subjects();
    all.iter().flat_map(|client| all.iter().map(|server| (client.clone(), server.clone()))).collect()
}

/// Both ends of a connection, after the handshake.
#[derive(Debug)]
pub struct Met {
    pub client: Stream,
    pub server: Stream,
}

/// Messages with which either end gave up.
#[derive(Debug)]
pub struct Broken {
    pub client: Option<String>,
    pub server: Option<String>,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{:?}", self.negotiated())
    }
}

/// Makes a client, or panics with its spec.
pub fn client(spec: &ClientSpec) -> Client {
    Client::new(spec).unwrap_or_else(|failure| panic!("{failure:?} of {spec:?}"))
}

pub fn server(spec: &ServerSpec) -> Server {
    Server::new(spec).unwrap_or_else(|failure| panic!("{failure:?} of {spec:?}"))
}

pub fn meet(client: &Client, server: &Server) -> Result<Met, Broken> {
    let (near, far) = socket_pair();
    let mut client = client.open(near).expect("a client's connection");
    let mut server = server.accept(far).expect("a server's connection");
    let mut broken = Broken { client: None, server: None };
    // The limit exceeds the turns of any handshake, so that a stuck one ends with a message too.
    for _ in 0..20 {
        let (near, far) = (client.handshake(), server.handshake());
        if near.is_ok() && far.is_ok() {
            return Ok(Met { client, server });
        }
        let words = |end: io::Result<()>| {
            end.err().filter(|error| error.kind() != ErrorKind::WouldBlock).map(|error| error.to_string())
        };
        broken.client = broken.client.or(words(near));
        broken.server = broken.server.or(words(far));
    }
    Err(broken)
}

/// Sends and receives all bytes, or returns the error.
pub fn carry(from: &mut Stream, to: &mut Stream, data: &[u8]) -> Result<Vec<u8>, String> {
    let (mut sent, mut received) = (0, Vec::new());
    let mut buffer = vec![0; 20_000];
    let patient = |step: io::Result<usize>| match step {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
        Err(error) => Err(error.to_string()),
        Ok(count) => Ok(count),
    };
    for _ in 0..10_000 {
        if sent < data.len() {
            sent += patient(from.write(&data[sent..]))?;
        }
        if from.wants_write() {
            patient(from.flush().map(|()| 0))?;
        }
        let count = patient(to.read(&mut buffer))?;
        received.extend_from_slice(&buffer[..count]);
        if received.len() >= data.len() {
            return Ok(received);
        }
    }
    Err(format!("{} of {} bytes arrived", received.len(), data.len()))
}

/// Waits for bytes or an end, with a limit.
pub fn wait_for(stream: &Stream) {
    let limit = Timespec { tv_sec: 10, tv_nsec: 0 };
    assert_eq!(Ok(1), poll(&mut [PollFd::new(stream, PollFlags::IN)], Some(&limit)), "nothing came");
}

fn socket_pair() -> (OwnedFd, OwnedFd) {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).expect("a pair of sockets")
}
