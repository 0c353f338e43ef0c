//! Sources of drawn values: rows of a file or a list, and ranges of numbers.

use serde::Deserialize;

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct SourceSpec {
    #[serde(default)]
    rows: Vec<Vec<String>>,
    /// First and last number of a range.
    range: Option<(u64, u64)>,
    /// True if its values come from a file or the environment.
    #[serde(default)]
    is_secret: bool,
    /// True if a row belongs to a user, for example an account.
    #[serde(default)]
    is_of_user: bool,
}

/// Rows of which one is drawn, or a range of numbers.
pub struct Source {
    rows: Vec<Vec<String>>,
    range: Option<(u64, u64)>,
    pub is_secret: bool,
    pub is_of_user: bool,
}

impl Source {
    /// Returns true if every row has the column. A range has only the first.
    pub fn has_column(&self, column: usize) -> bool {
        match self.range {
            Some(_) => column == 0,
            None => self.rows.iter().all(|row| row.len() > column),
        }
    }

    pub fn count(&self) -> u64 {
        self.range.map_or(self.rows.len() as u64, |(first, last)| last - first + 1)
    }

    pub fn value(&self, row: u64, column: usize) -> String {
        match self.range {
            Some((first, _)) => (first + row).to_string(),
            None => self.rows[row as usize][column].clone(),
        }
    }

    pub fn row(&self, row: u64) -> Vec<String> {
        self.rows.get(row as usize).cloned().unwrap_or_default()
    }
}

impl SourceSpec {
    pub fn checked(self) -> Result<Source, String> {
        let SourceSpec { rows, range, is_secret, is_of_user } = self;
        match range {
            Some((first, last)) if first > last || last - first == u64::MAX || !rows.is_empty() => {
                Err(format!("`load.exchange.sources` has a range from {first} to {last}"))
            }
            None if rows.is_empty() => Err("`load.exchange.sources` has a source without rows".to_owned()),
            _ => Ok(Source { rows, range, is_secret, is_of_user }),
        }
    }
}
