//! An epoll loop: accepts connections, and advances each when it is ready.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};

use crate::calls;
use crate::clock;
use crate::tls::{Server, Stream};

use super::connection::{Connection, Next};
use super::routes::Service;
use crate::http::request::MOST_HEAD_BYTES;

const LISTENER: u64 = u64::MAX;
/// Events taken at a time.
const EVENTS: usize = 512;
/// Interval of the search for overdue connections, which walks over all of them.
const SWEEP_S: u32 = 5;
const SWEEP: Timespec = Timespec { tv_sec: SWEEP_S as i64, tv_nsec: 0 };
/// Pause of accepting if the descriptors are used up and none is freed.
const REST: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };

pub struct Loop {
    epoll: OwnedFd,
    listener: TcpListener,
    /// True if other loops accept from it as well: then a connection wakes only one of them.
    is_shared: bool,
    tls: Option<Arc<Server>>,
    service: Service,
    /// Connections by token; None for a closed one.
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    scratch: Box<[u8]>,
    accepting: bool,
    now_s: u32,
    swept_s: u32,
}

impl Loop {
    /// Makes the loop, and returns it with the address it accepts on.
    pub fn new(
        listener: TcpListener,
        is_shared: bool,
        tls: Option<Arc<Server>>,
        service: Service,
    ) -> io::Result<(Loop, SocketAddr)> {
        let address = listener.local_addr()?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let now_s = now_s();
        let served = Loop {
            epoll,
            listener,
            is_shared,
            tls,
            service,
            connections: Vec::new(),
            free: Vec::new(),
            // Twice the longest head, so that there is always room to read into.
            scratch: vec![0; 2 * MOST_HEAD_BYTES].into(),
            accepting: true,
            now_s,
            swept_s: now_s,
        };
        served.watch_listener()?;
        Ok((served, address))
    }

    /// Serves until the process ends, or the loop itself fails.
    pub fn run(&mut self) -> io::Result<Infallible> {
        let mut events: Vec<epoll::Event> = Vec::with_capacity(EVENTS);
        loop {
            events.clear();
            let timeout = match (self.accepting, self.free.len() == self.connections.len()) {
                (false, _) => Some(&REST),
                (true, false) => Some(&SWEEP),
                (true, true) => None,
            };
            match epoll::wait(&self.epoll, spare_capacity(&mut events), timeout) {
                // The process was stopped and continued, or a debugger is attached.
                Ok(_) => {}
                Err(Errno::INTR) => calls::say(),
                Err(error) => return Err(error.into()),
            }
            self.now_s = now_s();
            for event in &events {
                match event.data.u64() {
                    LISTENER => self.accept(events.len()),
                    token => self.advance(token as usize),
                }
            }
            if self.now_s.saturating_sub(self.swept_s) >= SWEEP_S {
                self.sweep();
            }
            if !self.accepting && events.is_empty() {
                self.accept_again();
            }
        }
    }

    /// Accepts one connection, or more in a long turn. An attempt without a waiting connection is expensive:
    /// the kernel makes a socket and a file before it looks.
    fn accept(&mut self, events: usize) {
        for _ in 0..=events / 32 {
            match accept_with(&self.listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok(socket) => self.open(socket),
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => return self.rest(),
                // Every other error concerns one connection that is already gone.
                Err(_) => return,
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
        let data = EventData::new_u64(token as u64);
        let watched = epoll::add(&self.epoll, &connection, data, EventFlags::IN);
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
            // Only one of the two is watched: a client that sends without reading would wake this loop for
            // nothing.
            let interest = if for_write { EventFlags::OUT } else { EventFlags::IN };
            let data = EventData::new_u64(token as u64);
            if epoll::modify(&self.epoll, &*connection, data, interest).is_err() {
                self.close(token);
            }
        }
    }

    fn close(&mut self, token: usize) {
        // Closing its descriptor removes it from the epoll set as well.
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

    /// Stops accepting, because the waiting connection would wake this loop again and again.
    fn rest(&mut self) {
        self.accepting = epoll::delete(&self.epoll, &self.listener).is_err();
    }

    fn accept_again(&mut self) {
        self.accepting = self.watch_listener().is_ok();
    }

    fn watch_listener(&self) -> rustix::io::Result<()> {
        let alone = if self.is_shared { EventFlags::EXCLUSIVE } else { EventFlags::empty() };
        let data = EventData::new_u64(LISTENER);
        epoll::add(&self.epoll, &self.listener, data, EventFlags::IN | alone)
    }
}

fn now_s() -> u32 {
    (clock::wall_ns() / 1_000_000_000) as u32
}
