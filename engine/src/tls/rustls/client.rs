//! Clients.

use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use ::rustls::ClientConfig;
use ::rustls::client::{Resumption, UnbufferedClientConnection};
use ::rustls::pki_types::ServerName;

use super::provider::{self, unsupported};
use super::sessions::Sessions;
use super::stream::{ClientStream, Tls};
use super::verifier::Verifier;
use crate::contract::Failure;
use crate::tls::certificate::{self, Pin};
use crate::tls::spec::ClientSpec;

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
        // An address costs no allocation for each connection; sent it is neither.
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
