//! Kerberos (RFC 4559: SPNEGO in HTTP): a ticket from the directory, and in each request a token made with
//! it.
//!
//! It has only a client half: the machine's GSSAPI library makes the tokens. The library asks the directory
//! while the loop waits, so that tickets are fetched before a chunk's accounts are opened. Only a sign-on
//! fetches them during a chunk. It begins with a request that is refused, like that of a browser which does
//! not know yet that it must sign in.

use std::collections::VecDeque;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::accounts::Accounts;
use super::negotiate::{header, refused, token};
use super::scheme::{Adversary, Client, Judgement, Scheme, Setup, Visit, VisitKind, Wrong};
use crate::failure::{self, Failure, Fault};
use crate::gssapi::{self, Context, Credentials, Library, Mechanism, Name};
use crate::http::prebuilt::Prebuilt;
use crate::http::response::{Expected, Response};

pub const SCHEME: Scheme = Scheme {
    name: "kerberos",
    client,
    server: None,
    keeps_state: true,
    has_sign_on: true,
    refused: &[
        Wrong::NoCredentials,
        Wrong::Password,
        Wrong::User,
        Wrong::Own(REPLAYED),
        Wrong::Own(ANOTHER_SERVICE),
    ],
};

const REPLAYED: &str = "a replayed token";
const ANOTHER_SERVICE: &str = "a token for another service";

const NEGOTIATE: &str = "Negotiate";
/// Age up to which kept tickets are used: Samba and MIT issue them for ten hours, and a trial takes seconds.
const KEPT_FOR: Duration = Duration::from_secs(4 * 3600);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Configuration that locates the directory.
    krb5_config: PathBuf,
    /// Service name, for example `HTTP@web1.tollbar.test`.
    service: String,
    /// Service that the directory knows and the server is not.
    another_service: String,
    #[serde(default)]
    persistence: Persistence,
    /// True if the directory trusts the service's account for delegation: its servers get the user's ticket,
    /// to act in the user's name. The client forwards it as the directory decides; a proof checks that
    /// against this field.
    #[serde(default)]
    delegate: bool,
    /// Mechanism of the token in `Negotiate`: SPNEGO with Kerberos inside, or Kerberos alone. RFC 4559 sends
    /// the first; servers accept both.
    mechanism: Mechanism,
    /// Folder in which its users' tickets are kept for the next trial; None: each trial fetches its own.
    tickets: Option<PathBuf>,
    /// True if tokens are made before a chunk's accounts are opened instead of in its requests.
    #[serde(default)]
    ahead: bool,
}

/// Lifetime of a token's authentication.
#[derive(Deserialize, Debug, Clone, Copy, PartialEq, Eq, Default)]
#[serde(rename_all = "kebab-case")]
enum Persistence {
    /// The request that carries the token.
    #[default]
    Request,
    /// Its connection.
    Connection,
    /// The cookie with which the server answers.
    Session,
}

struct KerberosClient {
    library: &'static Library,
    settings: Settings,
    kind: VisitKind,
    /// True if each operation is a request with its own token.
    has_token_each: bool,
    /// True for a proof, which requires the server's own token.
    is_proof: bool,
    requests: Vec<Prebuilt>,
    /// Requests without a token.
    bare: Vec<Prebuilt>,
    /// Requests without a token that precede the one with the token, at the beginning of a sign-on.
    first: Vec<Prebuilt>,
    /// Expected answer to those.
    challenged: Expected,
    /// Expected answer; the second also keeps its head for the client.
    expected: [Expected; 2],
    accounts: Accounts,
    service: Name<'static>,
    /// Credentials of each account, once it has signed in.
    credentials: Vec<Option<Credentials<'static>>>,
    users: Vec<User>,
    /// Tokens made ahead, for the accounts that operations will draw. An operation takes the next one, even
    /// if another operation drew its account. Otherwise a token would be made during measurement for each
    /// user with more operations than planned.
    tokens: VecDeque<(usize, Token)>,
    repeats: bool,
}

struct Token {
    header: Vec<u8>,
    /// Context that receives the server's token, which only a proof keeps.
    context: Option<Context<'static>>,
}

#[derive(Default)]
struct User {
    /// Account that the user is signed in as.
    account: usize,
    /// Header of the current request: a token, a cookie, or nothing.
    header: Vec<u8>,
    context: Option<Context<'static>>,
    /// Connection on which a token was last accepted.
    connection: Option<u32>,
    cookie: Option<Vec<u8>>,
    /// True if the current request has a token.
    signs_on: bool,
}

fn client(setup: &Setup) -> Result<Box<dyn Client>, Failure> {
    let settings: Settings = setup.settings()?;
    let has_token_each = setup.kind == VisitKind::Request
        && match settings.persistence {
            Persistence::Request => true,
            Persistence::Connection => setup.site.closes,
            Persistence::Session => false,
        };
    if settings.ahead && !has_token_each {
        let words = "`load.exchange.ahead` needs a scheme in which each request has its own token";
        return Err(Failure::Failed(words.to_owned()));
    }
    let library = gssapi::open(settings.mechanism, Some(&settings.krb5_config))?;
    let service = library.service(&settings.service).map_err(Failure::Failed)?;
    let accounts = setup.accounts()?;
    let expected = setup.expected();
    let with_head = Expected { keeps_head: true, ..expected.clone() };
    Ok(Box::new(KerberosClient {
        library,
        kind: setup.kind,
        has_token_each,
        is_proof: setup.is_proof,
        requests: setup.requests(),
        bare: setup.requests(),
        first: setup.followed(),
        challenged: setup.answered(401),
        expected: [expected, with_head],
        credentials: accounts.iter().map(|_| None).collect(),
        accounts,
        service,
        settings,
        users: (0..setup.users).map(|_| User::default()).collect(),
        tokens: VecDeque::new(),
        repeats: false,
    }))
}

impl KerberosClient {
    /// Makes a token of an account, which signs in first if it has not.
    fn token(&mut self, account: usize) -> Result<Token, Fault> {
        let mechanism = self.settings.mechanism;
        if self.credentials[account].is_none() {
            let words = |words| {
                let name = &self.accounts[account].name;
                refused(format!("{name} cannot sign in: {words}"))
            };
            let user = self.library.user(&self.accounts[account].name).map_err(words)?;
            let password = &self.accounts[account].password;
            let signed_in = match self.kept(account) {
                Some(tickets) => {
                    if !is_fresh(&tickets) {
                        self.keep(account, &user, &tickets)?;
                    }
                    self.library.signed_in(mechanism, &user, &tickets)
                }
                None => self.library.sign_in(mechanism, &user, password),
            };
            self.credentials[account] = Some(signed_in.map_err(words)?);
        }
        let mut context = self.library.context(mechanism);
        let step = self.step(account, &mut context, &[])?;
        if !mechanism.is_of(&step.token) {
            return Err(refused(format!("the library made a token that is not {mechanism:?}'s")));
        }
        Ok(Token { header: header(NEGOTIATE, &step.token), context: self.is_proof.then_some(context) })
    }

    /// Returns the file of an account's tickets. A sign-on has none, because it must fetch them; nor has a
    /// proof, because the directory must issue its tickets, and refuse those of wrong accounts.
    fn kept(&self, account: usize) -> Option<PathBuf> {
        let tickets = self.settings.tickets.as_ref();
        let tickets = tickets.filter(|_| self.kind == VisitKind::Request && !self.is_proof)?;
        Some(tickets.join(format!("{}-{}", self.settings.service, self.accounts[account].name)))
    }

    /// Stores the tickets of an account. Another trial may do so at the same time, so that the file appears
    /// only when complete.
    fn keep(&self, account: usize, user: &Name, tickets: &Path) -> Result<(), Fault> {
        let words = |words| refused(format!("{}: {words}", tickets.display()));
        let mut own = tickets.as_os_str().to_owned();
        own.push(format!(".{}", std::process::id()));
        let own = Path::new(&own);
        let folder = tickets.parent().unwrap_or(tickets);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|error| words(error.to_string()))?;
        let fetched = self.library.fetch(user, &self.accounts[account].password, &self.service, own);
        let kept = fetched.and_then(|()| std::fs::rename(own, tickets).map_err(|error| error.to_string()));
        kept.map_err(|error| {
            // Remove a partly written file.
            let _ = std::fs::remove_file(own);
            words(error)
        })
    }

    fn step(&self, account: usize, context: &mut Context, came: &[u8]) -> Result<gssapi::Step, Fault> {
        let credentials = self.credentials[account].as_ref().ok_or_else(|| refused("not signed in"))?;
        context.step(credentials, &self.service, came).map_err(refused)
    }

    /// Returns true if the current request is the first of a sign-on, whose refusal makes the client sign in.
    fn is_first(&self, visit: &Visit) -> bool {
        self.kind == VisitKind::SignOn && visit.leg == 0
    }

    /// Returns true if a user has a connection or cookie that replaces a token.
    fn is_signed_in(&self, visit: &Visit) -> bool {
        let user = &self.users[visit.user as usize];
        self.kind == VisitKind::Request
            && match self.settings.persistence {
                Persistence::Request => false,
                Persistence::Connection => user.connection == Some(visit.connection),
                Persistence::Session => user.cookie.is_some(),
            }
    }

    /// Checks that the token in the answer proves the server to have the service's key. Also checks that the
    /// user's ticket was forwarded to the service exactly if `delegate` is set.
    fn prove_server(&self, user: &mut User, response: &Response) -> Result<(), Fault> {
        let Some(mut context) = user.context.take() else { return Ok(()) };
        let came = token(NEGOTIATE, response)?;
        let step = self.step(user.account, &mut context, &came)?;
        if !step.is_complete {
            return Err(refused("the server's token does not prove that it is the one asked for"));
        }
        match (step.has_delegated, self.settings.delegate) {
            (false, true) => Err(refused(
                "the user's ticket was not forwarded; the account must be trusted for delegation",
            )),
            (true, false) => Err(refused("the user's ticket was forwarded to an account without delegation")),
            _ => Ok(()),
        }
    }
}

impl Client for KerberosClient {
    fn prepare(&mut self, visits: &[Visit]) -> Result<(), Fault> {
        self.tokens.clear();
        for visit in visits {
            let account = self.accounts.drawn(visit.unique);
            if self.settings.ahead {
                let token = self.token(account)?;
                self.tokens.push_back((account, token));
            } else if self.credentials[account].is_none() {
                // Its service ticket stays with its credentials.
                self.token(account)?;
            }
        }
        Ok(())
    }

    fn prepares(&self) -> bool {
        self.has_token_each
    }

    fn begin(&mut self, visit: &Visit) -> Result<(), Fault> {
        if self.repeats {
            return Ok(());
        }
        let index = visit.user as usize;
        if self.is_signed_in(visit) {
            let user = &mut self.users[index];
            user.header = user.cookie.clone().unwrap_or_default();
            user.signs_on = false;
            return Ok(());
        }
        let (account, Token { header, context }) = match self.tokens.pop_front() {
            Some(made) => made,
            None => {
                let account = self.accounts.drawn(visit.unique);
                if self.kind == VisitKind::SignOn {
                    self.credentials[account] = None;
                }
                (account, self.token(account)?)
            }
        };
        self.users[index] = User { account, header, context, signs_on: true, ..User::default() };
        Ok(())
    }

    #[inline]
    fn request(&mut self, visit: &Visit) -> &[u8] {
        if self.is_first(visit) {
            return self.first[usize::from(visit.path)].with(visit.unique, b"");
        }
        let header = &self.users[visit.user as usize].header;
        let requests = if header.is_empty() { &mut self.bare } else { &mut self.requests };
        requests[usize::from(visit.path)].with(visit.unique, header)
    }

    #[inline]
    fn expected(&self, visit: &Visit) -> &Expected {
        if self.is_first(visit) {
            return &self.challenged;
        }
        let waits_for_cookie = self.settings.persistence == Persistence::Session
            && self.users[visit.user as usize].cookie.is_none();
        &self.expected[usize::from(waits_for_cookie)]
    }

    fn judge(&mut self, visit: &Visit, response: &Response) -> Result<Judgement, Fault> {
        response.check(self.expected(visit))?;
        if self.is_first(visit) {
            return match response.headers("WWW-Authenticate").any(|header| header.trim() == NEGOTIATE) {
                true => Ok(Judgement::Continue),
                false => Err(Fault::new(failure::NOT_HTTP, "no challenge for Negotiate")),
            };
        }
        let index = visit.user as usize;
        let mut user = std::mem::take(&mut self.users[index]);
        self.prove_server(&mut user, response)?;
        user.connection = Some(visit.connection);
        if self.settings.persistence == Persistence::Session && user.cookie.is_none() {
            user.cookie = Some(cookie(response)?);
        }
        self.users[index] = user;
        Ok(Judgement::Done)
    }

    fn signs_on(&self, visit: &Visit) -> bool {
        self.users[visit.user as usize].signs_on
    }

    fn user(&self, visit: &Visit) -> Option<&str> {
        Some(&self.accounts[self.users[visit.user as usize].account].name)
    }

    fn library(&self) -> Option<&str> {
        Some(&self.library.version)
    }
}

impl Adversary for KerberosClient {
    fn do_wrong(&mut self, wrong: &'static str) {
        match wrong {
            REPLAYED => self.repeats = true,
            _ => {
                if let Ok(another) = self.library.service(&self.settings.another_service) {
                    self.service = another;
                }
                // Earlier sign-ins were valid, so that they must be forgotten.
                self.users.fill_with(User::default);
            }
        }
    }
}

/// Returns true if tickets exist, and will be valid for longer than a trial.
fn is_fresh(tickets: &Path) -> bool {
    let made = std::fs::metadata(tickets).and_then(|found| found.modified());
    made.is_ok_and(|at| at.elapsed().is_ok_and(|age| age < KEPT_FOR))
}

/// Returns a request header with the cookie that an answer sets.
fn cookie(response: &Response) -> Result<Vec<u8>, Fault> {
    let set = response.header("Set-Cookie").and_then(|value| value.split(';').next());
    let cookie = set.ok_or_else(|| refused("the server set no cookie"))?;
    Ok(format!("Cookie: {}\r\n", cookie.trim()).into_bytes())
}
