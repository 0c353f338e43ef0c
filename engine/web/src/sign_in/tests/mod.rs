//! The client half of each scheme with its server half.

pub mod cases;
mod negotiated;
mod remembered;

use serde_json::json;

use self::cases::{ACCOUNTS, CLEAR, Case, Files, accounts_file, cases, name};
use super::SCHEMES;
use super::scheme::{Scheme, Wrong};
use crate::failure::Failure;
use crate::load::trial::Trial;
use crate::load::verify::verify;
use crate::random::Sequence;
use crate::runner::Advance;
use crate::serve::tests::Served;

/// Returns thousands of inputs of these pieces and random bytes, equal in every run.
pub fn any_bytes(pieces: &'static [&'static [u8]]) -> impl Iterator<Item = Vec<u8>> {
    let mut random = Sequence::of(1, [0, 0]);
    (0..50_000).map(move |_| {
        let mut bytes = Vec::new();
        for _ in 0..random.under(8) {
            match random.under(pieces.len() as u64 + 1) as usize {
                place if place < pieces.len() => bytes.extend_from_slice(pieces[place]),
                _ => bytes.push(random.under(256) as u8),
            }
        }
        bytes
    })
}

fn scheme(name: &str) -> &'static Scheme {
    SCHEMES.iter().find(|scheme| scheme.name == name).expect("a scheme")
}

#[test]
fn every_scheme_is_tried() {
    let files = Files::new("tried");
    let cases = cases(&files);
    for Scheme { name, server, .. } in SCHEMES {
        assert!(server.is_none() || cases.iter().any(|case| case.scheme == *name), "{name}");
    }
}

/// Right inputs are accepted with the user's name, and all wrong ones are refused.
#[test]
fn every_scheme_is_proved() {
    let files = Files::new("proved");
    let accounts = accounts_file(&files);
    let kinds = |case: Case| [(case.clone(), "request"), (case, "sign-on")];
    for (mut case, kind) in cases(&files).into_iter().flat_map(kinds) {
        let scheme = scheme(case.scheme);
        if kind == "sign-on" && !scheme.has_sign_on {
            continue;
        }
        case.exchange["operation"] = json!(kind);
        let served = case.served();
        let load = case.load(&served, &accounts, json!({}));
        let proof = verify(&load).unwrap_or_else(|failure| panic!("{} {kind}: {failure:?}", case.scheme));
        if case.scheme != "anonymous" {
            let saw = "the user that signed in is the one that the server saw".to_owned();
            assert!(proof.accepted.contains(&saw), "{:?}", proof.accepted);
        }
        let expected: Vec<&str> = std::iter::once("a path that is not there")
            .chain(scheme.refused.iter().filter(|wrong| case.tries(**wrong)).map(|wrong| wrong.words()))
            .collect();
        let left = scheme.refused.iter().filter(|wrong| !case.tries(**wrong)).map(|wrong| wrong.words());
        for words in left {
            let is_said = |list: &[String]| list.iter().any(|one| one.starts_with(words));
            assert!(is_said(&proof.not_tried) && !is_said(&proof.refused), "{words}: {:?}", proof.refused);
        }
        // The refusals of TLS follow.
        assert_eq!(expected, proof.refused[..expected.len()], "{} {kind}", case.scheme);
        let revoked = proof.refused.contains(&"a client with a revoked certificate".to_owned());
        assert_eq!(case.tls != CLEAR, revoked, "{:?}", proof.refused);
    }
}

/// A server answers at its paths for a form and for ending, if it has them, and counts its cache, if it has
/// one.
#[test]
fn a_server_has_a_form_an_end_and_a_count_where_it_says() {
    let files = Files::new("places");
    for (number, case) in cases(&files).into_iter().enumerate() {
        let mut settings = case.sign_in.clone();
        for place in ["/held/at", "/store/sql/at"] {
            if let Some(copy) = settings.pointer_mut(place) {
                *copy = json!(files.0.join(format!("own-{number}{}", place.replace('/', "-"))));
            }
        }
        let server = scheme(case.scheme).server.expect("a server");
        let made = |settings: &serde_json::Value| {
            server(settings.as_object().expect("fields"))
                .unwrap_or_else(|failure| panic!("{}: {failure:?}", case.scheme))
        };
        let mut server = made(&settings);
        let has_form = ["form", "session-cookie"].contains(&case.scheme);
        assert_eq!(has_form, server.form_path().is_some(), "{}", case.scheme);
        let ends = ["session-cookie", "opaque-token"].contains(&case.scheme);
        assert_eq!(ends, server.end_path().is_some(), "{}", case.scheme);
        assert!(server.found().is_none(), "{}", case.scheme);
        if ["basic", "jwt", "opaque-token", "api-key"].contains(&case.scheme) {
            for place in ["/held/at", "/store/sql/at"] {
                if let Some(copy) = settings.pointer_mut(place) {
                    *copy = json!(format!("{}-remembering", copy.as_str().expect("a path")));
                }
            }
            settings["cache"] = json!({"time_to_live_s": 1, "entries": 1});
            let mut server = made(&settings);
            assert!(server.found().is_some(), "{}", case.scheme);
            assert_eq!(ends, server.end_path().is_some(), "{}", case.scheme);
        }
    }
}

/// Users sign in repeatedly, on kept and on new connections.
#[test]
fn every_scheme_carries_a_load() {
    let files = Files::new("load");
    let accounts = accounts_file(&files);
    for case in cases(&files) {
        let served = case.served();
        let mut kinds = vec!["request"];
        if scheme(case.scheme).has_sign_on {
            kinds.push("sign-on");
        }
        for (kind, connection) in kinds.iter().flat_map(|kind| [(kind, "user"), (kind, "new")]) {
            let mut case = case.clone();
            case.exchange["operation"] = json!(kind);
            let load = case.load(&served, &accounts, json!({"connection": connection}));
            let chunk = Trial::open(&load, 7)
                .and_then(|mut trial| trial.advance(Advance { seconds: 0.0, operations: 60 }))
                .unwrap_or_else(|failure| panic!("{} {kind} {connection}: {failure:?}", case.scheme));
            assert!(chunk.operations >= 60, "{} {kind} {connection}", case.scheme);
            let observed = serde_json::to_value(&chunk.observed).expect("a record");
            let signs_on = match case.scheme {
                "anonymous" => false,
                "form" | "session-cookie" => *kind == "sign-on",
                "client-certificate" => connection == "new",
                _ => true,
            };
            let expected = if signs_on { chunk.operations } else { 0 };
            assert_eq!(Some(expected), observed["sign-ons"].as_u64(), "{} {kind} {connection}", case.scheme);
            let round_trips = observed["round-trips"].as_u64().expect("a number");
            let is_login = *kind == "sign-on";
            assert_eq!(is_login, round_trips > chunk.operations, "{} {kind} {connection}", case.scheme);
            let header = observed["request-header"].as_u64().expect("a number") / round_trips;
            assert!((40..2000).contains(&header), "{} {kind} {connection}: {header}", case.scheme);
        }
    }
}

/// If each request is looked up, the next one after an account was closed is refused; a cookie from before is
/// accepted until it ends.
#[test]
fn an_account_that_is_closed_is_refused_where_it_is_looked_up() {
    let files = Files::new("closed");
    let accounts = accounts_file(&files);
    let mut tried = Vec::new();
    for case in cases(&files) {
        let Some(copy) = case.sign_in["store"]["sql"]["at"].as_str() else { continue };
        let served = case.served();
        let load = case.load(&served, &accounts, json!({"users": 1}));
        let mut trial = Trial::open(&load, 7).expect("a trial");
        let mut asked = || trial.advance(Advance { seconds: 0.0, operations: 1 });
        asked().expect("an answer");
        let closed = rusqlite::Connection::open(copy).expect("the server's database");
        closed.execute("DELETE FROM accounts", ()).expect("no account");
        let was_given_something = ["form", "session-cookie"].contains(&case.scheme);
        match asked().map(|_| ()).map_err(Failure::into_words) {
            Ok(()) => assert!(was_given_something, "{}", case.scheme),
            Err(words) => {
                assert!(!was_given_something && words.contains("wrong status"), "{}: {words}", case.scheme);
            }
        }
        tried.push(case.scheme);
    }
    assert_eq!(
        vec!["basic", "form", "session-cookie", "digest", "digest", "hmac", "api-key", "api-key", "api-key"],
        tried
    );
}

/// An ended session redirects to the form, and the user signs on again. The schemes' own tests check its
/// lifetime with a simulated clock.
#[test]
fn a_login_that_has_ended_leads_to_the_form_again() {
    let files = Files::new("ended");
    let accounts = accounts_file(&files);
    let mut tried = 0;
    for case in cases(&files).iter().filter(|case| case.scheme == "session-cookie") {
        let served = case.served();
        let load = case.load(&served, &accounts, json!({"users": 1, "lead": false}));
        let mut trial = Trial::open(&load, 7).expect("a trial");
        let mut sign_ons = || {
            let chunk = trial.advance(Advance { seconds: 0.0, operations: 1 }).expect("an answer");
            serde_json::to_value(&chunk.observed).expect("a record")["sign-ons"].as_u64()
        };
        assert_eq!(Some(0), sign_ons());
        let copy = case.sign_in["held"]["at"].as_str().expect("the server's copy");
        let ended = rusqlite::Connection::open(copy).expect("the server's database");
        ended.execute("DELETE FROM held", ()).expect("no session");
        assert_eq!(Some(1), sign_ons());
        assert_eq!(Some(0), sign_ons());
        tried += 1;
    }
    assert_eq!(2, tried);
}

/// A wrong password fails the operation, and the message quotes the status.
#[test]
fn a_wrong_password_is_no_answer() {
    let files = Files::new("wrong");
    let text: String = (0..ACCOUNTS).map(|account| format!("{}\twrong\t0\n", name(account))).collect();
    let accounts = files.put("wrong.tsv", &text);
    for case in cases(&files).iter().filter(|case| scheme(case.scheme).refused.contains(&Wrong::Password)) {
        let served = case.served();
        let failure = Trial::open(&case.load(&served, &accounts, json!({})), 7)
            .and_then(|mut trial| trial.advance(Advance { seconds: 0.0, operations: 1 }).map(|_| ()));
        let words = failure.expect_err("a refusal").into_words();
        assert!(words.contains("wrong status"), "{}: {words}", case.scheme);
    }
}

/// An impossible sign-in is refused with the field's name.
#[test]
fn a_sign_in_that_makes_no_sense_is_refused_by_name() {
    let files = Files::new("sense");
    let accounts = accounts_file(&files);
    let here = |count: usize| json!({"file": accounts, "count": count});
    let absent = json!({"file": files.0.join("absent"), "count": 1});
    for (exchange, expected) in [
        (
            json!({"scheme": "basics"}),
            "`load.exchange.scheme` is \"basics\"; there are: anonymous, api-key, basic,",
        ),
        (json!({"scheme": "basic"}), "`load.exchange` has no `accounts`"),
        (json!({"scheme": "client-certificate"}), "needs a TLS identity with a common name"),
        (
            json!({"scheme": "jwt", "accounts": here(1), "signature": "none", "key": "", "verification_key": ""}),
            "unknown variant `none`",
        ),
        (
            json!({"scheme": "basic", "accounts": here(1), "colour": 1}),
            "`load.exchange`: unknown field `colour`",
        ),
        (json!({"scheme": "hmac", "accounts": here(1), "operation": "sign-on"}), "hmac has no sign-on"),
        (json!({"scheme": "basic", "accounts": here(9)}), "9 from line 1 on were requested; the file has 5"),
        (json!({"scheme": "basic", "accounts": absent}), "absent: No such file"),
    ] {
        let served = Served::plain();
        let case = Case { scheme: "basic", exchange: json!({}), sign_in: json!({}), tls: CLEAR };
        let load = case.load(&served, &accounts, json!({"exchange": exchange}));
        let words = verify(&load).map_err(Failure::into_words).expect_err("a refusal");
        assert!(words.contains(expected), "{expected}: {words}");
    }
}

/// A server that cannot check credentials does not start.
#[test]
fn a_server_that_could_not_sign_in_does_not_start() {
    let files = Files::new("server");
    let (empty, other) = (files.put("empty", ""), files.put("other", "no database"));
    let absent = files.0.join("absent");
    let at = |number: u32| files.0.join(format!("copy-{number}"));
    for (sign_in, expected) in [
        (
            json!({"scheme": "basics"}),
            "`sign_in.scheme` is \\\"basics\\\"; there are: anonymous, api-key, basic,",
        ),
        (json!({"scheme": "basic"}), "`sign_in`: missing field `store`"),
        (json!({"scheme": "basic", "store": {"file": empty}}), "the file has no account"),
        (json!({"scheme": "basic", "store": {"file": other}}), "line 1 must be a name, a colon"),
        (json!({"scheme": "basic", "store": {"file": absent}}), "absent: No such file"),
        (json!({"scheme": "basic", "store": {"sql": {"from": absent, "at": at(1)}}}), "absent: No such file"),
        (
            json!({"scheme": "basic", "store": {"sql": {"from": other, "at": at(2)}}}),
            "other: file is not a database",
        ),
        (json!({"scheme": "basic", "store": {"sql": {"from": empty, "at": at(3)}}}), "no such table"),
        (json!({"scheme": "client-certificate"}), "needs certificates of clients"),
        (
            json!({"scheme": "opaque-token", "held": {"from": empty, "at": files.0.join("at")}}),
            "no such table",
        ),
        (
            json!({"scheme": "jwt", "signature": "hs256", "verification_key": empty}),
            "the secret must have at least 32 bytes",
        ),
        (
            json!({"scheme": "digest", "store": {"file": absent}, "algorithm": "sha-1"}),
            "unknown variant `sha-1`",
        ),
    ] {
        let config = json!({"listen": "127.0.0.1:0", "sign_in": sign_in});
        let (status, line, _) = crate::serve::tests::refused(&config.to_string());
        assert_eq!(Some(3), status.code(), "{sign_in}");
        assert!(line.contains(expected), "{expected}: {line}");
    }
}
