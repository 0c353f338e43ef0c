//! Accounts of visits. They are drawn, unless the server remembers verified users: then accounts that return
//! make up exactly the requested share, and all others appear to be new.

use super::accounts::Accounts;
use super::scheme::Visit;
use super::verified::KnownCache;
use crate::failure::Failure;
use crate::random::Sequence;

/// Tolerance of a cache: it may exceed its size by this before it evicts, and the order of eviction is
/// equally inexact.
const SLACK: u64 = 1_024;
/// Seed of the order of the other accounts, which does not matter.
const SEED: u64 = 0x6361_6368;

pub enum Returning {
    Drawn,
    Shared(Turns),
}

/// Turns of accounts. The first accounts return in sequence; all others follow in a shuffled order that is so
/// long that the server has forgotten each before it returns.
pub struct Turns {
    spec: KnownCache,
    again: usize,
    others: Vec<usize>,
    /// Number of returning accounts that have come once, which the server must verify.
    known: usize,
    /// Place in the hundred, or in its divisor, since the phase began.
    place: u64,
    hits: usize,
    misses: usize,
    /// Turn of each user's current visit.
    of_users: Vec<Turn>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Turn {
    account: usize,
    is_hit: bool,
}

impl Returning {
    /// Prepares the turns for this number of users at a time.
    pub fn of(spec: Option<KnownCache>, accounts: &Accounts, users: usize) -> Result<Returning, Failure> {
        let Some(spec) = spec else { return Ok(Returning::Drawn) };
        let KnownCache { hit_percent, entries, .. } = spec;
        let refuse =
            |why: String| Err(Failure::Unsupported(format!("a hit share of {hit_percent} %: {why}")));
        if hit_percent > 100 {
            return refuse("it must be at most 100 %".to_owned());
        }
        let (count, again) = (accounts.iter().count() as u64, users as u64);
        // Between two visits of a returning account there are this many others.
        let between = (100 - hit_percent) * again / hit_percent.max(1) + again;
        if hit_percent > 0 && between + SLACK > entries {
            return refuse(format!(
                "{users} returning users need a cache of at least {} entries; it has {entries}",
                between + SLACK
            ));
        }
        let needed = again + entries + 2 * SLACK;
        if hit_percent < 100 && count < needed {
            return refuse(format!(
                "a cache of {entries} entries holds most of {count} accounts; at least {needed} accounts are needed"
            ));
        }
        let mut others: Vec<usize> = (users.min(count as usize)..count as usize).collect();
        let mut random = Sequence::of(SEED, [count, again]);
        for last in (1..others.len()).rev() {
            others.swap(last, random.under(last as u64 + 1) as usize);
        }
        let again = users.min(count as usize);
        let of_users = vec![Turn::default(); users];
        Ok(Returning::Shared(Turns { spec, again, others, known: 0, place: 0, hits: 0, misses: 0, of_users }))
    }

    /// Begins a phase, at the first place.
    pub fn enter(&mut self) {
        if let Returning::Shared(turns) = self {
            turns.place = 0;
        }
    }

    /// Returns the smallest number of visits in which the share is exact.
    pub fn whole(&self) -> u64 {
        match self {
            Returning::Drawn => 1,
            Returning::Shared(turns) => 100 / greatest_common_divisor(100, turns.spec.hit_percent),
        }
    }

    /// Begins a visit, and returns the place of its account.
    #[inline]
    pub fn begin(&mut self, visit: &Visit, accounts: &Accounts) -> usize {
        if let Returning::Shared(turns) = self {
            turns.of_users[visit.user as usize] = turns.next();
        }
        self.account(visit, accounts)
    }

    /// Returns the account of a visit that has begun.
    #[inline]
    pub fn account(&self, visit: &Visit, accounts: &Accounts) -> usize {
        match self {
            Returning::Drawn => accounts.drawn(visit.unique),
            Returning::Shared(turns) => turns.of_users[visit.user as usize].account,
        }
    }

    /// Returns true if the server remembers the account of a visit that has begun.
    #[inline]
    pub fn is_hit(&self, visit: &Visit) -> bool {
        matches!(self, Returning::Shared(turns) if turns.of_users[visit.user as usize].is_hit)
    }

    /// Returns the accounts of these visits, or of an equal number.
    pub fn ahead(&self, visits: &[Visit], accounts: &Accounts) -> Vec<usize> {
        match self {
            Returning::Drawn => visits.iter().map(|visit| accounts.drawn(visit.unique)).collect(),
            Returning::Shared(turns) => {
                let misses = visits.len() * (100 - turns.spec.hit_percent as usize) / 100 + 100;
                let misses = (turns.misses..turns.misses + misses).filter(|_| !turns.others.is_empty());
                (0..turns.again).chain(misses.map(|miss| turns.others[miss % turns.others.len()])).collect()
            }
        }
    }

    pub fn cache(&self) -> Option<KnownCache> {
        match self {
            Returning::Drawn => None,
            Returning::Shared(turns) => Some(turns.spec),
        }
    }
}

impl Turns {
    fn next(&mut self) -> Turn {
        if self.known < self.again && self.spec.hit_percent > 0 {
            self.known += 1;
            return Turn { account: self.known - 1, is_hit: false };
        }
        // Hits are spread as evenly as possible over the places.
        let hits = |places: u64| places * self.spec.hit_percent / 100;
        let is_hit = hits(self.place + 1) > hits(self.place);
        self.place += 1;
        let (turn, accounts) = match is_hit {
            true => (&mut self.hits, None),
            false => (&mut self.misses, Some(&self.others)),
        };
        *turn += 1;
        let account = accounts.map_or((*turn - 1) % self.again, |others| others[(*turn - 1) % others.len()]);
        Turn { account, is_hit }
    }
}

fn greatest_common_divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { greatest_common_divisor(other, one % other) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accounts(count: usize) -> Accounts {
        Accounts::of((0..count).map(|number| format!("u{number}")))
    }

    /// The cache must keep all returning accounts, and the others must exceed its size.
    #[test]
    fn a_share_needs_so_large_a_cache_and_so_many_accounts() {
        let made = |hit_percent, entries, count| {
            let spec = KnownCache { hit_percent, time_to_live_s: 1, entries };
            Returning::of(Some(spec), &accounts(count), 2).map(|_| ()).map_err(Failure::into_words)
        };
        for (hit_percent, least, count) in [(90, 1_026, 3_076), (1, 1_224, 3_274), (50, 1_028, 3_078)] {
            assert_eq!(Ok(()), made(hit_percent, least, count), "{hit_percent} %");
            let too_small = made(hit_percent, least - 1, count).expect_err("too small");
            assert!(too_small.ends_with(&format!("at least {least} entries; it has {}", least - 1)));
            let too_few = made(hit_percent, least, count - 1).expect_err("too few");
            assert!(
                too_few
                    .ends_with(&format!("of {} accounts; at least {count} accounts are needed", count - 1)),
                "{too_few}"
            );
        }
        // A share of all or none is possible.
        assert_eq!(Ok(()), made(100, 1_026, 2));
        assert!(made(101, 1_026, 2).expect_err("more than all").contains("101 %"));
        assert_eq!(Ok(()), made(0, 1, 2 + 1 + 2 * SLACK as usize));
    }

    /// First come the returning accounts, which the server has not seen; then each account in its turn.
    #[test]
    fn those_that_come_again_and_all_others_have_their_turns() {
        let accounts = accounts(3_100);
        let spec = KnownCache { hit_percent: 50, time_to_live_s: 1, entries: 1_030 };
        let mut returning = Returning::of(Some(spec), &accounts, 3).expect("turns");
        let visit = Visit::default();
        let turn = |returning: &mut Returning| {
            let account = returning.begin(&visit, &accounts);
            assert_eq!(account, returning.account(&visit, &accounts));
            (account, returning.is_hit(&visit))
        };
        assert_eq!([(0, false), (1, false), (2, false)], [(); 3].map(|()| turn(&mut returning)));
        let first = returning.ahead(&[visit], &accounts)[3];
        let turns: Vec<_> = (0..2 * 3_097).map(|_| turn(&mut returning)).collect();
        let hits: Vec<_> = turns.iter().filter(|turn| turn.1).map(|turn| turn.0).collect();
        assert_eq!((0..3_097).map(|number| number % 3).collect::<Vec<_>>(), hits);
        assert!(turns.chunks(2).all(|pair| !pair[0].1 && pair[1].1));
        // All others come once, shuffled, before the first of them returns.
        let others: Vec<_> = turns.iter().filter(|turn| !turn.1).map(|turn| turn.0).collect();
        let mut sorted = others.clone();
        sorted.sort_unstable();
        assert_eq!((3..3_100).collect::<Vec<_>>(), sorted);
        assert!(others.windows(2).filter(|pair| pair[0] < pair[1]).count().abs_diff(1_548) < 150);
        assert_eq!((first, (first, false)), (others[0], turn(&mut returning)));
        // A phase begins with the first place of a whole share.
        returning.enter();
        assert_eq!((others[1], false), turn(&mut returning));
        assert!(turn(&mut returning).1);
        assert!(returning.cache().is_some());
        assert!(Returning::Drawn.cache().is_none() && !Returning::Drawn.is_hit(&visit));
    }

    /// The accounts ahead include some to spare, and continue from the end of the last ones.
    #[test]
    fn those_that_will_come_are_known_ahead() {
        let accounts = accounts(3_100);
        let spec = KnownCache { hit_percent: 90, time_to_live_s: 1, entries: 1_028 };
        let mut returning = Returning::of(Some(spec), &accounts, 2).expect("turns");
        for _ in 0..3 {
            let ahead = returning.ahead(&[Visit::default(); 200], &accounts);
            assert_eq!(2 + 20 + 100, ahead.len());
            for _ in 0..200 {
                assert!(ahead.contains(&returning.begin(&Visit::default(), &accounts)));
            }
        }
        let spec = KnownCache { hit_percent: 100, ..spec };
        let returning = Returning::of(Some(spec), &self::accounts(2), 2).expect("turns");
        assert_eq!(vec![0, 1], returning.ahead(&[Visit::default(); 200], &accounts));
        let visits = [0, u64::MAX].map(|unique| Visit { unique, ..Visit::default() });
        assert_eq!(vec![0, 3_099], Returning::Drawn.ahead(&visits, &accounts));
    }

    /// A whole is the smallest number of visits in which the share is exact.
    #[test]
    fn a_whole_has_just_the_share() {
        for (hit_percent, whole) in
            [(0, 1), (1, 100), (20, 5), (25, 4), (50, 2), (64, 25), (90, 10), (99, 100), (100, 1)]
        {
            let spec = KnownCache { hit_percent, time_to_live_s: 1, entries: 1 };
            let turns = Turns {
                spec,
                again: 1,
                others: Vec::new(),
                known: 0,
                place: 0,
                hits: 0,
                misses: 0,
                of_users: Vec::new(),
            };
            assert_eq!(whole, Returning::Shared(turns).whole(), "{hit_percent} %");
        }
        assert_eq!(1, Returning::Drawn.whole());
    }
}
