//! Bytes to and from a non-blocking socket, and buffers for those that wait.

use std::cell::RefCell;
use std::io;
use std::os::fd::OwnedFd;

use rustix::net::{RecvFlags, SendFlags};

#[inline]
pub fn receive(socket: &OwnedFd, into: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::net::recv(socket, into, RecvFlags::empty())?.0)
}

#[inline]
pub fn send(socket: &OwnedFd, from: &[u8]) -> io::Result<usize> {
    // The flag prevents SIGPIPE: a peer that went away is only an error of this connection.
    Ok(rustix::net::send(socket, from, SendFlags::NOSIGNAL)?)
}

/// Size of a buffer, four of the largest records: fewer calls for a large answer, and still within a core's
/// cache.
const USUAL: usize = 4 * (16 * 1024 + 512);
/// Number of idle buffers that a thread keeps; more are needed only while many connections are within a
/// record.
const KEPT: usize = 16;

thread_local! {
    static IDLE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Bytes that wait to be parsed or sent. The buffer owns memory only while there are any, so that a silent
/// connection costs none and a busy one does not allocate.
#[derive(Default)]
pub struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Buffer {
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    pub fn len(&self) -> usize {
        self.end - self.start
    }

    pub fn waiting(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.end]
    }

    /// Returns room for at least this many more bytes.
    pub fn room(&mut self, at_least: usize) -> &mut [u8] {
        if self.bytes.is_empty() {
            self.bytes = IDLE.with_borrow_mut(|idle| idle.pop()).unwrap_or_else(|| vec![0; USUAL]);
        }
        if self.bytes.len() - self.end < at_least {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            if self.bytes.len() - self.end < at_least {
                self.bytes.resize(self.end + at_least, 0);
            }
        }
        &mut self.bytes[self.end..]
    }

    /// Adds bytes that were written into the room.
    pub fn add(&mut self, count: usize) {
        self.end += count;
    }

    /// Removes bytes that are done with.
    pub fn take(&mut self, count: usize) {
        self.start += count;
        self.let_go();
    }

    /// Gives the memory to the thread's other connections, unless bytes wait in it.
    pub fn let_go(&mut self) {
        if !self.is_empty() || self.bytes.is_empty() {
            return;
        }
        (self.start, self.end) = (0, 0);
        let bytes = std::mem::take(&mut self.bytes);
        // A thread that is ending has no list of buffers any more.
        let _ = IDLE.try_with(|idle| {
            let mut idle = idle.borrow_mut();
            if bytes.len() == USUAL && idle.len() < KEPT {
                idle.push(bytes);
            }
        });
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.start = self.end;
        self.let_go();
    }
}
