//! Each scheme as client and server configure it, with each of its stores and settings.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac;
use serde_json::{Value, json};
use tollbar_testing::{AUTHORITY, REVOCATIONS, certificate};

use crate::clock;
use crate::load::task::Load;
use crate::serve::tests::Served;
use crate::sign_in::lookup::held;
use crate::sign_in::scheme::Wrong;
use crate::sign_in::{digest as digest_scheme, jwt, shown};

/// Folder of a test's files, which is removed with it.
pub struct Files(pub PathBuf);

impl Files {
    pub fn new(test: &str) -> Files {
        let path = std::env::temp_dir().join(format!("tollbar-{}-{test}", std::process::id()));
        std::fs::create_dir(&path).expect("a directory");
        Files(path)
    }

    pub fn put(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).expect("a file");
        file.write_all(text.as_bytes()).expect("room");
        path
    }

    /// Writes names and hashes of accounts, as a file and as a database.
    pub fn stores(&self, name: &str, accounts: &[(String, String)]) -> [Value; 2] {
        let lines: Vec<String> = accounts.iter().map(|(name, hash)| format!("{name}:{hash}\n")).collect();
        let file = self.put(&format!("{name}.txt"), &lines.concat());
        let database = self.0.join(format!("{name}.sqlite"));
        let mut connection = rusqlite::Connection::open(&database).expect("a database");
        // All rows are in one transaction, because each transaction waits for the disk at its end.
        let transaction = connection.transaction().expect("a transaction");
        transaction
            .execute_batch("CREATE TABLE accounts (name TEXT PRIMARY KEY, hash TEXT) WITHOUT ROWID")
            .expect("a table");
        for (name, hash) in accounts {
            transaction.execute("INSERT INTO accounts VALUES (?1, ?2)", [name, hash]).expect("a row");
        }
        transaction.commit().expect("a table of rows");
        let copy = self.0.join(format!("{name}-copy.sqlite"));
        [json!({"file": file}), json!({"sql": {"from": database, "at": copy}})]
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub const ACCOUNTS: usize = 5;

pub fn name(account: usize) -> String {
    format!("u{account:05}")
}

pub fn password(account: usize) -> String {
    format!("{account} pass:wörd")
}

pub fn accounts_file(files: &Files) -> PathBuf {
    let line = |account| format!("{}\t{}\t0\n", name(account), password(account));
    files.put("accounts.tsv", &(0..ACCOUNTS).map(line).collect::<String>())
}

/// A scheme as client and server configure it: `exchange` without its scheme and accounts, `sign_in` without
/// its scheme.
#[derive(Clone)]
pub struct Case {
    pub scheme: &'static str,
    pub exchange: Value,
    pub sign_in: Value,
    /// TLS of the server, and of the client; null without TLS.
    pub tls: [Value; 2],
}

impl Case {
    /// Returns the server's own store, if it contains the credentials that a client sends.
    pub fn store(&self) -> &Value {
        match self.scheme {
            "basic" | "api-key" => &self.sign_in["store"]["sql"]["at"],
            "opaque-token" => &self.sign_in["held"]["at"],
            _ => &Value::Null,
        }
    }

    /// Returns true if a proof tries this: revocation needs a store, and expiry needs a cache.
    pub fn tries(&self, wrong: Wrong) -> bool {
        match wrong {
            Wrong::Own(shown::REVOKED) => !self.store().is_null(),
            Wrong::Own(shown::RUN_OUT) => !self.exchange["cache"].is_null(),
            _ => true,
        }
    }

    pub fn served(&self) -> Served {
        let mut sign_in = self.sign_in.clone();
        sign_in["scheme"] = json!(self.scheme);
        // Each server has its own directory, but this test has one for all.
        for copy in
            [&sign_in["held"]["at"], &sign_in["store"]["sql"]["at"]].into_iter().filter_map(Value::as_str)
        {
            ["", "-wal", "-shm"].iter().for_each(|end| drop(std::fs::remove_file(format!("{copy}{end}"))));
        }
        Served::start(&json!({"listen": "127.0.0.1:0", "tls": self.tls[0], "sign_in": sign_in}), None)
    }

    pub fn load(&self, served: &Served, accounts: &Path, change: Value) -> Load {
        let mut exchange = self.exchange.clone();
        exchange["scheme"] = json!(self.scheme);
        exchange["accounts"] = json!({"file": accounts, "first": 1, "count": ACCOUNTS - 1});
        exchange["store"] = self.store().clone();
        let mut fields = json!({
            "address": served.address, "host": "localhost", "clients": [{"share": 1, "tls": self.tls[1]}], "users": 3,
            "connection": "user", "request": {"paths": ["/bytes/100"], "unique_query": true},
            "expect": {"bytes": 100}, "exchange": exchange, "components": {"web": served.process.id()},
        });
        let changed = change.as_object().cloned().unwrap_or_default();
        fields.as_object_mut().expect("fields").extend(changed);
        serde_json::from_value(fields).expect("a load")
    }
}

/// Makes a database of tokens, which are the accounts' passwords, and of an expired one. Returns the server's
/// setting, whose copy has this name.
fn held(files: &Files, copy: &str) -> Value {
    let from = files.0.join("held.sqlite");
    if !from.exists() {
        let accounts: Vec<(String, String)> =
            (0..ACCOUNTS).map(|account| (password(account), name(account))).collect();
        let good = accounts.iter().map(|(token, name)| (token.as_str(), name.as_str(), i64::MAX as u64));
        let expired = ("expired", accounts[0].1.as_str(), clock::unix_s() - 3600);
        let spare = ("spare", accounts[0].1.as_str(), i64::MAX as u64);
        held::tests::fill(&from, &good.chain([expired, spare]).collect::<Vec<_>>());
    }
    json!({"from": from, "at": files.0.join(copy)})
}

pub const CLEAR: [Value; 2] = [Value::Null, Value::Null];

/// Returns settings in which both sides have certificates; the clients' authority has revoked one.
fn mutual_tls() -> [Value; 2] {
    let identity = |name| {
        let identity = certificate(name);
        json!({"chain_pem": identity.chain_pem, "key_pem": identity.key_pem})
    };
    let both = json!({"protocol": "tls-1.3", "key_exchange": "x25519", "cipher": "aes-128-gcm"});
    let (mut server, mut client) = (both.clone(), both);
    server["identities"] = json!([identity("ecdsa-p256")]);
    server["client_authority_pem"] = json!(AUTHORITY);
    server["client_revocations_pem"] = json!(REVOCATIONS);
    client["identity"] = identity("client");
    client["revoked"] = identity("revoked");
    [server, client]
}

/// Returns each scheme with each of its stores and settings.
pub fn cases(files: &Files) -> Vec<Case> {
    let bcrypt: Vec<(String, String)> = (0..ACCOUNTS)
        .map(|account| (name(account), bcrypt::hash(password(account), 4).expect("a hash")))
        .collect();
    let hashed = files.stores("hashed", &bcrypt);
    let with_password = hashed.into_iter().enumerate().flat_map(|(number, store)| {
        let case = |scheme: &'static str, sign_in: Value| {
            let exchange = if scheme == "basic" { json!({}) } else { json!({"token": true}) };
            Case { scheme, exchange, sign_in, tls: CLEAR }
        };
        [
            case("basic", json!({"store": store})),
            case("form", json!({"store": store})),
            case(
                "session-cookie",
                json!({"store": store, "held": held(files, &format!("sessions-{number}"))}),
            ),
        ]
    });
    let digest = ["md5", "sha-256"].into_iter().flat_map(|algorithm| {
        let stored = (0..ACCOUNTS).map(|account| {
            let name = name(account);
            let stored = digest_scheme::tests::stored(algorithm, &name, &password(account));
            (name, stored)
        });
        files.stores(algorithm, &stored.collect::<Vec<_>>()).map(|store| Case {
            scheme: "digest",
            exchange: json!({"algorithm": algorithm}),
            sign_in: json!({"algorithm": algorithm, "store": store}),
            tls: CLEAR,
        })
    });
    let jwt = jwt::tests::keys().map(|(signature, key, verification_key)| {
        let key = files.put(&format!("{signature}.key"), &key);
        let verification_key = files.put(&format!("{signature}.verification-key"), &verification_key);
        let shared = json!({"signature": signature, "verification_key": verification_key});
        let mut exchange = shared.clone();
        exchange["key"] = json!(key);
        Case { scheme: "jwt", exchange, sign_in: shared, tls: CLEAR }
    });
    let opaque_token = Case {
        scheme: "opaque-token",
        exchange: json!({"expired": files.put("expired", "expired\n"), "spare": files.put("spare", "spare\n")}),
        sign_in: json!({"held": held(files, "tokens")}),
        tls: CLEAR,
    };
    let keys: Vec<(String, String)> =
        (0..ACCOUNTS).map(|account| (name(account), password(account))).collect();
    let hmac = files.stores("keys", &keys).map(|store| Case {
        scheme: "hmac",
        exchange: json!({}),
        sign_in: json!({"store": store}),
        tls: CLEAR,
    });
    let pepper = files.put("pepper", "pepper");
    let api_key = api_keys(files).into_iter().chain(files.stores("hashed-keys", &bcrypt)).map(|store| Case {
        scheme: "api-key",
        exchange: json!({}),
        sign_in: json!({"store": store, "pepper": pepper}),
        tls: CLEAR,
    });
    let anonymous = Case { scheme: "anonymous", exchange: json!({}), sign_in: json!({}), tls: CLEAR };
    let certificate =
        Case { scheme: "client-certificate", exchange: json!({}), sign_in: json!({}), tls: mutual_tls() };
    [anonymous, certificate]
        .into_iter()
        .chain(with_password)
        .chain(digest)
        .chain(jwt)
        .chain([opaque_token])
        .chain(hmac)
        .chain(api_key)
        .collect()
}

/// Returns stores of keys by their SHA-256, and by their HMAC.
fn api_keys(files: &Files) -> Vec<Value> {
    let pepper = hmac::Key::new(hmac::HMAC_SHA256, b"pepper");
    let sha_256 = |secret: String| format!("{{SHA-256}}{}", hex::encode(digest(&SHA256, secret.as_bytes())));
    let hmac =
        |secret: String| format!("{{HMAC-SHA-256}}{}", hex::encode(hmac::sign(&pepper, secret.as_bytes())));
    let rows = |stored: &dyn Fn(String) -> String| {
        (0..ACCOUNTS).map(|account| (name(account), stored(password(account)))).collect::<Vec<_>>()
    };
    [files.stores("sha-256-keys", &rows(&sha_256)), files.stores("hmac-keys", &rows(&hmac))].concat()
}
