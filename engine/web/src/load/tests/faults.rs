//! Each misbehaviour of a server is counted by its name, and none hangs the client.

use std::io::Write;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::server::{GOOD, Server, Then, say};
use super::{Advance, Trial, advanced, good, load, trial};
use crate::failure::Failure;

/// Limit of a test: none takes a second on an idle machine, and a hang takes for ever.
const FAR_TOO_LONG: Duration = Duration::from_secs(30);

/// Returns the reason of a trial's failure.
fn failing(server: &Server, change: serde_json::Value, operations: u64) -> String {
    let before = Instant::now();
    let stop = advanced(&load(server.address, change), 0.2, operations).expect_err("a failure");
    assert!(before.elapsed() < FAR_TOO_LONG, "{:?}", before.elapsed());
    let Failure::Failed(reason) = stop else { panic!("{stop:?}") };
    reason
}

/// Returns the kinds of error in a reason: `2 of 2 requests failed: reset 1, timeout 1 (first: …)`.
fn kinds(reason: &str) -> Vec<&str> {
    let counts = reason.split_once("failed: ").and_then(|(_, rest)| rest.split_once(" (first: "));
    let (counts, _) = counts.unwrap_or_else(|| panic!("{reason}"));
    counts.split(", ").filter_map(|count| Some(count.rsplit_once(' ')?.0)).collect()
}

/// Checks that a server with one answer to every request gives one kind of error.
#[track_caller]
fn every_request(expected: &str, answer: impl Fn(&mut TcpStream) -> Then + Send + Sync + 'static) {
    let server = Server::start(move |stream, _| answer(stream));
    for connection in ["user", "new"] {
        let reason = failing(&server, json!({"connection": connection, "request_limit_s": 0.2}), 1);
        assert_eq!(vec![expected], kinds(&reason), "{reason}");
    }
}

/// Rows of the error's name, the server's answer, and its next action.
#[test]
fn wrong_answers() {
    let rows = [
        ("wrong length", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhel", Then::GoOn),
        ("wrong status", "HTTP/1.1 500 Broken\r\nContent-Length: 5\r\n\r\nhello", Then::GoOn),
        ("reset", "", Then::Reset),
        ("closed early", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", Then::Close),
        ("closed early", "HTTP/1.1 200 OK\r\nContent-Le", Then::Close),
        ("closed early", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", Then::Close),
        ("closed early", "", Then::Close),
        ("not HTTP", "SSH-2.0-OpenSSH_9.2\r\n", Then::GoOn),
        ("not HTTP", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello!", Then::GoOn),
        ("timeout", "", Then::Stall),
        ("timeout", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", Then::Stall),
    ];
    for (expected, words, then) in rows {
        every_request(expected, move |stream| say(stream, words, then));
    }
}

/// Heads and interim answers without an end fail.
#[test]
fn answers_without_end() {
    every_request("not HTTP", |stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n");
        for _ in 0..100_000 {
            if stream.write_all(b"X-Padding: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\n").is_err() {
                break;
            }
        }
        Then::Close
    });
    every_request("timeout", |stream| {
        while stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").is_ok() {
            thread::sleep(Duration::from_millis(5));
        }
        Then::Close
    });
}

/// A body is compared exactly.
#[test]
fn another_body() {
    let server = Server::good();
    let reason = failing(&server, json!({"expect": {"status": 200, "body": "help!"}}), 1);
    assert!(reason.contains("wrong body") && reason.contains("from byte 3 on"), "{reason}");
    good(&load(server.address, json!({"expect": {"status": 200, "body": "hello"}})), 0.05);
}

/// A port without a listener refuses connections.
#[test]
fn no_listener() {
    let server = Server::good();
    let address = server.address;
    server.end();
    for change in [json!({}), json!({"connection": "new"}), json!({"shape": "open", "rate_hz": 1000.0})] {
        let before = Instant::now();
        let stop = advanced(&load(address, change), 0.2, 1).expect_err("no server to connect to");
        let Failure::Failed(reason) = stop else { panic!("{stop:?}") };
        assert!(reason.contains("failed: refused ") && reason.contains("onnection refused"), "{reason}");
        assert!(before.elapsed() < FAR_TOO_LONG);
    }
}

/// A server that ends during a trial ends the trial.
#[test]
fn dying_in_mid_run() {
    for connection in ["user", "new"] {
        let server = Server::start(|stream, number| {
            say(stream, GOOD, if number == 100 { Then::Die } else { Then::GoOn })
        });
        // The number exceeds its answers, however slow the machine is.
        let reason = failing(&server, json!({"connection": connection, "users": 4}), 1000);
        let expected = ["refused", "reset", "closed early"];
        assert!(kinds(&reason).iter().all(|kind| expected.contains(kind)), "{reason}");
        assert!(server.requests() >= 90, "{} requests", server.requests());
    }
}

/// A server that ends between two chunks fails the next chunk.
#[test]
fn dying_between_chunks() {
    let server = Server::good();
    let mut trial = trial(&load(server.address, json!({})));
    trial.advance(Advance { seconds: 0.01, operations: 1 }).expect("a chunk");
    server.end();
    let stop = trial.advance(Advance { seconds: 0.01, operations: 1 }).expect_err("no server to connect to");
    let reason = stop.into_words();
    assert!(reason.starts_with("while asking before a chunk: "), "{reason}");
}

/// A single wrong answer among many fails the trial, is counted once, and is not silently repeated.
#[test]
fn one_wrong_answer() {
    let server = Server::start(|stream, number| match number {
        50 => say(stream, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhel", Then::GoOn),
        _ => say(stream, GOOD, Then::GoOn),
    });
    let change = json!({"users": 1});
    let stop = advanced(&load(server.address, change), 0.0, 200).expect_err("a wrong answer");
    let expected = "1 of 200 requests failed: wrong length 1 (first: expected 5 bytes, got 3)";
    // The user continues on a new connection; it asked once before the chunk.
    assert_eq!((expected, 201), (stop.into_words().as_str(), server.requests()));
}

/// A fault in the warm-up fails the trial, and the message names the warm-up.
#[test]
fn wrong_in_the_warm_up() {
    let server =
        Server::start(|stream, number| say(stream, if number == 3 { "?" } else { GOOD }, Then::GoOn));
    let reason = trial(&load(server.address, json!({}))).warm_up().expect_err("a failure").into_words();
    assert!(reason.starts_with("while warming up: 1 of ") && reason.contains("not HTTP 1"), "{reason}");
}

/// Connections beyond the limit of descriptors are refused before the first is opened.
#[test]
fn too_many_connections() {
    let too_many = load(Server::good().address, json!({"users": 1_000_000_000, "idle": 5}));
    let refusal = Trial::open(&too_many, 7).err();
    let words = format!("{refusal:?}");
    assert!(words.contains("1,000,000,005 connections do not fit in the "), "{words}");
}

/// A component that does not exist, or ends during a trial, is a failure by name.
#[test]
fn a_component_that_is_gone() {
    let server = Server::good();
    let change = |pid: u32| json!({"components": {"web": pid}});
    let missing = Trial::open(&load(server.address, change(i32::MAX as u32)), 7).err();
    assert!(format!("{missing:?}").contains("web: there is no process 2147483647"), "{missing:?}");

    let mut child = std::process::Command::new("sleep").arg("1").spawn().expect("sleep");
    let stop = advanced(&load(server.address, change(child.id())), 2.0, 1).expect_err("an end");
    let _ = child.wait();
    assert_eq!(format!("web (process {}) ended during the trial", child.id()), stop.into_words());
}
