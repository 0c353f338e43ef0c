//! What one operation of a user is on the wire: the requests it sends, what each answer has to be, and what follows
//! from it.
//!
//! A sign-in scheme is a variant of `Exchange` with a file of its own. It makes its headers when a request is sent
//! (`request`), expects something of each leg (`expected`), and says after each answer whether another leg follows
//! (`judge`); which account signs in follows from what the operation drew.

use super::fault::Fault;
use super::random::UserRandom;
use super::request::Prebuilt;
use super::response::{Expected, Response};
use super::task::Load;

/// One operation of one user. It is over, counted and timed as a whole, with the answer to its last request.
#[derive(Debug, Clone, Copy, Default)]
pub struct Operation {
    pub user: u32,
    /// Which of its requests is under way, from 0.
    pub leg: u8,
    pub path: u16,
    /// A number that no other operation has drawn: its unique query, its nonce, its account.
    pub unique: u64,
}

/// What an answer means for its operation.
#[derive(Debug, PartialEq, Eq)]
pub enum Judgement {
    /// The operation has what it was started for.
    Done,
    /// The next leg follows: on the same connection, or on a new one if the server does not keep this one.
    #[cfg_attr(not(test), expect(dead_code, reason = "the null exchange has one leg"))]
    Continue,
}

pub enum Exchange {
    /// The null case: one request, built once, and one answer.
    Anonymous(Anonymous),
    /// Two legs: the second request carries what the answer to the first one said.
    #[cfg(test)]
    Challenge(super::tests::exchanges::Challenge),
}

pub struct Anonymous {
    requests: Vec<Prebuilt>,
    expected: Expected,
}

impl Exchange {
    /// The exchange of a load, over these of its paths.
    pub fn new(load: &Load, paths: &[String]) -> Exchange {
        let requests = paths.iter().map(|path| Prebuilt::new(load, path)).collect();
        Exchange::Anonymous(Anonymous { requests, expected: Expected::of(load) })
    }

    /// The next operation of a user.
    #[inline]
    pub fn begin(&self, user: u32, random: &mut UserRandom) -> Operation {
        let paths = match self {
            Exchange::Anonymous(anonymous) => anonymous.requests.len(),
            #[cfg(test)]
            Exchange::Challenge(_) => 1,
        };
        let (path, unique) = random.request(paths);
        Operation { user, leg: 0, path, unique }
    }

    /// The bytes of the request under way: the same ones each time until its answer has come.
    #[inline]
    pub fn request(&mut self, operation: &Operation) -> &[u8] {
        match self {
            Exchange::Anonymous(anonymous) => {
                anonymous.requests[usize::from(operation.path)].with(operation.unique)
            }
            #[cfg(test)]
            Exchange::Challenge(challenge) => challenge.request(operation),
        }
    }

    /// What the answer to the request under way has to be.
    #[inline]
    pub fn expected(&self, operation: &Operation) -> &Expected {
        match (self, operation.leg) {
            (Exchange::Anonymous(anonymous), _) => &anonymous.expected,
            #[cfg(test)]
            (Exchange::Challenge(challenge), leg) => challenge.expected(leg),
        }
    }

    /// Judges a whole answer. A fault fails the operation.
    #[inline]
    pub fn judge(&mut self, operation: &Operation, response: &Response) -> Result<Judgement, Fault> {
        response.check(self.expected(operation))?;
        match self {
            Exchange::Anonymous(_) => Ok(Judgement::Done),
            #[cfg(test)]
            Exchange::Challenge(challenge) => challenge.judge(operation, response),
        }
    }
}
