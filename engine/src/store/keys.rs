//! The key of a whole file.

use aws_lc_rs::rand;

use crate::contract::{Failure, Task};

/// What SQLCipher is given, in its own words: a raw key, or a passphrase from which it derives one.
#[derive(Clone, Copy)]
pub enum FileKey {
    Raw([u8; 32]),
    Passphrase([u8; 16]),
}

#[derive(Clone, Copy)]
enum Kind {
    Raw,
    Passphrase,
}

impl FileKey {
    /// A fresh key of the kind that the setting `key` names.
    pub fn of(task: &Task) -> Result<FileKey, Failure> {
        FileKey::fresh(task.one_of("key", &[("raw", Kind::Raw), ("passphrase", Kind::Passphrase)])?)
    }

    /// Another key of the same kind.
    pub fn another(&self) -> Result<FileKey, Failure> {
        FileKey::fresh(match self {
            FileKey::Raw(_) => Kind::Raw,
            FileKey::Passphrase(_) => Kind::Passphrase,
        })
    }

    fn fresh(kind: Kind) -> Result<FileKey, Failure> {
        let (mut raw, mut passphrase) = ([0; 32], [0; 16]);
        let drawn = match kind {
            Kind::Raw => rand::fill(&mut raw).map(|()| FileKey::Raw(raw)),
            Kind::Passphrase => rand::fill(&mut passphrase).map(|()| FileKey::Passphrase(passphrase)),
        };
        drawn.map_err(|_| Failure::Failed("no random bytes for a key".to_owned()))
    }

    /// The first words to a connection. What it would print on standard error of a wrong key is in its errors too.
    pub fn pragma(&self) -> String {
        let key = match self {
            FileKey::Raw(key) => format!("\"x'{}'\"", hex::encode(key)),
            FileKey::Passphrase(key) => format!("'{}'", hex::encode(key)),
        };
        format!("PRAGMA key = {key}; PRAGMA cipher_log_level = NONE;")
    }
}
