//! The schemes that there are.

use super::scheme::Scheme;
use super::{
    anonymous, basic, client_certificate, digest, form, hmac, jwt, kerberos, ntlm, opaque_token,
    session_cookie,
};
use crate::contract::Failure;
use crate::load_task::Load;

pub const SCHEMES: &[Scheme] = &[
    anonymous::SCHEME,
    basic::SCHEME,
    client_certificate::SCHEME,
    digest::SCHEME,
    form::SCHEME,
    hmac::SCHEME,
    jwt::SCHEME,
    kerberos::SCHEME,
    ntlm::SCHEME,
    opaque_token::SCHEME,
    session_cookie::SCHEME,
];

/// The scheme of this name; `place` is where it was named.
pub fn scheme(name: &str, place: &str) -> Result<&'static Scheme, Failure> {
    SCHEMES.iter().find(|scheme| scheme.name == name).ok_or_else(|| {
        let known: Vec<&str> = SCHEMES.iter().map(|scheme| scheme.name).collect();
        Failure::Failed(format!("`{place}` is {name:?}; there are: {}", known.join(", ")))
    })
}

/// The scheme that a load's users sign in by.
pub fn scheme_of(load: &Load) -> Result<&'static Scheme, Failure> {
    match &load.exchange {
        None => Ok(&anonymous::SCHEME),
        Some(spec) => scheme(&spec.scheme, "load.exchange.scheme"),
    }
}
