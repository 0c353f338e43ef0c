//! An RSA-2048 signature (SHA-256, PKCS#1 v1.5), made or verified through different routes of one library.

use std::collections::VecDeque;
use std::ffi::{CStr, c_int, c_uint};
use std::hint::black_box;
use std::sync::{Mutex, PoisonError};

use rsa::pkcs1::RsaPrivateKey;
use rsa::pkcs8::der::asn1::BitStringRef;
use rsa::pkcs8::der::{Decode, Encode, SecretDocument};
use rsa::pkcs8::{PrivateKeyInfoRef, SubjectPublicKeyInfoRef};

use super::api::{Api, Handle, Owned, Param, ReadDer, ReadPem};
use super::{digest, keys};
use crate::contract::{Proof, Task};
use crate::failure::Failure;
use crate::families::{self, Prepared, failed};
use crate::provider::Primitive;
use crate::random::{filled, tampered, tampered_at_end};

/// OpenSSL 3's names for the numbers of a key: n, e, d, p, q, d mod p−1, d mod q−1, 1/q mod p.
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
/// Number of parameters of a public key, the first two.
const PUBLIC_PARAMETERS: usize = 2;
/// Number of ready keys in a pool, one for each worker of a server.
const POOLED_KEYS: usize = 8;
const NID_SHA256: c_int = 672;
const NO_STORE: &str = "libcrypto has no certificate store that hands out keys: an X509_STORE holds certificates alone, \
    and OSSL_STORE reads a file anew";

type Find = fn(&Api, &str) -> Result<Handle, Failure>;
type Init = unsafe extern "C" fn(Handle, *mut Handle, Handle, Handle, Handle) -> c_int;

/// Source of a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Kept,
    Pool,
    Imported(Form),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Pem,
    Der,
    Parameters,
}

const SOURCES: &[(&str, Source)] = &[
    ("key-cached", Source::Kept),
    ("key-from-pem", Source::Imported(Form::Pem)),
    ("key-from-der", Source::Imported(Form::Der)),
    ("key-from-parameters", Source::Imported(Form::Parameters)),
    ("key-pooled", Source::Pool),
];

pub fn offers(_: &Api) -> Vec<&'static str> {
    SOURCES.iter().map(|row| row.0).collect()
}

pub fn prepare(api: &'static Api, task: &Task) -> Prepared {
    if task.choice == "key-from-store" {
        return Err(Failure::Unsupported(NO_STORE.to_owned()));
    }
    let source = *families::row("libcrypto", task, SOURCES)?;
    let signs = task.operation(&[("sign", true), ("verify", false)])?;
    let (private, public) = halves(api, task.text("private_key_pem").unwrap_or_default())?;
    let mut signature = vec![0; private.numbers[0].len()];
    let (signer, verifier) = if signs {
        (Route::new(task, source, private)?, Route::usual(public)?)
    } else {
        (Route::usual(private)?, Route::new(task, source, public)?)
    };
    let data = filled(task.bytes(60)?, task.seed);
    signer.sign(&data, &mut signature)?;
    let (known, expected) = (task.message()?, task.hex("expected")?);
    Ok(Box::new(RsaApi { signs, signer, verifier, data, signature, known, expected }))
}

/// Half of a key pair in all the forms that an application may store, and the functions that read them.
struct Half {
    api: &'static Api,
    pem: String,
    /// Key as PKCS#8, or SubjectPublicKeyInfo.
    der: Vec<u8>,
    pkcs1_pem: String,
    pkcs1: Vec<u8>,
    /// Numbers in the order of [`PARAMETERS`], big-endian as keys are published.
    numbers: Vec<Vec<u8>>,
    /// Numbers in the machine's byte order, as `OSSL_PARAM` expects them.
    numbers_native: Vec<Vec<u8>>,
    read_pem: ReadPem,
    read_der: ReadDer,
    read_pkcs1_pem: ReadPem,
    read_pkcs1: ReadDer,
    /// Numbers that `EVP_PKEY_fromdata` must find.
    selection: c_int,
    make_ready: unsafe extern "C" fn(Handle) -> c_int,
}

/// Reads the private half and the public one.
fn halves(api: &'static Api, pem: &str) -> Result<(Half, Half), Failure> {
    const READING: &str = "the RSA key cannot be read";
    let (_, document) = SecretDocument::from_pem(pem).map_err(failed(READING))?;
    let der = document.as_bytes();
    let info = PrivateKeyInfoRef::from_der(der).map_err(failed(READING))?;
    let pkcs1 = info.private_key.as_bytes();
    let key = RsaPrivateKey::from_der(pkcs1).map_err(failed(READING))?;
    let public_pkcs1 = key.public_key().to_der().map_err(failed(READING))?;
    let subject_public_key = BitStringRef::from_bytes(&public_pkcs1).map_err(failed(READING))?;
    let public_der = SubjectPublicKeyInfoRef { algorithm: info.algorithm, subject_public_key }.to_der();
    let public_der = public_der.map_err(failed(READING))?;
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
    let pem_of = |label, der: &[u8]| {
        let pem =
            SecretDocument::try_from(der).and_then(|document| document.to_pem(label, Default::default()));
        pem.map(|pem| pem.to_string()).map_err(failed(READING))
    };
    let public = Half {
        api,
        pem: pem_of("PUBLIC KEY", &public_der)?,
        der: public_der,
        pkcs1_pem: pem_of("RSA PUBLIC KEY", &public_pkcs1)?,
        pkcs1: public_pkcs1,
        numbers: numbers[..PUBLIC_PARAMETERS].to_vec(),
        numbers_native: numbers_native[..PUBLIC_PARAMETERS].to_vec(),
        read_pem: api.PEM_read_bio_PUBKEY,
        read_der: api.d2i_PUBKEY,
        read_pkcs1_pem: api.PEM_read_bio_RSAPublicKey,
        read_pkcs1: api.d2i_RSAPublicKey,
        selection: keys::EVP_PKEY_PUBLIC_KEY,
        make_ready: api.EVP_PKEY_verify_init,
    };
    let private = Half {
        api,
        pem: pem.to_owned(),
        der: der.to_vec(),
        pkcs1_pem: pem_of("RSA PRIVATE KEY", pkcs1)?,
        pkcs1: pkcs1.to_vec(),
        numbers: numbers.to_vec(),
        numbers_native: numbers_native.to_vec(),
        read_pem: api.PEM_read_bio_PrivateKey,
        read_der: api.d2i_AutoPrivateKey,
        read_pkcs1_pem: api.PEM_read_bio_RSAPrivateKey,
        read_pkcs1: api.d2i_RSAPrivateKey,
        selection: keys::EVP_PKEY_KEYPAIR,
        make_ready: api.EVP_PKEY_sign_init,
    };
    Ok((private, public))
}

impl Half {
    /// Reads a key for the `EVP` calls.
    fn evp_key(&self, form: Form) -> Result<Owned, Failure> {
        let api = self.api;
        match form {
            Form::Pem => {
                let key = keys::read_pem(api, self.read_pem, &self.pem)?;
                // SAFETY: the library has just made the key for this owner alone.
                unsafe { api.own(key, api.EVP_PKEY_free, "the key cannot be read") }
            }
            // SAFETY: it reads keys.
            Form::Der => unsafe { keys::from_der(api, self.read_der, &self.der) },
            Form::Parameters if api.EVP_PKEY_fromdata.is_some() => {
                let numbers = PARAMETERS.iter().zip(&self.numbers_native);
                let numbers = numbers.map(|(name, number)| Param::number(name, number)).collect();
                keys::from_data(api, "RSA", self.selection, numbers)
            }
            Form::Parameters => {
                let rsa = self.rsa_from_numbers()?;
                // SAFETY: it takes no arguments, and gives a key that the caller owns.
                let key = unsafe { api.own((api.EVP_PKEY_new)(), api.EVP_PKEY_free, "EVP_PKEY_new")? };
                // SAFETY: both are alive, and the key takes its own reference.
                let done = unsafe { (api.EVP_PKEY_set1_RSA)(key.raw(), rsa.raw()) };
                api.ensure(done == 1, "EVP_PKEY_set1_RSA")?;
                Ok(key)
            }
        }
    }

    /// Reads a key for `RSA_sign` and `RSA_verify`.
    fn low_level_key(&self, form: Form) -> Result<Owned, Failure> {
        let api = self.api;
        let rsa = match form {
            Form::Pem => keys::read_pem(api, self.read_pkcs1_pem, &self.pkcs1_pem)?,
            Form::Der => {
                let mut at = self.pkcs1.as_ptr();
                // SAFETY: the length is that of the document.
                unsafe { (self.read_pkcs1)(std::ptr::null_mut(), &mut at, self.pkcs1.len() as _) }
            }
            Form::Parameters => return self.rsa_from_numbers(),
        };
        // SAFETY: the library has just made the key for this owner alone.
        unsafe { api.own(rsa, api.RSA_free, "the RSA key cannot be read") }
    }

    fn rsa_from_numbers(&self) -> Result<Owned, Failure> {
        let api = self.api;
        // SAFETY: it takes no arguments, and gives a key that the caller owns.
        let rsa = unsafe { api.own((api.RSA_new)(), api.RSA_free, "RSA_new")? };
        let mut numbers = Vec::with_capacity(PARAMETERS.len());
        for number in &self.numbers {
            let number = api.dialect.number(number)?;
            // SAFETY: the library has just made the number for this owner alone.
            numbers.push(unsafe { api.own(number, api.BN_free, "BN_bin2bn")? });
        }
        let handle = |index: usize| numbers.get(index).map_or(std::ptr::null_mut(), |one: &Owned| one.raw());
        // SAFETY: all are alive, or null if a public key does not have them; numbers that a successful call
        // takes over are given away below, call by call.
        let taken = unsafe {
            if (api.RSA_set0_key)(rsa.raw(), handle(0), handle(1), handle(2)) != 1 {
                0
            } else if numbers.len() == PUBLIC_PARAMETERS {
                PUBLIC_PARAMETERS
            } else if (api.RSA_set0_factors)(rsa.raw(), handle(3), handle(4)) != 1 {
                3
            } else if (api.RSA_set0_crt_params)(rsa.raw(), handle(5), handle(6), handle(7)) != 1 {
                5
            } else {
                8
            }
        };
        numbers.drain(..taken).for_each(Owned::give_away);
        api.ensure(numbers.is_empty(), "setting the RSA key's numbers")?;
        Ok(rsa)
    }

    /// Makes a context for signatures of digests.
    fn ready_context(&self, digest: Handle) -> Result<Owned, Failure> {
        const EVP_PKEY_OP_TYPE_SIG: c_int = 0xf8;
        const CTRL_MD: c_int = 1;
        let (api, key) = (self.api, self.evp_key(Form::Pem)?);
        // The context takes its own reference to the key.
        let context = keys::ready(api, &key, self.make_ready, "EVP_PKEY_sign_init or EVP_PKEY_verify_init")?;
        let done = match api.EVP_PKEY_CTX_set_signature_md {
            // SAFETY: the context is alive, and the library owns the digest.
            Some(set) => unsafe { set(context.raw(), digest) },
            None => api.key_control(context.raw(), -1, EVP_PKEY_OP_TYPE_SIG, (CTRL_MD, 0), digest),
        };
        if done == 1 { Ok(context) } else { Err(api.unsupported("EVP_PKEY_CTX_set_signature_md")) }
    }
}

/// Functions by which a signature is made or verified.
enum Call {
    /// `EVP_DigestSign` with its own context for each message.
    Evp,
    /// `RSA_sign`: deprecated since OpenSSL 3.0, but still called by much code.
    LowLevel,
    /// `EVP_PKEY_sign` on a context that was prepared once: the cost without any set-up.
    Reused(Owned),
}

/// Keys of the calls.
enum Keys {
    Kept(Owned),
    /// Ready keys, each used by one thread at a time. They are used in turn, as in the pools of other
    /// platforms.
    Pooled(Mutex<VecDeque<Owned>>),
    Imported(Form),
}

/// Half of the key pair, with the calls' source of a key and their functions.
struct Route {
    half: Half,
    digest: Handle,
    call: Call,
    keys: Keys,
}

impl Route {
    fn new(task: &Task, source: Source, half: Half) -> Result<Route, Failure> {
        let find =
            task.one_of("digest", &[("fetched", digest::find as Find), ("implicit", digest::find_implicit)])?;
        let digest = find(half.api, "sha-256")?;
        let call = match (task.word("call", "evp")?, task.word("context", "new")?) {
            ("evp", "new") => Call::Evp,
            ("evp", "reused") if source == Source::Kept => Call::Reused(half.ready_context(digest)?),
            ("low-level", "new") => Call::LowLevel,
            (call, context) => {
                return Err(Failure::Failed(format!(
                    "no route with call `{call}` and context `{context}` for this key"
                )));
            }
        };
        let make = |form| match call {
            Call::LowLevel => half.low_level_key(form),
            Call::Evp | Call::Reused(_) => half.evp_key(form),
        };
        let keys = match source {
            Source::Kept => Keys::Kept(make(Form::Pem)?),
            Source::Pool => {
                let ready: Result<_, _> = (0..POOLED_KEYS).map(|_| make(Form::Pem)).collect();
                Keys::Pooled(Mutex::new(ready?))
            }
            Source::Imported(form) => Keys::Imported(form),
        };
        Ok(Route { half, digest, call, keys })
    }

    /// Makes a route with a kept key and the most common call.
    fn usual(half: Half) -> Result<Route, Failure> {
        let (digest, key) = (digest::find(half.api, "sha-256")?, half.evp_key(Form::Pem)?);
        Ok(Route { half, digest, call: Call::Evp, keys: Keys::Kept(key) })
    }

    /// Runs a call with a key that no other thread uses.
    fn with_key<T>(&self, call: impl FnOnce(&Owned) -> Result<T, Failure>) -> Result<T, Failure> {
        match (&self.keys, &self.call) {
            (Keys::Kept(key), _) => call(key),
            (Keys::Imported(form), Call::LowLevel) => call(&self.half.low_level_key(*form)?),
            (Keys::Imported(form), _) => call(&self.half.evp_key(*form)?),
            (Keys::Pooled(pool), _) => {
                let waiting = || pool.lock().unwrap_or_else(PoisonError::into_inner);
                let key = waiting().pop_front();
                let key = key.ok_or_else(|| Failure::Failed("the pool of keys is empty".to_owned()))?;
                let done = call(&key);
                waiting().push_back(key);
                done
            }
        }
    }

    /// Makes a signature that must fill the buffer.
    fn sign(&self, data: &[u8], out: &mut [u8]) -> Result<(), Failure> {
        let (api, mut length) = (self.half.api, out.len());
        match &self.call {
            Call::Evp => self.with_key(|key| {
                let context = self.message_context(api.EVP_DigestSignInit, key)?;
                let (out, from) = (out.as_mut_ptr(), data.as_ptr());
                // SAFETY: the context is alive, and lengths are those of their buffers.
                let done = unsafe { (api.EVP_DigestSign)(context.raw(), out, &mut length, from, data.len()) };
                api.ensure(done == 1, "EVP_DigestSign")
            })?,
            Call::LowLevel => self.with_key(|key| {
                let digest = digest::one_shot(api, self.digest, data)?;
                let needed = api.dialect.rsa_size(key);
                if needed > length {
                    return Err(Failure::Failed(format!(
                        "the signature has {needed} bytes; there is room for {length}"
                    )));
                }
                let mut written: c_uint = 0;
                // SAFETY: the buffer has the length that the key needs.
                let done =
                    unsafe { api.dialect.rsa_sign(NID_SHA256, digest.as_ref(), out, &mut written, key)? };
                length = written as usize;
                api.ensure(done == 1, "RSA_sign")
            })?,
            Call::Reused(context) => {
                let digest = digest::one_shot(api, self.digest, data)?;
                let (context, digest, out) = (context.raw(), digest.as_ref(), out.as_mut_ptr());
                // SAFETY: the context is alive, and lengths are those of their buffers.
                let done = unsafe {
                    (api.EVP_PKEY_sign)(context, out, &mut length, digest.as_ptr(), digest.len()) == 1
                };
                api.ensure(done, "EVP_PKEY_sign")?;
            }
        }
        match length == out.len() {
            true => Ok(()),
            false => Err(Failure::Failed(format!("a signature of {length} bytes"))),
        }
    }

    /// Returns true if the signature is accepted.
    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<bool, Failure> {
        let (api, at, length) = (self.half.api, signature.as_ptr(), signature.len());
        let done = match &self.call {
            Call::Evp => self.with_key(|key| {
                let context = self.message_context(api.EVP_DigestVerifyInit, key)?;
                // SAFETY: the context is alive, and lengths are those of their buffers.
                Ok(unsafe { (api.EVP_DigestVerify)(context.raw(), at, length, data.as_ptr(), data.len()) })
            })?,
            Call::LowLevel => self.with_key(|key| {
                let digest = digest::one_shot(api, self.digest, data)?;
                api.dialect.rsa_verify(NID_SHA256, digest.as_ref(), signature, key)
            })?,
            Call::Reused(context) => {
                let digest = digest::one_shot(api, self.digest, data)?;
                let (context, digest) = (context.raw(), digest.as_ref());
                // SAFETY: the context is alive, and lengths are those of their buffers.
                unsafe { (api.EVP_PKEY_verify)(context, at, length, digest.as_ptr(), digest.len()) }
            }
        };
        if done != 1 {
            // A later failure must not get the message of this refusal.
            api.clear_errors();
        }
        Ok(done == 1)
    }

    /// Makes a context for one message.
    fn message_context(&self, init: Init, key: &Owned) -> Result<Owned, Failure> {
        let (api, null) = (self.half.api, std::ptr::null_mut());
        // SAFETY: it takes no arguments, and gives a context that the caller owns.
        let context = unsafe { api.own((api.EVP_MD_CTX_new)(), api.EVP_MD_CTX_free, "EVP_MD_CTX_new")? };
        // SAFETY: context and key are alive, and the library owns the digest.
        let done = unsafe { init(context.raw(), std::ptr::null_mut(), self.digest, null, key.raw()) };
        api.ensure(done == 1, "EVP_DigestSignInit or EVP_DigestVerifyInit")?;
        Ok(context)
    }
}

/// A task with two routes: its own is timed, and the other serves the proof.
struct RsaApi {
    signs: bool,
    signer: Route,
    verifier: Route,
    data: Vec<u8>,
    /// Signature to verify, or the buffer of a new one.
    signature: Vec<u8>,
    /// Known answer's message; `expected` is its signature.
    known: Option<Vec<u8>>,
    expected: Option<Vec<u8>>,
}

impl RsaApi {
    fn sign(&self, data: &[u8]) -> Result<Vec<u8>, Failure> {
        let mut out = vec![0; self.signature.len()];
        self.signer.sign(data, &mut out)?;
        Ok(out)
    }
}

impl Primitive for RsaApi {
    fn perform(&mut self) -> Result<(), Failure> {
        let RsaApi { signs, signer, verifier, data, signature, .. } = self;
        if *signs {
            signer.sign(black_box(data), signature)?;
            black_box(signature);
            return Ok(());
        }
        match verifier.verify(black_box(data), black_box(signature))? {
            true => Ok(()),
            false => Err(Failure::Failed("the library refuses a valid signature".to_owned())),
        }
    }

    fn prove(&mut self) -> Result<Proof, Failure> {
        let (mut proof, data, verifier) = (Proof::default(), &self.data, &self.verifier);
        let signature = self.sign(data)?;
        proof.accept("its own signature", verifier.verify(data, &signature)?)?;
        // PKCS#1 v1.5 is deterministic: every route must give the same signature.
        proof.accept("the same message again", signature == self.sign(data)?)?;
        proof.refuse("a tampered message", !verifier.verify(&tampered(data), &signature)?)?;
        proof.refuse("a tampered signature", !verifier.verify(data, &tampered_at_end(&signature))?)?;
        proof.answer = match (&self.known, &self.expected) {
            (Some(message), _) if self.signs => Some(hex::encode(self.sign(message)?)),
            (Some(message), Some(expected)) => match verifier.verify(message, expected)? {
                true => Some(hex::encode(expected)),
                false => {
                    return Err(Failure::Failed("the library refuses the published signature".to_owned()));
                }
            },
            _ => None,
        };
        Ok(proof)
    }

    fn bytes(&self) -> u64 {
        self.data.len() as u64
    }
}
