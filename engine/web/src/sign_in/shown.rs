//! Credentials that a client sends unchanged, in one header of each request: a password, a token, a key. A
//! sign-on is a browser's first page: requested without them, refused with a challenge, and requested again.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::accounts::{Account, Accounts};
use super::lookup::revoked::Entry;
use super::negotiate::refused;
use super::returning::Returning;
use super::scheme::{Adversary, Client, Judgement, Setup, Visit, VisitKind, ending};
use crate::clock;
use crate::failure::{self, Failure, Fault};
use crate::http::prebuilt::Prebuilt;
use crate::http::response::{Expected, Response};

pub const ENDED: &str = "a token that was ended";
pub const REVOKED: &str = "a credential that was revoked in the store";
pub const RUN_OUT: &str = "a token that ran out while it was remembered";

/// Source of a client's credentials.
pub trait Issuer {
    /// Header of the credentials, up to their beginning.
    const HEADER: &'static str;

    fn issue(&self, account: &Account) -> Result<String, String>;

    /// Returns the entry of an account in the server's store; None if the credentials are not stored.
    fn entry(&self, _account: &Account) -> Option<Entry> {
        None
    }

    /// Makes an error; see `Client::do_wrong`.
    fn do_wrong(&mut self, _wrong: &'static str) {}
}

/// Steps of a client before the answer that must be a refusal. All answers before it are right, except that
/// of `ShowForgotten`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Show,
    /// End of the user's session or token.
    End,
    /// Use of the credential after it was revoked for longer than the time to live. By then the server has
    /// forgotten any earlier use, and must refuse it.
    ShowForgotten,
    /// Use of the credential after another program revoked it.
    ShowRevoked,
    /// Use of the credential at half of the time to live, which must not extend that time in the cache.
    ShowHalfway,
    /// Use of the credential when the time to live since its first use is over.
    ShowLate,
    /// Use of the credential after it has expired by itself.
    ShowRunOut,
}

pub struct ShownClient<I> {
    issuer: I,
    kind: VisitKind,
    /// Requests that will be challenged; `requests` are those with credentials.
    bare: Vec<Prebuilt>,
    requests: Vec<Prebuilt>,
    challenged: Expected,
    expected: Expected,
    accounts: Accounts,
    returning: Returning,
    /// Header of each account, made when it is first drawn: ten thousand signatures take some seconds.
    headers: Vec<Option<Box<[u8]>>>,
    /// Server's own store.
    store: Option<PathBuf>,
    host: String,
    ended: Expected,
    /// Request that ends the token of the current operation.
    ending: Vec<u8>,
    /// Steps of an operation; a visit's leg is the index of the current one.
    steps: &'static [Step],
    revoked: Option<Entry>,
    /// Time since when the credential is sent to a server that does not remember it.
    shown: Instant,
    /// Time just before the revocation, when the server had accepted it.
    taken: Instant,
    given_up: GivenUp,
}

/// Abandoned attempts of an operation, for which the host was too slow within the time to live, and their
/// steps and pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct GivenUp {
    attempts: u8,
    steps: usize,
    pages: usize,
}

impl GivenUp {
    /// Adds an attempt that was refused at this step, this time after its first use. Returns None if that was
    /// too early, or if there were enough attempts.
    fn and(self, step: usize, since_shown: Duration, time_to_live: Duration) -> Option<GivenUp> {
        let GivenUp { attempts, steps, pages } = self;
        // The next attempt begins with the second step, because the server has forgotten the credential.
        let more = GivenUp { attempts: attempts + 1, steps: steps + step, pages: pages + step - 1 };
        (attempts < MOST_GIVEN_UP && since_shown >= time_to_live).then_some(more)
    }
}

/// Limit of abandoned attempts: each takes the time to live, 2 s in a proof, and an operation has 10 s.
const MOST_GIVEN_UP: u8 = 2;

/// Remaining lifetime of a token that is made to expire during a proof.
pub const RUNS_OUT_AFTER_S: u64 = 1;

impl<I: Issuer + 'static> ShownClient<I> {
    pub fn made(setup: &Setup, issuer: I) -> Result<Box<dyn Client>, Failure> {
        let accounts = setup.accounts()?;
        Ok(Box::new(ShownClient {
            issuer,
            kind: setup.kind,
            bare: setup.followed(),
            requests: setup.requests(),
            challenged: setup.answered(401),
            expected: setup.expected(),
            returning: Returning::of(setup.cache, &accounts, setup.users)?,
            headers: accounts.iter().map(|_| None).collect(),
            accounts,
            store: setup.store.map(PathBuf::from),
            host: setup.site.host.clone(),
            ended: setup.answered(200),
            ending: Vec::new(),
            steps: &[Step::Show],
            revoked: None,
            shown: Instant::now(),
            taken: Instant::now(),
            given_up: GivenUp::default(),
        }))
    }
}

impl<I: Issuer> ShownClient<I> {
    fn account(&self, visit: &Visit) -> &Account {
        &self.accounts[self.returning.account(visit, &self.accounts)]
    }

    fn header(&self, visit: &Visit) -> &[u8] {
        self.headers[self.returning.account(visit, &self.accounts)].as_deref().unwrap_or_default()
    }

    fn ready(&mut self, account: usize) -> Result<(), Fault> {
        if self.headers[account].is_none() {
            let credential = self.issuer.issue(&self.accounts[account]).map_err(refused)?;
            let header = format!("{}{credential}\r\n", I::HEADER);
            self.headers[account] = Some(header.into_bytes().into());
        }
        Ok(())
    }

    /// Returns true if the current request is the first of a sign-on, which has no credentials.
    fn is_bare(&self, visit: &Visit) -> bool {
        self.kind == VisitKind::SignOn && visit.leg == 0
    }

    /// Returns the index of a visit's current step.
    fn step(&self, visit: &Visit) -> usize {
        usize::from(visit.leg)
            - usize::from(self.kind == VisitKind::SignOn && visit.leg > 0)
            - self.given_up.steps
    }

    /// Returns true if an attempt that was refused at this step is abandoned, and the next one begins.
    fn begins_anew(&mut self, step: usize) -> bool {
        let time_to_live = self.returning.cache().map(|cache| Duration::from_secs(cache.time_to_live_s));
        let anew = time_to_live.and_then(|limit| self.given_up.and(step, self.shown.elapsed(), limit));
        if let Some(given_up) = anew {
            (self.given_up, self.shown) = (given_up, Instant::now());
        }
        anew.is_some()
    }

    fn revoke(&mut self, visit: &Visit) -> Result<(), String> {
        let entry = self.issuer.entry(self.account(visit));
        let (Some(entry), Some(store)) = (entry, &self.store) else {
            return Err("it is in no store".to_owned());
        };
        self.taken = Instant::now();
        entry.revoke(store)?;
        self.revoked = Some(entry);
        Ok(())
    }

    /// Waits until this time has passed since the server accepted it.
    fn wait_for(&self, since_taken: Duration) {
        std::thread::sleep(since_taken.saturating_sub(self.taken.elapsed()));
    }

    /// Prepares a step of a proof, in which only one user waits.
    fn before(&mut self, step: Step, visit: &Visit) -> Result<(), String> {
        match (step, self.returning.cache()) {
            (Step::ShowForgotten, Some(cache)) => {
                self.revoke(visit)?;
                self.wait_for(Duration::from_secs(cache.time_to_live_s) + SOME_MORE);
            }
            (Step::ShowRevoked, _) => self.revoke(visit)?,
            (Step::ShowHalfway, Some(cache)) => {
                self.wait_for(Duration::from_secs(cache.time_to_live_s) / 2);
            }
            (Step::ShowLate, Some(cache)) => {
                self.wait_for(Duration::from_secs(cache.time_to_live_s) + SOME_MORE);
            }
            (Step::ShowRunOut, _) => {
                let until_s = clock::unix_s() + RUNS_OUT_AFTER_S + 1;
                while clock::unix_s() < until_s {
                    std::thread::sleep(SOME_MORE);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl<I> ShownClient<I> {
    /// Restores the store to its state before the revocation.
    fn restore(&mut self) -> Result<(), String> {
        let (Some(entry), Some(store)) = (self.revoked.take(), &self.store) else { return Ok(()) };
        entry.restore(store)
    }
}

/// Restores the store after an operation that its limit or the server ended.
impl<I> Drop for ShownClient<I> {
    fn drop(&mut self) {
        // If this fails the store is gone, or the next proof reports it.
        let _ = self.restore();
    }
}

/// Tolerance for clocks with the resolution of a tick.
const SOME_MORE: Duration = Duration::from_millis(50);

impl<I: Issuer> Client for ShownClient<I> {
    fn enter(&mut self) {
        self.returning.enter();
    }

    fn whole(&self) -> u64 {
        self.returning.whole()
    }

    fn knows_of_a_cache(&self) -> bool {
        true
    }

    fn prepares(&self) -> bool {
        true
    }

    fn prepare(&mut self, visits: &[Visit]) -> Result<(), Fault> {
        let ahead = self.returning.ahead(visits, &self.accounts);
        ahead.into_iter().try_for_each(|account| self.ready(account))
    }

    #[inline]
    fn begin(&mut self, visit: &Visit) -> Result<(), Fault> {
        let account = self.returning.begin(visit, &self.accounts);
        self.ready(account)?;
        if self.steps[0] == Step::ShowForgotten {
            self.given_up = GivenUp::default();
            self.before(Step::ShowForgotten, visit).map_err(refused)?;
        }
        if self.steps.contains(&Step::End) {
            self.ending = ending(&self.host, &String::from_utf8_lossy(self.header(visit)));
        }
        Ok(())
    }

    #[inline]
    fn request(&mut self, visit: &Visit) -> &[u8] {
        let path = usize::from(visit.path);
        if self.is_bare(visit) {
            return self.bare[path].with(visit.unique, b"");
        }
        if self.steps[self.step(visit)] == Step::End {
            return &self.ending;
        }
        let account = self.returning.account(visit, &self.accounts);
        let header = self.headers[account].as_deref().unwrap_or_default();
        self.requests[path].with(visit.unique, header)
    }

    #[inline]
    fn expected(&self, visit: &Visit) -> &Expected {
        if self.is_bare(visit) {
            &self.challenged
        } else if self.steps[self.step(visit)] == Step::End {
            &self.ended
        } else {
            &self.expected
        }
    }

    #[inline]
    fn judge(&mut self, visit: &Visit, response: &Response) -> Result<Judgement, Fault> {
        let right = response.check(self.expected(visit));
        if self.is_bare(visit) {
            right?;
            return match response.headers("WWW-Authenticate").any(is_challenge) {
                true => Ok(Judgement::Continue),
                false => Err(Fault::new(failure::NOT_HTTP, "no challenge for Basic")),
            };
        }
        let step = self.step(visit);
        let (is_forgotten, was_revoked) = (self.steps[step] == Step::ShowForgotten, self.revoked.is_some());
        if is_forgotten || right.is_err() || step + 1 == self.steps.len() {
            self.restore().map_err(refused)?;
        }
        let is_refused = right.is_err() && response.status == self.challenged.status;
        match (self.steps.get(step + 1), right) {
            (None, right) => right.map(|()| Judgement::Done),
            // The server accepted it for too long: no more steps are needed.
            (Some(_), Ok(())) if is_forgotten => Ok(Judgement::Done),
            (Some(_), Err(_)) if is_forgotten && is_refused => {
                self.shown = Instant::now();
                Ok(Judgement::Continue)
            }
            (Some(next), Ok(())) => {
                self.before(*next, visit).map_err(refused)?;
                Ok(Judgement::Continue)
            }
            (Some(_), Err(_)) if was_revoked && is_refused && self.begins_anew(step) => {
                Ok(Judgement::Continue)
            }
            // A refusal proves something only about a credential that was accepted before.
            (Some(_), Err(fault)) => Err(Fault::new(failure::SIGN_IN, fault.words)),
        }
    }

    #[inline]
    fn signs_on(&self, visit: &Visit) -> bool {
        !self.returning.is_hit(visit)
    }

    fn user(&self, visit: &Visit) -> Option<&str> {
        Some(&self.account(visit).name)
    }
}

impl<I: Issuer> Adversary for ShownClient<I> {
    fn why_not(&self, wrong: &'static str) -> Option<&'static str> {
        match wrong {
            REVOKED if self.store.is_none() => Some("the store is not one that a proof may change"),
            RUN_OUT if self.returning.cache().is_none() => Some("none is remembered"),
            _ => None,
        }
    }

    fn do_wrong(&mut self, wrong: &'static str) {
        self.steps = match (wrong, self.returning.cache()) {
            (ENDED, _) => &[Step::Show, Step::End, Step::Show],
            (REVOKED, None) => &[Step::Show, Step::ShowRevoked],
            (REVOKED, Some(_)) => {
                &[Step::ShowForgotten, Step::Show, Step::ShowRevoked, Step::ShowHalfway, Step::ShowLate]
            }
            (RUN_OUT, _) => &[Step::Show, Step::ShowRunOut],
            _ => &[Step::Show],
        };
        self.issuer.do_wrong(wrong);
        self.headers.fill(None);
    }

    fn given_before(&self) -> u64 {
        let is_page = |step: &&Step| !matches!(step, Step::End | Step::ShowForgotten);
        (self.steps.iter().filter(is_page).count() - 1 + self.given_up.pages) as u64
    }

    fn says(&self, wrong: &'static str) -> Option<String> {
        let cache = self.returning.cache().filter(|_| wrong == REVOKED)?;
        Some(format!("{wrong}, when {} s were over; before that it was taken", cache.time_to_live_s))
    }
}

/// Returns true if a challenge is Basic's; its realm is required (RFC 7617, 2).
fn is_challenge(header: &str) -> bool {
    let parameters = header.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("Basic"));
    parameters.is_some_and(|(_, rest)| {
        let mut names = rest.split(',').filter_map(|parameter| parameter.split_once('='));
        names.any(|(name, _)| name.trim().eq_ignore_ascii_case("realm"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slow host causes another attempt, but a server that forgets too soon does not.
    #[test]
    fn an_attempt_is_given_up_when_its_time_is_over() {
        let (limit, early) = (Duration::from_secs(2), Duration::from_millis(1999));
        assert_eq!(None, GivenUp::default().and(3, early, limit));
        let first = GivenUp::default().and(3, limit, limit).expect("another attempt");
        assert_eq!(GivenUp { attempts: 1, steps: 3, pages: 2 }, first);
        let second = first.and(2, limit, limit).expect("another attempt");
        assert_eq!(GivenUp { attempts: 2, steps: 5, pages: 3 }, second);
        assert_eq!(None, second.and(2, limit, limit));
    }

    #[test]
    fn a_challenge_names_the_scheme_and_a_realm() {
        for (header, expected) in [
            ("Basic realm=\"tollbar\", charset=\"UTF-8\"", true),
            ("bASIC charset=\"UTF-8\", Realm=\"WallyWorld\"", true),
            ("Basic", false),
            ("Basic charset=\"UTF-8\"", false),
            ("Basics realm=\"tollbar\"", false),
            ("Digest realm=\"tollbar\", nonce=\"1\"", false),
            ("", false),
        ] {
            assert_eq!(expected, is_challenge(header), "{header}");
        }
    }
}
