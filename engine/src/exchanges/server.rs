//! What the embedded server asks before it gives a protected page away.

use crate::http::protocol::Status;
use crate::http::request::Request;

pub const PLACE: &str = "sign_in";
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
