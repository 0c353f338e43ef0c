//! What a client makes before any byte is sent: a context, with the trust anchors that it verifies servers by, and
//! connections of one that was made before.

mod first;

use std::collections::BTreeSet;
use std::ffi::{CString, c_void};
use std::path::PathBuf;

use super::api::{Api, Owned, c_name};
use super::context::VERIFY_PEER;
use super::library;
use crate::binding;
use crate::contract::{Proof, Task};
use crate::failure::Failure;
use crate::libcrypto::api as libcrypto;
use crate::provider::{Prepared, Primitive};

pub use first::{FIRST, main};

/// Choice, and whether its context has the system's trust anchors.
const CHOICES: &[(&str, bool)] = &[("system-trust", true), ("no-trust", false)];
/// Where distributions keep the certificates of all authorities that they trust, in one file.
const BUNDLES: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Both, where there is a libssl beside this libcrypto.
pub fn offers(crypto: &'static libcrypto::Api) -> Vec<&'static str> {
    let has = beside(crypto).is_ok();
    CHOICES.iter().filter(|_| has).map(|(choice, _)| *choice).collect()
}

pub fn prepare(crypto: &'static libcrypto::Api, task: &Task) -> Prepared {
    if task.op == FIRST {
        return first::prepare(beside(crypto)?, task);
    }
    let trusts = crate::families::row("libssl", task, CHOICES)?;
    let making =
        Making { api: beside(crypto)?, bundle: if *trusts { Some(Bundle::of_system()?) } else { None } };
    let prepare = task.operation::<fn(Making) -> Prepared>(&[
        ("context", |making| Ok(Box::new(making))),
        ("connection", |making| Ok(Box::new(Connections { context: making.context()?, making }))),
    ])?;
    prepare(making)
}

/// The libssl that stands on a libcrypto.
fn beside(crypto: &libcrypto::Api) -> Result<&'static Api, Failure> {
    let path = binding::file_of(crypto.OpenSSL_version as *const c_void);
    library::open(path.as_deref().and_then(|path| path.to_str()))
}

/// Certificates of authorities in one file.
struct Bundle {
    path: CString,
    /// How many there are, each once.
    anchors: usize,
}

impl Bundle {
    /// The system's, or the one that `SSL_CERT_FILE` names, as OpenSSL itself reads it.
    fn of_system() -> Result<Bundle, Failure> {
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

/// Makes contexts, each anew as a program does that has one for every connection, and frees them.
struct Making {
    api: &'static Api,
    bundle: Option<Bundle>,
}

impl Making {
    fn context(&self) -> Result<Owned, Failure> {
        let api = self.api;
        // SAFETY: the method is the library's own, and the context the caller's.
        let context = unsafe {
            api.crypto.own((api.SSL_CTX_new)((api.TLS_client_method)()), api.SSL_CTX_free, "SSL_CTX_new")?
        };
        // SAFETY: the context is alive, and no callback is given.
        unsafe { (api.SSL_CTX_set_verify)(context.raw(), VERIFY_PEER, std::ptr::null_mut()) };
        if let Some(bundle) = &self.bundle {
            self.trust(&context, &bundle.path)?;
        }
        Ok(context)
    }

    fn trust(&self, context: &Owned, path: &CString) -> Result<(), Failure> {
        // SAFETY: the context is alive, the path ends with a zero, and there is no folder.
        let done = unsafe {
            (self.api.SSL_CTX_load_verify_locations)(context.raw(), path.as_ptr(), std::ptr::null())
        };
        self.api.crypto.ensure(done == 1, "SSL_CTX_load_verify_locations")
    }

    /// How many trust anchors a context has.
    fn anchors(&self, context: &Owned) -> usize {
        // SAFETY: context, store and list are alive, and none is the caller's.
        unsafe {
            let store = (self.api.SSL_CTX_get_cert_store)(context.raw());
            (self.api.OPENSSL_sk_num)((self.api.X509_STORE_get0_objects)(store)) as usize
        }
    }

    fn prove_context(&self, context: &Owned) -> Result<Proof, Failure> {
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

/// Makes connections of one context, as a program does that keeps it, and frees them.
struct Connections {
    making: Making,
    context: Owned,
}

impl Connections {
    fn connection(&self) -> Result<Owned, Failure> {
        let api = self.making.api;
        // SAFETY: the context is alive, and the connection the caller's.
        unsafe {
            let connection = api.crypto.own((api.SSL_new)(self.context.raw()), api.SSL_free, "SSL_new")?;
            (api.SSL_set_connect_state)(connection.raw());
            Ok(connection)
        }
    }
}

impl Primitive for Connections {
    fn perform(&mut self) -> Result<(), Failure> {
        self.connection().map(drop)
    }

    fn prove(&mut self) -> Result<Proof, Failure> {
        let mut proof = self.making.prove_context(&self.context)?;
        let api = self.making.api;
        let connection = self.connection()?;
        // SAFETY: the connection is alive.
        let begun = unsafe { (api.SSL_is_init_finished)(connection.raw()) == 1 };
        proof.accept("a connection that has not begun", !begun)?;
        Ok(proof)
    }
}
