//! Signatures: RSA, DSA, ECDSA, EdDSA, ML-DSA and SLH-DSA.

use std::ffi::c_int;
use std::rc::Rc;

use super::api::{Api, Handle, Owned};
use super::digest;
use super::keys::{self, KeyKind};
use crate::contract::Task;
use crate::failure::Failure;
use crate::families::signature::{Scheme, long_key, prepare as prepare_scheme};
use crate::families::{self, Prepared};

const SIGNATURES: &[(&str, KeyKind)] = &[
    ("rsa-1024", KeyKind::Rsa { bits: 1024 }),
    ("rsa-2048", KeyKind::Rsa { bits: 2048 }),
    ("rsa-3072", KeyKind::Rsa { bits: 3072 }),
    ("rsa-4096", KeyKind::Rsa { bits: 4096 }),
    ("dsa-512", KeyKind::Dsa),
    ("dsa-1024", KeyKind::Dsa),
    ("dsa-2048", KeyKind::Dsa),
    ("ecdsa-p256", KeyKind::Curve("prime256v1")),
    ("ecdsa-p384", KeyKind::Curve("secp384r1")),
    ("ecdsa-p521", KeyKind::Curve("secp521r1")),
    ("ed25519", KeyKind::Named("ED25519")),
    ("ed448", KeyKind::Named("ED448")),
    ("ml-dsa-44", KeyKind::Named("ML-DSA-44")),
    ("ml-dsa-65", KeyKind::Named("ML-DSA-65")),
    ("ml-dsa-87", KeyKind::Named("ML-DSA-87")),
    ("slh-dsa-128s", KeyKind::Named("SLH-DSA-SHA2-128s")),
    ("slh-dsa-128f", KeyKind::Named("SLH-DSA-SHA2-128f")),
];

const RSA_PKCS1_PSS_PADDING: c_int = 6;
const SALT_AS_LONG_AS_DIGEST: c_int = -1;

pub fn offers(api: &Api) -> Vec<&'static str> {
    families::offered(SIGNATURES, |kind| match kind {
        // Generating a key would take long, and only special builds of libcrypto have no RSA.
        KeyKind::Rsa { .. } => true,
        // A new key needs the parameters of a task's key.
        KeyKind::Dsa => keys::has_dsa(api),
        _ => keys::generate(api, *kind, None).is_ok(),
    })
}

pub fn prepare(api: &'static Api, task: &Task) -> Prepared {
    let kind = *families::row("libcrypto", task, SIGNATURES)?;
    let given = match kind {
        KeyKind::Rsa { .. } | KeyKind::Dsa => Some(Rc::new(keys::given(api, task)?)),
        _ => None,
    };
    let is_pss =
        matches!(kind, KeyKind::Rsa { .. }) && task.one_of("padding", &[("pkcs1", false), ("pss", true)])?;
    let (digest, is_raw) = match kind {
        // These have their own digest.
        KeyKind::Named(_) => (std::ptr::null_mut(), false),
        _ => match task.word("digest", "sha-256")? {
            "none" if is_pss => {
                return Err(Failure::Unsupported("RSA-PSS has no form without a digest".to_owned()));
            }
            "none" => (std::ptr::null_mut(), true),
            name => (digest::find(api, name)?, false),
        },
    };
    prepare_scheme(task, Signature { api, kind, given, digest, is_raw, is_pss })
}

struct Signature {
    api: &'static Api,
    kind: KeyKind,
    /// Key of the task.
    given: Option<Rc<Owned>>,
    /// Digest; null if the algorithm has its own, or none.
    digest: Handle,
    /// True if the bytes are signed without hashing.
    is_raw: bool,
    is_pss: bool,
}

/// Either half of a pair: the library has one type for both.
struct Key {
    pair: Rc<Owned>,
    /// Largest length of a signature by this key.
    signature_bytes: usize,
    /// Context prepared once, for bytes that are signed without hashing, as in `openssl speed`.
    ready: Option<Owned>,
}

type Init = unsafe extern "C" fn(Handle) -> c_int;
type DigestInit = unsafe extern "C" fn(Handle, *mut Handle, Handle, Handle, Handle) -> c_int;

impl Signature {
    fn key(&self, pair: Rc<Owned>, init: Init) -> Result<Key, Failure> {
        let signature_bytes = keys::output_bytes(self.api, &pair);
        let ready = self
            .is_raw
            .then(|| keys::ready(self.api, &pair, init, "signing without a digest"))
            .transpose()?;
        Ok(Key { pair, signature_bytes, ready })
    }

    /// Makes a context for one message, ready to sign or verify it.
    fn context(&self, key: &Key, init: DigestInit) -> Result<Owned, Failure> {
        let (api, mut parameters) = (self.api, std::ptr::null_mut());
        // SAFETY: it takes no arguments, and gives a context that the caller owns.
        let context = unsafe { api.own((api.EVP_MD_CTX_new)(), api.EVP_MD_CTX_free, "EVP_MD_CTX_new")? };
        // SAFETY: context and key are alive, and the library owns the digest, or it is null.
        let done = unsafe {
            init(context.raw(), &mut parameters, self.digest, std::ptr::null_mut(), key.pair.raw()) == 1
        };
        if !done {
            return Err(api.unsupported("the digest with this key"));
        }
        if self.is_pss && !self.set_pss(parameters) {
            return Err(api.unsupported("RSA-PSS"));
        }
        Ok(context)
    }

    /// Sets PSS with a salt of the digest's length, as TLS 1.3 does.
    fn set_pss(&self, context: Handle) -> bool {
        // The context belongs to that of a message, which is alive.
        keys::RSA_PADDING.set(self.api, context, RSA_PKCS1_PSS_PADDING)
            && keys::RSA_SALT_BYTES.set(self.api, context, SALT_AS_LONG_AS_DIGEST)
    }
}

impl Scheme for Signature {
    type Private = Key;
    type Public = Key;
    type Signature = Vec<u8>;

    fn generate(&self) -> Result<Key, Failure> {
        let pair = keys::generate(self.api, self.kind, self.given.as_deref())?;
        self.key(Rc::new(pair), self.api.EVP_PKEY_sign_init)
    }

    fn private(&self, _: &Task) -> Result<Key, Failure> {
        match &self.given {
            Some(pair) => self.key(pair.clone(), self.api.EVP_PKEY_sign_init),
            None => self.generate(),
        }
    }

    fn another(&self) -> Result<Key, Failure> {
        if matches!(self.kind, KeyKind::Rsa { .. }) { long_key() } else { self.generate() }
    }

    fn public(&self, key: &Key) -> Result<Key, Failure> {
        self.key(key.pair.clone(), self.api.EVP_PKEY_verify_init)
    }

    fn read_public(&self, der: &[u8]) -> Result<Key, Failure> {
        // SAFETY: it reads keys.
        let pair = unsafe { keys::from_der(self.api, self.api.d2i_PUBKEY, der)? };
        self.key(Rc::new(pair), self.api.EVP_PKEY_verify_init)
    }

    fn sign(&self, key: &Key, message: &[u8]) -> Result<Vec<u8>, Failure> {
        let (api, mut signature) = (self.api, vec![0; key.signature_bytes]);
        let (out, mut length) = (signature.as_mut_ptr(), signature.len());
        let (data, bytes) = (message.as_ptr(), message.len());
        let done = match &key.ready {
            // SAFETY: the context is alive, and both lengths are those of their buffers.
            Some(context) => unsafe { (api.EVP_PKEY_sign)(context.raw(), out, &mut length, data, bytes) },
            None => {
                let context = self.context(key, api.EVP_DigestSignInit)?;
                // SAFETY: the context is alive, and both lengths are those of their buffers.
                unsafe { (api.EVP_DigestSign)(context.raw(), out, &mut length, data, bytes) }
            }
        };
        api.ensure(done == 1, "signing")?;
        signature.truncate(length);
        Ok(signature)
    }

    fn verify(&self, key: &Key, message: &[u8], signature: &[u8]) -> Result<bool, Failure> {
        let (api, at, length) = (self.api, signature.as_ptr(), signature.len());
        let (data, bytes) = (message.as_ptr(), message.len());
        let done = match &key.ready {
            // SAFETY: the context is alive, and both lengths are those of their buffers.
            Some(context) => unsafe { (api.EVP_PKEY_verify)(context.raw(), at, length, data, bytes) },
            None => {
                let context = self.context(key, api.EVP_DigestVerifyInit)?;
                // SAFETY: the context is alive, and both lengths are those of their buffers.
                unsafe { (api.EVP_DigestVerify)(context.raw(), at, length, data, bytes) }
            }
        };
        if done != 1 {
            // A later failure must not get the message of this refusal.
            api.clear_errors();
        }
        Ok(done == 1)
    }
}
