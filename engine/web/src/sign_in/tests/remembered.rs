//! A server's cache of verified users, and its time to live.

use std::path::{Path, PathBuf};
use std::time::Duration;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::cases::{CLEAR, Case, Files, name, password};
use crate::clock;
use crate::failure::{self, Failure};
use crate::load::connector::Connector;
use crate::load::probe::Probe;
use crate::load::task::Load;
use crate::load::trial::Trial;
use crate::load::verify::verify;
use crate::runner::Advance;
use crate::serve::tests::Served;
use crate::sign_in::SignIn;
use crate::sign_in::lookup::held;
use crate::sign_in::scheme::{Visit, Wrong};
use crate::sign_in::shown::REVOKED;

/// Number of accounts, more than a cache and its slack hold.
const MANY: usize = 3_600;
const ENTRIES: u64 = 1_400;

/// Configures a server that remembers its users for a second, and its clients, with this percentage of
/// remembered visits.
fn remembering(files: &Files, scheme: &'static str, number: usize, hit_percent: u64) -> (Case, PathBuf) {
    let rows: Vec<(String, String)> = (0..MANY).map(|account| (name(account), password(account))).collect();
    let lines: String = rows.iter().map(|(name, password)| format!("{name}\t{password}\t0\n")).collect();
    let accounts = files.put(&format!("{scheme}-{number}.tsv"), &lines);
    let cache = json!({"time_to_live_s": 1, "entries": ENTRIES});
    let (mut exchange, mut sign_in) = match scheme {
        "jwt" => {
            let key = files.put(&format!("jwt-{number}.key"), "a secret of at least 32 characters");
            let shared = json!({"signature": "hs256", "verification_key": key});
            (json!({"signature": "hs256", "verification_key": key, "key": key}), shared)
        }
        "opaque-token" => {
            let from = files.0.join(format!("held-{number}.sqlite"));
            let held = rows.iter().map(|(name, token)| (token.as_str(), name.as_str(), i64::MAX as u64));
            let others = [("spare", "u1", i64::MAX as u64), ("expired", "u1", clock::unix_s() - 3600)];
            held::tests::fill(&from, &held.chain(others).collect::<Vec<_>>());
            let spare = files.put(&format!("spare-{number}"), "spare");
            let at = files.0.join(format!("held-{number}-copy.sqlite"));
            let expired = files.put(&format!("expired-{number}"), "expired");
            (json!({"expired": expired, "spare": spare}), json!({"held": {"from": from, "at": at}}))
        }
        _ => {
            let sha_1 = |secret: &str| {
                let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, secret.as_bytes());
                format!("{{SHA}}{}", STANDARD.encode(hash))
            };
            let sha_256 =
                |secret: &str| format!("{{SHA-256}}{}", hex::encode(digest(&SHA256, secret.as_bytes())));
            let hash = |secret: &str| if scheme == "basic" { sha_1(secret) } else { sha_256(secret) };
            let stored: Vec<_> = rows.iter().map(|(name, secret)| (name.clone(), hash(secret))).collect();
            (json!({}), json!({"store": files.stores(&format!("keys-{number}"), &stored)[1]}))
        }
    };
    exchange["cache"] = cache.clone();
    exchange["cache"]["hit_percent"] = json!(hit_percent);
    sign_in["cache"] = cache;
    (Case { scheme, exchange, sign_in, tls: CLEAR }, accounts)
}

/// Makes a load like `Case::load`, with all accounts.
fn load_of_many(case: &Case, served: &Served, accounts: &Path) -> Load {
    let mut exchange = case.exchange.clone();
    exchange["scheme"] = json!(case.scheme);
    exchange["accounts"] = json!({"file": accounts, "count": MANY});
    exchange["store"] = case.store().clone();
    case.load(served, accounts, json!({"exchange": exchange}))
}

/// Each chunk has exactly the requested share, and the server has counted the same.
#[test]
fn a_server_remembers_just_the_share_of_its_users() {
    let files = Files::new("share");
    let shares =
        [("api-key", 0), ("api-key", 1), ("jwt", 50), ("opaque-token", 90), ("api-key", 99), ("jwt", 100)];
    for (number, (scheme, hit_percent)) in shares.into_iter().enumerate() {
        let (mut case, accounts) = remembering(&files, scheme, number, hit_percent);
        // The time to live exceeds the test's duration.
        case.sign_in["cache"]["time_to_live_s"] = json!(600);
        case.exchange["cache"]["time_to_live_s"] = json!(600);
        let served = case.served();
        let mut trial = Trial::open(&load_of_many(&case, &served, &accounts), 7).expect("a trial");
        trial.warm_up().expect("warm");
        for operations in [1, 150, 4_000] {
            let chunk = trial.advance(Advance { seconds: 0.0, operations }).expect("a chunk");
            let observed = serde_json::to_value(&chunk.observed).expect("a record");
            let verified = observed["sign-ons"].as_u64().expect("a number");
            assert_eq!(chunk.operations * (100 - hit_percent), verified * 100, "{scheme} {hit_percent}");
        }
        trial.end(Vec::new()).unwrap_or_else(|failure| panic!("{scheme} {hit_percent}: {failure:?}"));
    }
}

/// A server with another count gives no number.
#[test]
fn another_share_is_no_measurement() {
    let files = Files::new("another-share");
    let (mut case, accounts) = remembering(&files, "api-key", 0, 50);
    case.sign_in["cache"] = json!({"time_to_live_s": 600, "entries": MANY});
    let served = case.served();
    let mut trial = Trial::open(&load_of_many(&case, &served, &accounts), 7).expect("a trial");
    trial.warm_up().expect("warm");
    trial.advance(Advance { seconds: 0.0, operations: 2 * MANY as u64 }).expect("a chunk");
    let words = trial.end(Vec::new()).map(|_| ()).map_err(Failure::into_words).expect_err("a refusal");
    assert!(words.contains("what the server remembers: it was to find"), "{words}");
}

/// A revoked credential is accepted until its time to live is over, and not after it; an expired one is
/// refused at once. A server that ignores either is not proved.
#[test]
fn what_is_remembered_is_taken_for_its_time_and_no_longer() {
    let files = Files::new("time-to-live");
    // They run in parallel, because each waits for its time.
    std::thread::scope(|scope| {
        for (number, scheme) in ["basic", "api-key", "opaque-token", "jwt"].into_iter().enumerate() {
            let files = &files;
            scope.spawn(move || is_taken_for_its_time(files, scheme, number));
        }
    });
}

fn is_taken_for_its_time(files: &Files, scheme: &'static str, number: usize) {
    let (case, accounts) = remembering(files, scheme, number, 50);
    // Arguments are the server's time to live, and the one that its clients assume.
    let tried = |server_s: u64, told_s: u64| {
        let mut case = case.clone();
        case.sign_in["cache"]["time_to_live_s"] = json!(server_s);
        case.exchange["cache"]["time_to_live_s"] = json!(told_s);
        let served = case.served();
        verify(&load_of_many(&case, &served, &accounts))
    };
    let (time_to_live_s, expected) = match scheme {
        "jwt" => (600, "a token that ran out while it was remembered"),
        _ => (1, "a credential that was revoked in the store, when 1 s were over; before that it was taken"),
    };
    let proof =
        tried(time_to_live_s, time_to_live_s).unwrap_or_else(|failure| panic!("{scheme}: {failure:?}"));
    assert!(proof.refused.iter().any(|words| words == expected), "{:?}", proof.refused);
    if scheme == "jwt" {
        let share = "1 of 2 requests by a credential that the server remembers";
        assert!(proof.accepted.iter().any(|words| words == share), "{:?}", proof.accepted);
        return;
    }
    for (server_s, told_s, expected) in [
        (600, 1, "not refused: a credential that was revoked in the store, when 1 s were over"),
        (2, 1, "not refused: a credential that was revoked in the store, when 1 s were over"),
        (1, 3, "when 3 s were over; before that it was taken: neither accepted nor refused: sign-in: "),
    ] {
        let words = tried(server_s, told_s).map(|_| ()).map_err(Failure::into_words).expect_err("a refusal");
        assert!(words.contains(expected), "{scheme} {server_s} {told_s}: {words}");
    }
}

/// The server forgets an earlier use before the credential is used for the proof.
#[test]
fn what_was_known_before_it_was_revoked_proves_nothing_about_its_time() {
    let files = Files::new("known-before");
    let (case, accounts) = remembering(&files, "api-key", 0, 50);
    let served = case.served();
    let load = load_of_many(&case, &served, &accounts);
    let path = &load.request.paths[0];
    let mut known = Probe::new(&load, Connector::clear(), path).expect("a probe");
    for _ in 0..load.users {
        known.send().map(|_| ()).expect("an answer");
    }
    std::thread::sleep(Duration::from_millis(700));
    let mut revoked = Probe::wrong(&load, Connector::clear(), path, Wrong::Own(REVOKED)).expect("a probe");
    revoked.do_wrong(REVOKED);
    let fault = revoked.send().map(|_| ()).expect_err("a refusal");
    assert_eq!(failure::WRONG_STATUS, fault.kind, "{}", fault.words);
    // There are more of them if the host was too slow for a second.
    assert!(revoked.given_before() >= 3, "{}", revoked.given_before());
    // The credential is accepted again: the store is restored.
    std::thread::sleep(Duration::from_millis(1100));
    let mut again = Probe::new(&load, Connector::clear(), path).expect("a probe");
    for _ in 0..load.users {
        again.send().map(|_| ()).expect("an answer");
    }
}

/// A proof counts with the server, for a share of none, some and all.
#[test]
fn a_proof_says_how_many_are_remembered() {
    let files = Files::new("counted");
    for (number, (hit_percent, share)) in
        [(0, "0 of 1"), (50, "1 of 2"), (100, "1 of 1")].into_iter().enumerate()
    {
        let (mut case, accounts) = remembering(&files, "opaque-token", number, hit_percent);
        case.sign_in["cache"]["time_to_live_s"] = json!(600);
        case.exchange["cache"]["time_to_live_s"] = json!(600);
        // A proof that may not change the store revokes nothing, which would wait for that time.
        let served = case.served();
        let mut exchange = case.exchange.clone();
        exchange["scheme"] = json!(case.scheme);
        exchange["accounts"] = json!({"file": accounts, "count": MANY});
        let load = case.load(&served, &accounts, json!({"exchange": exchange}));
        let proof = verify(&load).unwrap_or_else(|failure| panic!("{hit_percent} %: {failure:?}"));
        let words = format!("{share} requests by a credential that the server remembers");
        assert!(proof.accepted.contains(&words), "{:?}", proof.accepted);
    }
}

/// The client knows the number of visits in which the share is exact, and that a phase begins with the first.
#[test]
fn a_client_keeps_to_whole_shares() {
    let files = Files::new("whole");
    let (case, accounts) = remembering(&files, "api-key", 0, 50);
    let load = load_of_many(&case, &case.served(), &accounts);
    let mut sign_in = SignIn::new(&load.visitors()).unwrap_or_else(|failure| panic!("{failure:?}"));
    assert_eq!(2, sign_in.whole());
    assert!(sign_in.prepares());
    let signs_on = |sign_in: &mut SignIn| {
        sign_in.begin(&Visit::default()).expect("a visit");
        sign_in.signs_on(&Visit::default())
    };
    for _ in 0..load.users {
        assert!(signs_on(&mut sign_in));
    }
    let shares = [(); 4].map(|()| signs_on(&mut sign_in));
    assert_eq!([true, false, true, false], shares);
    assert!(signs_on(&mut sign_in));
    sign_in.enter();
    assert!(signs_on(&mut sign_in));
}

/// A share that could not be exact is refused with a reason.
#[test]
fn a_share_that_cannot_be_kept_is_refused() {
    let files = Files::new("kept");
    let (case, accounts) = remembering(&files, "api-key", 0, 90);
    let of_none = Case { scheme: "digest", ..case.clone() };
    let none = SignIn::new(&load_of_many(&of_none, &case.served(), &accounts).visitors());
    let words = none.map(|_| ()).map_err(Failure::into_words).expect_err("a refusal");
    assert_eq!("`load.exchange.cache`: digest has nothing to remember", words);
    for (cache, expected) in [
        (
            json!({"hit_percent": 90, "time_to_live_s": 60, "entries": 1_000}),
            "need a cache of at least 1027 entries",
        ),
        (json!({"hit_percent": 90, "time_to_live_s": 60, "entries": MANY}), "holds most of 3600 accounts"),
        (json!({"hit_percent": 101, "time_to_live_s": 60, "entries": ENTRIES}), "it must be at most 100 %"),
    ] {
        let served = case.served();
        let exchange =
            json!({"scheme": "api-key", "accounts": {"file": accounts, "count": MANY}, "cache": cache});
        let load = case.load(&served, &accounts, json!({"exchange": exchange}));
        let words = verify(&load).map_err(Failure::into_words).expect_err("a refusal");
        assert!(words.contains(expected), "{expected}: {words}");
    }
}
