//! Number of segments that a client sends.

use rustix::net::{RecvFlags, recv};

use super::*;

/// A client of TLS 1.3 that has data sends its last handshake message with them: its server has one turn for
/// both, however quickly it wakes.
#[test]
fn the_end_of_a_handshake_goes_with_the_first_write() {
    let rustls = &subjects()[0];
    let (near, far) = socket_pair();
    let mut client = client(&rustls.client(Protocol::Tls13)).open(near).expect("a client's connection");
    let mut server = server(&rustls.server(Protocol::Tls13)).accept(far).expect("a server's connection");
    let waits = |end: io::Result<()>| end.is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
    assert!(waits(client.handshake_before_write()) && waits(server.handshake()));

    client.handshake_before_write().expect("a handshake");
    assert_eq!(Err(rustix::io::Errno::AGAIN), recv(&server, &mut [0; 1], RecvFlags::PEEK).map(|_| ()));
    assert!(client.wants_write());

    assert_eq!(5, client.write(b"hello").expect("room"));
    assert!(!client.wants_write());
    server.handshake().expect("a handshake");
    assert!(server.holds_more(), "the words came with the handshake's end");
    let mut words = [0; 16];
    assert_eq!(5, server.read(&mut words).expect("words"));
    assert!(!server.holds_more());
}
