//! Proof before a number: every kind of client gets the right answer, and what should be refused is.
//!
//! Through the same code as the timed part, one connection at a time.

use super::draws::Draws;
use super::fault::{self, Fault};
use super::kinds::Kind;
use super::phase::nanoseconds;
use super::record::Proof;
use super::refusals;
use super::request::Prebuilt;
use super::response::Expected;
use super::socket::Epoll;
use super::tally::Tally;
use super::task::{ClientKind, ConnectionReuse, Load};
use super::user::{LoopState, Step, User};
use crate::clock;
use crate::contract::Failure;
use crate::tls::Negotiated;

pub fn verify(load: &Load) -> Result<Proof, Failure> {
    let mut proof = Proof::default();
    let kinds: Vec<(usize, &ClientKind)> =
        load.clients.iter().enumerate().filter(|(_, kind)| kind.share > 0).collect();
    for (number, kind) in &kinds {
        // Where there is one kind, which it is goes without saying.
        let name = if kinds.len() == 1 { String::new() } else { format!("client {}: ", number + 1) };
        let words = |words: Vec<String>| words.into_iter().map(|words| format!("{name}{words}")).collect();
        let accepted = accept(load, kind).map_err(|failure| named(&name, failure))?;
        proof.accepted.extend::<Vec<String>>(words(accepted));
        let tried = refusals::refuse(load, kind).map_err(|failure| named(&name, failure))?;
        proof.refused.extend::<Vec<String>>(words(tried.refused));
        proof.not_tried.extend::<Vec<String>>(words(tried.not_tried));
    }
    // A server that broke over what it refused has not refused it.
    if let Some((_, kind)) = kinds.first() {
        let again = Asker::new(load, Kind::new(kind)?, &load.request.paths[0])?.ask();
        again.map_err(|fault| {
            Failure::Failed(format!("not accepted any more, after what was refused: {}", fault.words))
        })?;
    }
    Ok(proof)
}

fn named(name: &str, failure: Failure) -> Failure {
    match failure {
        Failure::Unsupported(words) => Failure::Unsupported(format!("{name}{words}")),
        Failure::Failed(words) => Failure::Failed(format!("{name}{words}")),
    }
}

fn accept(load: &Load, kind: &ClientKind) -> Result<Vec<String>, Failure> {
    let mut accepted = Vec::new();
    let mut sessions = None;
    for path in &load.request.paths {
        let mut asker = match sessions.take() {
            Some(kind) => Asker::new(load, kind, path)?,
            None => Asker::new(load, Kind::new(kind)?, path)?,
        };
        let seen = asker.ask().map_err(|fault| not_accepted(load, path, &fault))?;
        let answer = format!("status {} and {} bytes", seen.status, seen.bytes);
        let path = if load.request.paths.len() > 1 { format!(" from {path}") } else { String::new() };
        note(&mut accepted, format!("{answer}{path}"));
        if let Some(negotiated) = &seen.negotiated {
            // Resumed ones say less; the first never is.
            if !negotiated.resumed {
                note(&mut accepted, describe(negotiated));
            }
        }
        sessions = Some(asker.into_kind());
    }
    if let (Some(spec), Some(kind)) = (&kind.tls, sessions)
        && spec.resume
    {
        accepted.push(resumed(load, kind)?);
    }
    Ok(accepted)
}

fn note(list: &mut Vec<String>, words: String) {
    if !list.contains(&words) {
        list.push(words);
    }
}

fn not_accepted(load: &Load, path: &str, fault: &Fault) -> Failure {
    Failure::Failed(format!("not accepted: {} {path}: {}: {}", load.request.method, fault.kind, fault.words))
}

/// With a session kept from before, the next connection resumes it.
fn resumed(load: &Load, kind: Kind) -> Result<String, Failure> {
    let path = &load.request.paths[0];
    let mut asker = Asker::new(load, kind, path)?;
    let seen = asker.ask().map_err(|fault| not_accepted(load, path, &fault))?;
    let resumed = seen.negotiated.is_some_and(|negotiated| negotiated.resumed);
    if !resumed {
        let words = "not accepted: a session that was offered again was not resumed";
        return Err(Failure::Failed(words.to_owned()));
    }
    Ok("a second connection resumed the session of the first".to_owned())
}

/// `negotiated TLS 1.3, TLS_AES_128_GCM_SHA256, x25519, certificate ECDSA P-256, sha-256 61ab…`.
fn describe(negotiated: &Negotiated) -> String {
    let Negotiated { version, suite, group, certificate, certificate_key, .. } = negotiated;
    let group = if group.is_empty() { String::new() } else { format!(", {group}") };
    let key = if certificate_key.is_empty() { String::new() } else { format!(" {certificate_key},") };
    format!("negotiated {version}, {suite}{group}, certificate{key} sha-256 {certificate}")
}

/// One user that asks one thing at a time, each on a connection of its own.
pub struct Asker {
    state: LoopState,
    user: User,
    limit_ns: u64,
}

pub struct Seen {
    pub status: u16,
    pub bytes: u64,
    pub negotiated: Option<Negotiated>,
}

impl Asker {
    pub fn new(load: &Load, kind: Kind, path: &str) -> Result<Asker, Failure> {
        let load = Load { connection: ConnectionReuse::New, ..load.clone() };
        let epoll = Epoll::new().map_err(|error| Failure::Failed(format!("epoll: {error}")))?;
        let state = LoopState {
            address: load.address,
            epoll,
            kinds: vec![kind],
            shares: vec![1],
            only_kind: None,
            requests: vec![Prebuilt::new(&load, path)],
            expected: Expected::of(&load),
            keeps: false,
            buffer: vec![0; 64 << 10],
            tally: Tally::new(),
            resumed_by_now: false,
        };
        // Its queries are no user's: those of a trial come to a server that has not seen them.
        let user = User::new(Draws::new(0x7665_7269_6679, u32::MAX, clock::wall_ns()));
        Ok(Asker { state, user, limit_ns: nanoseconds(load.request_limit_s) })
    }

    /// The answer, if it is whole and as expected.
    pub fn ask(&mut self) -> Result<Seen, Fault> {
        self.state.tally = Tally::new();
        let end_ns = clock::wall_ns() + self.limit_ns;
        let mut step = self.user.ask(0, &mut self.state);
        loop {
            match step {
                Step::Answered => break,
                Step::Failed(fault) => return Err(fault),
                Step::Waiting | Step::Opened => {}
                Step::Lost => return Err(Fault::new(fault::CLOSED_EARLY, "the connection was closed")),
            }
            let now = clock::wall_ns();
            if now >= end_ns {
                let words = format!("{} after {} ms", self.user.doing(), self.limit_ns / 1_000_000);
                self.user.close();
                return Err(Fault::new(fault::TIMEOUT, words));
            }
            step = Step::Waiting;
            let count = self.state.epoll.wait(now, end_ns).map_err(|error| Fault::of(&error, "waiting"))?;
            let mut ready = (0..count).map(|index| self.state.epoll.ready(index));
            if let Some(ready) =
                ready.find(|ready| matches!(ready.about(), (0, of) if self.user.concerns(of)))
            {
                step = self.user.go_on(ready, &mut self.state);
            }
        }
        let (status, bytes) = self.user.answer();
        let negotiated = self.state.tally.negotiated.first().map(|(negotiated, _)| negotiated.clone());
        Ok(Seen { status, bytes, negotiated })
    }

    /// Gives back the kind of client, with the sessions it has kept.
    pub fn into_kind(mut self) -> Kind {
        self.user.close();
        self.state.kinds.swap_remove(0)
    }
}
