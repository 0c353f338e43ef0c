//! What is where: `/bytes/N` and `/op/FAMILY/CHOICE?bytes=N&op=OP`.

use super::answers::{Answer, Answers, MOST_BYTES};
use super::http::{Method, Persistence, Status};
use super::operations::{Asked, Operations, Refusal};
use super::request::{Refused, Request};

/// What answers requests.
pub struct Service {
    operations: Operations,
    pub answers: Answers,
}

#[derive(Debug, PartialEq)]
pub enum Route<'a> {
    Bytes(usize),
    Operation(Asked<'a>),
    Nowhere,
}

impl Service {
    pub fn new(operations: Operations) -> Service {
        Service { operations, answers: Answers::new() }
    }

    pub fn answer(&mut self, request: &Request<'_>) -> Answer<'_> {
        let persistence = request.persistence;
        if request.has_body {
            let why = "a body, which nothing here takes\n";
            let status = match request.method {
                Method::Other => Status::MethodNotAllowed,
                _ => Status::BadRequest,
            };
            return self.last(status, why, request.method == Method::Head);
        }
        let head_only = match request.method {
            Method::Get => false,
            Method::Head => true,
            Method::Other => {
                return self.answers.text(
                    Status::MethodNotAllowed,
                    "GET and HEAD only\n",
                    persistence,
                    false,
                );
            }
        };
        let (status, text) = match route(request.target) {
            Route::Bytes(bytes) => return self.answers.bytes(bytes, persistence, head_only),
            Route::Operation(asked) => match self.operations.perform(asked) {
                Ok(done) => return self.answers.text(Status::Done, done, persistence, head_only),
                Err(Refusal::Failed(reason)) => (Status::OperationFailed, format!("{reason}\n")),
                Err(Refusal::Ambiguous) => (Status::NotFound, self.directory("several operations fit")),
                Err(Refusal::NotPrepared) => (Status::NotFound, self.directory("not prepared")),
            },
            Route::Nowhere => (Status::NotFound, self.directory("nothing is here")),
        };
        self.answers.text(status, &text, persistence, head_only)
    }

    /// The last words on a connection whose next request cannot be found.
    pub fn refuse(&mut self, refused: Refused) -> Answer<'_> {
        self.last(refused.status, &format!("{}\n", refused.why), false)
    }

    fn last(&mut self, status: Status, why: &str, head_only: bool) -> Answer<'_> {
        Answer { unread: true, ..self.answers.text(status, why, Persistence::Closed, head_only) }
    }

    /// Why there is nothing, and what there is.
    fn directory(&self, why: &str) -> String {
        let mut text = format!("{why}; there is:\n/bytes/N, with N from 0 to {MOST_BYTES}\n");
        for path in self.operations.paths() {
            text.push_str(&path);
            text.push('\n');
        }
        text
    }
}

/// What a request's target asks for.
pub fn route(target: &str) -> Route<'_> {
    let (path, query) = path_of(target).split_once('?').unwrap_or((path_of(target), ""));
    if let Some(bytes) = path.strip_prefix("/bytes/") {
        // `parse` takes a sign as well.
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
            Route::Operation(Asked { family, choice, bytes, op })
        }
        None => Route::Nowhere,
    }
}

/// A target without scheme and authority, which a client may send and a server has to take (RFC 9112, 3.2.2).
fn path_of(target: &str) -> &str {
    match target.split_once("://") {
        Some(("http" | "https", rest)) => rest.find('/').map_or("/", |slash| &rest[slash..]),
        _ => target,
    }
}
