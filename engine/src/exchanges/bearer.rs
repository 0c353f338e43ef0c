//! Bearer tokens (RFC 6750): a token alone says who asks. What is in one is its scheme's own.

use super::accounts::{Account, Accounts};
use super::client::{Client, Setup};
use super::negotiate::refused;
use super::operation::Operation;
use super::server::{Reply, Server, Verdict};
use crate::contract::Failure;
use crate::fault::Fault;
use crate::http::prebuilt::Prebuilt;
use crate::http::request::Request;
use crate::http::response::Expected;

/// What gives a client its tokens.
pub trait Issuer {
    fn issue(&self, account: &Account) -> Result<String, String>;

    /// As `Client::do_wrong`.
    fn do_wrong(&mut self, wrong: &'static str);
}

/// What a server knows tokens by.
pub trait Verifier {
    /// Whose token it is, if it is good.
    fn user(&mut self, token: &[u8]) -> Result<Option<String>, String>;
}

pub struct BearerClient<I> {
    issuer: I,
    requests: Vec<Prebuilt>,
    expected: Expected,
    accounts: Accounts,
    /// Of each account, once it was drawn: ten thousand signatures take some seconds.
    headers: Vec<Option<Box<[u8]>>>,
}

impl<I: Issuer + 'static> BearerClient<I> {
    pub fn made(setup: &Setup, issuer: I) -> Result<Box<dyn Client>, Failure> {
        let accounts = setup.accounts()?;
        let (requests, expected) = (setup.requests(), setup.expected());
        let headers = accounts.iter().map(|_| None).collect();
        Ok(Box::new(BearerClient { issuer, requests, expected, accounts, headers }))
    }
}

impl<I: Issuer> Client for BearerClient<I> {
    fn prepares(&self) -> bool {
        true
    }

    fn prepare(&mut self, operations: &[Operation]) -> Result<(), Fault> {
        operations.iter().try_for_each(|operation| self.begin(operation))
    }

    #[inline]
    fn begin(&mut self, operation: &Operation) -> Result<(), Fault> {
        let account = self.accounts.drawn(operation);
        if self.headers[account].is_none() {
            let token = self.issuer.issue(&self.accounts[account]).map_err(refused)?;
            self.headers[account] = Some(format!("Authorization: Bearer {token}\r\n").into_bytes().into());
        }
        Ok(())
    }

    #[inline]
    fn request(&mut self, operation: &Operation) -> &[u8] {
        let header = self.headers[self.accounts.drawn(operation)].as_deref().unwrap_or_default();
        self.requests[usize::from(operation.path)].with(operation.unique, header)
    }

    #[inline]
    fn expected(&self, _operation: &Operation) -> &Expected {
        &self.expected
    }

    fn user(&self, operation: &Operation) -> Option<&str> {
        Some(&self.accounts[self.accounts.drawn(operation)].name)
    }

    fn do_wrong(&mut self, wrong: &'static str) {
        self.issuer.do_wrong(wrong);
        self.headers.fill(None);
    }
}

pub struct BearerServer<V> {
    pub verifier: V,
    pub user: String,
}

/// To a request without a token, and to one whose token is not good (RFC 6750, 3).
const CHALLENGE: &str = "WWW-Authenticate: Bearer realm=\"tollbar\"\r\n";
const INVALID: &str = "WWW-Authenticate: Bearer realm=\"tollbar\", error=\"invalid_token\"\r\n";

impl<V: Verifier> Server for BearerServer<V> {
    fn check(&mut self, request: &Request<'_>) -> Verdict<'_> {
        let Some(token) = request.authorization.and_then(of_bearer) else {
            return Verdict::Answer(Reply::unauthorized(CHALLENGE));
        };
        match self.verifier.user(token) {
            Ok(Some(user)) => {
                self.user = user;
                Verdict::User(&self.user)
            }
            Ok(None) => Verdict::Answer(Reply::unauthorized(INVALID)),
            Err(why) => Verdict::Answer(Reply::failed(&why)),
        }
    }
}

/// The token of an `Authorization` header, if it is one of this scheme.
fn of_bearer(header: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = header.split_at_checked(b"Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
}
