//! What follows from a spec alone: which library speaks it, whether it can be spoken at all, and whether a
//! connection came out as asked.

use super::certificate::{self, Key};
use super::rustls::lacks;
use super::spec::{Cipher, ClientSpec, KeyExchange, Library, Negotiated, Protocol, ServerSpec, Signer};
use crate::contract::Failure;

impl ClientSpec {
    pub(super) fn check(&self) -> Result<(), Failure> {
        let contradiction = self
            .protocol
            .and_then(|protocol| protocol.contradiction(self.key_exchange, self.cipher, self.signer));
        contradiction.map_or(Ok(()), |reason| Err(Failure::Unsupported(reason.to_owned())))
    }

    /// The library that `auto` comes out as.
    pub(super) fn library(&self) -> Library {
        match self.library {
            Library::Auto if lacks(self.key_exchange, self.cipher, self.server_rsa_bits()).is_some() => {
                Library::Libssl
            }
            Library::Auto => Library::Rustls,
            named => named,
        }
    }

    /// The size of the server's RSA key, where it has one and it is said or shown.
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

    /// Whether the server is told which name is meant. The lab's own servers answer to any name and choose a
    /// certificate by signature, so theirs stays out of the hello, as most load clients leave it.
    pub(super) fn sends_name(&self) -> bool {
        self.name != "localhost" && self.name.parse::<std::net::IpAddr>().is_err()
    }

    /// Whether a connection came out as asked, in words if not. Whether it was resumed is not asked here,
    /// because the first of many cannot be.
    pub fn expects(&self, got: &Negotiated) -> Result<(), String> {
        if let Some(protocol) = self.protocol
            && got.version != protocol.name()
        {
            return Err(format!("negotiated {} instead of {}", got.version, protocol.name()));
        }
        let suites = self.suites();
        if !suites.contains(&got.suite) && (self.cipher.is_some() || self.key_exchange.is_some()) {
            return Err(format!("negotiated the suite {} instead of {}", got.suite, suites.join(" or ")));
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

    /// The registered names of all suites that are as asked.
    fn suites(&self) -> Vec<String> {
        let ciphers = Cipher::all().into_iter().filter(|one| self.cipher.is_none_or(|cipher| cipher == *one));
        ciphers
            .flat_map(|cipher| {
                let newer = (self.protocol != Some(Protocol::Tls12)).then(|| cipher.suite_13()).flatten();
                let exchanges = match self.protocol {
                    Some(Protocol::Tls13) => Vec::new(),
                    _ => KeyExchange::exchanges(self.key_exchange, self.signer),
                };
                let older = exchanges.into_iter().filter_map(move |exchange| cipher.suite_12(exchange));
                newer.map(str::to_owned).into_iter().chain(older)
            })
            .collect()
    }
}

impl ServerSpec {
    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.identities.is_empty() {
            return Err(Failure::Failed("a server needs an identity".to_owned()));
        }
        for identity in &self.identities {
            let signer = identity.key()?.signer();
            let (exchange, cipher) = (Some(self.key_exchange), Some(self.cipher));
            if let Some(reason) = self.protocol.contradiction(exchange, cipher, Some(signer)) {
                return Err(Failure::Unsupported(reason.to_owned()));
            }
        }
        Ok(())
    }

    /// The library that `auto` comes out as.
    pub(super) fn library(&self) -> Result<Library, Failure> {
        if self.library != Library::Auto {
            return Ok(self.library);
        }
        let mut library = Library::Rustls;
        for identity in &self.identities {
            if lacks(Some(self.key_exchange), Some(self.cipher), identity.key()?.rsa_bits()).is_some() {
                library = Library::Libssl;
            }
        }
        Ok(library)
    }
}
