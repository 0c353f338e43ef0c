//! What a server, or its client, has to refuse: each really tried, where it makes sense.

use super::fault::{self, Fault};
use super::kinds::Kind;
use super::task::{ClientKind, Load};
use super::verify::Asker;
use crate::contract::Failure;
use crate::tls::{ClientSpec, KeyExchange, Protocol, Signer};

/// A certificate that no server under test has: its key is known to nobody.
const ANOTHER_CERTIFICATE: &str = include_str!("fixtures/another_certificate.pem");

pub fn refuse(load: &Load, kind: &ClientKind) -> Result<Vec<String>, Failure> {
    let mut refused = Vec::new();
    if is_the_labs(load) && load.expect.status < 400 {
        let path = "/a-path-that-is-not-there";
        let mut asker = Asker::new(load, Kind::new(kind)?, path)?;
        note(&mut refused, "a path that is not there", asker.ask().map(|_| ()))?;
    }
    let Some(spec) = &kind.tls else { return Ok(refused) };
    let mut clear = Asker::new(load, Kind::clear(), &load.request.paths[0])?;
    note(&mut refused, "a request in clear text", clear.ask().map(|_| ()))?;
    let pinned = Some(ANOTHER_CERTIFICATE.to_owned());
    let pinned = ClientSpec { certificate_pem: pinned, ..spec.clone() };
    attempt(load, &mut refused, "a server whose certificate is not the one expected", &pinned)?;
    if let Some(protocol) = other_protocol(load, spec) {
        let what = format!("a client that speaks {} only", name(protocol));
        let other = ClientSpec {
            protocol: Some(protocol),
            key_exchange: None,
            cipher: None,
            signer: None,
            ..loosened(spec)
        };
        attempt(load, &mut refused, &what, &other)?;
    }
    for key_exchange in other_key_exchanges(load, spec) {
        let what = format!("a client that offers {} only", word(&key_exchange));
        let other = ClientSpec { key_exchange: Some(key_exchange), ..loosened(spec) };
        if attempt(load, &mut refused, &what, &other)? {
            break;
        }
    }
    for signer in other_signers(load, spec) {
        let what = format!("a client that takes {} certificates only", word(&signer));
        let other = ClientSpec { signer: Some(signer), rsa_bits: 0, ..loosened(spec) };
        if attempt(load, &mut refused, &what, &other)? {
            break;
        }
    }
    if spec.identity.is_some() {
        let other = ClientSpec { identity: None, ..loosened(spec) };
        attempt(load, &mut refused, "a client without a certificate", &other)?;
    }
    let may_resume = load.clients.iter().any(|kind| kind.server_resumes);
    if is_the_labs(load) && !may_resume && !specs(load).any(|spec| spec.resume) {
        refused.push(session(load, spec)?);
    }
    Ok(refused)
}

/// A server of the user's own may answer to more than what is asked of it here.
fn is_the_labs(load: &Load) -> bool {
    !load.components.is_empty()
}

fn specs(load: &Load) -> impl Iterator<Item = &ClientSpec> {
    load.clients.iter().filter(|kind| kind.share > 0).filter_map(|kind| kind.tls.as_ref())
}

/// Without what would make the client refuse by itself, or be known already.
fn loosened(spec: &ClientSpec) -> ClientSpec {
    ClientSpec { certificate_pem: None, resume: false, ..spec.clone() }
}

fn other_protocol(load: &Load, spec: &ClientSpec) -> Option<Protocol> {
    let other = match spec.protocol? {
        Protocol::Tls12 => Protocol::Tls13,
        Protocol::Tls13 => Protocol::Tls12,
    };
    // Some other kind of client may be there for the older version.
    let spoken = specs(load).any(|spec| spec.protocol.is_none_or(|protocol| protocol == other));
    (!spoken).then_some(other)
}

/// Exchanges that no client of this load is to get, the ones least likely to be configured first.
fn other_key_exchanges(load: &Load, spec: &ClientSpec) -> Vec<KeyExchange> {
    if spec.key_exchange.is_none() {
        return Vec::new();
    }
    let others = [KeyExchange::EcdheP384, KeyExchange::X25519, KeyExchange::EcdheP256];
    let asked = |other: &KeyExchange| {
        specs(load).any(|spec| spec.key_exchange.is_none_or(|key_exchange| key_exchange == *other))
    };
    // In TLS 1.2 a server that takes certificates from clients has to name their curve among its groups.
    let named = |other: &KeyExchange| spec.identity.is_some() && *other == KeyExchange::EcdheP256;
    others.into_iter().filter(|other| !asked(other) && !named(other)).collect()
}

fn other_signers(load: &Load, spec: &ClientSpec) -> Vec<Signer> {
    if spec.signer.is_none() {
        return Vec::new();
    }
    // Servers with two certificates have RSA and ECDSA: either alone would be served.
    let others = [Signer::Ed25519, Signer::Ecdsa, Signer::Rsa];
    let asked = |other: &Signer| specs(load).any(|spec| spec.signer.is_none_or(|signer| signer == *other));
    others.into_iter().filter(|other| !asked(other)).collect()
}

/// Tries it; false if the library cannot even offer it, or cannot without what the server does take.
fn attempt(load: &Load, refused: &mut Vec<String>, what: &str, spec: &ClientSpec) -> Result<bool, Failure> {
    let kind = match Kind::secured(spec) {
        Ok(kind) => kind,
        Err(Failure::Unsupported(_)) => return Ok(false),
        Err(Failure::Failed(words)) => return Err(Failure::Failed(format!("{what}: {words}"))),
    };
    let answer = Asker::new(load, kind, &load.request.paths[0])?.ask();
    match answer {
        // A certificate's own curve is always offered with it, and then taken for the exchange as well.
        Err(fault) if fault.kind == fault::WRONG_PARAMETERS => Ok(false),
        answer => note(refused, what, answer.map(|_| ())).map(|()| true),
    }
}

/// A client that would resume is given full handshakes.
fn session(load: &Load, spec: &ClientSpec) -> Result<String, Failure> {
    let keeping = ClientSpec { resume: true, ..spec.clone() };
    let mut asker = Asker::new(load, Kind::secured(&keeping)?, &load.request.paths[0])?;
    for _ in 0..2 {
        let seen = asker.ask().map_err(|fault| {
            Failure::Failed(format!("not accepted: a client that keeps its session: {}", fault.words))
        })?;
        if seen.negotiated.is_some_and(|negotiated| negotiated.resumed) {
            return Err(Failure::Failed("not refused: a session that was offered again".to_owned()));
        }
    }
    Ok("a session that was offered again: the second connection was a full handshake".to_owned())
}

/// Notes what was refused; an error if it was not, or if nobody was there to refuse it.
fn note(refused: &mut Vec<String>, what: &str, answer: Result<(), Fault>) -> Result<(), Failure> {
    match answer {
        Ok(()) => Err(Failure::Failed(format!("not refused: {what}"))),
        Err(fault) => match fault.kind {
            // Wrong parameters: it offered besides what a certificate's curve needs, and was not given the other.
            fault::TLS
            | fault::RESET
            | fault::CLOSED_EARLY
            | fault::WRONG_STATUS
            | fault::NOT_HTTP
            | fault::WRONG_PARAMETERS => {
                refused.push(what.to_owned());
                Ok(())
            }
            // The status was the right one.
            fault::WRONG_LENGTH | fault::WRONG_BODY => {
                Err(Failure::Failed(format!("not refused: {what} (it got an answer, but {})", fault.words)))
            }
            kind => {
                Err(Failure::Failed(format!("{what}: neither accepted nor refused: {kind}: {}", fault.words)))
            }
        },
    }
}

fn name(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Tls12 => "TLS 1.2",
        Protocol::Tls13 => "TLS 1.3",
    }
}

/// As the contract spells it.
fn word<Choice: serde::Serialize>(choice: &Choice) -> String {
    serde_json::to_value(choice).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}
