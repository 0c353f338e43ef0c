//! What one operation of a user is on the wire: the requests it sends, what each answer has to be, and what follows
//! from it.

use serde::de::DeserializeOwned;

use super::accounts::Accounts;
use super::operation::Operation;
use super::server::END_PATH;
use super::settings::{Settings, read};
use crate::contract::Failure;
use crate::fault::Fault;
use crate::http::prebuilt::{Outline, Prebuilt};
use crate::http::response::{Expected, Response};
use crate::load_task::{Load, OperationKind};

/// What an answer means for its operation.
#[derive(Debug, PartialEq, Eq)]
pub enum Judgement {
    /// The operation has what it was started for.
    Done,
    /// The next leg follows: on the same connection, or on a new one if the server does not keep this one.
    Continue,
}

/// The client half of a scheme: one for all users of a loop.
pub trait Client {
    /// Whether it wants to know beforehand which operations there will be (`prepare`).
    fn prepares(&self) -> bool {
        false
    }

    /// Makes ready what these operations will need, before anything is accounted for. There may be more of them than
    /// these, and fewer.
    fn prepare(&mut self, _operations: &[Operation]) -> Result<(), Fault> {
        Ok(())
    }

    /// Begins an operation. A fault fails it, before anything is sent.
    fn begin(&mut self, _operation: &Operation) -> Result<(), Fault> {
        Ok(())
    }

    /// The bytes of the request under way: the same ones each time until its answer has come.
    fn request(&mut self, operation: &Operation) -> &[u8];

    /// What the answer to the request under way has to be, as far as that is known before it came.
    fn expected(&self, operation: &Operation) -> &Expected;

    /// Judges a whole answer. A fault fails the operation.
    fn judge(&mut self, operation: &Operation, response: &Response) -> Result<Judgement, Fault> {
        response.check(self.expected(operation)).map(|()| Judgement::Done)
    }

    /// Whether the server has authenticated the user by a credential in this operation, which is done: and not by what
    /// it gave for one before, or by the connection.
    fn signs_on(&self, _operation: &Operation) -> bool {
        true
    }

    /// The name of the user that the operation signs in, where it signs one in.
    fn user(&self, _operation: &Operation) -> Option<&str> {
        None
    }

    /// The library that does its work, and its version.
    fn library(&self) -> Option<&str> {
        None
    }

    /// Why a server that is as this one was told has not to refuse a wrong thing of the scheme's own; None: it has to.
    fn why_not(&self, _wrong: &'static str) -> Option<&'static str> {
        None
    }

    /// From now on does one of the wrong things that its scheme names (`Wrong::Own`).
    fn do_wrong(&mut self, _wrong: &'static str) {}
}

/// What a scheme's client half is made from.
pub struct Setup<'a> {
    pub load: &'a Load,
    pub paths: &'a [String],
    pub kind: OperationKind,
    pub settings: &'a Settings,
    pub accounts: Option<Accounts>,
    pub is_proof: bool,
}

pub const PLACE: &str = "load.exchange";

impl Setup<'_> {
    /// The scheme's own fields.
    pub fn settings<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        read(self.settings, PLACE)
    }

    /// The accounts that sign in.
    pub fn accounts(&self) -> Result<Accounts, Failure> {
        let missing = || Failure::Failed(format!("`{PLACE}` has no `accounts`, which this scheme needs"));
        self.accounts.clone().ok_or_else(missing)
    }

    /// The load's request to each path, with room for the scheme's own headers; of a proof, one that asks which user the
    /// server saw.
    pub fn requests(&self) -> Vec<Prebuilt> {
        let page = |path| Outline { tells_user: self.is_proof, ..Outline::page(self.load, path) };
        self.paths.iter().map(|path| Prebuilt::new(self.load, &page(path))).collect()
    }

    /// What the answer to the last request has to be. A proof reads in its head which user the server saw.
    pub fn expected(&self) -> Expected {
        Expected { keeps_head: self.is_proof, ..Expected::of(self.load) }
    }
}

/// What ends the session, or the token, that this header shows.
pub fn ending(host: &str, header: &str) -> Vec<u8> {
    format!("POST {END_PATH} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n{header}\r\n").into_bytes()
}
