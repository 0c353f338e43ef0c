//! Clients of a libssl.

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::api::c_name;
use super::context::{CACHE_CLIENT_OWN, CACHE_OFF, Context, Method, OPTION_NO_TICKET};
use super::library;
use super::shared::{Sessions, Shared, granted};
use super::stream::Tls;
use crate::certificate::Pin;
use crate::failure::Failure;
use crate::spec::{Cipher, ClientSpec};

pub struct Client {
    shared: Arc<Shared>,
    /// Server's name to send; None if the hello has none.
    name: Option<CString>,
    /// True if a connection may negotiate a CBC suite.
    may_be_cbc: bool,
}

impl Client {
    pub fn new(spec: &ClientSpec) -> Result<Client, Failure> {
        let api = library::open(spec.libcrypto.as_deref())?;
        let mut context = Context::new(api, Method::Client, spec.asked(), true)?;
        if let Some(order) = spec.mac_order {
            context.mac_order(order)?;
        }
        let pin = Pin::new(spec.certificate_pem.as_deref())?;
        if spec.resume {
            context.session_cache(CACHE_CLIENT_OWN);
            // SAFETY: the context is alive, and the callback is of this type.
            unsafe { (api.SSL_CTX_sess_set_new_cb)(context.raw(), granted) };
        } else {
            context.session_cache(CACHE_OFF);
            context.option(OPTION_NO_TICKET);
        }
        if let Some(identity) = &spec.identity {
            context.present(identity)?;
        }
        let sessions = spec.resume.then(|| Sessions::new(api));
        let name = spec.sends_name().then(|| c_name(&spec.name));
        let may_be_cbc = spec.cipher.is_none_or(|cipher| cipher == Cipher::Aes128Cbc);
        Ok(Client { shared: Arc::new(Shared::new(context, pin, sessions)), name, may_be_cbc })
    }

    pub fn library(&self) -> String {
        self.shared.context.api.name()
    }

    pub fn open(&self, socket: OwnedFd) -> Result<Tls, Failure> {
        let api = self.shared.context.api;
        let mut connection = Tls::new(&self.shared.context, socket, Some(self.shared.clone()))?;
        // SAFETY: the connection is alive.
        unsafe { (api.SSL_set_connect_state)(connection.raw()) };
        if self.may_be_cbc {
            connection.note_mac_order();
        }
        if let Some(name) = &self.name {
            connection.names(name);
        }
        if let Some(sessions) = &self.shared.sessions {
            sessions.offer(connection.raw());
        }
        Ok(connection)
    }
}
