//! What a connection puts on the network, as the kernel counts it: bytes of its stream each way, and round trips.
//!
//! A round trip begins with what is sent, and ends with the first that comes after it; making the connection is one.
//! The kernel is asked before the client goes on with a connection and after it: between the two the client has sent what
//! it sends, and until it has, nothing comes in answer.

use std::os::fd::{AsFd, AsRawFd};

use serde::Serialize;

/// Of one connection, up to when it was last looked at.
#[derive(Default, Clone, Copy)]
pub struct Wire {
    sent: u64,
    received: u64,
    /// Something was sent, and nothing has come since.
    awaits: bool,
}

/// What passed since a connection was looked at before; said as metrics, by their names.
#[derive(Serialize, Default, Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passed {
    #[serde(rename = "network-sent")]
    pub sent: u64,
    /// Less than nothing, where a byte that was none is taken back.
    #[serde(rename = "network-received")]
    pub received: i64,
    #[serde(rename = "network-round-trips")]
    pub round_trips: u64,
}

impl Passed {
    pub fn add(&mut self, other: Passed) {
        self.sent += other.sent;
        self.received += other.received;
        self.round_trips += other.round_trips;
    }
}

impl Wire {
    /// A new connection: its first round trip is that of making it.
    pub fn connecting(passed: &mut Passed) -> Wire {
        passed.round_trips += 1;
        Wire::default()
    }

    /// Before the client goes on: what has come meanwhile ends a round trip.
    pub fn look(&mut self, socket: impl AsFd, passed: &mut Passed) {
        if let Some((_, received)) = stream_bytes(socket) {
            self.came(received, passed);
        }
    }

    /// The end of the peer's side counts as a byte where it comes just while the kernel is asked. The connection is looked
    /// at again before it is closed, and then its state tells: there is one byte less.
    fn came(&mut self, received: u64, passed: &mut Passed) {
        if received > self.received {
            passed.round_trips += u64::from(std::mem::take(&mut self.awaits));
        }
        passed.received += received.cast_signed() - self.received.cast_signed();
        self.received = received;
    }

    /// After it: what was sent begins one.
    pub fn sent(&mut self, socket: impl AsFd, passed: &mut Passed) {
        let Some((sent, _)) = stream_bytes(socket) else { return };
        self.awaits |= sent > self.sent;
        passed.sent += sent - self.sent.min(sent);
        self.sent = sent;
    }
}

/// Offsets in the kernel's `struct tcp_info`, which only ever grows at its end: what was received, what was sent, and what
/// of that was sent again. Since Linux 4.19.
const RECEIVED: usize = 128;
const SENT: usize = 200;
const SENT_AGAIN: usize = 208;
const LENGTH: usize = 216;
/// The state in the first byte in which the peer has ended its side, which counts as a byte that was received.
const CLOSE_WAIT: u8 = 8;

/// Bytes of the stream that were sent, each once, and that were received. None where the kernel does not tell.
fn stream_bytes(socket: impl AsFd) -> Option<(u64, u64)> {
    let mut info = [0_u8; LENGTH];
    let mut length = LENGTH as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `info`, and says how many.
    let status = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &mut length,
        )
    };
    if status != 0 || (length as usize) < LENGTH {
        return None;
    }
    let number = |at: usize| Some(u64::from_ne_bytes(info.get(at..at + 8)?.try_into().ok()?));
    let end = u64::from(info[0] == CLOSE_WAIT);
    Some((number(SENT)?.saturating_sub(number(SENT_AGAIN)?), number(RECEIVED)?.saturating_sub(end)))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// Two questions and their answers, in several pieces, are two round trips, beside that of the connection.
    #[test]
    fn turns_are_counted_and_not_pieces() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut client =
            TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
        let (mut server, _) = listener.accept().expect("a connection");
        let mut passed = Passed::default();
        let mut wire = Wire::connecting(&mut passed);
        let mut buffer = [0; 8];
        for _ in 0..2 {
            wire.look(&client, &mut passed);
            client.write_all(b"asked").expect("sent");
            wire.sent(&client, &mut passed);
            server.read_exact(&mut buffer[..5]).expect("a question");
            for piece in [b"an", b"sw"] {
                server.write_all(piece).expect("sent");
                client.read_exact(&mut buffer[..2]).expect("a piece");
                wire.look(&client, &mut passed);
                wire.sent(&client, &mut passed);
            }
        }
        // The end of the server's side is no byte of the stream.
        drop(server);
        assert_eq!(0, client.read(&mut buffer).expect("its end"));
        wire.look(&client, &mut passed);
        assert_eq!(Passed { sent: 10, received: 8, round_trips: 3 }, passed);
    }

    /// The end of the server's side, where it was counted as a byte, is none once the connection is looked at again.
    #[test]
    fn an_end_that_was_counted_is_taken_back() {
        let mut passed = Passed::default();
        let mut wire = Wire::connecting(&mut passed);
        let mut counted = Passed::default();
        for received in [8, 9, 8] {
            wire.came(received, &mut passed);
            counted.add(std::mem::take(&mut passed));
        }
        assert_eq!(Passed { sent: 0, received: 8, round_trips: 1 }, counted);
    }
}
