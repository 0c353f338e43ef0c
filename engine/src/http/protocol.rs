//! What requests and answers have in common.

#[derive(Debug, PartialEq, Clone, Copy)]
pub enum Method {
    Get,
    Head,
    Post,
    Other,
}

/// What becomes of the connection after the answer.
#[derive(Debug, PartialEq, Clone, Copy)]
pub enum Persistence {
    /// Kept, as HTTP/1.1 does by itself.
    Kept,
    /// Kept because an HTTP/1.0 client asked for it, which has to be said.
    KeptOnRequest,
    Closed,
}

#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub enum Status {
    Done,
    Found,
    BadRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    HeadersTooLarge,
    OperationFailed,
}

impl Status {
    /// As the first line of an answer says it, behind the version.
    pub fn line(self) -> &'static str {
        match self {
            Status::Done => "200 OK",
            Status::Found => "302 Found",
            Status::BadRequest => "400 Bad Request",
            Status::Unauthorized => "401 Unauthorized",
            Status::Forbidden => "403 Forbidden",
            Status::NotFound => "404 Not Found",
            Status::MethodNotAllowed => "405 Method Not Allowed",
            Status::HeadersTooLarge => "431 Request Header Fields Too Large",
            Status::OperationFailed => "500 Internal Server Error",
        }
    }
}
