//! The client of a form: it is redirected there once, fills it in, and sends the cookie from then on.

use serde::Deserialize;

use super::fields::{PATH, TOKEN, encode};
use crate::failure::{self, Failure, Fault};
use crate::http::prebuilt::Prebuilt;
use crate::http::response::{Expected, Response};
use crate::sign_in::accounts::{Account, Accounts};
use crate::sign_in::scheme::{Adversary, Client, Judgement, Setup, Visit, VisitKind, ending};

pub const FORGED: &str = "a forged cookie";
pub const ENDED: &str = "a session that was ended";
/// Login by another site that makes the user's browser post it. That site can have requested a form itself,
/// because a token is bound to no browser. The protection is the cookie that the token must match, which that
/// site can neither set nor have sent.
pub const FORGED_LOGIN: &str = "a login that another site forged";
/// Login with two tokens from the server that do not match.
pub const ANOTHER_TOKEN: &str = "a login whose token is not the one in its cookie";
/// Login with matching tokens that the server did not sign, as from a neighbour of the site which can set
/// cookies for it.
pub const UNSIGNED_TOKEN: &str = "a login whose token the server did not give";

struct FormClient {
    kind: VisitKind,
    /// Requests to each path without a cookie; `requests` have one.
    bare: Vec<Prebuilt>,
    requests: Vec<Prebuilt>,
    /// Request for the form, if it comes with a token.
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
    /// Account drawn with the first request of a login.
    account: usize,
    /// Header, with the end of its line.
    cookie: String,
    /// Token of its last login's form, if forms have one.
    token: String,
    /// Request that ends its session.
    ending: Vec<u8>,
    /// Filled-in form.
    form: Vec<u8>,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Request for the page, which redirects to the form.
    #[default]
    Bare,
    /// Request for the form, which returns its token.
    Ask,
    /// Filled-in form, which returns a cookie.
    Form,
    SignedIn,
    /// Ending: the session is ended, and the page is then requested with it.
    Ending,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClientSettings {
    /// True if the form comes with a token, which each login needs.
    #[serde(default)]
    token: bool,
}

pub fn client(setup: &Setup) -> Result<Box<dyn Client>, Failure> {
    let ClientSettings { token } = setup.settings()?;
    let site = setup.site;
    let accounts = setup.accounts()?;
    Ok(Box::new(FormClient {
        kind: setup.kind,
        bare: setup.followed(),
        requests: setup.requests(),
        ask: token.then(|| format!("GET {PATH} HTTP/1.1\r\nHost: {}\r\n\r\n", site.host).into_bytes()),
        redirected: setup.answered(302),
        ended: setup.answered(200),
        expected: setup.expected(),
        host: site.host.clone(),
        accounts,
        users: vec![User::default(); setup.users],
        wrong: None,
    }))
}

/// Returns the form of an account, with the tokens of the form and of its cookie, which are usually equal.
fn filled_in(host: &str, account: &Account, token: Option<&str>, cookie_token: Option<&str>) -> Vec<u8> {
    let Account { name, password } = account;
    let token = token.map_or(String::new(), |token| format!("&{TOKEN}={}", encode(token)));
    let body = format!("name={}&password={}{token}", encode(name), encode(password));
    let cookie = cookie_token.map_or(String::new(), |token| format!("Cookie: {TOKEN}={token}\r\n"));
    let length = body.len();
    format!(
        "POST {PATH} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {length}\r\n{cookie}\r\n{body}"
    )
    .into_bytes()
}

/// Returns the value of a cookie that an answer sets.
fn set_cookie<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    let cookies = response.headers("Set-Cookie").filter_map(|cookie| cookie.split(';').next());
    cookies.filter_map(|cookie| cookie.strip_prefix(name)?.strip_prefix('=')).next()
}

impl Client for FormClient {
    fn begin(&mut self, visit: &Visit) -> Result<(), Fault> {
        let user = &mut self.users[visit.user as usize];
        // A wrong cookie is sent instead of a login.
        let signs_on = self.kind == VisitKind::SignOn && self.wrong.is_none();
        if signs_on || user.stage != Stage::SignedIn {
            user.stage = Stage::Bare;
            user.account = self.accounts.drawn(visit.unique);
        } else if self.wrong == Some(ENDED) {
            user.stage = Stage::Ending;
            user.ending = ending(&self.host, &user.cookie);
        } else if self.wrong == Some(FORGED_LOGIN) {
            user.stage = Stage::Form;
            user.form = filled_in(&self.host, &self.accounts[user.account], Some(&user.token), None);
        } else if self.wrong == Some(UNSIGNED_TOKEN) {
            user.stage = Stage::Form;
            forge(&mut user.token, 0);
            let token = Some(user.token.as_str());
            user.form = filled_in(&self.host, &self.accounts[user.account], token, token);
        } else if self.wrong == Some(ANOTHER_TOKEN) {
            user.stage = Stage::Ask;
        }
        Ok(())
    }

    fn request(&mut self, visit: &Visit) -> &[u8] {
        let (user, path) = (&self.users[visit.user as usize], usize::from(visit.path));
        match user.stage {
            Stage::Bare => self.bare[path].with(visit.unique, b""),
            Stage::Ask => self.ask.as_deref().unwrap_or_default(),
            Stage::Form => &user.form,
            Stage::SignedIn => self.requests[path].with(visit.unique, user.cookie.as_bytes()),
            Stage::Ending => &user.ending,
        }
    }

    fn expected(&self, visit: &Visit) -> &Expected {
        match self.users[visit.user as usize].stage {
            Stage::SignedIn => &self.expected,
            Stage::Bare | Stage::Form => &self.redirected,
            Stage::Ask | Stage::Ending => &self.ended,
        }
    }

    fn judge(&mut self, visit: &Visit, response: &Response) -> Result<Judgement, Fault> {
        let user = &mut self.users[visit.user as usize];
        // An expired ticket redirects to the form again.
        let is_expired = visit.leg == 0 && response.status == 302 && self.wrong.is_none();
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
                    return Err(Fault::new(failure::NOT_HTTP, words));
                }
                if self.ask.is_some() {
                    Stage::Ask
                } else {
                    user.form = filled_in(&self.host, &self.accounts[user.account], None, None);
                    Stage::Form
                }
            }
            Stage::Ask => {
                let missing = || Fault::new(failure::NOT_HTTP, "a form without a token");
                let given = response.check(&self.ended).and_then(|()| {
                    let token = set_cookie(response, TOKEN).ok_or_else(missing)?;
                    Ok(token.to_owned())
                });
                let given = match given {
                    // A refused login proves something only if its form was issued.
                    Err(fault) if self.wrong.is_some() => {
                        return Err(Fault::new(failure::SIGN_IN, fault.words));
                    }
                    given => given?,
                };
                let before = std::mem::replace(&mut user.token, given);
                let is_another = self.wrong == Some(ANOTHER_TOKEN);
                let cookie_token = if is_another { &before } else { &user.token };
                let account = &self.accounts[user.account];
                user.form = filled_in(&self.host, account, Some(&user.token), Some(cookie_token));
                Stage::Form
            }
            Stage::Form => {
                response.check(&self.redirected)?;
                let cookie = response.header("Set-Cookie").and_then(|cookie| cookie.split(';').next());
                let missing = || Fault::new(failure::NOT_HTTP, "a login without a cookie");
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

    /// Returns true for a login: a cookie replaces it.
    fn signs_on(&self, visit: &Visit) -> bool {
        visit.leg > 0
    }

    fn user(&self, visit: &Visit) -> Option<&str> {
        Some(&self.accounts[self.users[visit.user as usize].account].name)
    }
}

impl Adversary for FormClient {
    fn why_not(&self, wrong: &'static str) -> Option<&'static str> {
        let is_of_token = [FORGED_LOGIN, ANOTHER_TOKEN, UNSIGNED_TOKEN].contains(&wrong);
        (is_of_token && self.ask.is_none()).then_some("this server's form has no token")
    }

    fn do_wrong(&mut self, wrong: &'static str) {
        self.wrong = Some(wrong);
        for User { cookie, .. } in self.users.iter_mut().filter(|_| wrong == FORGED) {
            forge_cookie(cookie);
        }
    }
}

/// Replaces the character at this place by one that also differs as a hexadecimal digit.
fn forge(text: &mut String, place: usize) {
    let other = if text[place..].starts_with(['A', 'a']) { "B" } else { "A" };
    // Another server's text may begin with any character.
    let first = text[place..].chars().next().map_or(0, char::len_utf8);
    text.replace_range(place..place + first, other);
}

/// Forges the value in this header, if there is one.
fn forge_cookie(cookie: &mut String) {
    if let Some(equals) = cookie.find('=') {
        forge(cookie, equals + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The forgery also differs if the cookie is a number, whose digits may be small or capital.
    #[test]
    fn a_forged_cookie_is_another() {
        for digit in "0123456789abcdefABCDEF".chars() {
            let right = format!("{digit}1");
            let mut cookie = format!("Cookie: ticket={right}\r\n");
            forge_cookie(&mut cookie);
            let forged = cookie.trim().rsplit('=').next().unwrap_or_default();
            assert_ne!(hex::decode(&right), hex::decode(forged), "{digit}");
        }
        for (given, forged) in
            [("Cookie: t=ö1\r\n", "Cookie: t=A1\r\n"), ("Cookie: t=", "Cookie: t=A"), ("", "")]
        {
            let mut cookie = given.to_owned();
            forge_cookie(&mut cookie);
            assert_eq!(forged, cookie);
        }
    }
}
