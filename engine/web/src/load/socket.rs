//! Non-blocking sockets, and the kernel events that a loop waits for.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, sockopt};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

/// Begins a connection. It may be refused later: the first write or `pending_error` reports that.
pub fn connect(address: &SocketAddr) -> io::Result<OwnedFd> {
    crate::calls::note("socket");
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    // Sockets close by a reset: otherwise each connection keeps its port for a minute, and ports run out
    // within seconds.
    sockopt::set_socket_linger(&socket, Some(Duration::ZERO))?;
    connect_again(&socket, address)?;
    Ok(socket)
}

/// Begins a connection on a socket whose last one is closed. It keeps its options, and is still watched.
pub fn connect_again(socket: &OwnedFd, address: &SocketAddr) -> io::Result<()> {
    match rustix::net::connect(socket, address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Returns the error of a connection, for example that it was refused.
pub fn pending_error(socket: impl AsFd) -> io::Result<()> {
    Ok(sockopt::socket_error(socket)??)
}

/// Waits for sockets and an alarm.
///
/// A time limit for each wait sets and clears the processor's timer thousands of times a second, and costs a
/// twentieth of a request. An alarm in the future is set once.
pub struct Epoll {
    descriptor: OwnedFd,
    events: Vec<epoll::Event>,
    alarm: OwnedFd,
    /// Time of the alarm, which may have passed.
    alarm_ns: u64,
}

/// Token of the alarm, which no user has.
const ALARM: u64 = u64::MAX;

/// Readiness of a socket, or the alarm, which concerns no user.
#[derive(Debug, Clone, Copy)]
pub struct Ready {
    token: u64,
    flags: epoll::EventFlags,
}

impl Ready {
    /// Readiness for writing, with which every attempt begins.
    pub const TO_WRITE: Ready = Ready { token: 0, flags: epoll::EventFlags::OUT };

    /// Returns the token under which a user's connection is watched.
    pub fn token(user: u32, generation: u32) -> u64 {
        u64::from(generation) << 32 | u64::from(user)
    }

    /// Returns the user and the number of its connection.
    #[inline]
    pub fn about(self) -> (u32, u32) {
        (self.token as u32, (self.token >> 32) as u32)
    }

    pub fn to_read(self) -> bool {
        use epoll::EventFlags as Flags;
        self.flags.intersects(Flags::IN | Flags::RDHUP | Flags::HUP | Flags::ERR)
    }

    /// Returns true if the peer has ended its side: after the bytes in the socket, none will come.
    pub fn ended(self) -> bool {
        use epoll::EventFlags as Flags;
        self.flags.intersects(Flags::RDHUP | Flags::HUP | Flags::ERR)
    }

    pub fn to_write(self) -> bool {
        self.flags.contains(epoll::EventFlags::OUT)
    }
}

/// Events that a socket is watched for. Each change is reported once.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// Bytes, or the peer's end.
    #[default]
    Read,
    /// Room to send as well. A new socket has room, and an event that only reports it costs a turn of the
    /// loop.
    ReadAndWrite,
}

impl Interest {
    fn flags(self) -> epoll::EventFlags {
        let read = epoll::EventFlags::IN | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        if self == Interest::Read { read } else { read | epoll::EventFlags::OUT }
    }
}

impl Epoll {
    /// Number of events taken at once: enough for a burst to cost one call.
    const AT_ONCE: usize = 512;

    pub fn new() -> io::Result<Epoll> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let epoll = Epoll {
            descriptor: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            events: Vec::with_capacity(Self::AT_ONCE),
            alarm: timerfd_create(TimerfdClockId::Monotonic, flags)?,
            alarm_ns: 0,
        };
        epoll.watch(&epoll.alarm, ALARM, Interest::Read)?;
        Ok(epoll)
    }

    fn set_alarm(&mut self, at_ns: u64) -> io::Result<()> {
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        let (seconds, rest_ns) = ((at_ns / 1_000_000_000) as i64, (at_ns % 1_000_000_000) as i64);
        let at = Itimerspec { it_interval: never, it_value: Timespec { tv_sec: seconds, tv_nsec: rest_ns } };
        timerfd_settime(&self.alarm, TimerfdTimerFlags::ABSTIME, &at)?;
        self.alarm_ns = at_ns;
        Ok(())
    }

    /// Watches a socket until it is closed.
    pub fn watch(&self, socket: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(&self.descriptor, socket, epoll::EventData::new_u64(token), interest.flags())?)
    }

    /// Changes the events of a watched socket; existing readiness is reported again.
    pub fn change(&self, socket: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(&self.descriptor, socket, epoll::EventData::new_u64(token), interest.flags())?)
    }

    /// Waits until a time, or slightly less, for events. Returns their number.
    pub fn wait(&mut self, now_ns: u64, until_ns: u64) -> io::Result<usize> {
        const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
        let is_due = until_ns <= now_ns;
        if !is_due && (self.alarm_ns <= now_ns || until_ns < self.alarm_ns) {
            self.set_alarm(until_ns)?;
        }
        self.events.clear();
        let room = rustix::buffer::spare_capacity(&mut self.events);
        match epoll::wait(&self.descriptor, room, is_due.then_some(&AT_ONCE)) {
            Err(Errno::INTR) => Ok(0),
            count => Ok(count?),
        }
    }

    #[inline]
    pub fn ready(&self, index: usize) -> Ready {
        let epoll::Event { flags, data, .. } = self.events[index];
        Ready { token: data.u64(), flags }
    }
}
