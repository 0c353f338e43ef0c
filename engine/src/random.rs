//! What looks random and depends on nothing but a seed: numbers, data to work on, and what each user draws.

/// SplitMix64: 8 bytes of state, and every seed is as good as another.
#[derive(Debug, Clone, Default)]
pub struct Sequence(u64);

impl Sequence {
    /// A sequence of this seed and these numbers, in this order; no two such lists share one.
    pub fn of(seed: u64, numbers: [u64; 2]) -> Sequence {
        let step = |seed: u64, number: u64| Sequence(Sequence(seed).next() ^ number).next();
        Sequence(numbers.into_iter().fold(seed, step))
    }

    /// 64 random bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A whole number under `below`, by the high bits: no division, and no bias that could be seen.
    pub fn under(&mut self, below: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(below)) >> 64) as u64
    }

    /// Above 0, and at most 1.
    pub fn fraction(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }
}

/// Bytes of a seed's sequence: any seed, zero included, gives bytes without a pattern that a library could profit from.
pub fn filled(bytes: usize, seed: u64) -> Vec<u8> {
    let (mut sequence, mut data) = (Sequence(seed), Vec::with_capacity(bytes + 8));
    while data.len() < bytes {
        data.extend_from_slice(&sequence.next().to_le_bytes());
    }
    data.truncate(bytes);
    data
}

/// A copy with its first bit turned, or one byte more where there is no bit to turn.
pub fn tampered(data: &[u8]) -> Vec<u8> {
    let mut other = data.to_vec();
    match other.first_mut() {
        Some(byte) => *byte ^= 1,
        None => other.push(0),
    }
    other
}

/// A copy with the lowest bit of its last byte turned. The first bytes of a signature are DER's in DSA and ECDSA, and
/// would be refused for their form alone.
pub fn tampered_at_end(data: &[u8]) -> Vec<u8> {
    let mut other = data.to_vec();
    if let Some(byte) = other.last_mut() {
        *byte ^= 1;
    }
    other
}

/// What a user draws: which kind of client, which path, which unique query.
///
/// Two sequences a user, one advanced by its connections and one by its requests: what a user asks depends
/// on how many it asked before, and neither on time nor on how often its connection had to be made again.
#[derive(Debug, Clone, Default)]
pub struct UserRandom {
    connections: Sequence,
    requests: Sequence,
}

impl UserRandom {
    /// The sequence of one user in one phase. Each chunk draws its own, however many requests there was time
    /// for before it.
    pub fn new(seed: u64, user: u32, phase: u64) -> UserRandom {
        let mut mixer = Sequence::of(seed, [u64::from(user), phase]);
        UserRandom { connections: Sequence(mixer.next()), requests: Sequence(mixer.next()) }
    }

    /// The kind of the next connection; `shares` are weights, and their sum is above 0.
    pub fn connector(&mut self, shares: &[u32]) -> u16 {
        if shares.len() == 1 {
            return 0;
        }
        let mut left = self.connections.under(shares.iter().map(|share| u64::from(*share)).sum());
        for (kind, share) in shares.iter().enumerate() {
            match left.checked_sub(u64::from(*share)) {
                None => return kind as u16,
                Some(rest) => left = rest,
            }
        }
        0
    }

    /// The next request: which of so many paths, and a number that no other request has.
    pub fn request(&mut self, paths: usize) -> (u16, u64) {
        let path = self.requests.under(paths as u64) as u16;
        (path, self.requests.next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(seed: u64, user: u32) -> Vec<(u16, u16, u64)> {
        let mut random = UserRandom::new(seed, user, 0);
        (0..100)
            .map(|_| {
                let connector = random.connector(&[3, 1]);
                let (path, unique) = random.request(5);
                (connector, path, unique)
            })
            .collect()
    }

    /// The same seed and user draw the same; another of either does not.
    #[test]
    fn a_user_random_the_same_again() {
        assert_eq!(drawn(7, 3), drawn(7, 3));
        assert_ne!(drawn(7, 3), drawn(7, 4));
        assert_ne!(drawn(7, 3), drawn(8, 3));
    }

    /// A connection made again does not change what is asked after it.
    #[test]
    fn requests_do_not_depend_on_connections() {
        let (mut once, mut often) = (UserRandom::new(7, 0, 1), UserRandom::new(7, 0, 1));
        for _ in 0..50 {
            often.connector(&[1, 1]);
            often.connector(&[1, 1]);
            assert_eq!(once.request(9), often.request(9));
        }
    }

    /// Shares are kept to, and a share of 0 is never drawn.
    #[test]
    fn kinds_come_by_their_shares() {
        let mut random = UserRandom::new(1, 1, 1);
        let mut counts = [0_u32; 3];
        for _ in 0..10_000 {
            counts[usize::from(random.connector(&[30, 0, 70]))] += 1;
        }
        assert_eq!(0, counts[1]);
        assert!((2_800..3_200).contains(&counts[0]), "{counts:?}");
    }

    /// Unique queries are unique, for all users and chunks.
    #[test]
    fn no_two_requests_share_a_query() {
        let mut seen = std::collections::HashSet::new();
        for (user, phase) in (0..50).flat_map(|user| [0, 1, 2, 256, 1 << 32].map(|phase| (user, phase))) {
            let mut random = UserRandom::new(7, user, phase);
            for _ in 0..100 {
                assert!(seen.insert(random.request(5).1), "user {user}, phase {phase}");
            }
        }
    }
}
