//! The provider `libcrypto`: one driver for any OpenSSL since 1.1.1, AWS-LC and BoringSSL shared objects.

pub mod api;
mod cipher;
mod cpu;
pub mod dialect;
mod digest;
mod key_exchange;
pub mod keys;
mod modules;
mod objects;
mod password_hash;
mod rsa_api;
mod signature;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};

use crate::binding::file_of;
use crate::contract::{Receipt, Task};
use crate::failure::Failure;
use crate::families::{Prepared, not_offered};
use crate::provider::{Offers, Provider};

use api::{Api, text};
pub use cpu::mask;

/// Function that returns the choices of a family. It tries each name, because a build may leave any of them
/// out.
type Offered = fn(&'static Api) -> Vec<&'static str>;
type Prepare = fn(&'static Api, &Task) -> Prepared;

const FAMILIES: &[(&str, Offered, Prepare)] = &[
    ("digest", digest::offers, digest::prepare),
    ("mac", digest::mac_offers, digest::prepare_mac),
    ("cipher", cipher::offers, cipher::prepare),
    ("signature", signature::offers, signature::prepare),
    ("key-exchange", key_exchange::offers, key_exchange::prepare),
    ("password-hash", password_hash::offers, password_hash::prepare),
    ("rsa-api", rsa_api::offers, rsa_api::prepare),
];

/// File names for the dynamic loader, newest first.
const SYSTEM_NAMES: [&str; 2] = ["libcrypto.so.3", "libcrypto.so.1.1"];

/// Opens a libcrypto that does not use the instructions in `cpu`. `mask` must have masked the process before.
pub fn open(path: Option<&str>, cpu: &str) -> Result<Libcrypto, Failure> {
    let mask = cpu::Mask::named(cpu)?;
    let api = match path {
        Some(path) => Api::open(path)?,
        None => SYSTEM_NAMES.iter().find_map(|name| Api::open(name).ok()).ok_or_else(|| {
            Failure::Unsupported(format!(
                "no libcrypto is installed; it must be one of {}",
                SYSTEM_NAMES.join(", ")
            ))
        })?,
    };
    let libcrypto = Libcrypto { api };
    mask.prove_in_effect(libcrypto.cpu_settings().as_deref())?;
    Ok(libcrypto)
}

pub struct Libcrypto {
    pub api: &'static Api,
}

impl Libcrypto {
    /// Prepares a primitive, and checks that only this library will do the work.
    pub fn prepared(&self, prepare: impl FnOnce(&'static Api) -> Prepared) -> Prepared {
        self.api.clear_errors();
        let prepared = prepare(self.api)?;
        // The library's configuration file may load modules as well.
        self.api.modules.stand_on(self.api.version_function())?;
        Ok(prepared)
    }

    fn cpu_settings(&self) -> Option<String> {
        const OPENSSL_INFO_CPU_SETTINGS: c_int = 1008;
        // SAFETY: every number gives a string that the library owns, or null.
        unsafe { text(self.api.OPENSSL_info?(OPENSSL_INFO_CPU_SETTINGS)) }
    }
}

impl Provider for Libcrypto {
    fn receipt(&self) -> Receipt {
        let version = self.api.version(0);
        let mut parts = BTreeMap::from([("built".to_owned(), self.api.version(2))]);
        for module in self.api.modules.in_use(self.api.version_function()) {
            let name = module.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            parts.insert(format!("module {name}"), module.display().to_string());
        }
        // The path is the file that the loader used, whatever name was requested.
        let path = file_of(self.api.OpenSSL_version as *const c_void);
        Receipt {
            name: self.api.name(),
            cflags: Some(self.api.version(1)).filter(|flags| !flags.is_empty() && *flags != version),
            cpu: self.cpu_settings(),
            path: path.map(|path| path.display().to_string()),
            parts,
            provider: version,
            ..Receipt::default()
        }
    }

    fn offers(&self) -> Offers {
        FAMILIES.iter().map(|(family, offers, _)| (*family, offers(self.api))).collect()
    }

    fn prepare(&self, task: &Task) -> Prepared {
        let row = FAMILIES.iter().find(|(family, ..)| *family == task.family);
        let (.., prepare) =
            row.ok_or_else(|| not_offered("libcrypto", &format!("the family {}", task.family)))?;
        self.prepared(|api| prepare(api, task))
    }
}
