//! What a server, or its client, has to refuse: each really tried, where it makes sense, and else why it was not.

use super::connector::Connector;
use super::fault::{self, Fault};
use super::probe::Probe;
use super::task::{ClientKind, Load};
use crate::contract::Failure;
use crate::tls::{ClientSpec, KeyExchange, Protocol, Signer};

/// A certificate that no server under test has: its key was thrown away.
const ANOTHER_CERTIFICATE: &str = include_str!("fixtures/another_certificate.pem");

/// What was tried and refused, and what was not tried, as `what: why`.
#[derive(Debug, Default)]
pub struct Tried {
    pub refused: Vec<String>,
    pub not_tried: Vec<String>,
}

/// The lab's own server has to refuse whatever it is not configured for. A server of the user's own is asked to
/// prove no configuration: it may configure both versions of TLS, resume sessions, answer under every path. There it
/// is the client that has to refuse what it was not asked to measure.
pub fn refuse(load: &Load, kind: &ClientKind) -> Result<Tried, Failure> {
    let mut tried = Tried::default();
    if load.components.is_empty() {
        if let Some(spec) = &kind.tls {
            another_certificate(load, &mut tried, spec)?;
        }
        for what in of_a_servers_configuration(kind) {
            tried.skip(what, "the server is the user's own, and may");
        }
        return Ok(tried);
    }
    another_path(load, &mut tried, kind)?;
    let Some(spec) = &kind.tls else { return Ok(tried) };
    let mut clear = Probe::new(load, Connector::clear(), &load.request.paths[0])?;
    tried.note("a request in clear text", clear.send().map(|_| ()))?;
    another_certificate(load, &mut tried, spec)?;
    another_protocol(load, &mut tried, spec)?;
    another_key_exchange(load, &mut tried, spec)?;
    another_signer(load, &mut tried, spec)?;
    if spec.identity.is_some() {
        let without = ClientSpec { identity: None, ..loosened(spec) };
        tried.any_of("a client without a certificate", load, [("it", without)])?;
    }
    // Where some client is to resume, a session that is offered again is no refusal to be had.
    let may_resume = load.clients.iter().any(|kind| kind.server_resumes);
    if !may_resume && !specs(load).any(|spec| spec.resume) {
        tried.refused.push(session(load, spec)?);
    }
    Ok(tried)
}

/// What is tried of the lab's own servers only.
fn of_a_servers_configuration(kind: &ClientKind) -> Vec<&'static str> {
    let mut whats = vec!["a path that is not there"];
    if let Some(spec) = &kind.tls {
        whats.push("a request in clear text");
        whats.push("a client that speaks another version of TLS only");
        whats.push("a client that offers another key exchange only");
        whats.push("a client that takes certificates of another kind only");
        if spec.identity.is_some() {
            whats.push("a client without a certificate");
        }
        if !spec.resume {
            whats.push("a session that was offered again");
        }
    }
    whats
}

fn another_path(load: &Load, tried: &mut Tried, kind: &ClientKind) -> Result<(), Failure> {
    let what = "a path that is not there";
    if load.expect.status >= 400 {
        tried.skip(what, "what is expected is a refusal already");
        return Ok(());
    }
    let mut probe = Probe::new(load, Connector::new(kind)?, "/a-path-that-is-not-there")?;
    tried.note(what, probe.send().map(|_| ()))
}

fn another_certificate(load: &Load, tried: &mut Tried, spec: &ClientSpec) -> Result<(), Failure> {
    let pinned = ClientSpec { certificate_pem: Some(ANOTHER_CERTIFICATE.to_owned()), ..spec.clone() };
    tried.any_of("a server whose certificate is not the one expected", load, [("it", pinned)])
}

fn another_protocol(load: &Load, tried: &mut Tried, spec: &ClientSpec) -> Result<(), Failure> {
    let any = "a client that speaks another version of TLS only";
    let other = match spec.protocol {
        None => {
            tried.skip(any, "no version is asked for");
            return Ok(());
        }
        Some(Protocol::Tls12) => Protocol::Tls13,
        Some(Protocol::Tls13) => Protocol::Tls12,
    };
    let what = format!("a client that speaks {} only", name(other));
    if specs(load).any(|spec| spec.protocol.is_none_or(|protocol| protocol == other)) {
        tried.skip(&what, "other clients of this load configure it");
        return Ok(());
    }
    let nothing_else = ClientSpec { key_exchange: None, cipher: None, signer: None, ..loosened(spec) };
    let other = ClientSpec { protocol: Some(other), ..nothing_else };
    tried.any_of(&what, load, [("it", other)])
}

/// Exchanges that no client of this load is to get, the ones least likely to be configured first.
fn another_key_exchange(load: &Load, tried: &mut Tried, spec: &ClientSpec) -> Result<(), Failure> {
    let others = [KeyExchange::EcdheP384, KeyExchange::X25519, KeyExchange::EcdheP256];
    let asked = |other: &KeyExchange| {
        specs(load).any(|spec| spec.key_exchange.is_none_or(|key_exchange| key_exchange == *other))
    };
    // In TLS 1.2 a server that takes certificates from clients has to name their curve among its groups.
    let named = |other: &KeyExchange| spec.identity.is_some() && *other == KeyExchange::EcdheP256;
    let others = others.into_iter().filter(|other| !asked(other) && !named(other));
    let others: Vec<_> = others
        .map(|other| (word(&other), ClientSpec { key_exchange: Some(other), ..loosened(spec) }))
        .collect();
    let others = others.iter().map(|(word, spec)| (word.as_str(), spec.clone()));
    tried.any_of("a client that offers * only", load, others)
}

fn another_signer(load: &Load, tried: &mut Tried, spec: &ClientSpec) -> Result<(), Failure> {
    // Servers with two certificates have RSA and ECDSA: either alone would be served.
    let others = [Signer::Ed25519, Signer::Ecdsa, Signer::Rsa];
    let asked = |other: &Signer| specs(load).any(|spec| spec.signer.is_none_or(|signer| signer == *other));
    let others: Vec<_> = others
        .into_iter()
        .filter(|other| !asked(other))
        .map(|other| (word(&other), ClientSpec { signer: Some(other), rsa_bits: 0, ..loosened(spec) }))
        .collect();
    let others = others.iter().map(|(word, spec)| (word.as_str(), spec.clone()));
    tried.any_of("a client that takes * certificates only", load, others)
}

impl Tried {
    fn skip(&mut self, what: &str, why: &str) {
        self.not_tried.push(format!("{what}: {why}"));
    }

    /// Tries clients, each named by the word that stands for the star, until one can be tried.
    fn any_of<'a>(
        &mut self,
        what: &str,
        load: &Load,
        clients: impl IntoIterator<Item = (&'a str, ClientSpec)>,
    ) -> Result<(), Failure> {
        let mut why = Vec::new();
        for (word, spec) in clients {
            let what = what.replace('*', word);
            let connector = match Connector::secured(&spec) {
                Ok(connector) => connector,
                Err(Failure::Unsupported(words)) => {
                    why.push(words);
                    continue;
                }
                Err(Failure::Failed(words)) => return Err(Failure::Failed(format!("{what}: {words}"))),
            };
            match Probe::new(load, connector, &load.request.paths[0])?.send() {
                // A certificate's own curve is always offered with it, and then taken for the exchange as well.
                Err(fault) if fault.kind == fault::WRONG_PARAMETERS => why.push(fault.words),
                answer => return self.note(&what, answer.map(|_| ())),
            }
        }
        if why.is_empty() {
            why.push("there is none that no client of this load asks for".to_owned());
        }
        self.skip(&what.replace('*', "another"), &why.join("; "));
        Ok(())
    }

    /// Notes what was refused; an error if it was not, or if nothing was there to refuse it.
    fn note(&mut self, what: &str, answer: Result<(), Fault>) -> Result<(), Failure> {
        let Err(fault) = answer else { return Err(Failure::Failed(format!("not refused: {what}"))) };
        match fault.kind {
            // Wrong parameters: it offered besides what a certificate's curve needs, and was not given the other.
            fault::TLS
            | fault::RESET
            | fault::CLOSED_EARLY
            | fault::WRONG_STATUS
            | fault::NOT_HTTP
            | fault::WRONG_PARAMETERS => {
                self.refused.push(what.to_owned());
                Ok(())
            }
            // The status was the right one.
            fault::WRONG_LENGTH | fault::WRONG_BODY => {
                Err(Failure::Failed(format!("not refused: {what} (it got an answer, but {})", fault.words)))
            }
            kind => {
                Err(Failure::Failed(format!("{what}: neither accepted nor refused: {kind}: {}", fault.words)))
            }
        }
    }
}

fn specs(load: &Load) -> impl Iterator<Item = &ClientSpec> {
    load.clients.iter().filter(|kind| kind.share > 0).filter_map(|kind| kind.tls.as_ref())
}

/// Without what would make the client refuse by itself, or be known already.
fn loosened(spec: &ClientSpec) -> ClientSpec {
    ClientSpec { certificate_pem: None, resume: false, ..spec.clone() }
}

/// A client that would resume is given full handshakes.
fn session(load: &Load, spec: &ClientSpec) -> Result<String, Failure> {
    let keeping = ClientSpec { resume: true, ..spec.clone() };
    let mut probe = Probe::new(load, Connector::secured(&keeping)?, &load.request.paths[0])?;
    for _ in 0..2 {
        let seen = probe.send().map_err(|fault| {
            Failure::Failed(format!("not accepted: a client that keeps its session: {}", fault.words))
        })?;
        if seen.negotiated.is_some_and(|negotiated| negotiated.resumed) {
            return Err(Failure::Failed("not refused: a session that was offered again".to_owned()));
        }
    }
    Ok("a session that was offered again: the second connection was a full handshake".to_owned())
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
