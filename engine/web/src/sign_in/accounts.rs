//! Accounts that sign in: names and passwords, from a file.

use std::path::PathBuf;

use serde::Deserialize;

use crate::failure::Failure;

/// The field `load.exchange.accounts`.
#[derive(Deserialize, Debug, Clone)]
#[serde(deny_unknown_fields)]
pub struct AccountsSpec {
    /// File with a line `name<TAB>password<TAB>groups` for each account.
    pub file: PathBuf,
    /// First line that is used, from 0.
    #[serde(default)]
    pub first: usize,
    pub count: usize,
}

/// Limit of a user's name.
pub const LONGEST_NAME: usize = 128;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    pub name: String,
    pub password: String,
}

/// Accounts, at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accounts(Vec<Account>);

/// Returns true if a user may have this name: it must fit in a header and in a form without encoding.
pub fn is_name(name: &[u8]) -> bool {
    (1..=LONGEST_NAME).contains(&name.len())
        && name.iter().all(|byte| byte.is_ascii_graphic() && !b":\"\\".contains(byte))
}

impl Accounts {
    pub fn read(spec: &AccountsSpec) -> Result<Accounts, Failure> {
        let place = format!("the accounts in {}", spec.file.display());
        let refuse = |why: String| Failure::Failed(format!("{place}: {why}"));
        let text = std::fs::read_to_string(&spec.file).map_err(|error| refuse(error.to_string()))?;
        let accounts = parse(&text, spec.first, spec.count).map_err(refuse)?;
        Ok(Accounts(accounts))
    }

    /// Returns the place of the account for a drawn number.
    #[inline]
    pub fn drawn(&self, number: u64) -> usize {
        ((u128::from(number) * self.0.len() as u128) >> 64) as usize
    }

    pub fn iter(&self) -> impl Iterator<Item = &Account> {
        self.0.iter()
    }

    pub fn with_wrong_passwords(mut self) -> Accounts {
        // The wrong password has the same length and differs even if it is truncated.
        for Account { password, .. } in &mut self.0 {
            let first = if password.starts_with('x') { "y" } else { "x" };
            password.replace_range(..password.chars().next().map_or(0, char::len_utf8), first);
        }
        self
    }

    pub fn of_unknown_users(mut self) -> Accounts {
        for Account { name, .. } in &mut self.0 {
            name.push('x');
        }
        self
    }
}

impl std::ops::Index<usize> for Accounts {
    type Output = Account;

    fn index(&self, place: usize) -> &Account {
        &self.0[place]
    }
}

fn parse(text: &str, first: usize, count: usize) -> Result<Vec<Account>, String> {
    let accounts: Vec<Account> = text
        .lines()
        .enumerate()
        .skip(first)
        .take(count)
        .map(|(number, line)| {
            let mut fields = line.split('\t');
            match (fields.next(), fields.next()) {
                (Some(name), Some(password)) if is_name(name.as_bytes()) && !password.is_empty() => {
                    Ok(Account { name: name.to_owned(), password: password.to_owned() })
                }
                // The message must not contain the line, which may hold a password.
                _ => Err(format!("line {} must be a name, a tab and a password", number + 1)),
            }
        })
        .collect::<Result<_, _>>()?;
    match accounts.len() {
        0 => Err("at least one account must be requested and be in the file".to_owned()),
        found if found < count => {
            Err(format!("{count} from line {} on were requested; the file has {found}", first + 1))
        }
        _ => Ok(accounts),
    }
}

#[cfg(test)]
impl Accounts {
    /// Makes accounts of these names, with a password for each.
    pub fn of(names: impl Iterator<Item = String>) -> Accounts {
        Accounts(names.map(|name| Account { password: format!("of {name}"), name }).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "u00000\tsecret\t100\nu00001\tother\t0\nu00002\tthird\n";

    #[test]
    fn accounts_are_read_by_line() {
        let read = parse(TEXT, 1, 2).expect("two accounts");
        let names: Vec<(&str, &str)> =
            read.iter().map(|account| (account.name.as_str(), account.password.as_str())).collect();
        assert_eq!(vec![("u00001", "other"), ("u00002", "third")], names);
    }

    #[test]
    fn a_file_that_is_none_is_refused_without_its_passwords() {
        for (text, first, count, expected) in [
            (TEXT, 0, 4, "4 from line 1 on were requested; the file has 3"),
            (TEXT, 3, 1, "at least one account must be"),
            (TEXT, 0, 0, "at least one account must be requested"),
            ("u1 secret\n", 0, 1, "line 1 must be"),
            ("u1\tsecret\nu:2\tsecret\n", 0, 2, "line 2 must be"),
            ("u1\t\n", 0, 1, "line 1 must be"),
        ] {
            let refusal = parse(text, first, count).expect_err(text);
            assert!(refusal.contains(expected) && !refusal.contains("secret"), "{refusal}");
        }
    }

    /// Accounts to refuse differ from the right ones.
    #[test]
    fn a_wrong_account_is_another() {
        let right = Accounts(parse("x\txé\nu1\té\n", 0, 2).expect("two accounts"));
        let (passwords, users) = (right.clone().with_wrong_passwords(), right.clone().of_unknown_users());
        for place in 0..2 {
            assert_eq!(right[place].name, passwords[place].name);
            assert_ne!(right[place].password, passwords[place].password);
            assert_eq!(right[place].password, users[place].password);
            assert_ne!(right[place].name, users[place].name);
        }
    }

    /// Each account is drawn, and no place beyond them.
    #[test]
    fn every_account_is_drawn() {
        let accounts = Accounts(parse(TEXT, 0, 3).expect("three accounts"));
        assert_eq!([0, 1, 2], [0, u64::MAX / 2, u64::MAX].map(|number| accounts.drawn(number)));
    }
}
