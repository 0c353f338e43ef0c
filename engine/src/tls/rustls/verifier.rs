//! How a client makes sure of a server: by the certificate it holds to and the signature in the handshake.

use std::sync::Arc;

use ::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use ::rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use ::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use ::rustls::{DigitallySignedStruct, Error, SignatureScheme};

use crate::tls::certificate::Pin;
use crate::tls::spec::Signer;

#[derive(Debug)]
pub struct Verifier {
    pin: Arc<Pin>,
    algorithms: WebPkiSupportedAlgorithms,
    /// What is offered; a server with several certificates chooses by this.
    schemes: Vec<SignatureScheme>,
}

impl Verifier {
    pub fn new(pin: Arc<Pin>, algorithms: WebPkiSupportedAlgorithms, signer: Option<Signer>) -> Verifier {
        Verifier { pin, algorithms, schemes: schemes(signer) }
    }
}

/// SHA-256 first, as certificates have it on the web.
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
