//! Traffic of a connection on the network, by the kernel's counts: bytes of its stream each way, and round
//! trips.
//!
//! A round trip begins with sent bytes, and ends with the first byte that arrives after them; connecting is
//! one. The kernel is asked before and after the client continues a connection. Between the two the client
//! has sent its bytes, and before that no answer to them can arrive.

use std::os::fd::{AsFd, AsRawFd};

use serde::Serialize;

/// Counts of one connection, by the last look.
#[derive(Default, Clone, Copy)]
pub struct Wire {
    sent: u64,
    received: u64,
    /// True if bytes were sent, and none have arrived since.
    awaits: bool,
}

/// Traffic since the last look, under the names of the metrics.
#[derive(Serialize, Default, Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passed {
    #[serde(rename = "network-sent")]
    pub sent: u64,
    /// Received bytes; negative if a miscounted byte is taken back.
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
    /// Counts a new connection: connecting is its first round trip.
    pub fn connecting(passed: &mut Passed) -> Wire {
        passed.round_trips += 1;
        Wire::default()
    }

    /// Looks before the client continues: bytes that arrived meanwhile end a round trip.
    pub fn look(&mut self, socket: impl AsFd, passed: &mut Passed) {
        if let Some((_, received)) = stream_bytes(socket) {
            self.came(received, passed);
        }
    }

    /// Counts received bytes. If the end of the peer's side arrives just while the kernel is asked, it counts
    /// as a byte. The connection is looked at again before it is closed, and its state then corrects that:
    /// there is one byte less.
    fn came(&mut self, received: u64, passed: &mut Passed) {
        if received > self.received {
            passed.round_trips += u64::from(std::mem::take(&mut self.awaits));
        }
        passed.received += received.cast_signed() - self.received.cast_signed();
        self.received = received;
    }

    /// Looks after the client continued: sent bytes begin a round trip.
    pub fn sent(&mut self, socket: impl AsFd, passed: &mut Passed) {
        let Some((sent, _)) = stream_bytes(socket) else { return };
        self.awaits |= sent > self.sent;
        passed.sent += sent - self.sent.min(sent);
        self.sent = sent;
    }
}

/// Offsets in the kernel's `struct tcp_info`, which only grows at its end: bytes received, bytes sent, and
/// bytes sent again. Available since Linux 4.19.
const RECEIVED: usize = 128;
const SENT: usize = 200;
const SENT_AGAIN: usize = 208;
const LENGTH: usize = 216;
/// State in the first byte after the peer has ended its side, which counts as a received byte.
const CLOSE_WAIT: u8 = 8;

/// Returns the bytes of the stream sent, each once, and received, or None if the kernel does not report them.
fn stream_bytes(socket: impl AsFd) -> Option<(u64, u64)> {
    let mut info = [0_u8; LENGTH];
    let mut length = LENGTH as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `info`, and returns their number.
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

    /// Two questions and their answers, in several pieces, are two round trips in addition to that of
    /// connecting.
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
        // The end of the server's side is not a byte of the stream.
        drop(server);
        assert_eq!(0, client.read(&mut buffer).expect("its end"));
        wire.look(&client, &mut passed);
        assert_eq!(Passed { sent: 10, received: 8, round_trips: 3 }, passed);
    }

    /// If the end of the server's side was counted as a byte, the next look takes that back.
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
