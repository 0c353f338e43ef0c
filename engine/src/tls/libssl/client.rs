//! Clients.

use std::cell::RefCell;
use std::ffi::{CString, c_int};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::api::{Api, Handle, c_name};
use super::context::{CACHE_CLIENT_OWN, CACHE_OFF, Context, OPTION_NO_TICKET, ProtocolSettings};
use super::library;
use super::sessions::{self, Sessions};
use super::stream::Tls;
use crate::contract::Failure;
use crate::tls::certificate::Pin;
use crate::tls::spec::{ClientSpec, Negotiated};

const VERIFY_PEER: c_int = 1;

pub struct Client {
    shared: Arc<Shared>,
    /// The name to send; None where it stays out of the hello.
    name: Option<CString>,
}

/// What all connections of a client need for as long as any of them lives.
pub struct Shared {
    // Before what its callback is given, so that it goes first.
    context: Context,
    trust: Box<Trust>,
    pub sessions: Option<Sessions>,
}

/// What the library's callback is given to judge a server by.
struct Trust {
    api: &'static Api,
    pin: Pin,
}

impl Client {
    pub fn new(spec: &ClientSpec) -> Result<Client, Failure> {
        let api = library::open(spec.libcrypto.as_deref())?;
        let settings = ProtocolSettings {
            protocol: spec.protocol,
            key_exchange: spec.key_exchange,
            cipher: spec.cipher,
            signer: spec.signer,
            curves_of_peer: true,
        };
        let context = Context::new(api, unsafe { (api.TLS_client_method)() }, &settings)?;
        let trust = Box::new(Trust { api, pin: Pin::new(spec.certificate_pem.as_deref())? });
        unsafe {
            let given = std::ptr::from_ref::<Trust>(&trust).cast_mut().cast();
            (api.SSL_CTX_set_cert_verify_callback)(context.raw(), judge, given);
            (api.SSL_CTX_set_verify)(context.raw(), VERIFY_PEER, std::ptr::null_mut());
        }
        if spec.resume {
            context.session_cache(CACHE_CLIENT_OWN);
            unsafe { (api.SSL_CTX_sess_set_new_cb)(context.raw(), sessions::granted) };
        } else {
            context.session_cache(CACHE_OFF);
            context.option(OPTION_NO_TICKET);
        }
        if let Some(identity) = &spec.identity {
            context.present(identity)?;
        }
        let sessions = spec.resume.then(|| Sessions::new(api));
        let name = spec.sends_name().then(|| c_name(&spec.name));
        Ok(Client { shared: Arc::new(Shared { context, trust, sessions }), name })
    }

    pub fn library(&self) -> String {
        self.shared.context.api.name()
    }

    pub fn open(&self, socket: OwnedFd) -> Result<Tls, Failure> {
        const SET_HOST_NAME: c_int = 55;
        let api = self.shared.context.api;
        let connection = Tls::new(&self.shared.context, socket, Some(self.shared.clone()))?;
        unsafe {
            (api.SSL_set_connect_state)(connection.raw());
            if let Some(name) = &self.name {
                (api.SSL_ctrl)(connection.raw(), SET_HOST_NAME, 0, name.as_ptr().cast_mut().cast());
            }
        }
        if let Some(sessions) = &self.shared.sessions {
            sessions.offer(connection.raw());
        }
        Ok(connection)
    }
}

impl Shared {
    /// Adds what is known of the server's certificate.
    pub fn describe(&self, negotiated: &mut Negotiated) {
        if let Some(leaf) = self.trust.pin.leaf() {
            negotiated.certificate.clone_from(&leaf.fingerprint);
            negotiated.certificate_key.clone_from(&leaf.key);
        }
    }
}

thread_local! {
    static REFUSAL: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Why the last server on this thread was refused, if it was.
pub fn refusal() -> Option<String> {
    REFUSAL.take()
}

/// Notes why the server of the step under way is refused.
pub fn refuse(words: String) {
    REFUSAL.set(Some(words));
}

/// What the library asks about a server's certificates, in place of building a chain to an authority. It
/// verifies the signature in the handshake by itself.
unsafe extern "C" fn judge(verification: Handle, given: Handle) -> c_int {
    // Given in `Client::new`, and alive while any connection is.
    let trust = unsafe { &*given.cast::<Trust>() };
    let certificate = unsafe { (trust.api.X509_STORE_CTX_get0_cert)(verification) };
    let verdict = match der(trust.api, certificate) {
        None => Err("the server presented no certificate that can be read".to_owned()),
        Some(der) => trust.pin.hold(&der),
    };
    match verdict {
        Ok(()) => 1,
        Err(words) => {
            refuse(words);
            0
        }
    }
}

fn der(api: &Api, certificate: Handle) -> Option<Vec<u8>> {
    if certificate.is_null() {
        return None;
    }
    let length = unsafe { (api.i2d_X509)(certificate, std::ptr::null_mut()) };
    let mut der = vec![0; usize::try_from(length).ok()?];
    let mut at = der.as_mut_ptr();
    let written = unsafe { (api.i2d_X509)(certificate, &mut at) };
    (written == length && length > 0).then_some(der)
}
