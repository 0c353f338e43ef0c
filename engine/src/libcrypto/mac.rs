//! Message authentication codes. The key is set for every message, as a caller without state does it.

use std::ffi::{CString, c_uint};

use super::api::{Api, Handle, Param, c_name, have};
use super::digest;
use crate::buffers::{filled, tampered};
use crate::contract::{Failure, Proof, Task};
use crate::operation::Operation;

/// Choice, the name that libcrypto knows the code by, and the digest inside where there is one.
const MACS: [(&str, &str, Option<&str>); 6] = [
    ("hmac-sha-1", "HMAC", Some("sha-1")),
    ("hmac-sha-256", "HMAC", Some("sha-256")),
    ("hmac-sha-512", "HMAC", Some("sha-512")),
    ("kmac-128", "KMAC-128", None),
    ("kmac-256", "KMAC-256", None),
    ("poly1305", "POLY1305", None),
];

const KEY_BYTES: usize = 32;
/// KMAC-256 and HMAC-SHA-512 give 64 bytes; nothing here gives more.
const LONGEST: usize = 64;

pub fn offers(api: &'static Api) -> Vec<&'static str> {
    MACS.iter().map(|row| row.0).filter(|choice| Engine::open(api, choice).is_ok()).collect()
}

pub fn prepare(api: &'static Api, task: &Task) -> Result<Box<dyn Operation>, Failure> {
    Ok(Box::new(Authenticate {
        engine: Engine::open(api, &task.choice)?,
        key: filled(KEY_BYTES, task.seed.wrapping_add(1)),
        data: filled(task.bytes(4096)?, task.seed),
        known: task.message()?.map(|of| Ok::<_, Failure>((task.need_hex("key")?, of))).transpose()?,
    }))
}

/// The way a library offers it: `EVP_MAC` from OpenSSL 3 on, `HMAC_*` before and in the forks.
enum Engine {
    Mac { api: &'static Api, context: Handle },
    Hmac { api: &'static Api, context: Handle, digest: Handle },
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
                let context = unsafe { have(api.EVP_MAC_CTX_new, "EVP_MAC_CTX_new")?(mac) };
                if let Some(inner) = inner {
                    // Set once: naming the digest in each message would look it up each time.
                    let inner: CString = c_name(digest::name(inner)?);
                    let params = [Param::utf8(c"digest", &inner), Param::end()];
                    let set = have(api.EVP_MAC_CTX_set_params, "EVP_MAC_CTX_set_params")?;
                    if unsafe { set(context, params.as_ptr()) } != 1 {
                        return Err(api.failed("EVP_MAC_CTX_set_params"));
                    }
                }
                Ok(Engine::Mac { api, context })
            }
            (None, Some(inner)) => Ok(Engine::Hmac {
                api,
                context: unsafe { (api.HMAC_CTX_new)() },
                digest: digest::find(api, inner)?,
            }),
            (None, None) => Err(Failure::Unsupported("this library has no EVP_MAC".to_owned())),
        }
    }

    fn code(&self, key: &[u8], data: &[u8], out: &mut [u8; LONGEST]) -> Result<usize, Failure> {
        match *self {
            Engine::Mac { api, context } => {
                let (Some(start), Some(update), Some(finish)) =
                    (api.EVP_MAC_init, api.EVP_MAC_update, api.EVP_MAC_final)
                else {
                    return Err(Failure::Unsupported("this library has half of EVP_MAC".to_owned()));
                };
                let mut length = 0;
                let done = unsafe {
                    start(context, key.as_ptr(), key.len(), std::ptr::null()) == 1
                        && update(context, data.as_ptr(), data.len()) == 1
                        && finish(context, out.as_mut_ptr(), &mut length, out.len()) == 1
                };
                if done { Ok(length) } else { Err(api.failed("EVP_MAC")) }
            }
            Engine::Hmac { api, context, digest } => {
                let mut length: c_uint = 0;
                let null = std::ptr::null_mut();
                let done = unsafe {
                    (api.HMAC_Init_ex)(context, key.as_ptr().cast(), key.len() as i32, digest, null) == 1
                        && (api.HMAC_Update)(context, data.as_ptr(), data.len()) == 1
                        && (api.HMAC_Final)(context, out.as_mut_ptr(), &mut length) == 1
                };
                if done { Ok(length as usize) } else { Err(api.failed("HMAC")) }
            }
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        match *self {
            Engine::Mac { api, context } => {
                if let Some(free) = api.EVP_MAC_CTX_free {
                    unsafe { free(context) }
                }
            }
            Engine::Hmac { api, context, .. } => unsafe { (api.HMAC_CTX_free)(context) },
        }
    }
}

struct Authenticate {
    engine: Engine,
    key: Vec<u8>,
    data: Vec<u8>,
    known: Option<(Vec<u8>, Vec<u8>)>,
}

impl Authenticate {
    fn code(&self, key: &[u8], data: &[u8]) -> Result<Vec<u8>, Failure> {
        let mut out = [0; LONGEST];
        let length = self.engine.code(key, data, &mut out)?;
        Ok(out[..length].to_vec())
    }
}

impl Operation for Authenticate {
    fn perform(&mut self) -> Result<(), Failure> {
        let mut out = [0; LONGEST];
        self.engine.code(&self.key, &self.data, &mut out)?;
        std::hint::black_box(&out);
        Ok(())
    }

    fn prove(&mut self) -> Result<Proof, Failure> {
        let mut proof = Proof::default();
        let code = self.code(&self.key, &self.data)?;
        proof.accept("the same message again", code == self.code(&self.key, &self.data)?)?;
        proof.refuse("a tampered message", code != self.code(&self.key, &tampered(&self.data))?)?;
        proof.refuse("another key", code != self.code(&tampered(&self.key), &self.data)?)?;
        if let Some((key, of)) = &self.known {
            proof.answer = Some(hex::encode(self.code(key, of)?));
        }
        Ok(proof)
    }

    fn bytes(&self) -> u64 {
        self.data.len() as u64
    }
}
