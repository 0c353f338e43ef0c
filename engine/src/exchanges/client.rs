//! What one operation of a user is on the wire: the requests it sends, what each answer has to be, and what follows
//! from it.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::accounts::Accounts;
use super::{Scheme, Settings, Wrong, anonymous, read, scheme};
use crate::contract::Failure;
use crate::load::fault::Fault;
use crate::load::random::UserRandom;
use crate::load::request::{Outline, Prebuilt};
use crate::load::response::{Expected, Response};
use crate::load::task::Load;

/// One operation of one user. It is over, counted and timed as a whole, with the answer to its last request.
#[derive(Debug, Clone, Copy, Default)]
pub struct Operation {
    /// Among the users of its loop, from 0.
    pub user: u32,
    /// Which of its requests is under way, from 0.
    pub leg: u8,
    pub path: u16,
    /// A number that no other operation has drawn: its unique query, its nonce, its account.
    pub unique: u64,
    /// Which of the user's connections it is on: another number after each new one.
    pub connection: u32,
}

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

    /// From now on does one of the wrong things that its scheme names (`Wrong::Own`).
    fn do_wrong(&mut self, _wrong: &'static str) {}
}

/// `load.exchange`, as it comes in.
#[derive(Deserialize, Debug, Clone)]
pub struct Spec {
    scheme: String,
    accounts: Option<super::accounts::Spec>,
    #[serde(default)]
    operation: Kind,
    /// The scheme's own.
    #[serde(flatten)]
    settings: Settings,
}

/// What one operation is.
#[derive(Deserialize, Debug, Clone, Copy, PartialEq, Eq, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A protected page, with what a user has from operations before.
    #[default]
    Request,
    /// Everything from the first request without credentials to the first protected page.
    SignOn,
}

/// What a scheme's client half is made from.
pub struct Setup<'a> {
    pub load: &'a Load,
    pub paths: &'a [String],
    pub kind: Kind,
    settings: &'a Settings,
    accounts: Option<Accounts>,
    pub is_proof: bool,
}

const PLACE: &str = "load.exchange";

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

    /// The load's request to each path, with room for the scheme's own headers.
    pub fn requests(&self) -> Vec<Prebuilt> {
        self.paths.iter().map(|path| Prebuilt::new(self.load, &Outline::page(self.load, path))).collect()
    }

    /// What the answer to the last request has to be. A proof reads in its head which user the server saw.
    pub fn expected(&self) -> Expected {
        Expected { keeps_head: self.is_proof, ..Expected::of(self.load) }
    }
}

/// How the users of a load sign in, and which of its paths they ask for.
pub struct Exchange {
    client: Box<dyn Client>,
    paths: usize,
}

impl Exchange {
    /// For the timed part: all paths of a load.
    pub fn new(load: &Load) -> Result<Exchange, Failure> {
        Exchange::made(load, &load.request.paths, false, |accounts| accounts)
    }

    /// For a proof: one path.
    pub fn proof(load: &Load, path: &str) -> Result<Exchange, Failure> {
        Exchange::made(load, &[path.to_owned()], true, |accounts| accounts)
    }

    /// One that has to be refused: at once, or from when it is told to do wrong.
    pub fn wrong(load: &Load, path: &str, wrong: Wrong) -> Result<Exchange, Failure> {
        match wrong {
            Wrong::NoCredentials => {
                let load = Load { exchange: None, ..load.clone() };
                Exchange::proof(&load, path)
            }
            Wrong::Password => Exchange::made(load, &[path.to_owned()], true, Accounts::with_wrong_passwords),
            Wrong::User => Exchange::made(load, &[path.to_owned()], true, Accounts::of_unknown_users),
            Wrong::Own(_) => Exchange::proof(load, path),
        }
    }

    fn made(
        load: &Load,
        paths: &[String],
        is_proof: bool,
        change: impl Fn(Accounts) -> Accounts,
    ) -> Result<Exchange, Failure> {
        let (scheme, none) = (scheme_of(load)?, Settings::new());
        let spec = load.exchange.as_ref();
        let kind = spec.map_or(Kind::Request, |spec| spec.operation);
        if kind == Kind::SignOn && !scheme.has_sign_on {
            return Err(Failure::Failed(format!("`{PLACE}.operation`: {} has no sign-on", scheme.name)));
        }
        let accounts = spec.and_then(|spec| spec.accounts.as_ref()).map(Accounts::read).transpose()?;
        let setup = Setup {
            load,
            paths,
            kind,
            settings: spec.map_or(&none, |spec| &spec.settings),
            accounts: accounts.map(change),
            is_proof,
        };
        Ok(Exchange { client: (scheme.client)(&setup)?, paths: paths.len() })
    }

    #[cfg(test)]
    pub fn of(client: Box<dyn Client>) -> Exchange {
        Exchange { client, paths: 1 }
    }

    /// Draws the next operation of a user, which begins on this connection of it.
    #[inline]
    pub fn draw(&self, user: u32, connection: u32, random: &mut UserRandom) -> Operation {
        let (path, unique) = random.request(self.paths);
        Operation { user, leg: 0, path, unique, connection }
    }
}

impl std::ops::Deref for Exchange {
    type Target = dyn Client;

    #[inline]
    fn deref(&self) -> &Self::Target {
        self.client.as_ref()
    }
}

impl std::ops::DerefMut for Exchange {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.client.as_mut()
    }
}

/// The scheme that a load's users sign in by.
pub fn scheme_of(load: &Load) -> Result<&'static Scheme, Failure> {
    match &load.exchange {
        None => Ok(&anonymous::SCHEME),
        Some(spec) => scheme(&spec.scheme, "load.exchange.scheme"),
    }
}
