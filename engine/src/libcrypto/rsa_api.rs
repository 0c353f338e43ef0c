//! One RSA-2048 signature (SHA-256, PKCS#1 v1.5) through different routes of one library.

use std::ffi::{CStr, c_int, c_uint};
use std::hint::black_box;

use rsa::pkcs1::RsaPrivateKey;
use rsa::pkcs8::PrivateKeyInfoRef;
use rsa::pkcs8::der::{Decode, SecretDocument};

use super::api::{Api, Handle, Owned, Param};
use super::{digest, keys};
use crate::buffers::{filled, tampered};
use crate::contract::{Failure, Proof, Task};
use crate::families::{Prepared, failed};
use crate::operation::Operation;

/// What OpenSSL 3 calls the numbers of a key: n, e, d, p, q, d mod p−1, d mod q−1, 1/q mod p.
const PARAMETERS: [&CStr; 8] = [
    c"n",
    c"e",
    c"d",
    c"rsa-factor1",
    c"rsa-factor2",
    c"rsa-exponent1",
    c"rsa-exponent2",
    c"rsa-coefficient1",
];

/// Where the key comes from in each call.
pub const CHOICES: &[&str] = &["key-cached", "key-from-pem", "key-from-der", "key-from-parameters"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    Cache,
    Pem,
    Der,
    Parameters,
}

pub fn prepare(api: &'static Api, task: &Task) -> Prepared {
    let from = match task.choice.as_str() {
        "key-cached" => From::Cache,
        "key-from-pem" => From::Pem,
        "key-from-der" => From::Der,
        "key-from-parameters" => From::Parameters,
        other => return Err(Failure::Unsupported(format!("there is no route {other} to an RSA key"))),
    };
    let digest = match task.word("digest", "fetched")? {
        "fetched" => digest::find(api, "sha-256")?,
        "implicit" => digest::find_implicit(api, "sha-256")?,
        other => return Err(Failure::Failed(format!("no such `digest`: `{other}` (fetched, implicit)"))),
    };
    let route =
        Route { api, from, digest, key: KeyForms::read(task.text("private_key_pem").unwrap_or_default())? };
    let call = match (task.word("call", "evp")?, task.word("context", "new")?) {
        ("evp", "new") => Call::Evp(route.evp_key()?),
        ("evp", "reused") if from == From::Cache => Call::Reused(route.ready_context()?),
        ("low-level", "new") => Call::LowLevel(route.low_level_key()?),
        (call, context) => {
            return Err(Failure::Failed(format!(
                "no route with call `{call}` and context `{context}` for this key"
            )));
        }
    };
    let output = vec![0; route.signature_bytes()];
    let (data, known) = (filled(task.bytes(60)?, task.seed), task.message()?);
    Ok(Box::new(RsaApi { route, call, data, output, known }))
}

/// One key in all the forms that an application may hold it in.
struct KeyForms {
    pem: String,
    pkcs8: Vec<u8>,
    pkcs1: Vec<u8>,
    pkcs1_pem: String,
    /// In the order of [`PARAMETERS`]; big-endian, as keys are published.
    numbers: [Vec<u8>; 8],
    /// The same in the machine's order, as `OSSL_PARAM` takes them.
    numbers_native: [Vec<u8>; 8],
}

impl KeyForms {
    fn read(pem: &str) -> Result<KeyForms, Failure> {
        const READING: &str = "the RSA key cannot be read";
        let (_, document) = SecretDocument::from_pem(pem).map_err(failed(READING))?;
        let info = PrivateKeyInfoRef::from_der(document.as_bytes()).map_err(failed(READING))?;
        let pkcs1 = info.private_key.as_bytes().to_vec();
        let key = RsaPrivateKey::from_der(&pkcs1).map_err(failed(READING))?;
        let numbers = [
            key.modulus,
            key.public_exponent,
            key.private_exponent,
            key.prime1,
            key.prime2,
            key.exponent1,
            key.exponent2,
            key.coefficient,
        ]
        .map(|number: rsa::pkcs1::UintRef| number.as_bytes().to_vec());
        let numbers_native = numbers.clone().map(|number| number.into_iter().rev().collect());
        let pkcs1_pem = SecretDocument::try_from(pkcs1.as_slice())
            .and_then(|document| document.to_pem("RSA PRIVATE KEY", Default::default()))
            .map_err(failed(READING))?;
        Ok(KeyForms {
            pem: pem.to_owned(),
            pkcs8: document.as_bytes().to_vec(),
            pkcs1,
            pkcs1_pem: pkcs1_pem.to_string(),
            numbers,
            numbers_native,
        })
    }
}

struct Route {
    api: &'static Api,
    from: From,
    digest: Handle,
    key: KeyForms,
}

impl Route {
    /// A key for the `EVP` calls, the way this route gets one.
    fn evp_key(&self) -> Result<Owned, Failure> {
        let api = self.api;
        match self.from {
            From::Cache | From::Pem => {
                let key = keys::from_pem(api, &self.key.pem)?;
                key.ok_or_else(|| api.failed("the private key cannot be read"))
            }
            From::Der => keys::from_der(api, api.d2i_AutoPrivateKey, &self.key.pkcs8),
            From::Parameters if api.EVP_PKEY_fromdata.is_some() => {
                let numbers = PARAMETERS.iter().zip(&self.key.numbers_native);
                keys::from_data(
                    api,
                    "RSA",
                    numbers.map(|(name, number)| Param::number(name, number)).collect(),
                )
            }
            From::Parameters => {
                let rsa = self.rsa_from_numbers()?;
                // SAFETY: it takes nothing.
                let key = api.own(unsafe { (api.EVP_PKEY_new)() }, api.EVP_PKEY_free, "EVP_PKEY_new")?;
                // SAFETY: both are alive, and the key counts its own reference.
                let done = unsafe { (api.EVP_PKEY_set1_RSA)(key.handle, rsa.handle) };
                api.ensure(done == 1, "EVP_PKEY_set1_RSA")?;
                Ok(key)
            }
        }
    }

    /// A key for `RSA_sign`, the way this route gets one.
    fn low_level_key(&self) -> Result<Owned, Failure> {
        let (api, null) = (self.api, std::ptr::null_mut());
        let rsa = match self.from {
            From::Cache | From::Pem => {
                let read = api.PEM_read_bio_RSAPrivateKey;
                // SAFETY: the source is alive, and there is neither a key to reuse nor a password to ask for.
                api.read_from(self.key.pkcs1_pem.as_bytes(), |source| unsafe {
                    read(source, std::ptr::null_mut(), std::ptr::null(), null)
                })?
            }
            From::Der => {
                let mut at = self.key.pkcs1.as_ptr();
                // SAFETY: the length is that of the document.
                unsafe { (api.d2i_RSAPrivateKey)(std::ptr::null_mut(), &mut at, self.key.pkcs1.len() as _) }
            }
            From::Parameters => return self.rsa_from_numbers(),
        };
        api.own(rsa, api.RSA_free, "the RSA key cannot be read")
    }

    fn rsa_from_numbers(&self) -> Result<Owned, Failure> {
        let api = self.api;
        // SAFETY: it takes nothing.
        let rsa = api.own(unsafe { (api.RSA_new)() }, api.RSA_free, "RSA_new")?;
        let mut numbers = Vec::with_capacity(PARAMETERS.len());
        for number in &self.key.numbers {
            numbers.push(api.own(api.lengths.number(number)?, api.BN_free, "BN_bin2bn")?);
        }
        let handle = |index: usize| numbers[index].handle;
        // SAFETY: all are alive; what a call that succeeds takes over is given away below, call by call.
        let taken = unsafe {
            if (api.RSA_set0_key)(rsa.handle, handle(0), handle(1), handle(2)) != 1 {
                0
            } else if (api.RSA_set0_factors)(rsa.handle, handle(3), handle(4)) != 1 {
                3
            } else if (api.RSA_set0_crt_params)(rsa.handle, handle(5), handle(6), handle(7)) != 1 {
                5
            } else {
                8
            }
        };
        numbers.drain(..taken).for_each(Owned::give_away);
        api.ensure(taken == PARAMETERS.len(), "setting the RSA key's numbers")?;
        Ok(rsa)
    }

    fn ready_context(&self) -> Result<Owned, Failure> {
        const EVP_PKEY_OP_TYPE_SIG: c_int = 0xf8;
        const CTRL_MD: c_int = 1;
        let (api, key) = (self.api, self.evp_key()?);
        // The context counts its own reference to the key.
        let context = keys::ready(api, &key, api.EVP_PKEY_sign_init, "EVP_PKEY_sign_init")?;
        let done = match api.EVP_PKEY_CTX_set_signature_md {
            // SAFETY: the context is alive, and the digest is the library's own.
            Some(set) => unsafe { set(context.handle, self.digest) },
            None => api.key_control(context.handle, -1, EVP_PKEY_OP_TYPE_SIG, (CTRL_MD, 0), self.digest),
        };
        if done == 1 { Ok(context) } else { Err(api.unsupported("EVP_PKEY_CTX_set_signature_md")) }
    }

    /// As many bytes as a signature by this key has.
    fn signature_bytes(&self) -> usize {
        self.key.numbers[0].len()
    }
}

/// How a signature is made, with what is kept for it from one to the next.
enum Call {
    /// `EVP_DigestSign` with a context of its own for each message.
    Evp(Owned),
    /// `EVP_PKEY_sign` on a context that was made ready once: what is left when all set-up is taken out.
    Reused(Owned),
    /// `RSA_sign`: deprecated since OpenSSL 3.0, and still what much code calls.
    LowLevel(Owned),
}

impl Call {
    /// Signs, and returns the signature's length.
    fn sign(&self, route: &Route, data: &[u8], out: &mut [u8]) -> Result<usize, Failure> {
        const NID_SHA256: c_int = 672;
        let (api, mut length) = (route.api, out.len());
        let is_kept = route.from == From::Cache;
        match self {
            Call::Evp(kept) => {
                let made = if is_kept { None } else { Some(route.evp_key()?) };
                let (key, null) = (made.as_ref().unwrap_or(kept).handle, std::ptr::null_mut());
                // SAFETY: it takes nothing.
                let context = unsafe { (api.EVP_MD_CTX_new)() };
                let context = api.own(context, api.EVP_MD_CTX_free, "EVP_MD_CTX_new")?;
                let (init, sign) = (api.EVP_DigestSignInit, api.EVP_DigestSign);
                let (out, from) = (out.as_mut_ptr(), data.as_ptr());
                // SAFETY: context and key are alive, and lengths are those of their buffers.
                let done = unsafe {
                    init(context.handle, std::ptr::null_mut(), route.digest, null, key) == 1
                        && sign(context.handle, out, &mut length, from, data.len()) == 1
                };
                api.ensure(done, "EVP_DigestSign")?;
            }
            Call::Reused(context) => {
                let digest = digest::one_shot(api, route.digest, data)?;
                let (context, digest, out) = (context.handle, digest.as_ref(), out.as_mut_ptr());
                // SAFETY: the context is alive, and lengths are those of their buffers.
                let done = unsafe {
                    (api.EVP_PKEY_sign)(context, out, &mut length, digest.as_ptr(), digest.len()) == 1
                };
                api.ensure(done, "EVP_PKEY_sign")?;
            }
            Call::LowLevel(kept) => {
                let made = if is_kept { None } else { Some(route.low_level_key()?) };
                let key = made.as_ref().unwrap_or(kept);
                let digest = digest::one_shot(api, route.digest, data)?;
                // SAFETY: the key is alive.
                let needed = usize::try_from(unsafe { (api.RSA_size)(key.handle) }).unwrap_or(usize::MAX);
                if needed > length {
                    return Err(Failure::Failed(format!(
                        "a signature of {needed} bytes and room for {length}"
                    )));
                }
                let mut written: c_uint = 0;
                // SAFETY: there is as much room as the key needs.
                let done =
                    unsafe { api.lengths.rsa_sign(NID_SHA256, digest.as_ref(), out, &mut written, key)? };
                api.ensure(done == 1, "RSA_sign")?;
                length = written as usize;
            }
        }
        Ok(length)
    }
}

struct RsaApi {
    route: Route,
    call: Call,
    data: Vec<u8>,
    output: Vec<u8>,
    known: Option<Vec<u8>>,
}

impl RsaApi {
    fn sign(&self, data: &[u8]) -> Result<Vec<u8>, Failure> {
        let mut out = vec![0; self.output.len()];
        let length = self.call.sign(&self.route, data, &mut out)?;
        out.truncate(length);
        Ok(out)
    }
}

impl Operation for RsaApi {
    fn perform(&mut self) -> Result<(), Failure> {
        let RsaApi { route, call, data, output, .. } = self;
        call.sign(route, black_box(data), output)?;
        black_box(output);
        Ok(())
    }

    fn prove(&mut self) -> Result<Proof, Failure> {
        let mut proof = Proof::default();
        let signature = self.sign(&self.data)?;
        // PKCS#1 v1.5 is deterministic: every route must give the same signature.
        proof.accept("the same message again", signature == self.sign(&self.data)?)?;
        proof.refuse("a tampered message", signature != self.sign(&tampered(&self.data))?)?;
        if let Some(known) = &self.known {
            proof.answer = Some(hex::encode(self.sign(known)?));
        }
        Ok(proof)
    }

    fn bytes(&self) -> u64 {
        self.data.len() as u64
    }
}
