//! Keys that the server gets with each statement. They are made here, and exist nowhere else after the trial.

use aws_lc_rs::rand;
use postgres_types::ToSql;

use super::super::openpgp::KeyPair;
use super::sql::Form;
use crate::failure::Failure;

const KEY_BYTES: usize = 32;

type Key = Option<Box<dyn ToSql + Sync>>;
type Parameters<'a> = Vec<&'a (dyn ToSql + Sync)>;

/// Keys of a form; those that it does not use are None.
pub struct Keys {
    seal: Key,
    open: Key,
    /// Key of the code by which a number is found.
    code: Key,
}

impl Keys {
    pub fn fresh(form: Form) -> Result<Keys, Failure> {
        let bytes = |is_used: bool| -> Result<Key, Failure> {
            Ok(if is_used { Some(Box::new(random()?.to_vec())) } else { None })
        };
        Ok(match form {
            Form::Plain | Form::Application(_) => Keys { seal: None, open: None, code: None },
            Form::PgpPublic { bits } => {
                let pair = KeyPair::generate(bits)?;
                Keys { seal: Some(Box::new(pair.public)), open: Some(Box::new(pair.private)), code: None }
            }
            Form::PgpSymmetric(_) => {
                let password = hex::encode(random()?);
                Keys { seal: Some(Box::new(password.clone())), open: Some(Box::new(password)), code: None }
            }
            Form::Iv { indexed } => {
                let key = random()?.to_vec();
                Keys { seal: Some(Box::new(key.clone())), open: Some(Box::new(key)), code: bytes(indexed)? }
            }
        })
    }

    /// Returns the keys to encrypt a row.
    pub fn to_insert(&self) -> Parameters<'_> {
        [&self.seal, &self.code].into_iter().filter_map(Option::as_deref).collect()
    }

    /// Returns the keys to decrypt a row.
    pub fn to_read(&self) -> Parameters<'_> {
        self.open.as_deref().into_iter().collect()
    }

    /// Returns the keys to decrypt a row and to find it.
    pub fn to_find(&self) -> Parameters<'_> {
        [&self.open, &self.code].into_iter().filter_map(Option::as_deref).collect()
    }
}

fn random() -> Result<[u8; KEY_BYTES], Failure> {
    let mut key = [0; KEY_BYTES];
    rand::fill(&mut key).map_err(|_| Failure::Failed("AWS-LC failed at drawing random bytes".to_owned()))?;
    Ok(key)
}
