//! `op` as the lab uses it: a process that reads and writes lines.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use tollbar_testing::lacking;

use serde_json::{Value, json};

const ENGINE: &str = env!("CARGO_BIN_EXE_tollbar-engine");

/// Returns a task of contract 2 with these fields replaced.
fn task(change: Value) -> Value {
    let mut task = json!({"contract": 2, "mode": "measure", "provider": {"kind": "rustcrypto"},
        "family": "digest", "op": "hash", "choice": "sha-256", "setting": {"bytes": 64}, "seed": 7});
    for (name, value) in change.as_object().expect("fields") {
        task[name] = value.clone();
    }
    task
}

struct Session {
    process: Child,
    said: BufReader<ChildStdout>,
}

impl Session {
    fn new(task: &Value) -> Session {
        let mut command = Command::new(ENGINE);
        command.arg("op").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("the engine");
        let said = BufReader::new(process.stdout.take().expect("its output"));
        let mut session = Session { process, said };
        session.tell(&task.to_string());
        session
    }

    fn tell(&mut self, line: &str) {
        let input = self.process.stdin.as_mut().expect("its input");
        writeln!(input, "{line}").expect("told");
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.said.read_line(&mut line).expect("a line");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    fn advance(&mut self, seconds: f64, operations: u64) -> Value {
        self.tell(&json!({"advance": {"seconds": seconds, "operations": operations}}).to_string());
        self.line()
    }

    /// Ends the input, and returns the last line. The process then ends with status 0 and no further output.
    fn last(mut self) -> Value {
        drop(self.process.stdin.take());
        let last = self.line();
        assert_eq!(0, self.said.read_line(&mut String::new()).expect("the end"));
        assert_eq!(Some(0), self.process.wait().expect("its end").code());
        last
    }
}

/// Returns the only line that answers this task.
fn answer(task: &Value) -> Value {
    Session::new(task).last()
}

fn scrypt(log2: u32) -> Value {
    json!({"family": "password-hash", "choice": "scrypt",
        "setting": {"algorithm": "scrypt", "n": 1_u64 << log2, "r": 8, "p": 1}})
}

/// A session sends its receipt, answers each `advance` with one chunk at least as long, and ends with `ok`.
#[test]
fn a_session_is_advanced_chunk_by_chunk() {
    let mut session = Session::new(&task(json!({})));
    let ready = session.line()["ready"].take();
    assert!(ready["provider"].as_str().expect("a provider").starts_with("RustCrypto"), "{ready}");
    assert!(ready["engine"].as_str().expect("an engine").ends_with("(optimised)"));
    assert!(ready["operation_ns"].as_f64().expect("nanoseconds") > 1.0);
    for (seconds, operations) in [(0.005, 1), (0.001, 50_000), (0.0, 1), (0.02, 0)] {
        let chunk = session.advance(seconds, operations);
        assert!(chunk["wall_ns"].as_f64().expect("nanoseconds") >= seconds * 1e9, "{chunk}");
        assert!(chunk["operations"].as_u64().expect("a count") >= operations.max(1), "{chunk}");
        // Other tests use the other core; this process has one thread, whose CPU time is read within its
        // elapsed time.
        assert!(chunk["cpu_ns"].as_u64() <= chunk["wall_ns"].as_u64(), "{chunk}");
        assert!(chunk["cpu_ns"].as_u64().expect("nanoseconds") > 0, "{chunk}");
        assert_eq!(json!({}), chunk["observed"]);
    }
    assert_eq!(json!({"outcome": "ok"}), session.last());
}

/// A chunk exceeds the request by at most one operation, if that alone takes longer.
#[test]
fn a_slow_operation_is_done_once_a_chunk() {
    let mut session = Session::new(&task(scrypt(15)));
    session.line();
    for _ in 0..3 {
        assert_eq!(1, session.advance(0.005, 1)["operations"]);
    }
    assert_eq!(3, session.advance(0.005, 3)["operations"]);
    session.last();
}

/// The lead-in is not counted: a chunk counts its own operations with and without it.
#[test]
fn a_session_without_a_lead_is_one_too() {
    for lead in [true, false] {
        let mut session = Session::new(&task(json!({"lead": lead})));
        session.line();
        assert!(session.advance(0.002, 1)["operations"].as_u64().expect("a count") > 10);
        session.last();
    }
}

/// Several threads answer in one chunk, with an account each; the sums are those of the chunk.
#[test]
fn threads_answer_in_one_chunk() {
    for threads in [1, 2] {
        let mut session = Session::new(&task(json!({"threads": threads})));
        assert!(session.line()["ready"]["operation_ns"].as_f64().expect("nanoseconds") > 1.0);
        for (seconds, operations) in [(0.005, 1), (0.0, 1000)] {
            let chunk = session.advance(seconds, operations);
            let accounts = chunk["observed"]["threads"].as_array().expect("accounts");
            assert_eq!(threads, accounts.len());
            for name in ["operations", "cpu_ns"] {
                let sum: u64 = accounts.iter().map(|one| one[name].as_u64().expect("a count")).sum();
                assert_eq!(Some(sum), chunk[name].as_u64(), "{chunk}");
            }
            assert!(accounts.iter().all(|one| one["operations"].as_u64() >= Some(operations)), "{chunk}");
            assert!(chunk["wall_ns"].as_f64().expect("nanoseconds") >= seconds * 1e9, "{chunk}");
        }
        assert_eq!(json!({"outcome": "ok"}), session.last());
    }
    for (change, words) in [
        (json!({"threads": 0}), "`threads` is 0"),
        (json!({"threads": 2, "cores": [0]}), "`cores` must name 2 cores, one for each thread; it names 1"),
        (
            json!({"threads": 2, "setting": {"bytes": 64, "colour": "blue"}}),
            "the setting `colour` does not apply to `hash` of `sha-256`",
        ),
    ] {
        let record = answer(&task(change));
        assert_eq!("failed", record["outcome"], "{record}");
        assert!(record["reason"].as_str().expect("a reason").contains(words), "{record}");
    }
}

/// Memory is that of the first operation, between once and one and a half times its parameters' value. The
/// kernel counts pages in batches, so that slightly less passes too. A digest needs next to no memory,
/// whatever the size of its data.
#[test]
fn memory_is_the_operations_own() {
    const MIB: f64 = 1024.0 * 1024.0;
    let argon2id = json!({"family": "password-hash", "choice": "argon2id",
        "setting": {"algorithm": "argon2id", "memory": 24 * 1024 * 1024, "passes": 1, "lanes": 1}});
    let large = json!({"setting": {"bytes": 32 << 20}});
    for (change, least, most) in [(scrypt(14), 15.5, 24.0), (argon2id, 23.5, 36.0), (large, 0.0, 1.0)] {
        let mut session = Session::new(&task(change.clone()));
        let ready = session.line()["ready"].take();
        let Some(bytes) = ready["memory_bytes"].as_f64() else {
            lacking("this kernel does not let a process reset its peak of memory");
            return;
        };
        assert!((least..=most).contains(&(bytes / MIB)), "{change}: {} MiB", bytes / MIB);
        session.last();
    }
}

/// An impossible task is refused in one line with a reason, and status 0.
#[test]
fn what_is_no_task_is_refused_in_words() {
    let mut missing = task(json!({}));
    missing.as_object_mut().expect("fields").remove("contract");
    let rows = [
        (missing, "the task needs a `contract`"),
        (task(json!({"contract": 1, "warm_up_s": 0.1, "duration_s": 0.1})), "contract 1"),
        (task(json!({"contract": "2"})), "contract \"2\""),
        (task(json!({"duration_s": 0.1})), "unknown field `duration_s`"),
        (
            task(json!({"setting": {"bytes": 64, "colour": "blue"}})),
            "the setting `colour` does not apply to `hash`",
        ),
        (
            task(json!({"choice": "none", "setting": {"key": "kept"}})),
            "the setting `key` does not apply to `hash`",
        ),
        (json!([]), "the task needs a `contract`"),
    ];
    for (task, words) in rows {
        let record = answer(&task);
        assert_eq!("failed", record["outcome"], "{record}");
        assert!(record["reason"].as_str().expect("a reason").contains(words), "{record}");
    }
}

/// An invalid line ends the session with a failure, and no further answer.
#[test]
fn a_wrong_line_ends_the_session() {
    let ahead = r#"{"advance": {"seconds": -1, "operations": 1}}"#;
    for line in ["{", "[]", "{\"retreat\": {}}", ahead, r#"{"advance": {"seconds": 0, "operations": 0}}"#] {
        let mut session = Session::new(&task(json!({})));
        session.line();
        session.tell(line);
        let record = session.last();
        assert_eq!("failed", record["outcome"], "{record}");
        assert!(record["receipt"]["provider"].is_string(), "{record}");
    }
}

/// A known answer without its inputs is a failure, not a proof.
#[test]
fn a_known_answer_is_given_or_the_proof_fails() {
    let change = json!({"mode": "verify", "inputs": {"expected_hex": "00"}});
    let record = answer(&task(change));
    assert_eq!("failed", record["outcome"], "{record}");
    assert!(record["reason"].as_str().expect("a reason").contains("known answer"), "{record}");

    let given = json!({"mode": "verify", "inputs": {"expected_hex": "00", "of": "abc"}});
    let record = answer(&task(given));
    let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(abc, record["proof"]["answer"], "{record}");
}

/// `list` and `verify` answer one line and end, without waiting for the input to end.
#[test]
fn one_line_is_answered_at_once() {
    for mode in ["list", "verify"] {
        let mut session = Session::new(&task(json!({"mode": mode})));
        let record = session.line();
        assert_eq!("ok", record["outcome"], "{record}");
        assert!(record["receipt"]["provider"].is_string(), "{record}");
        assert_eq!(Some(0), session.process.wait().expect("its end").code());
    }
}
