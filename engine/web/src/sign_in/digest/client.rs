//! The client of Digest: after one challenge it sends credentials without being asked.

use serde::Deserialize;

use super::hash::{Algorithm, Answered, Hex};
use super::header::Challenge;
use crate::failure::{self, Failure, Fault};
use crate::http::prebuilt::{Prebuilt, put_digits};
use crate::http::response::{Expected, Response};
use crate::sign_in::accounts::{Account, Accounts};
use crate::sign_in::scheme::{Adversary, Client, Judgement, Setup, Visit, VisitKind};

pub const REPLAYED: &str = "a request that was sent before";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClientSettings {
    #[serde(default)]
    algorithm: Algorithm,
}

struct DigestClient {
    algorithm: Algorithm,
    kind: VisitKind,
    method: String,
    /// Requests that will be challenged; `requests` are those with credentials.
    bare: Vec<Prebuilt>,
    requests: Vec<Prebuilt>,
    challenged: Expected,
    expected: Expected,
    accounts: Accounts,
    realm: String,
    /// Hash of each account, for that realm.
    hashes: Vec<Hex>,
    users: Vec<User>,
    header: Vec<u8>,
    /// True if it repeats a user's last request exactly.
    replays: bool,
}

/// A user's state from the server.
#[derive(Default, Clone)]
struct User {
    /// Nonce; empty until the first challenge.
    nonce: String,
    opaque: Option<String>,
    /// Current use of the nonce.
    count: u32,
    /// Operation whose request is sent.
    visit: Visit,
}

pub fn client(setup: &Setup) -> Result<Box<dyn Client>, Failure> {
    let ClientSettings { algorithm } = setup.settings()?;
    Ok(Box::new(DigestClient {
        algorithm,
        kind: setup.kind,
        method: setup.site.page.method.clone(),
        bare: setup.followed(),
        requests: setup.requests(),
        challenged: setup.answered(401),
        expected: setup.expected(),
        accounts: setup.accounts()?,
        realm: String::new(),
        hashes: Vec::new(),
        users: vec![User::default(); setup.users],
        header: Vec::new(),
        replays: false,
    }))
}

impl Client for DigestClient {
    fn begin(&mut self, visit: &Visit) -> Result<(), Fault> {
        let user = &mut self.users[visit.user as usize];
        if self.replays {
            return Ok(());
        }
        if self.kind == VisitKind::SignOn {
            user.nonce.clear();
        }
        user.count += 1;
        user.visit = *visit;
        Ok(())
    }

    fn request(&mut self, visit: &Visit) -> &[u8] {
        let user = &self.users[visit.user as usize];
        let Visit { path, unique, .. } = user.visit;
        if user.nonce.is_empty() {
            return self.bare[usize::from(path)].with(unique, b"");
        }
        let account = self.accounts.drawn(user.visit.unique);
        let request = &mut self.requests[usize::from(path)];
        let (mut count, mut client_nonce) = ([0; 8], [0; 16]);
        put_digits(u64::from(user.count) << 32, &mut count);
        put_digits(unique, &mut client_nonce);
        let answered = Answered {
            uri: request.target(unique),
            nonce: user.nonce.as_bytes(),
            count: &count,
            client_nonce: &client_nonce,
        };
        let response = self.algorithm.response(self.hashes[account].as_bytes(), &self.method, &answered);
        self.header.clear();
        let parts: [&[u8]; 17] = [
            b"Authorization: Digest username=\"",
            self.accounts[account].name.as_bytes(),
            b"\", realm=\"",
            self.realm.as_bytes(),
            b"\", nonce=\"",
            answered.nonce,
            b"\", uri=\"",
            answered.uri,
            b"\", algorithm=",
            self.algorithm.name().as_bytes(),
            b", qop=auth, nc=",
            answered.count,
            b", cnonce=\"",
            answered.client_nonce,
            b"\", response=\"",
            response.as_bytes(),
            b"\"",
        ];
        for part in parts {
            self.header.extend_from_slice(part);
        }
        if let Some(opaque) = &user.opaque {
            for part in [", opaque=\"", opaque, "\""] {
                self.header.extend_from_slice(part.as_bytes());
            }
        }
        self.header.extend_from_slice(b"\r\n");
        request.with(unique, &self.header)
    }

    fn expected(&self, visit: &Visit) -> &Expected {
        match self.users[visit.user as usize].nonce.is_empty() {
            true => &self.challenged,
            false => &self.expected,
        }
    }

    fn judge(&mut self, visit: &Visit, response: &Response) -> Result<Judgement, Fault> {
        let expected = self.expected(visit);
        let is_challenged = expected.status == 401;
        // A nonce may expire twice in an operation, although that is rare.
        let may_be_stale = response.status == 401 && visit.leg < 2 && !self.replays;
        if !is_challenged && !may_be_stale {
            return response.check(expected).map(|()| Judgement::Done);
        }
        let challenge = response
            .headers("WWW-Authenticate")
            .filter_map(|header| Challenge::parse(header, self.algorithm))
            .find(|challenge| is_challenged || challenge.is_stale);
        match challenge {
            Some(challenge) => {
                self.take(visit.user, &challenge);
                Ok(Judgement::Continue)
            }
            None => {
                response.check(expected)?;
                let words = format!("no challenge for Digest with {}", self.algorithm.name());
                Err(Fault::new(failure::NOT_HTTP, words))
            }
        }
    }

    fn user(&self, visit: &Visit) -> Option<&str> {
        Some(&self.accounts[self.accounts.drawn(visit.unique)].name)
    }
}

impl Adversary for DigestClient {
    fn do_wrong(&mut self, wrong: &'static str) {
        self.replays = wrong == REPLAYED;
    }
}

impl DigestClient {
    fn take(&mut self, user: u32, challenge: &Challenge<'_>) {
        let Challenge { realm, nonce, opaque, .. } = challenge;
        let user = &mut self.users[user as usize];
        (user.nonce, user.count) = ((*nonce).to_owned(), 1);
        user.opaque = opaque.map(str::to_owned);
        if self.hashes.is_empty() || self.realm != *realm {
            self.realm = (*realm).to_owned();
            let hash = |account: &Account| self.algorithm.of_user(&account.name, realm, &account.password);
            self.hashes = self.accounts.iter().map(hash).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sign_in::accounts::AccountsSpec;

    fn client() -> DigestClient {
        // Tests of this process run in parallel, each on its own thread.
        let own = (std::process::id(), std::thread::current().id());
        let file = std::env::temp_dir().join(format!("tollbar-{}-{:?}-digest-client", own.0, own.1));
        std::fs::write(&file, "u1\tpassword\t0\n").expect("a file");
        let accounts = Accounts::read(&AccountsSpec { file: file.clone(), first: 0, count: 1 });
        let _ = std::fs::remove_file(&file);
        let any = Expected {
            status: 200,
            bytes: None,
            body: None,
            to_head: false,
            keeps_head: true,
            kept_body_bytes: 0,
        };
        DigestClient {
            algorithm: Algorithm::Sha256,
            kind: VisitKind::Request,
            method: "GET".to_owned(),
            bare: Vec::new(),
            requests: Vec::new(),
            challenged: Expected { status: 401, ..any.clone() },
            expected: any,
            accounts: accounts.unwrap_or_else(|failure| panic!("{failure:?}")),
            realm: String::new(),
            hashes: Vec::new(),
            users: vec![User::default(); 2],
            header: Vec::new(),
            replays: false,
        }
    }

    /// An expired nonce is replaced twice in an operation, and only if the server reports that it expired.
    #[test]
    fn a_stale_nonce_is_replaced_and_a_refusal_is_not_taken_for_one() {
        let mut client = client();
        let judged = |client: &mut DigestClient, leg: u8, status: u16, more: &str| {
            let visit = Visit { leg, ..Visit::default() };
            let mut response = Response::default();
            response.begin();
            let challenge = format!(
                "WWW-Authenticate: Digest realm=\"r\", nonce=\"n{leg}\", qop=\"auth\", algorithm=SHA-256{more}"
            );
            let head = format!("HTTP/1.1 {status} Some\r\n{challenge}\r\nContent-Length: 0\r\n\r\n");
            response.take(head.as_bytes(), client.expected(&visit)).expect("an answer");
            client.judge(&visit, &response).map_err(|fault| fault.kind)
        };
        let (goes_on, refused) = (Ok(Judgement::Continue), Err(failure::WRONG_STATUS));
        assert_eq!(goes_on, judged(&mut client, 0, 401, ""));
        assert_eq!(Ok(Judgement::Done), judged(&mut client, 1, 200, ""));
        for (leg, expected) in [(0, &goes_on), (1, &goes_on), (2, &refused)] {
            assert_eq!(*expected, judged(&mut client, leg, 401, ", stale=true"), "{leg}");
            assert_eq!(refused, judged(&mut client, leg, 401, ""), "{leg}");
        }
        assert_eq!("n1", client.users[0].nonce);
        client.do_wrong(REPLAYED);
        assert_eq!(refused, judged(&mut client, 0, 401, ", stale=true"));
    }

    /// Hashes of passwords are made once for a realm, and again for another realm, for which the first are
    /// invalid.
    #[test]
    fn hashes_are_of_the_realm_that_was_asked_for() {
        let mut client = client();
        let challenge = |realm, nonce| Challenge { realm, nonce, opaque: None, is_stale: false };
        let of = |realm| Algorithm::Sha256.of_user("u1", realm, "password");
        client.take(0, &challenge("", "n"));
        assert_eq!(vec![of("")], client.hashes);
        client.take(0, &challenge("first", "n"));
        assert_eq!(vec![of("first")], client.hashes);
        // They are kept for the same realm.
        client.hashes = vec![of("kept")];
        client.take(1, &challenge("first", "other"));
        assert_eq!(vec![of("kept")], client.hashes);
        client.take(1, &challenge("second", "other"));
        assert_eq!(("second", vec![of("second")]), (client.realm.as_str(), client.hashes));
        assert_eq!(["n", "other"], [&*client.users[0].nonce, &*client.users[1].nonce]);
    }
}
