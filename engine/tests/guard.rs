//! The guard of a runner: its inputs, outputs, signals, and the processes it leaves.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, test_kill_process};

const ENGINE: &str = env!("CARGO_BIN_EXE_tollbar-engine");
/// Time limit, long enough for a busy machine; only a hang reaches it.
const PATIENCE: Duration = Duration::from_secs(30);

fn started(program: &str, arguments: &[&str]) -> Child {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect(program)
}

/// A runner that starts a process in its own session, prints its id, and repeats the line it receives.
const RUNNER: &str = "setsid sleep 1234 & echo $!; read line; echo \"told $line\"; exit 7";

fn line(from: &mut impl BufRead) -> String {
    let mut line = String::new();
    from.read_line(&mut line).expect("a line");
    line.trim().to_owned()
}

fn is_there(pid: i32) -> bool {
    Pid::from_raw(pid).is_some_and(|pid| test_kill_process(pid).is_ok())
}

fn is_gone(pid: i32) -> bool {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if !is_there(pid) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

#[test]
fn a_runner_is_spoken_to_through_the_guard_and_its_grandchildren_end_with_it() {
    let parent = std::process::id().to_string();
    let mut guard = started(ENGINE, &["guard", "--tree", "--child-of", &parent, "--", "sh", "-c", RUNNER]);
    let mut said = BufReader::new(guard.stdout.take().expect("its output"));
    let grandchild: i32 = line(&mut said).parse().expect("a process id");
    assert!(is_there(grandchild), "the grandchild is there");
    guard.stdin.take().expect("its input").write_all(b"hello\n").expect("told");
    assert_eq!("told hello", line(&mut said));
    assert_eq!(Some(7), guard.wait().expect("its end").code());
    assert!(is_gone(grandchild));
}

#[test]
fn a_runner_and_its_grandchildren_end_with_the_guards_parent() {
    let script = format!("{ENGINE} guard --tree --child-of $$ -- sh -c '{RUNNER}'; true");
    let mut parent = started("sh", &["-c", &script]);
    // The input stays open, so that the runner does not end because of it.
    let _input = parent.stdin.take();
    let mut said = BufReader::new(parent.stdout.take().expect("its output"));
    let grandchild: i32 = line(&mut said).parse().expect("a process id");
    parent.kill().expect("killed");
    parent.wait().expect("its end");
    assert!(is_gone(grandchild));
    // The output ends only after the guard and the runner have ended, which both have it open.
    let mut rest = String::new();
    said.read_to_string(&mut rest).expect("the end of the output");
    assert_eq!("", rest);
}

#[test]
fn nothing_is_run_on_a_core_that_is_not_to_be_had() {
    for mode in [&["guard"][..], &["guard", "--tree"]] {
        for core in ["1023", "1000000"] {
            let arguments = [mode, &["--core", core, "--", "echo", "it ran"]].concat();
            let output = started(ENGINE, &arguments).wait_with_output().expect("its end");
            let words = String::from_utf8_lossy(&output.stderr);
            assert_eq!(
                (Some(127), b"".as_slice()),
                (output.status.code(), output.stdout.as_slice()),
                "{words}"
            );
            assert!(words.contains(core) && words.contains("nothing was started"), "{words}");
        }
    }
}
