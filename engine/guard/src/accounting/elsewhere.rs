//! Components on another machine: an agent there reads their accounts, because only that machine can.
//!
//! Each side sends lines of JSON over a TCP connection that is silent during a chunk. The client first proves
//! that it has the run's token, which is never sent. Clocks of two machines are never compared: the agent
//! sends differences of its own clock.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use aws_lc_rs::hmac;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::paid::{Paid, Usage};
use crate::clock;

#[cfg(test)]
pub mod tests;

/// Protocol version: both ends must be of one build, and report a mismatch.
pub const VERSION: u32 = 2;
/// Limit of a line: names and processes of some components fit.
pub const MOST_LINE_BYTES: u64 = 64 * 1024;
/// Time limit of an agent's answer. It takes some milliseconds, or a tenth of a second for settling.
pub const ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// Round trips measured; the median is reported.
const ROUND_TRIPS: usize = 21;
pub const NONCE_BYTES: usize = 32;
const LEAST_TOKEN_BYTES: usize = 16;

/// Address of an agent, and the components it accounts for.
#[derive(Deserialize, Debug, Clone)]
#[serde(deny_unknown_fields)]
pub struct Place {
    pub address: SocketAddr,
    /// File that only its owner can read, with the token in hexadecimal.
    pub token_file: String,
    /// Components, each with the id on that machine of the process at the root of its tree.
    pub components: BTreeMap<String, i32>,
}

#[derive(Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum Asked {
    Open(BTreeMap<String, i32>),
    Ping,
    Begin,
    Start,
    Bill,
    Read,
    Close,
}

#[derive(Serialize, Deserialize, Debug)]
pub struct Greeting {
    pub accounts: u32,
    pub nonce: String,
}

#[derive(Serialize, Deserialize, Debug)]
pub struct Proof {
    pub proof: String,
}

/// Answer of an agent to any request.
#[derive(Serialize, Deserialize, Debug, Default)]
#[serde(default)]
pub struct Answer {
    pub components: BTreeMap<String, Paid>,
    pub usage: BTreeMap<String, Usage>,
    pub ticks: bool,
    pub unsettled: bool,
    /// Name of a component that ended, or another reason for a failure.
    pub fault: Option<String>,
}

/// Accounts of components on one other machine. The first fault is kept, because later answers mean nothing.
pub struct Elsewhere {
    address: SocketAddr,
    stream: BufReader<TcpStream>,
    fault: Option<String>,
    pub names: Vec<String>,
    /// Median of some round trips with no other traffic.
    pub round_trip_ns: u64,
}

impl Elsewhere {
    /// Opens the accounts of a place.
    pub fn open(place: &Place) -> Result<Elsewhere, String> {
        let about = |what: String| format!("the accounts at {}: {what}", place.address);
        let words = |error: std::io::Error| about(error.to_string());
        let token = read_token(&place.token_file).map_err(about)?;
        let stream = TcpStream::connect_timeout(&place.address, ANSWER_LIMIT).map_err(words)?;
        stream.set_nodelay(true).map_err(words)?;
        stream.set_read_timeout(Some(ANSWER_LIMIT)).map_err(words)?;
        stream.set_write_timeout(Some(ANSWER_LIMIT)).map_err(words)?;
        let mut elsewhere = Elsewhere {
            address: place.address,
            stream: BufReader::new(stream),
            fault: None,
            names: place.components.keys().cloned().collect(),
            round_trip_ns: 0,
        };
        let greeting: Greeting = hear(&mut elsewhere.stream).map_err(about)?;
        if greeting.accounts != VERSION {
            let theirs = greeting.accounts;
            return Err(about(format!("the agent has version {theirs}; it must have {VERSION}")));
        }
        let nonce = hex::decode(&greeting.nonce).map_err(|_| about("the nonce is not valid".to_owned()))?;
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &token), &nonce);
        say(&mut elsewhere.stream, &Proof { proof: hex::encode(tag) }).map_err(about)?;
        elsewhere.ask(&Asked::Open(place.components.clone()));
        let mut trips = Vec::with_capacity(ROUND_TRIPS);
        for _ in 0..ROUND_TRIPS {
            let before_ns = clock::wall_ns();
            elsewhere.ask(&Asked::Ping);
            trips.push(clock::wall_ns() - before_ns);
        }
        trips.sort_unstable();
        elsewhere.round_trip_ns = trips[ROUND_TRIPS / 2];
        match elsewhere.fault.take() {
            None => Ok(elsewhere),
            Some(fault) => Err(fault),
        }
    }

    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    fn ask(&mut self, asked: &Asked) -> Answer {
        self.say(asked);
        self.hear()
    }

    /// Sends a request without waiting, so that all machines are asked before any has to answer.
    pub fn say(&mut self, asked: &Asked) {
        if self.fault.is_none() {
            self.fault = say(&mut self.stream, asked).err().map(|fault| self.about(&fault));
        }
    }

    /// Waits for the answer to the last request.
    pub fn hear(&mut self) -> Answer {
        if self.fault.is_some() {
            return Answer::default();
        }
        let answered = hear::<Answer>(&mut self.stream);
        let answer =
            answered.unwrap_or_else(|fault| Answer { fault: Some(self.about(&fault)), ..Answer::default() });
        self.fault.clone_from(&answer.fault);
        answer
    }

    fn about(&self, fault: &str) -> String {
        format!("the accounts at {}: {fault}", self.address)
    }
}

/// Reads the token in this file, which only its owner may read.
fn read_token(path: &str) -> Result<Vec<u8>, String> {
    use std::os::unix::fs::PermissionsExt;
    let words = |error: std::io::Error| format!("{path}: {error}");
    if fs::metadata(path).map_err(words)?.permissions().mode() & 0o077 != 0 {
        return Err(format!("{path}: other users can read this token; only its owner must"));
    }
    token(fs::read_to_string(path).map_err(words)?.trim())
}

pub fn token(hexadecimal: &str) -> Result<Vec<u8>, String> {
    hex::decode(hexadecimal)
        .ok()
        .filter(|token| token.len() >= LEAST_TOKEN_BYTES)
        .ok_or_else(|| format!("a token must have at least {LEAST_TOKEN_BYTES} bytes, in hexadecimal"))
}

pub fn say<Line: Serialize>(stream: &mut BufReader<TcpStream>, line: &Line) -> Result<(), String> {
    let mut text = serde_json::to_vec(line).map_err(|error| error.to_string())?;
    text.push(b'\n');
    stream.get_mut().write_all(&text).map_err(|error| error.to_string())
}

pub fn hear<Line: DeserializeOwned>(stream: &mut BufReader<TcpStream>) -> Result<Line, String> {
    let mut line = String::new();
    match stream.take(MOST_LINE_BYTES).read_line(&mut line) {
        Ok(0) => Err("the connection was closed".to_owned()),
        Ok(_) => serde_json::from_str(&line).map_err(|error| format!("not a line of the protocol: {error}")),
        Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock) => {
            Err(format!("no answer within {} s", ANSWER_LIMIT.as_secs()))
        }
        Err(error) => Err(error.to_string()),
    }
}
