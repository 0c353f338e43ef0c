//! `guard`: become another program, on a given core, that cannot outlive the one who asked.
//!
//! Every runner and server is started through here, so that no language or daemon has to be taught
//! to die with the lab. Both may be trees of processes, some of which leave their parents: for these the guard
//! stays (`--tree`), adopts orphaned processes, and ends all of them. Standard input and output are the
//! command's own.

use std::ffi::CString;
use std::time::{Duration, Instant};

const USAGE: &str = "usage: tollbar-engine guard [--core N] [--tree] [--stop SIGNAL] [--child-of PID] -- COMMAND [ARGUMENT...]";
/// What a shell says of a command that it could not run.
const NOT_STARTED: i32 = 127;
/// What a shell says of a command that SIGKILL ended: here, because nobody is left to want it.
const ORPHANED: i32 = 128 + libc::SIGKILL;
/// Says that a process could not be ended, which no bed should see.
const NOT_ENDED: i32 = 125;
/// Tells the guard that its parent is gone; its own signal, because then nobody waits for politeness.
const PARENT_GONE: i32 = libc::SIGUSR1;
/// Files that a server may have open, if the hard limit allows: enough for ten thousand clients, and few enough for
/// programs that close every possible one of them when they start.
const OPEN_FILES: libc::rlim_t = 65536;
/// How long a server that was asked to stop may take, unless it is asked again.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the killing may take. A process survives SIGKILL only while the kernel works for it.
const KILL_LIMIT: Duration = Duration::from_secs(10);

pub fn main(arguments: &[String]) -> i32 {
    let request = match Request::read(arguments) {
        Ok(request) => request,
        Err(why) => return refuse(&why),
    };
    let Some(command) = Command::new(request.command) else {
        return refuse("guard: an argument holds a zero byte");
    };
    if let Some(core) = request.core
        && let Err(error) = pin(core)
    {
        return refuse(&format!("guard: core {core} is not to be had, and nothing was started: {error}"));
    }
    if request.tree {
        raise_open_files();
        return Supervisor::new(&request).map_or(ORPHANED, |supervisor| supervisor.run(&command));
    }
    if !tie_to_parent(libc::SIGKILL, request.parent) {
        return ORPHANED;
    }
    command.become_it()
}

/// Asks for SIGKILL when the process that started this one ends, however it ends.
pub fn die_with_parent() {
    if !tie_to_parent(libc::SIGKILL, None) {
        unsafe { libc::_exit(ORPHANED) }
    }
}

/// Asks for this signal when the parent ends. False: it has ended already, and the signal will never come.
///
/// Who knows the parent's id says it: a parent that ended before this process asked for its id
/// has been replaced by another.
fn tie_to_parent(signal: i32, parent: Option<libc::pid_t>) -> bool {
    let parent = parent.unwrap_or_else(|| unsafe { libc::getppid() });
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal) };
    parent == unsafe { libc::getppid() }
}

#[derive(Debug)]
struct Request<'a> {
    core: Option<usize>,
    tree: bool,
    stop: i32,
    parent: Option<libc::pid_t>,
    command: &'a [String],
}

impl<'a> Request<'a> {
    fn read(arguments: &'a [String]) -> Result<Request<'a>, String> {
        let mut request =
            Request { core: None, tree: false, stop: libc::SIGTERM, parent: None, command: &[] };
        let mut left = arguments;
        loop {
            left = match left {
                [dashes, command @ ..] if dashes == "--" && !command.is_empty() => {
                    request.command = command;
                    return Ok(request);
                }
                [dashes] if dashes == "--" => return Err("guard: no command".to_owned()),
                [flag, left @ ..] if flag == "--tree" => {
                    request.tree = true;
                    left
                }
                [flag, core, left @ ..] if flag == "--core" => {
                    request.core = Some(core.parse().map_err(|_| "guard: --core takes a number".to_owned())?);
                    left
                }
                [flag, parent, left @ ..] if flag == "--child-of" => {
                    let parent =
                        parent.parse().map_err(|_| "guard: --child-of takes a process id".to_owned())?;
                    request.parent = Some(parent);
                    left
                }
                [flag, name, left @ ..] if flag == "--stop" => {
                    request.stop = match name.as_str() {
                        "TERM" => libc::SIGTERM,
                        "INT" => libc::SIGINT,
                        "QUIT" => libc::SIGQUIT,
                        _ => return Err("guard: --stop takes TERM, INT or QUIT".to_owned()),
                    };
                    left
                }
                _ => return Err(USAGE.to_owned()),
            }
        }
    }
}

/// Keeps this process on one core, and all that it starts.
fn pin(core: usize) -> std::io::Result<()> {
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // A number past the set's end leaves it empty, which the kernel refuses as it does a core that is not there.
    if core < 8 * std::mem::size_of::<libc::cpu_set_t>() {
        unsafe { libc::CPU_SET(core, &mut set) };
    }
    match unsafe { libc::sched_setaffinity(0, std::mem::size_of::<libc::cpu_set_t>(), &set) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Servers are started with the soft limit that suits a shell; not all raise it themselves.
fn raise_open_files() {
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
            limit.rlim_cur = limit.rlim_cur.max(limit.rlim_max.min(OPEN_FILES));
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}

/// A command as the system takes it, made before any fork.
struct Command {
    words: Vec<CString>,
}

impl Command {
    fn new(words: &[String]) -> Option<Command> {
        let words = words.iter().map(|word| CString::new(word.as_str())).collect::<Result<_, _>>().ok()?;
        Some(Command { words })
    }

    /// Returns only if it could not be started.
    fn become_it(&self) -> i32 {
        let mut pointers: Vec<*const libc::c_char> = self.words.iter().map(|word| word.as_ptr()).collect();
        pointers.push(std::ptr::null());
        // Rust ignores SIGPIPE, and a program inherits what its predecessor ignores.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        unsafe { libc::execvp(pointers[0], pointers.as_ptr()) };
        let error = std::io::Error::last_os_error();
        refuse(&format!("guard: cannot start {}: {error}", self.words[0].to_string_lossy()))
    }
}

/// The guard of a tree of processes. It sleeps until a signal comes.
struct Supervisor {
    parent: libc::pid_t,
    stop: i32,
    signals: libc::sigset_t,
}

impl Supervisor {
    /// None: whoever asked is gone already.
    fn new(request: &Request) -> Option<Supervisor> {
        let signals = set_of(&[PARENT_GONE, libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGCHLD]);
        unsafe {
            // Blocked first, so that none of them comes before somebody waits for it.
            libc::sigprocmask(libc::SIG_BLOCK, &signals, std::ptr::null_mut());
            // Where the parent ignored it, children would vanish without a status.
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
        }
        tie_to_parent(PARENT_GONE, request.parent).then(|| Supervisor {
            parent: unsafe { libc::getppid() },
            stop: request.stop,
            signals,
        })
    }

    /// Starts the command, waits for its end or a reason to end it, and leaves nobody behind.
    fn run(&self, command: &Command) -> i32 {
        let child = match unsafe { libc::fork() } {
            -1 => return refuse(&format!("guard: cannot fork: {}", std::io::Error::last_os_error())),
            0 => self.start(command),
            child => child,
        };
        let mut status = None;
        self.wait(child, &mut status);
        if !end_children(child, &mut status) {
            eprintln!("guard: something of {} could not be ended", command.words[0].to_string_lossy());
            return NOT_ENDED;
        }
        status.map_or(NOT_ENDED, exit_status)
    }

    /// In the child: becomes the command, and dies with the guard.
    fn start(&self, command: &Command) -> ! {
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            libc::sigprocmask(libc::SIG_UNBLOCK, &self.signals, std::ptr::null_mut());
            libc::_exit(command.become_it())
        }
    }

    /// Returns when the command has ended, or when patience has.
    fn wait(&self, child: libc::pid_t, status: &mut Option<i32>) {
        let mut deadline = None;
        loop {
            match next_signal(&self.signals, deadline) {
                None => return,
                Some(libc::SIGCHLD) => {
                    reap(child, status);
                    if status.is_some() {
                        return;
                    }
                }
                // It also comes when only the thread that started the guard has ended.
                Some(PARENT_GONE) => {
                    if unsafe { libc::getppid() } != self.parent {
                        return;
                    }
                }
                // Asked for the second time.
                Some(_) if deadline.is_some() => return,
                Some(_) => {
                    // The child has not been waited for, so this id is still its own.
                    unsafe { libc::kill(child, self.stop) };
                    deadline = Some(Instant::now() + PATIENCE);
                }
            }
        }
    }
}

/// Kills the children, and those who thereby become children, until there is nobody. False: somebody stayed.
///
/// Only children are killed, never a child's child: nobody else can have taken the id of a process
/// that this one has not waited for yet.
fn end_children(child: libc::pid_t, status: &mut Option<i32>) -> bool {
    let deadline = Instant::now() + KILL_LIMIT;
    let signals = set_of(&[libc::SIGCHLD]);
    while Instant::now() < deadline {
        for pid in children() {
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        if !reap(child, status) {
            return true;
        }
        // The list of children may miss one that was adopted this moment: look again soon, told or not.
        next_signal(&signals, Some(Instant::now() + Duration::from_millis(5)));
    }
    false
}

/// Takes the status of every child that has ended, and says whether any child is left.
fn reap(child: libc::pid_t, status: &mut Option<i32>) -> bool {
    loop {
        let mut raw = 0;
        match unsafe { libc::waitpid(-1, &mut raw, libc::WNOHANG) } {
            0 => return true,
            -1 => return false,
            pid if pid == child => *status = Some(raw),
            _ => (),
        }
    }
}

/// The ids of this process's children.
fn children() -> Vec<libc::pid_t> {
    match std::fs::read_to_string("/proc/thread-self/children") {
        Ok(list) => list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect(),
        // A kernel built without it.
        Err(_) => children_by_search(),
    }
}

fn children_by_search() -> Vec<libc::pid_t> {
    let this = std::process::id().to_string();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<libc::pid_t>().ok());
    let is_child = |pid: &libc::pid_t| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name in parentheses may hold anything; after it come the state and the parent.
        let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        after_name.split_ascii_whitespace().nth(1) == Some(this.as_str())
    };
    pids.filter(is_child).collect()
}

/// The next of these signals, or None when the time is up.
fn next_signal(signals: &libc::sigset_t, deadline: Option<Instant>) -> Option<i32> {
    loop {
        let signal = match deadline {
            None => unsafe { libc::sigwaitinfo(signals, std::ptr::null_mut()) },
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                let left = libc::timespec {
                    tv_sec: left.as_secs() as libc::time_t,
                    tv_nsec: left.subsec_nanos() as libc::c_long,
                };
                unsafe { libc::sigtimedwait(signals, std::ptr::null_mut(), &left) }
            }
        };
        if signal > 0 {
            return Some(signal);
        }
        if std::io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            return None;
        }
    }
}

fn set_of(signals: &[i32]) -> libc::sigset_t {
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in signals {
            libc::sigaddset(&mut set, *signal);
        }
        set
    }
}

/// The command's status as a shell would say it.
fn exit_status(raw: i32) -> i32 {
    if libc::WIFEXITED(raw) { libc::WEXITSTATUS(raw) } else { 128 + libc::WTERMSIG(raw) }
}

fn refuse(why: &str) -> i32 {
    eprintln!("{why}");
    NOT_STARTED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_listing_children_agree() {
        let mut child = std::process::Command::new("sleep").arg("10").spawn().expect("sleep");
        let pid = child.id() as libc::pid_t;
        // The list is that of the thread; other tests' threads may have children of their own.
        assert!(children().contains(&pid));
        assert!(children_by_search().contains(&pid));
        child.kill().expect("kill");
        child.wait().expect("wait");
    }

    #[test]
    fn a_request_is_read_in_any_order() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let arguments = words("--stop QUIT --tree --core 1 --child-of 7 -- sleep 1");
        let request = Request::read(&arguments).expect("a request");
        assert_eq!(
            (Some(1), true, libc::SIGQUIT, Some(7)),
            (request.core, request.tree, request.stop, request.parent)
        );
        assert_eq!(["sleep", "1"], request.command);
        for wrong in
            ["--tree sleep", "--core x -- sleep", "--core 1 --", "--stop HUP -- sleep", "--child-of", "--"]
        {
            assert!(Request::read(&words(wrong)).is_err(), "{wrong}");
        }
    }
}
