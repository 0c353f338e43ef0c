//! Requested parameters of a client or a server, and the parameters of a connection.

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
    /// Encryption of a secret to the certificate's key by the client. TLS 1.2 only.
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
    /// AES-CBC with HMAC-SHA-1. TLS 1.2 only.
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

/// Algorithm of a certificate's key: a client offers to verify it, and thereby selects the certificate that
/// it gets.
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
    /// rustls if it supports the request, otherwise libssl.
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

/// Requested parameters of a connection; None leaves one to the library.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    pub protocol: Option<Protocol>,
    pub key_exchange: Option<KeyExchange>,
    pub cipher: Option<Cipher>,
    /// Kind of certificate.
    pub signer: Option<Signer>,
}

/// Settings of a client.
#[derive(Deserialize, Debug, Clone)]
#[serde(deny_unknown_fields)]
pub struct ClientSpec {
    #[serde(default)]
    pub library: Library,
    /// Libcrypto whose libssl is in the same folder; None: the system's.
    pub libcrypto: Option<String>,
    /// Version; None accepts every version, which only a user's own server is asked for.
    pub protocol: Option<Protocol>,
    pub key_exchange: Option<KeyExchange>,
    pub cipher: Option<Cipher>,
    /// Order of MAC and encryption; None: as the library negotiates it.
    #[serde(default)]
    pub mac_order: Option<MacOrder>,
    pub signer: Option<Signer>,
    /// Certificate that the server must present, as PEM; None: the first one seen is pinned.
    pub certificate_pem: Option<String>,
    /// Bits of a server's RSA key; below 2048 rustls refuses it. 0: not given.
    #[serde(default)]
    pub rsa_bits: u32,
    /// Client's certificate, for mutual TLS.
    pub identity: Option<Identity>,
    /// Certificate that the client's authority has revoked: a server must refuse it.
    pub revoked: Option<Identity>,
    /// True if sessions are kept and resumed.
    #[serde(default)]
    pub resume: bool,
    /// Server's name, sent as SNI unless it is `localhost` or an address. Only the certificate is checked,
    /// not the name.
    #[serde(default = "localhost")]
    pub name: String,
}

/// Settings of a server.
#[derive(Deserialize, Debug, Clone)]
#[serde(deny_unknown_fields)]
pub struct ServerSpec {
    #[serde(default)]
    pub library: Library,
    pub libcrypto: Option<String>,
    /// Version; None for it, the key exchange or the cipher: the library's default.
    pub protocol: Option<Protocol>,
    pub key_exchange: Option<KeyExchange>,
    pub cipher: Option<Cipher>,
    /// Order of MAC and encryption; None: as the client offers it.
    #[serde(default)]
    pub mac_order: Option<MacOrder>,
    /// `DH PARAMETERS` as PEM, if the key exchange is `dhe`.
    pub dh_parameters_pem: Option<String>,
    /// Certificates of one or several kinds: the client's offer selects one.
    pub identities: Vec<Identity>,
    #[serde(default)]
    pub resumption: Resumption,
    /// Authority that must have signed the clients' certificates, as PEM.
    pub client_authority_pem: Option<String>,
    /// Authority's list of revoked certificates (CRL), as PEM.
    pub client_revocations_pem: Option<String>,
}

/// Tickets that a server gives a connection of TLS 1.3, if sessions can be resumed: a resumption uses one. By
/// default OpenSSL gives two, or one after a resumption, and rustls always two; each costs the sealing or
/// storing of a session.
pub const TICKETS: usize = 1;

#[derive(Deserialize, Serialize, Debug, Clone, Copy, PartialEq, Eq, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Resumption {
    #[default]
    None,
    /// Sessions stored in the server; in TLS 1.3 a pre-shared key whose ticket only identifies the stored
    /// session.
    SessionId,
    /// Sessions that the client stores, sealed; in TLS 1.3 a pre-shared key in a self-contained ticket.
    Ticket,
}

fn localhost() -> String {
    "localhost".to_owned()
}

impl std::fmt::Debug for Identity {
    /// Formats the chain without the key.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Identity").field("chain_pem", &self.chain_pem).finish_non_exhaustive()
    }
}

/// Parameters that two sides agreed on, by the names of the specifications.
#[derive(Serialize, Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Negotiated {
    /// Version, for example `TLS 1.3`.
    pub version: String,
    /// Registered name of the suite, whatever the library's: `TLS_AES_128_GCM_SHA256`,
    /// `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256`.
    pub suite: String,
    /// MAC order of a client's connection with a CBC suite; None for other suites and for servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac_order: Option<MacOrder>,
    /// Group: `x25519`, `secp256r1`, `X25519MLKEM768`, `DHE 2048 bits`, `RSA`; empty if a resumption had no
    /// key exchange.
    pub group: String,
    /// SHA-256 of the server's certificate in DER, in hexadecimal.
    pub certificate: String,
    /// Certificate's key: `RSA 2048`, `ECDSA P-256`, `Ed25519`, `ML-DSA-65`; empty if the key is of another
    /// kind.
    pub certificate_key: String,
    /// Bytes in DER of all certificates that the server sent to this client; 0 if a session was resumed.
    pub certificate_bytes: u64,
    pub resumed: bool,
}

/// Parameters that two sides agreed on, by their numbers on the wire, to compare agreements without names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreement {
    pub version: u16,
    pub suite: u16,
    pub group: u16,
    pub resumed: bool,
}
