//! `key-exchange`: the complete cost of agreeing on a secret, for one side of a TLS handshake.

use std::hint::black_box;

use crate::contract::{Proof, Task};
use crate::failure::Failure;
use crate::provider::{Prepared, Primitive};
use crate::random;

/// Diffie-Hellman on some group, with the same work on both sides.
pub trait Agreement: 'static {
    type Private;
    type Public: AsRef<[u8]>;
    type Secret: AsRef<[u8]>;

    /// Generates a private key, and the public value to send.
    fn generate(&self) -> Result<(Self::Private, Self::Public), Failure>;
    fn read_private(&self, bytes: &[u8]) -> Result<Self::Private, Failure>;
    /// Reads and checks the peer's public value, including its length, and derives the secret.
    fn agree(&self, key: &Self::Private, peer: &[u8]) -> Result<Self::Secret, Failure>;
}

/// A key encapsulation mechanism: the client makes the key, the server encapsulates to it.
pub trait Kem: 'static {
    type Private;
    type Public: AsRef<[u8]>;
    type Ciphertext: AsRef<[u8]>;
    type Secret: AsRef<[u8]>;

    fn generate(&self) -> Result<(Self::Private, Self::Public), Failure>;
    fn read_seed(&self, seed: &[u8]) -> Result<Self::Private, Failure>;
    fn read_expanded(&self, private: &[u8]) -> Result<Self::Private, Failure>;
    /// Reads and checks the client's key, and encapsulates a new secret to it.
    fn encapsulate(&self, public: &[u8]) -> Result<(Self::Ciphertext, Self::Secret), Failure>;
    fn decapsulate(&self, key: &Self::Private, ciphertext: &[u8]) -> Result<Self::Secret, Failure>;

    /// Reads the private key of a known answer.
    fn known(&self, task: &Task) -> Result<Option<Self::Private>, Failure> {
        known(self, task)
    }
}

/// Reads the private key of a known answer from its seed or its expanded form.
pub fn known<K: Kem + ?Sized>(scheme: &K, task: &Task) -> Result<Option<K::Private>, Failure> {
    match (task.hex("seed")?, task.hex("private")?) {
        (Some(seed), _) => scheme.read_seed(&seed).map(Some),
        (None, Some(private)) => scheme.read_expanded(&private).map(Some),
        (None, None) => Ok(None),
    }
}

/// RSA key transport: the client encrypts a secret to the server's certified key.
pub trait Transport: 'static {
    /// Writes the ciphertext to `sealed`.
    fn encrypt(&self, secret: &[u8], sealed: &mut Vec<u8>) -> Result<(), Failure>;
    /// Returns the secret, in a buffer of the key's length.
    fn decrypt<'a>(&self, sealed: &[u8], opened: &'a mut [u8]) -> Result<&'a [u8], Failure>;
    fn key_bytes(&self) -> usize;
}

#[derive(Clone, Copy)]
enum Side {
    Client,
    Server,
}

impl Side {
    fn of(task: &Task) -> Result<Side, Failure> {
        task.operation(&[("client", Side::Client), ("server", Side::Server)])
    }
}

fn expect_equal(what: &'static str, left: &[u8], right: &[u8]) -> Result<(), Failure> {
    if left != right {
        return Err(Failure::Failed(format!("{what} differs")));
    }
    Ok(())
}

pub fn agreement<A: Agreement>(task: &Task, scheme: A) -> Prepared {
    // The side must be valid, but both do the same work.
    Side::of(task)?;
    let (peer_private, peer) = scheme.generate()?;
    let known = task.hex("private")?.zip(task.hex("peer")?);
    Ok(Box::new(Agree { peer: peer.as_ref().to_vec(), peer_private, known, scheme }))
}

struct Agree<A: Agreement> {
    scheme: A,
    peer_private: A::Private,
    peer: Vec<u8>,
    known: Option<(Vec<u8>, Vec<u8>)>,
}

impl<A: Agreement> Primitive for Agree<A> {
    fn perform(&mut self) -> Result<(), Failure> {
        let (private, public) = self.scheme.generate()?;
        black_box(public);
        black_box(self.scheme.agree(&private, black_box(&self.peer))?);
        Ok(())
    }

    fn prove(&mut self) -> Result<Proof, Failure> {
        let scheme = &self.scheme;
        let mut proof = Proof::default();
        if let Some((private, peer)) = &self.known {
            let secret = scheme.agree(&scheme.read_private(private)?, peer)?;
            proof.answer = Some(hex::encode(secret));
        }
        let (private, public) = scheme.generate()?;
        let ours = scheme.agree(&private, &self.peer)?;
        let theirs = scheme.agree(&self.peer_private, public.as_ref())?;
        proof.accept("both sides' secret", ours.as_ref() == theirs.as_ref())?;
        let (_, stranger) = scheme.generate()?;
        let wrong = scheme.agree(&self.peer_private, stranger.as_ref())?;
        proof.refuse("another peer", wrong.as_ref() != theirs.as_ref())?;
        let short = &self.peer[..self.peer.len() - 1];
        proof.refuse("a public value cut short", scheme.agree(&private, short).is_err())?;
        Ok(proof)
    }
}

pub fn kem<K: Kem>(task: &Task, scheme: K) -> Prepared {
    let (private, public) = scheme.generate()?;
    let public = public.as_ref().to_vec();
    let (ciphertext, secret) = scheme.encapsulate(&public)?;
    Ok(Box::new(Parties {
        side: Side::of(task)?,
        private,
        public,
        ciphertext: ciphertext.as_ref().to_vec(),
        secret: secret.as_ref().to_vec(),
        known: scheme.known(task)?.zip(task.hex("ciphertext")?),
        scheme,
    }))
}

struct Parties<K: Kem> {
    side: Side,
    scheme: K,
    private: K::Private,
    public: Vec<u8>,
    ciphertext: Vec<u8>,
    secret: Vec<u8>,
    known: Option<(K::Private, Vec<u8>)>,
}

impl<K: Kem> Primitive for Parties<K> {
    /// Performs one side. A client generates a key pair and decapsulates. The ciphertext was made for another
    /// key pair during preparation, so that the server's part is not in the client's cost and the secret can
    /// be checked.
    fn perform(&mut self) -> Result<(), Failure> {
        match self.side {
            Side::Client => {
                black_box(self.scheme.generate()?);
                let secret = self.scheme.decapsulate(&self.private, black_box(&self.ciphertext))?;
                expect_equal("the decapsulated secret", secret.as_ref(), &self.secret)?;
            }
            Side::Server => {
                black_box(self.scheme.encapsulate(black_box(&self.public))?);
            }
        }
        Ok(())
    }

    fn prove(&mut self) -> Result<Proof, Failure> {
        let scheme = &self.scheme;
        let mut proof = Proof::default();
        if let Some((private, ciphertext)) = &self.known {
            proof.answer = Some(hex::encode(scheme.decapsulate(private, ciphertext)?));
        }
        let (ciphertext, secret) = scheme.encapsulate(&self.public)?;
        let theirs = scheme.decapsulate(&self.private, ciphertext.as_ref())?;
        proof.accept("both sides' secret", secret.as_ref() == theirs.as_ref())?;
        // A KEM of this kind does not refuse a wrong ciphertext: it returns a secret that the other side does
        // not have.
        let other = |result: Result<K::Secret, Failure>| match result {
            Ok(wrong) => wrong.as_ref() != theirs.as_ref(),
            Err(_) => true,
        };
        let tampered = scheme.decapsulate(&self.private, &random::tampered(ciphertext.as_ref()));
        proof.refuse("a tampered ciphertext", other(tampered))?;
        let (stranger, _) = scheme.generate()?;
        proof.refuse("another key", other(scheme.decapsulate(&stranger, ciphertext.as_ref())))?;
        let short = &self.public[..self.public.len() - 1];
        proof.refuse("a public key cut short", scheme.encapsulate(short).is_err())?;
        Ok(proof)
    }
}

/// A KEM combined with X25519, as TLS does with ML-KEM-768: shares, ciphertexts and secrets of the two are
/// concatenated, the KEM's first (draft-ietf-tls-ecdhe-mlkem).
pub struct Hybrid<K, A>(pub K, pub A);

const X25519_BYTES: usize = 32;

impl<K: Kem, A: Agreement> Hybrid<K, A> {
    /// Splits off the part of X25519.
    fn split(bytes: &[u8]) -> Result<(&[u8], &[u8]), Failure> {
        bytes
            .len()
            .checked_sub(X25519_BYTES)
            .map(|middle| bytes.split_at(middle))
            .ok_or_else(|| Failure::Failed("a share that is too short for both parts".to_owned()))
    }
}

impl<K: Kem, A: Agreement> Kem for Hybrid<K, A> {
    type Private = (K::Private, A::Private);
    // The parts are joined in new buffers, as in a TLS stack.
    type Public = Vec<u8>;
    type Ciphertext = Vec<u8>;
    type Secret = Vec<u8>;

    fn generate(&self) -> Result<(Self::Private, Vec<u8>), Failure> {
        let (kem_private, kem_public) = self.0.generate()?;
        let (private, public) = self.1.generate()?;
        Ok(((kem_private, private), [kem_public.as_ref(), public.as_ref()].concat()))
    }

    /// Reads the KEM's seed, which the agreement's private key follows.
    fn read_seed(&self, seed: &[u8]) -> Result<Self::Private, Failure> {
        let (seed, private) = Self::split(seed)?;
        Ok((self.0.read_seed(seed)?, self.1.read_private(private)?))
    }

    fn read_expanded(&self, _: &[u8]) -> Result<Self::Private, Failure> {
        Err(Failure::Failed("a hybrid key must be given by a seed and a private key".to_owned()))
    }

    fn encapsulate(&self, public: &[u8]) -> Result<(Vec<u8>, Vec<u8>), Failure> {
        let (kem_public, peer) = Self::split(public)?;
        let (kem_ciphertext, kem_secret) = self.0.encapsulate(kem_public)?;
        let (private, public) = self.1.generate()?;
        let secret = self.1.agree(&private, peer)?;
        Ok((
            [kem_ciphertext.as_ref(), public.as_ref()].concat(),
            [kem_secret.as_ref(), secret.as_ref()].concat(),
        ))
    }

    fn decapsulate(
        &self,
        (kem_private, private): &Self::Private,
        ciphertext: &[u8],
    ) -> Result<Vec<u8>, Failure> {
        let (kem_ciphertext, peer) = Self::split(ciphertext)?;
        let kem_secret = self.0.decapsulate(kem_private, kem_ciphertext)?;
        let secret = self.1.agree(private, peer)?;
        Ok([kem_secret.as_ref(), secret.as_ref()].concat())
    }

    fn known(&self, task: &Task) -> Result<Option<Self::Private>, Failure> {
        match task.hex("ml_kem_seed")?.zip(task.hex("x25519_private")?) {
            Some((seed, private)) => self.read_seed(&[seed, private].concat()).map(Some),
            None => Ok(None),
        }
    }
}

/// Length of TLS's premaster secret.
const SECRET_BYTES: usize = 48;

pub fn transport<T: Transport>(task: &Task, scheme: T) -> Prepared {
    let secret = random::filled(SECRET_BYTES, task.seed);
    let mut sealed = Vec::with_capacity(scheme.key_bytes());
    scheme.encrypt(&secret, &mut sealed)?;
    let opened = vec![0; scheme.key_bytes()];
    let (side, known) = (Side::of(task)?, task.hex("ciphertext")?);
    Ok(Box::new(Sealing { side, secret, sealed, opened, known, scheme }))
}

struct Sealing<T> {
    side: Side,
    scheme: T,
    secret: Vec<u8>,
    sealed: Vec<u8>,
    opened: Vec<u8>,
    known: Option<Vec<u8>>,
}

impl<T: Transport> Primitive for Sealing<T> {
    /// Performs one side. The server's key was read from its certificate before, and the secret is not
    /// generated again.
    fn perform(&mut self) -> Result<(), Failure> {
        match self.side {
            Side::Client => {
                self.scheme.encrypt(black_box(&self.secret), &mut self.sealed)?;
                black_box(&self.sealed);
                Ok(())
            }
            Side::Server => {
                let secret = self.scheme.decrypt(black_box(&self.sealed), &mut self.opened)?;
                expect_equal("the decrypted secret", secret, &self.secret)
            }
        }
    }

    fn prove(&mut self) -> Result<Proof, Failure> {
        let mut proof = Proof::default();
        if let Some(ciphertext) = &self.known {
            proof.answer = Some(hex::encode(self.scheme.decrypt(ciphertext, &mut self.opened)?));
        }
        self.scheme.encrypt(&self.secret, &mut self.sealed)?;
        let first = self.sealed.clone();
        self.scheme.encrypt(&self.secret, &mut self.sealed)?;
        proof.refuse("the same ciphertext twice", first != self.sealed)?;
        let opened = self.scheme.decrypt(&self.sealed, &mut self.opened)?;
        proof.accept("its own secret", opened == self.secret)?;
        // The last byte is changed: with its first byte changed, a ciphertext may exceed the modulus.
        let mut tampered = self.sealed.clone();
        *tampered.last_mut().expect("a ciphertext") ^= 1;
        let wrong = match self.scheme.decrypt(&tampered, &mut self.opened) {
            Ok(opened) => opened != self.secret,
            Err(_) => true,
        };
        proof.refuse("a tampered ciphertext", wrong)?;
        Ok(proof)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_that_differ_are_an_error() {
        assert_eq!(Ok(()), expect_equal("the secret", b"one", b"one"));
        for other in [&b"two"[..], b"on", b""] {
            assert_eq!(
                Err("the secret differs".to_owned()),
                expect_equal("the secret", b"one", other).map_err(Failure::into_words)
            );
        }
    }
}
