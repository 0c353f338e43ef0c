//! `guard`: become another program, on a given core, that cannot outlive the one who asked.
//!
//! Every runner and server is started through here, so that no language or daemon has to be taught
//! to die with the lab.

use std::ffi::CString;

pub fn main(arguments: &[String]) -> i32 {
    let (core, command) = match arguments {
        [flag, core, dashes, command @ ..] if flag == "--core" && dashes == "--" => (Some(core), command),
        [dashes, command @ ..] if dashes == "--" => (None, command),
        _ => return refuse("usage: tollbar-engine guard [--core N] -- COMMAND [ARGUMENT...]"),
    };
    if command.is_empty() {
        return refuse("guard: no command");
    }
    if let Some(core) = core {
        match core.parse::<usize>() {
            Ok(core) => pin(core),
            Err(_) => return refuse("guard: --core takes a number"),
        }
    }
    die_with_parent();
    become_command(command)
}

/// Asks for SIGKILL when the process that started this one ends, however it ends.
pub fn die_with_parent() {
    let parent = unsafe { libc::getppid() };
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    // The parent may have gone between the two calls: then nobody will ever send that signal.
    if unsafe { libc::getppid() } != parent {
        unsafe { libc::_exit(137) }
    }
}

/// Keeps this process on one core. A core that is not there leaves the process where it was.
fn pin(core: usize) {
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        if libc::sched_setaffinity(0, std::mem::size_of::<libc::cpu_set_t>(), &set) != 0 {
            eprintln!("guard: core {core} is not to be had: {}", std::io::Error::last_os_error());
        }
    }
}

fn become_command(command: &[String]) -> i32 {
    let Ok(words) = command.iter().map(|word| CString::new(word.as_str())).collect::<Result<Vec<_>, _>>()
    else {
        return refuse("guard: an argument holds a zero byte");
    };
    let mut pointers: Vec<*const libc::c_char> = words.iter().map(|word| word.as_ptr()).collect();
    pointers.push(std::ptr::null());
    unsafe { libc::execvp(pointers[0], pointers.as_ptr()) };
    refuse(&format!("guard: cannot start {}: {}", command[0], std::io::Error::last_os_error()))
}

fn refuse(why: &str) -> i32 {
    eprintln!("{why}");
    // What a shell says of a command it could not run.
    127
}
