//! `guard`: become another program on a given core that cannot outlive the process that started it.
//!
//! Every runner and server is started through the guard, so that no language or daemon needs code to die with
//! the lab. Either may be a tree of processes, some of which leave their parents. For these the guard stays
//! (`--tree`), adopts orphaned processes, ends all of them, and removes the System V shared memory that they
//! leave. The command inherits standard input and output.

use std::collections::HashSet;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, getppid, kill_process, set_child_subreaper, wait,
};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::process::{ORPHANED, raise_open_files, tie_to_parent};
use crate::{groups, proc};

const USAGE: &str = "usage: tollbar-engine guard [--core N[,N...]] [--group FOLDER] [--tree] [--stop SIGNAL] [--child-of PID] -- COMMAND [ARGUMENT...]";
/// Exit status of a shell for a command that it could not run.
const NOT_STARTED: i32 = 127;
/// Exit status if a process could not be ended; no server should cause it.
const NOT_ENDED: i32 = 125;
/// Signal that tells the guard that its parent has ended. It differs from the stop signals, because the
/// command then gets no time to stop.
const PARENT_GONE: Signal = Signal::USR1;
/// Limit of open files for a server, if the hard limit allows it. It is enough for ten thousand clients, and
/// few enough for programs that close every possible file when they start.
const OPEN_FILES: u64 = 65536;
/// Time for a server to stop after the first request to stop.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time limit for killing. A process survives SIGKILL only while the kernel works for it.
const KILL_LIMIT: Duration = Duration::from_secs(10);

pub fn main(arguments: &[String]) -> i32 {
    let request = match Request::read(arguments) {
        Ok(request) => request,
        Err(why) => return refuse(&why),
    };
    if !request.cores.is_empty()
        && let Err(error) = pin(&request.cores)
    {
        let cores = request.cores.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        return refuse(&format!("guard: core {cores} cannot be used, so nothing was started: {error}"));
    }
    if let Some(group) = &request.group
        && let Err(error) = groups::enter(group)
    {
        return refuse(&format!("guard: the control group {} cannot be entered: {error}", group.display()));
    }
    if request.tree {
        raise_open_files(OPEN_FILES);
        let status = Supervisor::new(&request).map_or(ORPHANED, |supervisor| supervisor.run(request.command));
        // The keeper, or the next run, removes a group that is not empty yet.
        let _ = request.group.as_deref().map(groups::leave);
        return status;
    }
    if !tie_to_parent(Signal::KILL, request.parent) {
        return ORPHANED;
    }
    become_command(request.command)
}

#[derive(Debug)]
struct Request<'a> {
    /// Cores on which the command runs; empty: all cores of the caller.
    cores: Vec<usize>,
    /// Control group that the process enters; with `tree` it removes the group at its end.
    group: Option<PathBuf>,
    tree: bool,
    stop: Signal,
    parent: Option<Pid>,
    command: &'a [String],
}

impl<'a> Request<'a> {
    fn read(arguments: &'a [String]) -> Result<Request<'a>, String> {
        let mut request = Request {
            cores: Vec::new(),
            group: None,
            tree: false,
            stop: Signal::TERM,
            parent: None,
            command: &[],
        };
        let mut words = arguments.iter();
        loop {
            match words.next().map(String::as_str) {
                Some("--") if words.as_slice().is_empty() => return Err("guard: no command".to_owned()),
                Some("--") => {
                    request.command = words.as_slice();
                    return Ok(request);
                }
                Some("--tree") => request.tree = true,
                Some("--core") => {
                    let cores = |cores: &str| cores.split(',').map(|core| core.parse().ok()).collect();
                    request.cores = value(
                        words.next(),
                        "--core must be a number, or several separated by commas, for example 0,1",
                        cores,
                    )?;
                }
                Some("--group") => {
                    let folder = |folder: &str| Some(PathBuf::from(folder));
                    request.group = Some(value(words.next(), "--group must be a folder", folder)?);
                }
                Some("--child-of") => {
                    let pid = |id: &str| Pid::from_raw(id.parse().ok()?);
                    request.parent = Some(value(words.next(), "--child-of must be a process id", pid)?);
                }
                Some("--stop") => {
                    let signal = |name: &str| match name {
                        "TERM" => Some(Signal::TERM),
                        "INT" => Some(Signal::INT),
                        "QUIT" => Some(Signal::QUIT),
                        _ => None,
                    };
                    request.stop = value(words.next(), "--stop must be TERM, INT or QUIT", signal)?;
                }
                _ => return Err(USAGE.to_owned()),
            }
        }
    }
}

/// Reads the value of a flag; `takes` names the expected value.
fn value<T>(word: Option<&String>, takes: &str, read: impl Fn(&str) -> Option<T>) -> Result<T, String> {
    word.and_then(|word| read(word)).ok_or_else(|| format!("guard: {takes}"))
}

/// Pins this process, and all that it starts, to these cores.
fn pin(cores: &[usize]) -> std::io::Result<()> {
    let mut set = CpuSet::new();
    // A set of numbers past its size stays empty, and the kernel refuses it as it refuses missing cores.
    cores.iter().filter(|core| **core < CpuSet::MAX_CPU).for_each(|core| set.set(*core));
    Ok(sched_setaffinity(None, &set)?)
}

/// Becomes the command. Returns only if it could not be started.
fn become_command(words: &[String]) -> i32 {
    let error = Command::new(&words[0]).args(&words[1..]).exec();
    refuse(&format!("guard: cannot start {}: {error}", words[0]))
}

/// Guard of a tree of processes, which sleeps until a signal comes.
struct Supervisor {
    parent: Option<Pid>,
    stop: Signal,
    signals: libc::sigset_t,
}

impl Supervisor {
    /// Prepares the guard. Returns None if the parent has ended already.
    fn new(request: &Request) -> Option<Supervisor> {
        let signals = [PARENT_GONE, Signal::TERM, Signal::INT, Signal::HUP, Signal::CHILD];
        let signals = set_of(&signals);
        // Block the signals first, so that none is lost before the guard waits for it.
        // SAFETY: the set is initialised, and the previous set is not requested.
        unsafe { libc::sigprocmask(libc::SIG_BLOCK, &signals, std::ptr::null_mut()) };
        // If the parent ignored the signal, children would vanish without a status.
        // SAFETY: no handler of this program is set.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
        set_child_subreaper(Some(getpid())).ok()?;
        tie_to_parent(PARENT_GONE, request.parent).then(|| Supervisor {
            parent: getppid(),
            stop: request.stop,
            signals,
        })
    }

    /// Starts the command, waits for its end or a reason to end it, and leaves no process.
    fn run(&self, command: &[String]) -> i32 {
        let guard = getpid();
        // SAFETY: this process has one thread, so that the child inherits no locked lock.
        let child = match unsafe { libc::fork() } {
            -1 => return refuse(&format!("guard: cannot fork: {}", std::io::Error::last_os_error())),
            0 => self.start(command, guard),
            child => child,
        };
        let Some(child) = Pid::from_raw(child) else { return NOT_ENDED };
        let mut tree = Tree { child, status: None, ended: HashSet::new(), started: SystemTime::now() };
        self.wait(&mut tree);
        if !tree.end() {
            eprintln!("guard: a process of {} could not be ended", command[0]);
            return NOT_ENDED;
        }
        tree.remove_segments();
        tree.status.map_or(NOT_ENDED, exit_status)
    }

    /// Becomes the command in the child, which dies with the guard.
    fn start(&self, command: &[String], guard: Pid) -> ! {
        // A guard that was killed before this request will send no signal.
        if !tie_to_parent(Signal::KILL, Some(guard)) {
            // SAFETY: ends the child, and runs none of the guard's code in it.
            unsafe { libc::_exit(ORPHANED) }
        }
        // SAFETY: the set is initialised, and the previous set is not requested.
        unsafe { libc::sigprocmask(libc::SIG_UNBLOCK, &self.signals, std::ptr::null_mut()) };
        let status = become_command(command);
        // SAFETY: ends the child, and runs none of the guard's code in it.
        unsafe { libc::_exit(status) }
    }

    /// Waits until the command has ended or its time to stop is over.
    fn wait(&self, tree: &mut Tree) {
        let mut deadline = None;
        loop {
            match next_signal(&self.signals, deadline) {
                None => return,
                Some(Signal::CHILD) => {
                    tree.reap();
                    if tree.status.is_some() {
                        return;
                    }
                }
                // The signal also comes when only the thread that started the guard has ended.
                Some(PARENT_GONE) => {
                    if getppid() != self.parent {
                        return;
                    }
                }
                // This is the second request to stop.
                Some(_) if deadline.is_some() => return,
                Some(_) => {
                    // The child has not been waited for, so that its id cannot belong to another process.
                    let _ = kill_process(tree.child, self.stop);
                    deadline = Some(Instant::now() + PATIENCE);
                }
            }
        }
    }
}

/// Processes that the guard has started and adopted.
struct Tree {
    child: Pid,
    status: Option<WaitStatus>,
    /// Processes that were waited for.
    ended: HashSet<i32>,
    started: SystemTime,
}

impl Tree {
    /// Kills the children, and orphans that thereby become children, until none is left. Returns false if one
    /// remains.
    ///
    /// Only children are killed, never a child's child: no other process can have the id of a child that was
    /// not waited for.
    fn end(&mut self) -> bool {
        let deadline = Instant::now() + KILL_LIMIT;
        let signals = set_of(&[Signal::CHILD]);
        while Instant::now() < deadline {
            for pid in proc::children(getpid().as_raw_pid()).into_iter().filter_map(Pid::from_raw) {
                let _ = kill_process(pid, Signal::KILL);
            }
            if !self.reap() {
                return true;
            }
            // The list of children may miss one that was adopted just now, so that it is read again soon,
            // with or without a signal.
            next_signal(&signals, Some(Instant::now() + Duration::from_millis(5)));
        }
        false
    }

    /// Waits for every child that has ended. Returns true if a child is left.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(None) => return true,
                Err(_) => return false,
                Ok(Some((pid, ended))) => {
                    self.ended.insert(pid.as_raw_pid());
                    if pid == self.child {
                        self.status = Some(ended);
                    }
                }
            }
        }
    }

    /// Removes the shared memory that a process of this tree made and no process uses. It outlives its maker,
    /// and a killed PostgreSQL cannot remove its own.
    fn remove_segments(&self) {
        let since = second_before(self.started);
        for segment in proc::segments() {
            // Before this tree began, an id may have belonged to another process.
            if segment.users == 0 && segment.changed >= since && self.ended.contains(&segment.maker) {
                // SAFETY: removal reads and writes no memory of this process. The kernel refuses another
                // user's segments.
                unsafe { libc::shmctl(segment.id, libc::IPC_RMID, std::ptr::null_mut()) };
            }
        }
    }
}

/// Returns the last whole second before a time; the clock of segments may be some milliseconds behind.
/// Returns 0 if the clock was not set.
fn second_before(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs().saturating_sub(1))
}

/// Waits for the next of these signals, or returns None at the deadline.
fn next_signal(signals: &libc::sigset_t, deadline: Option<Instant>) -> Option<Signal> {
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let left = left.map(|left| libc::timespec {
            tv_sec: left.as_secs() as libc::time_t,
            tv_nsec: left.subsec_nanos() as libc::c_long,
        });
        let left = left.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: set and time are initialised, and the signal's information is not requested.
        let signal = unsafe { libc::sigtimedwait(signals, std::ptr::null_mut(), left) };
        if signal > 0 {
            return Signal::from_named_raw(signal);
        }
        if std::io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            return None;
        }
    }
}

fn set_of(signals: &[Signal]) -> libc::sigset_t {
    // SAFETY: all zeros are a valid set, which `sigemptyset` then empties.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in signals {
            libc::sigaddset(&mut set, signal.as_raw());
        }
        set
    }
}

/// Returns the command's status in a shell's encoding.
fn exit_status(status: WaitStatus) -> i32 {
    status.exit_status().unwrap_or_else(|| 128 + status.terminating_signal().unwrap_or(0))
}

fn refuse(why: &str) -> i32 {
    eprintln!("{why}");
    NOT_STARTED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_not_set_is_before_every_segment() {
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        assert_eq!([0, 0, 1, 99], [0, 1, 2, 100].map(|seconds| second_before(at(seconds))));
        assert_eq!(0, second_before(UNIX_EPOCH - Duration::from_secs(5)));
    }

    #[test]
    fn a_request_is_read_in_any_order() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let arguments = words("--stop QUIT --group /a --tree --core 1,3 --child-of 7 -- sleep 1");
        let request = Request::read(&arguments).expect("a request");
        assert_eq!(
            (vec![1, 3], true, Signal::QUIT, Pid::from_raw(7)),
            (request.cores.clone(), request.tree, request.stop, request.parent)
        );
        assert_eq!(["sleep", "1"], request.command);
        assert_eq!(Some(PathBuf::from("/a")), request.group);
        for wrong in [
            "--tree sleep",
            "--core x -- sleep",
            "--core 1,,2 -- sleep",
            "--core 1 --",
            "--stop HUP -- sleep",
            "--child-of",
            "--group",
            "--",
        ] {
            assert!(Request::read(&words(wrong)).is_err(), "{wrong}");
        }
    }
}
