//! The server of a form: it issues and checks forms and tickets.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::{hmac, rand};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::fields::{COOKIE, PATH, TOKEN, field, of_cookie};
use crate::calls;
use crate::clock;
use crate::failure::Failure;
use crate::http::request::{Request, Status};
use crate::sign_in::accounts::is_name;
use crate::sign_in::lookup::Lookup;
use crate::sign_in::lookup::stored::Store;
use crate::sign_in::scheme::{END_PATH, Reply, Server, Verdict};

/// Returns the default lifetime of a ticket.
pub fn an_hour() -> u64 {
    3600
}

/// Attributes of a ticket's cookie.
pub struct Cookie {
    pub lasts_s: u64,
    /// True if a browser may send it over TLS only.
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

/// Methods with a given time, so that tests control the clock.
impl<T: Lookup> FormServer<T> {
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
        let cookie_token = request.cookie.and_then(|header| of_cookie(header, TOKEN)).unwrap_or_default();
        if verify_slices_are_equal(&token, cookie_token).is_err() || !self.tokens.is_ours(&token, now_s) {
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
                // The redirection leads to a page, as if the browser came from there; its length does not
                // matter.
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

impl<T: Lookup> Server for FormServer<T> {
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
        // An unknown session has ended already.
        let ticket = request.cookie.and_then(|header| of_cookie(header, COOKIE));
        Reply::ended(ticket.map_or(Ok(()), |ticket| self.tickets.end(ticket)))
    }
}

/// Tokens of forms and of their cookies: a time and random bytes, signed (a signed double-submit cookie). A
/// login without both, or with a token of another server, was not filled in here.
pub struct Tokens(hmac::Key);

/// Time in which a form must be filled in.
const FORM_S: u64 = 3600;
const SIGNED_BYTES: usize = 16;

impl Tokens {
    pub fn new() -> Result<Tokens, Failure> {
        let mut key = [0; 32];
        let made = rand::fill(&mut key).map(|()| Tokens(hmac::Key::new(hmac::HMAC_SHA256, &key)));
        made.map_err(|_| Failure::Failed("a key for forms cannot be made".to_owned()))
    }

    pub fn issue(&self, now_s: u64) -> Result<String, String> {
        let mut signed = [0; SIGNED_BYTES];
        signed[..8].copy_from_slice(&now_s.to_be_bytes());
        rand::fill(&mut signed[8..]).map_err(|_| "the system gives no random bytes".to_owned())?;
        calls::tally("HMAC");
        Ok(URL_SAFE_NO_PAD.encode([signed.as_slice(), hmac::sign(&self.0, &signed).as_ref()].concat()))
    }

    pub fn is_ours(&self, token: &[u8], now_s: u64) -> bool {
        let Ok(bytes) = URL_SAFE_NO_PAD.decode(token) else { return false };
        let Some((signed, signature)) = bytes.split_at_checked(SIGNED_BYTES) else { return false };
        calls::tally("HMAC");
        let given_s = signed.first_chunk().map_or(0, |time| u64::from_be_bytes(*time));
        hmac::verify(&self.0, signed, signature).is_ok() && now_s < given_s.saturating_add(FORM_S)
    }
}

#[cfg(test)]
pub mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use serde_json::{Value, json};

    use super::*;
    use crate::http::request::parse;
    use crate::sign_in::scheme::Settings;

    /// Returns the value of the cookie that an answer sets.
    fn given(reply: &Reply<'_>, cookie: &str) -> String {
        let (_, rest) = reply.headers.split_once(&format!("Set-Cookie: {cookie}=")).expect(reply.text);
        rest.split(';').next().unwrap_or_default().to_owned()
    }

    /// Logs in at a given time, and requests a page before and after the expiry. The server has these
    /// settings, and a file of accounts in this folder.
    pub fn lasts<T: Lookup>(
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
        let filled = text(TOKEN, &token);
        let filled = parse(filled.as_bytes()).expect("a request").expect("a whole one");
        let form = format!("name=u1&password=password&{TOKEN}={token}");
        let ticket = given(&server.form_at(&filled, Some(form.as_bytes()), NOW_S), COOKIE);
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

    #[test]
    fn a_form_s_token_is_taken_where_it_was_given_and_for_an_hour() {
        let (tokens, other) = (Tokens::new().expect("a key"), Tokens::new().expect("a key"));
        let token = tokens.issue(100).expect("a token");
        assert!(tokens.is_ours(token.as_bytes(), 100 + FORM_S - 1));
        assert!(!tokens.is_ours(token.as_bytes(), 100 + FORM_S));
        assert!(!other.is_ours(token.as_bytes(), 100));
        assert_ne!(Ok(token), tokens.issue(100));
    }

    #[test]
    fn a_token_is_signed_where_it_is_given_and_where_it_is_taken() {
        let tokens = Tokens::new().expect("a key");
        calls::tallied();
        let token = tokens.issue(100).expect("a token");
        assert_eq!(BTreeMap::from([("HMAC", 1)]), calls::tallied());
        assert!(tokens.is_ours(token.as_bytes(), 100));
        assert_eq!(BTreeMap::from([("HMAC", 1)]), calls::tallied());
    }
}
