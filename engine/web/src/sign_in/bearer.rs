//! Bearer tokens (RFC 6750): a token alone identifies the client. Each scheme defines the token's content.

use super::scheme::{END_PATH, Reply, Server, Verdict};
use super::verified::{Found, Verifier};
use crate::http::request::Request;

pub const HEADER: &str = "Authorization: Bearer ";

pub struct BearerServer {
    verifier: Box<dyn Verifier>,
    user: String,
}

impl BearerServer {
    pub fn of(verifier: Box<dyn Verifier>) -> Box<dyn Server> {
        Box::new(BearerServer { verifier, user: String::new() })
    }
}

/// Challenge of a request without a token; `INVALID` is that of an invalid one (RFC 6750, 3).
const CHALLENGE: &str = "WWW-Authenticate: Bearer realm=\"tollbar\"\r\n";
const INVALID: &str = "WWW-Authenticate: Bearer realm=\"tollbar\", error=\"invalid_token\"\r\n";

impl Server for BearerServer {
    fn check(&mut self, request: &Request<'_>) -> Verdict<'_> {
        let Some(token) = request.authorization.and_then(of_bearer) else {
            return Verdict::Answer(Reply::unauthorized(CHALLENGE));
        };
        match self.verifier.identity(token) {
            Ok(Some(identity)) => {
                self.user = identity.name;
                Verdict::User(&self.user)
            }
            Ok(None) => Verdict::Answer(Reply::unauthorized(INVALID)),
            Err(why) => Verdict::Answer(Reply::failed(&why)),
        }
    }

    fn end_path(&self) -> Option<&'static str> {
        self.verifier.ends().then_some(END_PATH)
    }

    fn end(&mut self, request: &Request<'_>) -> Reply<'_> {
        let token = request.authorization.and_then(of_bearer);
        Reply::ended(token.map_or(Ok(()), |token| self.verifier.end(token)))
    }

    fn found(&mut self) -> Option<Found> {
        self.verifier.found()
    }
}

/// Returns the token of an `Authorization` header, if it is of this scheme.
fn of_bearer(header: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = header.split_at_checked(b"Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
}
