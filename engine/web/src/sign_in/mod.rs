//! Sign-in schemes, by which a server identifies its client. Each scheme has one file with its client half
//! and its server half, and one line in the table below.

pub mod accounts;
mod anonymous;
mod api_key;
mod basic;
mod bearer;
mod client_certificate;
mod digest;
mod form;
mod hmac;
mod jwt;
mod jwt_keys;
mod kerberos;
mod lookup;
pub mod negotiate;
mod ntlm;
mod opaque_token;
pub mod password;
mod returning;
mod scenario;
pub mod scheme;
mod session_cookie;
mod shown;
#[cfg(test)]
pub mod tests;
pub mod verified;

use std::path::PathBuf;

use serde::Deserialize;

use crate::failure::Failure;
use crate::http::page::Site;
use crate::random::UserRandom;
use accounts::{Accounts, AccountsSpec};
use scheme::{Client, PLACE, Scheme, Server, Settings, Setup, Visit, VisitKind, Wrong};
use verified::KnownCache;

/// Table of the schemes.
const SCHEMES: &[Scheme] = &[
    anonymous::SCHEME,
    api_key::SCHEME,
    basic::SCHEME,
    client_certificate::SCHEME,
    digest::SCHEME,
    form::SCHEME,
    hmac::SCHEME,
    jwt::SCHEME,
    kerberos::SCHEME,
    ntlm::SCHEME,
    opaque_token::SCHEME,
    scenario::SCHEME,
    session_cookie::SCHEME,
];

/// Returns the scheme of this name; `place` is the field that named it.
fn scheme(name: &str, place: &str) -> Result<&'static Scheme, Failure> {
    SCHEMES.iter().find(|scheme| scheme.name == name).ok_or_else(|| {
        let known: Vec<&str> = SCHEMES.iter().map(|scheme| scheme.name).collect();
        Failure::Failed(format!("`{place}` is {name:?}; there are: {}", known.join(", ")))
    })
}

/// The field `load.exchange`.
#[derive(Deserialize, Debug, Clone)]
pub struct SignInSpec {
    scheme: String,
    accounts: Option<AccountsSpec>,
    #[serde(default)]
    operation: VisitKind,
    /// Server's cache of verified credentials, and the share of users in it.
    pub cache: Option<KnownCache>,
    /// Server's own store of its users, which a proof changes as another program would.
    store: Option<PathBuf>,
    /// Fields of the scheme.
    #[serde(flatten)]
    settings: Settings,
}

impl SignInSpec {
    /// Returns true if its requests are steps of a user's own scenario, not pages of the load.
    pub fn is_scenario(&self) -> bool {
        self.scheme == scenario::SCHEME.name
    }
}

/// Users of a load, and their requests.
#[derive(Clone)]
pub struct Visitors {
    pub site: Site,
    /// Limit of users in a loop.
    pub users: usize,
    /// Common names in the certificates of the used kinds of client; None if one has none.
    pub certificate_names: Option<Vec<String>>,
    /// Sign-in; None: they do not sign in.
    pub sign_in: Option<SignInSpec>,
}

impl Visitors {
    /// Returns the scheme by which they sign in.
    pub fn scheme(&self) -> Result<&'static Scheme, Failure> {
        match &self.sign_in {
            None => Ok(&anonymous::SCHEME),
            Some(spec) => scheme(&spec.scheme, "load.exchange.scheme"),
        }
    }
}

/// Sign-in of a load's users, with the paths they draw: the client half of a scheme, made for one load.
pub struct SignIn {
    client: Box<dyn Client>,
    paths: usize,
}

impl SignIn {
    /// Makes the sign-in of the timed part, with all paths of a load.
    pub fn new(visitors: &Visitors) -> Result<SignIn, Failure> {
        SignIn::made(visitors, &visitors.site.page.paths, false, |accounts| accounts)
    }

    /// Makes the sign-in of a proof, with one path.
    pub fn proof(visitors: &Visitors, path: &str) -> Result<SignIn, Failure> {
        SignIn::made(visitors, &[path.to_owned()], true, |accounts| accounts)
    }

    /// Makes a sign-in that must be refused: at once, or after `do_wrong`.
    pub fn wrong(visitors: &Visitors, path: &str, wrong: Wrong) -> Result<SignIn, Failure> {
        let paths = &[path.to_owned()];
        match wrong {
            Wrong::NoCredentials => SignIn::proof(&Visitors { sign_in: None, ..visitors.clone() }, path),
            Wrong::Password => SignIn::made(visitors, paths, true, Accounts::with_wrong_passwords),
            Wrong::User => SignIn::made(visitors, paths, true, Accounts::of_unknown_users),
            Wrong::Own(_) => SignIn::proof(visitors, path),
        }
    }

    fn made(
        visitors: &Visitors,
        paths: &[String],
        is_proof: bool,
        change: impl Fn(Accounts) -> Accounts,
    ) -> Result<SignIn, Failure> {
        let (scheme, none) = (visitors.scheme()?, Settings::new());
        let spec = visitors.sign_in.as_ref();
        let kind = spec.map_or(VisitKind::Request, |spec| spec.operation);
        if kind == VisitKind::SignOn && !scheme.has_sign_on {
            return Err(Failure::Failed(format!("`{PLACE}.operation`: {} has no sign-on", scheme.name)));
        }
        let accounts = spec.and_then(|spec| spec.accounts.as_ref()).map(Accounts::read).transpose()?;
        let setup = Setup {
            site: &visitors.site,
            paths,
            kind,
            settings: spec.map_or(&none, |spec| &spec.settings),
            accounts: accounts.map(change),
            users: visitors.users,
            cache: spec.and_then(|spec| spec.cache),
            store: spec.and_then(|spec| spec.store.as_deref()),
            certificate_names: visitors.certificate_names.as_deref(),
            is_proof,
        };
        let client = (scheme.client)(&setup)?;
        if setup.cache.is_some() && !client.knows_of_a_cache() {
            return Err(Failure::Failed(format!("`{PLACE}.cache`: {} has nothing to remember", scheme.name)));
        }
        Ok(SignIn { client, paths: paths.len() })
    }

    #[cfg(test)]
    pub fn of(client: Box<dyn Client>) -> SignIn {
        SignIn { client, paths: 1 }
    }

    /// Draws the next visit of a user, which begins on this connection.
    #[inline]
    pub fn draw(&self, user: u32, connection: u32, random: &mut UserRandom) -> Visit {
        let (path, unique) = random.request(self.paths);
        Visit { user, leg: 0, path, unique, connection }
    }
}

impl std::ops::Deref for SignIn {
    type Target = dyn Client;

    #[inline]
    fn deref(&self) -> &Self::Target {
        self.client.as_ref()
    }
}

impl std::ops::DerefMut for SignIn {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.client.as_mut()
    }
}

/// Protection of the embedded server's pages: the field `sign_in` of its configuration.
#[derive(Deserialize, Debug)]
pub struct Gate {
    scheme: String,
    /// Fields of the scheme.
    #[serde(flatten)]
    settings: Settings,
}

impl Gate {
    pub fn prepare(&self) -> Result<Box<dyn Server>, Failure> {
        let scheme = scheme(&self.scheme, "sign_in.scheme")?;
        let name = scheme.name;
        let missing = || Failure::Unsupported(format!("the embedded server does not offer {name}"));
        scheme.server.ok_or_else(missing)?(&self.settings)
    }
}
