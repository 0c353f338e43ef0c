//! Requested parameters are negotiated, and data arrive both ways.

use super::*;
use By::*;
use Cipher::*;
use KeyExchange::*;
use Protocol::*;

/// Libraries that support a row.
#[derive(Clone, Copy, PartialEq)]
enum By {
    All,
    /// Libssl only; rustls does not have it.
    Libssl,
    /// All except OpenSSL before 3.5.
    Today,
    /// OpenSSL since 3.5 only; rustls does not have it.
    NewLibssl,
}

type Row = (Protocol, KeyExchange, Cipher, &'static str, By, &'static str, &'static str);

/// Rows of the request (protocol, exchange, cipher, certificate) and the expectation (library, suite, group).
const TABLE: [Row; 26] = [
    (Tls12, EcdheP256, Aes128Gcm, "rsa-2048", All, "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "secp256r1"),
    (Tls12, EcdheP384, Aes256Gcm, "rsa-2048", All, "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "secp384r1"),
    (Tls12, X25519, ChaCha20Poly1305, "rsa-2048", All, ECDHE_RSA_CHACHA, "x25519"),
    (Tls12, X25519, Aes128Gcm, "ecdsa-p256", All, "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "x25519"),
    (Tls12, EcdheP256, Aes128Gcm, "ecdsa-p384", All, "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "secp256r1"),
    (Tls12, X25519, Aes256Gcm, "ed25519", All, "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "x25519"),
    (Tls13, X25519, Aes128Gcm, "rsa-2048", All, "TLS_AES_128_GCM_SHA256", "x25519"),
    (Tls13, EcdheP256, Aes256Gcm, "ecdsa-p256", All, "TLS_AES_256_GCM_SHA384", "secp256r1"),
    (Tls13, EcdheP384, ChaCha20Poly1305, "ecdsa-p384", All, "TLS_CHACHA20_POLY1305_SHA256", "secp384r1"),
    (Tls13, X25519, Aes128Gcm, "ed25519", All, "TLS_AES_128_GCM_SHA256", "x25519"),
    (Tls13, X25519MlKem768, Aes128Gcm, "ecdsa-p256", Today, "TLS_AES_128_GCM_SHA256", "X25519MLKEM768"),
    (Tls13, X25519, Aes128Gcm, "ml-dsa-65", Today, "TLS_AES_128_GCM_SHA256", "x25519"),
    (Tls13, P256MlKem768, Aes128Gcm, "ecdsa-p256", Today, "TLS_AES_128_GCM_SHA256", "SecP256r1MLKEM768"),
    (Tls13, MlKem768, Aes128Gcm, "ecdsa-p256", Today, "TLS_AES_128_GCM_SHA256", "MLKEM768"),
    (Tls13, MlKem1024, Aes256Gcm, "ecdsa-p384", Today, "TLS_AES_256_GCM_SHA384", "MLKEM1024"),
    (Tls13, MlKem1024, Aes256Gcm, "ml-dsa-87", Today, "TLS_AES_256_GCM_SHA384", "MLKEM1024"),
    (Tls13, P384MlKem1024, Aes256Gcm, "ed25519", NewLibssl, "TLS_AES_256_GCM_SHA384", "SecP384r1MLKEM1024"),
    (Tls12, Rsa, Aes128Gcm, "rsa-2048", Libssl, "TLS_RSA_WITH_AES_128_GCM_SHA256", "RSA"),
    (Tls12, Rsa, Aes128Cbc, "rsa-2048", Libssl, "TLS_RSA_WITH_AES_128_CBC_SHA", "RSA"),
    (Tls12, Rsa, Aes256Gcm, "rsa-1024", Libssl, "TLS_RSA_WITH_AES_256_GCM_SHA384", "RSA"),
    (Tls12, Dhe, Aes128Gcm, "rsa-2048", Libssl, "TLS_DHE_RSA_WITH_AES_128_GCM_SHA256", "DHE 2048 bits"),
    (Tls12, Dhe, Aes128Cbc, "rsa-1024", Libssl, "TLS_DHE_RSA_WITH_AES_128_CBC_SHA", "DHE 2048 bits"),
    (Tls12, EcdheP256, Aes128Cbc, "rsa-2048", Libssl, "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "secp256r1"),
    (Tls12, X25519, Aes128Cbc, "ecdsa-p256", Libssl, "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", "x25519"),
    (Tls12, EcdheP256, Aes128Gcm, "rsa-1024", Libssl, "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "secp256r1"),
    (Tls13, X25519, Aes128Gcm, "rsa-1024", Libssl, "TLS_AES_128_GCM_SHA256", "x25519"),
];
const ECDHE_RSA_CHACHA: &str = "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256";

impl Subject {
    fn speaks(&self, by: By) -> bool {
        match by {
            All => true,
            Libssl => self.library == Library::Libssl,
            Today => self.today,
            NewLibssl => self.speaks(Libssl) && self.today,
        }
    }
}

fn asked(row: &Row, near: &Subject, far: &Subject) -> (ClientSpec, ServerSpec) {
    let (protocol, key_exchange, cipher, name, ..) = *row;
    let key = identity(name).key().expect("a key");
    let client = ClientSpec {
        key_exchange: Some(key_exchange),
        cipher: Some(cipher),
        signer: Some(key.signer()),
        certificate_pem: Some(identity(name).chain_pem),
        rsa_bits: if name == "rsa-1024" { 1024 } else { 0 },
        ..near.client(protocol)
    };
    let server = ServerSpec {
        key_exchange: Some(key_exchange),
        cipher: Some(cipher),
        identities: vec![identity(name)],
        dh_parameters_pem: Some(DH_2048.to_owned()),
        ..far.server(protocol)
    };
    (client, server)
}

/// Each combination is negotiated exactly as requested, by each library that supports it with each other.
#[test]
fn what_is_asked_is_negotiated() {
    for row in &TABLE {
        let (protocol, _, cipher, name, by, suite, group) = *row;
        for (near, far) in pairs() {
            let (client_spec, server_spec) = asked(row, &near, &far);
            if !near.speaks(by) || !far.speaks(by) {
                continue;
            }
            let met = meet(&client(&client_spec), &server(&server_spec)).unwrap_or_else(|broken| {
                panic!("{broken:?} of {row:?} between {near:?} and {far:?}", row = (protocol, name, suite))
            });
            let got = met.client.negotiated().expect("what was negotiated");
            let expected = Negotiated {
                version: protocol.name().to_owned(),
                suite: suite.to_owned(),
                // OpenSSL chooses this order, on both sides.
                mac_order: (cipher == Aes128Cbc).then_some(MacOrder::EncryptThenMac),
                group: group.to_owned(),
                certificate: got.certificate.clone(),
                certificate_key: identity(name).key().expect("a key").describe(),
                certificate_bytes: der_bytes(&identity(name)),
                resumed: false,
            };
            assert_eq!(expected, got, "{near:?} and {far:?}");
            assert_eq!(64, got.certificate.len());
            assert_eq!(Ok(()), client_spec.expects(&got));
            let seen = met.server.negotiated().expect("what the server negotiated");
            let (certificate, certificate_key) = Default::default();
            let without = Negotiated {
                certificate,
                certificate_key,
                certificate_bytes: 0,
                mac_order: None,
                ..expected
            };
            assert_eq!(without, seen, "by the server of {far:?}");
        }
    }
}

/// A library refuses an unsupported request before any connection; `auto` selects one that supports it.
#[test]
fn what_is_not_spoken_is_unsupported() {
    for row in &TABLE {
        let by = row.4;
        for subject in subjects() {
            let (client_spec, server_spec) = asked(row, &subject, &subject);
            let (client, server) = (Client::new(&client_spec), Server::new(&server_spec));
            if subject.speaks(by) {
                assert!(client.is_ok() && server.is_ok(), "{subject:?} of {}", row.5);
            } else {
                let Err(Failure::Unsupported(reason)) = client.map(drop) else {
                    panic!("client {subject:?}")
                };
                assert!(reason.contains("rustls") || reason.contains("openssl"), "{reason}");
                let Err(Failure::Unsupported(_)) = server.map(drop) else { panic!("server {subject:?}") };
            }
        }
        // `auto` gets the newest libssl there is.
        let newest = subjects().pop().expect("a library");
        let automatic = Subject { library: Library::Auto, ..newest };
        if by == NewLibssl && !automatic.today {
            continue;
        }
        let (client_spec, server_spec) = asked(row, &automatic, &automatic);
        let expected = if matches!(by, Libssl | NewLibssl) { "openssl" } else { "rustls" };
        assert!(client(&client_spec).library().starts_with(expected), "{}", row.5);
        assert!(server(&server_spec).library().starts_with(expected), "{}", row.5);
    }
}

/// Data of each size around a record's arrive completely, both ways.
#[test]
fn data_arrive_whole() {
    let everything: Vec<u8> =
        (0..1u32 << 20).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for (near, far) in pairs() {
        for protocol in [Tls12, Tls13] {
            let (client, server) = (client(&near.client(protocol)), server(&far.server(protocol)));
            let mut met = meet(&client, &server).expect("a connection");
            for size in [1, 4096, 16_383, 16_384, 16_385, 70_000, 1 << 20] {
                let data = &everything[..size];
                let there = carry(&mut met.client, &mut met.server, data);
                let back = carry(&mut met.server, &mut met.client, data);
                assert_eq!((Ok(data), Ok(data)), (there.as_deref(), back.as_deref()), "{near:?} {far:?}");
            }
        }
    }
}

/// An end is detected, whether it was announced or not.
#[test]
fn an_end_is_seen() {
    for (near, far) in pairs() {
        for announced in [true, false] {
            let (client, server) = (client(&near.client(Tls13)), server(&far.server(Tls13)));
            let Met { client: mut stays, server: mut leaves } = meet(&client, &server).expect("a connection");
            assert_eq!(Ok(3), leaves.write(b"bye").map_err(|error| error.to_string()));
            if announced {
                leaves.say_goodbye();
            }
            drop(leaves);
            let mut buffer = [0; 100];
            let mut read = || {
                // A process that another test is starting has a copy of every descriptor for an instant, and
                // delays the end.
                wait_for(&stays);
                stays.read(&mut buffer).map_err(|error| error.to_string())
            };
            assert_eq!((Ok(3), Ok(0)), (read(), read()), "{near:?} {far:?} announced: {announced}");
        }
    }
}

/// A server with two certificates presents the one whose signatures the client requests.
#[test]
fn a_client_gets_the_certificate_it_can_verify() {
    for (near, far) in pairs() {
        for protocol in [Tls12, Tls13] {
            let identities = vec![identity("rsa-2048"), identity("ecdsa-p256")];
            let server = server(&ServerSpec { identities, ..far.server(protocol) });
            for (signer, expected) in [(Signer::Rsa, "RSA 2048"), (Signer::Ecdsa, "ECDSA P-256")] {
                let spec = ClientSpec { signer: Some(signer), ..near.client(protocol) };
                let met = meet(&client(&spec), &server).expect("a connection");
                let got = met.client.negotiated().expect("what was negotiated");
                assert_eq!(expected, got.certificate_key, "{near:?} {far:?}");
                assert_eq!(Ok(()), spec.expects(&got));
            }
        }
    }
}

/// The bytes of the server's certificates are those of the whole chain that it sends.
#[test]
fn a_chain_is_counted_whole() {
    let (mut shown, authority) = (identity("ecdsa-p256"), identity("rsa-2048"));
    let alone = der_bytes(&shown);
    shown.chain_pem += &authority.chain_pem;
    for (near, far) in pairs() {
        for protocol in [Tls12, Tls13] {
            let server = server(&ServerSpec { identities: vec![shown.clone()], ..far.server(protocol) });
            let met = meet(&client(&near.client(protocol)), &server).expect("a connection");
            let got = met.client.negotiated().expect("what was negotiated");
            assert_eq!(alone + der_bytes(&authority), got.certificate_bytes, "{near:?} {far:?}");
        }
    }
}

/// A client without requests gets the server's parameters.
#[test]
fn anything_will_do_where_nothing_is_asked() {
    for (near, far) in pairs() {
        for protocol in [Tls12, Tls13] {
            let spec =
                ClientSpec { protocol: None, key_exchange: None, cipher: None, ..near.client(protocol) };
            let met = meet(&client(&spec), &server(&far.server(protocol))).expect("a connection");
            let got = met.client.negotiated().expect("what was negotiated");
            assert_eq!(protocol.name(), got.version);
            assert_eq!(Ok(()), spec.expects(&got));
        }
    }
}

/// A CBC suite is two constructions with one name. The length of a record shows which one it is.
#[test]
fn the_order_of_a_cbc_suite_is_negotiated_as_asked() {
    use MacOrder::{EncryptThenMac, MacThenEncrypt};
    // The plaintext has 4,096 bytes. A record has a header of 5, a vector of 16, and a MAC of 20 before or
    // after padding to blocks of 16.
    let lengths = [(MacThenEncrypt, 5 + 16 + 4128), (EncryptThenMac, 5 + 16 + 4112 + 20)];
    let libraries = || subjects().into_iter().filter(|subject| subject.speaks(Libssl));
    for (near, far) in libraries().flat_map(|near| libraries().map(move |far| (near.clone(), far))) {
        let row = TABLE.iter().find(|row| (row.1, row.2) == (X25519, Aes128Cbc)).expect("a row");
        let (asks, answers) = asked(row, &near, &far);
        for (order, length) in lengths {
            for given in [None, Some(order)] {
                let spec = ClientSpec { mac_order: Some(order), ..asks.clone() };
                let far = server(&ServerSpec { mac_order: given, ..answers.clone() });
                let mut met = meet(&client(&spec), &far).expect("a connection");
                let got = met.client.negotiated().expect("what was negotiated");
                assert_eq!((Some(order), Ok(())), (got.mac_order, spec.expects(&got)), "{near:?}");
                let _ = met.client.read(&mut [0; 10]);
                assert_eq!(Ok(4096), met.server.write(&[7; 4096]).map_err(|error| error.to_string()));
                assert_eq!(Ok(length), rustix::io::ioctl_fionread(&met.client), "{order:?} of {near:?}");
            }
        }
        // A client whose offer the server does not accept gets the other order, and reports that as a
        // difference.
        let spec = ClientSpec { mac_order: Some(EncryptThenMac), ..asks.clone() };
        let far = server(&ServerSpec { mac_order: Some(MacThenEncrypt), ..answers.clone() });
        let met = meet(&client(&spec), &far).expect("a connection");
        let got = met.client.negotiated().expect("what was negotiated");
        let words = "negotiated MAC-then-encrypt instead of encrypt-then-MAC".to_owned();
        assert_eq!(Err(words), spec.expects(&got));
    }
}

#[test]
fn a_suite_of_one_construction_has_no_order() {
    for (near, far) in pairs() {
        let met = meet(&client(&near.client(Tls12)), &server(&far.server(Tls12))).expect("a connection");
        assert_eq!(None, met.client.negotiated().expect("what was negotiated").mac_order);
    }
}
