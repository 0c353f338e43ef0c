//! Each way a server can misbehave is counted by its name, and none of them lasts.

use std::io::Write;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::server::{GOOD, Server, Then, say};
use super::{good, load, measure};
use crate::load::record::{Measured, Outcome};

/// Nothing here takes a second on a machine that has nothing else to do; a hang takes for ever.
const FAR_TOO_LONG: Duration = Duration::from_secs(30);

/// The failed trial's reason and figures.
fn failing(server: &Server, change: serde_json::Value) -> (String, Measured) {
    let before = Instant::now();
    let ending = measure(&load(server.address, change), 0.0, 0.2);
    assert!(before.elapsed() < FAR_TOO_LONG, "{:?}", before.elapsed());
    assert_eq!(Outcome::Failed, ending.outcome);
    (ending.reason.expect("a reason"), ending.measured.expect("figures all the same"))
}

/// A server that does the same to every request gives one kind of error, under one of these names.
#[track_caller]
fn every_request(kinds: &[&str], answer: impl Fn(&mut TcpStream) -> Then + Send + Sync + 'static) {
    let server = Server::start(move |stream, _| answer(stream));
    for connection in ["user", "new"] {
        let (reason, measured) = failing(&server, json!({"connection": connection, "request_limit_s": 0.2}));
        assert!(measured.load.errors.keys().all(|kind| kinds.contains(kind)), "{reason}");
        assert!(!measured.load.errors.is_empty() && measured.operations == 0, "{reason}");
        assert!(reason.contains("requests failed: ") && reason.contains(" (first: "), "{reason}");
    }
}

#[test]
fn wrong_length() {
    every_request(&["wrong length"], |stream| {
        say(stream, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhel", Then::GoOn)
    });
}

#[test]
fn wrong_status() {
    every_request(&["wrong status"], |stream| {
        say(stream, "HTTP/1.1 500 Broken\r\nContent-Length: 5\r\n\r\nhello", Then::GoOn)
    });
}

#[test]
fn a_reset() {
    every_request(&["reset"], |stream| say(stream, "", Then::Reset));
}

#[test]
fn half_a_body() {
    every_request(&["closed early"], |stream| {
        say(stream, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", Then::Close)
    });
}

#[test]
fn half_a_head() {
    every_request(&["closed early"], |stream| say(stream, "HTTP/1.1 200 OK\r\nContent-Le", Then::Close));
}

#[test]
fn half_a_chunk() {
    every_request(&["closed early"], |stream| {
        say(stream, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", Then::Close)
    });
}

#[test]
fn no_answer_at_all() {
    every_request(&["closed early"], |stream| say(stream, "", Then::Close));
}

#[test]
fn garbage() {
    every_request(&["not HTTP"], |stream| say(stream, "SSH-2.0-OpenSSH_9.2\r\n", Then::GoOn));
}

#[test]
fn more_than_the_answer() {
    every_request(&["not HTTP"], |stream| say(stream, &format!("{GOOD}!"), Then::GoOn));
}

#[test]
fn a_head_without_end() {
    every_request(&["not HTTP"], |stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n");
        for _ in 0..100_000 {
            if stream.write_all(b"X-Padding: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\n").is_err() {
                break;
            }
        }
        Then::Close
    });
}

#[test]
fn stalling_for_ever() {
    every_request(&["timeout"], |stream| say(stream, "", Then::Stall));
    every_request(&["timeout"], |stream| {
        say(stream, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", Then::Stall)
    });
}

#[test]
fn trickling_for_ever() {
    every_request(&["timeout"], |stream| {
        while stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").is_ok() {
            thread::sleep(Duration::from_millis(5));
        }
        Then::Close
    });
}

/// A body is held against the expected one, to the letter.
#[test]
fn another_body() {
    let server = Server::good();
    let (reason, _) = failing(&server, json!({"expect": {"status": 200, "body": "help!"}}));
    assert!(reason.contains("wrong body") && reason.contains("from byte 3 on"), "{reason}");
    good(&load(server.address, json!({"expect": {"status": 200, "body": "hello"}})), 0.0, 0.05);
}

/// A port that nobody listens on.
#[test]
fn nobody_there() {
    let address = Server::good().address;
    thread::sleep(Duration::from_millis(50));
    for change in [json!({}), json!({"connection": "new"}), json!({"shape": "open", "rate_hz": 1000.0})] {
        let before = Instant::now();
        let ending = measure(&load(address, change), 0.05, 0.2);
        assert_eq!(Outcome::Failed, ending.outcome);
        let reason = ending.reason.expect("a reason");
        assert!(reason.contains("failed: refused ") && reason.contains("onnection refused"), "{reason}");
        assert!(before.elapsed() < FAR_TOO_LONG);
    }
}

/// A server that ends in mid-trial ends the trial, whose answers until then are kept.
#[test]
fn dying_in_mid_run() {
    for connection in ["user", "new"] {
        let server = Server::start(|stream, number| {
            say(stream, GOOD, if number == 100 { Then::Die } else { Then::GoOn })
        });
        let (reason, measured) = failing(&server, json!({"connection": connection, "users": 4}));
        let kinds: Vec<_> = measured.load.errors.keys().copied().collect();
        let expected = ["refused", "reset", "closed early"];
        assert!(kinds.iter().all(|kind| expected.contains(kind)) && !kinds.is_empty(), "{reason}");
        assert!(measured.operations >= 90, "{} right", measured.operations);
    }
}

/// One wrong answer among many fails the trial, is counted once, and is not asked again in silence.
#[test]
fn one_wrong_answer() {
    let server = Server::start(|stream, number| match number {
        50 => say(stream, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhel", Then::GoOn),
        _ => say(stream, GOOD, Then::GoOn),
    });
    let (reason, measured) = failing(&server, json!({"requests": 200, "users": 1}));
    assert_eq!("1 of 200 requests failed: wrong length 1 (first: expected 5 bytes, got 3)", reason);
    assert_eq!((200, 199, 200), (measured.load.requests, measured.operations, server.requests()));
    // The user went on with a new connection.
    assert_eq!(1, measured.load.connections);
}

/// What goes wrong in the warm-up fails the trial as well, and says where.
#[test]
fn wrong_in_the_warm_up() {
    let server =
        Server::start(|stream, number| say(stream, if number == 3 { "?" } else { GOOD }, Then::GoOn));
    let ending = measure(&load(server.address, json!({})), 0.05, 0.05);
    let reason = ending.reason.expect("a reason");
    assert!(reason.starts_with("while warming up: 1 of ") && reason.contains("not HTTP 1"), "{reason}");
}

/// More connections than there can be descriptors are refused before the first.
#[test]
fn too_many_connections() {
    let too_many = load(Server::good().address, json!({"users": 1_000_000_000, "idle": 5}));
    let refusal = crate::load::trial::measure(&too_many, 0.0, 0.1, 7).err();
    let words = format!("{refusal:?}");
    assert!(words.contains("1,000,000,005 connections do not fit in the "), "{words}");
}

/// A component that does not exist, or ends in mid-trial, is a failure by name.
#[test]
fn a_component_that_is_gone() {
    let server = Server::good();
    let change = |pid: u32| json!({"components": {"web": pid}});
    let missing =
        crate::load::trial::measure(&load(server.address, change(i32::MAX as u32)), 0.0, 0.05, 7).err();
    assert!(format!("{missing:?}").contains("web: there is no process 2147483647"), "{missing:?}");

    let mut child = std::process::Command::new("sleep").arg("0.1").spawn().expect("sleep");
    let ending = measure(&load(server.address, change(child.id())), 0.0, 0.4);
    let _ = child.wait();
    assert_eq!(Some(format!("web (process {}) ended during the trial", child.id())), ending.reason);
}
