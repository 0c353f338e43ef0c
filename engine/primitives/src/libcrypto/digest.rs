//! Hash functions and message authentication codes. A code's key is set for every message, as by a caller
//! without state.

use std::ffi::{CString, c_int, c_uint};

use super::api::{Api, Handle, Owned, Param, RawParam, c_name, have};
use crate::contract::Task;
use crate::failure::Failure;
use crate::families::{self, Prepared};

/// Choices, each with its name in libcrypto.
const DIGESTS: &[(&str, &str)] = &[
    ("md5", "MD5"),
    ("sha-1", "SHA1"),
    ("sha-224", "SHA224"),
    ("sha-256", "SHA256"),
    ("sha-384", "SHA384"),
    ("sha-512", "SHA512"),
    ("sha-512-256", "SHA512-256"),
    ("sha3-256", "SHA3-256"),
    ("sha3-512", "SHA3-512"),
    ("blake2b-512", "BLAKE2b512"),
    ("blake2s-256", "BLAKE2s256"),
    ("blake3", "BLAKE3"),
];

pub fn offers(api: &Api) -> Vec<&'static str> {
    DIGESTS.iter().map(|row| row.0).filter(|choice| find(api, choice).is_ok()).collect()
}

/// Returns the library's object for a digest, fetched once so that no operation pays for the look-up.
pub fn find(api: &Api, choice: &str) -> Result<Handle, Failure> {
    api.find(api.EVP_MD_fetch, Some(api.EVP_get_digestbyname), name(choice)?)
}

/// Returns the object without fetching: on OpenSSL 3 every use then looks the algorithm up again.
pub fn find_implicit(api: &Api, choice: &str) -> Result<Handle, Failure> {
    api.find(None, Some(api.EVP_get_digestbyname), name(choice)?)
}

pub fn name(choice: &str) -> Result<&'static str, Failure> {
    let row = DIGESTS.iter().find(|row| row.0 == choice);
    row.map(|row| row.1).ok_or_else(|| families::not_offered("libcrypto", &format!("the digest {choice}")))
}

/// Prepares `EVP_Digest`: the whole message in one call, the usual way.
pub fn prepare(api: &'static Api, task: &Task) -> Prepared {
    let find = task.one_of::<fn(&Api, &str) -> Result<Handle, Failure>>(
        "fetch",
        &[("beforehand", find), ("each-time", find_implicit)],
    )?;
    let digest = find(api, &task.choice)?;
    families::digest::digest(task, move |data| one_shot(api, digest, data))
}

/// Computes the digest of some data.
pub fn one_shot(api: &Api, digest: Handle, data: &[u8]) -> Result<Output, Failure> {
    let mut out = Output::default();
    let (mut length, bytes): (c_uint, _) = (0, out.bytes.as_mut_ptr());
    // SAFETY: the library owns the digest, and no digest is longer than the output.
    let done = unsafe {
        (api.EVP_Digest)(data.as_ptr(), data.len(), bytes, &mut length, digest, std::ptr::null_mut())
    };
    out.length = length as usize;
    api.ensure(done == 1, "EVP_Digest")?;
    Ok(out)
}

/// A digest or a code, in a buffer of the longest one's size, EVP_MAX_MD_SIZE.
pub struct Output {
    pub bytes: [u8; 64],
    pub length: usize,
}

impl Default for Output {
    fn default() -> Self {
        Output { bytes: [0; 64], length: 0 }
    }
}

impl AsRef<[u8]> for Output {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// A choice, the code's name in libcrypto, and its inner digest if it has one.
type MacRow = (&'static str, (&'static str, Option<&'static str>));

const MACS: &[MacRow] = &[
    ("hmac-sha-1", ("HMAC", Some("sha-1"))),
    ("hmac-sha-256", ("HMAC", Some("sha-256"))),
    ("hmac-sha-512", ("HMAC", Some("sha-512"))),
    ("kmac-128", ("KMAC-128", None)),
    ("kmac-256", ("KMAC-256", None)),
    ("poly1305", ("POLY1305", None)),
];

pub fn mac_offers(api: &'static Api) -> Vec<&'static str> {
    families::offered(MACS, |row| Mac::open(api, *row).is_ok())
}

pub fn prepare_mac(api: &'static Api, task: &Task) -> Prepared {
    let mac = Mac::open(api, *families::row("libcrypto", task, MACS)?)?;
    families::digest::mac(task, move |key, data| mac.code(key, data))
}

/// Interface of a library's codes: `EVP_MAC` since OpenSSL 3, `HMAC_*` before and in the forks.
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
    fn open(api: &'static Api, (mac, inner): (&str, Option<&str>)) -> Result<Mac, Failure> {
        if let (None, Some(inner)) = (api.EVP_MAC_fetch, inner) {
            // SAFETY: it takes no arguments, and gives a context that the caller owns.
            let context = unsafe { api.own((api.HMAC_CTX_new)(), api.HMAC_CTX_free, "HMAC_CTX_new")? };
            return Ok(Mac::Hmac { api, context, digest: find(api, inner)? });
        }
        let mac = api.find(api.EVP_MAC_fetch, None, mac)?;
        let (new, free) = (have(api.EVP_MAC_CTX_new, "EVP_MAC")?, have(api.EVP_MAC_CTX_free, "EVP_MAC")?);
        // SAFETY: the library owns the algorithm, and the caller the context.
        let context = unsafe { api.own(new(mac), free, "EVP_MAC_CTX_new")? };
        if let Some(inner) = inner {
            // The digest is set once, because naming it in each message would look it up each time.
            let inner: CString = c_name(name(inner)?);
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
