//! Servers.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use ::rustls::crypto::CryptoProvider;
use ::rustls::crypto::aws_lc_rs::Ticketer;
use ::rustls::server::danger::ClientCertVerifier;
use ::rustls::server::{
    ClientHello, NoClientAuth, NoServerSessionStorage, ResolvesServerCert, ServerSessionMemoryCache,
    UnbufferedServerConnection, WebPkiClientVerifier,
};
use ::rustls::sign::CertifiedKey;
use ::rustls::{RootCertStore, ServerConfig, SignatureScheme};

use super::provider::{self, unsupported};
use super::stream::{ServerStream, Tls};
use crate::failure::Failure;
use crate::tls::certificate;
use crate::tls::spec::{Identity, Resumption, ServerSpec, TICKETS};

/// As many as OpenSSL's servers remember unless told otherwise.
const REMEMBERED: usize = 20 * 1024;

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
        // Which suites of TLS 1.2 fit the certificates is rustls' to say.
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
            Resumption::SessionId => config.session_storage = ServerSessionMemoryCache::new(REMEMBERED),
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
        // As OpenSSL does: a list that should have been renewed may lack what was revoked since.
        verifier = verifier.with_crls(certificate::revocations(revocations)?).enforce_revocation_expiration();
    }
    let verifier = verifier.build();
    verifier.map_err(|error| Failure::Unsupported(format!("rustls: the clients' authority: {error}")))
}

/// A certificate with its key, and what it can sign with.
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

/// Presents the certificate whose kind of signature the client asks for first.
#[derive(Debug)]
struct ByOffer(Vec<Certified>);

impl ResolvesServerCert for ByOffer {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let offered = hello.signature_schemes();
        let suits = |scheme| self.0.iter().find(|certified| certified.schemes.contains(scheme));
        offered.iter().find_map(suits).map(|certified| certified.key.clone())
    }
}
