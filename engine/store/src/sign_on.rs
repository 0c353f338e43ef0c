//! Signing on: a connection made, its user authenticated, one trivial statement answered, and the connection
//! ended.

use std::ops::Range;

use aws_lc_rs::rand;

use super::columns::Column;
use super::database::{Database, Promise};
use crate::contract::Proof;
use crate::failure::Failure;

/// User that signs on; PostgreSQL's `pg_hba.conf` and the client's certificate contain this name.
pub const USER: &str = "tollbar-client";
/// User in `pg_hba.conf` that no server has.
pub const UNKNOWN: &str = "tollbar-unknown";

/// A server with a user that signs on to it.
pub trait SignsOn {
    /// Performs one operation.
    fn sign_on(&mut self) -> Result<(), Failure>;

    /// Returns the code besides the engine; see `Database::parts`.
    fn parts(&mut self) -> Result<Vec<(String, String)>, Failure>;

    /// Proves the server; see `Database::prove`.
    fn prove(&mut self, proof: &mut Proof) -> Result<(), Failure>;
}

/// A database that is used for signing on only.
pub struct SignOn<S>(pub S);

impl<S: SignsOn> Database for SignOn<S> {
    fn create(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn fill(&mut self, _: Range<i64>) -> Result<(), Failure> {
        Ok(())
    }

    fn insert(&mut self, _: Range<i64>, _: u64) -> Result<(), Failure> {
        Ok(())
    }

    fn read(&mut self, ids: &[i64]) -> Result<(), Failure> {
        self.open(ids)
    }

    fn find(&mut self, ids: &[i64]) -> Result<(), Failure> {
        self.open(ids)
    }

    fn open(&mut self, ids: &[i64]) -> Result<(), Failure> {
        ids.iter().try_for_each(|_| self.0.sign_on())
    }

    fn put_off(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn size(&mut self) -> Result<u64, Failure> {
        Ok(0)
    }

    fn parts(&mut self) -> Result<Vec<(String, String)>, Failure> {
        self.0.parts()
    }

    fn promise(&self) -> Promise {
        Promise::none("nothing is stored")
    }

    fn encrypts_values(&self) -> bool {
        false
    }

    fn stored(&mut self, _: i64, _: Column) -> Result<Vec<u8>, Failure> {
        Ok(Vec::new())
    }

    fn put_stored(&mut self, _: i64, _: Column, _: &[u8]) -> Result<(), Failure> {
        Ok(())
    }

    fn read_with_wrong_key(&mut self, _: i64) -> Result<Result<(), Failure>, Failure> {
        Ok(Ok(()))
    }

    fn prove(&mut self, proof: &mut Proof) -> Result<(), Failure> {
        self.0.prove(proof)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

/// Records a refusal whose message must contain one of the expected reasons.
pub fn refused<T>(
    proof: &mut Proof,
    what: &str,
    because: &[&str],
    tried: Result<T, Failure>,
) -> Result<(), Failure> {
    let Err(failure) = tried else { return proof.refuse(what, false) };
    let words = failure.into_words();
    match because.iter().any(|one| words.contains(one)) {
        true => proof.refuse(what, true),
        false => Err(Failure::Failed(format!("{what}: refused for another reason: {words}"))),
    }
}

/// Returns a password of random bytes, too long to guess.
pub fn fresh_password() -> Result<String, Failure> {
    Ok(hex::encode(random::<16>()?))
}

pub fn random<const BYTES: usize>() -> Result<[u8; BYTES], Failure> {
    let mut bytes = [0; BYTES];
    rand::fill(&mut bytes).map_err(|_| Failure::Failed("the system has no randomness".to_owned()))?;
    Ok(bytes)
}
