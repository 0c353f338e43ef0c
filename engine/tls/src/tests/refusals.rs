//! A difference from the request is refused, and the message describes it.

use super::*;

/// A server with another certificate than the expected one is refused, and so is one that changes its own.
#[test]
fn another_certificate_is_refused() {
    for (near, far) in pairs() {
        for protocol in [Protocol::Tls12, Protocol::Tls13] {
            let expected = Some(identity("ecdsa-p384").chain_pem);
            let held_to = client(&ClientSpec { certificate_pem: expected, ..near.client(protocol) });
            let first_seen = client(&near.client(protocol));
            meet(&first_seen, &server(&far.server(protocol))).expect("a first connection");
            let other = ServerSpec { identities: vec![identity("ed25519")], ..far.server(protocol) };
            for (client, server) in [(&held_to, far.server(protocol)), (&first_seen, other)] {
                let broken = meet(client, &self::server(&server)).expect_err("another certificate");
                let words = broken.client.expect("the client's words");
                assert!(words.contains("another certificate"), "{words} of {near:?} {far:?}");
            }
        }
    }
}

/// A server that has the certificate but not its key is refused: the handshake's signature is verified.
#[test]
fn a_certificate_without_its_key_is_refused() {
    for (near, far) in pairs() {
        let stolen = Identity { key_pem: identity("client").key_pem, ..identity("ecdsa-p256") };
        let spec = ServerSpec { identities: vec![stolen], ..far.server(Protocol::Tls13) };
        // A library may detect it before there is a connection.
        if let Ok(server) = Server::new(&spec) {
            meet(&client(&near.client(Protocol::Tls13)), &server).expect_err("a stolen certificate");
        }
    }
}

/// Two ends without a common protocol, group, or suite do not connect.
#[test]
fn nothing_is_fallen_back_on() {
    for (near, far) in pairs() {
        for protocol in [Protocol::Tls12, Protocol::Tls13] {
            let other = if protocol == Protocol::Tls12 { Protocol::Tls13 } else { Protocol::Tls12 };
            let asked = near.client(protocol);
            let cipher = Some(Cipher::Aes256Gcm);
            let mut unlike = vec![near.client(other), ClientSpec { cipher, ..asked.clone() }];
            if protocol == Protocol::Tls13 {
                unlike.push(ClientSpec { key_exchange: Some(KeyExchange::EcdheP384), ..asked });
            }
            let server = server(&far.server(protocol));
            for spec in unlike {
                let broken = meet(&client(&spec), &server).expect_err("nothing in common");
                assert!(broken.client.is_some() && broken.server.is_some(), "{broken:?} {near:?} {far:?}");
            }
        }
    }
}

/// Under mutual TLS a client needs a certificate of the right authority.
#[test]
fn clients_show_themselves() {
    for (near, far) in pairs() {
        for protocol in [Protocol::Tls12, Protocol::Tls13] {
            let authority = Some(AUTHORITY.to_owned());
            let server = server(&ServerSpec { client_authority_pem: authority, ..far.server(protocol) });
            let shows = |name: Option<&str>| {
                let spec = ClientSpec { identity: name.map(identity), ..near.client(protocol) };
                meet(&client(&spec), &server)
            };
            let mut met =
                shows(Some("client")).unwrap_or_else(|broken| panic!("{broken:?} {near:?} {far:?}"));
            assert_eq!(Ok(b"x".to_vec()), carry(&mut met.client, &mut met.server, b"x"));
            for wrong in [None, Some("ecdsa-p384")] {
                let broken = shows(wrong).expect_err("no certificate of this authority");
                assert!(broken.server.is_some(), "{broken:?}");
            }
        }
    }
}

/// Under mutual TLS a certificate that its authority has revoked is refused.
#[test]
fn a_revoked_certificate_is_refused() {
    for (near, far) in pairs() {
        for protocol in [Protocol::Tls12, Protocol::Tls13] {
            let spec = ServerSpec {
                client_authority_pem: Some(AUTHORITY.to_owned()),
                client_revocations_pem: Some(REVOCATIONS.to_owned()),
                ..far.server(protocol)
            };
            let server = server(&spec);
            let shows = |name| {
                let spec = ClientSpec { identity: Some(identity(name)), ..near.client(protocol) };
                meet(&client(&spec), &server)
            };
            let met = shows("client").unwrap_or_else(|broken| panic!("{broken:?} {near:?} {far:?}"));
            assert_eq!(Some("client".to_owned()), met.server.peer_name());
            let broken = shows("revoked").expect_err("a revoked certificate");
            assert!(broken.server.is_some(), "{broken:?} {near:?} {far:?}");
        }
    }
}

/// An expired list may not contain later revocations: no library accepts a certificate with it.
#[test]
fn a_list_that_has_expired_lets_no_client_in() {
    for (near, far) in pairs() {
        for protocol in [Protocol::Tls12, Protocol::Tls13] {
            let shows = |revocations: Option<&str>| {
                let server = server(&ServerSpec {
                    client_authority_pem: Some(STALE_AUTHORITY.to_owned()),
                    client_revocations_pem: revocations.map(str::to_owned),
                    ..far.server(protocol)
                });
                let spec = ClientSpec { identity: Some(identity("stale")), ..near.client(protocol) };
                meet(&client(&spec), &server)
            };
            shows(None).unwrap_or_else(|broken| panic!("{broken:?} {near:?} {far:?}"));
            let broken = shows(Some(STALE_REVOCATIONS)).expect_err("a list that has expired");
            assert!(broken.server.is_some(), "{broken:?} {near:?} {far:?}");
            // The list of another authority does not cover this one's certificates.
            assert!(shows(Some(REVOCATIONS)).is_err(), "{near:?} {far:?}");
        }
    }
}

/// A server that must check a list, and has none, does not start.
#[test]
fn a_missing_list_is_refused() {
    for subject in subjects() {
        for missing in ["", AUTHORITY] {
            let spec = ServerSpec {
                client_authority_pem: Some(AUTHORITY.to_owned()),
                client_revocations_pem: Some(missing.to_owned()),
                ..subject.server(Protocol::Tls13)
            };
            let Err(Failure::Failed(words)) = Server::new(&spec) else { panic!("{subject:?}") };
            assert!(words.contains("must be a list in PEM"), "{words}");
        }
    }
}

/// A peer with another protocol, or one that goes without a byte, is an error of the connection.
#[test]
fn garbage_and_silence_are_errors() {
    for subject in subjects() {
        for sent in [b"HTTP/1.1 400 Bad Request\r\n\r\n".as_slice(), b""] {
            for is_client in [true, false] {
                let (near, far) = socket_pair();
                let mut stream = match is_client {
                    true => client(&subject.client(Protocol::Tls13)).open(near),
                    false => server(&subject.server(Protocol::Tls13)).accept(near),
                }
                .expect("a connection");
                let mut peer = Stream::plain(far);
                assert_eq!(Ok(sent.len()), peer.write(sent).map_err(|error| error.to_string()));
                drop(peer);
                let error = (0..3).find_map(|_| {
                    wait_for(&stream);
                    stream.handshake().err().filter(|error| error.kind() != ErrorKind::WouldBlock)
                });
                let error = error.unwrap_or_else(|| panic!("no error of {subject:?}"));
                assert!(!error.to_string().is_empty());
            }
        }
    }
}

/// The message of a mismatch names both sides of it.
#[test]
fn a_mismatch_is_put_into_words() {
    let subject = Subject { library: Library::Auto, libcrypto: None, today: true };
    let spec = ClientSpec { signer: Some(Signer::Ecdsa), ..subject.client(Protocol::Tls13) };
    let right = Negotiated {
        version: "TLS 1.3".to_owned(),
        suite: "TLS_AES_128_GCM_SHA256".to_owned(),
        mac_order: None,
        group: "x25519".to_owned(),
        certificate: String::new(),
        certificate_key: "ECDSA P-256".to_owned(),
        certificate_bytes: 0,
        resumed: false,
    };
    assert_eq!(Ok(()), spec.expects(&right));
    type Field = fn(&mut Negotiated) -> &mut String;
    let suite = "TLS_AES_256_GCM_SHA384 instead of TLS_AES_128_GCM_SHA256";
    let wrong: [(Field, &str, &str); 4] = [
        (|got| &mut got.version, "negotiated ", "TLS 1.2 instead of TLS 1.3"),
        (|got| &mut got.suite, "negotiated the suite ", suite),
        (|got| &mut got.group, "negotiated the key exchange ", "secp256r1 instead of x25519"),
        (|got| &mut got.certificate_key, "was shown a certificate of ", "RSA 2048 instead of ECDSA"),
    ];
    for (field, start, end) in wrong {
        let mut got = right.clone();
        *field(&mut got) = end.split(" instead").next().expect("a name").to_owned();
        assert_eq!(Err(format!("{start}{end}")), spec.expects(&got));
    }
}

/// A libcrypto without a libssl in its folder is refused with the folder that was searched.
#[test]
fn a_libcrypto_alone_is_unsupported() {
    let Some(system) =
        ["/usr/lib/x86_64-linux-gnu/libcrypto.so.3", "/usr/lib/aarch64-linux-gnu/libcrypto.so.3"]
            .into_iter()
            .find(|path| std::path::Path::new(path).exists())
    else {
        crate::lacking("no libcrypto where Debian has it");
        return;
    };
    let folder = std::env::temp_dir().join(format!("tollbar-tls-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let alone = folder.join("libcrypto.so.3");
    std::fs::copy(system, &alone).expect("a copy");
    let subject =
        Subject { library: Library::Libssl, libcrypto: Some(alone.display().to_string()), today: false };
    let outcome = Client::new(&subject.client(Protocol::Tls13)).map(drop);
    std::fs::remove_dir_all(&folder).expect("the folder to go");
    let Err(Failure::Unsupported(reason)) = outcome else { panic!("{outcome:?}") };
    assert_eq!(format!("there is no libssl next to {}", alone.display()), reason);
}

/// A byte changed on the way, wherever in the handshake, breaks it with a message; no library crashes.
#[test]
fn a_changed_byte_is_an_error() {
    for (near, far) in pairs() {
        for protocol in [Protocol::Tls12, Protocol::Tls13] {
            let authority = Some(AUTHORITY.to_owned());
            let server = server(&ServerSpec { client_authority_pem: authority, ..far.server(protocol) });
            let client = client(&ClientSpec { identity: Some(identity("client")), ..near.client(protocol) });
            for to_client in [true, false] {
                let unnoticed = (0..1500).step_by(29).filter(|at| {
                    let (passed, met) = meet_with_change(&client, &server, to_client, *at);
                    met && passed > *at
                });
                // TLS 1.3 ignores the version in a record's header, which is there for old middleboxes.
                let unnoticed: Vec<usize> = unnoticed.collect();
                assert!(unnoticed.len() <= 3, "{near:?} {far:?} {protocol:?} {to_client} {unnoticed:?}");
            }
        }
    }
}

/// Runs a handshake through a relay that inverts one byte. Returns the bytes that went that way, and whether
/// both ends succeeded.
fn meet_with_change(client: &Client, server: &Server, to_client: bool, at: usize) -> (usize, bool) {
    let ((near, near_relay), (far, far_relay)) = (socket_pair(), socket_pair());
    let mut client = client.open(near).expect("a client's connection");
    let mut server = server.accept(far).expect("a server's connection");
    let (mut near_relay, mut far_relay) = (Stream::plain(near_relay), Stream::plain(far_relay));
    let (mut passed, mut buffer) = (0, vec![0; 1 << 16]);
    for _ in 0..20 {
        let (near, far) = (client.handshake(), server.handshake());
        if near.is_ok() && far.is_ok() {
            return (passed, true);
        }
        let over =
            |end: &io::Result<()>| end.as_ref().is_err_and(|error| error.kind() != ErrorKind::WouldBlock);
        if over(&near) && over(&far) {
            return (passed, false);
        }
        for towards_client in [true, false] {
            let (from, to) = match towards_client {
                true => (&mut far_relay, &mut near_relay),
                false => (&mut near_relay, &mut far_relay),
            };
            let Ok(count) = from.read(&mut buffer) else { continue };
            if towards_client == to_client {
                if (passed..passed + count).contains(&at) {
                    buffer[at - passed] ^= 0xff;
                }
                passed += count;
            }
            let _ = to.write(&buffer[..count]);
        }
    }
    (passed, false)
}
