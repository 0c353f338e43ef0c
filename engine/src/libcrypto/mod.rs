//! The provider `libcrypto`: one driver for any OpenSSL from 1.1.1 on, AWS-LC and BoringSSL shared objects.

mod api;
mod cipher;
mod cpu;
mod digest;
mod key_exchange;
mod keys;
mod mac;
mod password_hash;
mod rsa_api;
mod signature;

use std::collections::BTreeMap;
use std::ffi::{CStr, c_int};

use crate::contract::{Failure, Receipt, Task};
use crate::operation::Operation;
use crate::provider::{Offers, Provider};

use api::{Api, c_name, text};

/// What the dynamic loader finds by itself, newest first.
const SYSTEM_NAMES: [&str; 2] = ["libcrypto.so.3", "libcrypto.so.1.1"];

pub fn open(path: Option<&str>, cpu: &str) -> Result<Box<dyn Provider>, Failure> {
    let mask = cpu::Mask::named(cpu)?;
    // The library reads the variable while it is being loaded, and never again.
    mask.put_in_environment();
    let api = match path {
        Some(path) => Api::open(path)?,
        None => SYSTEM_NAMES
            .iter()
            .find_map(|name| Api::open(name).ok())
            .ok_or_else(|| Failure::Unsupported(format!("none of {} is here", SYSTEM_NAMES.join(", "))))?,
    };
    let libcrypto = Libcrypto { api };
    mask.prove_in_effect(libcrypto.cpu_settings().as_deref())?;
    Ok(Box::new(libcrypto))
}

struct Libcrypto {
    api: &'static Api,
}

impl Libcrypto {
    fn cpu_settings(&self) -> Option<String> {
        const OPENSSL_INFO_CPU_SETTINGS: c_int = 1008;
        text(unsafe { self.api.OPENSSL_info?(OPENSSL_INFO_CPU_SETTINGS) })
    }
}

impl Provider for Libcrypto {
    fn receipt(&self) -> Receipt {
        let version = self.api.version(0);
        Receipt {
            name: short_name(&version),
            cflags: Some(self.api.version(1)).filter(|flags| !flags.is_empty() && *flags != version),
            cpu: self.cpu_settings(),
            path: loaded_from(self.api),
            parts: BTreeMap::from([("built".to_owned(), self.api.version(2))]),
            provider: version,
            ..Receipt::default()
        }
    }

    fn offers(&self) -> Offers {
        // Each name is tried, because a build may leave any of them out; only this library knows.
        vec![
            ("digest", digest::offers(self.api)),
            ("mac", mac::offers(self.api)),
            ("cipher", cipher::offers(self.api)),
            ("signature", signature::offers(self.api)),
            ("key-exchange", key_exchange::offers(self.api)),
            ("password-hash", password_hash::offers(self.api)),
            ("rsa-api", rsa_api::CHOICES.to_vec()),
        ]
    }

    fn prepare(&self, task: &Task) -> Result<Box<dyn Operation>, Failure> {
        self.api.clear_errors();
        match task.family.as_str() {
            "digest" => digest::prepare(self.api, task),
            "mac" => mac::prepare(self.api, task),
            "cipher" => cipher::prepare(self.api, task),
            "signature" => signature::prepare(self.api, task),
            "key-exchange" => key_exchange::prepare(self.api, task),
            "password-hash" => password_hash::prepare(self.api, task),
            "rsa-api" => rsa_api::prepare(self.api, task),
            family => Err(Failure::Unsupported(format!("libcrypto performs nothing of the family {family}"))),
        }
    }
}

/// `OpenSSL 3.0.19 27 Jan 2026 (Library: …)` as `openssl 3.0.19`; BoringSSL has no version to shorten.
fn short_name(version: &str) -> String {
    version.split_whitespace().take(2).collect::<Vec<_>>().join(" ").to_lowercase()
}

/// The file that the loader really took, whatever name it was asked for by.
fn loaded_from(api: &Api) -> Option<String> {
    let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
    let symbol = api.OpenSSL_version as *const libc::c_void;
    if unsafe { libc::dladdr(symbol, &mut found) } == 0 || found.dli_fname.is_null() {
        return None;
    }
    let name = unsafe { CStr::from_ptr(found.dli_fname) }.to_string_lossy().into_owned();
    Some(std::fs::canonicalize(&name).map_or(name, |path| path.display().to_string()))
}

/// Where Debian, Fedora and others keep the legacy module; a library out of a wheel looks elsewhere.
const MODULE_FOLDERS: [&str; 4] = [
    "/usr/lib/x86_64-linux-gnu/ossl-modules",
    "/usr/lib/aarch64-linux-gnu/ossl-modules",
    "/usr/lib64/ossl-modules",
    "/usr/lib/ossl-modules",
];

/// Makes DES, RC2 and RC4 available where OpenSSL 3 keeps them in a module of their own.
fn load_legacy(api: &Api) -> Result<(), Failure> {
    // Older libraries and forks have them built in.
    let (Some(load), Some(search_in)) = (api.OSSL_PROVIDER_load, api.OSSL_PROVIDER_set_default_search_path)
    else {
        return Ok(());
    };
    let null = std::ptr::null_mut();
    let load = |name: &CStr| !unsafe { load(null, name.as_ptr()) }.is_null();
    // Naming any provider stops the default one from being loaded by itself.
    let here = load(c"legacy")
        || MODULE_FOLDERS.iter().any(|folder| {
            unsafe { search_in(null, c_name(folder).as_ptr()) };
            load(c"legacy")
        });
    if !here {
        return Err(api.unsupported("the legacy module"));
    }
    if !load(c"default") {
        return Err(api.failed("the default module"));
    }
    api.clear_errors();
    Ok(())
}
