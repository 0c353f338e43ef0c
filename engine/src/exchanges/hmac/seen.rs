//! Which requests came before.

use std::collections::HashSet;

use aws_lc_rs::rand;

use super::base::{AHEAD_S, FRESH_S};
use crate::contract::Failure;

/// What a server has answered before it is measured, in requests a second: it remembers those of the time for which a
/// signature is taken, and a memory of none would be quicker to look into than any that is in use.
const BEFORE_HZ: u64 = 100;

/// The requests that came, for as long as their signatures would be taken again. A signature stands for its user and
/// nonce: of a nonce that came before there is no other, but at another time, by the user itself.
#[derive(Default)]
pub struct Seen {
    /// Those of now, and of the time before.
    now: HashSet<[u8; 16]>,
    before: HashSet<[u8; 16]>,
    turned_s: u64,
}

impl Seen {
    /// As it is after two such times.
    pub fn filled(now_s: u64) -> Result<Seen, Failure> {
        let some = || -> Result<HashSet<[u8; 16]>, Failure> {
            let mut bytes = vec![[0; 16]; (BEFORE_HZ * (FRESH_S + AHEAD_S)) as usize];
            let filled = rand::fill(bytes.as_flattened_mut());
            filled.map_err(|_| Failure::Failed("no random bytes are to be had".to_owned()))?;
            Ok(bytes.into_iter().collect())
        };
        Ok(Seen { now: some()?, before: some()?, turned_s: now_s })
    }

    /// Takes note of a signature that was verified, and says whether it came for the first time.
    pub fn is_first(&mut self, signature: &[u8], now_s: u64) -> bool {
        if now_s.saturating_sub(self.turned_s) > FRESH_S + AHEAD_S {
            self.before = std::mem::take(&mut self.now);
            self.turned_s = now_s;
        }
        // Half of it is as good as all.
        let Some(half) = signature.first_chunk() else { return false };
        !self.before.contains(half) && self.now.insert(*half)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a server has seen before it is measured is what it would have seen at that rate, and is as easily taken for new.
    #[test]
    fn a_server_remembers_what_it_would_have_been_asked() {
        let mut seen = Seen::filled(1_618_884_473).expect("random bytes");
        assert_eq!([30_500; 2], [seen.now.len(), seen.before.len()]);
        assert!(seen.is_first(&[1; 32], 1_618_884_473));
        assert!(!seen.is_first(&[1; 32], 1_618_884_473 + FRESH_S));
        let old = *seen.before.iter().next().expect("one");
        assert!(!seen.is_first(&[old, old].concat(), 1_618_884_473));
    }

    /// A signature is remembered for as long as it would be taken, and not for ever.
    #[test]
    fn a_signature_comes_once() {
        let mut seen = Seen::default();
        let start_s = 1_618_884_473;
        for (at_s, expected) in [(0, true), (0, false), (FRESH_S + AHEAD_S, false), (3 * FRESH_S, false)] {
            assert_eq!(expected, seen.is_first(&[1; 32], start_s + at_s), "{at_s}");
        }
        assert!(seen.is_first(&[2; 32], start_s + 5 * FRESH_S));
        assert!(seen.is_first(&[1; 32], start_s + 5 * FRESH_S));
        assert!(!seen.is_first(&[1; 3], start_s));
    }
}
