//! Objects that a client makes before it sends a byte: a context, with the trust anchors by which it verifies
//! servers, and connections of an existing context.

mod first;

use std::ffi::c_void;

use super::api::{Api, Owned};
use super::contexts::{Bundle, CHOICES, Making};
use super::library;
use crate::binding;
use crate::contract::{Proof, Receipt, Task};
use crate::failure::Failure;
use crate::libcrypto::{Libcrypto, api as libcrypto};
use crate::provider::{Offers, Prepared, Primitive, Provider};

pub use first::{FIRST, main};

/// A libcrypto, and the clients of the libssl in its folder.
pub struct WithClients(pub Libcrypto);

const FAMILY: &str = "tls-client";

impl Provider for WithClients {
    fn receipt(&self) -> Receipt {
        self.0.receipt()
    }

    fn offers(&self) -> Offers {
        [self.0.offers(), vec![(FAMILY, offers(self.0.api))]].concat()
    }

    fn prepare(&self, task: &Task) -> Prepared {
        if task.family != FAMILY {
            return self.0.prepare(task);
        }
        self.0.prepared(|api| prepare(api, task))
    }
}

/// Returns both choices, if there is a libssl for this libcrypto.
fn offers(crypto: &'static libcrypto::Api) -> Vec<&'static str> {
    let has = next_to(crypto).is_ok();
    CHOICES.iter().filter(|_| has).map(|(choice, _)| *choice).collect()
}

fn prepare(crypto: &'static libcrypto::Api, task: &Task) -> Prepared {
    if task.op == FIRST {
        return first::prepare(next_to(crypto)?, task);
    }
    let trusts = crate::families::row("libssl", task, CHOICES)?;
    let making =
        Making { api: next_to(crypto)?, bundle: if *trusts { Some(Bundle::of_system()?) } else { None } };
    let prepare = task.operation::<fn(Making) -> Prepared>(&[
        ("context", |making| Ok(Box::new(making))),
        ("connection", |making| Ok(Box::new(Connections { context: making.context()?, making }))),
    ])?;
    prepare(making)
}

/// Opens the libssl that uses a libcrypto.
fn next_to(crypto: &libcrypto::Api) -> Result<&'static Api, Failure> {
    let path = binding::file_of(crypto.OpenSSL_version as *const c_void);
    library::open(path.as_deref().and_then(|path| path.to_str()))
}

/// Maker of connections of one context, as in a program that keeps it.
struct Connections {
    making: Making,
    context: Owned,
}

impl Connections {
    fn connection(&self) -> Result<Owned, Failure> {
        let api = self.making.api;
        // SAFETY: the context is alive, and the caller owns the connection.
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
