//! One RSA-2048 signature (SHA-256, PKCS#1 v1.5) through different routes of one library.

use std::ffi::{c_int, c_uint};

use rsa::pkcs1::RsaPrivateKey;
use rsa::pkcs8::PrivateKeyInfoRef;
use rsa::pkcs8::der::{Decode, SecretDocument};

use super::api::{Api, Handle, Owned, Param};
use super::{digest, keys};
use crate::buffers::{filled, tampered};
use crate::contract::{Failure, Proof, Task};
use crate::operation::Operation;

/// Where the key comes from in each call.
pub const CHOICES: &[&str] = &["key-cached", "key-from-pem", "key-from-der", "key-from-parameters"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    Cache,
    Pem,
    Der,
    Parameters,
}

pub fn prepare(api: &'static Api, task: &Task) -> Result<Box<dyn Operation>, Failure> {
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
    let pem = task.text("private_key_pem").unwrap_or_default();
    let route =
        Route { api, from, digest, key: KeyForms::read(pem)?, data: filled(task.bytes(60)?, task.seed) };
    let known = task.message()?;
    let call: Box<dyn Sign> = match (task.word("call", "evp")?, task.word("context", "new")?) {
        ("evp", "new") => Box::new(Evp { cached: route.evp_key()?, route }),
        ("evp", "reused") if from == From::Cache => Box::new(Reused::new(route)?),
        ("low-level", "new") => Box::new(LowLevel { cached: route.low_level_key()?, route }),
        (call, context) => {
            return Err(Failure::Failed(format!(
                "no route with call `{call}` and context `{context}` for this key"
            )));
        }
    };
    let output = vec![0; call.route().signature_bytes()];
    Ok(Box::new(RsaApi { call, output, known }))
}

/// One key in all the forms that an application may hold it in.
struct KeyForms {
    pem: String,
    pkcs8: Vec<u8>,
    pkcs1: Vec<u8>,
    pkcs1_pem: String,
    /// n, e, d, p, q, d mod p−1, d mod q−1, 1/q mod p; big-endian, as keys are published.
    numbers: [Vec<u8>; 8],
    /// The same in the machine's order, as `OSSL_PARAM` takes them.
    numbers_native: [Vec<u8>; 8],
}

impl KeyForms {
    fn read(pem: &str) -> Result<KeyForms, Failure> {
        let wrong =
            |error: &dyn std::fmt::Display| Failure::Failed(format!("the RSA key cannot be read: {error}"));
        let (_, document) = SecretDocument::from_pem(pem).map_err(|error| wrong(&error))?;
        let info = PrivateKeyInfoRef::from_der(document.as_bytes()).map_err(|error| wrong(&error))?;
        let pkcs1 = info.private_key.as_bytes().to_vec();
        let key = RsaPrivateKey::from_der(&pkcs1).map_err(|error| wrong(&error))?;
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
            .map_err(|error| wrong(&error))?;
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
    data: Vec<u8>,
}

impl Route {
    /// A key for the `EVP` calls, the way this route gets one.
    fn evp_key(&self) -> Result<Owned, Failure> {
        let api = self.api;
        match self.from {
            From::Cache | From::Pem => keys::from_pem(api, &self.key.pem),
            From::Der => {
                let mut at = self.key.pkcs8.as_ptr();
                let length = self.key.pkcs8.len() as _;
                let key = unsafe { (api.d2i_AutoPrivateKey)(std::ptr::null_mut(), &mut at, length) };
                keys::own(api, key, "d2i_AutoPrivateKey")
            }
            From::Parameters if api.EVP_PKEY_fromdata.is_some() => self.evp_key_from_data(),
            From::Parameters => {
                let key = keys::own(api, unsafe { (api.EVP_PKEY_new)() }, "EVP_PKEY_new")?;
                let rsa = self.rsa_from_numbers()?;
                match unsafe { (api.EVP_PKEY_set1_RSA)(key.handle, rsa.handle) } {
                    1 => Ok(key),
                    _ => Err(api.failed("EVP_PKEY_set1_RSA")),
                }
            }
        }
    }

    fn evp_key_from_data(&self) -> Result<Owned, Failure> {
        let names = [
            c"n",
            c"e",
            c"d",
            c"rsa-factor1",
            c"rsa-factor2",
            c"rsa-exponent1",
            c"rsa-exponent2",
            c"rsa-coefficient1",
        ];
        let values =
            names.iter().zip(&self.key.numbers_native).map(|(name, number)| Param::number(name, number));
        keys::from_data(self.api, "RSA", values.collect())
    }

    /// A key for `RSA_sign`, the way this route gets one.
    fn low_level_key(&self) -> Result<Owned, Failure> {
        let api = self.api;
        let null: Handle = std::ptr::null_mut();
        let rsa = match self.from {
            From::Cache | From::Pem => {
                let read = api.PEM_read_bio_RSAPrivateKey;
                api.read_from(self.key.pkcs1_pem.as_bytes(), |source| unsafe {
                    read(source, std::ptr::null_mut(), std::ptr::null(), null)
                })?
            }
            From::Der => {
                let mut at = self.key.pkcs1.as_ptr();
                unsafe { (api.d2i_RSAPrivateKey)(std::ptr::null_mut(), &mut at, self.key.pkcs1.len() as _) }
            }
            From::Parameters => return self.rsa_from_numbers(),
        };
        Owned::new(rsa, api.RSA_free).ok_or_else(|| api.failed("the RSA key cannot be read"))
    }

    fn rsa_from_numbers(&self) -> Result<Owned, Failure> {
        let api = self.api;
        let rsa =
            Owned::new(unsafe { (api.RSA_new)() }, api.RSA_free).ok_or_else(|| api.failed("RSA_new"))?;
        let number = |index: usize| {
            let number = api.lengths.number(&self.key.numbers[index])?;
            Owned::new(number, api.BN_free).ok_or_else(|| api.failed("BN_bin2bn"))
        };
        let [n, e, d] = [number(0)?, number(1)?, number(2)?];
        if unsafe { (api.RSA_set0_key)(rsa.handle, n.handle, e.handle, d.handle) } != 1 {
            return Err(api.failed("RSA_set0_key"));
        }
        [n, e, d].into_iter().for_each(Owned::give_away);
        let [p, q] = [number(3)?, number(4)?];
        if unsafe { (api.RSA_set0_factors)(rsa.handle, p.handle, q.handle) } != 1 {
            return Err(api.failed("RSA_set0_factors"));
        }
        [p, q].into_iter().for_each(Owned::give_away);
        let [p, q, inverse] = [number(5)?, number(6)?, number(7)?];
        if unsafe { (api.RSA_set0_crt_params)(rsa.handle, p.handle, q.handle, inverse.handle) } != 1 {
            return Err(api.failed("RSA_set0_crt_params"));
        }
        [p, q, inverse].into_iter().for_each(Owned::give_away);
        Ok(rsa)
    }

    /// As many bytes as a signature by this key has.
    fn signature_bytes(&self) -> usize {
        self.key.numbers[0].len()
    }
}

trait Sign {
    fn sign(&self, data: &[u8], out: &mut [u8]) -> Result<usize, Failure>;
    fn route(&self) -> &Route;
}

/// `EVP_DigestSign` with a context of its own for each message.
struct Evp {
    route: Route,
    cached: Owned,
}

impl Sign for Evp {
    fn sign(&self, data: &[u8], out: &mut [u8]) -> Result<usize, Failure> {
        let api = self.route.api;
        let made;
        let key = match self.route.from {
            From::Cache => &self.cached,
            _ => {
                made = self.route.evp_key()?;
                &made
            }
        };
        let mut length = out.len();
        let (null, digest): (Handle, Handle) = (std::ptr::null_mut(), self.route.digest);
        let context = Owned::new(unsafe { (api.EVP_MD_CTX_new)() }, api.EVP_MD_CTX_free);
        let context = context.ok_or_else(|| api.failed("EVP_MD_CTX_new"))?;
        let done = unsafe {
            (api.EVP_DigestSignInit)(context.handle, std::ptr::null_mut(), digest, null, key.handle) == 1
                && (api.EVP_DigestSign)(
                    context.handle,
                    out.as_mut_ptr(),
                    &mut length,
                    data.as_ptr(),
                    data.len(),
                ) == 1
        };
        if done { Ok(length) } else { Err(api.failed("EVP_DigestSign")) }
    }

    fn route(&self) -> &Route {
        &self.route
    }
}

/// `EVP_PKEY_sign` on a context that was made ready once: what is left when all set-up is taken out.
struct Reused {
    route: Route,
    context: Owned,
    _key: Owned,
}

impl Reused {
    fn new(route: Route) -> Result<Reused, Failure> {
        let api = route.api;
        let key = route.evp_key()?;
        let context = keys::context(api, &key)?;
        const EVP_PKEY_OP_TYPE_SIG: c_int = 0xf8;
        const CTRL_MD: c_int = 1;
        let done = unsafe {
            (api.EVP_PKEY_sign_init)(context.handle) == 1
                && match api.EVP_PKEY_CTX_set_signature_md {
                    Some(set) => set(context.handle, route.digest) == 1,
                    None => {
                        api.key_control(context.handle, -1, EVP_PKEY_OP_TYPE_SIG, CTRL_MD, 0, route.digest)
                            == 1
                    }
                }
        };
        if done {
            Ok(Reused { route, context, _key: key })
        } else {
            Err(api.unsupported("EVP_PKEY_sign_init"))
        }
    }
}

impl Sign for Reused {
    fn sign(&self, data: &[u8], out: &mut [u8]) -> Result<usize, Failure> {
        let api = self.route.api;
        let digest = hash(&self.route, data)?;
        let mut length = out.len();
        let sign = api.EVP_PKEY_sign;
        let done = unsafe {
            sign(self.context.handle, out.as_mut_ptr(), &mut length, digest.as_ptr(), digest.len())
        };
        if done == 1 { Ok(length) } else { Err(api.failed("EVP_PKEY_sign")) }
    }

    fn route(&self) -> &Route {
        &self.route
    }
}

/// `RSA_sign`: deprecated since OpenSSL 3.0, and still what much code calls.
struct LowLevel {
    route: Route,
    cached: Owned,
}

impl Sign for LowLevel {
    fn sign(&self, data: &[u8], out: &mut [u8]) -> Result<usize, Failure> {
        let api = self.route.api;
        let made;
        let key = match self.route.from {
            From::Cache => &self.cached,
            _ => {
                made = self.route.low_level_key()?;
                &made
            }
        };
        const NID_SHA256: c_int = 672;
        let digest = hash(&self.route, data)?;
        // It is not told how much room there is.
        let needed = usize::try_from(unsafe { (api.RSA_size)(key.handle) }).unwrap_or(usize::MAX);
        if needed > out.len() {
            return Err(Failure::Failed(format!("a signature of {needed} bytes and room for {}", out.len())));
        }
        let mut length: c_uint = 0;
        let done = api.lengths.rsa_sign(NID_SHA256, &digest, out, &mut length, key.handle)?;
        if done == 1 { Ok(length as usize) } else { Err(api.failed("RSA_sign")) }
    }

    fn route(&self) -> &Route {
        &self.route
    }
}

const SHA_256_BYTES: usize = 32;

fn hash(route: &Route, data: &[u8]) -> Result<[u8; SHA_256_BYTES], Failure> {
    let (api, mut out, null) = (route.api, [0; SHA_256_BYTES], std::ptr::null_mut());
    let (data_at, length) = (data.as_ptr(), data.len());
    let done = unsafe {
        (api.EVP_Digest)(data_at, length, out.as_mut_ptr(), std::ptr::null_mut(), route.digest, null)
    };
    if done == 1 { Ok(out) } else { Err(api.failed("EVP_Digest")) }
}

struct RsaApi {
    call: Box<dyn Sign>,
    output: Vec<u8>,
    known: Option<Vec<u8>>,
}

impl RsaApi {
    fn sign(&self, data: &[u8]) -> Result<Vec<u8>, Failure> {
        let mut out = vec![0; self.output.len()];
        let length = self.call.sign(data, &mut out)?;
        out.truncate(length);
        Ok(out)
    }
}

impl Operation for RsaApi {
    fn perform(&mut self) -> Result<(), Failure> {
        let RsaApi { call, output, .. } = self;
        std::hint::black_box(call.sign(&call.route().data, output)?);
        Ok(())
    }

    fn prove(&mut self) -> Result<Proof, Failure> {
        let mut proof = Proof::default();
        let data = self.call.route().data.clone();
        let signature = self.sign(&data)?;
        // PKCS#1 v1.5 is deterministic: every route must give the same signature.
        proof.accept("the same message again", signature == self.sign(&data)?)?;
        proof.refuse("a tampered message", signature != self.sign(&tampered(&data))?)?;
        if let Some(known) = &self.known {
            proof.answer = Some(hex::encode(self.sign(known)?));
        }
        Ok(proof)
    }

    fn bytes(&self) -> u64 {
        self.call.route().data.len() as u64
    }
}
