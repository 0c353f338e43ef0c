//! Bearer tokens (RFC 6750): a token alone says who asks. What is in one is its scheme's own.

use super::accounts::{Account, Accounts};
use super::lookup::Lookup;
use super::negotiate::refused;
use super::scheme::{Client, END_PATH, Judgement, Reply, Server, Setup, Verdict, Visit, ending};
use crate::clock;
use crate::failure::{self, Failure, Fault};
use crate::http::prebuilt::Prebuilt;
use crate::http::request::Request;
use crate::http::response::{Expected, Response};

pub const ENDED: &str = "a token that was ended";

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

    /// Whether the server can end one before it expires.
    fn ends(&self) -> bool {
        false
    }

    /// Takes it no more.
    fn end(&mut self, _token: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

impl<L: Lookup> Verifier for L {
    fn user(&mut self, token: &[u8]) -> Result<Option<String>, String> {
        Lookup::user(self, token, clock::unix_s())
    }

    fn ends(&self) -> bool {
        Lookup::ends(self)
    }

    fn end(&mut self, token: &[u8]) -> Result<(), String> {
        Lookup::end(self, token)
    }
}

pub struct BearerClient<I> {
    issuer: I,
    requests: Vec<Prebuilt>,
    expected: Expected,
    accounts: Accounts,
    /// Of each account, once it was drawn: ten thousand signatures take some seconds.
    headers: Vec<Option<Box<str>>>,
    host: String,
    ended: Expected,
    /// The request that ends the token of the operation under way.
    ending: Vec<u8>,
    /// Whether an operation shows a token that is taken, ends it, and shows it again.
    ends: bool,
}

impl<I: Issuer + 'static> BearerClient<I> {
    pub fn made(setup: &Setup, issuer: I) -> Result<Box<dyn Client>, Failure> {
        let accounts = setup.accounts()?;
        let (requests, expected) = (setup.requests(), setup.expected());
        let headers = accounts.iter().map(|_| None).collect();
        let (host, ended, ending, ends) = (setup.site.host.clone(), setup.answered(200), Vec::new(), false);
        Ok(Box::new(BearerClient {
            issuer,
            requests,
            expected,
            accounts,
            headers,
            host,
            ended,
            ending,
            ends,
        }))
    }
}

impl<I: Issuer> Client for BearerClient<I> {
    fn prepares(&self) -> bool {
        true
    }

    fn prepare(&mut self, visits: &[Visit]) -> Result<(), Fault> {
        visits.iter().try_for_each(|visit| self.begin(visit))
    }

    #[inline]
    fn begin(&mut self, visit: &Visit) -> Result<(), Fault> {
        let account = self.accounts.drawn(visit.unique);
        if self.headers[account].is_none() {
            let token = self.issuer.issue(&self.accounts[account]).map_err(refused)?;
            self.headers[account] = Some(format!("Authorization: Bearer {token}\r\n").into());
        }
        if self.ends {
            self.ending = ending(&self.host, self.headers[account].as_deref().unwrap_or_default());
        }
        Ok(())
    }

    #[inline]
    fn request(&mut self, visit: &Visit) -> &[u8] {
        if self.is_ending(visit) {
            return &self.ending;
        }
        let header = self.headers[self.accounts.drawn(visit.unique)].as_deref().unwrap_or_default();
        self.requests[usize::from(visit.path)].with(visit.unique, header.as_bytes())
    }

    #[inline]
    fn expected(&self, visit: &Visit) -> &Expected {
        if self.is_ending(visit) { &self.ended } else { &self.expected }
    }

    #[inline]
    fn judge(&mut self, visit: &Visit, response: &Response) -> Result<Judgement, Fault> {
        let right = response.check(self.expected(visit));
        if !self.ends {
            return right.map(|()| Judgement::Done);
        }
        match (visit.leg, right) {
            (0 | 1, Ok(())) => Ok(Judgement::Continue),
            // That a token is not taken any more says something of one alone that was taken before.
            (0 | 1, Err(fault)) => Err(Fault::new(failure::SIGN_IN, fault.words)),
            (_, right) => right.map(|()| Judgement::Done),
        }
    }

    fn user(&self, visit: &Visit) -> Option<&str> {
        Some(&self.accounts[self.accounts.drawn(visit.unique)].name)
    }

    fn do_wrong(&mut self, wrong: &'static str) {
        self.ends = wrong == ENDED;
        self.issuer.do_wrong(wrong);
        self.headers.fill(None);
    }
}

impl<I> BearerClient<I> {
    /// Whether the request under way ends the token that the next one shows.
    #[inline]
    fn is_ending(&self, visit: &Visit) -> bool {
        self.ends && visit.leg == 1
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

    fn end_path(&self) -> Option<&'static str> {
        self.verifier.ends().then_some(END_PATH)
    }

    fn end(&mut self, request: &Request<'_>) -> Reply<'_> {
        let token = request.authorization.and_then(of_bearer);
        Reply::ended(token.map_or(Ok(()), |token| self.verifier.end(token)))
    }
}

/// The token of an `Authorization` header, if it is one of this scheme.
fn of_bearer(header: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = header.split_at_checked(b"Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
}
