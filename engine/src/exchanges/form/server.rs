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

/// What is asked of it, at a given time.
impl<T: Tickets> FormServer<T> {
    fn check_at(&mut self, request: &Request<'_>, now_s: u64) -> Verdict<'_> {
        let ticket = request.cookie.and_then(|header| of_cookie(header, COOKIE));
        let user = ticket.map_or(Ok(None), |ticket| self.tickets.user(ticket, now_s));
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

    fn form_at(&mut self, request: &Request<'_>, filled_in: Option<&[u8]>, now_s: u64) -> Reply<'_> {
        const EMPTY: &str = "fill in: name, password, token\n";
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
}

impl<T: Tickets> Server for FormServer<T> {
    fn check(&mut self, request: &Request<'_>) -> Verdict<'_> {
        self.check_at(request, clock::unix_s())
    }

    fn form_path(&self) -> Option<&'static str> {
        Some(PATH)
    }

    fn form(&mut self, request: &Request<'_>, filled_in: Option<&[u8]>) -> Reply<'_> {
        self.form_at(request, filled_in, clock::unix_s())
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

#[cfg(test)]
pub mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::*;
    use crate::exchanges::settings::Settings;
    use crate::http::request::parse;

    /// The value of the cookie that an answer sets.
    fn given(reply: &Reply<'_>, cookie: &str) -> String {
        let (_, rest) = reply.headers.split_once(&format!("Set-Cookie: {cookie}=")).expect(reply.text);
        rest.split(';').next().unwrap_or_default().to_owned()
    }

    /// Logs in at a time that is given to the server, and asks for a page as long as that is taken, and then. The server
    /// is one of these settings, with a file of accounts in this folder.
    pub fn lasts<T: Tickets>(
        expected_s: u64,
        open: fn(&Settings) -> Result<FormServer<T>, Failure>,
        mut settings: Value,
        folder: &Path,
    ) {
        const NOW_S: u64 = 1_000_000;
        let accounts = folder.join("accounts");
        std::fs::write(&accounts, "u1:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n").expect("a file");
        settings["store"] = json!({"file": accounts});
        let opened = open(settings.as_object().expect("settings"));
        let mut server = opened.unwrap_or_else(|failure| panic!("{failure:?}"));
        let text = |cookie: &str, value: &str| {
            format!("GET / HTTP/1.1\r\nHost: x\r\nCookie: {cookie}={value}\r\n\r\n")
        };
        let bare = text("other", "1");
        let bare = parse(bare.as_bytes()).expect("a request").expect("a whole one");
        let token = given(&server.form_at(&bare, None, NOW_S), TOKEN);
        let beside = text(TOKEN, &token);
        let beside = parse(beside.as_bytes()).expect("a request").expect("a whole one");
        let form = format!("name=u1&password=password&{TOKEN}={token}");
        let ticket = given(&server.form_at(&beside, Some(form.as_bytes()), NOW_S), COOKIE);
        let page = text(COOKIE, &ticket);
        let page = parse(page.as_bytes()).expect("a request").expect("a whole one");
        for now_s in [NOW_S, NOW_S + expected_s - 1] {
            assert_eq!(Verdict::User("u1"), server.check_at(&page, now_s), "{now_s}");
        }
        for now_s in [NOW_S + expected_s, NOW_S + 1000 * expected_s - 1] {
            let Verdict::Answer(reply) = server.check_at(&page, now_s) else { panic!("taken at {now_s}") };
            let expected =
                Reply { status: Status::Found, headers: &format!("Location: {PATH}\r\n"), text: "" };
            assert_eq!(expected, reply, "{now_s}");
        }
    }
}
