//! `keep`: a directory that cannot outlive the one who asked for it.
//!
//! The lab holds this process's standard input. Whatever becomes of the lab, that input ends, and
//! the directory goes. Should this process be killed too, the kernel releases its lock on
//! `keeper.json`, and the next run removes the directory.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long the directory is tried to be removed while dying servers still write into it.
const LIMIT: Duration = Duration::from_secs(10);

pub fn main(arguments: &[String]) -> i32 {
    let [directory] = arguments else {
        eprintln!("usage: tollbar-engine keep DIRECTORY");
        return 2;
    };
    // These end the lab, from the terminal or at shutdown, and then the directory has to be removed.
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    let directory = Path::new(directory);
    if let Err(error) = make(directory) {
        eprintln!("keep: {}: {error}", directory.display());
        return 1;
    }
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

/// Others may pass through, for a server's workers run as somebody else; only the owner may look.
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
    let keeper = serde_json::json!({
        "pid": std::process::id(),
        "start_time": start_time()?,
        "boot_id": boot_id()?,
    });
    let unfinished = directory.join(".keeper.json");
    let mut file = fs::File::create(&unfinished)?;
    // A file system that locks nothing says so here, and leaves id, start and boot to be believed.
    // SAFETY: the descriptor is that of an open file.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
    file.write_all(keeper.to_string().as_bytes())?;
    // Locked before it has its name, so that it is never seen there without its lock.
    fs::rename(&unfinished, directory.join("keeper.json"))?;
    Ok(file)
}

/// When this process started, in the kernel's ticks since boot.
fn start_time() -> io::Result<u64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    // The name in parentheses may hold anything; the start is the 20th field after it.
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let field = after_name.split_ascii_whitespace().nth(19).and_then(|field| field.parse().ok());
    field.ok_or_else(|| io::Error::other("/proc/self/stat is not as expected"))
}

/// Which start of the machine this is: ticks are counted anew after each.
fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// Says that the directory is there, and waits for the end of standard input.
fn wait() {
    let mut stdout = io::stdout();
    // If nobody listens any more, standard input has ended too.
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

/// Removes the tree, and what servers that are being ended still put into it.
fn remove(directory: &Path) -> io::Result<()> {
    let deadline = Instant::now() + LIMIT;
    loop {
        let result = fs::remove_dir_all(directory);
        if !directory.exists() {
            return Ok(());
        }
        if Instant::now() > deadline {
            return result.and(Err(io::Error::other("something keeps appearing in it")));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
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

    /// Whether the directory's lock can be had.
    fn lock_of(directory: &Path) -> bool {
        let file = fs::File::open(directory.join("keeper.json")).expect("keeper");
        // SAFETY: the descriptor is that of an open file.
        unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0 }
    }
}
