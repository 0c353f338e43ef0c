//! Encrypted storage: who performs which choice. `tollbar-engine store` does it, on a database.

use crate::contract::Task;
use crate::failure::Failure;
use crate::provider::Prepared;

/// A choice, and what says who performs it.
type Offered = (&'static str, fn(&Task) -> Prepared);

/// Done by the application, on any database; and what is compared with it.
pub const IN_APPLICATION: &[Offered] = &[
    ("plaintext", prepare),
    ("aes-256-gcm", prepare),
    ("blind-index", prepare),
    ("envelope-aes", prepare),
    ("envelope-rsa", prepare),
    ("rsa-oaep", prepare),
];

/// The same, and what a server does.
pub const BESIDE_A_SERVER: &[Offered] = &[
    ("plaintext", prepare),
    ("aes-256-gcm", prepare),
    ("blind-index", prepare),
    ("envelope-aes", prepare),
    ("envelope-rsa", prepare),
    ("rsa-oaep", prepare),
    ("pgp-pub-encrypt", prepare),
    ("pgp-sym-encrypt", prepare),
    ("encrypt-iv", prepare),
    ("encrypt-iv-hmac", prepare),
    ("aes-encrypt", prepare),
    ("table-encryption", prepare),
];

/// The same as in an application, and the whole file.
pub const IN_SQLCIPHER: &[Offered] = &[
    ("plaintext", prepare),
    ("sqlcipher", prepare),
    ("aes-256-gcm", prepare),
    ("blind-index", prepare),
    ("envelope-aes", prepare),
    ("envelope-rsa", prepare),
    ("rsa-oaep", prepare),
];

fn prepare(_: &Task) -> Prepared {
    Err(Failure::Unsupported("storage is performed by `tollbar-engine store`".to_owned()))
}
