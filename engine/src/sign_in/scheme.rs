//! What a sign-in scheme is: a client half and a server half, and what a server has to refuse of it.
//!
//! The client half (`Client`) sends the requests of a user's visit, expects something of each answer and says whether
//! another leg follows. The server half (`Server`) checks what the embedded server is asked.

use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::accounts::Accounts;
use super::verified::{Found, KnownCache};
use crate::failure::{Failure, Fault, on_one_line};
use crate::http::page::{Expectation, Site};
use crate::http::prebuilt::{Outline, Prebuilt};
use crate::http::request::{Request, Status};
use crate::http::response::{Expected, Response};

type MakeServer = fn(&Settings) -> Result<Box<dyn Server>, Failure>;

pub struct Scheme {
    pub name: &'static str,
    pub client: fn(&Setup) -> Result<Box<dyn Client>, Failure>,
    /// None where the embedded server does not offer it.
    pub server: Option<MakeServer>,
    /// Whether a user's first operation leaves something that its later ones use: it is asked for before anything is
    /// accounted for.
    pub keeps_state: bool,
    /// Whether it has the operation `sign-on`: more, at the first page, than a request of a client that has what it needs.
    pub has_sign_on: bool,
    /// What a server has to refuse.
    pub refused: &'static [Wrong],
}

/// What is wrong with a sign-in that has to be refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    NoCredentials,
    Password,
    User,
    /// What the scheme's client does when it is told to (`Client::do_wrong`), after an operation that was right.
    Own(&'static str),
}

impl Wrong {
    /// As the proof says it.
    pub fn words(self) -> &'static str {
        match self {
            Wrong::NoCredentials => "no credentials",
            Wrong::Password => "a wrong password",
            Wrong::User => "an unknown user",
            Wrong::Own(words) => words,
        }
    }
}

/// One operation of one user: over, counted and timed as a whole, with the answer to its last request.
#[derive(Debug, Clone, Copy, Default)]
pub struct Visit {
    /// Among the users of its loop, from 0.
    pub user: u32,
    /// Which of its requests is under way, from 0.
    pub leg: u8,
    pub path: u16,
    /// A number that no other visit has drawn: its unique query, its nonce, its account.
    pub unique: u64,
    /// Which of the user's connections it is on: another number after each new one.
    pub connection: u32,
}

/// What one operation is.
#[derive(Deserialize, Debug, Clone, Copy, PartialEq, Eq, Default)]
#[serde(rename_all = "kebab-case")]
pub enum VisitKind {
    /// A protected page, with what a user has from visits before.
    #[default]
    Request,
    /// Everything from the first request without credentials to the first protected page.
    SignOn,
}

// The client half.

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
    fn prepare(&mut self, _visits: &[Visit]) -> Result<(), Fault> {
        Ok(())
    }

    /// A phase of the load begins.
    fn enter(&mut self) {}

    /// So many operations, or a multiple, make a whole: a phase ends with one.
    fn whole(&self) -> u64 {
        1
    }

    /// Whether it can keep to a share of operations with a credential that the server remembers.
    fn knows_of_a_cache(&self) -> bool {
        false
    }

    /// Begins an operation. A fault fails it, before anything is sent.
    fn begin(&mut self, _visit: &Visit) -> Result<(), Fault> {
        Ok(())
    }

    /// The bytes of the request under way: the same ones each time until its answer has come.
    fn request(&mut self, visit: &Visit) -> &[u8];

    /// What the answer to the request under way has to be, as far as that is known before it came.
    fn expected(&self, visit: &Visit) -> &Expected;

    /// Judges a whole answer. A fault fails the operation.
    fn judge(&mut self, visit: &Visit, response: &Response) -> Result<Judgement, Fault> {
        response.check(self.expected(visit)).map(|()| Judgement::Done)
    }

    /// Whether the server has authenticated the user by a credential in this operation, which is done: and not by what
    /// it gave for one before, or by the connection.
    fn signs_on(&self, _visit: &Visit) -> bool {
        true
    }

    /// The name of the user that the operation signs in, where it signs one in.
    fn user(&self, _visit: &Visit) -> Option<&str> {
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

    /// What a wrong thing comes to with this server, where that takes more than the scheme's own words.
    fn says(&self, _wrong: &'static str) -> Option<String> {
        None
    }

    /// From now on does one of the wrong things that its scheme names (`Wrong::Own`).
    fn do_wrong(&mut self, _wrong: &'static str) {}

    /// How many pages the operation that did it was given, before what had to be refused.
    fn given_before(&self) -> u64 {
        0
    }
}

/// What a scheme's client half is made from.
pub struct Setup<'a> {
    /// What is asked for, and what has to answer.
    pub site: &'a Site,
    pub paths: &'a [String],
    pub kind: VisitKind,
    pub settings: &'a Settings,
    pub accounts: Option<Accounts>,
    /// Users of a loop at the most.
    pub users: usize,
    pub cache: Option<KnownCache>,
    /// The server's own store of what it knows users by, where a proof may change it.
    pub store: Option<&'a Path>,
    /// The common names in the certificates of the kinds of client that are used; None where one has none.
    pub certificate_names: Option<&'a [String]>,
    pub is_proof: bool,
}

/// Where a task says how the users of a load sign in.
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

    /// The site's request to each path, with room for the scheme's own headers; of a proof, one that asks which user the
    /// server saw.
    pub fn requests(&self) -> Vec<Prebuilt> {
        let page = |path| Outline { tells_user: self.is_proof, ..Outline::page(self.site, path) };
        self.paths.iter().map(|path| Prebuilt::new(self.site, &page(path))).collect()
    }

    /// The same, each followed by another request of its visit.
    pub fn followed(&self) -> Vec<Prebuilt> {
        let page = |path| Outline { is_last: false, ..Outline::page(self.site, path) };
        self.paths.iter().map(|path| Prebuilt::new(self.site, &page(path))).collect()
    }

    /// What the answer to the last request has to be. A proof reads in its head which user the server saw.
    pub fn expected(&self) -> Expected {
        Expected { keeps_head: self.is_proof, ..Expected::of(self.site) }
    }

    /// What an answer before that has to be, in whose head something is read.
    pub fn answered(&self, status: u16) -> Expected {
        let expect = Expectation { status, bytes: None, body: None };
        Expected { keeps_head: true, ..Expected::of(&Site { expect, ..self.site.clone() }) }
    }
}

/// What ends the session, or the token, that this header shows.
pub fn ending(host: &str, header: &str) -> Vec<u8> {
    format!("POST {END_PATH} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n{header}\r\n").into_bytes()
}

// The server half.

/// Where users end what they were given.
pub const END_PATH: &str = "/sign-out";

/// What becomes of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// The page, as if nothing protected it.
    Unprotected,
    /// The page is this user's to see. The name is one that `accounts::is_name` takes.
    User(&'a str),
    /// Something else: a challenge, the way to a form.
    Answer(Reply<'a>),
}

#[derive(Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    pub status: Status,
    /// Each with the end of its line.
    pub headers: &'a str,
    pub text: &'a str,
}

impl<'a> Reply<'a> {
    /// Refused, with this challenge.
    pub fn unauthorized(challenge: &'a str) -> Reply<'a> {
        Reply { status: Status::Unauthorized, headers: challenge, text: "sign in first\n" }
    }

    /// A session or a token is not taken any more, or could not be ended.
    pub fn ended(done: Result<(), String>) -> Reply<'a> {
        match done {
            Ok(()) => Reply { status: Status::Done, headers: "", text: "ended\n" },
            Err(why) => Reply::failed(&why),
        }
    }

    /// The server cannot tell who asks, and says why on standard error: it is not the client's to know.
    pub fn failed(why: &str) -> Reply<'a> {
        eprintln!("serve: sign-in: {why}");
        Reply { status: Status::OperationFailed, headers: "", text: "sign-in does not work\n" }
    }
}

/// The server half of a scheme.
pub trait Server {
    /// Who asks for a protected page.
    fn check(&mut self, request: &Request<'_>) -> Verdict<'_>;

    /// Whether it goes by the certificates that clients show under TLS.
    fn needs_certificates(&self) -> bool {
        false
    }

    /// Where its form is, for which alone the server takes a body: `application/x-www-form-urlencoded`, by POST.
    fn form_path(&self) -> Option<&'static str> {
        None
    }

    /// Answers what comes to that path: a form that was filled in, or without a body the one to be filled in.
    fn form(&mut self, _request: &Request<'_>, _filled_in: Option<&[u8]>) -> Reply<'_> {
        Reply { status: Status::NotFound, headers: "", text: "no form is here\n" }
    }

    /// How often it remembered a credential since this was asked last; None where it remembers none.
    fn found(&mut self) -> Option<Found> {
        None
    }

    /// Where a user ends what it was given, by a POST without a body; None where nothing was given, or nothing that the
    /// server could end.
    fn end_path(&self) -> Option<&'static str> {
        None
    }

    /// Answers what comes to that path.
    fn end(&mut self, _request: &Request<'_>) -> Reply<'_> {
        Reply { status: Status::NotFound, headers: "", text: "nothing ends here\n" }
    }
}

// The fields that a scheme reads itself.

pub type Settings = Map<String, Value>;

/// A scheme's own fields, none of them unknown to it; `place` is where they stand.
fn read<T: DeserializeOwned>(settings: &Settings, place: &str) -> Result<T, Failure> {
    let fields = Value::Object(settings.clone());
    serde_json::from_value(fields)
        .map_err(|error| Failure::Failed(format!("`{place}`: {}", on_one_line(error))))
}

/// Those of a server's configuration.
pub fn read_server<T: DeserializeOwned>(settings: &Settings) -> Result<T, Failure> {
    read(settings, "sign_in")
}

/// Of a scheme without fields of its own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoSettings {}
