//! Verification of credentials: each time, or once, after which the server remembers them for a while.

use std::time::Duration;

use aws_lc_rs::{hmac, rand};
use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use serde::Deserialize;

use crate::failure::Failure;
use crate::{calls, clock};

/// Verifier of credentials.
pub trait Verifier {
    /// Returns the identity of a valid credential.
    fn identity(&mut self, credential: &[u8]) -> Result<Option<Identity>, String>;

    /// Returns true if the server can end a credential before it expires.
    fn ends(&self) -> bool {
        false
    }

    /// Ends a credential.
    fn end(&mut self, _credential: &[u8]) -> Result<(), String> {
        Ok(())
    }

    /// Returns the hits and misses of its cache since the last call; None without a cache.
    fn found(&mut self) -> Option<Found> {
        None
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub name: String,
    /// Second since 1970 from which the credential is invalid, if it contains one.
    pub expires_s: Option<u64>,
}

/// Path of a server's count of hits and misses.
pub const FOUND_PATH: &str = "/remembered";

/// Number of credentials that were remembered, and of those that were not.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    pub hits: u64,
    pub misses: u64,
}

impl Found {
    /// Formats the counts for the server's answer and the client's expectation.
    pub fn words(self) -> String {
        format!("{} hits, {} misses\n", self.hits, self.misses)
    }
}

/// The field `cache` of a server.
#[derive(Deserialize, Debug, Clone, Copy)]
#[serde(deny_unknown_fields)]
pub struct CacheSpec {
    time_to_live_s: u64,
    /// Limit of remembered credentials.
    entries: u64,
}

/// The field `load.exchange.cache`: the client's knowledge of the server's cache.
#[derive(Deserialize, Debug, Clone, Copy)]
#[serde(deny_unknown_fields)]
pub struct KnownCache {
    /// Percentage of visits with a credential that the server remembers.
    pub hit_percent: u64,
    pub time_to_live_s: u64,
    /// Size of the server's cache.
    pub entries: u64,
}

/// Returns this verifier, or one that remembers its results.
pub fn by(verifier: impl Verifier + 'static, cache: Option<CacheSpec>) -> Result<Box<dyn Verifier>, Failure> {
    Ok(match cache {
        None => Box::new(verifier),
        Some(spec) => Box::new(Remembering::new(verifier, spec)?),
    })
}

/// HMAC of a credential under a key of this process, so that a remembered entry reveals no credential.
type Kept = [u8; 32];

struct Remembering<V> {
    verifier: V,
    key: hmac::Key,
    known: Cache<Kept, Identity>,
    found: Found,
}

impl<V> Remembering<V> {
    /// Makes a cache in its long-term state: full, with credentials that no client uses any more.
    fn new(verifier: V, CacheSpec { time_to_live_s, entries }: CacheSpec) -> Result<Self, Failure> {
        let no_random = |_| Failure::Failed("the system gives no random bytes".to_owned());
        let mut key: Kept = [0; 32];
        rand::fill(&mut key).map_err(no_random)?;
        let known = Cache::builder()
            .max_capacity(entries)
            .time_to_live(Duration::from_secs(time_to_live_s))
            // The least recently used entry is evicted. The alternative counts uses, may not admit a new
            // entry, and makes the remembered ones unpredictable.
            .eviction_policy(EvictionPolicy::lru())
            .build();
        let mut others = vec![[0; 32]; entries as usize];
        rand::fill(others.as_flattened_mut()).map_err(no_random)?;
        for other in others {
            known.insert(other, Identity { name: "another".to_owned(), expires_s: None });
        }
        Ok(Remembering {
            verifier,
            key: hmac::Key::new(hmac::HMAC_SHA256, &key),
            known,
            found: Found::default(),
        })
    }

    fn kept(&self, credential: &[u8]) -> Kept {
        calls::tally("HMAC");
        let mut kept = [0; 32];
        kept.copy_from_slice(hmac::sign(&self.key, credential).as_ref());
        kept
    }
}

impl<V: Verifier> Verifier for Remembering<V> {
    fn identity(&mut self, credential: &[u8]) -> Result<Option<Identity>, String> {
        let kept = self.kept(credential);
        let is_good = |known: &Identity| known.expires_s.is_none_or(|at_s| clock::unix_s() < at_s);
        if let Some(known) = self.known.get(&kept).filter(is_good) {
            self.found.hits += 1;
            return Ok(Some(known));
        }
        self.found.misses += 1;
        let identity = self.verifier.identity(credential)?;
        if let Some(identity) = &identity {
            self.known.insert(kept, identity.clone());
        }
        Ok(identity)
    }

    fn ends(&self) -> bool {
        self.verifier.ends()
    }

    fn end(&mut self, credential: &[u8]) -> Result<(), String> {
        self.known.invalidate(&self.kept(credential));
        self.verifier.end(credential)
    }

    fn found(&mut self) -> Option<Found> {
        Some(std::mem::take(&mut self.found))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// A verifier by a table, which counts its calls.
    #[derive(Default)]
    struct Table {
        users: HashMap<Vec<u8>, Identity>,
        asked: u64,
    }

    impl Verifier for Table {
        fn identity(&mut self, credential: &[u8]) -> Result<Option<Identity>, String> {
            self.asked += 1;
            Ok(self.users.get(credential).cloned())
        }

        fn end(&mut self, credential: &[u8]) -> Result<(), String> {
            self.users.remove(credential);
            Ok(())
        }
    }

    fn remembering(time_to_live_s: u64, entries: u64) -> Remembering<Table> {
        Remembering::new(Table::default(), CacheSpec { time_to_live_s, entries }).expect("a cache")
    }

    fn put(cache: &mut Remembering<Table>, credential: &[u8], expires_s: Option<u64>) {
        let name = String::from_utf8_lossy(credential).into_owned();
        cache.verifier.users.insert(credential.to_vec(), Identity { name, expires_s });
    }

    fn is_good(cache: &mut Remembering<Table>, credential: &[u8]) -> bool {
        cache.identity(credential).expect("an answer").is_some()
    }

    /// A valid credential is verified once, an invalid one each time, and an ended one is refused.
    #[test]
    fn a_credential_is_verified_once() {
        let mut cache = remembering(60, 100);
        put(&mut cache, b"u1", None);
        assert!([b"u1"; 3].iter().all(|one| is_good(&mut cache, *one)));
        assert_eq!((1, Some(Found { hits: 2, misses: 1 })), (cache.verifier.asked, cache.found()));
        assert!([b"u2"; 2].iter().all(|one| !is_good(&mut cache, *one)));
        assert_eq!((3, Some(Found { hits: 0, misses: 2 })), (cache.verifier.asked, cache.found()));
        cache.end(b"u1").expect("ended");
        assert!(!is_good(&mut cache, b"u1"));
    }

    /// A credential that was revoked elsewhere is accepted until its time is over, and use does not extend
    /// that time. A remembered credential still expires.
    #[test]
    fn a_credential_is_remembered_for_its_time() {
        let mut cache = remembering(1, 100);
        put(&mut cache, b"u1", None);
        put(&mut cache, b"u2", Some(clock::unix_s()));
        assert!(is_good(&mut cache, b"u1") && is_good(&mut cache, b"u2"));
        cache.verifier.users.clear();
        assert!(is_good(&mut cache, b"u1") && !is_good(&mut cache, b"u2"));
        std::thread::sleep(Duration::from_millis(500));
        assert!(is_good(&mut cache, b"u1"));
        std::thread::sleep(Duration::from_millis(600));
        assert!(!is_good(&mut cache, b"u1"));
    }

    /// The cache hardly exceeds its size: entries without use are verified again, and one that is used in
    /// between is not.
    #[test]
    fn the_least_recently_shown_is_forgotten() {
        let mut cache = remembering(60, 1_000);
        let name = |number: u64| format!("u{number}").into_bytes();
        (0..4_000).for_each(|number| put(&mut cache, &name(number), None));
        for round in 0..2 {
            for number in 1..4_000 {
                assert!(
                    is_good(&mut cache, &name(number))
                        && (number % 100 != 0 || is_good(&mut cache, &name(0)))
                );
            }
            let expected = Found { hits: 38 + round, misses: 4_000 - round };
            assert_eq!(Some(expected), cache.found(), "{round}");
        }
        cache.known.run_pending_tasks();
        assert!(cache.known.entry_count() <= 1_000);
    }
}
