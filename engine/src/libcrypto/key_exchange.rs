//! Key exchanges: everything that one side of a TLS handshake pays for agreeing on a secret.

use std::ffi::c_int;

use super::api::{Api, Owned, Param, c_name, have};
use super::keys::{self, Kind};
use super::signature::set_pkcs1;
use crate::buffers::{filled, tampered};
use crate::contract::{Failure, Proof, Task};
use crate::operation::Operation;

#[derive(Clone, Copy)]
enum How {
    /// Both sides generate a key, read the other's, and derive.
    DiffieHellman(Kind),
    /// The client generates and decapsulates; the server encapsulates to the client's key.
    Encapsulation(&'static str),
    /// The client encrypts a secret to the server's key; the server decrypts it. TLS 1.2 without forward secrecy.
    Transport,
}

const EXCHANGES: [(&str, How); 12] = [
    ("ffdhe2048", How::DiffieHellman(Kind::Group("ffdhe2048"))),
    ("ffdhe3072", How::DiffieHellman(Kind::Group("ffdhe3072"))),
    ("ecdh-p256", How::DiffieHellman(Kind::Curve("prime256v1"))),
    ("ecdh-p384", How::DiffieHellman(Kind::Curve("secp384r1"))),
    ("x25519", How::DiffieHellman(Kind::Named("X25519"))),
    ("x448", How::DiffieHellman(Kind::Named("X448"))),
    ("rsa-2048", How::Transport),
    ("rsa-3072", How::Transport),
    ("ml-kem-512", How::Encapsulation("ML-KEM-512")),
    ("ml-kem-768", How::Encapsulation("ML-KEM-768")),
    ("ml-kem-1024", How::Encapsulation("ML-KEM-1024")),
    ("x25519mlkem768", How::Encapsulation("X25519MLKEM768")),
];

/// TLS 1.2's premaster secret.
const PREMASTER_BYTES: usize = 48;
/// The longest of any share, ciphertext or secret here is ML-KEM-1024's 1,568 bytes.
const LONGEST: usize = 2048;

pub fn offers(api: &'static Api) -> Vec<&'static str> {
    let offered = |how: How| match how {
        How::DiffieHellman(kind) => keys::generate(api, kind, None).is_ok(),
        How::Encapsulation(name) => keys::generate(api, Kind::Named(name), None).is_ok(),
        How::Transport => true,
    };
    EXCHANGES.iter().filter(|row| offered(row.1)).map(|row| row.0).collect()
}

pub fn prepare(api: &'static Api, task: &Task) -> Result<Box<dyn Operation>, Failure> {
    let row = EXCHANGES.iter().find(|row| row.0 == task.choice);
    let how = row
        .map(|row| row.1)
        .ok_or_else(|| Failure::Unsupported(format!("libcrypto has no key exchange {}", task.choice)))?;
    let client = match task.op.as_str() {
        "client" => true,
        "server" => false,
        op => return Err(Failure::Failed(format!("a key exchange has no `{op}` (client, server)"))),
    };
    match how {
        How::DiffieHellman(kind) => {
            let peer_key = keys::generate(api, kind, None)?;
            let peer_share = keys::encoded_public(api, &peer_key)?;
            let known = Known::read(task, "private", "peer")?;
            Ok(Box::new(DiffieHellman { api, kind, peer_key, peer_share, known }))
        }
        How::Encapsulation(name) => {
            let known = if task.choice == "x25519mlkem768" { None } else { Known::read(task, "private", "ciphertext")? };
            Encapsulation::new(api, name, client, known)
        }
        How::Transport => {
            let known = task.hex("ciphertext")?;
            Transport::new(api, keys::given(api, task)?, client, known, task.seed)
        }
    }
}

struct Known {
    private: Vec<u8>,
    peer: Vec<u8>,
}

impl Known {
    fn read(task: &Task, private: &str, peer: &str) -> Result<Option<Known>, Failure> {
        let Some(private) = task.hex(private)? else { return Ok(None) };
        Ok(Some(Known { private, peer: task.need_hex(peer)? }))
    }
}

fn derive(api: &Api, own: &Owned, peer: &Owned) -> Result<Vec<u8>, Failure> {
    let context = keys_context(api, own)?;
    let (mut secret, mut length) = ([0; LONGEST], LONGEST);
    let done = unsafe {
        (api.EVP_PKEY_derive_init)(context.handle) == 1
            && (api.EVP_PKEY_derive_set_peer)(context.handle, peer.handle) == 1
            && (api.EVP_PKEY_derive)(context.handle, secret.as_mut_ptr(), &mut length) == 1
    };
    if done { Ok(secret[..length].to_vec()) } else { Err(api.failed("the secret cannot be derived")) }
}

fn keys_context(api: &Api, key: &Owned) -> Result<Owned, Failure> {
    let context = unsafe { (api.EVP_PKEY_CTX_new)(key.handle, std::ptr::null_mut()) };
    Owned::new(context, api.EVP_PKEY_CTX_free).ok_or_else(|| api.failed("EVP_PKEY_CTX_new"))
}

/// Client and server pay the same.
struct DiffieHellman {
    api: &'static Api,
    kind: Kind,
    peer_key: Owned,
    peer_share: Vec<u8>,
    known: Option<Known>,
}

impl DiffieHellman {
    fn exchange(&self) -> Result<(Owned, Vec<u8>), Failure> {
        let own = keys::generate(self.api, self.kind, None)?;
        let peer = keys::peer(self.api, &own, &self.peer_share)?;
        let secret = derive(self.api, &own, &peer)?;
        Ok((own, secret))
    }

    /// The private key of a known answer.
    fn private(&self, private: &[u8]) -> Result<Owned, Failure> {
        let api = self.api;
        let key = match self.kind {
            Kind::Named(name) => {
                let number = unsafe { (api.OBJ_sn2nid)(c_name(name).as_ptr()) };
                let new = have(api.EVP_PKEY_new_raw_private_key, "EVP_PKEY_new_raw_private_key")?;
                unsafe { new(number, std::ptr::null_mut(), private.as_ptr(), private.len()) }
            }
            Kind::Curve(curve) => {
                let document = [curve_prefix(curve), private].concat();
                let mut at = document.as_ptr();
                unsafe { (api.d2i_AutoPrivateKey)(std::ptr::null_mut(), &mut at, document.len() as _) }
            }
            Kind::Group(group) => {
                let number: Vec<u8> = private.iter().rev().copied().collect();
                let group = c_name(group);
                return key_from_data(api, "DH", vec![Param::utf8(c"group", &group), Param::number(c"priv", &number)]);
            }
            Kind::Rsa { .. } | Kind::Dsa => std::ptr::null_mut(),
        };
        keys::own(api, key, "the known answer's private key cannot be read")
    }
}

/// PKCS#8 around a bare scalar: what stands before it.
fn curve_prefix(curve: &str) -> &'static [u8] {
    match curve {
        "prime256v1" => &[
            0x30, 0x41, 0x02, 0x01, 0x00, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06,
            0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x04, 0x27, 0x30, 0x25, 0x02, 0x01, 0x01, 0x04, 0x20,
        ],
        _ => &[
            0x30, 0x4e, 0x02, 0x01, 0x00, 0x30, 0x10, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06,
            0x05, 0x2b, 0x81, 0x04, 0x00, 0x22, 0x04, 0x37, 0x30, 0x35, 0x02, 0x01, 0x01, 0x04, 0x30,
        ],
    }
}

/// A key from bare values, as OpenSSL 3 takes them.
pub fn key_from_data(api: &'static Api, name: &str, mut values: Vec<Param>) -> Result<Owned, Failure> {
    const EVP_PKEY_KEYPAIR: c_int = 0x87;
    let null = std::ptr::null_mut();
    let new = have(api.EVP_PKEY_CTX_new_from_name, "EVP_PKEY_CTX_new_from_name")?;
    let (init, from_data) = (have(api.EVP_PKEY_fromdata_init, "EVP_PKEY_fromdata")?, api.EVP_PKEY_fromdata);
    let context = Owned::new(unsafe { new(null, c_name(name).as_ptr(), std::ptr::null()) }, api.EVP_PKEY_CTX_free);
    let context = context.ok_or_else(|| api.unsupported(name))?;
    values.push(Param::end());
    let mut key = null;
    let done = unsafe {
        init(context.handle) == 1
            && have(from_data, "EVP_PKEY_fromdata")?(context.handle, &mut key, EVP_PKEY_KEYPAIR, values.as_mut_ptr()) == 1
    };
    if done { keys::own(api, key, "EVP_PKEY_fromdata") } else { Err(api.failed("EVP_PKEY_fromdata")) }
}

impl Operation for DiffieHellman {
    fn perform(&mut self) -> Result<(), Failure> {
        std::hint::black_box(self.exchange()?);
        Ok(())
    }

    fn prove(&mut self) -> Result<Proof, Failure> {
        let mut proof = Proof::default();
        let (own, secret) = self.exchange()?;
        let theirs = derive(self.api, &self.peer_key, &keys::peer(self.api, &self.peer_key, &keys::encoded_public(self.api, &own)?)?)?;
        proof.accept("the same secret on both sides", secret == theirs)?;
        proof.refuse("the same secret twice", self.exchange()?.1 != secret)?;
        if let Some(known) = &self.known {
            let private = self.private(&known.private)?;
            let peer = keys::peer(self.api, &self.peer_key, &known.peer)?;
            // A finite-field secret may begin with zeros, which some versions leave out.
            let secret = derive(self.api, &private, &peer)?;
            let length = if matches!(self.kind, Kind::Group(_)) { known.peer.len() } else { secret.len() };
            proof.answer = Some(format!("{:0>width$}", hex::encode(secret), width = 2 * length));
        }
        Ok(proof)
    }
}

/// A key encapsulation mechanism, hybrids included.
struct Encapsulation {
    api: &'static Api,
    name: &'static str,
    client: bool,
    /// The other side's key: what a server encapsulates to. Only its parameters serve a client.
    peer_key: Owned,
    peer_share: Vec<u8>,
    /// A ciphertext of the right form.
    sealed: Vec<u8>,
    known: Option<Known>,
}

impl Encapsulation {
    fn new(
        api: &'static Api,
        name: &'static str,
        client: bool,
        known: Option<Known>,
    ) -> Result<Box<dyn Operation>, Failure> {
        let peer_key = keys::generate(api, Kind::Named(name), None)?;
        let peer_share = keys::encoded_public(api, &peer_key)?;
        let mut exchange = Encapsulation { api, name, client, peer_key, peer_share, sealed: Vec::new(), known };
        exchange.sealed = exchange.encapsulate(&exchange.peer_share)?.0;
        Ok(Box::new(exchange))
    }

    /// The server's part: reads the client's share, gives (ciphertext, secret).
    fn encapsulate(&self, share: &[u8]) -> Result<(Vec<u8>, Vec<u8>), Failure> {
        let api = self.api;
        let key = keys::peer(api, &self.peer_key, share)?;
        let context = keys_context(api, &key)?;
        let init = have(api.EVP_PKEY_encapsulate_init, "EVP_PKEY_encapsulate")?;
        let encapsulate = have(api.EVP_PKEY_encapsulate, "EVP_PKEY_encapsulate")?;
        let (mut sealed, mut secret) = ([0; LONGEST], [0; LONGEST]);
        let (mut sealed_length, mut secret_length) = (LONGEST, LONGEST);
        let done = unsafe {
            init(context.handle, std::ptr::null()) == 1
                && encapsulate(
                    context.handle,
                    sealed.as_mut_ptr(),
                    &mut sealed_length,
                    secret.as_mut_ptr(),
                    &mut secret_length,
                ) == 1
        };
        if !done {
            return Err(api.failed("encapsulate"));
        }
        Ok((sealed[..sealed_length].to_vec(), secret[..secret_length].to_vec()))
    }

    fn decapsulate(&self, key: &Owned, sealed: &[u8]) -> Result<Vec<u8>, Failure> {
        let api = self.api;
        let context = keys_context(api, key)?;
        let init = have(api.EVP_PKEY_decapsulate_init, "EVP_PKEY_decapsulate")?;
        let decapsulate = have(api.EVP_PKEY_decapsulate, "EVP_PKEY_decapsulate")?;
        let (mut secret, mut length) = ([0; LONGEST], LONGEST);
        let done = unsafe {
            init(context.handle, std::ptr::null()) == 1
                && decapsulate(context.handle, secret.as_mut_ptr(), &mut length, sealed.as_ptr(), sealed.len()) == 1
        };
        if done { Ok(secret[..length].to_vec()) } else { Err(api.failed("decapsulate")) }
    }
}

impl Operation for Encapsulation {
    fn perform(&mut self) -> Result<(), Failure> {
        if self.client {
            let own = keys::generate(self.api, Kind::Named(self.name), None)?;
            // What the ciphertext holds does not change the time, so one that was made for another key
            // serves: implicit rejection gives a secret that nobody shares.
            std::hint::black_box(self.decapsulate(&own, &self.sealed)?);
        } else {
            std::hint::black_box(self.encapsulate(&self.peer_share)?);
        }
        Ok(())
    }

    fn prove(&mut self) -> Result<Proof, Failure> {
        let mut proof = Proof::default();
        let (sealed, secret) = self.encapsulate(&self.peer_share)?;
        proof.accept("the same secret on both sides", self.decapsulate(&self.peer_key, &sealed)? == secret)?;
        // ML-KEM answers a wrong ciphertext with a secret of its own (implicit rejection).
        let wrong = self.decapsulate(&self.peer_key, &tampered(&sealed));
        self.api.clear_errors();
        proof.refuse("a tampered ciphertext", wrong.map_or(true, |other| other != secret))?;
        if let Some(known) = &self.known {
            let key = key_from_data(self.api, self.name, vec![Param::octets(c"priv", &known.private)])?;
            proof.answer = Some(hex::encode(self.decapsulate(&key, &known.peer)?));
        }
        Ok(proof)
    }
}

/// RSA key transport.
struct Transport {
    api: &'static Api,
    client: bool,
    context: Owned,
    _key: Owned,
    secret: Vec<u8>,
    sealed: Vec<u8>,
    known: Option<Vec<u8>>,
}

impl Transport {
    fn new(
        api: &'static Api,
        key: Owned,
        client: bool,
        known: Option<Vec<u8>>,
        seed: u64,
    ) -> Result<Box<dyn Operation>, Failure> {
        let context = keys_context(api, &key)?;
        let ready = unsafe { (api.EVP_PKEY_encrypt_init)(context.handle) } == 1 && set_pkcs1(api, context.handle);
        if !ready {
            return Err(api.unsupported("RSA encryption"));
        }
        let secret = filled(PREMASTER_BYTES, seed);
        let mut transport = Transport { api, client, context, _key: key, secret, sealed: Vec::new(), known };
        transport.sealed = transport.encrypt()?;
        if !client {
            let context = transport.context.handle;
            let ready = unsafe { (api.EVP_PKEY_decrypt_init)(context) } == 1 && set_pkcs1(api, context);
            if !ready {
                return Err(api.unsupported("RSA decryption"));
            }
        }
        Ok(Box::new(transport))
    }

    fn encrypt(&self) -> Result<Vec<u8>, Failure> {
        let (mut out, mut length) = ([0; LONGEST], LONGEST);
        let (secret, size) = (self.secret.as_ptr(), self.secret.len());
        let done =
            unsafe { (self.api.EVP_PKEY_encrypt)(self.context.handle, out.as_mut_ptr(), &mut length, secret, size) };
        if done == 1 { Ok(out[..length].to_vec()) } else { Err(self.api.failed("EVP_PKEY_encrypt")) }
    }

    fn decrypt(&self, context: &Owned, sealed: &[u8]) -> Result<Vec<u8>, Failure> {
        let (mut out, mut length) = ([0; LONGEST], LONGEST);
        let decrypt = self.api.EVP_PKEY_decrypt;
        let done =
            unsafe { decrypt(context.handle, out.as_mut_ptr(), &mut length, sealed.as_ptr(), sealed.len()) };
        if done == 1 { Ok(out[..length].to_vec()) } else { Err(self.api.failed("EVP_PKEY_decrypt")) }
    }
}

impl Operation for Transport {
    fn perform(&mut self) -> Result<(), Failure> {
        if self.client {
            std::hint::black_box(self.encrypt()?);
            return Ok(());
        }
        let secret = self.decrypt(&self.context, &self.sealed)?;
        if secret == self.secret { Ok(()) } else { Err(Failure::Failed("another secret came out".to_owned())) }
    }

    fn prove(&mut self) -> Result<Proof, Failure> {
        let mut proof = Proof::default();
        let api = self.api;
        let context = keys_context(api, &self._key)?;
        if unsafe { (api.EVP_PKEY_decrypt_init)(context.handle) } != 1 || !set_pkcs1(api, context.handle) {
            return Err(api.unsupported("RSA decryption"));
        }
        let opens = self.decrypt(&context, &self.sealed)?;
        proof.accept("the same secret on both sides", opens == self.secret)?;
        // A padding that fails is an error in some versions, and a random secret in others.
        let mut wrong = self.sealed.clone();
        if let Some(last) = wrong.last_mut() {
            *last ^= 1;
        }
        let other = self.decrypt(&context, &wrong);
        api.clear_errors();
        proof.refuse("a tampered ciphertext", other.map_or(true, |other| other != self.secret))?;
        if let Some(known) = &self.known {
            proof.answer = Some(hex::encode(self.decrypt(&context, known)?));
        }
        Ok(proof)
    }
}
