//! `keep`: a directory that cannot outlive the process that requested it.
//!
//! The lab keeps this process's standard input open. However the lab ends, that input ends. The keeper then
//! removes the directory and the control groups of its name, and ends every process that was started in it.
//! Their guards end them first, but a guard can be killed just before the lab is. If the keeper is killed as
//! well, the kernel releases its lock on `keeper.json`, and the next run ends those processes and removes the
//! directory.

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

/// Time for guards to end what they started after the lab is gone. They use SIGKILL, which takes
/// milliseconds.
const GUARDS_LIMIT: Duration = Duration::from_secs(5);
/// Time for removing the directory while dying servers still write into it.
const LIMIT: Duration = Duration::from_secs(10);

pub fn main(arguments: &[String]) -> i32 {
    let [directory] = arguments else {
        eprintln!("usage: tollbar-engine keep DIRECTORY");
        return 2;
    };
    // These signals end the lab, from the terminal or at shutdown, and the keeper must outlive it to remove
    // the directory.
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        // SAFETY: an ignored signal runs no code.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    let directory = Path::new(directory);
    if let Err(error) = make(directory) {
        eprintln!("keep: {}: {error}", directory.display());
        return 1;
    }
    // `/proc` shows the canonical path, also after the directory is removed.
    let directory = &fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
    match write_down(directory) {
        // The lock is kept while this process waits.
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

/// Makes the directory. Other users may traverse it, because a server's workers run as another user; only the
/// owner may list it.
fn make(directory: &Path) -> io::Result<()> {
    const MODE: u32 = 0o711;
    fs::DirBuilder::new().mode(MODE).create(directory)?;
    // The mode must not depend on the umask.
    fs::set_permissions(directory, fs::Permissions::from_mode(MODE))
}

/// Writes the keeper's identity into the directory and locks that file: the lock tells the next run that the
/// directory has a keeper.
///
/// A process id means nothing in another container that shares the folder of temporary files, and may belong
/// to another process after a reboot. The kernel releases the lock when the keeper ends.
fn write_down(directory: &Path) -> io::Result<fs::File> {
    let own = Stat::read(std::process::id() as i32);
    let own = own.ok_or_else(|| io::Error::other("/proc/self/stat has another format than expected"))?;
    let keeper = serde_json::json!({
        "pid": std::process::id(),
        // The unit is clock ticks since boot.
        "start_time": own.started,
        "boot_id": boot_id()?,
    });
    let unfinished = directory.join(".keeper.json");
    let mut file = fs::File::create(&unfinished)?;
    // Some file systems do not support locks; there the next run relies on id, start time and boot id.
    let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
    file.write_all(keeper.to_string().as_bytes())?;
    // The file is locked before it gets its name, so that it is never seen without its lock.
    fs::rename(&unfinished, directory.join("keeper.json"))?;
    Ok(file)
}

/// Returns the id of this boot: ticks start again with each.
fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// Reports that the directory exists, and waits for the end of standard input.
fn wait() {
    let mut stdout = io::stdout();
    // If the lab no longer reads, standard input has ended too.
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

/// Ends the servers that may still write to the directory, and removes it with all their files.
fn remove(directory: &Path) -> io::Result<()> {
    let begun = Instant::now();
    let deadline = begun + LIMIT;
    loop {
        let writers = writers(directory)?;
        // A guard also removes the shared memory of its tree, which a killed guard could not.
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
            return result.and(Err(io::Error::other("another process keeps adding to it")));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A process whose standard error is a file in the directory.
struct Writer {
    /// Opened before the process is inspected, so that the process that is ended is the inspected one and not
    /// a later one with its id.
    process: OwnedFd,
    is_guard: bool,
}

impl Writer {
    /// Kills the process. Returns true if it was still there.
    fn end(&self) -> bool {
        pidfd_send_signal(&self.process, Signal::KILL).is_ok()
    }
}

/// Returns all writers of this directory, which must be a path without links, as `/proc` shows it.
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
        let mut other = std::process::Command::new("sleep").arg("60").spawn().expect("sleep");
        remove(&directory).expect("removed");
        assert!(!directory.exists());
        assert!(!inside.wait().expect("ended").success());
        assert_eq!(None, other.try_wait().expect("asked"));
        other.kill().expect("kill");
        other.wait().expect("wait");
    }

    /// Returns true if the directory's lock is free.
    fn lock_of(directory: &Path) -> bool {
        let file = fs::File::open(directory.join("keeper.json")).expect("keeper");
        flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
    }
}
