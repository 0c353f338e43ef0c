//! Message authentication codes. The key is set for every message, as a caller without state does it.

use std::ffi::{CString, c_int, c_uint};

use super::api::{Api, Handle, Owned, Param, RawParam, c_name, have};
use super::digest::{self, Output};
use crate::contract::Task;
use crate::failure::Failure;
use crate::families::{self, Prepared};

/// Choice, the name that libcrypto knows the code by, and the digest inside where there is one.
type Row = (&'static str, (&'static str, Option<&'static str>));

const MACS: &[Row] = &[
    ("hmac-sha-1", ("HMAC", Some("sha-1"))),
    ("hmac-sha-256", ("HMAC", Some("sha-256"))),
    ("hmac-sha-512", ("HMAC", Some("sha-512"))),
    ("kmac-128", ("KMAC-128", None)),
    ("kmac-256", ("KMAC-256", None)),
    ("poly1305", ("POLY1305", None)),
];

pub fn offers(api: &'static Api) -> Vec<&'static str> {
    families::offered(MACS, |row| Mac::open(api, *row).is_ok())
}

pub fn prepare(api: &'static Api, task: &Task) -> Prepared {
    let mac = Mac::open(api, *families::row("libcrypto", task, MACS)?)?;
    families::digest::mac(task, move |key, data| mac.code(key, data))
}

/// The way a library offers it: `EVP_MAC` from OpenSSL 3 on, `HMAC_*` before and in the forks.
enum Mac {
    Mac { api: &'static Api, context: Owned, calls: Calls },
    Hmac { api: &'static Api, context: Owned, digest: Handle },
}

/// `EVP_MAC_init`, `_update` and `_final`.
struct Calls(
    unsafe extern "C" fn(Handle, *const u8, usize, *const RawParam) -> c_int,
    unsafe extern "C" fn(Handle, *const u8, usize) -> c_int,
    unsafe extern "C" fn(Handle, *mut u8, *mut usize, usize) -> c_int,
);

impl Mac {
    fn open(api: &'static Api, (name, inner): (&str, Option<&str>)) -> Result<Mac, Failure> {
        if let (None, Some(inner)) = (api.EVP_MAC_fetch, inner) {
            // SAFETY: it takes nothing, and gives a context of the caller's.
            let context = unsafe { api.own((api.HMAC_CTX_new)(), api.HMAC_CTX_free, "HMAC_CTX_new")? };
            return Ok(Mac::Hmac { api, context, digest: digest::find(api, inner)? });
        }
        let mac = api.find(api.EVP_MAC_fetch, None, name)?;
        let (new, free) = (have(api.EVP_MAC_CTX_new, "EVP_MAC")?, have(api.EVP_MAC_CTX_free, "EVP_MAC")?);
        // SAFETY: the algorithm is the library's own, and the context the caller's.
        let context = unsafe { api.own(new(mac), free, "EVP_MAC_CTX_new")? };
        if let Some(inner) = inner {
            // Set once: naming the digest in each message would look it up each time.
            let inner: CString = c_name(digest::name(inner)?);
            let mut params = [Param::utf8(c"digest", &inner), Param::end()];
            let set = have(api.EVP_MAC_CTX_set_params, "EVP_MAC")?;
            // SAFETY: context and parameters are alive.
            let done = unsafe { set(context.raw(), Param::list(&mut params)) };
            api.ensure(done == 1, "EVP_MAC_CTX_set_params")?;
        }
        let (start, update) = (have(api.EVP_MAC_init, "EVP_MAC")?, have(api.EVP_MAC_update, "EVP_MAC")?);
        let calls = Calls(start, update, have(api.EVP_MAC_final, "EVP_MAC")?);
        Ok(Mac::Mac { api, context, calls })
    }

    fn code(&self, key: &[u8], data: &[u8]) -> Result<Output, Failure> {
        let mut out = Output::default();
        let (bytes, room) = (out.bytes.as_mut_ptr(), out.bytes.len());
        match self {
            Mac::Mac { api, context, calls: Calls(start, update, finish) } => {
                let context = context.raw();
                // SAFETY: the context is alive, and lengths are those of their buffers.
                let done = unsafe {
                    start(context, key.as_ptr(), key.len(), std::ptr::null()) == 1
                        && update(context, data.as_ptr(), data.len()) == 1
                        && finish(context, bytes, &mut out.length, room) == 1
                };
                api.ensure(done, "EVP_MAC")?;
            }
            Mac::Hmac { api, context, digest } => {
                let mut length: c_uint = 0;
                // SAFETY: the context is alive, and no digest is longer than the output.
                let done = api.dialect.hmac_init(context, key, *digest)? == 1
                    && unsafe {
                        (api.HMAC_Update)(context.raw(), data.as_ptr(), data.len()) == 1
                            && (api.HMAC_Final)(context.raw(), bytes, &mut length) == 1
                    };
                out.length = length as usize;
                api.ensure(done, "HMAC")?;
            }
        }
        Ok(out)
    }
}
