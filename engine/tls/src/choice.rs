//! Consequences of a spec alone: the library that supports it, whether any does, and whether a connection has
//! the requested parameters.

use super::certificate::{self, Key};
use super::rustls::lacks;
use super::spec::{Asked, ClientSpec, KeyExchange, Library, Negotiated, ServerSpec, Signer};
use crate::failure::Failure;

impl ClientSpec {
    pub(super) fn asked(&self) -> Asked {
        let ClientSpec { protocol, key_exchange, cipher, signer, .. } = *self;
        Asked { protocol, key_exchange, cipher, signer }
    }

    /// Returns the library that `auto` selects.
    pub(super) fn library(&self) -> Library {
        match self.library {
            Library::Auto if lacks(&self.asked(), self.server_rsa_bits()).is_some() => Library::Libssl,
            Library::Auto => Library::Rustls,
            named => named,
        }
    }

    /// Returns the size of the server's RSA key, if it has one and the spec or the certificate gives the
    /// size.
    pub(super) fn server_rsa_bits(&self) -> Option<u32> {
        if self.signer.is_some_and(|signer| signer != Signer::Rsa) {
            return None;
        }
        let shown = || {
            let chain = certificate::chain(self.certificate_pem.as_deref()?).ok()?;
            chain.first().and_then(|leaf| Key::of(leaf))?.rsa_bits()
        };
        (self.rsa_bits > 0).then_some(self.rsa_bits).or_else(shown)
    }

    /// Returns true if the client sends the server's name. The lab's own servers answer to any name and
    /// choose a certificate by signature, so that their hello has none, as with most load clients.
    pub(super) fn sends_name(&self) -> bool {
        self.name != "localhost" && self.name.parse::<std::net::IpAddr>().is_err()
    }

    /// Checks that a connection has the requested parameters; the error describes the difference. Resumption
    /// is not checked here, because the first of many connections cannot be resumed.
    pub fn expects(&self, got: &Negotiated) -> Result<(), String> {
        if let Some(protocol) = self.protocol
            && got.version != protocol.name()
        {
            return Err(format!("negotiated {} instead of {}", got.version, protocol.name()));
        }
        let suites = self.asked().suites();
        if !suites.contains(&got.suite) && (self.cipher.is_some() || self.key_exchange.is_some()) {
            return Err(format!("negotiated the suite {} instead of {}", got.suite, suites.join(" or ")));
        }
        if let (Some(asked), Some(got)) = (self.mac_order, got.mac_order)
            && got != asked
        {
            return Err(format!("negotiated {} instead of {}", got.name(), asked.name()));
        }
        if let Some(exchange) = self.key_exchange {
            let without_exchange = got.resumed && got.group.is_empty();
            let as_asked = match exchange {
                KeyExchange::Dhe => got.group.starts_with(exchange.group()),
                _ => got.group == exchange.group(),
            };
            if !as_asked && !without_exchange {
                return Err(format!(
                    "negotiated the key exchange {} instead of {}",
                    got.group,
                    exchange.group()
                ));
            }
        }
        if let Some(signer) = self.signer
            && !got.certificate_key.is_empty()
            && !got.certificate_key.starts_with(signer.key())
        {
            let (key, asked) = (&got.certificate_key, signer.key());
            return Err(format!("was shown a certificate of {key} instead of {asked}"));
        }
        Ok(())
    }
}

impl ServerSpec {
    /// Returns the requested parameters, for certificates of any kind.
    pub(super) fn asked(&self) -> Asked {
        let ServerSpec { protocol, key_exchange, cipher, .. } = *self;
        Asked { protocol, key_exchange, cipher, signer: None }
    }

    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.identities.is_empty() {
            return Err(Failure::Failed("a server needs an identity".to_owned()));
        }
        for identity in &self.identities {
            Asked { signer: Some(identity.key()?.signer()), ..self.asked() }.check()?;
        }
        Ok(())
    }

    /// Returns the library that `auto` selects.
    pub(super) fn library(&self) -> Result<Library, Failure> {
        if self.library != Library::Auto {
            return Ok(self.library);
        }
        let mut library = Library::Rustls;
        for identity in &self.identities {
            if lacks(&self.asked(), identity.key()?.rsa_bits()).is_some() {
                library = Library::Libssl;
            }
        }
        Ok(library)
    }
}
