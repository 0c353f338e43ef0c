//! Message authentication codes. The key is set for every message, as a caller without state does it.

use std::ffi::{CString, c_uint};

use super::api::{Api, Handle, Owned, Param, c_name, have};
use super::digest::{self, Output};
use crate::contract::{Failure, Task};
use crate::families::{self, Prepared};

/// Choice, the name that libcrypto knows the code by, and the digest inside where there is one.
const MACS: &[(&str, &str, Option<&str>)] = &[
    ("hmac-sha-1", "HMAC", Some("sha-1")),
    ("hmac-sha-256", "HMAC", Some("sha-256")),
    ("hmac-sha-512", "HMAC", Some("sha-512")),
    ("kmac-128", "KMAC-128", None),
    ("kmac-256", "KMAC-256", None),
    ("poly1305", "POLY1305", None),
];

pub fn offers(api: &'static Api) -> Vec<&'static str> {
    MACS.iter().map(|row| row.0).filter(|choice| Engine::open(api, choice).is_ok()).collect()
}

pub fn prepare(api: &'static Api, task: &Task) -> Prepared {
    let engine = Engine::open(api, &task.choice)?;
    families::mac::prepare(task, move |key, data| engine.code(key, data))
}

/// The way a library offers it: `EVP_MAC` from OpenSSL 3 on, `HMAC_*` before and in the forks.
enum Engine {
    Mac { api: &'static Api, context: Owned },
    Hmac { api: &'static Api, context: Owned, digest: Handle },
}

impl Engine {
    fn open(api: &'static Api, choice: &str) -> Result<Engine, Failure> {
        let row = MACS.iter().find(|row| row.0 == choice);
        let (_, name, inner) =
            row.ok_or_else(|| Failure::Unsupported(format!("libcrypto has no code {choice}")))?;
        api.clear_errors();
        match (api.EVP_MAC_fetch, inner) {
            (Some(fetch), _) => {
                let null = std::ptr::null_mut();
                let mac = unsafe { fetch(null, c_name(name).as_ptr(), std::ptr::null()) };
                if mac.is_null() {
                    return Err(api.unsupported(name));
                }
                let free = have(api.EVP_MAC_CTX_free, "EVP_MAC_CTX_free")?;
                let context = unsafe { have(api.EVP_MAC_CTX_new, "EVP_MAC_CTX_new")?(mac) };
                let context = Owned::new(context, free).ok_or_else(|| api.failed("EVP_MAC_CTX_new"))?;
                if let Some(inner) = inner {
                    // Set once: naming the digest in each message would look it up each time.
                    let inner: CString = c_name(digest::name(inner)?);
                    let params = [Param::utf8(c"digest", &inner), Param::end()];
                    let set = have(api.EVP_MAC_CTX_set_params, "EVP_MAC_CTX_set_params")?;
                    if unsafe { set(context.handle, params.as_ptr()) } != 1 {
                        return Err(api.failed("EVP_MAC_CTX_set_params"));
                    }
                }
                Ok(Engine::Mac { api, context })
            }
            (None, Some(inner)) => {
                let context = Owned::new(unsafe { (api.HMAC_CTX_new)() }, api.HMAC_CTX_free);
                let context = context.ok_or_else(|| api.failed("HMAC_CTX_new"))?;
                Ok(Engine::Hmac { api, context, digest: digest::find(api, inner)? })
            }
            (None, None) => Err(Failure::Unsupported("this library has no EVP_MAC".to_owned())),
        }
    }

    fn code(&self, key: &[u8], data: &[u8]) -> Result<Output, Failure> {
        let mut out = Output::default();
        let bytes = out.bytes.as_mut_ptr();
        match self {
            Engine::Mac { api, context } => {
                let context = context.handle;
                let (Some(start), Some(update), Some(finish)) =
                    (api.EVP_MAC_init, api.EVP_MAC_update, api.EVP_MAC_final)
                else {
                    return Err(Failure::Unsupported("this library has half of EVP_MAC".to_owned()));
                };
                let done = unsafe {
                    start(context, key.as_ptr(), key.len(), std::ptr::null()) == 1
                        && update(context, data.as_ptr(), data.len()) == 1
                        && finish(context, bytes, &mut out.length, out.bytes.len()) == 1
                };
                if done { Ok(out) } else { Err(api.failed("EVP_MAC")) }
            }
            Engine::Hmac { api, context, digest } => {
                let (mut length, context): (c_uint, Handle) = (0, context.handle);
                let done = api.lengths.hmac_init(context, key, *digest)? == 1
                    && unsafe {
                        (api.HMAC_Update)(context, data.as_ptr(), data.len()) == 1
                            && (api.HMAC_Final)(context, bytes, &mut length) == 1
                    };
                out.length = length as usize;
                if done { Ok(out) } else { Err(api.failed("HMAC")) }
            }
        }
    }
}
