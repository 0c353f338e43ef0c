//! A login form: the page sends the browser there, name and password are posted together with a token that came with
//! the form, and a sealed ticket in a cookie stands for them from then on, until it expires.

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::{hmac, rand};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;

use super::accounts::{Account, Accounts, is_name};
use super::client::{Client, Judgement, Setup};
use super::operation::Operation;
use super::scheme::{Scheme, Wrong};
use super::server::{END_PATH, PLACE, Reply, Server, Verdict};
use super::settings::{Settings, read};
use super::store::{self, Store};
use crate::calls;
use crate::clock;
use crate::contract::Failure;
use crate::fault::{self, Fault};
use crate::http::prebuilt::{Outline, Prebuilt};
use crate::http::protocol::Status;
use crate::http::request::Request;
use crate::http::response::{Expected, Response};
use crate::load_task::OperationKind;

pub const FORGED: &str = "a forged cookie";
pub const ENDED: &str = "a session that was ended";
/// A site that has the user's browser post a login of its own knows no token, and no cookie that this site set.
pub const FORGED_LOGIN: &str = "a login that another site forged";

pub const SCHEME: Scheme = Scheme {
    name: "form",
    client,
    server: Some(server),
    keeps_state: true,
    has_sign_on: true,
    refused: &[
        Wrong::NoCredentials,
        Wrong::Password,
        Wrong::User,
        Wrong::Own(FORGED),
        Wrong::Own(FORGED_LOGIN),
    ],
};

/// Where the form is.
const PATH: &str = "/login";
const COOKIE: &str = "ticket";
/// Where the form's token is: in a cookie, and in a field of the form.
const TOKEN: &str = "token";

// The client.

struct FormClient {
    kind: OperationKind,
    /// To each path: without a cookie, and with one.
    bare: Vec<Prebuilt>,
    requests: Vec<Prebuilt>,
    /// Asks for the form, where it comes with a token.
    ask: Option<Vec<u8>>,
    redirected: Expected,
    ended: Expected,
    expected: Expected,
    host: String,
    accounts: Accounts,
    users: Vec<User>,
    wrong: Option<&'static str>,
}

#[derive(Default, Clone)]
struct User {
    stage: Stage,
    /// Drawn with the first request of a login.
    account: usize,
    /// The header, with the end of its line.
    cookie: String,
    /// The request that ends its session.
    ending: Vec<u8>,
    /// The form, filled in.
    form: Vec<u8>,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Asks for the page, and is sent to the form.
    #[default]
    Bare,
    /// Asks for the form, and is given its token.
    Ask,
    /// Fills it in, and is given a cookie.
    Form,
    SignedIn,
    /// Ends its session, and then asks for the page by it.
    Ending,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClientSettings {
    /// Whether the form comes with a token, without which no login is taken.
    #[serde(default)]
    token: bool,
}

pub fn client(setup: &Setup) -> Result<Box<dyn Client>, Failure> {
    let ClientSettings { token } = setup.settings()?;
    let load = setup.load;
    let accounts = setup.accounts()?;
    let bare = |path| Prebuilt::new(load, &Outline { is_last: false, ..Outline::page(load, path) });
    let redirected =
        Expected { status: 302, bytes: None, body: None, keeps_head: true, ..Expected::of(load) };
    let ended = Expected { status: 200, ..redirected.clone() };
    Ok(Box::new(FormClient {
        kind: setup.kind,
        bare: setup.paths.iter().map(|path| bare(path)).collect(),
        requests: setup.requests(),
        ask: token.then(|| format!("GET {PATH} HTTP/1.1\r\nHost: {}\r\n\r\n", load.host).into_bytes()),
        redirected,
        ended,
        expected: setup.expected(),
        host: load.host.clone(),
        accounts,
        users: vec![User::default(); load.users as usize],
        wrong: None,
    }))
}

/// The form of an account, with the token that it came with.
fn filled_in(host: &str, Account { name, password }: &Account, token: Option<&str>) -> Vec<u8> {
    let mut body = format!("name={}&password={}", encode(name), encode(password));
    let mut cookie = String::new();
    if let Some(token) = token {
        body.push_str(&format!("&{TOKEN}={}", encode(token)));
        cookie = format!("Cookie: {TOKEN}={token}\r\n");
    }
    let length = body.len();
    format!(
        "POST {PATH} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {length}\r\n{cookie}\r\n{body}"
    )
    .into_bytes()
}

/// The value of a cookie that an answer sets.
fn set_cookie<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    let cookies = response.headers("Set-Cookie").filter_map(|cookie| cookie.split(';').next());
    cookies.filter_map(|cookie| cookie.strip_prefix(name)?.strip_prefix('=')).next()
}

impl Client for FormClient {
    fn begin(&mut self, operation: &Operation) -> Result<(), Fault> {
        let user = &mut self.users[operation.user as usize];
        // A wrong cookie is sent in place of a login.
        let signs_on = self.kind == OperationKind::SignOn && self.wrong.is_none();
        if signs_on || user.stage != Stage::SignedIn {
            user.stage = Stage::Bare;
            user.account = self.accounts.drawn(operation);
        } else if self.wrong == Some(ENDED) {
            user.stage = Stage::Ending;
            user.ending = ending(&self.host, &user.cookie);
        } else if self.wrong == Some(FORGED_LOGIN) {
            user.stage = Stage::Form;
            user.form = filled_in(&self.host, &self.accounts[user.account], None);
        }
        Ok(())
    }

    fn request(&mut self, operation: &Operation) -> &[u8] {
        let (user, path) = (&self.users[operation.user as usize], usize::from(operation.path));
        match user.stage {
            Stage::Bare => self.bare[path].with(operation.unique, b""),
            Stage::Ask => self.ask.as_deref().unwrap_or_default(),
            Stage::Form => &user.form,
            Stage::SignedIn => self.requests[path].with(operation.unique, user.cookie.as_bytes()),
            Stage::Ending => &user.ending,
        }
    }

    fn expected(&self, operation: &Operation) -> &Expected {
        match self.users[operation.user as usize].stage {
            Stage::SignedIn => &self.expected,
            Stage::Bare | Stage::Form => &self.redirected,
            Stage::Ask | Stage::Ending => &self.ended,
        }
    }

    fn judge(&mut self, operation: &Operation, response: &Response) -> Result<Judgement, Fault> {
        let user = &mut self.users[operation.user as usize];
        // A ticket that has expired leads to the form again.
        let is_expired = operation.leg == 0 && response.status == 302 && self.wrong.is_none();
        user.stage = match user.stage {
            Stage::SignedIn if !is_expired => {
                let right = response.check(&self.expected);
                if right.is_err() {
                    user.stage = Stage::Bare;
                }
                return right.map(|()| Judgement::Done);
            }
            Stage::SignedIn | Stage::Bare => {
                response.check(&self.redirected)?;
                let place = response.header("Location").unwrap_or_default();
                if !place.contains(PATH) {
                    let words = format!("the page leads to {place:?} and not to {PATH}");
                    return Err(Fault::new(fault::NOT_HTTP, words));
                }
                if self.ask.is_some() {
                    Stage::Ask
                } else {
                    user.form = filled_in(&self.host, &self.accounts[user.account], None);
                    Stage::Form
                }
            }
            Stage::Ask => {
                response.check(&self.ended)?;
                let missing = || Fault::new(fault::NOT_HTTP, "a form without a token");
                let token = set_cookie(response, TOKEN).ok_or_else(missing)?;
                user.form = filled_in(&self.host, &self.accounts[user.account], Some(token));
                Stage::Form
            }
            Stage::Form => {
                response.check(&self.redirected)?;
                let cookie = response.header("Set-Cookie").and_then(|cookie| cookie.split(';').next());
                let missing = || Fault::new(fault::NOT_HTTP, "a login without a cookie");
                user.cookie = format!("Cookie: {}\r\n", cookie.ok_or_else(missing)?);
                Stage::SignedIn
            }
            Stage::Ending => {
                response.check(&self.ended)?;
                Stage::SignedIn
            }
        };
        Ok(Judgement::Continue)
    }

    /// A cookie stands for a login.
    fn signs_on(&self, operation: &Operation) -> bool {
        operation.leg > 0
    }

    fn user(&self, operation: &Operation) -> Option<&str> {
        Some(&self.accounts[self.users[operation.user as usize].account].name)
    }

    fn why_not(&self, wrong: &'static str) -> Option<&'static str> {
        (wrong == FORGED_LOGIN && self.ask.is_none()).then_some("this server's form has no token")
    }

    fn do_wrong(&mut self, wrong: &'static str) {
        self.wrong = Some(wrong);
        for User { cookie, .. } in self.users.iter_mut().filter(|_| wrong == FORGED) {
            forge(cookie);
        }
    }
}

/// What ends the session, or the token, that this header shows.
pub fn ending(host: &str, header: &str) -> Vec<u8> {
    format!("POST {END_PATH} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n{header}\r\n").into_bytes()
}

/// Puts another first character after the cookie's name; one that is another to readers of hexadecimal digits as well.
fn forge(cookie: &mut String) {
    if let Some(value) = cookie.find('=').map(|equals| equals + 1) {
        let other = if cookie[value..].starts_with(['A', 'a']) { "B" } else { "A" };
        // What another server gives may begin with any character.
        let first = cookie[value..].chars().next().map_or(0, char::len_utf8);
        cookie.replace_range(value..value + first, other);
    }
}

// The server.

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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerSettings {
    store: store::Spec,
    #[serde(default = "an_hour")]
    ticket_s: u64,
    #[serde(default)]
    secure: bool,
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

/// What stands in a form that this server gave, and in a cookie beside it: a time and random bytes, signed (a signed
/// double-submit cookie). A login without both, or with a token of another server, was not filled in here.
struct Tokens(hmac::Key);

/// How long a form may be filled in.
const FORM_S: u64 = 3600;
const SIGNED_BYTES: usize = 16;

impl Tokens {
    fn new() -> Result<Tokens, Failure> {
        let mut key = [0; 32];
        let made = rand::fill(&mut key).map(|()| Tokens(hmac::Key::new(hmac::HMAC_SHA256, &key)));
        made.map_err(|_| Failure::Failed("no key for forms is to be had".to_owned()))
    }

    fn issue(&self, now_s: u64) -> Result<String, String> {
        let mut signed = [0; SIGNED_BYTES];
        signed[..8].copy_from_slice(&now_s.to_be_bytes());
        rand::fill(&mut signed[8..]).map_err(|_| "no random bytes are to be had".to_owned())?;
        Ok(URL_SAFE_NO_PAD.encode([signed.as_slice(), hmac::sign(&self.0, &signed).as_ref()].concat()))
    }

    fn is_ours(&self, token: &[u8], now_s: u64) -> bool {
        let Ok(bytes) = URL_SAFE_NO_PAD.decode(token) else { return false };
        let Some((signed, signature)) = bytes.split_at_checked(SIGNED_BYTES) else { return false };
        let given_s = signed.first_chunk().map_or(0, |time| u64::from_be_bytes(*time));
        hmac::verify(&self.0, signed, signature).is_ok() && now_s < given_s.saturating_add(FORM_S)
    }
}

fn server(settings: &Settings) -> Result<Box<dyn Server>, Failure> {
    let ServerSettings { store, ticket_s, secure } = read(settings, PLACE)?;
    let (store, tickets) = (Store::open(&store)?, Sealed::new()?);
    Ok(Box::new(FormServer::new(store, tickets, Cookie { lasts_s: ticket_s, secure })?))
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

/// Sealed with a key that this process alone has: a server started again takes none of them.
struct Sealed(RandomizedNonceKey);

impl Sealed {
    fn new() -> Result<Sealed, Failure> {
        let mut key = [0; 32];
        let made = rand::fill(&mut key).and_then(|()| RandomizedNonceKey::new(&AES_256_GCM, &key));
        made.map(Sealed).map_err(|_| Failure::Failed("no key for tickets is to be had".to_owned()))
    }
}

impl Tickets for Sealed {
    /// Of nonce, and when it expires and the name, encrypted.
    fn issue(&mut self, name: &str, _now_s: u64, expires_s: u64) -> Result<String, String> {
        let mut sealed = [&expires_s.to_be_bytes(), name.as_bytes()].concat();
        let nonce = self.0.seal_in_place_append_tag(Aad::empty(), &mut sealed);
        let nonce = nonce.map_err(|_| "a ticket cannot be sealed".to_owned())?;
        Ok(URL_SAFE_NO_PAD.encode([nonce.as_ref().as_slice(), &sealed].concat()))
    }

    fn user(&mut self, ticket: &[u8], now_s: u64) -> Result<Option<String>, String> {
        Ok(self.open(ticket, now_s))
    }
}

impl Sealed {
    fn open(&self, ticket: &[u8], now_s: u64) -> Option<String> {
        let mut bytes = URL_SAFE_NO_PAD.decode(ticket).ok()?;
        let (nonce, sealed) = bytes.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        calls::tally("ticket opened");
        let opened = self.0.open_in_place(nonce, Aad::empty(), sealed).ok()?;
        let (expires_s, name) = opened.split_first_chunk()?;
        let is_valid = now_s < u64::from_be_bytes(*expires_s);
        if is_valid { String::from_utf8(name.to_vec()).ok() } else { None }
    }
}

/// The value of this cookie among those of a request.
fn of_cookie<'a>(header: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let cookies = header.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
    cookies.filter_map(|cookie| cookie.strip_prefix(name.as_bytes())?.strip_prefix(b"=")).next()
}

/// A field of a form, decoded; None where it is not there, or not as forms are written.
fn field(body: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    let mut fields = body.split(|byte| *byte == b'&');
    decode(fields.find_map(|field| field.strip_prefix(name)?.strip_prefix(b"="))?)
}

fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.iter();
    while let Some(byte) = rest.next() {
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || (*rest.next()? as char).to_digit(16);
                (digit()? << 4 | digit()?) as u8
            }
            other => *other,
        });
    }
    Some(decoded)
}

fn encode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).into() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchanges::tests::any_bytes;

    #[test]
    fn a_form_is_read_as_it_was_written() {
        for text in ["", "a", "a b", "a&b=c%", "wörd+", "\r\n"] {
            let body = format!("x=1&name={}&password=2", encode(text));
            assert_eq!(Some(text.as_bytes().to_vec()), field(body.as_bytes(), b"name"), "{text:?}");
        }
        assert_eq!(Some(b"a b".to_vec()), field(b"name=a+b", b"name"));
        for wrong in ["", "name", "names=a", "name=%", "name=%4", "name=%4x", "&&"] {
            assert_eq!(None, field(wrong.as_bytes(), b"name"), "{wrong}");
        }
    }

    /// Also where the cookie is a number, whose digits may be small or capital.
    #[test]
    fn a_forged_cookie_is_another() {
        for digit in "0123456789abcdefABCDEF".chars() {
            let right = format!("{digit}1");
            let mut cookie = format!("Cookie: ticket={right}\r\n");
            forge(&mut cookie);
            let forged = cookie.trim().rsplit('=').next().unwrap_or_default();
            assert_ne!(hex::decode(&right), hex::decode(forged), "{digit}");
        }
        for (given, forged) in
            [("Cookie: t=ö1\r\n", "Cookie: t=A1\r\n"), ("Cookie: t=", "Cookie: t=A"), ("", "")]
        {
            let mut cookie = given.to_owned();
            forge(&mut cookie);
            assert_eq!(forged, cookie);
        }
    }

    #[test]
    fn any_form_and_cookie_are_taken() {
        let (mut sealed, tokens) = (Sealed::new().expect("a key"), Tokens::new().expect("a key"));
        for bytes in
            any_bytes(&[b"name=", b"&", b"%4", b"%41", b"=", b"ticket=", b";", b" ", b"AAAAAAAAAAAAAAAA"])
        {
            if let Some(value) = field(&bytes, b"name") {
                assert!(value.len() <= bytes.len());
            }
            assert_eq!(Ok(None), sealed.user(of_cookie(&bytes, COOKIE).unwrap_or(&bytes), 0));
            assert!(!tokens.is_ours(&bytes, 0));
        }
    }

    #[test]
    fn a_ticket_is_taken_until_it_expires_and_as_it_was_given() {
        let mut sealed = Sealed::new().expect("a key");
        let ticket = sealed.issue("u1", 0, 100).expect("a ticket");
        let mut user = |ticket: &str, now_s| sealed.user(ticket.as_bytes(), now_s).expect("an answer");
        assert_eq!(Some("u1".to_owned()), user(&ticket, 99));
        assert_eq!(None, user(&ticket, 100));
        for place in 0..ticket.len() {
            let mut forged = ticket.clone();
            let other = if forged[place..].starts_with('A') { "B" } else { "A" };
            forged.replace_range(place..=place, other);
            assert_eq!(None, user(&forged, 99), "{place}");
        }
        assert_eq!(Ok(None), Sealed::new().expect("a key").user(ticket.as_bytes(), 99));
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
    fn a_ticket_is_found_among_cookies() {
        for (expected, header) in [
            (Some("x"), "ticket=x"),
            (Some("x"), "a=b; ticket=x; c=d"),
            (Some(""), "ticket="),
            (None, "tickets=x"),
            (None, "a=ticket=x"),
            (None, ""),
        ] {
            assert_eq!(expected.map(str::as_bytes), of_cookie(header.as_bytes(), COOKIE), "{header}");
        }
    }
}
