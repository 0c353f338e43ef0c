//! Paths of the server: `/bytes/N` and `/op/FAMILY/CHOICE?bytes=N&op=OP`.

use super::answers::{Answer, Answers, MOST_BYTES};
use super::operations::{Operations, Query, Refusal};
use crate::http::request::{Body, Method, Persistence, Refused, Request, Status};
use crate::sign_in::scheme::{Reply, Server, Verdict};
use crate::sign_in::verified::FOUND_PATH;
use crate::store::{Rows, USED_PATH};

/// Everything that answers requests.
pub struct Service {
    operations: Operations,
    sign_in: Option<Box<dyn Server>>,
    rows: Option<Rows>,
    pub answers: Answers,
}

/// Limit of a form: names and passwords fit, and it fits together with a head into one read.
const MOST_FORM_BYTES: usize = 8 * 1024;

#[derive(Debug, PartialEq)]
pub enum Route<'a> {
    Bytes(usize),
    Operation(Query<'a>),
    /// Number of credentials that the sign-in remembered.
    Found,
    /// Number of rows that were used.
    Used,
    Nowhere,
}

impl Service {
    pub fn new(operations: Operations, sign_in: Option<Box<dyn Server>>, rows: Option<Rows>) -> Service {
        Service { operations, sign_in, rows, answers: Answers::new() }
    }

    /// Returns true if requests need the name in their connection's certificate.
    pub fn needs_certificates(&self) -> bool {
        self.sign_in.as_ref().is_some_and(|sign_in| sign_in.needs_certificates())
    }

    /// Returns the length of the body to read before this request is answered, or None without one.
    pub fn body_of(&self, request: &Request<'_>) -> Option<usize> {
        match request.body {
            Body::Counted(length) if length <= MOST_FORM_BYTES && self.is_form(request) => {
                let kind = request.content_type?.split(|byte| *byte == b';').next()?;
                let is_filled_in =
                    kind.trim_ascii().eq_ignore_ascii_case(b"application/x-www-form-urlencoded");
                (request.method == Method::Post && is_filled_in).then_some(length)
            }
            _ => None,
        }
    }

    /// Returns true if the target is the form of the sign-in.
    fn is_form(&self, request: &Request<'_>) -> bool {
        let path = self.sign_in.as_ref().and_then(|sign_in| sign_in.form_path());
        path.is_some_and(|path| path == split(request.target).0)
    }

    /// Returns true if the target is the path at which users end their sign-in.
    fn is_end(&self, request: &Request<'_>) -> bool {
        let path = self.sign_in.as_ref().and_then(|sign_in| sign_in.end_path());
        path.is_some_and(|path| path == split(request.target).0)
    }

    /// Answers a request, with its body if one was read.
    pub fn answer(&mut self, request: &Request<'_>, body: Option<&[u8]>) -> Answer<'_> {
        let persistence = request.persistence;
        let head_only = request.method == Method::Head;
        let is_form = self.is_form(request);
        if body.is_none() && request.body != Body::None {
            let why = "a body, which nothing here takes\n";
            let status = match request.method {
                Method::Post | Method::Other => Status::MethodNotAllowed,
                Method::Get | Method::Head => Status::BadRequest,
            };
            return self.last(status, why, head_only);
        }
        let is_end = request.method == Method::Post && self.is_end(request);
        if let Some(sign_in) = self.sign_in.as_mut().filter(|_| is_end) {
            let Reply { status, headers, text } = sign_in.end(request);
            return self.answers.text_with(status, headers, text, persistence, head_only);
        }
        if body.is_none() && matches!(request.method, Method::Post | Method::Other) {
            let why = "GET and HEAD only\n";
            return self.answers.text(Status::MethodNotAllowed, why, persistence, false);
        }
        if let Some(sign_in) = self.sign_in.as_mut().filter(|_| is_form) {
            let Reply { status, headers, text } = sign_in.form(request, body);
            return self.answers.text_with(status, headers, text, persistence, head_only);
        }
        let (status, text) = match route(request.target) {
            Route::Bytes(bytes) => {
                let verdict =
                    self.sign_in.as_mut().map_or(Verdict::Unprotected, |sign_in| sign_in.check(request));
                let user = match verdict {
                    Verdict::Unprotected => None,
                    // A page is equal for all users, except for requests that ask which user the server saw.
                    Verdict::User(name) => request.tells_user.then_some(name),
                    Verdict::Answer(Reply { status, headers, text }) => {
                        return self.answers.text_with(status, headers, text, persistence, head_only);
                    }
                };
                match self.rows.as_mut().map_or(Ok(()), Rows::perform) {
                    Ok(()) => return self.answers.bytes(bytes, user, persistence, head_only),
                    Err(failure) => (Status::OperationFailed, format!("{}\n", failure.into_words())),
                }
            }
            Route::Operation(asked) => match self.operations.perform(asked) {
                Ok(done) => return self.answers.text(Status::Done, done, persistence, head_only),
                Err(Refusal::Failed(reason)) => (Status::OperationFailed, format!("{reason}\n")),
                Err(Refusal::Ambiguous) => (Status::NotFound, self.directory("several operations fit")),
                Err(Refusal::NotPrepared) => (Status::NotFound, self.directory("not prepared")),
            },
            Route::Found => match self.sign_in.as_mut().and_then(|sign_in| sign_in.found()) {
                Some(found) => (Status::Done, found.words()),
                None => (Status::NotFound, self.directory("nothing is remembered")),
            },
            Route::Used => match self.rows.as_mut().map(Rows::found) {
                Some(Ok(found)) => (Status::Done, found),
                Some(Err(failure)) => (Status::OperationFailed, format!("{}\n", failure.into_words())),
                None => (Status::NotFound, self.directory("there is no table")),
            },
            Route::Nowhere => (Status::NotFound, self.directory("nothing is here")),
        };
        self.answers.text(status, &text, persistence, head_only)
    }

    /// Refuses a request as the last one of its connection, because the next one cannot be found.
    pub fn refuse(&mut self, refused: Refused) -> Answer<'_> {
        self.last(refused.status, &format!("{}\n", refused.why), false)
    }

    fn last(&mut self, status: Status, why: &str, head_only: bool) -> Answer<'_> {
        Answer { unread: true, ..self.answers.text(status, why, Persistence::Closed, head_only) }
    }

    /// Returns the reason of a refusal, and the existing paths.
    fn directory(&self, why: &str) -> String {
        let mut text = format!("{why}; there is:\n/bytes/N, with N from 0 to {MOST_BYTES}\n");
        for path in self.operations.paths() {
            text.push_str(&path);
            text.push('\n');
        }
        text
    }
}

/// Parses a request's target.
pub fn route(target: &str) -> Route<'_> {
    let (path, query) = split(target);
    if let Some(bytes) = path.strip_prefix("/bytes/") {
        // `parse` would accept a sign as well.
        let digits = bytes.bytes().all(|byte| byte.is_ascii_digit());
        return match bytes.parse() {
            Ok(bytes) if digits && bytes <= MOST_BYTES => Route::Bytes(bytes),
            _ => Route::Nowhere,
        };
    }
    match path.strip_prefix("/op/").and_then(|rest| rest.split_once('/')) {
        Some((family, choice)) => {
            let value = |name: &str| {
                query.split('&').find_map(|pair| pair.split_once('=').filter(|(key, _)| *key == name))
            };
            let (bytes, op) = (value("bytes").map(|pair| pair.1), value("op").map(|pair| pair.1));
            Route::Operation(Query { family, choice, bytes, op })
        }
        None if path == FOUND_PATH => Route::Found,
        None if path == USED_PATH => Route::Used,
        None => Route::Nowhere,
    }
}

/// Splits a target into path and query.
fn split(target: &str) -> (&str, &str) {
    let path = path_of(target);
    path.split_once('?').unwrap_or((path, ""))
}

/// Returns a target without scheme and authority, which a client may send and a server must accept (RFC 9112,
/// 3.2.2).
fn path_of(target: &str) -> &str {
    match target.split_once("://") {
        Some(("http" | "https", rest)) => rest.find('/').map_or("/", |slash| &rest[slash..]),
        _ => target,
    }
}
