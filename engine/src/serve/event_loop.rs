//! One epoll loop: accepts, and lets each connection go on when it can.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::clock;
use crate::tls::{Server, Stream};

use super::connection::{Connection, Next};
use super::request::MOST_HEAD_BYTES;
use super::routes::Service;

const LISTENER: u64 = u64::MAX;
/// Events taken at a time.
const EVENTS: usize = 512;
/// How often overdue connections are looked for: looking costs a walk over all of them.
const SWEEP_S: u32 = 5;
/// How long accepting rests when there is no descriptor left and none is freed.
const REST_MS: i32 = 500;

pub struct Loop {
    epoll: OwnedFd,
    listener: TcpListener,
    tls: Option<Server>,
    service: Service,
    /// By token; None where one was closed.
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    scratch: Box<[u8]>,
    accepting: bool,
    now_s: u32,
    swept_s: u32,
}

impl Loop {
    /// Returns it with the address it accepts on.
    pub fn new(
        listener: TcpListener,
        tls: Option<Server>,
        service: Service,
    ) -> io::Result<(Loop, SocketAddr)> {
        let address = listener.local_addr()?;
        let epoll = owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        let now_s = now_s();
        let event_loop = Loop {
            epoll,
            listener,
            tls,
            service,
            connections: Vec::new(),
            free: Vec::new(),
            // A head and as much again, so that there is always room to read into.
            scratch: vec![0; 2 * MOST_HEAD_BYTES].into(),
            accepting: true,
            now_s,
            swept_s: now_s,
        };
        event_loop.watch(libc::EPOLL_CTL_ADD, event_loop.listener.as_raw_fd(), libc::EPOLLIN, LISTENER)?;
        Ok((event_loop, address))
    }

    /// Serves until the process ends, or the loop itself fails.
    pub fn run(&mut self) -> io::Result<Infallible> {
        let mut events = vec![libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        loop {
            let count = self.wait(&mut events)?;
            self.now_s = now_s();
            for event in &events[..count] {
                match event.u64 {
                    LISTENER => self.accept(count),
                    token => self.advance(token as usize),
                }
            }
            if self.now_s.saturating_sub(self.swept_s) >= SWEEP_S {
                self.sweep();
            }
            if !self.accepting && count == 0 {
                self.accept_again();
            }
        }
    }

    fn wait(&self, events: &mut [libc::epoll_event]) -> io::Result<usize> {
        let timeout_ms = match (self.accepting, self.free.len() == self.connections.len()) {
            (false, _) => REST_MS,
            (true, false) => SWEEP_S as i32 * 1000,
            (true, true) => -1,
        };
        let (epoll, most) = (self.epoll.as_raw_fd(), events.len() as i32);
        match unsafe { libc::epoll_wait(epoll, events.as_mut_ptr(), most, timeout_ms) } {
            count @ 0.. => Ok(count as usize),
            _ => match io::Error::last_os_error() {
                // Stopped and continued, or looked at by a debugger.
                error if error.kind() == io::ErrorKind::Interrupted => Ok(0),
                error => Err(error),
            },
        }
    }

    /// Accepts one connection, or some more where a turn is long. One too many to find none left is not cheap:
    /// the kernel makes a socket and a file before it looks.
    fn accept(&mut self, events: usize) {
        for _ in 0..=events / 32 {
            let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
            let null = std::ptr::null_mut();
            let accepted =
                owned(unsafe { libc::accept4(self.listener.as_raw_fd(), null, null.cast(), flags) });
            match accepted {
                Ok(socket) => self.open(socket),
                Err(error) => {
                    if let Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) =
                        error.raw_os_error()
                    {
                        self.rest();
                    }
                    // Anything else concerns one connection that is gone already.
                    return;
                }
            }
        }
    }

    fn open(&mut self, socket: OwnedFd) {
        let stream = match &self.tls {
            None => Stream::plain(socket),
            Some(server) => match server.accept(socket) {
                Ok(stream) => stream,
                Err(failure) => {
                    eprintln!("serve: a connection cannot be opened: {failure:?}");
                    return;
                }
            },
        };
        let connection = Connection::new(stream, self.now_s);
        let token = self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        });
        let watched = self.watch(libc::EPOLL_CTL_ADD, connection.fd(), libc::EPOLLIN, token as u64);
        self.connections[token] = Some(connection);
        if watched.is_err() {
            self.close(token);
        }
    }

    fn advance(&mut self, token: usize) {
        let Some(Some(connection)) = self.connections.get_mut(token) else { return };
        let for_write = match connection.advance(&mut self.scratch, &mut self.service, self.now_s) {
            Next::Close => return self.close(token),
            next => next == Next::Write,
        };
        if connection.watched_for_write != for_write {
            connection.watched_for_write = for_write;
            let fd = connection.fd();
            // Not both: a client that sends on without reading would wake this loop for nothing.
            let interest = if for_write { libc::EPOLLOUT } else { libc::EPOLLIN };
            if self.watch(libc::EPOLL_CTL_MOD, fd, interest, token as u64).is_err() {
                self.close(token);
            }
        }
    }

    fn close(&mut self, token: usize) {
        // Closing its descriptor takes it out of the epoll set as well.
        self.connections[token] = None;
        self.free.push(token);
        if !self.accepting {
            self.accept_again();
        }
    }

    fn sweep(&mut self) {
        self.swept_s = self.now_s;
        for token in 0..self.connections.len() {
            if self.connections[token].as_ref().is_some_and(|connection| connection.is_overdue(self.now_s)) {
                self.close(token);
            }
        }
    }

    /// Stops accepting: the waiting connection would wake this loop again and again.
    fn rest(&mut self) {
        self.accepting = self.watch(libc::EPOLL_CTL_MOD, self.listener.as_raw_fd(), 0, LISTENER).is_err();
    }

    fn accept_again(&mut self) {
        let interest = libc::EPOLLIN;
        self.accepting =
            self.watch(libc::EPOLL_CTL_MOD, self.listener.as_raw_fd(), interest, LISTENER).is_ok();
    }

    fn watch(&self, what: libc::c_int, fd: RawFd, interest: libc::c_int, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: interest as u32, u64: token };
        match unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), what, fd, &mut event) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

fn owned(fd: RawFd) -> io::Result<OwnedFd> {
    if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(unsafe { OwnedFd::from_raw_fd(fd) }) }
}

fn now_s() -> u32 {
    (clock::wall_ns() / 1_000_000_000) as u32
}
