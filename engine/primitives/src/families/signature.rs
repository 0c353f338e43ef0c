//! `signature`: keys generated, messages signed, signatures verified.

use std::hint::black_box;

use crate::contract::{Proof, Task};
use crate::failure::Failure;
use crate::provider::{Prepared, Primitive};
use crate::random;

/// A signature algorithm with its digest and padding.
pub trait Scheme: 'static {
    type Private;
    type Public;
    type Signature: AsRef<[u8]>;

    /// Generates a key pair.
    fn generate(&self) -> Result<Self::Private, Failure>;

    /// Returns the key to sign with: the task's own, if it has one.
    fn private(&self, _task: &Task) -> Result<Self::Private, Failure> {
        self.generate()
    }

    /// Returns another key for the proof, or the reason why there is none.
    fn another(&self) -> Result<Self::Private, Failure> {
        self.generate()
    }

    fn public(&self, key: &Self::Private) -> Result<Self::Public, Failure>;

    /// Reads a SubjectPublicKeyInfo.
    fn read_public(&self, der: &[u8]) -> Result<Self::Public, Failure>;

    fn sign(&self, key: &Self::Private, message: &[u8]) -> Result<Self::Signature, Failure>;

    /// Returns a signature to verify. Another implementation makes it if this one only verifies.
    fn sign_anyhow(&self, key: &Self::Private, message: &[u8]) -> Result<Vec<u8>, Failure> {
        Ok(self.sign(key, message)?.as_ref().to_vec())
    }

    /// Returns true if the signature is accepted.
    fn verify(&self, key: &Self::Public, message: &[u8], signature: &[u8]) -> Result<bool, Failure>;
}

/// Refuses [`Scheme::another`] if the key comes with the task.
pub fn long_key<Private>() -> Result<Private, Failure> {
    let why = "the key came with the task, because making one takes long";
    Err(Failure::Unsupported(why.to_owned()))
}

pub fn prepare<S: Scheme>(task: &Task, scheme: S) -> Prepared {
    let operations = [("generate-key", None), ("sign", Some(true)), ("verify", Some(false))];
    let Some(signs) = task.operation(&operations)? else {
        return Ok(Box::new(GenerateKey { known: Known::read(task)?, scheme }));
    };
    let private = scheme.private(task)?;
    let (public, message) = (scheme.public(&private)?, random::filled(task.bytes(32)?, task.seed));
    let signature = if signs {
        // Some unsupported settings show only when signing, which must be before the clock runs.
        scheme.sign(&private, &message)?;
        None
    } else {
        Some(scheme.sign_anyhow(&private, &message)?)
    };
    Ok(Box::new(Pair { private, public, message, signature, known: Known::read(task)?, scheme }))
}

/// A published signature. Signing is randomised, or needs a key that many libraries do not import, so that
/// the proof is that the signature is accepted.
struct Known {
    public_key_der: Vec<u8>,
    message: Vec<u8>,
    signature: Vec<u8>,
}

impl Known {
    fn read(task: &Task) -> Result<Option<Self>, Failure> {
        let Some(message) = task.message()? else { return Ok(None) };
        let (public_key_der, signature) = (task.need_hex("public_key_der")?, task.need_hex("expected")?);
        Ok(Some(Known { public_key_der, message, signature }))
    }

    fn answer<S: Scheme>(&self, scheme: &S) -> Result<String, Failure> {
        let public = scheme.read_public(&self.public_key_der)?;
        if !scheme.verify(&public, &self.message, &self.signature)? {
            return Err(Failure::Failed("the library refuses the published signature".to_owned()));
        }
        Ok(hex::encode(&self.signature))
    }
}

/// Proves that a key pair signs and verifies, with a signature of this message.
fn prove<S: Scheme>(
    scheme: &S,
    known: Option<&Known>,
    public: &S::Public,
    message: &[u8],
    signature: &[u8],
) -> Result<Proof, Failure> {
    let answer = known.map(|known| known.answer(scheme)).transpose()?;
    let mut proof = Proof { answer, ..Proof::default() };
    proof.accept("its own signature", scheme.verify(public, message, signature)?)?;
    proof.refuse("a tampered message", !scheme.verify(public, &random::tampered(message), signature)?)?;
    let tampered = random::tampered_at_end(signature);
    proof.refuse("a tampered signature", !scheme.verify(public, message, &tampered)?)?;
    Ok(proof)
}

struct GenerateKey<S> {
    scheme: S,
    known: Option<Known>,
}

impl<S: Scheme> Primitive for GenerateKey<S> {
    fn perform(&mut self) -> Result<(), Failure> {
        black_box(self.scheme.generate()?);
        Ok(())
    }

    fn prove(&mut self) -> Result<Proof, Failure> {
        let (scheme, message) = (&self.scheme, [7; 32]);
        let (key, other) = (scheme.generate()?, scheme.generate()?);
        let signature = scheme.sign_anyhow(&key, &message)?;
        let mut proof =
            prove(scheme, self.known.as_ref(), &scheme.public(&key)?, &message, signature.as_ref())?;
        let accepted = scheme.verify(&scheme.public(&other)?, &message, signature.as_ref())?;
        proof.refuse("another key", !accepted)?;
        Ok(proof)
    }
}

struct Pair<S: Scheme> {
    scheme: S,
    private: S::Private,
    public: S::Public,
    message: Vec<u8>,
    /// Signature to verify; None if signing is the operation.
    signature: Option<Vec<u8>>,
    known: Option<Known>,
}

impl<S: Scheme> Primitive for Pair<S> {
    fn perform(&mut self) -> Result<(), Failure> {
        let Pair { scheme, private, public, message, signature, .. } = self;
        let Some(signature) = signature else {
            black_box(scheme.sign(private, black_box(message))?);
            return Ok(());
        };
        match scheme.verify(public, black_box(message), black_box(signature))? {
            true => Ok(()),
            false => Err(Failure::Failed("the library refuses a valid signature".to_owned())),
        }
    }

    fn prove(&mut self) -> Result<Proof, Failure> {
        let Pair { scheme, private, public, message, .. } = self;
        let signature = match &self.signature {
            Some(signature) => signature.clone(),
            None => scheme.sign(private, message)?.as_ref().to_vec(),
        };
        let mut proof = prove(scheme, self.known.as_ref(), public, message, &signature)?;
        match scheme.another() {
            Ok(other) => {
                let other = scheme.public(&other)?;
                proof.refuse("another key", !scheme.verify(&other, message, &signature)?)?;
            }
            // A library may sign with keys of a kind that it does not generate.
            Err(Failure::Unsupported(why)) => proof.leave("another key", &why),
            Err(failure) => return Err(failure),
        }
        Ok(proof)
    }

    fn bytes(&self) -> u64 {
        self.message.len() as u64
    }
}
