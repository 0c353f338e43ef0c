//! Servers of a libssl.

use std::ffi::{c_int, c_ulong};
use std::os::fd::OwnedFd;

use super::context::{CACHE_OFF, CACHE_SERVER, Context, Method, OPTION_NO_TICKET, VERIFY_PEER};
use super::library;
use super::stream::Tls;
use crate::failure::Failure;
use crate::spec::{KeyExchange, Protocol, Resumption, ServerSpec, TICKETS};

const VERIFY_FAIL_WITHOUT: c_int = 2;
/// Name of the server for whose sessions the tickets are valid. Any name will do.
const SESSIONS_OF: &[u8] = b"tollbar";

pub struct Server {
    context: Context,
}

impl Server {
    pub fn new(spec: &ServerSpec) -> Result<Server, Failure> {
        let api = library::open(spec.libcrypto.as_deref())?;
        let shows_itself = spec.client_authority_pem.is_some();
        let mut context = Context::new(api, Method::Server, spec.asked(), shows_itself)?;
        if let Some(order) = spec.mac_order {
            context.mac_order(order)?;
        }
        for identity in &spec.identities {
            context.present(identity)?;
        }
        if spec.key_exchange == Some(KeyExchange::Dhe) {
            let parameters = spec.dh_parameters_pem.as_deref();
            let missing = || Failure::Failed("the key exchange dhe needs `dh_parameters_pem`".to_owned());
            context.diffie_hellman(parameters.ok_or_else(missing)?)?;
        }
        context.sessions_of(SESSIONS_OF)?;
        let tickets = if spec.resumption == Resumption::None { 0 } else { TICKETS };
        // SAFETY: the context is alive.
        unsafe { (api.SSL_CTX_set_num_tickets)(context.raw(), tickets) };
        match spec.resumption {
            Resumption::None => {
                context.session_cache(CACHE_OFF);
                context.option(OPTION_NO_TICKET);
            }
            Resumption::SessionId if api.dialect.is_fork() && spec.protocol != Some(Protocol::Tls12) => {
                let words = format!("{} remembers no sessions of TLS 1.3: it has tickets alone", api.name());
                return Err(Failure::Unsupported(words));
            }
            // In TLS 1.3 tickets are still sent, and this option makes them identifiers of stored sessions.
            Resumption::SessionId => {
                context.session_cache(CACHE_SERVER);
                context.option(OPTION_NO_TICKET);
            }
            Resumption::Ticket => context.session_cache(CACHE_OFF),
        }
        if let Some(authority) = &spec.client_authority_pem {
            trust(&context, authority)?;
            if let Some(revocations) = &spec.client_revocations_pem {
                revoke(&context, revocations)?;
            }
        }
        Ok(Server { context })
    }

    pub fn library(&self) -> String {
        self.context.api.name()
    }

    pub fn accept(&self, socket: OwnedFd) -> Result<Tls, Failure> {
        let connection = Tls::new(&self.context, socket, None)?;
        // SAFETY: the connection is alive.
        unsafe { (self.context.api.SSL_set_accept_state)(connection.raw()) };
        Ok(connection)
    }
}

/// Requires a certificate of every client, signed by one of these authorities.
fn trust(context: &Context, authority_pem: &str) -> Result<(), Failure> {
    let api = context.api;
    let authorities = api.certificates(authority_pem)?;
    if authorities.is_empty() {
        return Err(Failure::Failed("the clients' authority is no certificate in PEM".to_owned()));
    }
    // SAFETY: the context is alive, and owns its store.
    let store = unsafe { (api.SSL_CTX_get_cert_store)(context.raw()) };
    if store.is_null() {
        return Err(api.unsupported("a store for the clients' authority"));
    }
    for authority in authorities {
        // SAFETY: all are alive, and store and context take their own references.
        let added = unsafe {
            (api.X509_STORE_add_cert)(store, authority.raw()) == 1
                && (api.SSL_CTX_add_client_CA)(context.raw(), authority.raw()) == 1
        };
        if !added {
            return Err(api.unsupported("the clients' authority"));
        }
    }
    let mode = VERIFY_PEER | VERIFY_FAIL_WITHOUT;
    // SAFETY: the context is alive.
    unsafe { (api.SSL_CTX_set_verify)(context.raw(), mode, std::ptr::null_mut()) };
    Ok(())
}

/// Refuses client certificates on these lists, and those of authorities without a list.
fn revoke(context: &Context, revocations_pem: &str) -> Result<(), Failure> {
    const CHECK: c_ulong = 0x4;
    let api = context.api;
    let lists = api.revocations(revocations_pem)?;
    if lists.is_empty() {
        return Err(Failure::Failed("the clients' revocations must be a list in PEM".to_owned()));
    }
    // SAFETY: the context is alive, and owns its store, which was checked for the authority.
    let store = unsafe { (api.SSL_CTX_get_cert_store)(context.raw()) };
    for list in lists {
        // SAFETY: both are alive, and the store takes its own reference.
        if unsafe { (api.X509_STORE_add_crl)(store, list.raw()) } != 1 {
            return Err(api.unsupported("the clients' revocations"));
        }
    }
    // SAFETY: the store is alive.
    match unsafe { (api.X509_STORE_set_flags)(store, CHECK) } {
        1 => Ok(()),
        _ => Err(api.unsupported("the clients' revocations")),
    }
}
