//! Key exchanges: everything that one side of a TLS handshake pays for agreeing on a secret.

mod diffie_hellman;
mod encapsulation;
mod transport;

use super::api::Api;
use super::keys::{self, Kind};
use crate::contract::{Failure, Task};
use crate::operation::Operation;

use diffie_hellman::DiffieHellman;
use encapsulation::Encapsulation;
use transport::Transport;

#[derive(Clone, Copy)]
enum How {
    /// Both sides generate a key, read the other's, and derive.
    DiffieHellman(Kind),
    /// The client generates and decapsulates; the server encapsulates to the client's key.
    Encapsulation(&'static str),
    /// The client encrypts a secret to the server's key; the server decrypts it. TLS 1.2 without forward secrecy.
    Transport,
}

const EXCHANGES: &[(&str, How)] = &[
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
            Ok(Box::new(DiffieHellman::new(api, kind, Known::read(task, "private", "peer")?)?))
        }
        How::Encapsulation(name) => {
            let mut exchange = Encapsulation::new(api, name, client)?;
            exchange.known = match encapsulation::hybrid_private(api, task)? {
                Some(private) => Some(Known { private, peer: task.need_hex("ciphertext")? }),
                None => Known::read(task, "private", "ciphertext")?,
            };
            Ok(Box::new(exchange))
        }
        How::Transport => {
            let known = task.hex("ciphertext")?;
            Ok(Box::new(Transport::new(api, keys::given(api, task)?, client, known, task.seed)?))
        }
    }
}

/// The inputs of a known answer: one side's private key, and what the other side sent.
pub struct Known {
    pub private: Vec<u8>,
    pub peer: Vec<u8>,
}

impl Known {
    pub fn read(task: &Task, private: &str, peer: &str) -> Result<Option<Known>, Failure> {
        let Some(private) = task.hex(private)? else { return Ok(None) };
        Ok(Some(Known { private, peer: task.need_hex(peer)? }))
    }
}
