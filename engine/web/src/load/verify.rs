//! Proof before a number: every kind of client gets the right answer, and wrong inputs are refused.
//!
//! The proof uses the same code as the timed part, one connection at a time.

use super::connector::Connector;
use super::probe::{Probe, SignedIn};
use super::refusals;
use super::tallies::{was_found, were_used};
use super::task::{ClientKind, Load};
use crate::clock;
use crate::contract::Proof;
use crate::failure::{self, Failure, Fault};
use crate::sign_in::verified::Found;
use crate::store::Connection;
use crate::tls::{ClientSpec, Negotiated};

pub fn verify(load: &Load) -> Result<Proof, Failure> {
    let mut proof = Proof::default();
    let kinds: Vec<(usize, &ClientKind)> =
        load.clients.iter().enumerate().filter(|(_, kind)| kind.share > 0).collect();
    for (number, kind) in &kinds {
        // With one kind of client its name is not needed.
        let name = if kinds.len() == 1 { String::new() } else { format!("client {}: ", number + 1) };
        let tried = of_kind(load, kind).map_err(|failure| failure.about(&name))?;
        let named = |words: Vec<String>| words.into_iter().map(|words| format!("{name}{words}"));
        proof.accepted.extend(named(tried.accepted));
        proof.refused.extend(named(tried.refused));
        proof.not_tried.extend(named(tried.not_tried));
    }
    // A server that broke because of a wrong input has not refused it.
    if let Some((_, kind)) = kinds.first() {
        let again = Probe::new(load, Connector::new(kind)?, &load.request.paths[0])?.send();
        again.map_err(|fault| {
            Failure::Failed(format!("not accepted any more, after what was refused: {}", fault.words))
        })?;
    }
    Ok(proof)
}

fn of_kind(load: &Load, kind: &ClientKind) -> Result<Proof, Failure> {
    // This must be first, because the server remembers earlier credentials.
    let remembered = share_of_hits(load, kind)?;
    let mut proof = Proof { accepted: accept(load, kind)?, ..Proof::default() };
    proof.accepted.extend(remembered);
    proof.accepted.extend(a_row_each(load, kind)?);
    refusals::refuse(load, kind, &mut proof)?;
    Ok(proof)
}

fn accept(load: &Load, kind: &ClientKind) -> Result<Vec<String>, Failure> {
    let mut accepted = Vec::new();
    let mut connector = Connector::new(kind)?;
    for path in &load.request.paths {
        let mut probe = Probe::new(load, connector, path)?;
        let seen = match probe.send() {
            Ok(seen) => seen,
            Err(fault) => {
                return Err(not_offered(load, kind, &fault)?.unwrap_or(not_accepted(load, path, &fault)));
            }
        };
        let answer = format!("status {} and {} bytes", seen.status, seen.bytes);
        let answer = if load.is_scenario() { format!("every step; the last: {answer}") } else { answer };
        let path = if load.request.paths.len() > 1 { format!(" from {path}") } else { String::new() };
        note(&mut accepted, format!("{answer}{path}"));
        if let Some(SignedIn { user, seen }) = &seen.signed_in {
            note(&mut accepted, saw(load, user, seen.as_deref())?);
        }
        // A resumed handshake reports less; the first one is never resumed.
        if let Some(negotiated) = seen.negotiated.filter(|negotiated| !negotiated.resumed) {
            note(&mut accepted, describe(&negotiated));
        }
        connector = probe.into_connector();
    }
    if kind.tls.as_ref().is_some_and(|spec| spec.resume) {
        accepted.push(resumed(load, connector)?);
    }
    Ok(accepted)
}

/// Checks that the server remembers the intended share of requests, and no others.
fn share_of_hits(load: &Load, kind: &ClientKind) -> Result<Option<String>, Failure> {
    let Some(cache) = load.exchange.as_ref().and_then(|exchange| exchange.cache) else { return Ok(None) };
    was_found(load, kind, None)?;
    let mut probe = Probe::new(load, Connector::new(kind)?, &load.request.paths[0])?;
    let of_first = if cache.hit_percent > 0 { u64::from(load.users) } else { 0 };
    let (visits, mut misses, began_ns) = (of_first + probe.whole(), 0, clock::wall_ns());
    for _ in 0..visits {
        probe.send().map_err(|fault| not_accepted(load, &load.request.paths[0], &fault))?;
        misses += probe.sign_ons();
    }
    if clock::wall_ns() - began_ns >= cache.time_to_live_s * 1_000_000_000 {
        // The first credentials may have expired by now; the end of each trial checks them.
        return Ok(None);
    }
    was_found(load, kind, Some(Found { hits: visits - misses, misses }))?;
    Ok(Some(format!(
        "{} of {} requests by a credential that the server remembers",
        visits - misses,
        visits - of_first
    )))
}

/// Checks that each page uses a row, over a connection as the task sets it.
fn a_row_each(load: &Load, kind: &ClientKind) -> Result<Option<String>, Failure> {
    const PAGES: u64 = 3;
    let Some(rows) = load.rows else { return Ok(None) };
    were_used(load, kind, None)?;
    let mut probe = Probe::new(load, Connector::new(kind)?, &load.request.paths[0])?;
    for _ in 0..PAGES {
        probe.send().map_err(|fault| not_accepted(load, &load.request.paths[0], &fault))?;
    }
    were_used(load, kind, Some(PAGES))?;
    Ok(Some(match rows.connection {
        Connection::Kept => format!("{PAGES} pages with a row each, over the one connection that is kept"),
        Connection::EachRequest => {
            format!("{PAGES} pages with a row each, and no connection to the table between them")
        }
    }))
}

/// Checks that the server saw the user that signed in; a user's own server need not report it.
fn saw(load: &Load, user: &str, seen: Option<&str>) -> Result<String, Failure> {
    // A server may add the realm of a directory to the name: `name@REALM`, `DOMAIN\\name`.
    let name = seen.map(|seen| seen.split_once('@').map_or(seen, |(name, _)| name));
    let name = name.map(|name| name.rsplit_once('\\').map_or(name, |(_, name)| name));
    match name {
        Some(name) if name == user => Ok("the user that signed in is the one that the server saw".to_owned()),
        None if !load.is_lab => Ok("a user signed in".to_owned()),
        _ => {
            let seen = seen.unwrap_or("none");
            Err(Failure::Failed(format!("not accepted: {user} signed in, and the server saw {seen}")))
        }
    }
}

fn note(list: &mut Vec<String>, words: String) {
    if !list.contains(&words) {
        list.push(words);
    }
}

fn not_accepted(load: &Load, path: &str, fault: &Fault) -> Failure {
    if load.is_scenario() {
        // The fault names its step.
        return Failure::Failed(format!("not accepted: {}: {}", fault.kind, fault.words));
    }
    Failure::Failed(format!("not accepted: {} {path}: {}: {}", load.request.method, fault.kind, fault.words))
}

/// Detects a user's own server that ends the handshake in the requested version and completes one in another:
/// a missing version is a finding, not a failure. Returns None if something else happened.
fn not_offered(load: &Load, kind: &ClientKind, fault: &Fault) -> Result<Option<Failure>, Failure> {
    let Some((spec, asked)) = kind.tls.as_ref().and_then(|spec| Some((spec, spec.protocol?))) else {
        return Ok(None);
    };
    if load.is_lab || ![failure::TLS, failure::RESET, failure::CLOSED_EARLY].contains(&fault.kind) {
        return Ok(None);
    }
    let any = Connector::secured(&ClientSpec { protocol: None, ..spec.clone() })?;
    let seen = Probe::new(load, any, &load.request.paths[0])?.send();
    let version = seen.ok().and_then(|seen| seen.negotiated).map(|negotiated| negotiated.version);
    Ok(version.filter(|version| version != asked.name()).map(|version| {
        let (asked, words) = (asked.name(), &fault.words);
        Failure::Unsupported(format!(
            "not offered: {asked}; the server negotiates {version} by itself ({words})"
        ))
    }))
}

/// Checks that the next connection resumes a session kept from before.
fn resumed(load: &Load, connector: Connector) -> Result<String, Failure> {
    let path = &load.request.paths[0];
    let mut probe = Probe::new(load, connector, path)?;
    let seen = probe.send().map_err(|fault| not_accepted(load, path, &fault))?;
    let resumed = seen.negotiated.is_some_and(|negotiated| negotiated.resumed);
    let words = "a session that was offered again was not resumed";
    match (resumed, load.is_lab) {
        (true, _) => Ok("a second connection resumed the session of the first".to_owned()),
        (false, true) => Err(Failure::Failed(format!("not accepted: {words}"))),
        (false, false) => Ok(words.to_owned()),
    }
}

/// Formats `negotiated TLS 1.3, TLS_AES_128_GCM_SHA256, x25519, certificate ECDSA P-256, sha-256 61ab…`.
fn describe(negotiated: &Negotiated) -> String {
    let Negotiated { version, suite, mac_order, group, certificate, certificate_key, .. } = negotiated;
    let group = if group.is_empty() { String::new() } else { format!(", {group}") };
    let order = mac_order.map_or(String::new(), |order| format!(", {}", order.name()));
    let key = if certificate_key.is_empty() { String::new() } else { format!(" {certificate_key},") };
    format!("negotiated {version}, {suite}{order}{group}, certificate{key} sha-256 {certificate}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::load::tests::load;

    /// A name may have a realm or a domain. The lab's own server must report it, and a reported name must be
    /// right.
    #[test]
    fn the_server_saw_the_user_that_signed_in() {
        let (right, some) = ("the user that signed in is the one that the server saw", "a user signed in");
        for (is_lab, seen, expected) in [
            (true, Some("u1"), Ok(right)),
            (false, Some("u1"), Ok(right)),
            (true, Some("u1@TOLLBAR.TEST"), Ok(right)),
            (true, Some("TOLLBAR\\u1"), Ok(right)),
            (true, Some("u2"), Err("u2")),
            (false, Some("u2"), Err("u2")),
            (true, None, Err("none")),
            (false, None, Ok(some)),
        ] {
            let load = load(([127, 0, 0, 1], 1).into(), json!({"is_lab": is_lab}));
            let said = saw(&load, "u1", seen).map_err(Failure::into_words);
            let refused = |seen| format!("not accepted: u1 signed in, and the server saw {seen}");
            assert_eq!(expected.map(str::to_owned).map_err(refused), said, "{is_lab} {seen:?}");
        }
    }
}
