//! Inputs that a server, or its client, must refuse: each is tried if it makes sense, and otherwise reported
//! with a reason.

use super::connector::Connector;
use super::probe::Probe;
use super::tallies::were_used;
use super::task::{ClientKind, Load};
use crate::contract::Proof;
use crate::failure::{self, Failure, Fault};
use crate::sign_in::scheme::Wrong;
use crate::tls::{ClientSpec, KeyExchange, Protocol, Signer};

/// A certificate that no server under test has: its key was destroyed.
const ANOTHER_CERTIFICATE: &str = include_str!("fixtures/another_certificate.pem");

/// Reason why a user's own server is not asked to refuse.
const MAY: &str = "the server is the user's own, and may";

/// Tries the inputs to refuse. The lab's own server must refuse everything it is not configured for. A user's
/// own server has no configuration to prove: it may support both versions of TLS, resume sessions, answer
/// under every path. There the client must refuse what it was not asked to measure.
pub fn refuse(load: &Load, kind: &ClientKind, proof: &mut Proof) -> Result<(), Failure> {
    // A scenario's secrets are only for the right server.
    let without_secrets = load.is_scenario().then(|| Load { exchange: None, ..load.clone() });
    let load = without_secrets.as_ref().unwrap_or(load);
    let mut trials = Trials { load, is_lab: load.is_lab, proof };
    if !trials.is_lab
        && let Some(spec) = &kind.tls
    {
        trials.another_certificate(spec)?;
    }
    let path = || Probe::new(load, Connector::new(kind)?, "/a-path-that-is-not-there");
    let expects_refusal = load.expect.status >= 400;
    let why = expects_refusal.then_some("what is expected is a refusal already");
    trials.request("a path that is not there", why, path)?;
    let refused = load.visitors().scheme()?.refused;
    for wrong in refused {
        trials.sign_in(kind, *wrong)?;
    }
    if load.rows.is_some() && !refused.is_empty() {
        trials.proof.accept("no row was used for a sign-in that was refused", true)?;
    }
    let Some(spec) = &kind.tls else { return Ok(()) };
    let clear = || Probe::new(load, Connector::clear(), &load.request.paths[0]);
    trials.request("a request in clear text", None, clear)?;
    if trials.is_lab {
        trials.another_certificate(spec)?;
    }
    trials.another_protocol(spec)?;
    trials.another_key_exchange(spec)?;
    trials.another_signer(spec)?;
    if spec.identity.is_some() {
        let without = ClientSpec { identity: None, ..loosened(spec) };
        trials.configuration("a client without a certificate", "", vec![("", without)])?;
    }
    if let Some(revoked) = &spec.revoked {
        let revoked = ClientSpec { identity: Some(revoked.clone()), ..loosened(spec) };
        trials.configuration("a client with a revoked certificate", "", vec![("", revoked)])?;
    }
    trials.session(spec)
}

/// Refusals of one kind of client, and their results.
struct Trials<'a> {
    load: &'a Load,
    /// True if the server is the lab's own.
    is_lab: bool,
    proof: &'a mut Proof,
}

/// A client, and its name.
type Named = (&'static str, ClientSpec);

impl Trials<'_> {
    fn another_certificate(&mut self, spec: &ClientSpec) -> Result<(), Failure> {
        let pinned = ClientSpec { certificate_pem: Some(ANOTHER_CERTIFICATE.to_owned()), ..spec.clone() };
        self.any_of("a server whose certificate is not the one expected", "", vec![("", pinned)])
    }

    fn another_protocol(&mut self, spec: &ClientSpec) -> Result<(), Failure> {
        let (what, any) = ("a client that speaks * only", "another version of TLS");
        let other = match spec.protocol {
            None if self.is_lab => {
                self.proof.leave(&what.replace('*', any), "no version is asked for");
                return Ok(());
            }
            Some(Protocol::Tls12) => Protocol::Tls13,
            None | Some(Protocol::Tls13) => Protocol::Tls12,
        };
        if self.is_lab && self.specs().any(|spec| spec.protocol.is_none_or(|protocol| protocol == other)) {
            let what = what.replace('*', other.name());
            self.proof.leave(&what, "other clients of this load configure it");
            return Ok(());
        }
        let nothing_else = ClientSpec { key_exchange: None, cipher: None, signer: None, ..loosened(spec) };
        let other = (other.name(), ClientSpec { protocol: Some(other), ..nothing_else });
        self.configuration(what, any, vec![other])
    }

    /// Tries key exchanges that no client of this load requests, the least likely to be configured first.
    fn another_key_exchange(&mut self, spec: &ClientSpec) -> Result<(), Failure> {
        let others = [
            ("ecdhe-p384", KeyExchange::EcdheP384),
            ("x25519", KeyExchange::X25519),
            ("ecdhe-p256", KeyExchange::EcdheP256),
        ];
        let asked = |other: KeyExchange| {
            self.specs().any(|spec| spec.key_exchange.is_none_or(|key_exchange| key_exchange == other))
        };
        // In TLS 1.2 a server that accepts client certificates must name their curve among its groups.
        let named = |other: KeyExchange| spec.identity.is_some() && other == KeyExchange::EcdheP256;
        let others = others.into_iter().filter(|(_, other)| !asked(*other) && !named(*other));
        let others = others
            .map(|(word, other)| (word, ClientSpec { key_exchange: Some(other), ..loosened(spec) }))
            .collect();
        self.configuration("a client that offers * only", "another key exchange", others)
    }

    fn another_signer(&mut self, spec: &ClientSpec) -> Result<(), Failure> {
        // Servers with two certificates have RSA and ECDSA, and serve either.
        let others = [
            ("ed25519 certificates", Signer::Ed25519),
            ("ecdsa certificates", Signer::Ecdsa),
            ("rsa certificates", Signer::Rsa),
        ];
        let asked = |other: Signer| self.specs().any(|spec| spec.signer.is_none_or(|signer| signer == other));
        let others = others
            .into_iter()
            .filter(|(_, other)| !asked(*other))
            .map(|(word, other)| (word, ClientSpec { signer: Some(other), rsa_bits: 0, ..loosened(spec) }))
            .collect();
        self.configuration("a client that takes * only", "certificates of another kind", others)
    }

    /// Tries a session where the server must not resume it.
    fn session(&mut self, spec: &ClientSpec) -> Result<(), Failure> {
        // If some client resumes, the server need not refuse a session.
        let may_resume = self.load.clients.iter().any(|kind| kind.server_resumes);
        if spec.resume || (self.is_lab && (may_resume || self.specs().any(|spec| spec.resume))) {
            return Ok(());
        }
        let what = "a session that was offered again";
        if !self.is_lab {
            self.proof.leave(what, MAY);
            return Ok(());
        }
        let keeping = ClientSpec { resume: true, ..spec.clone() };
        let mut probe = Probe::new(self.load, Connector::secured(&keeping)?, &self.load.request.paths[0])?;
        for _ in 0..2 {
            let seen = probe.send().map_err(|fault| {
                Failure::Failed(format!("not accepted: a client that keeps its session: {}", fault.words))
            })?;
            let resumed = seen.negotiated.is_some_and(|negotiated| negotiated.resumed);
            if resumed {
                return self.proof.refuse(what, false);
            }
        }
        self.proof.refuse(&format!("{what}: the second connection was a full handshake"), true)
    }

    fn specs(&self) -> impl Iterator<Item = &ClientSpec> {
        self.load.clients.iter().filter(|kind| kind.share > 0).filter_map(|kind| kind.tls.as_ref())
    }

    /// Tries a request that the lab's own server must refuse, unless there is a reason not to.
    fn request(
        &mut self,
        what: &str,
        why_not: Option<&str>,
        probe: impl FnOnce() -> Result<Probe, Failure>,
    ) -> Result<(), Failure> {
        match why_not.filter(|_| self.is_lab).or((!self.is_lab).then_some(MAY)) {
            Some(why) => self.proof.leave(what, why),
            None => self.note(what, probe()?.send().map(|_| ()))?,
        }
        Ok(())
    }

    /// Tries a sign-in that every server must refuse.
    fn sign_in(&mut self, kind: &ClientKind, wrong: Wrong) -> Result<(), Failure> {
        let what = wrong.words();
        let path = &self.load.request.paths[0];
        let mut probe = Probe::wrong(self.load, Connector::new(kind)?, path, wrong)?;
        let said = if let Wrong::Own(own) = wrong { probe.says(own) } else { None };
        let what = said.as_deref().unwrap_or(what);
        if let Wrong::Own(own) = wrong {
            if let Some(why) = probe.why_not(own) {
                self.proof.leave(what, why);
                return Ok(());
            }
            probe.send().map_err(|fault| {
                Failure::Failed(format!("not accepted, before {what}: {}: {}", fault.kind, fault.words))
            })?;
            probe.do_wrong(own);
        }
        were_used(self.load, kind, None)?;
        let answer = probe.send();
        let used = were_used(self.load, kind, Some(probe.given_before()));
        match answer {
            // The directory refused it before the server was asked.
            Err(fault)
                if fault.kind == failure::SIGN_IN && matches!(wrong, Wrong::Password | Wrong::User) =>
            {
                self.proof.refuse(&format!("{what}: {}", fault.words), true)
            }
            answer => self.note(what, answer.map(|_| ())),
        }?;
        // A refused request must not use a row.
        used.map_err(|failure| failure.about(&format!("{what}: ")))
    }

    /// Tries clients that the lab's own server is not configured for.
    fn configuration(&mut self, what: &str, any: &str, clients: Vec<Named>) -> Result<(), Failure> {
        if self.is_lab {
            return self.any_of(what, any, clients);
        }
        self.proof.leave(&what.replace('*', any), MAY);
        Ok(())
    }

    /// Tries clients until one can be tried. Its name replaces the star; if there is none, `any` does.
    fn any_of(&mut self, what: &str, any: &str, clients: Vec<Named>) -> Result<(), Failure> {
        let mut why = Vec::new();
        for (word, spec) in clients {
            let what = what.replace('*', word);
            let connector = match Connector::secured(&spec) {
                Ok(connector) => connector,
                Err(Failure::Unsupported(words)) => {
                    why.push(words);
                    continue;
                }
                Err(failure) => return Err(failure.about(&format!("{what}: "))),
            };
            match Probe::new(self.load, connector, &self.load.request.paths[0])?.send() {
                // A certificate's own curve is always offered, and may then be chosen for the exchange as
                // well.
                Err(fault) if fault.kind == failure::WRONG_PARAMETERS => why.push(fault.words),
                answer => return self.note(&what, answer.map(|_| ())),
            }
        }
        if why.is_empty() {
            why.push("there is none that no client of this load asks for".to_owned());
        }
        self.proof.leave(&what.replace('*', any), &why.join("; "));
        Ok(())
    }

    /// Records a refusal. Fails if the input was accepted, or if there was no server to refuse it.
    fn note(&mut self, what: &str, answer: Result<(), Fault>) -> Result<(), Failure> {
        let Err(fault) = answer else { return self.proof.refuse(what, false) };
        match fault.kind {
            // Wrong parameters are a refusal too: the client also offered a certificate's curve, and the
            // server chose that.
            failure::TLS
            | failure::RESET
            | failure::CLOSED_EARLY
            | failure::WRONG_STATUS
            | failure::NOT_HTTP
            | failure::WRONG_PARAMETERS => self.proof.refuse(what, true),
            // The status was right, so that it was accepted.
            failure::WRONG_LENGTH | failure::WRONG_BODY => {
                self.proof.refuse(&format!("{what} (it got an answer, but {})", fault.words), false)
            }
            kind => {
                Err(Failure::Failed(format!("{what}: neither accepted nor refused: {kind}: {}", fault.words)))
            }
        }
    }
}

/// Removes the settings by which the client itself would refuse, or resume.
fn loosened(spec: &ClientSpec) -> ClientSpec {
    ClientSpec { certificate_pem: None, resume: false, ..spec.clone() }
}
