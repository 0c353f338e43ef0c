//! `serve`: the embedded server. Answers `/bytes/N` and `/op/FAMILY/CHOICE`, in clear or under TLS.
//!
//! One epoll loop on one thread: it is pinned to one core, and what it costs is seen from outside. Its own
//! part of a request is kept small, so that what is measured behind it stands out.

mod answers;
mod config;
mod connection;
mod event_loop;
mod http;
mod operations;
mod request;
mod routes;
#[cfg(test)]
mod tests;

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};

use rustix::net::{listen, sockopt};
use serde::Serialize;

use crate::contract::{Failure, Receipt, Record};
use crate::{guard, tls};

use config::Config;
use event_loop::Loop;
use operations::Operations;
use routes::Service;

/// The port is taken, or the address is not one of this machine: another one may do.
const NO_ADDRESS: i32 = 2;
/// What the configuration asks for cannot be had here.
const REFUSED: i32 = 3;

pub fn main() -> i32 {
    guard::die_with_parent();
    end_on_signals();
    let Ready { listen, service, tls, library, receipt } = match prepare() {
        Ok(ready) => ready,
        Err(failure) => return refuse(failure),
    };
    let listener = match open(listen) {
        Ok(listener) => listener,
        Err(error) => {
            eprintln!("serve: {listen} is not to be had: {error}");
            return NO_ADDRESS;
        }
    };
    // A connection is a descriptor. Where the limit cannot be raised, fewer connections are held.
    guard::raise_open_files(u64::MAX);
    let served = Loop::new(listener, tls, service).and_then(|(mut event_loop, address)| {
        announce(&Listening { listening: address, tls: library, provider: receipt })?;
        event_loop.run()
    });
    let Err(error) = served;
    eprintln!("serve: {error}");
    1
}

/// Said on standard output once connections are accepted.
#[derive(Serialize)]
struct Listening {
    listening: SocketAddr,
    tls: Option<String>,
    provider: Option<Receipt>,
}

/// A configuration, with everything in it made ready.
struct Ready {
    listen: SocketAddr,
    service: Service,
    tls: Option<tls::Server>,
    /// What speaks TLS.
    library: Option<String>,
    /// Who performs operations.
    receipt: Option<Receipt>,
}

fn prepare() -> Result<Ready, Failure> {
    let config = read_config()?;
    let operations = Operations::prepare(&config.operations)?;
    let tls = config.tls.as_ref().map(tls::Server::new).transpose()?;
    let library = tls.as_ref().map(tls::Server::library);
    if let (Some(spec), Some(library)) = (&config.tls, &library) {
        operations.refuse_another_libcrypto(spec, library)?;
    }
    let receipt = operations.receipt();
    Ok(Ready { listen: config.listen, service: Service::new(operations), tls, library, receipt })
}

fn read_config() -> Result<Config, Failure> {
    let mut text = String::new();
    io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| Failure::Failed(format!("the configuration cannot be read: {error}")))?;
    Config::read(&text)
}

fn refuse(failure: Failure) -> i32 {
    match announce(&Record::<()>::refusal(failure, None)) {
        Ok(()) => REFUSED,
        Err(error) => {
            eprintln!("serve: the refusal cannot be written: {error}");
            1
        }
    }
}

/// Writes one line of JSON. Not `println!`, which panics where the reader is gone.
fn announce(what: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_string(what)?;
    line.push('\n');
    let mut out = io::stdout().lock();
    out.write_all(line.as_bytes())?;
    out.flush()
}

fn open(address: SocketAddr) -> io::Result<TcpListener> {
    // The standard library sets SO_REUSEADDR: a port is free again as soon as its last server is gone.
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    // It also queues a mere 128 connections; the kernel cuts this down to what it allows.
    const BACKLOG: i32 = 16384;
    listen(&listener, BACKLOG)?;
    // Inherited by what is accepted, which saves a call for each connection.
    sockopt::set_tcp_nodelay(&listener, true)?;
    Ok(listener)
}

/// SIGTERM and SIGINT are how a server is told to end, and to end so is no failure. Nothing is left to be
/// tidied up that the kernel does not tidy up by itself.
fn end_on_signals() {
    extern "C" fn end(_: libc::c_int) {
        // SAFETY: may be called in a signal handler, and ends the process.
        unsafe { libc::_exit(0) }
    }
    for signal in [libc::SIGTERM, libc::SIGINT] {
        // SAFETY: the handler calls nothing but `_exit`.
        unsafe { libc::signal(signal, end as *const () as libc::sighandler_t) };
    }
}
