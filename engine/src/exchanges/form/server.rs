//! The server of a form: what it gives out, and what it takes for it.

use aws_lc_rs::constant_time::verify_slices_are_equal;

use super::fields::{COOKIE, PATH, TOKEN, field, of_cookie};
use super::tokens::Tokens;
use crate::clock;
use crate::contract::Failure;
use crate::exchanges::accounts::is_name;
use crate::exchanges::server::{END_PATH, Reply, Server, Verdict};
use crate::exchanges::store::Store;
use crate::http::protocol::Status;
use crate::http::request::Request;

/// What stands for a name and a password after they were posted.
pub trait Tickets {
    /// Text that fits in a cookie.
    fn issue(&mut self, name: &str, now_s: u64, expires_s: u64) -> Result<String, String>;

    /// Whose it is, where it is one of ours and has not expired.
    fn user(&mut self, ticket: &[u8], now_s: u64) -> Result<Option<String>, String>;

    /// Whether the server can end one before it expires.
    fn ends(&self) -> bool {
        false
    }

    /// Takes it no more.
    fn end(&mut self, _ticket: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

/// How long a ticket is taken, where nothing else is said.
pub fn an_hour() -> u64 {
    3600
}

/// What is said of a ticket where it is given out.
pub struct Cookie {
    pub lasts_s: u64,
    /// Whether a browser may show it over TLS alone.
    pub secure: bool,
}

pub struct FormServer<T> {
    store: Store,
    tickets: T,
    cookie: Cookie,
    tokens: Tokens,
    headers: String,
    text: String,
    user: String,
}

impl<T> FormServer<T> {
    pub fn new(store: Store, tickets: T, cookie: Cookie) -> Result<FormServer<T>, Failure> {
        let (tokens, headers, text, user) = (Tokens::new()?, String::new(), String::new(), String::new());
        Ok(FormServer { store, tickets, cookie, tokens, headers, text, user })
    }
}

impl<T: Tickets> Server for FormServer<T> {
    fn check(&mut self, request: &Request<'_>) -> Verdict<'_> {
        let ticket = request.cookie.and_then(|header| of_cookie(header, COOKIE));
        let user = ticket.map_or(Ok(None), |ticket| self.tickets.user(ticket, clock::unix_s()));
        match user {
            Ok(Some(user)) => {
                self.user = user;
                Verdict::User(&self.user)
            }
            Ok(None) => {
                self.headers = format!("Location: {PATH}\r\n");
                Verdict::Answer(Reply { status: Status::Found, headers: &self.headers, text: "" })
            }
            Err(why) => Verdict::Answer(Reply::failed(&why)),
        }
    }

    fn form_path(&self) -> Option<&'static str> {
        Some(PATH)
    }

    fn form(&mut self, request: &Request<'_>, filled_in: Option<&[u8]>) -> Reply<'_> {
        const EMPTY: &str = "fill in: name, password, token\n";
        let now_s = clock::unix_s();
        let secure = if self.cookie.secure { "; Secure" } else { "" };
        let Some(body) = filled_in else {
            let token = match self.tokens.issue(now_s) {
                Ok(token) => token,
                Err(why) => return Reply::failed(&why),
            };
            self.headers =
                format!("Set-Cookie: {TOKEN}={token}; Path={PATH}; HttpOnly; SameSite=Strict{secure}\r\n");
            self.text = format!("{EMPTY}token: {token}\n");
            return Reply { status: Status::Done, headers: &self.headers, text: &self.text };
        };
        let token = field(body, TOKEN.as_bytes()).unwrap_or_default();
        let beside = request.cookie.and_then(|header| of_cookie(header, TOKEN)).unwrap_or_default();
        if verify_slices_are_equal(&token, beside).is_err() || !self.tokens.is_ours(&token, now_s) {
            let text = "this form was not filled in here: ask for it again\n";
            return Reply { status: Status::Forbidden, headers: "", text };
        }
        let (name, password) = (field(body, b"name"), field(body, b"password"));
        let name = name.filter(|name| is_name(name)).and_then(|name| String::from_utf8(name).ok());
        let (Some(name), Some(password)) = (name, password) else {
            return Reply { status: Status::BadRequest, headers: "", text: EMPTY };
        };
        let issued = self.store.is_password(&name, &password).and_then(|is_right| {
            let expires_s = now_s + self.cookie.lasts_s;
            if is_right { self.tickets.issue(&name, now_s, expires_s).map(Some) } else { Ok(None) }
        });
        match issued {
            Ok(Some(ticket)) => {
                // Back to where a browser would have come from: a page of any length will do.
                self.headers = format!(
                    "Location: /bytes/0\r\nSet-Cookie: {COOKIE}={ticket}; Path=/; HttpOnly; SameSite=Lax{secure}\r\n"
                );
                Reply { status: Status::Found, headers: &self.headers, text: "" }
            }
            Ok(None) => Reply { status: Status::Forbidden, headers: "", text: "no such user and password\n" },
            Err(why) => Reply::failed(&why),
        }
    }

    fn end_path(&self) -> Option<&'static str> {
        self.tickets.ends().then_some(END_PATH)
    }

    fn end(&mut self, request: &Request<'_>) -> Reply<'_> {
        // A session that there is not is ended already.
        let ticket = request.cookie.and_then(|header| of_cookie(header, COOKIE));
        Reply::ended(ticket.map_or(Ok(()), |ticket| self.tickets.end(ticket)))
    }
}
