//! The server in its own process, reached over loopback.

mod client;
mod fuzz;
mod http;
mod life;
mod operations;
mod pressure;
pub mod rows;
mod secured;
mod sign_in;
mod turns;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, setrlimit};
use serde_json::{Value, json};

use client::{Client, Reply};

/// Variable that is set for the process that is to be the server.
const VARIABLE: &str = "TOLLBAR_TEST_SERVES";

#[test]
#[ignore = "the server that the other tests start"]
fn the_server_itself() {
    if std::env::var_os(VARIABLE).is_some() {
        let status = super::main();
        // SAFETY: ends the process, and runs no more of its code.
        unsafe { libc::_exit(status) };
    }
}

pub struct Served {
    pub process: Child,
    pub address: SocketAddr,
    /// Line that it printed when it was ready.
    listening: Value,
    /// TLS settings of its clients; None without TLS.
    spec: Option<Value>,
}

impl Served {
    pub fn plain() -> Served {
        Served::with(json!([]))
    }

    fn with(operations: Value) -> Served {
        Served::start(&json!({"listen": "127.0.0.1:0", "operations": operations}), None)
    }

    pub fn start(config: &Value, descriptors: Option<u64>) -> Served {
        let (process, line, _) = start(&config.to_string(), descriptors);
        let listening: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let address = listening["listening"].as_str().unwrap_or_else(|| panic!("not ready: {line}"));
        Served { process, address: address.parse().unwrap(), listening, spec: None }
    }

    fn client(&self) -> Client {
        Client::new(TcpStream::connect(self.address).unwrap(), self.spec.as_ref())
    }

    /// Sends one GET on its own connection, and returns the answer.
    fn ask(&self, target: &str) -> Reply {
        let mut client = self.client();
        client.send(get(target));
        client.reply()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// Returns the CPU time used so far, in ticks of 10 ms.
    fn cpu_ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts this test program as a server, and returns it with its first line of JSON.
fn start(config: &str, descriptors: Option<u64>) -> (Child, String, BufReader<ChildStdout>) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "serve::tests::the_server_itself", "--ignored", "--nocapture", "--test-threads=1"])
        .env(VARIABLE, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(descriptors) = descriptors {
        let limit = move || Rlimit { current: Some(descriptors), maximum: Some(descriptors) };
        // SAFETY: between fork and exec it makes one call to the kernel.
        unsafe { command.pre_exec(move || Ok(setrlimit(Resource::Nofile, limit())?)) };
    }
    let mut process = command.spawn().unwrap();
    process.stdin.take().unwrap().write_all(config.as_bytes()).unwrap();
    let mut out = BufReader::new(process.stdout.take().unwrap());
    let mut line = String::new();
    // The test program's own output comes first.
    while out.read_line(&mut line).unwrap() > 0 {
        match line.find('{') {
            Some(brace) => {
                line.drain(..brace);
                break;
            }
            None => line.clear(),
        }
    }
    (process, line, out)
}

/// Starts a server that must fail, and returns its status, its line on standard output, and its standard
/// error.
pub fn refused(config: &str) -> (ExitStatus, String, String) {
    let (mut process, line, _out) = start(config, None);
    let mut words = String::new();
    process.stderr.take().unwrap().read_to_string(&mut words).unwrap();
    (process.wait().unwrap(), line, words)
}

fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}
