//! Connections, with or without TLS, over non-blocking sockets: one interface for clients and servers,
//! whatever library does the cryptography.
//!
//! rustls on AWS-LC does all it supports. A libssl bound at run time does the rest (RSA key exchange,
//! finite-field Diffie–Hellman, CBC suites, RSA keys under 2048 bits), and is used if a task names one.

mod certificate;
mod choice;
mod libssl;
mod names;
mod rustls;
mod socket;
mod spec;
mod stream;
#[cfg(test)]
pub mod tests;

use std::os::fd::OwnedFd;

use tollbar_contract::{calls, contract, failure, provider};
use tollbar_primitives::op::Kind;
use tollbar_primitives::{binding, families, libcrypto};
#[cfg(test)]
use tollbar_testing::{lacking, skipped};

use crate::failure::Failure;

pub use libssl::making;
pub use spec::{Agreement, ClientSpec, KeyExchange, Library, Negotiated, Protocol, ServerSpec, Signer};
pub use stream::Stream;

/// A libcrypto, and the clients of the libssl in its folder.
pub const LIBCRYPTO: Kind = (tollbar_primitives::op::LIBCRYPTO.0, |name, cpu| {
    Ok(Box::new(making::WithClients(libcrypto::open(name.path.as_deref(), cpu)?)))
});

/// Maker of connections of one kind, with their shared configuration and sessions.
pub enum Client {
    Rustls(rustls::Client),
    Libssl(libssl::Client),
}

impl Client {
    /// Makes a client. Returns `Unsupported` with the library's message if the library cannot be configured
    /// as requested.
    pub fn new(spec: &ClientSpec) -> Result<Client, Failure> {
        spec.asked().check()?;
        match spec.library() {
            Library::Libssl => Ok(Client::Libssl(libssl::Client::new(spec)?)),
            Library::Rustls | Library::Auto => Ok(Client::Rustls(rustls::Client::new(spec)?)),
        }
    }

    /// Names the libraries for the receipt: `rustls 0.23.46 (aws-lc-rs 1.19.1)`, `openssl 3.5.9`.
    pub fn library(&self) -> String {
        match self {
            Client::Rustls(_) => rustls::library(),
            Client::Libssl(client) => client.library(),
        }
    }

    /// Opens a connection over a socket that is connected or connecting.
    pub fn open(&self, socket: OwnedFd) -> Result<Stream, Failure> {
        match self {
            Client::Rustls(client) => Ok(Stream::RustlsClient(Box::new(client.open(socket)?))),
            Client::Libssl(client) => Ok(Stream::Libssl(client.open(socket)?)),
        }
    }
}

/// Acceptor of connections of one kind.
pub enum Server {
    Rustls(rustls::Server),
    Libssl(libssl::Server),
}

impl Server {
    /// Makes a server. Returns `Unsupported` with the library's message if the library cannot be configured
    /// as requested.
    pub fn new(spec: &ServerSpec) -> Result<Server, Failure> {
        spec.check()?;
        match spec.library()? {
            Library::Libssl => Ok(Server::Libssl(libssl::Server::new(spec)?)),
            Library::Rustls | Library::Auto => Ok(Server::Rustls(rustls::Server::new(spec)?)),
        }
    }

    pub fn library(&self) -> String {
        match self {
            Server::Rustls(_) => rustls::library(),
            Server::Libssl(server) => server.library(),
        }
    }

    pub fn accept(&self, socket: OwnedFd) -> Result<Stream, Failure> {
        match self {
            Server::Rustls(server) => Ok(Stream::RustlsServer(Box::new(server.accept(socket)?))),
            Server::Libssl(server) => Ok(Stream::Libssl(server.accept(socket)?)),
        }
    }
}
