//! How a client says who asks, and how a server finds out: one file a sign-in scheme, with its client half and its
//! server half, and one line here that makes it known.
//!
//! The client half (`client::Client`) sends the requests of a user's operation, expects something of each answer and
//! says whether another leg follows. The server half (`server::Server`) checks what the embedded server is asked.

mod accounts;
mod anonymous;
mod basic;
mod bearer;
pub mod client;
mod client_certificate;
mod digest;
mod form;
mod hmac;
mod jwt;
mod kerberos;
mod negotiate;
mod ntlm;
mod opaque_token;
mod password;
pub mod server;
mod session_cookie;
mod store;
#[cfg(test)]
mod tests;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::contract::Failure;
use client::{Client, Setup};
use server::Server;

pub use accounts::LONGEST_NAME;

const SCHEMES: &[Scheme] = &[
    anonymous::SCHEME,
    basic::SCHEME,
    client_certificate::SCHEME,
    digest::SCHEME,
    form::SCHEME,
    hmac::SCHEME,
    jwt::SCHEME,
    kerberos::SCHEME,
    ntlm::SCHEME,
    opaque_token::SCHEME,
    session_cookie::SCHEME,
];

type MakeServer = fn(&Settings) -> Result<Box<dyn Server>, Failure>;

pub struct Scheme {
    pub name: &'static str,
    pub client: fn(&Setup) -> Result<Box<dyn Client>, Failure>,
    /// None where the embedded server does not offer it.
    pub server: Option<MakeServer>,
    /// Whether a user's first operation leaves something that its later ones use: it is asked for before anything is
    /// accounted for.
    pub keeps_state: bool,
    /// Whether it has the operation `sign-on`: a login that later requests need not repeat.
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

/// The scheme of this name; `place` is where it was named.
pub fn scheme(name: &str, place: &str) -> Result<&'static Scheme, Failure> {
    SCHEMES.iter().find(|scheme| scheme.name == name).ok_or_else(|| {
        let known: Vec<&str> = SCHEMES.iter().map(|scheme| scheme.name).collect();
        Failure::Failed(format!("`{place}` is {name:?}; there are: {}", known.join(", ")))
    })
}

/// The fields that a scheme reads itself.
pub type Settings = Map<String, Value>;

/// A scheme's own fields, none of them unknown to it; `place` is where they stand.
pub fn read<T: DeserializeOwned>(settings: &Settings, place: &str) -> Result<T, Failure> {
    let fields = Value::Object(settings.clone());
    serde_json::from_value(fields).map_err(|error| Failure::Failed(format!("`{place}`: {error}")))
}

/// Of a scheme without fields of its own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoSettings {}
