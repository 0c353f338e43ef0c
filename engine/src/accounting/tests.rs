//! CPU time of process trees, held against what the kernel says when they have ended.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

use super::{Account, Accounts, Bill, Paid, Reading, stood_still};
use crate::proc;

/// Two fields of the kernel's account, each cut off to a tick of 10 ms.
const TICKS_NS: u64 = 20_000_000;

/// What is read of clocks that may be left open: a shell's last steps, and the kernel's at its end.
const A_LITTLE_NS: u64 = 3_000_000;

/// Enough work to be seen over ticks, by a shell without other programs.
const BURN: &str = "burn() { i=0; while [ $i -lt ${1:-150000} ]; do i=$((i+1)); done; }";

struct Shell(Child, BufReader<std::process::ChildStdout>);

impl Shell {
    /// A shell that runs this script after the word "go", and then waits for another word.
    fn start(script: &str) -> Shell {
        let script = format!("{BURN}; read word; {script}; echo done; read word");
        let mut child = Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let answers = BufReader::new(child.stdout.take().expect("its answers"));
        Shell(child, answers)
    }

    fn accounts(&self) -> Accounts {
        Accounts::open(&BTreeMap::from([("web".to_owned(), self.0.id() as i32)])).expect("accounts")
    }

    fn say(&mut self) {
        self.0.stdin.as_mut().expect("its input").write_all(b"word\n").expect("a word");
    }

    fn hear(&mut self) {
        let mut line = String::new();
        self.1.read_line(&mut line).expect("an answer");
        assert!(!line.is_empty());
    }

    /// Waits for a line that ends so.
    fn hear_word(&mut self, word: &str) {
        let mut line = String::new();
        while !line.trim_end().ends_with(word) {
            line.clear();
            assert!(self.1.read_line(&mut line).expect("an answer") > 0, "no {word}");
        }
    }

    /// Lets it end: the CPU time of all it was and waited for.
    fn end(mut self) -> u64 {
        self.say();
        // SAFETY: all zeros are a `rusage`.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        let (pid, mut status) = (self.0.id() as i32, 0);
        // SAFETY: both are written, and this child was not waited for yet.
        assert_eq!(pid, unsafe { libc::wait4(pid, &mut status, 0, &mut usage) });
        let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
        ns(usage.ru_utime) + ns(usage.ru_stime)
    }
}

/// CPU time since the opening.
fn used_ns(reading: &Reading) -> u64 {
    reading.components["web"].cpu_ns
}

#[track_caller]
fn agree(expected_ns: u64, counted_ns: u64) {
    assert!(expected_ns > 3 * TICKS_NS, "the script burned {expected_ns} ns only");
    assert!(expected_ns.abs_diff(counted_ns) <= TICKS_NS, "{expected_ns} ns, counted {counted_ns}");
}

/// Children that come and go between two readings are in the account, to a tick, and that is said.
#[test]
fn children_that_were_not_seen_are_counted() {
    let mut shell = Shell::start("(burn); (burn)");
    let mut accounts = shell.accounts();
    assert_eq!(0, accounts.read().inexact);
    shell.say();
    shell.hear();
    let reading = accounts.read();
    assert!(reading.inexact > 0);
    agree(shell.end(), used_ns(&reading));
    // Even those that leave no trace in ticks.
    let mut shell = Shell::start("(:); (:)");
    let mut accounts = shell.accounts();
    shell.say();
    shell.hear();
    assert!(accounts.read().inexact > 0);
    shell.end();
}

/// A child that was read while it was there, and then ended, is counted once.
#[test]
fn children_that_were_seen_are_counted_once() {
    let mut shell = Shell::start("(burn; echo half; burn); (burn)");
    let mut accounts = shell.accounts();
    shell.say();
    let before_ns = used_ns(&accounts.read());
    shell.hear();
    let half_ns = used_ns(&accounts.read());
    shell.hear();
    let reading = accounts.read();
    assert!(before_ns <= half_ns && half_ns < used_ns(&reading));
    assert_eq!(Ok(()), accounts.all_there());
    assert!(accounts.close()["web"].processes >= 2);
    agree(shell.end(), used_ns(&reading));
}

/// A child that has ended is read to its end before its parent reaps it: exact, and in no need of ticks.
#[test]
fn children_that_wait_to_be_reaped_are_exact() {
    let mut shell = Shell::start("burn & burn & burn 20 & read word; wait");
    let past_ns = proc::cpu_clock_ns(shell.0.id() as i32).expect("a clock");
    let mut accounts = shell.accounts();
    shell.say();
    while !ended(shell.0.id() as i32) {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let waiting_ns = used_ns(&accounts.read());
    assert!(waiting_ns > 3 * TICKS_NS, "{waiting_ns}");
    shell.say();
    shell.hear();
    let reading = accounts.read();
    assert_eq!(0, reading.inexact);
    let counted_ns = used_ns(&reading);
    assert!((waiting_ns..waiting_ns + A_LITTLE_NS).contains(&counted_ns), "{waiting_ns} {counted_ns}");
    let expected_ns = shell.end() - past_ns;
    assert!(expected_ns.abs_diff(counted_ns) <= A_LITTLE_NS, "{expected_ns} ns, counted {counted_ns}");
}

/// Whether a process has three children, all of which have ended.
fn ended(pid: i32) -> bool {
    let children = proc::children(pid);
    children.len() == 3
        && children.iter().all(|child| proc::Stat::read(*child).is_some_and(|stat| stat.ended))
}

/// A busy machine may keep a process from its rest for longer than that is waited for: so often it is tried.
const ATTEMPTS: usize = 100;
/// Of those in which it came to rest, so many are enough. An interrupt, or a hypervisor, may add to what one of them reads.
const AT_REST: usize = 9;

/// Holds what is true of a process that came to rest against most of the attempts in which it did; None: it did not.
fn at_rest(attempt: impl Fn() -> Option<Result<(), String>>) {
    let attempts: Vec<_> = (0..ATTEMPTS).filter_map(|_| attempt()).take(AT_REST).collect();
    let wrong: Vec<&String> = attempts.iter().filter_map(|one| one.as_ref().err()).collect();
    assert!(2 * wrong.len() < attempts.len(), "of {} at rest: {wrong:?}", attempts.len());
}

/// What a server still does after its last answer is waited for.
#[test]
fn an_account_is_closed_at_rest() {
    at_rest(|| {
        let mut shell = Shell::start("burn 12000");
        let mut accounts = shell.accounts();
        let mut settled = accounts.settle();
        let before_ns = used_ns(&accounts.read());
        shell.say();
        settled &= accounts.settle();
        let settled_ns = used_ns(&accounts.read());
        shell.hear();
        let later_ns = used_ns(&accounts.read());
        shell.end();
        let (burned_ns, after_ns) = (later_ns - before_ns, later_ns - settled_ns);
        let is_right = burned_ns > 1_000_000 && after_ns < 300_000;
        settled.then(|| is_right.then_some(()).ok_or(format!("{burned_ns} ns, {after_ns} of them at rest")))
    });
}

/// What a server still does for what came before is no part of a bill that is begun then.
#[test]
fn a_bill_is_begun_at_rest() {
    at_rest(|| {
        let mut shell = Shell::start("burn 12000");
        let mut accounts = shell.accounts();
        shell.say();
        let opening = accounts.begin();
        shell.hear();
        let bill = accounts.bill(&opening);
        shell.end();
        let before_ns = bill.components_ns();
        let is_right = before_ns < 300_000;
        (!bill.unsettled).then(|| is_right.then_some(()).ok_or(format!("{before_ns} ns of what came before")))
    });
}

/// A bill that was begun while a server was at work says so, though it was at rest when it was closed.
#[test]
fn a_bill_that_was_begun_at_work_is_unsettled() {
    let mut shell = Shell::start("burn 3000000");
    let mut accounts = shell.accounts();
    shell.say();
    let opening = accounts.begin();
    shell.0.kill().expect("an end");
    let _ = shell.0.wait();
    assert!(accounts.bill(&opening).unsettled);
}

/// A server that never rests is not waited for without end, and it is said.
#[test]
fn an_account_of_one_that_never_rests() {
    let mut shell = Shell::start("burn 3000000");
    let mut accounts = shell.accounts();
    shell.say();
    assert!(!accounts.settle());
    shell.0.kill().expect("an end");
    let _ = shell.0.wait();
}

/// Of a process whose first thread sleeps, the state of the others tells that one works: as of a test's, which waits for the
/// thread of the test.
#[test]
fn a_thread_at_work_is_no_rest() {
    const TEST: &str = "accounting::tests::a_thread_at_work_is_no_rest";
    if std::env::var_os("TOLLBAR_TEST_WORKS").is_some() {
        crate::guard::die_with_parent();
        let works = AtomicBool::new(true);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while works.load(Relaxed) {
                    std::hint::spin_loop()
                }
            });
            println!("at work");
            let mut word = String::new();
            let _ = std::io::stdin().read_line(&mut word);
            works.store(false, Relaxed);
        });
        println!("at rest");
        let _ = std::io::stdin().read_line(&mut String::new());
        return;
    }
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "--nocapture", "--test-threads", "2", TEST])
        .env("TOLLBAR_TEST_WORKS", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("another process");
    let answers = BufReader::new(child.stdout.take().expect("its answers"));
    let mut other = Shell(child, answers);
    other.hear_word("at work");
    let mut accounts = other.accounts();
    assert!(!accounts.settle());
    other.say();
    other.hear_word("at rest");
    // A busy machine may keep it from its rest for longer than that is waited for.
    assert!((0..ATTEMPTS).any(|_| accounts.settle()));
    other.end();
}

#[test]
fn a_process_at_work_would_run() {
    let mut shell = Shell::start("burn 3000000");
    let accounts = shell.accounts();
    shell.say();
    // It has to be woken first.
    let would_run = (0..1000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(1));
        accounts.here.iter().any(Account::would_run)
    });
    shell.0.kill().expect("an end");
    let _ = shell.0.wait();
    assert!(would_run);
}

/// A component that ended is named, with its process.
#[test]
fn a_component_that_ended_is_missed() {
    let mut shell = Shell::start(":");
    let mut accounts = shell.accounts();
    assert_eq!(Ok(()), accounts.all_there());
    let pid = shell.0.id();
    shell.0.kill().expect("an end");
    let _ = shell.0.wait();
    accounts.read();
    assert_eq!(Err(format!("web (process {pid}) ended during the trial")), accounts.all_there());
}

/// However often a child is read that stays where it is, it is one process, and what it used is used once.
#[test]
fn a_child_that_stays_is_one_process() {
    let mut shell = Shell::start("(burn; echo burnt; read word; echo again)");
    let mut accounts = shell.accounts();
    shell.say();
    shell.hear();
    let readings: Vec<u64> = (0..3).map(|_| used_ns(&accounts.read())).collect();
    assert!(readings[0] > 3 * TICKS_NS && readings[2] - readings[0] < A_LITTLE_NS, "{readings:?}");
    assert_eq!(2, accounts.close()["web"].processes);
    shell.say();
    shell.hear();
    agree(shell.end(), readings[2]);
}

/// Who reaps a child is told of it, be it the root of the component or not.
#[test]
fn a_child_of_a_child_is_exact() {
    let mut shell = Shell::start("(burn & echo begun; read word; wait; echo reaped; read word)");
    let mut accounts = shell.accounts();
    shell.say();
    shell.hear();
    let (child, mut ended) = (proc::children(shell.0.id() as i32)[0], false);
    while !ended {
        std::thread::sleep(std::time::Duration::from_millis(1));
        ended = proc::children(child).iter().all(|pid| proc::Stat::read(*pid).is_some_and(|stat| stat.ended));
    }
    let waiting_ns = used_ns(&accounts.read());
    shell.say();
    shell.hear();
    let reading = accounts.read();
    assert_eq!(0, reading.inexact);
    assert!((waiting_ns..waiting_ns + A_LITTLE_NS).contains(&used_ns(&reading)), "{waiting_ns} {reading:?}");
    shell.say();
    shell.hear();
    shell.end();
}

/// Between two readings there is the time between them, from which the longest wait on one core is told.
#[test]
fn a_reading_has_its_time() {
    let mut accounts = Accounts::open(&BTreeMap::new()).expect("accounts");
    let first = accounts.read();
    std::thread::sleep(std::time::Duration::from_millis(2));
    assert!(accounts.read().at_ns - first.at_ns >= 2_000_000);
}

/// A child whose parent never waits for it keeps its last reading.
#[test]
fn children_that_were_not_waited_for_keep_their_last_reading() {
    // The inner shell becomes another program that waits for no child, and its child is let go before it.
    let (child, parent) = (Pipe::new("child"), Pipe::new("parent"));
    let (child_path, parent_path) = (&child.0, &parent.0);
    let script = format!("sh -c '{BURN}; (burn; echo burnt; cat {child_path}) & exec cat {parent_path}'");
    let mut shell = Shell::start(&script);
    let mut accounts = shell.accounts();
    shell.say();
    shell.hear();
    let burnt_ns = used_ns(&accounts.read());
    assert!(burnt_ns > 3 * TICKS_NS, "{burnt_ns}");
    child.let_go();
    parent.let_go();
    shell.hear();
    assert!(used_ns(&accounts.read()) >= burnt_ns);
    shell.end();
}

/// A named pipe with a reader that waits.
struct Pipe(String);

impl Pipe {
    fn new(name: &str) -> Pipe {
        let path = std::env::temp_dir().join(format!("tollbar-accounts-{}-{name}", std::process::id()));
        let path = path.to_str().expect("a plain path").to_owned();
        assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo").success());
        Pipe(path)
    }

    fn let_go(&self) {
        drop(std::fs::OpenOptions::new().write(true).open(&self.0).expect("a reader"));
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// What a process did before the opening is not the trial's.
#[test]
fn the_past_is_not_counted() {
    let mut shell = Shell::start("burn; (burn); echo ready; read word");
    shell.say();
    shell.hear();
    let mut accounts = shell.accounts();
    shell.say();
    shell.hear();
    let reading = accounts.read();
    assert!(used_ns(&reading) < A_LITTLE_NS && reading.inexact == 0, "{reading:?}");
    let record = &accounts.close()["web"];
    assert!(record.memory_bytes > 100_000 && record.processes == 1, "{record:?}");
    assert!(shell.end() > 3 * TICKS_NS);
}

/// Processes of one component on one core wait for each other, and no other program has their core.
#[test]
fn those_of_one_component_do_not_hold_it_up() {
    // They stay when they have done: what a process has waited goes with it.
    let burners = "for i in 1 2 3 4; do (burn; echo done; exec sleep 9) & all=\"$all $!\"; done";
    let mut shell = Shell::start(&format!("trap 'kill $all' EXIT; {burners}"));
    let pid = Pid::from_raw(shell.0.id() as i32);
    let cores = sched_getaffinity(None).expect("this thread's cores");
    let mut last = CpuSet::new();
    last.set((0..CpuSet::MAX_CPU).rfind(|core| cores.is_set(*core)).expect("a core"));
    sched_setaffinity(pid, &last).expect("a core of its own");
    let began = std::time::Instant::now();
    let mut accounts = shell.accounts();
    let opening = accounts.read();
    shell.say();
    for _ in 0..5 {
        shell.hear();
    }
    let record = accounts.read().since(&opening)["web"];
    let wall_ns = began.elapsed().as_nanos() as u64;
    assert!(record.cpu_ns > 3 * TICKS_NS, "{record:?}");
    assert!(record.cpu_ns + record.run_queue_wait_ns <= wall_ns + TICKS_NS, "{record:?} in {wall_ns} ns");
    shell.end();
}

/// A hundredth of the time, which is housekeeping; nothing at all is rest as well.
#[test]
fn what_hardly_runs_is_at_rest() {
    // Clocks and walls begin anywhere.
    let (shown_ns, at_ns) = (7_000_000_000, 3_000_000_000_000);
    for (used_ns, elapsed_ns, is_at_rest) in [
        (0, 0, true),
        (0, 200_000, true),
        (2000, 200_000, true),
        (2001, 200_000, false),
        (100_000, 200_000, false),
    ] {
        let now = (shown_ns + used_ns, at_ns + elapsed_ns);
        assert_eq!(is_at_rest, stood_still((shown_ns, at_ns), now), "{used_ns} of {elapsed_ns}");
    }
    // A process that ended takes its clock with it.
    assert!(stood_still((shown_ns, at_ns), (0, at_ns + 200_000)));
}

/// A bill that was read to a tick says so; of work that ends a process each time, while ticks matter.
#[test]
fn a_bill_says_that_it_was_read_to_a_tick() {
    for (script, is_to_a_tick) in [("(:); (:)", true), ("burn 20", false)] {
        let mut shell = Shell::start(script);
        let mut accounts = shell.accounts();
        let opening = accounts.begin();
        shell.say();
        shell.hear();
        assert_eq!(is_to_a_tick, accounts.bill(&opening).ticks, "{script}");
        shell.end();
    }
    for (ticks, cpu_ns, matter) in [
        (true, 0, true),
        (true, 119_999_999, true),
        (true, 120_000_000, false),
        (true, 120_000_001, false),
        (false, 0, false),
        (false, 120_000_000, false),
    ] {
        let paid = Paid { cpu_ns, run_queue_wait_ns: 0, on_one_core: true };
        let components = BTreeMap::from([("web".to_owned(), paid)]);
        let bill = Bill { components, cpu_ns: 0, wall_ns: 0, ticks, unsettled: false };
        assert_eq!(matter, bill.of_processes().ticks, "{ticks}, {cpu_ns} ns");
    }
}

/// Flags that are not up are not written: a line of a chunk is the longer for each.
#[test]
fn a_bill_says_only_what_is_so() {
    for (ticks, unsettled, keys) in [
        (false, false, vec!["components"]),
        (true, false, vec!["components", "ticks"]),
        (false, true, vec!["components", "unsettled"]),
    ] {
        let bill = Bill { components: BTreeMap::new(), cpu_ns: 1, wall_ns: 1, ticks, unsettled };
        let written = serde_json::to_value(bill).expect("a line");
        assert_eq!(keys, written.as_object().expect("an object").keys().collect::<Vec<_>>());
    }
}

/// On one core a component cannot have waited while it ran; on several its threads wait beside one another.
#[test]
fn what_waits_on_one_core_did_not_run_meanwhile() {
    let reading = |at_ns: u64, cpu_ns: u64, run_queue_wait_ns: u64, on_one_core: bool| Reading {
        components: BTreeMap::from([("web".to_owned(), Paid { cpu_ns, run_queue_wait_ns, on_one_core })]),
        inexact: 0,
        at_ns,
    };
    for (waited_ns, on_one_core, expected_ns) in
        [(50, true, 50), (400, true, 400), (900, true, 400), (900, false, 900)]
    {
        let before = reading(7_000, 300, 20, on_one_core);
        let after = reading(8_000, 900, 20 + waited_ns, on_one_core);
        let paid = Paid { cpu_ns: 600, run_queue_wait_ns: expected_ns, on_one_core };
        assert_eq!(BTreeMap::from([("web".to_owned(), paid)]), after.since(&before));
    }
}
