//! Key exchanges: Diffie–Hellman in finite fields and on curves, ML-KEM and its hybrid, RSA key transport.

use std::ffi::c_int;

use super::api::{Api, Handle, Owned, Param, have};
use super::keys::{self, KeyKind};
use crate::contract::Task;
use crate::failure::Failure;
use crate::families::key_exchange::{self as family, Agreement, Kem, Transport};
use crate::families::{self, Prepared};

#[derive(Clone, Copy)]
enum Method {
    Agreement(KeyKind),
    Kem(&'static str),
    Transport,
}

const EXCHANGES: &[(&str, Method)] = &[
    ("ffdhe2048", Method::Agreement(KeyKind::Group("ffdhe2048"))),
    ("ffdhe3072", Method::Agreement(KeyKind::Group("ffdhe3072"))),
    ("ecdh-p256", Method::Agreement(KeyKind::Curve("prime256v1"))),
    ("ecdh-p384", Method::Agreement(KeyKind::Curve("secp384r1"))),
    ("x25519", Method::Agreement(KeyKind::Named("X25519"))),
    ("x448", Method::Agreement(KeyKind::Named("X448"))),
    ("rsa-2048", Method::Transport),
    ("rsa-3072", Method::Transport),
    ("ml-kem-512", Method::Kem("ML-KEM-512")),
    ("ml-kem-768", Method::Kem("ML-KEM-768")),
    ("ml-kem-1024", Method::Kem("ML-KEM-1024")),
    ("x25519mlkem768", Method::Kem("X25519MLKEM768")),
];

/// Limit of a ciphertext and a private key. The longest are ML-KEM-1024's, of 1,568 and 3,168 bytes. A
/// ciphertext has this room once, until its length is known.
const LONGEST: usize = 4096;
/// Limit of a KEM's secret: the longest is the hybrid's.
const KEM_SECRET_BYTES: usize = 64;
const RSA_PKCS1_PADDING: c_int = 1;

pub fn offers(api: &Api) -> Vec<&'static str> {
    families::offered(EXCHANGES, |method| match *method {
        Method::Agreement(kind) => keys::generate(api, kind, None).is_ok(),
        Method::Kem(name) => keys::generate(api, KeyKind::Named(name), None).is_ok(),
        Method::Transport => true,
    })
}

pub fn prepare(api: &'static Api, task: &Task) -> Prepared {
    match *families::row("libcrypto", task, EXCHANGES)? {
        Method::Agreement(kind) => family::agreement(task, Shares::new(api, kind)?),
        Method::Kem(name) => family::kem(task, Shares::of_kem(api, name)?),
        Method::Transport => family::transport(task, Rsa::new(api, task)?),
    }
}

/// An exchange in which each side, or one of them, makes its own key.
struct Shares {
    api: &'static Api,
    kind: KeyKind,
    /// A key of this kind, which supplies the parameters.
    like: Owned,
    share_bytes: usize,
    /// Room for a KEM's ciphertext.
    ciphertext_bytes: usize,
}

impl Shares {
    fn new(api: &'static Api, kind: KeyKind) -> Result<Shares, Failure> {
        let like = keys::generate(api, kind, None)?;
        let share_bytes = keys::encoded_public(api, &like)?.len();
        Ok(Shares { api, kind, like, share_bytes, ciphertext_bytes: LONGEST })
    }

    fn of_kem(api: &'static Api, name: &'static str) -> Result<Shares, Failure> {
        let mut shares = Shares::new(api, KeyKind::Named(name))?;
        let public = keys::encoded_public(api, &shares.like)?;
        shares.ciphertext_bytes = shares.encapsulate(&public)?.0.len();
        Ok(shares)
    }

    fn new_key(&self) -> Result<(Owned, Vec<u8>), Failure> {
        let key = keys::generate(self.api, self.kind, None)?;
        let share = keys::encoded_public(self.api, &key)?;
        Ok((key, share))
    }

    /// Reads the peer's key. A library accepts a finite-field share of any length, so that a TLS stack checks
    /// it (RFC 8446, section 4.2.8.1).
    fn peer(&self, share: &[u8]) -> Result<Owned, Failure> {
        match share.len() {
            bytes if bytes == self.share_bytes => keys::peer(self.api, self.kind, &self.like, share),
            bytes => Err(Failure::Failed(format!(
                "the share has {bytes} bytes; it must have {}",
                self.share_bytes
            ))),
        }
    }
}

impl Agreement for Shares {
    type Private = Owned;
    type Public = Vec<u8>;
    type Secret = Vec<u8>;

    fn generate(&self) -> Result<(Owned, Vec<u8>), Failure> {
        self.new_key()
    }

    fn read_private(&self, bytes: &[u8]) -> Result<Owned, Failure> {
        keys::from_private(self.api, self.kind, bytes)
    }

    fn agree(&self, key: &Owned, peer: &[u8]) -> Result<Vec<u8>, Failure> {
        let (api, peer) = (self.api, self.peer(peer)?);
        let context = keys::ready(api, key, api.EVP_PKEY_derive_init, "deriving a secret")?;
        // No secret is longer than the share.
        // SAFETY: context and peer are alive, and the length is that of the buffer.
        let mut secret =
            api.filled(self.share_bytes, "the secret cannot be derived", |out, length| unsafe {
                match (api.EVP_PKEY_derive_set_peer)(context.raw(), peer.raw()) {
                    1 => (api.EVP_PKEY_derive)(context.raw(), out, length),
                    refused => refused,
                }
            })?;
        if matches!(self.kind, KeyKind::Group(_)) && secret.len() < self.share_bytes {
            // A finite-field secret may begin with zeros, which some versions omit; TLS needs them.
            secret.splice(0..0, std::iter::repeat_n(0, self.share_bytes - secret.len()));
        }
        Ok(secret)
    }
}

impl Kem for Shares {
    type Private = Owned;
    type Public = Vec<u8>;
    type Ciphertext = Vec<u8>;
    type Secret = Vec<u8>;

    fn generate(&self) -> Result<(Owned, Vec<u8>), Failure> {
        self.new_key()
    }

    fn read_seed(&self, seed: &[u8]) -> Result<Owned, Failure> {
        self.key_of(Param::octets(c"seed", seed))
    }

    fn read_expanded(&self, private: &[u8]) -> Result<Owned, Failure> {
        self.key_of(Param::octets(c"priv", private))
    }

    fn encapsulate(&self, public: &[u8]) -> Result<(Vec<u8>, Vec<u8>), Failure> {
        let (api, key) = (self.api, self.peer(public)?);
        let context = keys::context(api, &key)?;
        let init = have(api.EVP_PKEY_encapsulate_init, "EVP_PKEY_encapsulate")?;
        let encapsulate = have(api.EVP_PKEY_encapsulate, "EVP_PKEY_encapsulate")?;
        let (mut ciphertext, mut secret) = (vec![0; self.ciphertext_bytes], vec![0; KEM_SECRET_BYTES]);
        let (mut length, mut secret_length) = (ciphertext.len(), secret.len());
        let (out, secret_out) = (ciphertext.as_mut_ptr(), secret.as_mut_ptr());
        // SAFETY: the context is alive, and both lengths are those of their buffers.
        let done = unsafe {
            init(context.raw(), std::ptr::null()) == 1
                && encapsulate(context.raw(), out, &mut length, secret_out, &mut secret_length) == 1
        };
        api.ensure(done, "encapsulating")?;
        ciphertext.truncate(length);
        secret.truncate(secret_length);
        Ok((ciphertext, secret))
    }

    fn decapsulate(&self, key: &Owned, ciphertext: &[u8]) -> Result<Vec<u8>, Failure> {
        let (api, context) = (self.api, keys::context(self.api, key)?);
        let init = have(api.EVP_PKEY_decapsulate_init, "EVP_PKEY_decapsulate")?;
        let decapsulate = have(api.EVP_PKEY_decapsulate, "EVP_PKEY_decapsulate")?;
        // SAFETY: the context is alive, and both lengths are those of their buffers.
        api.filled(KEM_SECRET_BYTES, "decapsulating", |out, length| unsafe {
            match init(context.raw(), std::ptr::null()) {
                1 => decapsulate(context.raw(), out, length, ciphertext.as_ptr(), ciphertext.len()),
                refused => refused,
            }
        })
    }

    /// Reads a hybrid's private key, which is its parts' in sequence, ML-KEM's expanded from its seed.
    fn known(&self, task: &Task) -> Result<Option<Owned>, Failure> {
        let Some(seed) = task.hex("ml_kem_seed")? else { return family::known(self, task) };
        let api = self.api;
        let key =
            keys::from_data(api, "ML-KEM-768", keys::EVP_PKEY_KEYPAIR, vec![Param::octets(c"seed", &seed)])?;
        let read = have(api.EVP_PKEY_get_octet_string_param, "EVP_PKEY_get_octet_string_param")?;
        // SAFETY: the key is alive, the name ends with a zero, and the buffer has the passed length.
        let mut private = api.filled(LONGEST, "ML-KEM's private key", |out, length| unsafe {
            read(key.raw(), c"priv".as_ptr(), out, LONGEST, length)
        })?;
        private.extend(task.need_hex("x25519_private")?);
        Kem::read_expanded(self, &private).map(Some)
    }
}

impl Shares {
    fn key_of(&self, value: Param) -> Result<Owned, Failure> {
        match self.kind {
            KeyKind::Named(name) => keys::from_data(self.api, name, keys::EVP_PKEY_KEYPAIR, vec![value]),
            _ => Err(Failure::Failed("keys of this kind cannot be made from plain numbers".to_owned())),
        }
    }
}

struct Rsa {
    api: &'static Api,
    key: Owned,
    key_bytes: usize,
}

impl Rsa {
    fn new(api: &'static Api, task: &Task) -> Result<Rsa, Failure> {
        let key = keys::given(api, task)?;
        let key_bytes = keys::output_bytes(api, &key);
        Ok(Rsa { api, key, key_bytes })
    }

    /// Makes a context for one secret, as every other exchange and a TLS stack do.
    fn ready(&self, init: unsafe extern "C" fn(Handle) -> c_int, what: &str) -> Result<Owned, Failure> {
        let context = keys::ready(self.api, &self.key, init, what)?;
        match keys::RSA_PADDING.set(self.api, context.raw(), RSA_PKCS1_PADDING) {
            true => Ok(context),
            false => Err(self.api.unsupported(what)),
        }
    }
}

impl Transport for Rsa {
    fn encrypt(&self, secret: &[u8], sealed: &mut Vec<u8>) -> Result<(), Failure> {
        sealed.resize(self.key_bytes, 0);
        let context = self.ready(self.api.EVP_PKEY_encrypt_init, "RSA encryption")?;
        let (api, mut length) = (self.api, sealed.len());
        let (out, from) = (sealed.as_mut_ptr(), secret.as_ptr());
        // SAFETY: the context is alive, and both lengths are those of their buffers.
        let done =
            unsafe { (api.EVP_PKEY_encrypt)(context.raw(), out, &mut length, from, secret.len()) == 1 };
        api.ensure(done, "encrypting")?;
        sealed.truncate(length);
        Ok(())
    }

    fn decrypt<'a>(&self, sealed: &[u8], opened: &'a mut [u8]) -> Result<&'a [u8], Failure> {
        let context = self.ready(self.api.EVP_PKEY_decrypt_init, "RSA decryption")?;
        let (api, mut length) = (self.api, opened.len());
        let (out, from) = (opened.as_mut_ptr(), sealed.as_ptr());
        // SAFETY: the context is alive, and both lengths are those of their buffers.
        let done =
            unsafe { (api.EVP_PKEY_decrypt)(context.raw(), out, &mut length, from, sealed.len()) == 1 };
        api.ensure(done, "decrypting")?;
        Ok(&opened[..length])
    }

    fn key_bytes(&self) -> usize {
        self.key_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wheel;

    /// Other providers allocate exactly this much; more would be cleared for each operation and never used.
    #[test]
    fn a_ciphertext_has_the_room_that_it_takes() {
        let named = std::env::var("TOLLBAR_LIBCRYPTO").ok().or_else(wheel);
        let path = named.unwrap_or_else(|| "libcrypto.so.3".to_owned());
        let Ok(api) = Api::open(&path) else { return crate::lacking("this machine has no libcrypto") };
        let mut tried = 0;
        for (name, bytes) in [("ML-KEM-512", 768), ("ML-KEM-768", 1088), ("ML-KEM-1024", 1568)] {
            let Ok(shares) = Shares::of_kem(api, name) else { continue };
            let (_, public) = Kem::generate(&shares).expect("a key");
            let (ciphertext, _) = shares.encapsulate(&public).expect("a ciphertext");
            assert_eq!((bytes, bytes), (ciphertext.len(), ciphertext.capacity()), "{name}");
            tried += 1;
        }
        if tried == 0 {
            crate::skipped("this libcrypto has no ML-KEM; name a newer one in TOLLBAR_LIBCRYPTO");
        }
    }
}
