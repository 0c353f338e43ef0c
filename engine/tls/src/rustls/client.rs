//! Clients: the verification of a server, and their sessions.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use ::rustls::client::{
    ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls13ClientSessionValue,
    UnbufferedClientConnection,
};
use ::rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use ::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use ::rustls::{ClientConfig, DigitallySignedStruct, Error, NamedGroup, SignatureScheme};

use super::provider::{self, unsupported};
use super::stream::{ClientStream, Tls};
use crate::certificate::{self, Pin};
use crate::failure::Failure;
use crate::spec::{ClientSpec, Signer};

pub struct Client {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    pin: Arc<Pin>,
}

impl Client {
    pub fn new(spec: &ClientSpec) -> Result<Client, Failure> {
        if let Some(reason) = provider::lacks(&spec.asked(), spec.server_rsa_bits()) {
            return Err(Failure::Unsupported(reason));
        }
        let provider = provider::exactly(&spec.asked())?;
        let pin = Arc::new(Pin::new(spec.certificate_pem.as_deref())?);
        let algorithms = provider.signature_verification_algorithms;
        let verifier = Arc::new(Verifier::new(pin.clone(), algorithms, spec.signer));
        let config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&provider::versions(spec.protocol))
            .map_err(unsupported)?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match &spec.identity {
            None => config.with_no_client_auth(),
            Some(identity) => config
                .with_client_auth_cert(
                    certificate::chain(&identity.chain_pem)?,
                    certificate::private_key(&identity.key_pem)?,
                )
                .map_err(unsupported)?,
        };
        config.resumption = match spec.resume {
            true => Resumption::store(Arc::new(Sessions::default())),
            false => Resumption::disabled(),
        };
        config.enable_sni = spec.sends_name();
        // An address needs no allocation for each connection, and is not sent.
        let name = match spec.sends_name() {
            true => ServerName::try_from(spec.name.clone())
                .map_err(|error| Failure::Failed(format!("the name {:?}: {error}", spec.name)))?,
            false => ServerName::from(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        };
        Ok(Client { config: Arc::new(config), name, pin })
    }

    pub fn open(&self, socket: OwnedFd) -> Result<ClientStream, Failure> {
        let connection = UnbufferedClientConnection::new(self.config.clone(), self.name.clone());
        let connection = connection.map_err(|error| Failure::Failed(format!("rustls: {error}")))?;
        Ok(Tls::new(socket, connection, Some(self.pin.clone())))
    }
}

/// Verification of a server: by the pinned certificate and the signature in the handshake.
#[derive(Debug)]
struct Verifier {
    pin: Arc<Pin>,
    algorithms: WebPkiSupportedAlgorithms,
    /// Offered schemes, by which a server with several certificates chooses one.
    schemes: Vec<SignatureScheme>,
}

impl Verifier {
    fn new(pin: Arc<Pin>, algorithms: WebPkiSupportedAlgorithms, signer: Option<Signer>) -> Verifier {
        Verifier { pin, algorithms, schemes: schemes(signer) }
    }
}

/// Returns the schemes, SHA-256 first as with certificates on the web.
fn schemes(signer: Option<Signer>) -> Vec<SignatureScheme> {
    use SignatureScheme as S;
    match signer {
        Some(Signer::Rsa) => vec![
            S::RSA_PSS_SHA256,
            S::RSA_PSS_SHA384,
            S::RSA_PSS_SHA512,
            S::RSA_PKCS1_SHA256,
            S::RSA_PKCS1_SHA384,
            S::RSA_PKCS1_SHA512,
        ],
        Some(Signer::Ecdsa) => {
            vec![S::ECDSA_NISTP256_SHA256, S::ECDSA_NISTP384_SHA384, S::ECDSA_NISTP521_SHA512]
        }
        Some(Signer::Ed25519) => vec![S::ED25519],
        Some(Signer::MlDsa) => vec![S::ML_DSA_44, S::ML_DSA_65, S::ML_DSA_87],
        None => [Signer::Ecdsa, Signer::Rsa, Signer::Ed25519, Signer::MlDsa]
            .into_iter()
            .flat_map(|signer| schemes(Some(signer)))
            .collect(),
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.pin.hold(end_entity).map(|()| ServerCertVerified::assertion()).map_err(Error::General)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes.clone()
    }
}

/// Limit of tickets. rustls' own store keeps eight tickets of a server, and each is used once. With more
/// users at a time, full handshakes would take the place of the requested resumptions.
const MOST_TICKETS: usize = 4096;

/// Sessions of a client, of one server, for all its users.
#[derive(Debug, Default)]
struct Sessions {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// Session of TLS 1.2, which may be resumed any number of times.
    tls12: Option<Tls12ClientSessionValue>,
    /// Sessions of TLS 1.3, which may be resumed once each.
    tls13: VecDeque<Tls13ClientSessionValue>,
}

impl Sessions {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientSessionStore for Sessions {
    fn set_kx_hint(&self, _server: ServerName<'static>, _group: NamedGroup) {}

    fn kx_hint(&self, _server: &ServerName<'_>) -> Option<NamedGroup> {
        // The first offered group is the requested one, whatever a server accepted before.
        None
    }

    fn set_tls12_session(&self, _server: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.kept().tls12 = Some(value);
    }

    fn tls12_session(&self, _server: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.kept().tls12.clone()
    }

    fn remove_tls12_session(&self, _server: &ServerName<'static>) {
        self.kept().tls12 = None;
    }

    fn insert_tls13_ticket(&self, _server: ServerName<'static>, value: Tls13ClientSessionValue) {
        let mut kept = self.kept();
        if kept.tls13.len() == MOST_TICKETS {
            kept.tls13.pop_front();
        }
        kept.tls13.push_back(value);
    }

    fn take_tls13_ticket(&self, _server: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.kept().tls13.pop_back()
    }
}
