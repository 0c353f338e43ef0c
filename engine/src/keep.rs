//! `keep`: a directory that cannot outlive the process that asked for it.
//!
//! The lab holds this process's standard input. Whatever becomes of the lab, that input ends, and
//! the directory goes, the control groups of its name, and with them every process that was started in it: their guards end them first, but a guard
//! can be killed just before the lab is. Should this process be killed as well, the kernel releases its lock on
//! `keeper.json`, and the next run ends those processes and removes the directory.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::groups;
use crate::proc::Stat;

/// How long guards are let end what they have started, once the lab is gone. They kill it, which takes milliseconds.
const GUARDS_LIMIT: Duration = Duration::from_secs(5);
/// How long the directory is tried to be removed while dying servers still write into it.
const LIMIT: Duration = Duration::from_secs(10);

pub fn main(arguments: &[String]) -> i32 {
    let [directory] = arguments else {
        eprintln!("usage: tollbar-engine keep DIRECTORY");
        return 2;
    };
    // These end the lab, from the terminal or at shutdown, and then the directory has to be removed.
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        // SAFETY: ignoring a signal runs nothing.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    let directory = Path::new(directory);
    if let Err(error) = make(directory) {
        eprintln!("keep: {}: {error}", directory.display());
        return 1;
    }
    // As /proc shows it, once it is gone too.
    let directory = &fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
    match write_down(directory) {
        // Locked for as long as this process waits.
        Ok(_lock) => wait(),
        Err(error) => eprintln!("keep: {}: {error}", directory.display()),
    }
    match remove(directory) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("keep: {} is still there: {error}", directory.display());
            1
        }
    }
}

/// Others may pass through, for a server's workers run as another user; only the owner may list it.
fn make(directory: &Path) -> io::Result<()> {
    const MODE: u32 = 0o711;
    fs::DirBuilder::new().mode(MODE).create(directory)?;
    // Whatever the mask was.
    fs::set_permissions(directory, fs::Permissions::from_mode(MODE))
}

/// Says who keeps the directory, and locks what it says: by the lock the next run knows that it is kept.
///
/// A process id means nothing in another container that shares the folder of temporary files, and may be
/// another process's after the machine was started again; the lock is the kernel's own word.
fn write_down(directory: &Path) -> io::Result<fs::File> {
    let own = Stat::read(std::process::id() as i32);
    let own = own.ok_or_else(|| io::Error::other("/proc/self/stat is not as expected"))?;
    let keeper = serde_json::json!({
        "pid": std::process::id(),
        // In the kernel's ticks since boot.
        "start_time": own.started,
        "boot_id": boot_id()?,
    });
    let unfinished = directory.join(".keeper.json");
    let mut file = fs::File::create(&unfinished)?;
    // A file system that locks nothing says so here, and leaves id, start and boot to be believed.
    let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
    file.write_all(keeper.to_string().as_bytes())?;
    // Locked before it has its name, so that it is never seen there without its lock.
    fs::rename(&unfinished, directory.join("keeper.json"))?;
    Ok(file)
}

/// Which start of the machine this is: ticks are counted anew after each.
fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// Says that the directory is there, and waits for the end of standard input.
fn wait() {
    let mut stdout = io::stdout();
    // If the lab does not read any more, standard input has ended too.
    let _ = stdout.write_all(b"ready\n").and_then(|()| stdout.flush());
    let mut rest = [0; 64];
    let mut stdin = io::stdin();
    loop {
        match stdin.read(&mut rest) {
            Ok(0) => return,
            Ok(_) => (),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            Err(_) => return,
        }
    }
}

/// Removes the tree, what servers that are being ended still put into it, and those servers.
fn remove(directory: &Path) -> io::Result<()> {
    let begun = Instant::now();
    let deadline = begun + LIMIT;
    loop {
        let writers = writers(directory)?;
        // A guard removes the shared memory that its tree leaves as well: killed, it could not.
        if begun.elapsed() < GUARDS_LIMIT && writers.iter().any(|writer| writer.is_guard) {
            std::thread::sleep(Duration::from_millis(10));
            continue;
        }
        let writers = writers.into_iter().filter(Writer::end).count();
        let groups = groups::of_run(directory).iter().filter(|group| fs::remove_dir(group).is_err()).count();
        let result = fs::remove_dir_all(directory);
        if !directory.exists() && writers + groups == 0 {
            return Ok(());
        }
        if Instant::now() > deadline {
            return result.and(Err(io::Error::other("something keeps appearing in it")));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A process whose standard error is a file in the directory.
struct Writer {
    /// Held before it was looked at, so that what is ended is what was seen, and not a process that got its id since.
    process: OwnedFd,
    is_guard: bool,
}

impl Writer {
    /// Kills it, and says whether it was still there.
    fn end(&self) -> bool {
        pidfd_send_signal(&self.process, Signal::KILL).is_ok()
    }
}

/// All of this directory, which is a path without links, as /proc shows the files in it.
fn writers(directory: &Path) -> io::Result<Vec<Writer>> {
    let engine = fs::read_link("/proc/self/exe")?;
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        let Some(process) = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else {
            continue;
        };
        let stderr = fs::read_link(entry.path().join("fd/2"));
        if stderr.is_ok_and(|file| file.starts_with(directory)) {
            let is_engine = fs::read_link(entry.path().join("exe")).is_ok_and(|file| file == engine);
            let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let is_guard = is_engine && words.split(|byte| *byte == 0).nth(1) == Some(b"guard");
            found.push(Writer { process, is_guard });
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_made_once_and_removed_with_what_is_in_it() {
        let directory = std::env::temp_dir().join(format!("tollbar-keep-test-{}", std::process::id()));
        make(&directory).expect("made");
        assert_eq!(0o711, fs::metadata(&directory).expect("there").permissions().mode() & 0o777);
        assert_eq!(io::ErrorKind::AlreadyExists, make(&directory).expect_err("twice").kind());
        let lock = write_down(&directory).expect("written");
        let keeper = fs::read_to_string(directory.join("keeper.json")).expect("keeper");
        let keeper: serde_json::Value = serde_json::from_str(&keeper).expect("JSON");
        assert_eq!(Some(u64::from(std::process::id())), keeper["pid"].as_u64());
        assert_eq!(36, keeper["boot_id"].as_str().expect("a boot").len());
        assert!(!lock_of(&directory));
        drop(lock);
        assert!(lock_of(&directory));
        fs::create_dir_all(directory.join("a/b")).expect("folders");
        remove(&directory).expect("removed");
        assert!(!directory.exists());
    }

    #[test]
    fn a_process_that_writes_into_the_directory_goes_with_it() {
        let directory = std::env::temp_dir().join(format!("tollbar-keep-writer-{}", std::process::id()));
        make(&directory).expect("made");
        let log = fs::File::create(directory.join("log")).expect("a log");
        let mut inside = std::process::Command::new("sleep").arg("60").stderr(log).spawn().expect("sleep");
        let mut beside = std::process::Command::new("sleep").arg("60").spawn().expect("sleep");
        remove(&directory).expect("removed");
        assert!(!directory.exists());
        assert!(!inside.wait().expect("ended").success());
        assert_eq!(None, beside.try_wait().expect("asked"));
        beside.kill().expect("kill");
        beside.wait().expect("wait");
    }

    /// Whether the directory's lock can be had.
    fn lock_of(directory: &Path) -> bool {
        let file = fs::File::open(directory.join("keeper.json")).expect("keeper");
        flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
    }
}
