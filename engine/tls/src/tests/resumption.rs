//! Sessions are resumed if that is requested, by all that can, and never otherwise.

use super::*;

pub const USERS: usize = 20;

/// Returns the number of resumed connections among some parallel ones, and before that among as many first
/// ones.
pub fn resumed(client: &Client, server: &Server) -> (usize, usize) {
    let meet_all = || {
        let mut met: Vec<Met> = (0..USERS).map(|_| meet(client, server).expect("a connection")).collect();
        for one in &mut met {
            // Tickets of TLS 1.3 come with the first data.
            assert_eq!(Ok(b"x".to_vec()), carry(&mut one.client, &mut one.server, b"x"));
            assert_eq!(Ok(b"y".to_vec()), carry(&mut one.server, &mut one.client, b"y"));
        }
        let both = met.iter().map(|one| (one.client.negotiated(), one.server.negotiated()));
        both.filter(|(near, far)| {
            let resumed = |end: &Option<Negotiated>| end.as_ref().is_some_and(|end| end.resumed);
            assert_eq!(resumed(near), resumed(far));
            assert_eq!(64, near.as_ref().map_or(0, |near| near.certificate.len()));
            resumed(near)
        })
        .count()
    };
    (meet_all(), meet_all())
}

/// The server's and the client's settings decide: by name, by ticket, or not at all.
#[test]
fn sessions_are_resumed_where_both_sides_mean_to() {
    for (near, far) in pairs() {
        for protocol in [Protocol::Tls12, Protocol::Tls13] {
            for resumption in [Resumption::None, Resumption::SessionId, Resumption::Ticket] {
                for resume in [false, true] {
                    let client = client(&ClientSpec { resume, ..near.client(protocol) });
                    let server = server(&ServerSpec { resumption, ..far.server(protocol) });
                    let (first, second) = resumed(&client, &server);
                    let means_to = resume && resumption != Resumption::None;
                    // In TLS 1.2 the second of the first connections already finds the first one's session.
                    let at_first = if means_to && protocol == Protocol::Tls12 { USERS - 1 } else { 0 };
                    let then = if means_to { USERS } else { 0 };
                    let between = format!("{near:?} {far:?} {protocol:?} {resumption:?} {resume}");
                    assert_eq!((at_first, then), (first, second), "{between}");
                }
            }
        }
    }
}

/// Sealing a ticket costs CPU time, so that every server gives one, to a full handshake and to a resumed one.
#[test]
fn every_server_gives_as_many_tickets() {
    for (near, far) in pairs() {
        for resumption in [Resumption::SessionId, Resumption::Ticket] {
            let client = client(&ClientSpec { resume: true, ..near.client(Protocol::Tls13) });
            let server = server(&ServerSpec { resumption, ..far.server(Protocol::Tls13) });
            assert_eq!((0, USERS), resumed(&client, &server));
            // No data are carried over these, so that no further ticket is received.
            let met: Vec<Met> =
                (0..2 * USERS).map(|_| meet(&client, &server).expect("a connection")).collect();
            let resumed = met.iter().filter(|one| one.client.negotiated().is_some_and(|got| got.resumed));
            assert_eq!(USERS, resumed.count(), "{near:?} {far:?} {resumption:?}");
        }
    }
}

/// A resumed session of TLS 1.3 has its own key exchange, one of TLS 1.2 has none; both are as requested.
#[test]
fn a_resumed_session_is_as_asked() {
    for (near, far) in pairs() {
        for (protocol, group) in [(Protocol::Tls12, ""), (Protocol::Tls13, "x25519")] {
            let spec = ClientSpec { resume: true, ..near.client(protocol) };
            let client = client(&spec);
            let server = server(&ServerSpec { resumption: Resumption::Ticket, ..far.server(protocol) });
            resumed(&client, &server);
            let met = meet(&client, &server).expect("a connection");
            let got = met.client.negotiated().expect("what was negotiated");
            assert_eq!((true, group), (got.resumed, got.group.as_str()), "{near:?} {far:?} {protocol:?}");
            assert_eq!(0, got.certificate_bytes, "{near:?} {far:?} {protocol:?}");
            assert_eq!(Ok(()), spec.expects(&got));
        }
    }
}
