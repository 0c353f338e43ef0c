//! A trial, chunk by chunk: its counts, its end, and its lead-in.

use std::collections::HashSet;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::time::Duration;

use serde_json::json;

use super::server::{GOOD, Server, Then, say};
use super::{Advance, advanced, latencies, load, trial};
use crate::clock::{self, Clocks};
use crate::failure::Failure;
use crate::load::phase::Work;
use crate::load::trial::as_busy_as_asked;
use crate::load::workers;
use crate::random::UserRandom;

const FOR_A_WHILE: Advance = Advance { seconds: 0.05, operations: 1 };

/// Exactly the answers within the chunk are counted. Earlier requests are not, nor is the lead-in, one
/// request each of four users of a loop.
#[test]
fn accounts_are_closed() {
    for (connection, threads) in [("user", 1), ("new", 1), ("user", 2), ("new", 3)] {
        let led = threads * (6 / threads).min(4);
        let server = Server::good();
        let change = json!({"connection": connection, "threads": threads, "users": 6,
            "request": {"paths": ["/"], "unique_query": true}});
        let mut trial = trial(&load(server.address, change));
        trial.warm_up().expect("a warm-up");
        for number in 0..3 {
            let before = server.requests();
            let chunk = trial.advance(FOR_A_WHILE).expect("a chunk");
            let drawn = |work: Work| -> HashSet<String> {
                let of_user = |user| {
                    let mut random = UserRandom::new(7, user, work.number());
                    (0..20_000).map(move |_| format!("GET /?u={:016x} HTTP/1.1", random.request(1).1))
                };
                (0..6).flat_map(of_user).collect()
            };
            let lines = server.lines();
            let seen = |work: Work| {
                let drawn = drawn(work);
                lines.iter().filter(|line| drawn.contains(*line)).count() as u64
            };
            assert_eq!((chunk.operations, led), (seen(Work::Timed(number)), seen(Work::Lead(number))));
            assert_eq!(chunk.operations + led, server.requests() - before);
            assert_eq!(
                (chunk.operations, chunk.operations),
                (chunk.observed.counts.ended, latencies(&chunk))
            );
            let connections = if connection == "new" { chunk.operations } else { 0 };
            assert_eq!((connections, 0), (chunk.observed.counts.connections, chunk.observed.counts.reopened));
            assert_eq!(None, chunk.observed.certificate_bytes, "in clear");
        }
    }
}

/// Loops with their own cores each give an account, and the sums are the chunk's. None stops asking before
/// the others have reached their time; here they share one core.
#[test]
fn loops_with_cores_keep_accounts_in_team() {
    let core = rustix::thread::sched_getcpu();
    for (threads, connection) in [(1, "user"), (2, "new"), (3, "user")] {
        let server = Server::good();
        let cores = vec![core; threads];
        let change = json!({"connection": connection, "threads": threads, "users": 6, "cores": cores});
        let mut trial = trial(&load(server.address, change));
        trial.warm_up().expect("a warm-up");
        for (seconds, operations) in [(0.02, 1), (0.0, 60)] {
            let before = server.requests();
            let chunk = trial.advance(Advance { seconds, operations }).expect("a chunk");
            let led = (threads * (6 / threads).min(4)) as u64;
            let accounts = &chunk.observed.counts.threads;
            assert_eq!(threads, accounts.len());
            assert_eq!(chunk.operations, accounts.iter().map(|one| one.operations).sum::<u64>());
            assert_eq!(chunk.operations + led, server.requests() - before);
            assert_eq!(chunk.cpu_ns, accounts.iter().map(|one| one.cpu_ns).sum::<u64>());
            for one in accounts {
                let least = operations.max(12) / threads as u64;
                assert!(one.operations >= least && one.wall_ns as f64 >= seconds * 1e9, "as asked: {one:?}");
                assert!(one.wall_ns <= chunk.wall_ns, "within the chunk: {one:?}");
            }
        }
    }
    let server = Server::good();
    let refused = advanced(&load(server.address, json!({"cores": [99999]})), 0.0, 1).err();
    assert_eq!(Some(Failure::Failed("there is no core 99999".to_owned())), refused);
}

/// The client's CPU time is that of the loops' own threads, with and without pinned cores: another busy
/// thread of the process has no part in it.
#[test]
fn the_cpu_time_of_a_client_is_that_of_its_loops() {
    let core = rustix::thread::sched_getcpu();
    for cores in [json!([]), json!([core])] {
        let server = Server::good();
        let mut trial = trial(&load(server.address, json!({"think_s": 0.005, "cores": cores})));
        let (burnt_ns, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
        let (chunk, before_ns, burnt_before_ns) = std::thread::scope(|scope| {
            scope.spawn(|| {
                let clocks = Clocks::of_thread();
                while !is_over.load(Relaxed) {
                    burnt_ns.store(clocks.since().0, Relaxed);
                }
            });
            while burnt_ns.load(Relaxed) == 0 {
                std::thread::yield_now();
            }
            let before_ns = (clock::process_cpu_ns(), burnt_ns.load(Relaxed));
            let chunk = trial.advance(Advance { seconds: 0.2, operations: 1 });
            is_over.store(true, Relaxed);
            (chunk.expect("a chunk"), before_ns.0, before_ns.1)
        });
        // The kernel adds a thread's time to its process's clock at a tick or when the thread stops; it has
        // ended here.
        let process_ns = clock::process_cpu_ns() - before_ns;
        let (loops_ns, burnt_ns) = (chunk.cpu_ns, burnt_ns.into_inner() - burnt_before_ns);
        assert!(loops_ns > 0 && burnt_ns > 0, "{loops_ns} ns of loops, {burnt_ns} ns next to them");
        // The server, and other tests, are in this process too.
        assert!(loops_ns + burnt_ns <= process_ns, "{loops_ns} and {burnt_ns} of {process_ns} ns");
    }
}

/// The server answers one loop at once and the other late: the quick loop asks until the slow one has asked
/// enough.
#[test]
fn what_is_counted_was_done_while_all_asked() {
    let core = rustix::thread::sched_getcpu();
    let slow = OnceLock::new();
    let server = Server::start(move |stream, _| {
        // The slow connection is the one of two kept connections that asked first.
        let peer = stream.peer_addr().expect("a client");
        std::thread::sleep(Duration::from_millis(if *slow.get_or_init(|| peer) == peer { 100 } else { 0 }));
        say(stream, GOOD, Then::GoOn)
    });
    let change = json!({"threads": 2, "users": 2, "cores": [core, core]});
    let chunk = advanced(&load(server.address, change), 0.0, 10).expect("a chunk");
    let mut operations: Vec<u64> = chunk.observed.counts.threads.iter().map(|one| one.operations).collect();
    operations.sort_unstable();
    assert_eq!(5, operations[0]);
    assert!(operations[1] > 10, "{operations:?}");
}

/// No request of a later chunk repeats an earlier one, which a server could answer from a cache.
#[test]
fn each_chunk_draws_anew() {
    let server = Server::good();
    let mut trial = trial(&load(server.address, json!({"request": {"paths": ["/"], "unique_query": true}})));
    for _ in 0..5 {
        trial.advance(Advance { seconds: 0.0, operations: 20 }).expect("a chunk");
    }
    let lines = server.lines();
    assert_eq!(lines.len(), lines.iter().collect::<HashSet<_>>().len());
}

/// A chunk has at least the requested number over all loops, and two a user; no user starts more than one
/// beyond.
#[test]
fn so_many_at_least() {
    for (threads, users, operations) in [(1, 4, 1), (1, 4, 103), (3, 5, 100), (2, 2, 7)] {
        let server = Server::good();
        let load = load(server.address, json!({"threads": threads, "users": users}));
        let chunk = advanced(&load, 0.0, operations).expect("a chunk");
        let least = operations.max(2 * users);
        assert!((least..=least + users).contains(&chunk.operations), "{} of {least}", chunk.operations);
    }
}

/// A chunk lasts at least the requested time.
#[test]
fn so_long_at_least() {
    let chunk = advanced(&load(Server::good().address, json!({})), 0.1, 1).expect("a chunk");
    assert!(chunk.wall_ns >= 100_000_000 && chunk.cpu_ns > 0, "{chunk:?}");
}

/// An open loop's rate is that of its requests, also in the rest of a chunk after the last arrival.
#[test]
fn a_rate_of_arrivals_goes_to_the_end() {
    let server = Server::good();
    let change = json!({"shape": "open", "rate_hz": 1000.0, "users": 8});
    let mut trial = trial(&load(server.address, change));
    let (mut requests, mut wall_ns) = (0, 0);
    // The standard deviation of 1,000 arrivals is 3 %.
    while wall_ns < 1_000_000_000 {
        let chunk = trial.advance(Advance { seconds: 0.005, operations: 0 }).expect("a chunk");
        assert!(chunk.observed.counts.steady.wall_ns >= 5_000_000, "{chunk:?}");
        assert!(chunk.wall_ns >= 5_000_000, "{chunk:?}");
        // Another program had the core at the chunk's end, so that some arrivals came too late to be asked.
        if chunk.observed.counts.steady.wall_ns > 6_000_000 {
            continue;
        }
        requests += chunk.observed.counts.steady.requests;
        wall_ns += chunk.observed.counts.steady.wall_ns.min(5_000_000);
    }
    let rate_hz = requests as f64 / wall_ns as f64 * 1e9;
    assert!((850.0..1150.0).contains(&rate_hz), "{rate_hz}");
}

/// A server with a utilisation has several arrivals in each chunk, however short that is; one that was less
/// busy was not under this load. Here the server is this process, with client and other tests.
#[test]
fn a_share_of_the_time() {
    let server = Server::good();
    let components = json!({"web": std::process::id()});
    let change = json!({"shape": "open", "utilisation": 0.2, "users": 8, "components": components});
    let mut trial = trial(&load(server.address, change));
    trial.warm_up().expect("a warm-up");
    let chunk = trial.advance(Advance { seconds: 0.0, operations: 0 }).expect("a chunk");
    assert!(chunk.operations >= 8, "{chunk:?}");
    for (asked, found, is_so) in [(0.0, 0.9, true), (0.6, 0.5, true), (0.6, 0.2, false), (0.3, 0.6, false)] {
        assert_eq!(is_so, as_busy_as_asked(asked, found).is_ok(), "{asked} {found}");
    }
}

/// A count that is not reached in a multiple of one request's limit is out of time.
#[test]
fn a_count_out_of_reach() {
    let server = Server::good();
    let load = load(server.address, json!({"request_limit_s": 0.2}));
    let failure = advanced(&load, 0.02, 1_000_000_000).expect_err("an end");
    let Failure::TimedOut(reason) = failure else { panic!("{failure:?}") };
    assert!(reason.ends_with(" of at least 1000000000 requests were done in time"), "{reason}");
}

/// A warm-up asks at least twice for each user, and returns the cost of a request.
#[test]
fn a_warm_up_ends() {
    for change in [json!({"users": 8}), json!({"shape": "open", "rate_hz": 500.0})] {
        let server = Server::good();
        let mut trial = trial(&load(server.address, change.clone()));
        let operation_ns = trial.warm_up().expect("a warm-up");
        assert!(operation_ns > 100, "{operation_ns}");
        assert!(server.requests() >= if change["users"] == 8 { 16 } else { 2 });
    }
}

/// A thread that panics is a failure that names it, even while others continue.
#[test]
fn a_panic_is_told() {
    let (report, reports) = channel();
    workers::spawn("load 3".to_owned(), report.clone(), |_| panic!("index {}", 7)).expect("a thread");
    let Ok(Err(Failure::Failed(reason))) = reports.recv() else { panic!("no report") };
    assert_eq!("the client's thread `load 3` panicked: index 7", reason);
    drop(report);
}
