//! What the connections of a client share: its context, kept sessions, and how a server's certificate is judged.

use std::cell::RefCell;
use std::ffi::c_int;

use super::api::{Api, Handle};
use super::context::{Context, VERIFY_PEER};
use super::sessions::Sessions;
use crate::tls::certificate::Pin;
use crate::tls::spec::Negotiated;

/// What all connections of a client need for as long as any of them lives.
pub struct Shared {
    // Before what its callback is given, so that it goes first.
    pub context: Context,
    trust: Box<Trust>,
    pub sessions: Option<Sessions>,
}

/// What the library's callback is given to judge a server by.
struct Trust {
    api: &'static Api,
    pin: Pin,
}

impl Shared {
    pub fn new(context: Context, pin: Pin, sessions: Option<Sessions>) -> Shared {
        let api = context.api;
        let trust = Box::new(Trust { api, pin });
        // SAFETY: the context goes before what its callback is given, which a box keeps in its place.
        unsafe {
            let given = std::ptr::from_ref::<Trust>(&trust).cast_mut().cast();
            (api.SSL_CTX_set_cert_verify_callback)(context.raw(), judge, given);
            (api.SSL_CTX_set_verify)(context.raw(), VERIFY_PEER, std::ptr::null_mut());
        }
        Shared { context, trust, sessions }
    }

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
    // SAFETY: given in `Shared::new`, and alive while any connection is.
    let trust = unsafe { &*given.cast::<Trust>() };
    // SAFETY: the library's own, alive during this call.
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

/// The bytes of a certificate.
pub fn der(api: &Api, certificate: Handle) -> Option<Vec<u8>> {
    if certificate.is_null() {
        return None;
    }
    // SAFETY: the certificate is alive; without a buffer its length alone is told.
    let length = unsafe { (api.i2d_X509)(certificate, std::ptr::null_mut()) };
    let mut der = vec![0; usize::try_from(length).ok()?];
    let mut at = der.as_mut_ptr();
    // SAFETY: there is as much room as the certificate takes.
    let written = unsafe { (api.i2d_X509)(certificate, &mut at) };
    (written == length && length > 0).then_some(der)
}
