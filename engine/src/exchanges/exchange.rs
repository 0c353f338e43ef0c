//! How the users of a load sign in: the client half of a scheme, made for one load.

use super::accounts::Accounts;
use super::client::{Client, PLACE, Setup};
use super::operation::Operation;
use super::scheme::Wrong;
use super::schemes::scheme_of;
use super::settings::Settings;
use crate::contract::Failure;
use crate::load_task::{Load, OperationKind};
use crate::random::UserRandom;

/// How the users of a load sign in, and which of its paths they ask for.
pub struct Exchange {
    client: Box<dyn Client>,
    paths: usize,
}

impl Exchange {
    /// For the timed part: all paths of a load.
    pub fn new(load: &Load) -> Result<Exchange, Failure> {
        Exchange::made(load, &load.request.paths, false, |accounts| accounts)
    }

    /// For a proof: one path.
    pub fn proof(load: &Load, path: &str) -> Result<Exchange, Failure> {
        Exchange::made(load, &[path.to_owned()], true, |accounts| accounts)
    }

    /// One that has to be refused: at once, or from when it is told to do wrong.
    pub fn wrong(load: &Load, path: &str, wrong: Wrong) -> Result<Exchange, Failure> {
        match wrong {
            Wrong::NoCredentials => {
                let load = Load { exchange: None, ..load.clone() };
                Exchange::proof(&load, path)
            }
            Wrong::Password => Exchange::made(load, &[path.to_owned()], true, Accounts::with_wrong_passwords),
            Wrong::User => Exchange::made(load, &[path.to_owned()], true, Accounts::of_unknown_users),
            Wrong::Own(_) => Exchange::proof(load, path),
        }
    }

    fn made(
        load: &Load,
        paths: &[String],
        is_proof: bool,
        change: impl Fn(Accounts) -> Accounts,
    ) -> Result<Exchange, Failure> {
        let (scheme, none) = (scheme_of(load)?, Settings::new());
        let spec = load.exchange.as_ref();
        let kind = spec.map_or(OperationKind::Request, |spec| spec.operation);
        if kind == OperationKind::SignOn && !scheme.has_sign_on {
            return Err(Failure::Failed(format!("`{PLACE}.operation`: {} has no sign-on", scheme.name)));
        }
        let accounts = spec.and_then(|spec| spec.accounts.as_ref()).map(Accounts::read).transpose()?;
        let setup = Setup {
            load,
            paths,
            kind,
            settings: spec.map_or(&none, |spec| &spec.settings),
            accounts: accounts.map(change),
            is_proof,
        };
        Ok(Exchange { client: (scheme.client)(&setup)?, paths: paths.len() })
    }

    #[cfg(test)]
    pub fn of(client: Box<dyn Client>) -> Exchange {
        Exchange { client, paths: 1 }
    }

    /// Draws the next operation of a user, which begins on this connection of it.
    #[inline]
    pub fn draw(&self, user: u32, connection: u32, random: &mut UserRandom) -> Operation {
        let (path, unique) = random.request(self.paths);
        Operation { user, leg: 0, path, unique, connection }
    }
}

impl std::ops::Deref for Exchange {
    type Target = dyn Client;

    #[inline]
    fn deref(&self) -> &Self::Target {
        self.client.as_ref()
    }
}

impl std::ops::DerefMut for Exchange {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.client.as_mut()
    }
}
