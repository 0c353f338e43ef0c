//! What a sign-in scheme is: its two halves, and what a server has to refuse of it.

use super::client::{Client, Setup};
use super::server::Server;
use super::settings::Settings;
use crate::contract::Failure;

type MakeServer = fn(&Settings) -> Result<Box<dyn Server>, Failure>;

pub struct Scheme {
    pub name: &'static str,
    pub client: fn(&Setup) -> Result<Box<dyn Client>, Failure>,
    /// None where the embedded server does not offer it.
    pub server: Option<MakeServer>,
    /// Whether a user's first operation leaves something that its later ones use: it is asked for before anything is
    /// accounted for.
    pub keeps_state: bool,
    /// Whether it has the operation `sign-on`: more, at the first page, than a request of a client that has what it needs.
    pub has_sign_on: bool,
    /// What a server has to refuse.
    pub refused: &'static [Wrong],
}

/// What is wrong with a sign-in that has to be refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    NoCredentials,
    Password,
    User,
    /// What the scheme's client does when it is told to (`Client::do_wrong`), after an operation that was right.
    Own(&'static str),
}

impl Wrong {
    /// As the proof says it.
    pub fn words(self) -> &'static str {
        match self {
            Wrong::NoCredentials => "no credentials",
            Wrong::Password => "a wrong password",
            Wrong::User => "an unknown user",
            Wrong::Own(words) => words,
        }
    }
}
