//! Connections of one kind of client: plain, or under TLS with that client's settings.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::task::ClientKind;
use crate::failure::{self, Failure, Fault};
use crate::tls::{Agreement, Client, ClientSpec, Negotiated, Stream};

pub struct Connector {
    tls: Option<Tls>,
}

struct Tls {
    spec: ClientSpec,
    client: Client,
    /// Last agreement that was as requested, and its names: thousands of connections agree on the same.
    known: Option<(Agreement, Arc<Negotiated>)>,
}

impl Connector {
    pub fn new(kind: &ClientKind) -> Result<Connector, Failure> {
        kind.tls.as_ref().map_or(Ok(Connector::clear()), Connector::secured)
    }

    pub fn clear() -> Connector {
        Connector { tls: None }
    }

    pub fn secured(spec: &ClientSpec) -> Result<Connector, Failure> {
        Ok(Connector { tls: Some(Tls { spec: spec.clone(), client: Client::new(spec)?, known: None }) })
    }

    /// Returns the TLS library, or None without TLS.
    pub fn library(&self) -> Option<String> {
        self.tls.as_ref().map(|tls| tls.client.library())
    }

    /// Opens a connection.
    pub fn open(&self, socket: OwnedFd) -> Result<Stream, Fault> {
        match &self.tls {
            None => Ok(Stream::plain(socket)),
            Some(tls) => {
                tls.client.open(socket).map_err(|failure| Fault::new(failure::TLS, failure.into_words()))
            }
        }
    }

    /// Returns the negotiated parameters if they are as this kind of client requests; None without TLS.
    pub fn agreed(&mut self, stream: &Stream, must_resume: bool) -> Result<Option<Arc<Negotiated>>, Fault> {
        let Some(tls) = &mut self.tls else { return Ok(None) };
        let agreement = stream.agreement();
        let negotiated = match &tls.known {
            Some((known, negotiated)) if agreement == Some(*known) => Arc::clone(negotiated),
            _ => {
                let Some(negotiated) = stream.negotiated().map(Arc::new) else { return Ok(None) };
                tls.spec
                    .expects(&negotiated)
                    .map_err(|words| Fault::new(failure::WRONG_PARAMETERS, words))?;
                tls.known = agreement.map(|agreement| (agreement, Arc::clone(&negotiated)));
                negotiated
            }
        };
        match (tls.spec.resume, negotiated.resumed) {
            (false, true) => {
                let words = "the server resumed a session that this client does not keep";
                Err(Fault::new(failure::WRONG_PARAMETERS, words))
            }
            (true, false) if must_resume => {
                let words = "the server made a full handshake; it should have resumed the session";
                Err(Fault::new(failure::NOT_RESUMED, words))
            }
            _ => Ok(Some(negotiated)),
        }
    }
}
