//! What parses bytes of others, given any bytes: a table of targets. The tests replay the corpora that are kept, with some
//! changes to each; built with the feature `fuzz`, libFuzzer looks for new ones, guided by what they cover.
//!
//! A target panics where the engine would, and where an answer breaks a rule that its comment states.

mod answers;
#[cfg(feature = "fuzz")]
pub mod driver;
mod frames;
mod requests;
mod tasks;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::path::PathBuf;

/// Gives an input to what was made for its target.
pub type Give = Box<dyn FnMut(&[u8])>;

pub struct Target {
    pub name: &'static str,
    /// Makes what an input is given to, once.
    pub make: fn() -> Give,
}

const fn target(name: &'static str, make: fn() -> Give) -> Target {
    Target { name, make }
}

pub const TARGETS: &[Target] = &[
    target("requests", requests::plain),
    target("basic", requests::basic),
    target("api-key", requests::api_key),
    target("cookies", requests::form),
    target("digest", requests::digest),
    target("jwt", requests::jwt),
    target("hmac", requests::hmac),
    target("answers", answers::bodies),
    target("sign-in-answers", answers::sign_ins),
    target("gssapi-tokens", answers::tokens),
    target("password-hashes", tasks::password_hashes),
    target("runner-lines", tasks::lines),
    target("tasks", tasks::operations),
    target("load-tasks", tasks::loads),
    target("store-tasks", tasks::stores),
    target("server-configurations", tasks::configurations),
    target("postgresql", frames::postgresql),
    target("mariadb", frames::mariadb),
];

/// Longer inputs find nothing that shorter ones do not, and take longer.
pub const MOST_BYTES: usize = 4096;

/// A file in memory alone: its path is good as long as this process lives, and nothing is left.
fn file(text: &str) -> PathBuf {
    let fd = rustix::fs::memfd_create("fuzz", rustix::fs::MemfdFlags::empty()).expect("memory");
    let mut file = File::from(fd);
    file.write_all(text.as_bytes()).expect("memory");
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let _ = file.into_raw_fd();
    path
}
