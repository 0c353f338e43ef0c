//! NTLM: three messages on one connection, which then belongs to the user.
//!
//! It has only a client half: the machine's GSSAPI library makes the messages.

use serde::Deserialize;

use super::accounts::Accounts;
use super::negotiate::{header, refused, token};
use super::scheme::{Adversary, Client, Judgement, Scheme, Setup, Visit, VisitKind, Wrong};
use crate::failure::{Failure, Fault};
use crate::gssapi::{self, Context, Credentials, Library, Mechanism, Name};
use crate::http::prebuilt::Prebuilt;
use crate::http::response::{Expected, Response};

pub const SCHEME: Scheme = Scheme {
    name: "ntlm",
    client,
    server: None,
    keeps_state: true,
    has_sign_on: true,
    refused: &[Wrong::NoCredentials, Wrong::Password, Wrong::User, Wrong::Own(REPLAYED)],
};

const REPLAYED: &str = "the answer to another challenge";

const NTLM: &str = "NTLM";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Domain of the accounts, for example `TOLLBAR`.
    domain: String,
    /// Service name, for example `HTTP@web1.tollbar.test`.
    service: String,
}

struct NtlmClient {
    library: &'static Library,
    kind: VisitKind,
    domain: String,
    /// Requests of the first leg; `last` are those of the last leg, `bare` those of a connection that has
    /// signed in.
    first: Vec<Prebuilt>,
    last: Vec<Prebuilt>,
    bare: Vec<Prebuilt>,
    challenge: Expected,
    page: Expected,
    accounts: Accounts,
    service: Name<'static>,
    users: Vec<User>,
    repeats: bool,
}

#[derive(Default)]
struct User {
    account: usize,
    /// Header of the current request.
    header: Vec<u8>,
    /// Last answer to a challenge.
    answer: Vec<u8>,
    handshake: Option<Handshake>,
    /// Connection that has signed in.
    connection: Option<u32>,
}

struct Handshake {
    context: Context<'static>,
    credentials: Credentials<'static>,
}

fn client(setup: &Setup) -> Result<Box<dyn Client>, Failure> {
    let Settings { domain, service } = setup.settings()?;
    let library = gssapi::open(Mechanism::Ntlm, None)?;
    Ok(Box::new(NtlmClient {
        library,
        kind: setup.kind,
        domain,
        first: setup.followed(),
        last: setup.requests(),
        bare: setup.requests(),
        challenge: setup.answered(401),
        page: setup.expected(),
        accounts: setup.accounts()?,
        service: library.service(&service).map_err(Failure::Failed)?,
        users: (0..setup.users).map(|_| User::default()).collect(),
        repeats: false,
    }))
}

impl NtlmClient {
    fn handshake(&self, account: usize) -> Result<Handshake, Fault> {
        let account = &self.accounts[account];
        let user = self.library.user(&format!("{}\\{}", self.domain, account.name)).map_err(refused)?;
        let credentials = self.library.sign_in(Mechanism::Ntlm, &user, &account.password).map_err(refused)?;
        Ok(Handshake { context: self.library.context(Mechanism::Ntlm), credentials })
    }

    /// Makes the header with the next message, after the server's.
    fn next(&mut self, user: u32, came: &[u8]) -> Result<(), Fault> {
        let user = &mut self.users[user as usize];
        let Some(Handshake { context, credentials }) = &mut user.handshake else { return Ok(()) };
        let step = context.step(credentials, &self.service, came).map_err(refused)?;
        user.header = header(NTLM, &step.token);
        Ok(())
    }
}

impl Client for NtlmClient {
    fn begin(&mut self, visit: &Visit) -> Result<(), Fault> {
        let index = visit.user as usize;
        if self.kind == VisitKind::Request && self.users[index].connection == Some(visit.connection) {
            return Ok(());
        }
        let account = self.accounts.drawn(visit.unique);
        let handshake = self.handshake(account)?;
        let user = &mut self.users[index];
        (user.account, user.handshake, user.connection) = (account, Some(handshake), None);
        self.next(visit.user, &[])
    }

    #[inline]
    fn request(&mut self, visit: &Visit) -> &[u8] {
        let user = &self.users[visit.user as usize];
        let (requests, header): (_, &[u8]) = match (&user.handshake, visit.leg) {
            (None, _) => (&mut self.bare, b""),
            (Some(_), 0) => (&mut self.first, &user.header),
            (Some(_), _) => (&mut self.last, &user.header),
        };
        requests[usize::from(visit.path)].with(visit.unique, header)
    }

    #[inline]
    fn expected(&self, visit: &Visit) -> &Expected {
        let is_challenge = visit.leg == 0 && self.users[visit.user as usize].handshake.is_some();
        if is_challenge { &self.challenge } else { &self.page }
    }

    fn judge(&mut self, visit: &Visit, response: &Response) -> Result<Judgement, Fault> {
        response.check(self.expected(visit))?;
        let index = visit.user as usize;
        if visit.leg == 0 && self.users[index].handshake.is_some() {
            self.next(visit.user, &token(NTLM, response)?)?;
            let user = &mut self.users[index];
            let other = std::mem::replace(&mut user.answer, user.header.clone());
            if self.repeats {
                user.header = other;
            }
            return Ok(Judgement::Continue);
        }
        let user = &mut self.users[index];
        (user.handshake, user.connection) = (None, Some(visit.connection));
        Ok(Judgement::Done)
    }

    /// Returns true for the last leg: a connection that has signed in needs no further messages.
    fn signs_on(&self, visit: &Visit) -> bool {
        visit.leg > 0
    }

    fn user(&self, visit: &Visit) -> Option<&str> {
        Some(&self.accounts[self.users[visit.user as usize].account].name)
    }

    fn library(&self) -> Option<&str> {
        Some(&self.library.version)
    }
}

impl Adversary for NtlmClient {
    fn do_wrong(&mut self, _wrong: &'static str) {
        self.repeats = true;
    }
}
