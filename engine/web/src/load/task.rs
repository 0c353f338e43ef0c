//! The `load` task, and checks that it is possible, with messages that name the field.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::Deserialize;

use crate::accounting::elsewhere::Place;
use crate::contract::Mode;
use crate::http::page::{Expectation, Page, Site};
use crate::sign_in::{SignInSpec, Visitors};
use crate::store::Connection;
use crate::tls::ClientSpec;

/// The task. Fields that other runners read (`provider`, `setting`, `inputs`) are ignored.
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
    /// Value of the Host header.
    pub host: String,
    pub clients: Vec<ClientKind>,
    #[serde(default)]
    pub shape: Shape,
    pub users: u32,
    /// Open loop: mean arrivals a second.
    #[serde(default)]
    pub rate_hz: f64,
    /// Open loop without a rate: the share of one core's time that the components use. The rate follows from
    /// a request's cost in the warm-up.
    #[serde(default)]
    pub utilisation: f64,
    /// Closed loop: pause of a user after each answer.
    #[serde(default)]
    pub think_s: f64,
    pub connection: ConnectionReuse,
    pub request: Page,
    /// Sign-in of its users; None: they do not sign in.
    pub exchange: Option<SignInSpec>,
    #[serde(default)]
    pub expect: Expectation,
    /// Table of which each page uses a row; None: no page uses one.
    #[serde(default)]
    pub rows: Option<KnownRows>,
    /// True if the lab has configured and started the server. A user's own server may have other clients, may
    /// close connections, and need not prove its configuration.
    #[serde(default = "yes")]
    pub is_lab: bool,
    /// Components, each with the process at the root of its tree.
    #[serde(default)]
    pub components: BTreeMap<String, i32>,
    /// Components on other machines, and the agents that read their accounts there. With any, traffic on the
    /// network is counted.
    #[serde(default)]
    pub elsewhere: Vec<Place>,
    /// Number of connections that are opened beforehand, and stay silent.
    #[serde(default)]
    pub idle: u32,
    #[serde(default = "ten_seconds")]
    pub request_limit_s: f64,
    #[serde(default = "one")]
    pub threads: u32,
    /// Core of each thread, which is pinned to it and gives its own account in each chunk; empty: the cores
    /// of the process.
    #[serde(default)]
    pub cores: Vec<usize>,
    /// True if each user asks once before a chunk's accounts are opened; false to measure the bias that this
    /// removes.
    #[serde(default = "yes")]
    pub lead: bool,
}

/// A kind of client; each connection draws its kind, by shares.
#[derive(Deserialize, Debug, Clone)]
#[serde(deny_unknown_fields)]
pub struct ClientKind {
    pub share: u32,
    pub tls: Option<ClientSpec>,
    /// True if the server would resume a session, even if this kind of client offers none.
    #[serde(default)]
    pub server_resumes: bool,
}

/// A client's view of the table behind the pages.
#[derive(Deserialize, Debug, Clone, Copy)]
#[serde(deny_unknown_fields)]
pub struct KnownRows {
    /// Address of the application with the table; None: the server of the pages.
    pub address: Option<SocketAddr>,
    pub connection: Connection,
}

#[derive(Deserialize, Debug, Clone, Copy, PartialEq, Eq, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// A number of users, each waiting for its answer before it asks again.
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
    /// A kept connection for each user.
    User,
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

/// Headers that the engine itself sends in every request, so that no task may set them.
const OWN_HEADERS: [&str; 4] = ["host", "connection", "content-length", "transfer-encoding"];

impl Task {
    /// Returns the load, once every number in it is valid.
    pub fn load(&self) -> Result<&Load, String> {
        let load = self.load.as_ref().ok_or("the task has no `load`")?;
        load.check()?;
        Ok(load)
    }
}

impl Load {
    /// Returns true if its users perform their own scenario, whose steps may carry secrets.
    pub fn is_scenario(&self) -> bool {
        self.exchange.as_ref().is_some_and(SignInSpec::is_scenario)
    }

    /// Returns its users as the sign-in needs them.
    pub fn visitors(&self) -> Visitors {
        let used = self.clients.iter().filter(|kind| kind.share > 0);
        let is_encrypted = used.clone().all(|kind| kind.tls.is_some());
        let name = |kind: &ClientKind| kind.tls.as_ref()?.identity.as_ref()?.common_name();
        Visitors {
            site: Site {
                host: self.host.clone(),
                page: self.request.clone(),
                expect: self.expect.clone(),
                closes: self.connection == ConnectionReuse::New,
                is_secure: is_encrypted || self.address.ip().is_loopback(),
            },
            users: self.users as usize,
            certificate_names: used.map(name).collect(),
            sign_in: self.exchange.clone(),
        }
    }

    fn check(&self) -> Result<(), String> {
        seconds("load.think_s", self.think_s)?;
        seconds("load.request_limit_s", self.request_limit_s)?;
        let threads = format!(
            "is {}; it must be from 1 to {MOST_THREADS}, and at most the number of users",
            self.threads
        );
        let cores = format!("names {} for {} threads", self.cores.len(), self.threads);
        let is_cored = self.cores.is_empty() || self.cores.len() == self.threads as usize;
        let too_many = format!("holds more than {MOST_OF_A_KIND}");
        let is_rate = self.rate_hz > 0.0 && self.rate_hz <= MOST_HZ;
        let is_share = self.utilisation > 0.0
            && self.utilisation < 1.0
            && !(self.components.is_empty() && self.elsewhere.is_empty());
        let is_paced = if self.utilisation == 0.0 { is_rate } else { is_share && self.rate_hz == 0.0 };
        let impossible = [
            (self.request_limit_s < 0.001, "request_limit_s", "must be at least one millisecond"),
            (self.users == 0, "users", "is 0"),
            (!(1..=self.users.min(MOST_THREADS)).contains(&self.threads), "threads", &threads),
            (!is_cored, "cores", &cores),
            (self.shape == Shape::Open && !is_paced, "rate_hz", "must be a positive rate"),
            (self.shape == Shape::Closed && self.utilisation != 0.0, "utilisation", "needs an open loop"),
            (self.clients.iter().all(|kind| kind.share == 0), "clients", "has no share above 0"),
            (self.clients.len() > MOST_OF_A_KIND, "clients", &too_many),
            (self.request.paths.is_empty(), "request.paths", "is empty"),
            (self.request.paths.len() > MOST_OF_A_KIND, "request.paths", &too_many),
        ];
        if let Some((_, field, why)) = impossible.into_iter().find(|(is_so, ..)| *is_so) {
            return Err(format!("`load.{field}` {why}"));
        }
        check_page(&self.host, &self.request)
    }
}

/// Limit of loops; more are a mistake, not a load.
const MOST_THREADS: u32 = 256;

/// Limit of paths and of kinds, because users store what they drew in two bytes.
const MOST_OF_A_KIND: usize = 1 << 16;

/// Limit of the rate: an arrival each 10 ns is more than any machine sends.
pub const MOST_HZ: f64 = 1e8;

fn check_page(host: &str, page: &Page) -> Result<(), String> {
    word("load.host", host)?;
    word("load.request.method", &page.method)?;
    for path in &page.paths {
        word("load.request.paths", path)?;
        if !path.starts_with('/') {
            return Err(format!("`load.request.paths` has {path:?}, which must begin with /"));
        }
    }
    for (name, value) in &page.headers {
        word("load.request.headers", name)?;
        if name.contains(':') || value.contains(['\r', '\n', '\0']) {
            return Err(format!("the header {name:?} has characters that a header cannot have"));
        }
        if OWN_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
            return Err(format!("the header {name:?} cannot be set; the engine sends its own"));
        }
    }
    Ok(())
}

/// Refuses text that would end a line or a word of the request early.
fn word(field: &str, text: &str) -> Result<(), String> {
    let is_valid = !text.is_empty() && text.bytes().all(|byte| byte > b' ' && byte != 0x7f);
    if is_valid { Ok(()) } else { Err(format!("`{field}` has {text:?}, which cannot be sent in a request")) }
}

fn seconds(field: &str, value: f64) -> Result<(), String> {
    // A limit of a day: a longer time was meant in another unit.
    let is_valid = (0.0..=86_400.0).contains(&value);
    if is_valid { Ok(()) } else { Err(format!("`{field}` is {value}; it must be a time in seconds")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(change: &str) -> Result<(), String> {
        let text = r#"{"mode":"measure","provider":{"kind":"x"},"setting":{"a":1},
            "load":{"address":"127.0.0.1:80","host":"localhost","clients":[{"share":1,"tls":null}],"users":2,
            "connection":"user","request":{"paths":["/"]},"threads":1,"EXTRA":0}}"#;
        let text = text.replace(r#""threads":1,"EXTRA":0"#, change);
        let task: Task = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        task.load().map(|_| ())
    }

    /// An impossible task is refused with the field's name, before anything is sent.
    #[test]
    fn a_task_that_makes_no_sense_is_refused_by_name() {
        assert_eq!(Ok(()), read(r#""threads":1"#));
        for (change, expected) in [
            (r#""colour":"red""#, "unknown field `colour`"),
            (r#""threads":3"#, "`load.threads` is 3"),
            (r#""threads":2,"cores":[0]"#, "`load.cores` names 1 for 2 threads"),
            (r#""requests":5"#, "unknown field `requests`"),
            (r#""shape":"open""#, "`load.rate_hz`"),
            (r#""shape":"open","utilisation":0.5"#, "`load.rate_hz`"),
            (r#""shape":"open","utilisation":0.5,"rate_hz":5,"components":{"web":1}"#, "`load.rate_hz`"),
            (r#""shape":"open","utilisation":1.5,"components":{"web":1}"#, "`load.rate_hz`"),
            (r#""utilisation":0.5,"components":{"web":1}"#, "`load.utilisation`"),
            (r#""think_s":-1"#, "`load.think_s` is -1"),
            (r#""request_limit_s":0"#, "`load.request_limit_s`"),
            (r#""shape":"square""#, "unknown variant `square`"),
        ] {
            let refusal = read(change).expect_err(change);
            assert!(refusal.contains(expected), "{change}: {refusal}");
        }
    }

    /// A header that the engine sends itself, or that would end its line early, is never sent.
    #[test]
    fn a_request_that_cannot_be_sent_is_refused() {
        let request = |path: &str, name: &str, value: &str| Page {
            method: "GET".to_owned(),
            paths: vec![path.to_owned()],
            headers: vec![(name.to_owned(), value.to_owned())],
            body: None,
            unique_query: false,
        };
        assert_eq!(Ok(()), check_page("localhost", &request("/a?b", "X-Name", "a value")));
        for wrong in [
            request("a", "X", "y"),
            request("/a b", "X", "y"),
            request("/", "X", "y\r\nZ: 1"),
            request("/", "Host", "elsewhere"),
            request("/", "content-LENGTH", "3"),
        ] {
            assert!(check_page("localhost", &wrong).is_err(), "{wrong:?}");
        }
    }
}
