//! Ties of this process: to the process that started it, and to the limit of open files.

use std::io::Write;

use rustix::process::{
    Pid, Resource, Signal, getppid, getrlimit, set_parent_process_death_signal, setrlimit,
};

/// Exit status of a shell for a command that SIGKILL ended: the process that wanted it has ended.
pub const ORPHANED: i32 = 128 + libc::SIGKILL;

/// Requests SIGKILL when the process that started this one ends, however it ends.
pub fn die_with_parent() {
    if !tie_to_parent(Signal::KILL, None) {
        // SAFETY: ends the process, and runs no more code of this program.
        unsafe { libc::_exit(ORPHANED) }
    }
}

/// Requests this signal when the parent ends. Returns false if the parent has ended already, because then the
/// signal never comes.
///
/// Pass the parent's id if it is known: a parent that ended before this process read its id has been
/// replaced.
pub fn tie_to_parent(signal: Signal, parent: Option<Pid>) -> bool {
    let parent = parent.or_else(getppid);
    set_parent_process_death_signal(Some(signal)).is_ok() && parent == getppid()
}

/// Raises the limit of open files as far as the hard limit allows, and returns the new limit. The inherited
/// soft limit suits a shell.
pub fn raise_open_files(most: u64) -> u64 {
    let mut limit = getrlimit(Resource::Nofile);
    let before = limit.current.unwrap_or(u64::MAX);
    let raised = before.max(limit.maximum.unwrap_or(u64::MAX).min(most));
    limit.current = Some(raised);
    if setrlimit(Resource::Nofile, limit).is_ok() { raised } else { before }
}

/// Ends the process with this status, after what it printed.
pub fn end(status: i32) -> ! {
    let _ = std::io::stdout().flush();
    // A libcrypto registers exit handlers; some of them crash once its memory is partly freed.
    // SAFETY: it takes a number, and no code of this program runs after it.
    unsafe { libc::_exit(status) }
}

/// Refuses a command, of which a program has these. Returns the exit status.
pub fn refuse(commands: &str) -> i32 {
    eprintln!("usage: {commands}; `tollbar-engine` has all commands");
    2
}
