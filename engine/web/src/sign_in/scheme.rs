//! Interface of a sign-in scheme: a client half, a server half, and the inputs that a server must refuse.
//!
//! The client half (`Client`) sends the requests of a user's visit, declares the expected answers, and
//! decides whether another leg follows. The server half (`Server`) checks the requests to the embedded
//! server.

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
    /// Constructor of the server half; None if the embedded server does not support the scheme.
    pub server: Option<MakeServer>,
    /// True if a user's first operation leaves state that its later ones use: that operation is done before
    /// anything is counted.
    pub keeps_state: bool,
    /// True if it has the operation `sign-on`: more work at the first page than a request of a client that
    /// has signed in.
    pub has_sign_on: bool,
    /// Inputs that a server must refuse.
    pub refused: &'static [Wrong],
}

/// Error in a sign-in that must be refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    NoCredentials,
    Password,
    User,
    /// Error that the scheme's client makes on request (`Adversary::do_wrong`), after an operation that was
    /// right.
    Own(&'static str),
}

impl Wrong {
    /// Returns the error's name in the proof.
    pub fn words(self) -> &'static str {
        match self {
            Wrong::NoCredentials => "no credentials",
            Wrong::Password => "a wrong password",
            Wrong::User => "an unknown user",
            Wrong::Own(words) => words,
        }
    }
}

/// An operation of one user, timed as a whole, which ends with the answer to its last request.
#[derive(Debug, Clone, Copy, Default)]
pub struct Visit {
    /// Number among the users of its loop, from 0.
    pub user: u32,
    /// Number of its current request, from 0.
    pub leg: u8,
    pub path: u16,
    /// Number that no other visit has drawn: its unique query, its nonce, its account.
    pub unique: u64,
    /// Number of the user's connection, which each new one changes.
    pub connection: u32,
}

/// Kind of an operation.
#[derive(Deserialize, Debug, Clone, Copy, PartialEq, Eq, Default)]
#[serde(rename_all = "kebab-case")]
pub enum VisitKind {
    /// A protected page, with the state of earlier visits.
    #[default]
    Request,
    /// Everything from the first request without credentials to the first protected page.
    SignOn,
}

// Client half.

/// Result of an answer for its operation.
#[derive(Debug, PartialEq, Eq)]
pub enum Judgement {
    /// The operation is complete.
    Done,
    /// The next leg follows: on the same connection, or on a new one if the server does not keep this one.
    Continue,
}

/// The client half of a scheme: one for all users of a loop.
pub trait Client: Adversary {
    /// Returns true if it needs the coming operations beforehand (`prepare`).
    fn prepares(&self) -> bool {
        false
    }

    /// Prepares these operations, before anything is counted. More or fewer of them may follow.
    fn prepare(&mut self, _visits: &[Visit]) -> Result<(), Fault> {
        Ok(())
    }

    /// Begins a phase of the load.
    fn enter(&mut self) {}

    /// Returns the number of which a phase's operations must be a multiple.
    fn whole(&self) -> u64 {
        1
    }

    /// Returns true if it can keep a share of operations whose credentials the server remembers.
    fn knows_of_a_cache(&self) -> bool {
        false
    }

    /// Begins an operation. A fault fails it, before anything is sent.
    fn begin(&mut self, _visit: &Visit) -> Result<(), Fault> {
        Ok(())
    }

    /// Returns the bytes of the current request, which stay the same until its answer has come.
    fn request(&mut self, visit: &Visit) -> &[u8];

    /// Returns the expected answer to the current request, as far as it is known beforehand.
    fn expected(&self, visit: &Visit) -> &Expected;

    /// Judges a complete answer. A fault fails the operation.
    fn judge(&mut self, visit: &Visit, response: &Response) -> Result<Judgement, Fault> {
        response.check(self.expected(visit)).map(|()| Judgement::Done)
    }

    /// Returns true if the server authenticated the user by a credential in this completed operation, not by
    /// state of an earlier one or by the connection.
    fn signs_on(&self, _visit: &Visit) -> bool {
        true
    }

    /// Returns the name of the user that the operation signs in, if it does.
    fn user(&self, _visit: &Visit) -> Option<&str> {
        None
    }

    /// Returns the library that does its work, and its version.
    fn library(&self) -> Option<&str> {
        None
    }
}

/// The errors that a proof has the client half make: a server must refuse each.
pub trait Adversary {
    /// Returns the reason why a server with this configuration need not refuse an error of the scheme's; None
    /// if it must.
    fn why_not(&self, _wrong: &'static str) -> Option<&'static str> {
        None
    }

    /// Returns an error's name for this server, if the scheme's own name is not enough.
    fn says(&self, _wrong: &'static str) -> Option<String> {
        None
    }

    /// Makes one of the errors that its scheme names (`Wrong::Own`) from now on.
    fn do_wrong(&mut self, _wrong: &'static str) {}

    /// Returns the number of pages that the operation got before the refusal.
    fn given_before(&self) -> u64 {
        0
    }
}

/// Input of a scheme's client half.
pub struct Setup<'a> {
    /// Pages, and their expected answers.
    pub site: &'a Site,
    pub paths: &'a [String],
    pub kind: VisitKind,
    pub settings: &'a Settings,
    pub accounts: Option<Accounts>,
    /// Limit of users in a loop.
    pub users: usize,
    pub cache: Option<KnownCache>,
    /// Server's own store of its users, if a proof may change it.
    pub store: Option<&'a Path>,
    /// Common names in the certificates of the used kinds of client; None if one has none.
    pub certificate_names: Option<&'a [String]>,
    pub is_proof: bool,
}

/// Field of a task that configures the users' sign-in.
pub const PLACE: &str = "load.exchange";

impl Setup<'_> {
    /// Reads the scheme's own fields.
    pub fn settings<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        read(self.settings, PLACE)
    }

    /// Returns the accounts that sign in.
    pub fn accounts(&self) -> Result<Accounts, Failure> {
        let missing = || Failure::Failed(format!("`{PLACE}` has no `accounts`, which this scheme needs"));
        self.accounts.clone().ok_or_else(missing)
    }

    /// Builds the site's request to each path, with room for the scheme's own headers; in a proof it asks
    /// which user the server saw.
    pub fn requests(&self) -> Vec<Prebuilt> {
        let page = |path| Outline { tells_user: self.is_proof, ..Outline::page(self.site, path) };
        self.paths.iter().map(|path| Prebuilt::new(self.site, &page(path))).collect()
    }

    /// Builds the requests that another request of the same visit follows.
    pub fn followed(&self) -> Vec<Prebuilt> {
        let page = |path| Outline { is_last: false, ..Outline::page(self.site, path) };
        self.paths.iter().map(|path| Prebuilt::new(self.site, &page(path))).collect()
    }

    /// Returns the expected answer to the last request. A proof reads in its head which user the server saw.
    pub fn expected(&self) -> Expected {
        Expected { keeps_head: self.is_proof, ..Expected::of(self.site) }
    }

    /// Returns the expected answer to an earlier request, whose head is kept.
    pub fn answered(&self, status: u16) -> Expected {
        let expect = Expectation { status, bytes: None, body: None };
        Expected { keeps_head: true, ..Expected::of(&Site { expect, ..self.site.clone() }) }
    }
}

/// Builds the request that ends the session or token in this header.
pub fn ending(host: &str, header: &str) -> Vec<u8> {
    format!("POST {END_PATH} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n{header}\r\n").into_bytes()
}

// Server half.

/// Path at which users end their session or token.
pub const END_PATH: &str = "/sign-out";

/// Result of checking a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// The page is not protected.
    Unprotected,
    /// This user may see the page. The name is one that `accounts::is_name` accepts.
    User(&'a str),
    /// Another answer, for example a challenge or a redirection to a form.
    Answer(Reply<'a>),
}

#[derive(Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    pub status: Status,
    /// Headers, each with the end of its line.
    pub headers: &'a str,
    pub text: &'a str,
}

impl<'a> Reply<'a> {
    /// Refuses with this challenge.
    pub fn unauthorized(challenge: &'a str) -> Reply<'a> {
        Reply { status: Status::Unauthorized, headers: challenge, text: "sign in first\n" }
    }

    /// Confirms that a session or token has ended, or reports the failure.
    pub fn ended(done: Result<(), String>) -> Reply<'a> {
        match done {
            Ok(()) => Reply { status: Status::Done, headers: "", text: "ended\n" },
            Err(why) => Reply::failed(&why),
        }
    }

    /// Reports that the server cannot check credentials. The reason goes to standard error, because the
    /// client must not see it.
    pub fn failed(why: &str) -> Reply<'a> {
        eprintln!("serve: sign-in: {why}");
        Reply { status: Status::OperationFailed, headers: "", text: "sign-in does not work\n" }
    }
}

/// The server half of a scheme.
pub trait Server {
    /// Identifies the client of a request to a protected page.
    fn check(&mut self, request: &Request<'_>) -> Verdict<'_>;

    /// Returns true if it uses the certificates of TLS clients.
    fn needs_certificates(&self) -> bool {
        false
    }

    /// Returns the path of its form, the only one whose body the server reads:
    /// `application/x-www-form-urlencoded`, by POST.
    fn form_path(&self) -> Option<&'static str> {
        None
    }

    /// Answers a request to that path: a filled-in form, or without a body a request for the empty form.
    fn form(&mut self, _request: &Request<'_>, _filled_in: Option<&[u8]>) -> Reply<'_> {
        Reply { status: Status::NotFound, headers: "", text: "no form is here\n" }
    }

    /// Returns its count of remembered credentials since the last call; None if it remembers none.
    fn found(&mut self) -> Option<Found> {
        None
    }

    /// Returns the path at which a user ends a session or token, by a POST without a body; None if there is
    /// none that the server could end.
    fn end_path(&self) -> Option<&'static str> {
        None
    }

    /// Answers a request to that path.
    fn end(&mut self, _request: &Request<'_>) -> Reply<'_> {
        Reply { status: Status::NotFound, headers: "", text: "nothing ends here\n" }
    }
}

// Fields that a scheme reads itself.

pub type Settings = Map<String, Value>;

/// Reads a scheme's own fields, and refuses unknown ones; `place` is the field that contains them.
fn read<T: DeserializeOwned>(settings: &Settings, place: &str) -> Result<T, Failure> {
    let fields = Value::Object(settings.clone());
    serde_json::from_value(fields)
        .map_err(|error| Failure::Failed(format!("`{place}`: {}", on_one_line(error))))
}

/// Reads the scheme's fields of a server's configuration.
pub fn read_server<T: DeserializeOwned>(settings: &Settings) -> Result<T, Failure> {
    read(settings, "sign_in")
}

/// Fields of a scheme that has none.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoSettings {}
