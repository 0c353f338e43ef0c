//! Pseudo-random numbers, data and user choices that depend only on a seed.

/// SplitMix64: 8 bytes of state, and every seed is equally good.
#[derive(Debug, Clone, Default)]
pub struct Sequence(u64);

impl Sequence {
    /// Makes the sequence of this seed and these numbers, in this order; no two such lists share one.
    pub fn of(seed: u64, numbers: [u64; 2]) -> Sequence {
        let step = |seed: u64, number: u64| Sequence(Sequence(seed).draw() ^ number).draw();
        Sequence(numbers.into_iter().fold(seed, step))
    }

    /// Returns 64 random bits.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a whole number under `below`, by the high bits: no division, and no visible bias.
    pub fn under(&mut self, below: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(below)) >> 64) as u64
    }

    /// Returns a fraction above 0, and at most 1.
    pub fn fraction(&mut self) -> f64 {
        ((self.draw() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }
}

/// Returns bytes of a seed's sequence. Every seed, also zero, gives bytes without a pattern that a library
/// could profit from.
pub fn filled(bytes: usize, seed: u64) -> Vec<u8> {
    let (mut sequence, mut data) = (Sequence(seed), Vec::with_capacity(bytes + 8));
    while data.len() < bytes {
        data.extend_from_slice(&sequence.draw().to_le_bytes());
    }
    data.truncate(bytes);
    data
}

/// Returns a copy with its first bit flipped, or with one byte more if it was empty.
pub fn tampered(data: &[u8]) -> Vec<u8> {
    let mut other = data.to_vec();
    match other.first_mut() {
        Some(byte) => *byte ^= 1,
        None => other.push(0),
    }
    other
}

/// Returns a copy with the lowest bit of its last byte flipped. The first bytes of a DSA or ECDSA signature
/// are DER, and would be refused for their form alone.
pub fn tampered_at_end(data: &[u8]) -> Vec<u8> {
    let mut other = data.to_vec();
    if let Some(byte) = other.last_mut() {
        *byte ^= 1;
    }
    other
}

/// Random draws of a user: kind of client, path, unique query.
///
/// Each user has two sequences, one advanced by its connections and one by its requests. A user's requests
/// depend only on the number of requests before, not on time or reconnections.
#[derive(Debug, Clone, Default)]
pub struct UserRandom {
    connections: Sequence,
    requests: Sequence,
}

impl UserRandom {
    /// Makes the sequences of one user in one phase. Each chunk has its own, however many requests the
    /// previous one had time for.
    pub fn new(seed: u64, user: u32, phase: u64) -> UserRandom {
        let mut mixer = Sequence::of(seed, [u64::from(user), phase]);
        UserRandom { connections: Sequence(mixer.draw()), requests: Sequence(mixer.draw()) }
    }

    /// Draws the kind of the next connection; `shares` are weights, and their sum is above 0.
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

    /// Draws the next request: one of `paths` paths, and a number that no other request has.
    pub fn request(&mut self, paths: usize) -> (u16, u64) {
        let path = self.requests.under(paths as u64) as u16;
        (path, self.requests.draw())
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

    /// Equal seed and user draw equal numbers; a change of either changes them.
    #[test]
    fn a_user_random_the_same_again() {
        assert_eq!(drawn(7, 3), drawn(7, 3));
        assert_ne!(drawn(7, 3), drawn(7, 4));
        assert_ne!(drawn(7, 3), drawn(8, 3));
    }

    /// A reconnection does not change the requests after it.
    #[test]
    fn requests_do_not_depend_on_connections() {
        let (mut once, mut often) = (UserRandom::new(7, 0, 1), UserRandom::new(7, 0, 1));
        for _ in 0..50 {
            often.connector(&[1, 1]);
            often.connector(&[1, 1]);
            assert_eq!(once.request(9), often.request(9));
        }
    }

    /// The shares are kept, and a share of 0 is never drawn.
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
