//! What a `load` task asks, as it comes in.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::contract::Mode;
use crate::tls::ClientSpec;

/// The document. What other runners read in it (`provider`, `setting`, `inputs`) is not looked at.
#[derive(Deserialize, Debug)]
pub struct Task {
    pub mode: Mode,
    pub load: Option<Load>,
    #[serde(default)]
    pub seed: u64,
}

#[derive(Deserialize, Debug, Clone)]
#[serde(deny_unknown_fields)]
pub struct Load {
    pub address: SocketAddr,
    /// The Host header.
    pub host: String,
    pub clients: Vec<ClientKind>,
    #[serde(default)]
    pub shape: Shape,
    pub users: u32,
    /// Open loop: arrivals a second, on average.
    #[serde(default)]
    pub rate_hz: f64,
    /// Closed loop: how long a user waits after each answer.
    #[serde(default)]
    pub think_s: f64,
    pub connection: ConnectionReuse,
    pub request: Request,
    /// How its users sign in; without, they do not.
    pub exchange: Option<ExchangeSpec>,
    #[serde(default)]
    pub expect: Expectation,
    /// Whether the lab has configured and started the server. One of the user's own may be asked by others too, close
    /// the connections it likes, and has to prove no configuration.
    #[serde(default = "yes")]
    pub is_lab: bool,
    /// Component to the process at the root of its tree.
    #[serde(default)]
    pub components: BTreeMap<String, i32>,
    /// Connections that are opened beforehand, held and silent.
    #[serde(default)]
    pub idle: u32,
    #[serde(default = "ten_seconds")]
    pub request_limit_s: f64,
    #[serde(default = "one")]
    pub threads: u32,
    /// Whether each user asks once before a chunk's accounts are opened; without, for the bias that this leaves out.
    #[serde(default = "yes")]
    pub lead: bool,
}

/// A kind of client; each connection draws its kind, by shares.
#[derive(Deserialize, Debug, Clone)]
#[serde(deny_unknown_fields)]
pub struct ClientKind {
    pub share: u32,
    pub tls: Option<ClientSpec>,
    /// The server would resume a session, even where this kind of client offers none.
    #[serde(default)]
    pub server_resumes: bool,
}

#[derive(Deserialize, Debug, Clone, Copy, PartialEq, Eq, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// So many users, each waiting for its answer before it asks again.
    #[default]
    Closed,
    /// Arrivals at a rate, whether or not the server keeps up.
    Open,
}

#[derive(Deserialize, Debug, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum ConnectionReuse {
    /// A connection for each request.
    New,
    /// One kept alive for each user.
    User,
}

#[derive(Deserialize, Debug, Clone)]
#[serde(deny_unknown_fields)]
pub struct Request {
    #[serde(default = "get")]
    pub method: String,
    pub paths: Vec<String>,
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    pub body: Option<String>,
    #[serde(default)]
    pub unique_query: bool,
}

#[derive(Deserialize, Debug, Clone)]
#[serde(deny_unknown_fields, default)]
pub struct Expectation {
    pub status: u16,
    pub bytes: Option<u64>,
    /// The whole body, to the letter.
    pub body: Option<String>,
}

impl Default for Expectation {
    fn default() -> Self {
        Expectation { status: 200, bytes: None, body: None }
    }
}

/// `load.exchange`, as it comes in.
#[derive(Deserialize, Debug, Clone)]
pub struct ExchangeSpec {
    pub scheme: String,
    pub accounts: Option<AccountsSpec>,
    #[serde(default)]
    pub operation: OperationKind,
    /// The scheme's own.
    #[serde(flatten)]
    pub settings: Map<String, Value>,
}

/// What one operation is.
#[derive(Deserialize, Debug, Clone, Copy, PartialEq, Eq, Default)]
#[serde(rename_all = "kebab-case")]
pub enum OperationKind {
    /// A protected page, with what a user has from operations before.
    #[default]
    Request,
    /// Everything from the first request without credentials to the first protected page.
    SignOn,
}

/// `load.exchange.accounts`, as it comes in.
#[derive(Deserialize, Debug, Clone)]
#[serde(deny_unknown_fields)]
pub struct AccountsSpec {
    /// `name<TAB>password<TAB>groups`, a line each.
    pub file: PathBuf,
    /// The first line that is used, from 0.
    #[serde(default)]
    pub first: usize,
    pub count: usize,
}

fn ten_seconds() -> f64 {
    10.0
}

fn yes() -> bool {
    true
}

fn one() -> u32 {
    1
}

fn get() -> String {
    "GET".to_owned()
}
