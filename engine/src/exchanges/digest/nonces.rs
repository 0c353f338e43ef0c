//! The nonces that a server of Digest gave, and how far each was counted.

use aws_lc_rs::constant_time::verify_slices_are_equal;

/// The nonces that were issued. As many as fit are known; of clients that ask for more, the oldest are forgotten.
pub struct Nonces {
    issued: Vec<Nonce>,
    next: usize,
    lifetime_ns: u64,
}

struct Nonce {
    random: [u8; 12],
    issued_ns: u64,
    /// The highest count that it was used with.
    count: u32,
}

/// More than there are connections; two megabytes.
const MOST_NONCES: usize = 1 << 16;
/// The digits of a nonce: where it is in the table, and its random bytes.
const PLACE_DIGITS: usize = 8;

#[derive(Debug, PartialEq, Eq)]
pub enum Use {
    First,
    /// The count, or a higher one, was seen before.
    Again,
    /// None of ours, too old, or forgotten.
    Unknown,
}

impl Nonces {
    pub fn new(lifetime_ns: u64) -> Nonces {
        Nonces { issued: Vec::new(), next: 0, lifetime_ns }
    }

    pub fn issue(&mut self, now_ns: u64) -> Result<String, String> {
        let mut random = [0; 12];
        aws_lc_rs::rand::fill(&mut random).map_err(|_| "no random bytes are to be had".to_owned())?;
        let place = self.next;
        self.next = (place + 1) % MOST_NONCES;
        let nonce = Nonce { random, issued_ns: now_ns, count: 0 };
        match self.issued.get_mut(place) {
            Some(oldest) => *oldest = nonce,
            None => self.issued.push(nonce),
        }
        Ok(format!("{place:08x}{}", hex::encode(random)))
    }

    /// Takes a use of a nonce, whose count has to be above the ones before.
    pub fn take(&mut self, nonce: &[u8], count: u32, now_ns: u64) -> Use {
        let lifetime_ns = self.lifetime_ns;
        match self.find(nonce) {
            Some(nonce) if now_ns.saturating_sub(nonce.issued_ns) > lifetime_ns => Use::Unknown,
            Some(nonce) if count <= nonce.count => Use::Again,
            Some(nonce) => {
                nonce.count = count;
                Use::First
            }
            None => Use::Unknown,
        }
    }

    fn find(&mut self, nonce: &[u8]) -> Option<&mut Nonce> {
        let (place, random) = nonce.split_at_checked(PLACE_DIGITS)?;
        let place = usize::from_str_radix(std::str::from_utf8(place).ok()?, 16).ok()?;
        let random = hex::decode(random).ok()?;
        let issued = self.issued.get_mut(place)?;
        verify_slices_are_equal(&issued.random, &random).ok().map(|()| issued)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each count is taken once, in rising order, until the nonce is too old or forgotten.
    #[test]
    fn a_nonce_is_used_up() {
        let mut nonces = Nonces::new(100);
        let first = nonces.issue(1000).expect("a nonce");
        let take = |nonces: &mut Nonces, count, now_ns| nonces.take(first.as_bytes(), count, now_ns);
        assert_eq!(Use::First, take(&mut nonces, 1, 1000));
        assert_eq!(Use::Again, take(&mut nonces, 1, 1000));
        assert_eq!(Use::First, take(&mut nonces, 7, 1100));
        assert_eq!(Use::Again, take(&mut nonces, 3, 1100));
        assert_eq!(Use::Unknown, take(&mut nonces, 8, 1101));
        for _ in 0..MOST_NONCES {
            nonces.issue(1100).expect("a nonce");
        }
        assert_eq!(Use::Unknown, take(&mut nonces, 8, 1100));
        assert_eq!(MOST_NONCES, nonces.issued.len());
        for wrong in ["", "0", "00000000", "0000000\u{e9}", "+0000000aaaaaaaaaaaaaaaaaaaaaaaa", "ffffffff00"]
        {
            assert_eq!(Use::Unknown, nonces.take(wrong.as_bytes(), 9, 1100), "{wrong}");
        }
    }
}
