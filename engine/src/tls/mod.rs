//! Connections, in clear or under TLS, over sockets that never block: one interface for clients and servers,
//! whichever library does the cryptography.
//!
//! rustls on AWS-LC for all it speaks; a libssl bound at run time for what it does not (RSA key exchange,
//! finite-field Diffie–Hellman, CBC suites, RSA keys under 2048 bits) and where a task names one.

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

use crate::failure::Failure;

pub use libssl::making;
pub use spec::{Agreement, ClientSpec, KeyExchange, Library, Negotiated, Protocol, ServerSpec, Signer};
pub use stream::Stream;

/// Makes connections of one kind, holding what they share: configuration, kept sessions.
pub enum Client {
    Rustls(rustls::Client),
    Libssl(libssl::Client),
}

impl Client {
    /// Raises `Unsupported` in the library's words where it cannot configure what is asked.
    pub fn new(spec: &ClientSpec) -> Result<Client, Failure> {
        spec.asked().check()?;
        match spec.library() {
            Library::Libssl => Ok(Client::Libssl(libssl::Client::new(spec)?)),
            Library::Rustls | Library::Auto => Ok(Client::Rustls(rustls::Client::new(spec)?)),
        }
    }

    /// The libraries at work, for the receipt: `rustls 0.23.46 (aws-lc-rs 1.19.1)`, `openssl 3.5.9`.
    pub fn library(&self) -> String {
        match self {
            Client::Rustls(_) => rustls::library(),
            Client::Libssl(client) => client.library(),
        }
    }

    /// A connection over a socket that is connected or about to be.
    pub fn open(&self, socket: OwnedFd) -> Result<Stream, Failure> {
        match self {
            Client::Rustls(client) => Ok(Stream::RustlsClient(Box::new(client.open(socket)?))),
            Client::Libssl(client) => Ok(Stream::Libssl(client.open(socket)?)),
        }
    }
}

/// Accepts connections of one kind.
pub enum Server {
    Rustls(rustls::Server),
    Libssl(libssl::Server),
}

impl Server {
    /// Raises `Unsupported` in the library's words where it cannot do what is asked.
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
