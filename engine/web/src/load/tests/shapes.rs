//! Shapes of load: which user asks when, on which connection.

use std::thread;
use std::time::Duration;

use serde_json::json;

use super::server::{GOOD, Server, Then, say};
use super::{advanced, good, latencies, load, trial};
use crate::calls;
use crate::failure::Failure;
use crate::load::connector::Connector;
use crate::load::probe::Probe;

/// A time to think of 50 ms limits the requests of two users.
#[test]
fn users_think() {
    let server = Server::good();
    let chunk = good(&load(server.address, json!({"think_s": 0.05})), 0.4);
    assert!((4..=2 * 9).contains(&chunk.operations), "{}", chunk.operations);
}

/// Arrivals during a stall have waited since they arrived.
#[test]
fn open_loop_latencies_count_from_the_intended_start() {
    let server = Server::start(|stream, number| {
        if number == 5 {
            thread::sleep(Duration::from_millis(300));
        }
        say(stream, GOOD, Then::GoOn)
    });
    let change = json!({"shape": "open", "rate_hz": 200.0, "users": 1});
    let chunk = good(&load(server.address, change), 0.5);
    assert!((60..=140).contains(&chunk.operations), "{}", chunk.operations);
    let slow =
        chunk.observed.counts.latencies.buckets_us().into_iter().filter(|(bound_us, _)| *bound_us > 100_000);
    let slow: u64 = slow.map(|(_, count)| count).sum();
    // They are those of the first 200 ms of the stall; counted from sending, it would be one.
    assert!(slow >= 20, "{slow}");
}

/// Arrivals come at their rate, also over several loops, and with the allowed number of connections.
#[test]
fn open_loop_arrivals_come_at_a_rate() {
    let server = Server::good();
    for (threads, connection) in [(1, "user"), (2, "user"), (1, "new")] {
        let change = json!({"shape": "open", "rate_hz": 2000.0, "users": 4, "threads": threads, "connection": connection});
        let chunk = good(&load(server.address, change), 0.2);
        // Their standard deviation is 20.
        assert!((320..=480).contains(&chunk.operations), "{}", chunk.operations);
        assert_eq!(chunk.operations, latencies(&chunk));
    }
}

/// A chunk of an open loop continues until a request has come.
#[test]
fn open_loop_chunks_are_not_empty() {
    let server = Server::good();
    let mut trial = trial(&load(server.address, json!({"shape": "open", "rate_hz": 100.0})));
    for _ in 0..20 {
        let chunk = trial.advance(super::Advance { seconds: 0.001, operations: 0 }).expect("a chunk");
        assert!(chunk.operations >= 1);
    }
}

/// Arrivals that were never sent, because the server fell too far behind, are errors.
#[test]
fn open_loop_backlog() {
    let server = Server::start(|stream, _| {
        thread::sleep(Duration::from_millis(20));
        say(stream, GOOD, Then::GoOn)
    });
    let change = json!({"shape": "open", "rate_hz": 2000.0, "users": 1, "request_limit_s": 0.2});
    let stop = advanced(&load(server.address, change), 0.2, 1).expect_err("a backlog");
    let Failure::Failed(reason) = stop else { panic!("{stop:?}") };
    assert!(reason.contains("requests failed: backlog "), "{reason}");
}

/// Idle connections are open while the others work, and stay silent.
#[test]
fn idle_connections_are_held() {
    let server = Server::good();
    let mut trial = trial(&load(server.address, json!({"idle": 100, "users": 3, "threads": 2})));
    let chunk = trial.advance(super::Advance { seconds: 0.0, operations: 300 }).expect("a chunk");
    // Each user asks once before the chunk.
    assert_eq!(chunk.operations + 3, server.requests());
    // This server accepts them asynchronously.
    while server.connections() < 103 || server.most_open() < 103 {
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!((103, 103), (server.connections(), server.most_open()));
}

/// An idle connection that the server closes is reported, because it is no longer idle load.
#[test]
fn idle_connections_that_are_closed() {
    let server = Server::good().closing_idle_after_ms(500);
    // The active connection is never idle for this long, however busy the machine is.
    let stop = advanced(&load(server.address, json!({"idle": 3, "users": 1})), 1.5, 1).expect_err("an end");
    let reason = stop.into_words();
    assert!(
        reason.contains("closed early 3") && reason.contains("a connection that must stay open"),
        "{reason}"
    );
}

/// A connection that a user's own server closes between two requests is opened again, counted, and reported.
#[test]
fn kept_connections_that_were_closed_meanwhile() {
    let server = Server::good().closing_idle_after_ms(20);
    let mut trial = trial(&load(server.address, json!({"think_s": 0.1, "users": 2})));
    let chunk = trial.advance(super::Advance { seconds: 0.5, operations: 1 }).expect("a chunk");
    assert!(chunk.observed.counts.reopened > 0);
    assert_eq!(chunk.observed.counts.connections, chunk.observed.counts.reopened);
    assert_eq!(chunk.operations + 2, server.requests());
    assert!(trial.end(Vec::new()).expect("a record").reopened >= chunk.observed.counts.reopened);
}

/// A request that crosses the end of its kept connection, before any byte of an answer, is sent again on a
/// new one.
#[test]
fn kept_connections_that_are_closed_as_a_request_comes() {
    for then in [Then::Close, Then::Reset] {
        let server = Server::start(move |stream, number| match number % 3 {
            0 => say(stream, "", then),
            _ => say(stream, GOOD, Then::GoOn),
        });
        let chunk = advanced(&load(server.address, json!({"users": 1})), 0.0, 300).expect("a chunk");
        assert!(chunk.observed.counts.reopened >= 140, "{}", chunk.observed.counts.reopened);
        assert!(server.requests() > chunk.operations + chunk.observed.counts.reopened);
    }
}

/// The end of a connection is an error once an answer has begun, and on a connection that was opened for the
/// request.
#[test]
fn no_request_is_sent_a_third_time() {
    let begun = Server::start(|stream, number| match number {
        100 => say(stream, "HTTP", Then::Close),
        _ => say(stream, GOOD, Then::GoOn),
    });
    let always = Server::start(|stream, number| match number {
        100.. => say(stream, "", Then::Close),
        _ => say(stream, GOOD, Then::GoOn),
    });
    for server in [begun, always] {
        let stop = advanced(&load(server.address, json!({"users": 1})), 0.0, 300).expect_err("an end");
        assert!(stop.into_words().contains("closed early"));
    }
}

/// A server of the lab is configured to keep connections: one that does not is the wrong server.
#[test]
fn kept_connections_that_a_component_closed() {
    let server = Server::good().closing_idle_after_ms(20);
    let change = json!({"think_s": 0.1, "users": 2, "components": {"web": std::process::id()}});
    let stop = advanced(&load(server.address, change), 0.5, 1).expect_err("a server that closes");
    let reason = stop.into_words();
    assert!(reason.contains("connections that must be kept"), "{reason}");
}

/// A server may declare an answer to be a connection's last.
#[test]
fn a_server_that_says_close() {
    let closing = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";
    let server = Server::start(move |stream, number| match number % 3 {
        0 => say(stream, closing, Then::Close),
        _ => say(stream, GOOD, Then::GoOn),
    });
    let chunk = advanced(&load(server.address, json!({})), 0.0, 300).expect("a chunk");
    assert!(chunk.observed.counts.reopened >= 90, "{}", chunk.observed.counts.reopened);
}

/// Bodies in chunks and up to the end of a connection are counted like those with a length.
#[test]
fn bodies_of_every_kind() {
    for answer in [
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;a=b\r\nllo\r\n0\r\nT: 1\r\n\r\n",
        "HTTP/1.0 200 OK\r\n\r\nhello",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    ] {
        let then = if answer.contains("1.0") { Then::Close } else { Then::GoOn };
        let server = Server::start(move |stream, _| say(stream, answer, then));
        let chunk = advanced(&load(server.address, json!({})), 0.0, 50).expect("a chunk");
        assert!(chunk.operations >= 50);
    }
}

/// A connection for each request uses the user's socket again, once its last connection is reset.
#[test]
fn connections_of_a_user_share_a_socket() {
    let server = Server::good();
    let load = load(server.address, json!({"connection": "new"}));
    let mut probe = Probe::new(&load, Connector::clear(), "/").expect("a probe");
    calls::tallied();
    for _ in 0..3 {
        assert_eq!(200, probe.send().expect("an answer").status);
    }
    assert_eq!(3, server.connections());
    assert_eq!(Some(1), calls::tallied().remove("socket"));
}
