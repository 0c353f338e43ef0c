//! Sockets that never block, and what the kernel is asked to wait for.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Begins a connection. It may be refused later: the first write or `pending_error` says so.
pub fn connect(address: &SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    let descriptor = unsafe { libc::socket(family, kind, 0) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
    option(&socket, libc::IPPROTO_TCP, libc::TCP_NODELAY, &1_i32)?;
    // Closed by a reset: else each connection holds its port for a minute, and ports run out within seconds.
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    option(&socket, libc::SOL_SOCKET, libc::SO_LINGER, &linger)?;
    let begun = match address {
        SocketAddr::V4(address) => {
            let name = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: address.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.ip().octets()) },
                sin_zero: [0; 8],
            };
            begin(&socket, &name)
        }
        SocketAddr::V6(address) => {
            let name = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: address.port().to_be(),
                sin6_flowinfo: address.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: address.ip().octets() },
                sin6_scope_id: address.scope_id(),
            };
            begin(&socket, &name)
        }
    };
    match begun {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(socket),
    }
}

fn begin<Name>(socket: &OwnedFd, name: &Name) -> io::Result<()> {
    let length = std::mem::size_of::<Name>() as libc::socklen_t;
    done(unsafe { libc::connect(socket.as_raw_fd(), std::ptr::from_ref(name).cast(), length) })
}

fn option<Value>(socket: &OwnedFd, level: i32, name: i32, value: &Value) -> io::Result<()> {
    let length = std::mem::size_of::<Value>() as libc::socklen_t;
    let value = std::ptr::from_ref(value).cast();
    done(unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, value, length) })
}

/// The error a connection met meanwhile, such as that it was refused.
pub fn pending_error(socket: RawFd) -> io::Result<()> {
    let (mut error, mut length) = (0_i32, std::mem::size_of::<i32>() as libc::socklen_t);
    let value = std::ptr::from_mut(&mut error).cast();
    done(unsafe { libc::getsockopt(socket, libc::SOL_SOCKET, libc::SO_ERROR, value, &mut length) })?;
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

fn timespec(time_ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (time_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (time_ns % 1_000_000_000) as libc::c_long,
    }
}

fn done(status: i32) -> io::Result<()> {
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Raises what this process may open to what it is allowed to raise it to, and says how much that is.
pub fn raise_descriptor_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) != 0 {
            return 0;
        }
        let raised = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
        if libc::setrlimit(libc::RLIMIT_NOFILE, &raised) == 0 { raised.rlim_cur } else { limit.rlim_cur }
    }
}

/// What sockets are ready for, and an alarm.
///
/// A time limit of each single wait is set in the processor's timer and taken back, thousands of times a second,
/// and costs a twentieth of all that a request does. An alarm far ahead is set once.
pub struct Epoll {
    descriptor: OwnedFd,
    events: Vec<libc::epoll_event>,
    alarm: OwnedFd,
    /// When it rings; it may have rung.
    alarm_ns: u64,
}

/// From here on the alarm is worth its own call to the kernel: what is nearer is mostly a wait for one arrival.
const FAR_NS: u64 = 2_000_000;

/// The token of the alarm: no user has it.
const ALARM: u64 = u64::MAX;

/// Something that a socket is ready for; or the alarm, which is nobody's.
#[derive(Debug, Clone, Copy)]
pub struct Ready {
    token: u64,
    flags: u32,
}

impl Ready {
    /// Which user this is about, and which of its connections.
    #[inline]
    pub fn about(self) -> (u32, u32) {
        (self.token as u32, (self.token >> 32) as u32)
    }

    /// As if a socket were ready to be written to: how every attempt begins.
    pub const TO_WRITE: Ready = Ready { token: 0, flags: libc::EPOLLOUT as u32 };

    pub fn to_read(self) -> bool {
        self.flags & (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) as u32 != 0
    }

    /// The peer has ended its side: after what there is to read, nothing will come.
    pub fn ended(self) -> bool {
        self.flags & (libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) as u32 != 0
    }

    pub fn connected(self) -> bool {
        self.flags & libc::EPOLLOUT as u32 != 0
    }
}

impl Epoll {
    /// Events taken at once: enough that a burst costs one call.
    const AT_ONCE: usize = 512;

    pub fn new() -> io::Result<Epoll> {
        let descriptor = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        done(descriptor)?;
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        let alarm =
            unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK) };
        done(alarm)?;
        let alarm = unsafe { OwnedFd::from_raw_fd(alarm) };
        let events = vec![libc::epoll_event { events: 0, u64: 0 }; Self::AT_ONCE];
        let epoll = Epoll { descriptor, events, alarm, alarm_ns: 0 };
        epoll.watch(epoll.alarm.as_raw_fd(), ALARM)?;
        Ok(epoll)
    }

    fn set_alarm(&mut self, at_ns: u64) -> io::Result<()> {
        let at = libc::itimerspec { it_interval: timespec(0), it_value: timespec(at_ns) };
        let (alarm, before) = (self.alarm.as_raw_fd(), std::ptr::null_mut());
        done(unsafe { libc::timerfd_settime(alarm, libc::TFD_TIMER_ABSTIME, &at, before) })?;
        self.alarm_ns = at_ns;
        Ok(())
    }

    /// Watches a socket until it is closed. Told of each change once.
    pub fn watch(&self, socket: RawFd, token: u64) -> io::Result<()> {
        let changes = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET;
        let mut event = libc::epoll_event { events: changes as u32, u64: token };
        let epoll = self.descriptor.as_raw_fd();
        done(unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, socket, &mut event) })
    }

    /// Waits until then, or a little less, for something to be ready, and says how many are.
    pub fn wait(&mut self, now_ns: u64, until_ns: u64) -> io::Result<usize> {
        let left_ns = until_ns.saturating_sub(now_ns);
        let timeout_ns = if left_ns < FAR_NS { Some(left_ns) } else { None };
        if timeout_ns.is_none() && (self.alarm_ns <= now_ns || until_ns < self.alarm_ns) {
            self.set_alarm(until_ns)?;
        }
        let epoll = self.descriptor.as_raw_fd();
        let (events, room) = (self.events.as_mut_ptr(), Self::AT_ONCE as i32);
        let count = unsafe {
            // To the nanosecond: arrivals come between the milliseconds that the older call knows.
            let time = timeout_ns.map(timespec);
            let no_mask = std::ptr::null::<libc::sigset_t>();
            let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
            match libc::syscall(libc::SYS_epoll_pwait2, epoll, events, room, time, no_mask, 0) as i32 {
                count if count < 0 && *libc::__errno_location() == libc::ENOSYS => {
                    let timeout_ms =
                        timeout_ns.map_or(-1, |timeout_ns| timeout_ns.div_ceil(1_000_000) as i32);
                    libc::epoll_wait(epoll, events, room, timeout_ms)
                }
                count => count,
            }
        };
        match done(count) {
            Ok(()) => Ok(count as usize),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            Err(error) => Err(error),
        }
    }

    #[inline]
    pub fn ready(&self, index: usize) -> Ready {
        let event = self.events[index];
        Ready { token: event.u64, flags: event.events }
    }
}
