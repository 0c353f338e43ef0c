//! Stored hashes of passwords or keys by user name, in a file that is read at start or in SQL.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use rusqlite::OptionalExtension;
use serde::Deserialize;

use super::database::{Database, Sql};
use crate::failure::Failure;
use crate::sign_in::accounts::is_name;
use crate::sign_in::password;

/// The field `store`.
#[derive(Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum StoreSpec {
    /// A file with a line `name:stored` for each user.
    File(PathBuf),
    /// An SQLite database with a table `accounts (name text primary key, hash text) without rowid`.
    Sql(Sql),
}

pub struct Store {
    kept: Kept,
    /// Stored hash of some user, against which the password of an unknown user is checked.
    any: String,
}

enum Kept {
    File(HashMap<String, String>),
    Sql(Database),
}

impl Store {
    pub fn open(spec: &StoreSpec) -> Result<Store, Failure> {
        let about =
            |path: &Path, why: String| Failure::Failed(format!("the accounts in {}: {why}", path.display()));
        match spec {
            StoreSpec::File(path) => {
                let stored = std::fs::read_to_string(path)
                    .map_err(|error| error.to_string())
                    .and_then(|text| parse(&text))
                    .map_err(|why| about(path, why))?;
                let any = stored.values().next().cloned().unwrap_or_default();
                Ok(Store { kept: Kept::File(stored), any })
            }
            StoreSpec::Sql(sql) => {
                let opened = Database::open(sql, FIRST_ACCOUNT, HASH_OF).and_then(|database| {
                    let first = "SELECT hash FROM accounts LIMIT 1";
                    let any = database.0.query_row(first, (), |row| row.get(0)).optional();
                    let any: Option<String> = any.map_err(|error| error.to_string())?;
                    Ok((Kept::Sql(database), any.ok_or("a database without accounts")?))
                });
                let (kept, any) = opened.map_err(|why| Failure::Failed(format!("the accounts in {why}")))?;
                Ok(Store { kept, any })
            }
        }
    }

    /// Returns the stored hash of a user, if there is such a user.
    fn find(&self, name: &str) -> Result<Option<Cow<'_, str>>, String> {
        match &self.kept {
            Kept::File(stored) => Ok(stored.get(name).map(|text| Cow::Borrowed(text.as_str()))),
            Kept::Sql(database) => Ok(database.row(HASH_OF, [name], |row| row.get(0))?.map(Cow::Owned)),
        }
    }

    /// Returns the stored hash of a user and true, or for an unknown name another user's hash and false.
    /// Credentials are then checked equally, because a shorter time would reveal to an attacker which users
    /// exist.
    pub fn find_any(&self, name: &str) -> Result<(Cow<'_, str>, bool), String> {
        Ok(self.find(name)?.map_or((Cow::Borrowed(self.any.as_str()), false), |stored| (stored, true)))
    }

    /// Returns true if this is the password of a user whose password hash is stored.
    pub fn is_password(&self, name: &str, given: &[u8]) -> Result<bool, String> {
        let (hash, is_user) = self.find_any(name)?;
        Ok(password::matches(&hash, given)? && is_user)
    }
}

const HASH_OF: &str = "SELECT hash FROM accounts WHERE name = ?1";
const FIRST_ACCOUNT: &str = "INSERT INTO accounts VALUES ('', ''); DELETE FROM accounts WHERE name = ''";

fn parse(text: &str) -> Result<HashMap<String, String>, String> {
    let mut stored = HashMap::new();
    for (number, line) in text.lines().enumerate() {
        match line.split_once(':') {
            Some((name, hash)) if is_name(name.as_bytes()) && !hash.is_empty() => {
                stored.insert(name.to_owned(), hash.to_owned());
            }
            _ => return Err(format!("line {} must be a name, a colon and the stored password", number + 1)),
        }
    }
    if stored.is_empty() { Err("the file has no account".to_owned()) } else { Ok(stored) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_accounts_has_names_and_what_is_stored() {
        let stored = parse("u1:a:b\nu2:c\n").expect("two accounts");
        assert_eq!(("a:b", "c", 2), (stored["u1"].as_str(), stored["u2"].as_str(), stored.len()));
        for (text, expected) in [
            ("u1\n", "line 1 must be a name, a colon and the stored password"),
            ("u1:a\n:b\n", "line 2 must be a name, a colon and the stored password"),
            ("u1:a\nu2:\n", "line 2 must be a name, a colon and the stored password"),
            ("u 1:a\n", "line 1 must be a name, a colon and the stored password"),
            ("", "the file has no account"),
        ] {
            assert_eq!(Err(expected.to_owned()), parse(text), "{text:?}");
        }
    }

    fn store(any: &str) -> Store {
        Store { kept: Kept::File([("u1".to_owned(), "right".to_owned())].into()), any: any.to_owned() }
    }

    #[test]
    fn a_name_of_no_user_has_what_is_stored_of_another() {
        let store = store("right");
        assert_eq!(Ok(("right".into(), true)), store.find_any("u1"));
        assert_eq!(Ok(("right".into(), false)), store.find_any("u2"));
    }

    /// The hash is computed for an unknown user too: an invalid stored hash is an error.
    #[test]
    fn a_password_of_no_user_is_hashed_all_the_same() {
        let hash = bcrypt::hash("secret", 4).expect("a hash");
        assert_eq!(Ok(false), store(&hash).is_password("u2", b"secret"));
        assert!(store("no hash at all").is_password("u2", b"secret").is_err());
    }
}
