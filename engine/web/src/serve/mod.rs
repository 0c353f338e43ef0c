//! `serve`: the embedded server. It answers `/bytes/N` and `/op/FAMILY/CHOICE`, with or without TLS.
//!
//! One epoll loop runs on one thread, which is pinned to one core, and its cost is measured from outside. Its
//! own part of a request is kept small, so that the measured part dominates. With several cores each has such
//! a loop, in one process with one TLS configuration.

mod answers;
mod connection;
mod event_loop;
pub mod operations;
pub mod routes;
#[cfg(test)]
pub mod tests;

use std::convert::Infallible;
use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;

use rustix::net::{listen, sockopt};
use serde::{Deserialize, Serialize};

use crate::contract::{Mode, Receipt, Record, Task};
use crate::failure::{Failure, on_one_line};
use crate::runner::say;
use crate::sign_in::Gate;
use crate::store;
use crate::team::keep_on;
use crate::{calls, op, process, tls};

use event_loop::Loop;
use operations::Operations;
use routes::Service;

/// Exit status if the port is taken, or the address is not of this machine: another one may work.
const NO_ADDRESS: i32 = 2;
/// Exit status if the configuration is not possible here.
const REFUSED: i32 = 3;

pub fn main() -> i32 {
    process::die_with_parent();
    end_on_signals();
    calls::wake_on_signal();
    let Ready { config, service, tls, receipt } = match prepare() {
        Ok(ready) => ready,
        Err(failure) => return if say(&Record::<()>::refusal(failure, None)) { REFUSED } else { 1 },
    };
    let listener = match open(config.listen) {
        Ok(listener) => listener,
        Err(error) => {
            eprintln!("serve: {} cannot be used: {error}", config.listen);
            return NO_ADDRESS;
        }
    };
    // A connection needs a descriptor. If the limit cannot be raised, fewer connections are possible.
    process::raise_open_files(u64::MAX);
    let Err(error) = serve(config, listener, service, tls, receipt);
    eprintln!("serve: {error}");
    1
}

/// Serves on each core: on the first, or without cores, on this thread.
fn serve(
    config: Config,
    listener: TcpListener,
    service: Service,
    tls: Option<Arc<tls::Server>>,
    receipt: Option<Receipt>,
) -> io::Result<Infallible> {
    let failed = |failure: Failure| io::Error::other(failure.into_words());
    let is_shared = config.cores.len() > 1;
    let (ready, others) = channel();
    for core in config.cores.iter().skip(1).copied() {
        let (listener, tls) = (listener.try_clone()?, tls.clone());
        let (tasks, ready) = (config.operations.clone(), ready.clone());
        let work = move || {
            let made = keep_on(Some(core)).and_then(|()| Operations::prepare(&tasks)).map_err(failed);
            let made =
                made.and_then(|made| Loop::new(listener, is_shared, tls, Service::new(made, None, None)));
            match made {
                Ok((mut event_loop, _)) => {
                    let _ = ready.send(None);
                    let Err(error) = event_loop.run();
                    eprintln!("serve: {error}");
                    // A loop that has failed would leave its connections, and its core, without an answer.
                    std::process::exit(1);
                }
                Err(error) => drop(ready.send(Some(error))),
            }
        };
        thread::Builder::new().name(format!("serve {core}")).spawn(work)?;
    }
    drop(ready);
    if let Some(error) = others.iter().take(config.cores.len().saturating_sub(1)).flatten().next() {
        return Err(error);
    }
    keep_on(config.cores.first().copied()).map_err(failed)?;
    let library = tls.as_ref().map(|tls| tls.library());
    let (mut event_loop, address) = Loop::new(listener, is_shared, tls, service)?;
    match say(&Listening { listening: address, tls: library, provider: receipt }) {
        true => event_loop.run(),
        false => Err(io::Error::other("no program reads the output of this server")),
    }
}

/// Line on standard output once connections are accepted.
#[derive(Serialize)]
struct Listening {
    listening: SocketAddr,
    tls: Option<String>,
    provider: Option<Receipt>,
}

/// Configuration of a server.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Address, `127.0.0.1:40123` or `[::1]:40123`; port 0 selects a free one.
    listen: SocketAddr,
    #[serde(default)]
    tls: Option<tls::ServerSpec>,
    /// Sign-in that users need for `/bytes/N`; None: no sign-in.
    #[serde(default)]
    sign_in: Option<Gate>,
    /// Table of which each `/bytes/N` reads or writes a row before its answer, after its user has signed in.
    #[serde(default)]
    rows: Option<store::Task>,
    /// Operations to prepare, each under its own path.
    #[serde(default)]
    operations: Vec<Task>,
    /// Cores, each with a thread, all of which accept; empty: one thread on the cores of the process.
    #[serde(default)]
    cores: Vec<usize>,
}

impl Config {
    pub fn read(text: &str) -> Result<Config, Failure> {
        let config: Config = serde_json::from_str(text).map_err(|error| {
            let why = on_one_line(error);
            Failure::Failed(format!("the configuration is not valid: {why}"))
        })?;
        let rows = config.rows.iter().map(|rows| &rows.task);
        if config.cores.len() > 1 && (config.sign_in.is_some() || config.rows.is_some()) {
            let words = "a sign-in or a table needs one thread; `cores` must name one core";
            return Err(Failure::Unsupported(words.to_owned()));
        }
        match config.operations.iter().chain(rows).find(|task| task.mode != Mode::Measure) {
            Some(task) => Err(Failure::Failed(format!(
                "each operation of a server must have the mode `measure`; that of {} {} is another",
                task.family, task.choice
            ))),
            None => Ok(config),
        }
    }
}

/// A configuration, with everything in it prepared.
struct Ready {
    config: Config,
    service: Service,
    tls: Option<Arc<tls::Server>>,
    /// Receipt of the providers of operations.
    receipt: Option<Receipt>,
}

fn prepare() -> Result<Ready, Failure> {
    let config = read_config()?;
    // The mask applies to the whole process, before it has threads: two masks are refused when the operations
    // are prepared.
    config.operations.first().map(op::mask).transpose()?;
    let operations = Operations::prepare(&config.operations)?;
    let tls = config.tls.as_ref().map(tls::Server::new).transpose()?;
    let library = tls.as_ref().map(tls::Server::library);
    if let (Some(spec), Some(library)) = (&config.tls, &library) {
        operations.refuse_another_libcrypto(spec, library)?;
    }
    let receipt = operations.receipt();
    let sign_in = config.sign_in.as_ref().map(Gate::prepare).transpose()?;
    let asks_for_certificates = config.tls.as_ref().is_some_and(|tls| tls.client_authority_pem.is_some());
    if sign_in.as_ref().is_some_and(|sign_in| sign_in.needs_certificates()) && !asks_for_certificates {
        let words = "this sign-in needs certificates of clients: `tls` with `client_authority_pem`";
        return Err(Failure::Unsupported(words.to_owned()));
    }
    let rows = config.rows.as_ref().map(store::rows).transpose()?;
    let receipt = receipt.or_else(|| rows.as_ref().map(|rows| rows.receipt().clone()));
    let service = Service::new(operations, sign_in, rows);
    Ok(Ready { config, service, tls: tls.map(Arc::new), receipt })
}

fn read_config() -> Result<Config, Failure> {
    let mut text = String::new();
    io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| Failure::Failed(format!("the configuration cannot be read: {error}")))?;
    Config::read(&text)
}

fn open(address: SocketAddr) -> io::Result<TcpListener> {
    // The standard library sets SO_REUSEADDR, so that a port is free again as soon as its last server is
    // gone.
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    // The standard library queues only 128 connections; the kernel reduces this number to its limit.
    const BACKLOG: i32 = 16384;
    listen(&listener, BACKLOG)?;
    // Accepted sockets inherit this, which saves a call for each connection.
    sockopt::set_tcp_nodelay(&listener, true)?;
    Ok(listener)
}

/// Makes SIGTERM and SIGINT end the server with status 0. The kernel frees everything that is left.
fn end_on_signals() {
    extern "C" fn end(_: libc::c_int) {
        // SAFETY: `_exit` may be called in a signal handler, and ends the process.
        unsafe { libc::_exit(0) }
    }
    for signal in [libc::SIGTERM, libc::SIGINT] {
        // SAFETY: the handler calls only `_exit`.
        unsafe { libc::signal(signal, end as *const () as libc::sighandler_t) };
    }
}
