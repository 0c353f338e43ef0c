//! A database file that is encrypted as a whole: its key, and the proof that changed and moved pages are
//! refused.

use std::path::Path;

use aws_lc_rs::rand;

use crate::contract::{Proof, Task};
use crate::failure::Failure;

/// Key for SQLCipher: a raw key, or a passphrase from which it derives one.
#[derive(Clone, Copy)]
pub enum FileKey {
    Raw([u8; 32]),
    Passphrase([u8; 16]),
}

impl FileKey {
    /// Makes a fresh key of the kind that the setting `key` names.
    pub fn of(task: &Task) -> Result<FileKey, Failure> {
        task.one_of("key", &[("raw", FileKey::Raw([0; 32])), ("passphrase", FileKey::Passphrase([0; 16]))])?
            .another()
    }

    /// Makes another key of the same kind.
    pub fn another(mut self) -> Result<FileKey, Failure> {
        let drawn = match &mut self {
            FileKey::Raw(key) => rand::fill(key),
            FileKey::Passphrase(key) => rand::fill(key),
        };
        drawn.map(|()| self).map_err(|_| Failure::Failed("no random bytes for a key".to_owned()))
    }

    /// Returns the first statements of a connection. Its log on standard error is off, because a wrong key is
    /// in its errors too.
    pub fn pragma(&self) -> String {
        let key = match self {
            FileKey::Raw(key) => format!("\"x'{}'\"", hex::encode(key)),
            FileKey::Passphrase(key) => format!("'{}'", hex::encode(key)),
        };
        format!("PRAGMA key = {key}; PRAGMA cipher_log_level = NONE;")
    }
}

const PAGE_BYTES: usize = 4096;
/// Id of the row that is read from a spoiled file. Every path to it leads through pages after the first.
const ROW: i64 = 3;

/// Spoils a closed database's file in each way, has a row read from it, and restores the file.
pub fn prove(
    path: &Path,
    proof: &mut Proof,
    mut read: impl FnMut(i64) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let about = |error: std::io::Error| Failure::Failed(format!("{}: {error}", path.display()));
    let whole = std::fs::read(path).map_err(about)?;
    let pages = whole.len() / PAGE_BYTES;
    if pages < 4 {
        return Err(Failure::Failed(format!("a database of {pages} pages is too small to move one")));
    }
    for (what, spoil) in
        [("a changed page", change as fn(&mut [u8])), ("a page in another one's place", turn)]
    {
        let mut spoiled = whole.clone();
        spoil(&mut spoiled[PAGE_BYTES..]);
        std::fs::write(path, &spoiled).map_err(about)?;
        let tried = read(ROW);
        std::fs::write(path, &whole).map_err(about)?;
        proof.refuse(what, tried.is_err())?;
    }
    proof.leave("an older page in its own place", "a page is bound to its place, and not to a time");
    read(ROW).map_err(|failure| failure.about("not accepted any more, after what was refused: "))
}

/// Flips one bit of each page.
fn change(pages: &mut [u8]) {
    pages.chunks_mut(PAGE_BYTES).for_each(|page| page[PAGE_BYTES / 2] ^= 1);
}

/// Moves each page to the place of the one before it, and the first to that of the last.
fn turn(pages: &mut [u8]) {
    pages.rotate_left(PAGE_BYTES);
}
