//! A sign-in of two legs, which tests the client's interface beyond the null case.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use serde_json::json;

use super::load;
use super::server::{GOOD, Server, Then, say};
use crate::failure::Fault;
use crate::http::response::{Expected, Response};
use crate::load::connector::Connector;
use crate::load::probe::Probe;
use crate::sign_in::SignIn;
use crate::sign_in::scheme::{Adversary, Client, Judgement, Visit};

/// Number of accounts, of which each operation draws one.
const ACCOUNTS: u64 = 10;

/// Client that asks, is refused with a challenge, and asks again with its answer.
struct Challenge {
    /// Expected refusal and expected answer.
    expected: [Expected; 2],
    /// Challenge of each user's operation.
    challenges: Vec<String>,
    request: Vec<u8>,
}

impl Challenge {
    fn new(users: usize) -> Challenge {
        let expected = |status, keeps_head| Expected {
            status,
            bytes: None,
            body: None,
            to_head: false,
            keeps_head,
            kept_body_bytes: 0,
        };
        let expected = [expected(401, true), expected(200, false)];
        Challenge { expected, challenges: vec![String::new(); users], request: Vec::new() }
    }
}

impl Client for Challenge {
    fn request(&mut self, visit: &Visit) -> &[u8] {
        let account = visit.unique % ACCOUNTS;
        let challenge = &self.challenges[visit.user as usize];
        let header = match visit.leg {
            0 => String::new(),
            _ => format!("Authorization: {account} {challenge}\r\n"),
        };
        self.request = format!("GET /{account} HTTP/1.1\r\nHost: localhost\r\n{header}\r\n").into_bytes();
        &self.request
    }

    fn expected(&self, visit: &Visit) -> &Expected {
        &self.expected[usize::from(visit.leg)]
    }

    fn judge(&mut self, visit: &Visit, response: &Response) -> Result<Judgement, Fault> {
        response.check(self.expected(visit))?;
        if visit.leg > 0 {
            return Ok(Judgement::Done);
        }
        let challenge = response.header("www-authenticate").unwrap_or_default();
        self.challenges[visit.user as usize] = challenge.to_owned();
        Ok(Judgement::Continue)
    }
}

impl Adversary for Challenge {}

/// Runs a user's operations. Returns the number of right ones, or the first fault, and the number of
/// connections.
fn operations(server: &Server, connection: &str, count: usize) -> (Result<usize, Fault>, u64) {
    let load = load(server.address, json!({"connection": connection}));
    let sign_in = SignIn::of(Box::new(Challenge::new(1)));
    let mut probe = Probe::of(load, Connector::clear(), sign_in).expect("a probe");
    let mut connections = 0;
    let right = (0..count).try_fold(0, |right, _| {
        let answer = probe.send();
        connections += probe.connections();
        answer.map(|_| right + 1)
    });
    (right, connections)
}

/// Starts a server that refuses each request of even number with a challenge, on a connection that it keeps
/// or ends.
fn server(end: Then) -> (Server, Arc<AtomicU64>) {
    let challenges = Arc::new(AtomicU64::new(0));
    let given = Arc::clone(&challenges);
    let server = Server::start(move |stream, number| match number % 2 {
        0 => {
            let nonce = given.fetch_add(1, SeqCst);
            let close = if end == Then::GoOn { "" } else { "Connection: close\r\n" };
            let head = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n";
            say(stream, &format!("{head}WWW-Authenticate: {nonce}\r\n{close}\r\n"), end)
        }
        _ => say(stream, GOOD, Then::GoOn),
    });
    (server, challenges)
}

/// An operation's second leg uses the connection of its first, or another one if the server ended that. A
/// connection for each operation ends with the operation, not with its first leg.
#[test]
fn an_operation_of_two_legs() {
    for (connection, end, connections) in
        [("user", Then::GoOn, 1), ("new", Then::GoOn, 5), ("user", Then::Close, 6), ("new", Then::Close, 10)]
    {
        let (server, challenges) = server(end);
        assert_eq!((Ok(5), connections), operations(&server, connection, 5), "{connection}");
        assert_eq!((5, 10), (challenges.load(SeqCst), server.requests()));
        let accounts: Vec<String> = server.lines();
        assert!(accounts.chunks(2).all(|legs| legs[0] == legs[1]), "{accounts:?}");
        assert!(accounts.iter().any(|line| *line != accounts[0]), "{accounts:?}");
    }
}

/// Each leg has its own expectation.
#[test]
fn a_leg_that_is_not_as_expected() {
    let (ended, _) = operations(&Server::good(), "user", 1);
    assert_eq!("expected status 401, got 200: hello", ended.expect_err("a wrong answer").words);
}

/// A sign-on with Basic continues only if the refusal asks for Basic.
#[test]
fn a_sign_on_with_basic_needs_its_challenge() {
    let accounts = std::env::temp_dir().join(format!("tollbar-{}-challenged", std::process::id()));
    std::fs::write(&accounts, "Aladdin\topen sesame\t0\n").expect("room");
    let exchange = json!({
        "scheme": "basic", "operation": "sign-on", "accounts": {"file": accounts, "count": 1},
    });
    for (challenges, expected) in [
        ("WWW-Authenticate: Negotiate\r\nWWW-Authenticate: Basic realm=\"x\"\r\n", Ok(2)),
        ("WWW-Authenticate: Negotiate\r\n", Err("no challenge for Basic")),
        ("", Err("no challenge for Basic")),
    ] {
        let server = Server::start(move |stream, number| match number % 2 {
            0 => {
                let head = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n";
                say(stream, &format!("{head}{challenges}\r\n"), Then::GoOn)
            }
            _ => say(stream, GOOD, Then::GoOn),
        });
        let load = load(server.address, json!({"exchange": exchange}));
        let mut probe = Probe::new(&load, Connector::clear(), "/").expect("a probe");
        let answer = probe.send().map(|_| server.requests());
        assert_eq!(expected.map_err(str::to_owned), answer.map_err(|fault| fault.words), "{challenges}");
    }
    std::fs::remove_file(&accounts).expect("the file");
}
