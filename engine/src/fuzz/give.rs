//! What every target is made of.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::path::PathBuf;

/// Gives an input to what was made for its target.
pub type Give = Box<dyn FnMut(&[u8])>;

/// A file in memory alone: its path is good as long as this process lives, and nothing is left.
pub fn file(text: &str) -> PathBuf {
    let fd = rustix::fs::memfd_create("fuzz", rustix::fs::MemfdFlags::empty()).expect("memory");
    let mut file = File::from(fd);
    file.write_all(text.as_bytes()).expect("memory");
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let _ = file.into_raw_fd();
    path
}
