//! Refusals of the lab's own server, their order and names, and servers that are not proved because they
//! serve more than they were configured for.

use serde_json::{Value, json};
use tollbar_testing::{AUTHORITY, REVOCATIONS, certificate};

use super::load;
use crate::failure::Failure;
use crate::load::verify::verify;
use crate::serve::tests::{Served, rows};
use crate::sign_in::tests::cases::Files;

fn identity(name: &str) -> Value {
    let identity = certificate(name);
    json!({"chain_pem": identity.chain_pem, "key_pem": identity.key_pem})
}

/// Replaces these fields.
fn with(mut fields: Value, more: Value) -> Value {
    fields.as_object_mut().expect("fields").extend(more.as_object().expect("fields").clone());
    fields
}

/// Returns the settings that the server and its clients share.
fn both(protocol: &str) -> Value {
    json!({"protocol": protocol, "key_exchange": "x25519", "cipher": "aes-128-gcm"})
}

fn of_server(protocol: &str) -> Value {
    with(both(protocol), json!({"identities": [identity("ecdsa-p256")]}))
}

fn of_client(protocol: &str) -> Value {
    with(both(protocol), json!({"signer": "ecdsa", "certificate_pem": certificate("ecdsa-p256").chain_pem}))
}

type Proved = Result<[Vec<String>; 3], String>;

/// Returns the accepted, refused and untried inputs of a server with this TLS, for these kinds of clients.
fn proved_by(server: &Value, kinds: Value, change: Value) -> Proved {
    let served = Served::start(&json!({"listen": "127.0.0.1:0", "tls": server}), None);
    let fields = json!({"clients": kinds, "components": {"web": served.process.id()},
        "request": {"paths": ["/bytes/5"]}});
    let proof = verify(&load(served.address, with(fields, change)));
    proof.map(|proof| [proof.accepted, proof.refused, proof.not_tried]).map_err(Failure::into_words)
}

fn proved(server: &Value, client: Value) -> Proved {
    proved_by(server, json!([{"share": 1, "tls": client}]), json!({}))
}

const ALWAYS_REFUSED: [&str; 3] = [
    "a path that is not there",
    "a request in clear text",
    "a server whose certificate is not the one expected",
];

#[test]
fn everything_that_the_lab_did_not_configure_is_refused() {
    for (protocol, other) in [("tls-1.3", "TLS 1.2"), ("tls-1.2", "TLS 1.3")] {
        let [accepted, refused, not_tried] =
            proved(&of_server(protocol), of_client(protocol)).expect("a proof");
        assert_eq!("status 200 and 5 bytes", accepted[0]);
        assert!(accepted[1].starts_with("negotiated ") && accepted[1].contains("ECDSA"), "{accepted:?}");
        assert_eq!(2, accepted.len());
        let expected = [
            &format!("a client that speaks {other} only"),
            "a client that offers ecdhe-p384 only",
            "a client that takes ed25519 certificates only",
            "a session that was offered again: the second connection was a full handshake",
        ];
        assert_eq!([&ALWAYS_REFUSED[..], &expected].concat(), refused);
        assert_eq!(Vec::<String>::new(), not_tried);
    }
}

/// A client with a certificate is refused without it, and with a revoked one. In TLS 1.2 its curve is among
/// the server's groups, so that no other exchange is left to refuse.
#[test]
fn clients_without_a_good_certificate_are_refused() {
    let server = json!({"identities": [identity("rsa-2048")], "client_authority_pem": AUTHORITY,
        "client_revocations_pem": REVOCATIONS});
    let server = with(of_server("tls-1.2"), server);
    let client = json!({"signer": "rsa", "certificate_pem": certificate("rsa-2048").chain_pem,
        "identity": identity("client"), "revoked": identity("revoked")});
    let client = with(of_client("tls-1.2"), client);
    let [_, refused, _] = proved(&server, client.clone()).expect("a proof");
    let expected = [
        "a client that speaks TLS 1.3 only",
        "a client that offers ecdhe-p384 only",
        "a client that takes ed25519 certificates only",
        "a client without a certificate",
        "a client with a revoked certificate",
        "a session that was offered again: the second connection was a full handshake",
    ];
    assert_eq!([&ALWAYS_REFUSED[..], &expected].concat(), refused);
    let p384 = with(client.clone(), json!({"key_exchange": "ecdhe-p384"}));
    let kinds = json!([{"share": 1, "tls": client}, {"share": 1, "tls": p384}]);
    let [_, _, not_tried] =
        proved_by(&with(server, json!({"key_exchange": null})), kinds, json!({})).expect("a proof");
    let none =
        "a client that offers another key exchange only: there is none that no client of this load asks for";
    assert_eq!([1, 2].map(|number| format!("client {number}: {none}")).to_vec(), not_tried);
}

/// A session that must be resumed is resumed, and is then not a refusal; nor is one if the server resumes for
/// other clients.
#[test]
fn a_session_is_resumed_where_it_is_to_be() {
    for protocol in ["tls-1.2", "tls-1.3"] {
        let server = with(of_server(protocol), json!({"resumption": "ticket"}));
        let [accepted, refused, _] =
            proved(&server, with(of_client(protocol), json!({"resume": true}))).expect("a proof");
        assert_eq!(
            Some("a second connection resumed the session of the first"),
            accepted.last().map(String::as_str)
        );
        assert!(!refused.iter().any(|what| what.contains("session")), "{refused:?}");
        // The proof fails if the server issues no session, and if it resumes one that it must not.
        let words = proved(&of_server(protocol), with(of_client(protocol), json!({"resume": true})));
        assert_eq!(Err("not accepted: a session that was offered again was not resumed".to_owned()), words);
        assert_eq!(
            Err("not refused: a session that was offered again".to_owned()),
            proved(&server, of_client(protocol))
        );
        let kinds = json!([{"share": 1, "server_resumes": true, "tls": of_client(protocol)}]);
        let [_, refused, _] = proved_by(&server, kinds, json!({})).expect("a proof");
        assert!(!refused.iter().any(|what| what.contains("session")), "{refused:?}");
    }
}

/// A user's own server that resumes no session is a finding, not a failure.
#[test]
fn a_server_of_the_users_own_need_not_resume() {
    let kinds = json!([{"share": 1, "tls": with(of_client("tls-1.3"), json!({"resume": true}))}]);
    let [accepted, _, _] =
        proved_by(&of_server("tls-1.3"), kinds, json!({"is_lab": false})).expect("a proof");
    assert_eq!(Some("a session that was offered again was not resumed"), accepted.last().map(String::as_str));
}

/// A server that serves more than was requested is not proved, and the message names what it serves.
#[test]
fn a_server_that_serves_more_is_not_proved() {
    for (server, client, words) in [
        (json!({"protocol": null}), json!({}), "a client that speaks TLS 1.2 only"),
        (
            json!({"protocol": null, "key_exchange": null}),
            json!({"key_exchange": "x25519mlkem768"}),
            "a client that speaks TLS 1.2 only",
        ),
        (json!({"key_exchange": null}), json!({}), "a client that offers ecdhe-p384 only"),
        (
            json!({"identities": [identity("ecdsa-p256"), identity("ed25519")]}),
            json!({}),
            "a client that takes ed25519 certificates only",
        ),
        (
            json!({"client_authority_pem": AUTHORITY}),
            json!({"identity": identity("client"), "revoked": identity("revoked")}),
            "a client with a revoked certificate",
        ),
    ] {
        let served = proved(&with(of_server("tls-1.3"), server), with(of_client("tls-1.3"), client));
        assert_eq!(Err(format!("not refused: {words}")), served);
    }
    // A server that accepts everyone without a certificate is not proved either.
    let client = with(of_client("tls-1.3"), json!({"identity": identity("client")}));
    assert_eq!(
        Err("not refused: a client without a certificate".to_owned()),
        proved(&of_server("tls-1.3"), client)
    );
}

/// A setting that one kind of client requests is not tried as a refusal for another; a kind without a share
/// requests nothing.
#[test]
fn what_other_clients_ask_for_is_not_tried() {
    let server = with(
        of_server("tls-1.3"),
        json!({"protocol": null, "cipher": null, "key_exchange": null,
            "identities": [identity("ecdsa-p256"), identity("rsa-2048")]}),
    );
    let any = |fields: Value| {
        with(of_client("tls-1.3"), with(json!({"certificate_pem": null, "cipher": null}), fields))
    };
    let p384 = any(json!({"key_exchange": "ecdhe-p384"}));
    let kind = |share: u32, tls: &Value| json!({"share": share, "tls": tls});
    let kinds = json!([
        kind(1, &any(json!({}))),
        kind(1, &any(json!({"protocol": "tls-1.2", "signer": "rsa"}))),
        kind(1, &p384),
        kind(1, &any(json!({"key_exchange": "ecdhe-p256"}))),
        kind(0, &any(json!({"signer": "ed25519"}))),
    ]);
    let [accepted, refused, not_tried] = proved_by(&server, kinds, json!({})).expect("a proof");
    let of_first = |list: &[String]| -> Vec<String> {
        list.iter().filter_map(|line| line.strip_prefix("client 1: ").map(str::to_owned)).collect()
    };
    assert!(
        ["client 1: ", "client 2: ", "client 4: "]
            .iter()
            .all(|name| accepted.iter().any(|line| line.starts_with(name)))
    );
    assert!(!accepted.iter().any(|line| line.starts_with("client 5: ")), "{accepted:?}");
    assert!(
        of_first(&refused).contains(&"a client that takes ed25519 certificates only".to_owned()),
        "{refused:?}"
    );
    assert_eq!(
        vec![
            "a client that speaks TLS 1.2 only: other clients of this load configure it".to_owned(),
            "a client that offers another key exchange only: there is none that no client of this load asks for"
                .to_owned(),
        ],
        of_first(&not_tried)
    );
    // A client that requests no version leaves none to refuse.
    let server = with(of_server("tls-1.3"), json!({"protocol": null}));
    let [_, refused, not_tried] =
        proved(&server, with(of_client("tls-1.3"), json!({"protocol": null}))).expect("a proof");
    assert_eq!(
        vec!["a client that speaks another version of TLS only: no version is asked for".to_owned()],
        not_tried
    );
    assert!(refused.contains(&"a client that offers ecdhe-p384 only".to_owned()), "{refused:?}");
}

/// Each page uses a row, and a refused request uses none; a server with another count is not proved.
#[test]
fn each_page_uses_a_row() {
    let directory = rows::Directory::new("proofs");
    let served = Served::start(&rows::config(&directory, "read", json!({"rows": 20})), None);
    let asked = |fields: Value| {
        let fields = with(
            json!({"components": {"web": served.process.id()}, "request": {"paths": ["/bytes/5"]}}),
            fields,
        );
        verify(&load(served.address, fields)).map(|proof| proof.accepted).map_err(Failure::into_words)
    };
    let accepted = asked(json!({"rows": {"connection": "kept"}})).expect("a proof");
    assert_eq!(
        vec!["status 200 and 5 bytes", "3 pages with a row each, over the one connection that is kept"],
        accepted
    );
    assert_eq!(vec!["status 200 and 5 bytes"], asked(json!({})).expect("a proof"));
    let other = asked(json!({"rows": {"connection": "each-request"}})).expect_err("no proof");
    assert!(other.starts_with("rows that were used: it was to find "), "{other}");
}

/// A refused sign-in gets no page, and uses no row.
#[test]
fn what_is_refused_uses_no_row() {
    let directory = rows::Directory::new("refused");
    let files = Files::new("refused-rows");
    let hash = bcrypt::hash("secret", 4).expect("a hash");
    let store = files.put("store", &format!("u1:{hash}\n"));
    let accounts = files.put("accounts.tsv", "u1\tsecret\t0\n");
    let sign_in = json!({"sign_in": {"scheme": "basic", "store": {"file": store}}});
    let config = with(rows::config(&directory, "read", json!({"rows": 20})), sign_in);
    let served = Served::start(&config, None);
    let exchange = json!({"scheme": "basic", "accounts": {"file": accounts, "count": 1}});
    let asked = |rows: Value| {
        let fields = json!({"components": {"web": served.process.id()}, "request": {"paths": ["/bytes/5"]},
            "exchange": exchange, "rows": rows});
        let proof = verify(&load(served.address, fields));
        proof.map(|proof| proof.accepted).map_err(Failure::into_words).expect("a proof")
    };
    let none = "no row was used for a sign-in that was refused".to_owned();
    assert_eq!(Some(&none), asked(json!({"connection": "kept"})).last());
    assert!(!asked(json!(null)).contains(&none));
}
