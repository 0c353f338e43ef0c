//! Servers in this process, one thread a connection, each with its own misbehaviour.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustix::net::sockopt;

pub const GOOD: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// Action of a connection after an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Then {
    GoOn,
    Close,
    Reset,
    /// Silence: nothing more is sent, and nothing closed.
    Stall,
    /// End of the whole server.
    Die,
}

/// Function that answers the request of a given number.
pub type Answer = dyn Fn(&mut TcpStream, u64) -> Then + Send + Sync;

pub struct Server {
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    dead: AtomicBool,
    requests: AtomicU64,
    connections: AtomicU64,
    open: AtomicU64,
    most_open: AtomicU64,
    lines: Mutex<Vec<String>>,
    /// Idle time after which a connection is closed; 0: never.
    idle_ms: AtomicU64,
}

impl Server {
    pub fn start(answer: impl Fn(&mut TcpStream, u64) -> Then + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        listener.set_nonblocking(true).expect("a listener that does not block");
        let (shared, answer): (_, Arc<Answer>) = (Arc::new(Shared::default()), Arc::new(answer));
        let server = Server { address, shared: Arc::clone(&shared) };
        thread::spawn(move || {
            while !shared.dead.load(SeqCst) {
                match listener.accept() {
                    Ok((stream, _)) => {
                        let (shared, answer) = (Arc::clone(&shared), Arc::clone(&answer));
                        shared.connections.fetch_add(1, SeqCst);
                        thread::spawn(move || shared.serve(stream, answer.as_ref()));
                    }
                    Err(_) => thread::sleep(Duration::from_micros(200)),
                }
            }
        });
        server
    }

    /// Starts a server that is always right.
    pub fn good() -> Server {
        Server::start(|stream, _| say(stream, GOOD, Then::GoOn))
    }

    pub fn closing_idle_after_ms(self, idle_ms: u64) -> Server {
        self.shared.idle_ms.store(idle_ms, SeqCst);
        self
    }

    pub fn requests(&self) -> u64 {
        self.shared.requests.load(SeqCst)
    }

    pub fn connections(&self) -> u64 {
        self.shared.connections.load(SeqCst)
    }

    pub fn most_open(&self) -> u64 {
        self.shared.most_open.load(SeqCst)
    }

    /// Ends the server, and waits until no part of it listens or answers.
    pub fn end(self) {
        self.shared.dead.store(true, SeqCst);
        while TcpStream::connect(self.address).is_ok() || self.shared.open.load(SeqCst) > 0 {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Returns the first line of every request.
    pub fn lines(&self) -> Vec<String> {
        self.shared.lines.lock().expect("lines").clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.dead.store(true, SeqCst);
    }
}

pub fn say(stream: &mut TcpStream, words: &str, then: Then) -> Then {
    match stream.write_all(words.as_bytes()) {
        Ok(()) => then,
        Err(_) => Then::Close,
    }
}

impl Shared {
    fn serve(&self, mut stream: TcpStream, answer: &Answer) {
        let open = self.open.fetch_add(1, SeqCst) + 1;
        self.most_open.fetch_max(open, SeqCst);
        let _ = stream.set_nodelay(true);
        let _ = stream.set_read_timeout(Some(Duration::from_millis(5)));
        while let Some(line) = self.request(&mut stream) {
            self.lines.lock().expect("lines").push(line);
            let number = self.requests.fetch_add(1, SeqCst);
            match answer(&mut stream, number) {
                Then::GoOn => {}
                Then::Close => break,
                Then::Reset => {
                    let _ = sockopt::set_socket_linger(&stream, Some(Duration::ZERO));
                    break;
                }
                Then::Stall => while self.request(&mut stream).is_some() {},
                Then::Die => self.dead.store(true, SeqCst),
            }
        }
        self.open.fetch_sub(1, SeqCst);
    }

    /// Reads one request. Returns None if no more will come.
    fn request(&self, stream: &mut TcpStream) -> Option<String> {
        let (mut came, mut waited_ms) = (Vec::new(), 0);
        let mut buffer = [0; 1024];
        while !came.ends_with(b"\r\n\r\n") {
            let idle_ms = self.idle_ms.load(SeqCst);
            if self.dead.load(SeqCst) || (idle_ms > 0 && waited_ms >= idle_ms) {
                return None;
            }
            match stream.read(&mut buffer) {
                Ok(0) => return None,
                Ok(count) => came.extend_from_slice(&buffer[..count]),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    waited_ms += 5
                }
                Err(_) => return None,
            }
        }
        String::from_utf8_lossy(&came).lines().next().map(str::to_owned)
    }
}
