//! Shapes of load: who asks when, on which connection.

use std::collections::HashSet;
use std::thread;
use std::time::Duration;

use serde_json::json;

use super::server::{GOOD, Server, Then, say};
use super::{good, latencies, load, measure};
use crate::load::draws::Draws;
use crate::load::record::Outcome;

/// Requests counted are those the server answered after the warm-up: no more, no fewer.
#[test]
fn accounts_are_closed() {
    for (connection, threads) in [("user", 1), ("new", 1), ("user", 2), ("new", 3)] {
        let server = Server::good();
        let change = json!({"connection": connection, "threads": threads, "users": 6,
            "request": {"paths": ["/"], "unique_query": true}});
        let measured = good(&load(server.address, change), 0.05, 0.1);
        let timed: HashSet<String> = (0..6)
            .flat_map(|user| {
                let mut draws = Draws::new(7, user, 0);
                (0..50_000).map(move |_| format!("GET /?u={:016x} HTTP/1.1", draws.request(1).1))
            })
            .collect();
        let seen = server.lines().iter().filter(|line| timed.contains(*line)).count() as u64;
        assert_eq!(seen, measured.load.requests);
        assert!(server.requests() > seen, "there was a warm-up");
        assert_eq!((seen, seen), (measured.operations, latencies(&measured)));
        let sliced: u64 = measured.load.series.iter().map(|slice| slice.requests).sum();
        assert_eq!(seen, sliced);
        let connections = if connection == "new" { seen } else { 0 };
        assert_eq!(connections, measured.load.connections);
    }
}

/// A count is kept to exactly, whatever the number of loops and users.
#[test]
fn a_count_of_requests() {
    for (threads, users, requests) in [(1, 4, 1), (1, 4, 103), (3, 5, 100), (2, 2, 7)] {
        let server = Server::good();
        let change = json!({"threads": threads, "users": users, "requests": requests});
        let measured = good(&load(server.address, change), 0.0, 5.0);
        assert_eq!((requests, requests), (measured.load.requests, server.requests()));
        let change = json!({"threads": threads, "users": users, "requests": requests,
            "shape": "open", "rate_hz": 2000.0});
        assert_eq!(requests, good(&load(server.address, change), 0.0, 5.0).load.requests);
    }
}

/// A count that is not reached in four times the duration is said to be out of time.
#[test]
fn a_count_out_of_reach() {
    let server = Server::good();
    let ending = measure(&load(server.address, json!({"requests": 1_000_000_000})), 0.0, 0.02);
    assert_eq!(Outcome::TimedOut, ending.outcome);
    let reason = ending.reason.expect("a reason");
    assert!(reason.ends_with(" of 1000000000 requests were done in time"), "{reason}");
}

/// Two users that think 50 ms cannot ask more than so often.
#[test]
fn users_think() {
    let server = Server::good();
    let measured = good(&load(server.address, json!({"think_s": 0.05})), 0.0, 0.4);
    assert!((2..=2 * 9).contains(&measured.load.requests), "{}", measured.load.requests);
}

/// Who arrives while the server stalls has waited since it arrived.
#[test]
fn open_loop_latencies_count_from_the_intended_start() {
    let server = Server::start(|stream, number| {
        if number == 5 {
            thread::sleep(Duration::from_millis(300));
        }
        say(stream, GOOD, Then::GoOn)
    });
    let change = json!({"shape": "open", "rate_hz": 100.0, "users": 1});
    let measured = good(&load(server.address, change), 0.0, 0.5);
    assert_eq!(50, measured.load.requests);
    let slow = measured.load.latency_us.iter().filter(|(bound_us, _)| *bound_us > 100_000);
    let slow: u64 = slow.map(|(_, count)| count).sum();
    // Those that arrived in the first 200 ms of the stall; from when they were sent it would be one.
    assert!(slow >= 20, "{slow}");
}

/// Arrivals come at their rate, over several loops too, with as many connections as there may be.
#[test]
fn open_loop_arrivals_come_at_a_rate() {
    let server = Server::good();
    for (threads, connection) in [(1, "user"), (2, "user"), (1, "new")] {
        let change = json!({"shape": "open", "rate_hz": 500.0, "users": 4, "threads": threads, "connection": connection});
        let measured = good(&load(server.address, change), 0.05, 0.2);
        assert_eq!(100, measured.load.requests);
    }
}

/// Arrivals that were never sent, because the server fell so far behind, are errors.
#[test]
fn open_loop_backlog() {
    let server = Server::start(|stream, _| {
        thread::sleep(Duration::from_millis(20));
        say(stream, GOOD, Then::GoOn)
    });
    let change = json!({"shape": "open", "rate_hz": 2000.0, "users": 1});
    let ending = measure(&load(server.address, change), 0.0, 0.1);
    assert_eq!(Outcome::Failed, ending.outcome);
    let measured = ending.measured.expect("figures");
    assert_eq!(vec!["backlog"], measured.load.errors.keys().copied().collect::<Vec<_>>());
    assert_eq!(200, measured.load.requests);
}

/// Idle connections are open while the others work, and say nothing.
#[test]
fn idle_connections_are_held() {
    let server = Server::good();
    let change = json!({"idle": 100, "users": 3, "threads": 2, "requests": 300});
    let measured = good(&load(server.address, change), 0.0, 5.0);
    assert_eq!((300, 300), (measured.load.requests, server.requests()));
    assert_eq!((103, 103), (server.connections(), server.most_open()));
}

/// An idle connection that the server gives up is not idle load any more, and is said.
#[test]
fn idle_connections_that_are_closed() {
    let server = Server::good().closing_idle_after_ms(50);
    let ending = measure(&load(server.address, json!({"idle": 3, "users": 1})), 0.0, 0.3);
    let reason = ending.reason.expect("a reason");
    assert!(reason.contains("closed early 3") && reason.contains("was to be held"), "{reason}");
}

/// A connection that the server closes between two requests is made again, and counted.
#[test]
fn kept_connections_that_were_closed_meanwhile() {
    let server = Server::good().closing_idle_after_ms(20);
    let measured = good(&load(server.address, json!({"think_s": 0.1, "users": 2})), 0.0, 0.5);
    assert!(measured.load.connections > 0);
    assert_eq!(measured.load.requests, server.requests());
}

/// A server may say that an answer is a connection's last.
#[test]
fn a_server_that_says_close() {
    let closing = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";
    let server = Server::start(move |stream, number| match number % 3 {
        0 => say(stream, closing, Then::Close),
        _ => say(stream, GOOD, Then::GoOn),
    });
    let measured = good(&load(server.address, json!({"requests": 300})), 0.0, 5.0);
    assert!(measured.load.connections >= 90, "{}", measured.load.connections);
}

/// Bodies in chunks and up to the end of a connection are counted as well as those with a length.
#[test]
fn bodies_of_every_kind() {
    for answer in [
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;a=b\r\nllo\r\n0\r\nT: 1\r\n\r\n",
        "HTTP/1.0 200 OK\r\n\r\nhello",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    ] {
        let then = if answer.contains("1.0") { Then::Close } else { Then::GoOn };
        let server = Server::start(move |stream, _| say(stream, answer, then));
        let measured = good(&load(server.address, json!({"requests": 50})), 0.0, 5.0);
        assert_eq!(50, measured.load.requests);
    }
}

/// The slices of a trial are its requests over time, with the client's CPU.
#[test]
fn a_trial_is_kept_in_slices() {
    let measured = good(&load(Server::good().address, json!({})), 0.0, 0.2);
    let series = &measured.load.series;
    assert!((2..=10).contains(&series.len()), "{}", series.len());
    assert!(series.is_sorted_by_key(|slice| slice.at_ms));
    let cpu_ns: u64 = measured.batches.iter().map(|(_, cpu_ns)| cpu_ns).sum();
    assert_eq!(measured.cpu_ns, cpu_ns);
    assert!(cpu_ns > 0);
}
