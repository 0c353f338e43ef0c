//! Start and end of a server.

use std::net::TcpListener;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Served, get, refused, start};

#[test]
fn it_says_where_it_listens_and_what_it_is_made_of() {
    let served = Served::plain();
    assert_eq!(
        json!({"listening": served.address.to_string(), "tls": null, "provider": null}),
        served.listening
    );
    assert_ne!(0, served.address.port());
}

/// Cores may repeat: each entry has its own loop, all accept, and each performs the operations that it has
/// prepared.
#[test]
fn it_serves_on_each_core_that_it_is_given() {
    let core = rustix::thread::sched_getcpu();
    let operation = json!({"mode": "measure", "family": "digest", "op": "hash", "choice": "sha-256",
        "provider": {"kind": "rustcrypto"}, "setting": {"bytes": 64}, "inputs": {}, "seed": 1});
    let config = json!({"listen": "127.0.0.1:0", "cores": [core, core, core], "operations": [operation]});
    let served = Served::start(&config, None);
    let mut clients: Vec<_> = (0..30).map(|_| served.client()).collect();
    for target in ["/bytes/3", "/op/digest/sha-256?bytes=64&op=hash"] {
        clients.iter_mut().for_each(|client| client.send(get(target)));
        assert!(clients.iter_mut().all(|client| client.reply().status == 200), "{target}");
    }
    let tasks = std::fs::read_dir(format!("/proc/{}/task", served.process.id())).unwrap().flatten();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    assert_eq!(2, names.filter(|name| name.trim() == format!("serve {core}")).count());
}

#[test]
fn cores_that_cannot_be_served_on_are_refused() {
    let (status, _, words) = refused(&json!({"listen": "127.0.0.1:0", "cores": [0, 99999]}).to_string());
    assert_eq!((Some(1), true), (status.code(), words.contains("there is no core 99999")), "{words}");
    let accounts = json!({"scheme": "anonymous"});
    let config = json!({"listen": "127.0.0.1:0", "cores": [0, 0], "sign_in": accounts}).to_string();
    let (status, line, _) = refused(&config);
    assert_eq!(Some(3), status.code(), "{line}");
    assert!(line.contains("a sign-in or a table needs one thread"), "{line}");
}

#[test]
fn it_listens_on_ipv6_as_well() {
    if TcpListener::bind("[::1]:0").is_err() {
        crate::lacking("this machine has no IPv6 loopback");
        return;
    }
    let served = Served::start(&json!({"listen": "[::1]:0"}), None);
    assert_eq!(3, served.ask("/bytes/3").body.len());
}

#[test]
fn a_signal_ends_it_without_a_fault() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut served = Served::plain();
        let mut client = served.client();
        client.send(get("/bytes/3"));
        assert_eq!(200, client.reply().status);
        served.signal(signal);
        assert_eq!(Some(0), served.process.wait().unwrap().code());
        assert!(client.is_ended());
    }
}

#[test]
fn a_port_is_free_again_as_soon_as_its_server_has_ended() {
    let address = {
        let served = Served::plain();
        // The server ends the connection, so that its side of it stays in TIME-WAIT.
        let mut client = served.client();
        client.send("GET /bytes/3 HTTP/1.0\r\n\r\n");
        assert_eq!(200, client.reply().status);
        assert!(client.is_ended());
        served.address
    };
    let served = Served::start(&json!({"listen": address.to_string()}), None);
    assert_eq!(3, served.ask("/bytes/3").body.len());
}

#[test]
fn a_taken_port_is_an_error_in_words() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (status, line, words) = refused(&json!({"listen": address}).to_string());
    assert_eq!((Some(2), ""), (status.code(), line.as_str()));
    assert!(words.contains(&address) && words.contains("in use"), "{words}");
}

#[test]
fn what_cannot_be_done_is_refused_in_words() {
    let digest = json!({"mode": "measure", "provider": {"kind": "rustcrypto"}, "family": "digest",
        "op": "hash", "choice": "sha-256", "setting": {"bytes": 16}});
    let with = |key: &str, value: Value| {
        let mut task = digest.clone();
        task[key] = value;
        json!({"listen": "127.0.0.1:0", "operations": [task]}).to_string()
    };
    let libcrypto = |path: &str| {
        let mut task = digest.clone();
        task["provider"] = json!({"kind": "libcrypto", "path": path});
        task
    };
    let rows = [
        ("failed", "the configuration is not valid", "nonsense".to_owned()),
        ("failed", "the configuration is not valid", String::new()),
        ("failed", "unknown field `port`", json!({"listen": "127.0.0.1:0", "port": 1}).to_string()),
        ("failed", "socket address", json!({"listen": "localhost"}).to_string()),
        ("failed", "must have the mode `measure`", with("mode", json!("verify"))),
        ("failed", "no such provider: `abacus`", with("provider", json!({"kind": "abacus"}))),
        (
            "failed",
            "cannot be loaded",
            with("provider", libcrypto("/nowhere/libcrypto.so")["provider"].clone()),
        ),
        ("failed", "no operation `sing`", with("op", json!("sing"))),
        ("unsupported", "/op/digest/sha-0?bytes=16&op=hash", with("choice", json!("sha-0"))),
        ("failed", "whole number", with("setting", json!({"bytes": "many"}))),
        (
            "failed",
            "two operations have this path; each needs its own",
            json!({"listen": "127.0.0.1:0", "operations": [digest, digest]}).to_string(),
        ),
    ];
    for (outcome, words, config) in rows {
        let (status, line, _) = refused(&config);
        let record: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {config}"));
        assert_eq!((Some(3), Some(outcome)), (status.code(), record["outcome"].as_str()), "{line}");
        assert!(record["reason"].as_str().unwrap().contains(words), "{words}: {line}");
    }
}

#[test]
fn it_ends_with_the_one_who_started_it() {
    // The server's parent is the thread that started it, and that thread ends at once.
    let config = json!({"listen": "127.0.0.1:0"}).to_string();
    let (mut process, line, _out) = std::thread::spawn(move || start(&config, None)).join().unwrap();
    assert!(line.contains("listening"), "{line}");
    assert_eq!(None, process.wait().unwrap().code());
}
