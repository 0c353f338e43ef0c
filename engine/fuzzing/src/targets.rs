//! The table of targets.

use super::give::Give;
use super::{answers, frames, requests, tasks};

pub struct Target {
    pub name: &'static str,
    /// Prepares the target, once.
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
    target("session-cookies", requests::session_cookie),
    target("opaque-tokens", requests::opaque_token),
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

/// Limit of an input: longer ones find nothing that shorter ones do not, and take longer.
#[cfg(test)]
pub const MOST_BYTES: usize = 4096;
