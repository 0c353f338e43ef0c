//! The kinds of client of one loop: in clear, or TLS with what it asks and what it got.

use std::io;
use std::net::SocketAddr;

use super::fault::{self, Fault};
use super::socket;
use super::task::ClientKind;
use crate::contract::Failure;
use crate::tls::{Client, ClientSpec, Negotiated, Stream};

pub struct Kind {
    tls: Option<(ClientSpec, Client)>,
}

impl Kind {
    pub fn new(kind: &ClientKind) -> Result<Kind, Failure> {
        match &kind.tls {
            None => Ok(Kind::clear()),
            Some(spec) => Kind::secured(spec),
        }
    }

    pub fn clear() -> Kind {
        Kind { tls: None }
    }

    pub fn secured(spec: &ClientSpec) -> Result<Kind, Failure> {
        Ok(Kind { tls: Some((spec.clone(), Client::new(spec)?)) })
    }

    pub fn resumes(&self) -> bool {
        self.tls.as_ref().is_some_and(|(spec, _)| spec.resume)
    }

    /// The library at work; None in clear.
    pub fn library(&self) -> Option<String> {
        self.tls.as_ref().map(|(_, client)| client.library())
    }

    /// Begins a connection of this kind.
    pub fn open(&self, address: &SocketAddr) -> Result<Stream, Fault> {
        let socket = socket::connect(address).map_err(|error| Fault::of(&error, "connecting"))?;
        match &self.tls {
            None => Ok(Stream::plain(socket)),
            Some((_, client)) => client.open(socket).map_err(|failure| match failure {
                Failure::Unsupported(words) | Failure::Failed(words) => Fault::new(fault::TLS, words),
            }),
        }
    }

    /// Whether what was negotiated is what this kind asks.
    pub fn check(&self, negotiated: &Negotiated) -> Result<(), Fault> {
        let Some((spec, _)) = &self.tls else { return Ok(()) };
        spec.expects(negotiated).map_err(|words| Fault::new(fault::WRONG_PARAMETERS, words))?;
        if negotiated.resumed && !spec.resume {
            let words = "a session was resumed by a client that keeps none";
            return Err(Fault::new(fault::WRONG_PARAMETERS, words));
        }
        Ok(())
    }

    /// Whether a session was resumed, where there was one to resume.
    pub fn check_resumed(&self, negotiated: &Negotiated) -> Result<(), Fault> {
        if self.resumes() && !negotiated.resumed {
            let words = "a full handshake, where a session should have been resumed";
            return Err(Fault::new(fault::NOT_RESUMED, words));
        }
        Ok(())
    }
}

/// Whether an error only says that the socket has to be waited for.
pub fn would_block(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}
