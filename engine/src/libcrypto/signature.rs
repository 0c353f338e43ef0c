//! Signatures: generate a key, sign, verify.

use std::ffi::c_int;

use super::api::{Api, Handle, Owned};
use super::digest;
use super::keys::{self, Kind};
use crate::buffers::{filled, tampered};
use crate::contract::{Failure, Proof, Task};
use crate::families::signature::LONG_KEY;
use crate::operation::Operation;

const SIGNATURES: &[(&str, Kind)] = &[
    ("rsa-1024", Kind::Rsa { bits: 1024 }),
    ("rsa-2048", Kind::Rsa { bits: 2048 }),
    ("rsa-3072", Kind::Rsa { bits: 3072 }),
    ("rsa-4096", Kind::Rsa { bits: 4096 }),
    ("dsa-512", Kind::Dsa),
    ("dsa-1024", Kind::Dsa),
    ("dsa-2048", Kind::Dsa),
    ("ecdsa-p256", Kind::Curve("prime256v1")),
    ("ecdsa-p384", Kind::Curve("secp384r1")),
    ("ecdsa-p521", Kind::Curve("secp521r1")),
    ("ed25519", Kind::Named("ED25519")),
    ("ed448", Kind::Named("ED448")),
    ("ml-dsa-44", Kind::Named("ML-DSA-44")),
    ("ml-dsa-65", Kind::Named("ML-DSA-65")),
    ("ml-dsa-87", Kind::Named("ML-DSA-87")),
    ("slh-dsa-128s", Kind::Named("SLH-DSA-SHA2-128s")),
    ("slh-dsa-128f", Kind::Named("SLH-DSA-SHA2-128f")),
];

/// The longest signature here: SLH-DSA-128f has 17,088 bytes.
const LONGEST: usize = 20_000;

pub fn offers(api: &'static Api) -> Vec<&'static str> {
    let named = |kind| matches!(kind, Kind::Named(_) | Kind::Curve(_));
    // RSA and DSA need a key to be tried with, and every libcrypto has them unless it was built without.
    SIGNATURES
        .iter()
        .filter(|row| !named(row.1) || keys::generate(api, row.1, None).is_ok())
        .map(|row| row.0)
        .collect()
}

pub fn prepare(api: &'static Api, task: &Task) -> Result<Box<dyn Operation>, Failure> {
    let row = SIGNATURES.iter().find(|row| row.0 == task.choice);
    let kind = row
        .map(|row| row.1)
        .ok_or_else(|| Failure::Unsupported(format!("libcrypto has no signature {}", task.choice)))?;
    let key = match kind {
        Kind::Rsa { .. } | Kind::Dsa => keys::given(api, task)?,
        _ => keys::generate(api, kind, None)?,
    };
    if task.op == "generate-key" {
        // Refused here, and not in the middle of being timed.
        drop(keys::generate(api, kind, Some(&key))?);
        let known = KnownAnswer::read(task)?;
        // New keys are the same whatever they will sign with; a published signature is of one scheme.
        let scheme = if known.is_some() { Scheme::read(api, kind, task)? } else { Scheme::usual(api, kind)? };
        return Ok(Box::new(GenerateKey { api, kind, scheme, key, known }));
    }
    let scheme = Scheme::read(api, kind, task)?;
    let data = filled(task.bytes(32)?, task.seed);
    let signer = Signer::new(api, scheme, key)?;
    let mut signature = vec![0; LONGEST];
    let length = signer.sign(&data, &mut signature)?;
    signature.truncate(length);
    let known = KnownAnswer::read(task)?;
    let pair = Pair { kind, signer, data, signature, output: vec![0; LONGEST], known };
    match task.op.as_str() {
        "sign" => Ok(Box::new(Sign(pair))),
        "verify" => Ok(Box::new(Verify(pair))),
        op => Err(Failure::Failed(format!("a signature does not `{op}` (generate-key, sign, verify)"))),
    }
}

/// What is signed how: the digest (None where the algorithm brings its own) and RSA's padding.
#[derive(Clone, Copy)]
struct Scheme {
    digest: Option<Handle>,
    /// The bytes are signed as they are.
    raw: bool,
    pss: bool,
}

impl Scheme {
    fn usual(api: &Api, kind: Kind) -> Result<Scheme, Failure> {
        let digest = match kind {
            Kind::Named(_) => None,
            _ => Some(digest::find(api, "sha-256")?),
        };
        Ok(Scheme { digest, raw: false, pss: false })
    }

    fn read(api: &Api, kind: Kind, task: &Task) -> Result<Scheme, Failure> {
        if matches!(kind, Kind::Named(_)) {
            return Self::usual(api, kind);
        }
        let padding = if matches!(kind, Kind::Rsa { .. }) { task.word("padding", "pkcs1")? } else { "pkcs1" };
        let pss = match padding {
            "pkcs1" => false,
            "pss" => true,
            other => return Err(Failure::Failed(format!("no such `padding`: `{other}` (pkcs1, pss)"))),
        };
        match task.word("digest", "sha-256")? {
            "none" if pss => Err(Failure::Unsupported("RSA-PSS has no form without a digest".to_owned())),
            "none" => Ok(Scheme { digest: None, raw: true, pss }),
            name => Ok(Scheme { digest: Some(digest::find(api, name)?), raw: false, pss }),
        }
    }
}

const RSA_PKCS1_PADDING: c_int = 1;
const RSA_PKCS1_PSS_PADDING: c_int = 6;
const SALT_AS_LONG_AS_DIGEST: c_int = -1;
const EVP_PKEY_RSA: c_int = 6;
// OpenSSL 1.1.1's macros.
const CTRL_RSA_PADDING: c_int = 0x1001;
const CTRL_RSA_PSS_SALTLEN: c_int = 0x1002;

/// Sets PSS with a salt as long as the digest, as TLS 1.3 does.
fn set_pss(api: &Api, context: Handle) -> Result<(), Failure> {
    let null = std::ptr::null_mut();
    let set = |function: Option<unsafe extern "C" fn(Handle, c_int) -> c_int>, command, value| match function
    {
        Some(set) => unsafe { set(context, value) },
        None => api.key_control(context, EVP_PKEY_RSA, -1, command, value, null),
    };
    let done = set(api.EVP_PKEY_CTX_set_rsa_padding, CTRL_RSA_PADDING, RSA_PKCS1_PSS_PADDING) == 1
        && set(api.EVP_PKEY_CTX_set_rsa_pss_saltlen, CTRL_RSA_PSS_SALTLEN, SALT_AS_LONG_AS_DIGEST) == 1;
    if done { Ok(()) } else { Err(api.unsupported("RSA-PSS")) }
}

/// A key with a scheme: signs and verifies.
struct Signer {
    api: &'static Api,
    scheme: Scheme,
    key: Owned,
    /// For signing bytes as they are: contexts made ready once, which is how `openssl speed` does it.
    raw: Option<(Owned, Owned)>,
}

impl Signer {
    fn new(api: &'static Api, scheme: Scheme, key: Owned) -> Result<Signer, Failure> {
        let raw = if scheme.raw {
            let (sign, verify) = (keys::context(api, &key)?, keys::context(api, &key)?);
            let ready = unsafe {
                (api.EVP_PKEY_sign_init)(sign.handle) == 1 && (api.EVP_PKEY_verify_init)(verify.handle) == 1
            };
            if !ready {
                return Err(api.unsupported("signing without a digest"));
            }
            Some((sign, verify))
        } else {
            None
        };
        Ok(Signer { api, scheme, key, raw })
    }

    fn message_context(&self) -> Result<Owned, Failure> {
        let context = unsafe { (self.api.EVP_MD_CTX_new)() };
        Owned::new(context, self.api.EVP_MD_CTX_free).ok_or_else(|| self.api.failed("EVP_MD_CTX_new"))
    }

    /// Signs with a context of its own for each message. Returns the signature's length.
    fn sign(&self, data: &[u8], out: &mut [u8]) -> Result<usize, Failure> {
        let api = self.api;
        let mut length = out.len();
        if let Some((context, _)) = &self.raw {
            let done = unsafe {
                (api.EVP_PKEY_sign)(context.handle, out.as_mut_ptr(), &mut length, data.as_ptr(), data.len())
            };
            return if done == 1 { Ok(length) } else { Err(api.failed("EVP_PKEY_sign")) };
        }
        let context = self.message_context()?;
        let mut parameters = std::ptr::null_mut();
        let digest = self.scheme.digest.unwrap_or(std::ptr::null_mut());
        let (key, null) = (self.key.handle, std::ptr::null_mut());
        if unsafe { (api.EVP_DigestSignInit)(context.handle, &mut parameters, digest, null, key) } != 1 {
            return Err(api.unsupported("EVP_DigestSignInit"));
        }
        if self.scheme.pss {
            set_pss(api, parameters)?;
        }
        let done = unsafe {
            (api.EVP_DigestSign)(context.handle, out.as_mut_ptr(), &mut length, data.as_ptr(), data.len())
        };
        if done == 1 { Ok(length) } else { Err(api.failed("EVP_DigestSign")) }
    }

    /// Whether the signature is this key's for these data.
    fn accepts(&self, data: &[u8], signature: &[u8]) -> Result<bool, Failure> {
        let api = self.api;
        let (data_at, length) = (data.as_ptr(), data.len());
        if let Some((_, context)) = &self.raw {
            let verify = api.EVP_PKEY_verify;
            let done =
                unsafe { verify(context.handle, signature.as_ptr(), signature.len(), data_at, length) };
            return Ok(self.verdict(done));
        }
        let context = self.message_context()?;
        let mut parameters = std::ptr::null_mut();
        let digest = self.scheme.digest.unwrap_or(std::ptr::null_mut());
        let (key, null) = (self.key.handle, std::ptr::null_mut());
        if unsafe { (api.EVP_DigestVerifyInit)(context.handle, &mut parameters, digest, null, key) } != 1 {
            return Err(api.unsupported("EVP_DigestVerifyInit"));
        }
        if self.scheme.pss {
            set_pss(api, parameters)?;
        }
        let verify = api.EVP_DigestVerify;
        let done = unsafe { verify(context.handle, signature.as_ptr(), signature.len(), data_at, length) };
        Ok(self.verdict(done))
    }

    /// Whether a signature was accepted. The library's words for a refusal must not be told of what comes next.
    fn verdict(&self, done: c_int) -> bool {
        if done != 1 {
            self.api.clear_errors();
        }
        done == 1
    }

    /// The known signature itself if it is accepted, and a word instead if it is not.
    fn judge(&self, known: &KnownAnswer) -> Result<String, Failure> {
        let api = self.api;
        let mut at = known.public_key.as_ptr();
        let key = unsafe { (api.d2i_PUBKEY)(std::ptr::null_mut(), &mut at, known.public_key.len() as _) };
        let key = keys::own(api, key, "the known answer's public key cannot be read")?;
        let signer = Signer::new(api, self.scheme, key)?;
        let accepted = signer.accepts(&known.message, &known.signature)?;
        let refused = !signer.accepts(&tampered(&known.message), &known.signature)?;
        let words =
            if accepted && refused { hex::encode(&known.signature) } else { "not accepted".to_owned() };
        Ok(words)
    }
}

struct KnownAnswer {
    public_key: Vec<u8>,
    message: Vec<u8>,
    signature: Vec<u8>,
}

impl KnownAnswer {
    fn read(task: &Task) -> Result<Option<KnownAnswer>, Failure> {
        let Some(message) = task.message()? else { return Ok(None) };
        let (public_key, signature) = (task.need_hex("public_key_der")?, task.need_hex("expected")?);
        Ok(Some(KnownAnswer { public_key, message, signature }))
    }
}

/// What signing and verifying hold alike.
struct Pair {
    kind: Kind,
    signer: Signer,
    data: Vec<u8>,
    signature: Vec<u8>,
    output: Vec<u8>,
    known: Option<KnownAnswer>,
}

impl Pair {
    fn another_key(&self) -> Result<Signer, Failure> {
        if matches!(self.kind, Kind::Rsa { .. }) {
            return Err(Failure::Unsupported(LONG_KEY.to_owned()));
        }
        let other = keys::generate(self.signer.api, self.kind, Some(&self.signer.key))?;
        Signer::new(self.signer.api, self.signer.scheme, other)
    }

    fn prove(&mut self) -> Result<Proof, Failure> {
        let mut proof = Proof::default();
        let signer = &self.signer;
        proof.accept("its own signature", signer.accepts(&self.data, &self.signature)?)?;
        proof.refuse("a tampered message", !signer.accepts(&tampered(&self.data), &self.signature)?)?;
        let mut other = self.signature.clone();
        // The last byte: the first is DER's in DSA and ECDSA, and would be refused for its form alone.
        if let Some(last) = other.last_mut() {
            *last ^= 1;
        }
        proof.refuse("a tampered signature", !signer.accepts(&self.data, &other)?)?;
        match self.another_key() {
            Ok(other) => proof.refuse("another key", !other.accepts(&self.data, &self.signature)?)?,
            // A library may sign with keys that it makes no more.
            Err(Failure::Unsupported(why)) => proof.leave("another key", &why),
            Err(failure) => return Err(failure),
        }
        if let Some(known) = &self.known {
            proof.answer = Some(signer.judge(known)?);
        }
        Ok(proof)
    }
}

struct Sign(Pair);

impl Operation for Sign {
    fn perform(&mut self) -> Result<(), Failure> {
        let Pair { signer, data, output, .. } = &mut self.0;
        std::hint::black_box(signer.sign(data, output)?);
        Ok(())
    }

    fn prove(&mut self) -> Result<Proof, Failure> {
        self.0.prove()
    }

    fn bytes(&self) -> u64 {
        self.0.data.len() as u64
    }
}

struct Verify(Pair);

impl Operation for Verify {
    fn perform(&mut self) -> Result<(), Failure> {
        let Pair { signer, data, signature, .. } = &self.0;
        match signer.accepts(data, signature)? {
            true => Ok(()),
            false => Err(signer.api.failed("a good signature was refused")),
        }
    }

    fn prove(&mut self) -> Result<Proof, Failure> {
        self.0.prove()
    }

    fn bytes(&self) -> u64 {
        self.0.data.len() as u64
    }
}

struct GenerateKey {
    api: &'static Api,
    kind: Kind,
    /// What new keys are tried with.
    scheme: Scheme,
    key: Owned,
    known: Option<KnownAnswer>,
}

impl Operation for GenerateKey {
    fn perform(&mut self) -> Result<(), Failure> {
        keys::generate(self.api, self.kind, Some(&self.key)).map(|_| ())
    }

    fn prove(&mut self) -> Result<Proof, Failure> {
        let mut proof = Proof::default();
        let new = || -> Result<Signer, Failure> {
            Signer::new(self.api, self.scheme, keys::generate(self.api, self.kind, Some(&self.key))?)
        };
        let (one, other) = (new()?, new()?);
        // As long as a digest: with `none` it is signed as it is.
        let (message, mut signature) = (&[7; 32], vec![0; LONGEST]);
        let length = one.sign(message, &mut signature)?;
        signature.truncate(length);
        proof.accept("a signature by the new key", one.accepts(message, &signature)?)?;
        proof.refuse("a signature by another new key", !other.accepts(message, &signature)?)?;
        if let Some(known) = &self.known {
            proof.answer = Some(one.judge(known)?);
        }
        Ok(proof)
    }
}

/// RSA's padding for transporting keys, set where a context needs it said.
pub fn set_pkcs1(api: &Api, context: Handle) -> bool {
    let null = std::ptr::null_mut();
    let done = match api.EVP_PKEY_CTX_set_rsa_padding {
        Some(set) => unsafe { set(context, RSA_PKCS1_PADDING) },
        None => api.key_control(context, EVP_PKEY_RSA, -1, CTRL_RSA_PADDING, RSA_PKCS1_PADDING, null),
    };
    done == 1
}
