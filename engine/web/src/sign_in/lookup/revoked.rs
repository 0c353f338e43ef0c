//! A credential that another program revokes in the server's store, and restores.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::held::hash;

/// Entry of a credential in a server's store, which another program makes unfindable to revoke it.
pub enum Entry {
    Account(String),
    Held([u8; 32]),
}

impl Entry {
    pub fn account(name: &str) -> Entry {
        Entry::Account(name.to_owned())
    }

    pub fn held(text: &[u8]) -> Entry {
        Entry::Held(hash(text))
    }

    pub fn revoke(&self, store: &Path) -> Result<(), String> {
        self.change(store, false)
    }

    /// Restores the entry.
    pub fn restore(&self, store: &Path) -> Result<(), String> {
        self.change(store, true)
    }

    fn change(&self, store: &Path, back: bool) -> Result<(), String> {
        let changed = Connection::open_with_flags(store, OpenFlags::SQLITE_OPEN_READ_WRITE).and_then(|open| {
            open.busy_timeout(Duration::from_secs(1))?;
            match self {
                Entry::Account(name) => open.execute(
                    "UPDATE accounts SET name = iif(?2, ?1, 'revoked ' || ?1) WHERE name = iif(?2, 'revoked ' || ?1, ?1)",
                    (name, back),
                ),
                Entry::Held(hash) => {
                    open.execute("UPDATE held SET expires_s = -expires_s WHERE hash = ?1", (hash,))
                }
            }
        });
        match changed {
            Ok(1) => Ok(()),
            Ok(_) => Err(format!("{} has no such credential", store.display())),
            Err(error) => Err(format!("{}: {error}", store.display())),
        }
    }
}
