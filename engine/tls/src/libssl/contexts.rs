//! Contexts of a client, a new one each time, with the trust anchors by which it verifies servers.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::path::PathBuf;

use super::api::{Api, Owned, c_name};
use super::context::VERIFY_PEER;
use crate::contract::Proof;
use crate::failure::Failure;
use crate::provider::Primitive;

/// Choices, each with whether its context has the system's trust anchors.
pub const CHOICES: &[(&str, bool)] = &[("system-trust", true), ("no-trust", false)];
/// Files in which distributions keep the certificates of all trusted authorities.
const BUNDLES: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Certificates of authorities in one file.
pub struct Bundle {
    pub path: CString,
    /// Number of distinct certificates.
    pub anchors: usize,
}

impl Bundle {
    /// Finds the system's bundle, or the one that `SSL_CERT_FILE` names, like OpenSSL itself.
    pub fn of_system() -> Result<Bundle, Failure> {
        let named = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
        let found = named.into_iter().chain(BUNDLES.iter().map(PathBuf::from)).find(|path| path.is_file());
        let path = found.ok_or_else(|| {
            Failure::Unsupported(format!("no trust store here: none of {}", BUNDLES.join(", ")))
        })?;
        let read = std::fs::read_to_string(&path);
        let text = read.map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))?;
        let (begin, end) = ("-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----");
        let each = text.split(begin).skip(1).filter_map(|part| part.split_once(end));
        let anchors: BTreeSet<&str> = each.map(|(certificate, _)| certificate.trim()).collect();
        Ok(Bundle { path: c_name(&path.to_string_lossy()), anchors: anchors.len() })
    }
}

/// Maker of contexts, a new one each time as in a program with one for every connection.
pub struct Making {
    pub api: &'static Api,
    pub bundle: Option<Bundle>,
}

impl Making {
    pub fn context(&self) -> Result<Owned, Failure> {
        let api = self.api;
        // SAFETY: the library owns the method, and the caller the context.
        let context = unsafe {
            api.crypto.own((api.SSL_CTX_new)((api.TLS_client_method)()), api.SSL_CTX_free, "SSL_CTX_new")?
        };
        // SAFETY: the context is alive, and null means no callback.
        unsafe { (api.SSL_CTX_set_verify)(context.raw(), VERIFY_PEER, std::ptr::null_mut()) };
        if let Some(bundle) = &self.bundle {
            self.trust(&context, &bundle.path)?;
        }
        Ok(context)
    }

    pub fn trust(&self, context: &Owned, path: &CString) -> Result<(), Failure> {
        // SAFETY: the context is alive, the path ends with a zero, and null means no folder.
        let done = unsafe {
            (self.api.SSL_CTX_load_verify_locations)(context.raw(), path.as_ptr(), std::ptr::null())
        };
        self.api.crypto.ensure(done == 1, "SSL_CTX_load_verify_locations")
    }

    /// Returns the number of trust anchors of a context.
    pub fn anchors(&self, context: &Owned) -> usize {
        // SAFETY: context, store and list are alive, and the caller owns none of them.
        unsafe {
            let store = (self.api.SSL_CTX_get_cert_store)(context.raw());
            self.api.dialect.count((self.api.X509_STORE_get0_objects)(store))
        }
    }

    pub fn prove_context(&self, context: &Owned) -> Result<Proof, Failure> {
        let (found, expected) =
            (self.anchors(context), self.bundle.as_ref().map_or(0, |bundle| bundle.anchors));
        let mut proof = Proof::default();
        proof.accept(&format!("a context of {expected} trust anchors"), found == expected)?;
        let nothing = self.trust(context, &c_name("/dev/null"));
        self.api.clear_errors();
        proof.refuse("a trust store without a certificate", nothing.is_err())?;
        Ok(proof)
    }
}

impl Primitive for Making {
    fn perform(&mut self) -> Result<(), Failure> {
        self.context().map(drop)
    }

    fn prove(&mut self) -> Result<Proof, Failure> {
        self.prove_context(&self.context()?)
    }
}
