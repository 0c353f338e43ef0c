//! The client of signed requests: it signs each with its user's key, when it is sent.

use aws_lc_rs::{hmac, rand};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::message::{COVERED, FRESH_S, put_base};
use crate::clock;
use crate::failure::{Failure, Fault};
use crate::http::prebuilt::{Prebuilt, put_digits};
use crate::http::response::Expected;
use crate::sign_in::accounts::{Account, Accounts};
use crate::sign_in::scheme::{Adversary, Client, NoSettings, Setup, Visit};

pub const ANOTHER_PATH: &str = "a request whose path was changed";
pub const OLD: &str = "a request that was signed too long ago";
pub const REPLAYED: &str = "a request that was sent before";

struct HmacClient {
    method: String,
    host: String,
    requests: Vec<Prebuilt>,
    expected: Expected,
    accounts: Accounts,
    /// Key of each account.
    keys: Vec<hmac::Key>,
    /// First half of nonces, which no other process has.
    random: [u8; 16],
    header: Vec<u8>,
    base: Vec<u8>,
    users: Vec<User>,
    wrong: Option<&'static str>,
}

#[derive(Default, Clone)]
struct User {
    /// Time at which the current request was made.
    created_s: u64,
    /// Operation whose request is sent.
    visit: Visit,
}

pub fn client(setup: &Setup) -> Result<Box<dyn Client>, Failure> {
    let NoSettings {} = setup.settings()?;
    let site = setup.site;
    if site.page.body.is_some() {
        return Err(Failure::Failed(
            "`load.request.body` cannot be set; hmac signs requests without a body".to_owned(),
        ));
    }
    let mut random = [0; 8];
    rand::fill(&mut random).map_err(|_| Failure::Failed("the system gives no random bytes".to_owned()))?;
    let mut digits = [0; 16];
    put_digits(u64::from_be_bytes(random), &mut digits);
    let accounts = setup.accounts()?;
    let key = |account: &Account| hmac::Key::new(hmac::HMAC_SHA256, account.password.as_bytes());
    Ok(Box::new(HmacClient {
        method: site.page.method.clone(),
        host: site.host.to_ascii_lowercase(),
        requests: setup.requests(),
        expected: setup.expected(),
        keys: accounts.iter().map(key).collect(),
        accounts,
        random: digits,
        header: Vec::new(),
        base: Vec::new(),
        users: vec![User::default(); setup.users],
        wrong: None,
    }))
}

impl Client for HmacClient {
    fn begin(&mut self, visit: &Visit) -> Result<(), Fault> {
        let now_s = clock::unix_s();
        let user = &mut self.users[visit.user as usize];
        match self.wrong {
            Some(REPLAYED) => return Ok(()),
            Some(OLD) => user.created_s = now_s - FRESH_S - 1,
            _ => user.created_s = now_s,
        }
        user.visit = *visit;
        Ok(())
    }

    fn request(&mut self, visit: &Visit) -> &[u8] {
        let User { created_s, visit } = self.users[visit.user as usize];
        let account = self.accounts.drawn(visit.unique);
        let request = &mut self.requests[usize::from(visit.path)];
        let mut unique = [0; 16];
        put_digits(visit.unique, &mut unique);
        self.header.clear();
        self.header.extend_from_slice(b"Signature-Input: sig=");
        let from = self.header.len();
        self.header.extend_from_slice(COVERED.as_bytes());
        let created = format!(";created={created_s};keyid=\"");
        for part in [
            created.as_bytes(),
            self.accounts[account].name.as_bytes(),
            b"\";alg=\"hmac-sha256\";nonce=\"",
            &self.random,
            &unique,
            b"\"",
        ] {
            self.header.extend_from_slice(part);
        }
        let target = request.target(visit.unique);
        // The signature is that of another path.
        let signed = if self.wrong == Some(ANOTHER_PATH) { b"/bytes/0" } else { target };
        let (method, host) = (self.method.as_bytes(), self.host.as_bytes());
        put_base(&mut self.base, method, host, signed, &self.header[from..]);
        let signature = STANDARD.encode(hmac::sign(&self.keys[account], &self.base));
        for part in ["\r\nSignature: sig=:", &signature, ":\r\n"] {
            self.header.extend_from_slice(part.as_bytes());
        }
        request.with(visit.unique, &self.header)
    }

    #[inline]
    fn expected(&self, _visit: &Visit) -> &Expected {
        &self.expected
    }

    fn user(&self, visit: &Visit) -> Option<&str> {
        Some(&self.accounts[self.accounts.drawn(visit.unique)].name)
    }
}

impl Adversary for HmacClient {
    fn do_wrong(&mut self, wrong: &'static str) {
        self.wrong = Some(wrong);
    }
}
