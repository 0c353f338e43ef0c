//! What a client or a server is asked for, and what a connection turned out to be.

use serde::{Deserialize, Serialize};

#[derive(Deserialize, Serialize, Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    #[serde(rename = "tls-1.2")]
    Tls12,
    #[serde(rename = "tls-1.3")]
    Tls13,
}

#[derive(Deserialize, Serialize, Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "kebab-case")]
pub enum KeyExchange {
    /// The client encrypts a secret to the certificate's key. TLS 1.2 only.
    Rsa,
    /// Ephemeral finite-field Diffie–Hellman. TLS 1.2 only; the parameters are the server's.
    Dhe,
    EcdheP256,
    EcdheP384,
    X25519,
    #[serde(rename = "x25519mlkem768")]
    X25519MlKem768,
    #[serde(rename = "secp256r1mlkem768")]
    P256MlKem768,
    #[serde(rename = "secp384r1mlkem1024")]
    P384MlKem1024,
    #[serde(rename = "mlkem768")]
    MlKem768,
    #[serde(rename = "mlkem1024")]
    MlKem1024,
}

#[derive(Deserialize, Serialize, Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cipher {
    #[serde(rename = "aes-128-gcm")]
    Aes128Gcm,
    #[serde(rename = "aes-256-gcm")]
    Aes256Gcm,
    /// With HMAC-SHA-1. TLS 1.2 only.
    #[serde(rename = "aes-128-cbc")]
    Aes128Cbc,
    #[serde(rename = "chacha20-poly1305")]
    ChaCha20Poly1305,
}

/// Order in the records of a CBC suite of TLS 1.2: MAC first (RFC 5246) or encryption first (RFC 7366).
#[derive(Deserialize, Serialize, Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "kebab-case")]
pub enum MacOrder {
    MacThenEncrypt,
    /// An extension that a client offers and a server accepts.
    EncryptThenMac,
}

/// The algorithm of a certificate's key: what a client offers to verify, and with it which certificate it gets.
#[derive(Deserialize, Serialize, Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "kebab-case")]
pub enum Signer {
    Rsa,
    Ecdsa,
    #[serde(rename = "ed25519")]
    Ed25519,
    MlDsa,
}

#[derive(Deserialize, Serialize, Debug, Clone, Copy, PartialEq, Eq, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Library {
    /// rustls where it speaks what is asked, else libssl.
    #[default]
    Auto,
    Rustls,
    Libssl,
}

/// A certificate chain and its key, as PEM.
#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    pub chain_pem: String,
    pub key_pem: String,
}

/// What a connection is to be like; None leaves it to the library.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    pub protocol: Option<Protocol>,
    pub key_exchange: Option<KeyExchange>,
    pub cipher: Option<Cipher>,
    /// The kind of certificate.
    pub signer: Option<Signer>,
}

/// How a client connects.
#[derive(Deserialize, Debug, Clone)]
#[serde(deny_unknown_fields)]
pub struct ClientSpec {
    #[serde(default)]
    pub library: Library,
    /// A libcrypto whose libssl lies beside it; None: the system's.
    pub libcrypto: Option<String>,
    /// None where anything the server speaks will do, which only a server of the user's own is asked.
    pub protocol: Option<Protocol>,
    pub key_exchange: Option<KeyExchange>,
    pub cipher: Option<Cipher>,
    /// None: as the library negotiates it.
    #[serde(default)]
    pub mac_order: Option<MacOrder>,
    pub signer: Option<Signer>,
    /// The certificate that the server must present, as PEM; None: the first one seen is held to from then on.
    pub certificate_pem: Option<String>,
    /// The bits of a server's RSA key; below 2048 rustls refuses it. 0: not said.
    #[serde(default)]
    pub rsa_bits: u32,
    /// What the client shows of itself, for mutual TLS.
    pub identity: Option<Identity>,
    /// What the client's authority has revoked: a server has to refuse it.
    pub revoked: Option<Identity>,
    /// Whether sessions are kept and resumed.
    #[serde(default)]
    pub resume: bool,
    /// The server's name, sent as SNI unless it is `localhost` or an address. It is the certificate that is checked.
    #[serde(default = "localhost")]
    pub name: String,
}

/// How a server accepts.
#[derive(Deserialize, Debug, Clone)]
#[serde(deny_unknown_fields)]
pub struct ServerSpec {
    #[serde(default)]
    pub library: Library,
    pub libcrypto: Option<String>,
    /// None here, of the key exchange or of the cipher: as the library has it by itself.
    pub protocol: Option<Protocol>,
    pub key_exchange: Option<KeyExchange>,
    pub cipher: Option<Cipher>,
    /// None: as the client offers it.
    #[serde(default)]
    pub mac_order: Option<MacOrder>,
    /// `DH PARAMETERS` as PEM, where the key exchange is `dhe`.
    pub dh_parameters_pem: Option<String>,
    /// One, or several of different kinds: chosen by what the client offers.
    pub identities: Vec<Identity>,
    #[serde(default)]
    pub resumption: Resumption,
    /// Clients must show a certificate that this authority signed, as PEM.
    pub client_authority_pem: Option<String>,
    /// Certificates that the authority has revoked: its list (CRL), as PEM.
    pub client_revocations_pem: Option<String>,
}

/// Tickets that a server gives a connection of TLS 1.3, where sessions can be resumed: as many as a resumption takes.
/// By themselves OpenSSL gives two, or one where it resumed a session, and rustls always two; each costs what sealing,
/// or remembering, a session costs.
pub const TICKETS: usize = 1;

#[derive(Deserialize, Serialize, Debug, Clone, Copy, PartialEq, Eq, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Resumption {
    #[default]
    None,
    /// The server remembers; in TLS 1.3 a pre-shared key whose ticket is only a name for what it remembers.
    SessionId,
    /// The client carries the session, sealed; in TLS 1.3 a pre-shared key in a self-contained ticket.
    Ticket,
}

fn localhost() -> String {
    "localhost".to_owned()
}

impl std::fmt::Debug for Identity {
    /// Without the key.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Identity").field("chain_pem", &self.chain_pem).finish_non_exhaustive()
    }
}

/// What two sides agreed on, in the names of the specifications.
#[derive(Serialize, Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Negotiated {
    /// `TLS 1.3`
    pub version: String,
    /// `TLS_AES_128_GCM_SHA256`, `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256`: the registered name, whatever the library's.
    pub suite: String,
    /// MAC order of a client's connection with a CBC suite; None for other suites and for servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac_order: Option<MacOrder>,
    /// `x25519`, `secp256r1`, `X25519MLKEM768`, `DHE 2048 bits`, `RSA`; empty where a resumption had no key exchange.
    pub group: String,
    /// SHA-256 of the server's certificate in DER, in hexadecimal.
    pub certificate: String,
    /// `RSA 2048`, `ECDSA P-256`, `Ed25519`, `ML-DSA-65`, as read from the certificate's key where that is easy; else empty.
    pub certificate_key: String,
    /// Bytes in DER of all certificates that the server showed this client; none where a session was resumed.
    pub certificate_bytes: u64,
    pub resumed: bool,
}

/// What two sides agreed on, by the numbers on the wire: to tell one agreement from another, without names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreement {
    pub version: u16,
    pub suite: u16,
    pub group: u16,
    pub resumed: bool,
}
