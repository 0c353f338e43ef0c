//! Signing in to PostgreSQL: the client side of each authentication method.

use aws_lc_rs::{digest, hmac, pbkdf2};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{
    ChannelBinding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256,
};
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend;

use super::answer::{broken, garbled, unsaid};
use crate::failure::Failure;
use crate::tls::Stream;

/// Authentication method of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// No proof in PostgreSQL's own protocol: the socket, or the certificate in the TLS handshake, identifies
    /// the client.
    Nothing,
    Password,
    Md5,
    Scram,
}

#[derive(Clone)]
pub struct Login {
    pub user: String,
    pub database: String,
    pub proof: Proof,
    pub password: String,
}

/// Facts about a connection that is signed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedOn {
    /// Mechanism, as the server named it.
    pub mechanism: &'static str,
    /// Iterations of PBKDF2, as the server reported them.
    pub iterations: Option<u32>,
}

/// An exchange in progress. A server that requests another proof than the login's gets none: otherwise an
/// impostor would get the password itself.
pub struct Exchange<'a> {
    login: &'a Login,
    scram: Option<ScramSha256>,
    found: SignedOn,
    /// True once the client's proof was requested and, if the mechanism has one, the server's was right.
    is_proved: bool,
}

impl<'a> Exchange<'a> {
    pub fn new(login: &'a Login) -> Exchange<'a> {
        let found = SignedOn { mechanism: "nothing asked", iterations: None };
        Exchange { login, scram: None, found, is_proved: login.proof == Proof::Nothing }
    }

    /// Writes the answer to a message of the server, if it needs one.
    pub fn answer(&mut self, message: &Message, stream: &Stream, out: &mut BytesMut) -> Result<(), Failure> {
        let login = self.login;
        match (message, login.proof) {
            (Message::AuthenticationOk | Message::BackendKeyData(_), _) => Ok(()),
            (Message::AuthenticationCleartextPassword, Proof::Password) => {
                (self.found.mechanism, self.is_proved) = ("password", true);
                frontend::password_message(login.password.as_bytes(), out).map_err(unsaid)
            }
            (Message::AuthenticationMd5Password(body), Proof::Md5) => {
                (self.found.mechanism, self.is_proved) = ("md5", true);
                let hash = md5_hash(login.user.as_bytes(), login.password.as_bytes(), body.salt());
                frontend::password_message(hash.as_bytes(), out).map_err(unsaid)
            }
            (Message::AuthenticationSasl(body), Proof::Scram) => {
                let mut offered = Vec::new();
                let mut mechanisms = body.mechanisms();
                while let Some(mechanism) = mechanisms.next().map_err(garbled)? {
                    offered.push(mechanism);
                }
                let (mechanism, binding) = mechanism(&offered, stream)?;
                self.found.mechanism = mechanism;
                let scram = self.scram.insert(ScramSha256::new(login.password.as_bytes(), binding));
                frontend::sasl_initial_response(mechanism, scram.message(), out).map_err(unsaid)
            }
            (Message::AuthenticationSaslContinue(body), Proof::Scram) => {
                self.found.iterations = iterations(body.data());
                let scram = self.scram.as_mut().ok_or_else(|| broken("its SCRAM goes on before it began"))?;
                scram.update(body.data()).map_err(|error| broken(format!("SCRAM: {error}")))?;
                frontend::sasl_response(scram.message(), out).map_err(unsaid)
            }
            (Message::AuthenticationSaslFinal(body), Proof::Scram) => {
                let scram = self.scram.as_mut().ok_or_else(|| broken("its SCRAM ends before it began"))?;
                let ended = scram.finish(body.data());
                ended.map_err(|error| {
                    broken(format!("it does not know the password's verifier (SCRAM: {error})"))
                })?;
                self.is_proved = true;
                Ok(())
            }
            (_, Proof::Nothing) => {
                let words = "it asks for a password on its socket; `pg_hba.conf` must have `trust` or `peer`";
                Err(broken(words))
            }
            (_, proof) => Err(broken(format!(
                "it asks for another proof than {proof:?}, which this client does not give"
            ))),
        }
    }

    /// Returns the agreed mechanism, once the server is ready. Fails if the server let the client in without
    /// its proof, or did not give its own.
    pub fn end(self) -> Result<SignedOn, Failure> {
        if !self.is_proved {
            return Err(broken("it accepted the sign-on without a proof"));
        }
        Ok(self.found)
    }
}

/// Returns the strongest common mechanism: bound to the TLS connection if there is one, as PostgreSQL's own
/// clients prefer.
fn mechanism(offered: &[&str], stream: &Stream) -> Result<(&'static str, ChannelBinding), Failure> {
    let negotiated = stream.negotiated();
    if let (Some(negotiated), true) = (&negotiated, offered.contains(&SCRAM_SHA_256_PLUS)) {
        // The binding is the hash of the server's certificate (RFC 5929), by SHA-256 if the certificate was
        // signed with that.
        let hash = hex::decode(&negotiated.certificate).map_err(|error| broken(error.to_string()))?;
        return Ok((SCRAM_SHA_256_PLUS, ChannelBinding::tls_server_end_point(hash)));
    }
    if !offered.contains(&SCRAM_SHA_256) {
        return Err(broken(format!("it offers {} and no {SCRAM_SHA_256}", offered.join(", "))));
    }
    let binding = match negotiated {
        // The client declares that it supports binding: a server that does too then detects that its offer
        // was removed.
        Some(_) => ChannelBinding::unrequested(),
        None => ChannelBinding::unsupported(),
    };
    Ok((SCRAM_SHA_256, binding))
}

/// Returns `i=` in the server's first message (RFC 5802 section 7).
fn iterations(message: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(message).ok()?;
    text.split(',').find_map(|field| field.strip_prefix("i="))?.parse().ok()
}

/// Returns PostgreSQL's stored value of a password for SCRAM:
/// `SCRAM-SHA-256$ITERATIONS:SALT$STORED_KEY:SERVER_KEY`.
pub fn verifier(password: &str, iterations: u32, salt: &[u8]) -> Result<String, Failure> {
    let rounds = std::num::NonZeroU32::new(iterations)
        .ok_or_else(|| Failure::Failed("`scram-iterations` must be at least 1".to_owned()))?;
    let mut salted = [0; digest::SHA256_OUTPUT_LEN];
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, rounds, salt, password.as_bytes(), &mut salted);
    let key = |name: &str| hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &salted), name.as_bytes());
    let stored = digest::digest(&digest::SHA256, key("Client Key").as_ref());
    let [salt, stored, server] =
        [salt, stored.as_ref(), key("Server Key").as_ref()].map(|bytes| STANDARD.encode(bytes));
    Ok(format!("{SCRAM_SHA_256}${iterations}:{salt}${stored}:{server}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keys are those of the proof and signature in the example of RFC 7677 section 3.
    #[test]
    fn a_verifier_is_as_the_specification_has_it() -> Result<(), Failure> {
        let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").expect("a salt");
        let expected = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=";
        assert_eq!(expected, verifier("pencil", 4096, &salt)?);
        assert!(verifier("pencil", 0, &salt).is_err());
        Ok(())
    }

    #[test]
    fn iterations_are_read_from_the_servers_first_message() {
        assert_eq!(Some(4096), iterations(b"r=abc,s=W22Z,i=4096"));
        assert_eq!(None, iterations(b"r=abc"));
    }
}
