//! Common parts of all targets.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::path::PathBuf;

/// Function that passes an input to a target.
pub type Give = Box<dyn FnMut(&[u8])>;

/// Makes a file in memory. Its path is valid while this process lives, and nothing remains afterwards.
pub fn file(text: &str) -> PathBuf {
    let fd = rustix::fs::memfd_create("fuzz", rustix::fs::MemfdFlags::empty()).expect("memory");
    let mut file = File::from(fd);
    file.write_all(text.as_bytes()).expect("memory");
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let _ = file.into_raw_fd();
    path
}
