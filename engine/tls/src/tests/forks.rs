//! A libssl of AWS-LC or BoringSSL with rustls, OpenSSL and itself, if `TOLLBAR_LIBCRYPTO` names its
//! libcrypto. These tests are separate, because the other side may choose its suite of TLS 1.3.

use super::*;
use Cipher::*;
use KeyExchange::*;
use Protocol::*;

fn fork() -> Option<Subject> {
    let subject = Subject { library: Library::Libssl, libcrypto: Some(named()?), today: false };
    let name = client(&subject.client(Tls13)).library();
    (!name.starts_with("openssl")).then_some(subject)
}

/// Returns pairs of client and server, of which at least one is the fork; true if both are.
fn fork_pairs() -> Vec<(Subject, Subject, bool)> {
    let Some(fork) = fork() else {
        // No machine is required to have one.
        crate::skipped("TOLLBAR_LIBCRYPTO names no libcrypto of AWS-LC or BoringSSL");
        return Vec::new();
    };
    let rustls = Subject { library: Library::Rustls, libcrypto: None, today: true };
    let openssl = Subject { library: Library::Libssl, libcrypto: None, today: false };
    let with_others = [rustls, openssl]
        .into_iter()
        .flat_map(|other| [(fork.clone(), other.clone(), false), (other, fork.clone(), false)]);
    with_others.chain([(fork.clone(), fork.clone(), true)]).collect()
}

#[test]
fn what_is_asked_of_a_fork_is_negotiated() {
    let rows = [
        (Tls12, EcdheP256, Aes128Gcm, "rsa-2048"),
        (Tls12, EcdheP384, Aes256Gcm, "rsa-2048"),
        (Tls12, X25519, ChaCha20Poly1305, "rsa-2048"),
        (Tls12, X25519, Aes128Gcm, "ecdsa-p256"),
        (Tls12, X25519, Aes256Gcm, "ed25519"),
        (Tls13, X25519, Aes128Gcm, "rsa-2048"),
        (Tls13, EcdheP256, Aes256Gcm, "ecdsa-p256"),
        (Tls13, EcdheP384, ChaCha20Poly1305, "ecdsa-p384"),
        (Tls13, X25519, Aes128Gcm, "ed25519"),
        (Tls13, X25519MlKem768, Aes128Gcm, "ecdsa-p256"),
    ];
    for (near, far, alone) in fork_pairs() {
        for (protocol, key_exchange, cipher, name) in rows {
            let is_new = key_exchange == X25519MlKem768;
            if is_new
                && [&near, &far].iter().any(|one| one.library == Library::Libssl && one.libcrypto.is_none())
                || alone && protocol == Tls13 && cipher != Aes128Gcm
            {
                continue;
            }
            let (key_exchange, cipher) = (Some(key_exchange), Some(cipher));
            let signer = Some(identity(name).key().expect("a key").signer());
            let certificate_pem = Some(identity(name).chain_pem);
            let asked = ClientSpec { key_exchange, cipher, signer, certificate_pem, ..near.client(protocol) };
            let identities = vec![identity(name)];
            let given = ServerSpec { key_exchange, cipher, identities, ..far.server(protocol) };
            let between = format!("{near:?} {far:?} {asked:?}");
            let mut met = meet(&client(&asked), &server(&given))
                .unwrap_or_else(|broken| panic!("{broken:?} {between}"));
            let got = met.client.negotiated().expect("what was negotiated");
            assert_eq!(Ok(()), asked.expects(&got), "{between}");
            assert_eq!(der_bytes(&identity(name)), got.certificate_bytes, "{between}");
            let seen = met.server.negotiated().expect("what the server negotiated");
            assert_eq!((&got.version, &got.suite, &got.group), (&seen.version, &seen.suite, &seen.group));
            let data = vec![7; 70_000];
            assert_eq!(Ok(&data), carry(&mut met.client, &mut met.server, &data).as_ref(), "{between}");
            assert_eq!(Ok(&data), carry(&mut met.server, &mut met.client, &data).as_ref(), "{between}");
            met.server.say_goodbye();
            drop(met.server);
            wait_for(&met.client);
            assert_eq!(Some(0), met.client.read(&mut [0; 10]).ok(), "{between}");
        }
    }
}

#[test]
fn a_fork_refuses_another_certificate_and_clients_without_one() {
    for (near, far, _) in fork_pairs() {
        for protocol in [Tls12, Tls13] {
            let expected = Some(identity("ecdsa-p384").chain_pem);
            let held_to = client(&ClientSpec { certificate_pem: expected, ..near.client(protocol) });
            let broken = meet(&held_to, &server(&far.server(protocol))).expect_err("another certificate");
            let words = broken.client.expect("the client's words");
            assert!(words.contains("another certificate"), "{words} of {near:?} {far:?}");
            let client_authority_pem = Some(AUTHORITY.to_owned());
            let careful = server(&ServerSpec { client_authority_pem, ..far.server(protocol) });
            for (shows, is_let_in) in [(Some("client"), true), (None, false)] {
                let spec = ClientSpec { identity: shows.map(identity), ..near.client(protocol) };
                // In TLS 1.3 a client is done before the server has seen its certificate.
                let done = meet(&client(&spec), &careful)
                    .is_ok_and(|mut met| carry(&mut met.client, &mut met.server, b"x").is_ok());
                assert_eq!(is_let_in, done, "{shows:?} {protocol:?} {near:?} {far:?}");
            }
        }
    }
}

#[test]
fn sessions_of_a_fork_are_resumed_or_it_says_why_not() {
    use Resumption::{SessionId, Ticket};
    for (near, far, _) in fork_pairs() {
        for (protocol, resumption) in
            [(Tls12, SessionId), (Tls12, Ticket), (Tls13, SessionId), (Tls13, Ticket)]
        {
            let given = ServerSpec { resumption, ..far.server(protocol) };
            let is_fork = far.libcrypto.is_some();
            if (is_fork, protocol, resumption) == (true, Tls13, SessionId) {
                let refusal = Server::new(&given).map(drop);
                assert!(
                    matches!(refusal, Err(Failure::Unsupported(words)) if words.contains("tickets alone"))
                );
                continue;
            }
            let client = client(&ClientSpec { resume: true, ..near.client(protocol) });
            let (_, then) = resumption::resumed(&client, &server(&given));
            assert_eq!(resumption::USERS, then, "{near:?} {far:?} {protocol:?} {resumption:?}");
        }
    }
}

/// A fork has one order, and refuses the other.
#[test]
fn a_fork_does_not_encrypt_before_it_authenticates() {
    for (near, far, _) in fork_pairs() {
        for (subject, client_side) in
            [(near, true), (far, false)].into_iter().filter(|(one, _)| one.libcrypto.is_some())
        {
            let order = Some(MacOrder::EncryptThenMac);
            let refusal = if client_side {
                Client::new(&ClientSpec {
                    mac_order: order,
                    cipher: Some(Aes128Cbc),
                    ..subject.client(Tls12)
                })
                .map(drop)
            } else {
                Server::new(&ServerSpec {
                    mac_order: order,
                    cipher: Some(Aes128Cbc),
                    ..subject.server(Tls12)
                })
                .map(drop)
            };
            assert!(
                matches!(&refusal, Err(Failure::Unsupported(words)) if words.contains("encrypt-then-MAC")),
                "{refusal:?}"
            );
        }
    }
}
