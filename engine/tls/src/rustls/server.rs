//! Servers of rustls.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use ::rustls::crypto::CryptoProvider;
use ::rustls::crypto::aws_lc_rs::Ticketer;
use ::rustls::server::danger::ClientCertVerifier;
use ::rustls::server::{
    ClientHello, NoClientAuth, NoServerSessionStorage, ResolvesServerCert, ServerSessionMemoryCache,
    StoresServerSessions, UnbufferedServerConnection, WebPkiClientVerifier,
};
use ::rustls::sign::CertifiedKey;
use ::rustls::{RootCertStore, ServerConfig, SignatureScheme};

use aws_lc_rs::rand;

use super::provider::{self, unsupported};
use super::stream::{ServerStream, Tls};
use crate::certificate;
use crate::failure::Failure;
use crate::spec::{Identity, Resumption, ServerSpec, TICKETS};

/// Number of stored sessions, the default of OpenSSL's servers.
const REMEMBERED: usize = 20 * 1024;

/// Approximate bytes that rustls stores for a session of TLS 1.2 without a client's certificate.
const SESSION_BYTES: usize = 96;

pub struct Server {
    config: Arc<ServerConfig>,
}

impl Server {
    pub fn new(spec: &ServerSpec) -> Result<Server, Failure> {
        for identity in &spec.identities {
            if let Some(reason) = provider::lacks(&spec.asked(), identity.key()?.rsa_bits()) {
                return Err(Failure::Unsupported(reason));
            }
        }
        // rustls selects the suites of TLS 1.2 that fit the certificates.
        let provider = provider::exactly(&spec.asked())?;
        let groups = if spec.key_exchange.is_some() { 1 } else { usize::MAX };
        let provider = Arc::new(CryptoProvider {
            kx_groups: provider.kx_groups.into_iter().take(groups).collect(),
            ..provider
        });
        let identities: Result<Vec<_>, _> =
            spec.identities.iter().map(|identity| Certified::new(identity, &provider)).collect();
        let mut config = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&provider::versions(spec.protocol))
            .map_err(unsupported)?
            .with_client_cert_verifier(client_verifier(spec, &provider)?)
            .with_cert_resolver(Arc::new(ByOffer(identities?)));
        config.send_tls13_tickets = TICKETS;
        match spec.resumption {
            Resumption::None => {
                config.session_storage = Arc::new(NoServerSessionStorage {});
                config.send_tls13_tickets = 0;
            }
            Resumption::SessionId => config.session_storage = full_cache()?,
            Resumption::Ticket => {
                config.session_storage = Arc::new(NoServerSessionStorage {});
                config.ticketer = Ticketer::new().map_err(unsupported)?;
            }
        }
        Ok(Server { config: Arc::new(config) })
    }

    pub fn accept(&self, socket: OwnedFd) -> Result<ServerStream, Failure> {
        let connection = UnbufferedServerConnection::new(self.config.clone());
        let connection = connection.map_err(|error| Failure::Failed(format!("rustls: {error}")))?;
        Ok(Tls::new(socket, connection, None))
    }
}

/// Makes a cache of sessions as in a server that has run for long: full, with sessions that no client resumes
/// any more. An empty one would grow while it is measured, and never evict a session.
fn full_cache() -> Result<Arc<dyn StoresServerSessions>, Failure> {
    const ID_BYTES: usize = 32;
    let cache = ServerSessionMemoryCache::new(REMEMBERED);
    let mut ids = vec![[0; ID_BYTES]; REMEMBERED];
    let filled = rand::fill(ids.as_flattened_mut());
    filled.map_err(|_| Failure::Failed("the system gives no random bytes".to_owned()))?;
    for id in ids {
        cache.put(id.to_vec(), vec![0; SESSION_BYTES]);
    }
    Ok(cache)
}

fn client_verifier(
    spec: &ServerSpec,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, Failure> {
    let Some(authority) = &spec.client_authority_pem else {
        return Ok(Arc::new(NoClientAuth));
    };
    let mut roots = RootCertStore::empty();
    for certificate in certificate::chain(authority)? {
        roots.add(certificate).map_err(unsupported)?;
    }
    let mut verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    if let Some(revocations) = &spec.client_revocations_pem {
        // OpenSSL does the same: an expired list may not contain later revocations.
        verifier = verifier.with_crls(certificate::revocations(revocations)?).enforce_revocation_expiration();
    }
    let verifier = verifier.build();
    verifier.map_err(|error| Failure::Unsupported(format!("rustls: the clients' authority: {error}")))
}

/// A certificate with its key, and the signature schemes that it supports.
#[derive(Debug)]
struct Certified {
    key: Arc<CertifiedKey>,
    schemes: Vec<SignatureScheme>,
}

impl Certified {
    fn new(identity: &Identity, provider: &CryptoProvider) -> Result<Certified, Failure> {
        let chain = certificate::chain(&identity.chain_pem)?;
        let key = CertifiedKey::from_der(chain, certificate::private_key(&identity.key_pem)?, provider)
            .map_err(unsupported)?;
        let known = provider.signature_verification_algorithms.supported_schemes();
        let schemes =
            known.into_iter().filter(|scheme| key.key.choose_scheme(&[*scheme]).is_some()).collect();
        Ok(Certified { key: Arc::new(key), schemes })
    }
}

/// Resolver that presents the certificate whose kind of signature the client prefers.
#[derive(Debug)]
struct ByOffer(Vec<Certified>);

impl ResolvesServerCert for ByOffer {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let offered = hello.signature_schemes();
        let suits = |scheme| self.0.iter().find(|certified| certified.schemes.contains(scheme));
        offered.iter().find_map(suits).map(|certified| certified.key.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A full cache evicts its oldest session for a new one: after as many new ones as it holds, no earlier
    /// session is left.
    #[test]
    fn a_cache_of_sessions_is_full_from_the_beginning() {
        let cache = full_cache().expect("a cache");
        cache.put(b"first".to_vec(), b"session".to_vec());
        let others = || (0..REMEMBERED as u32 - 1).map(|number| number.to_be_bytes().to_vec());
        others().for_each(|id| assert!(cache.put(id, Vec::new())));
        assert_eq!(Some(b"session".to_vec()), cache.get(b"first"), "more was forgotten than had to be");
        cache.put(b"one more".to_vec(), Vec::new());
        assert_eq!(None, cache.get(b"first"), "the cache was not full");
    }
}
