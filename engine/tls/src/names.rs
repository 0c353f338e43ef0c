//! Names of suites and groups: one table of a task's words, OpenSSL's names, and the registered names of the
//! specifications.

use super::spec::{Asked, Cipher, KeyExchange, MacOrder, Protocol, Signer};
use crate::failure::Failure;

/// Key exchange and authentication of a suite of TLS 1.2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SuiteKind {
    Rsa,
    DheRsa,
    EcdheRsa,
    EcdheEcdsa,
}

impl KeyExchange {
    /// Returns the registered name, which [`super::Negotiated::group`] contains.
    pub fn group(self) -> &'static str {
        match self {
            KeyExchange::Rsa => "RSA",
            KeyExchange::Dhe => "DHE",
            KeyExchange::EcdheP256 => "secp256r1",
            KeyExchange::EcdheP384 => "secp384r1",
            KeyExchange::X25519 => "x25519",
            KeyExchange::X25519MlKem768 => "X25519MLKEM768",
            KeyExchange::P256MlKem768 => "SecP256r1MLKEM768",
            KeyExchange::P384MlKem1024 => "SecP384r1MLKEM1024",
            KeyExchange::MlKem768 => "MLKEM768",
            KeyExchange::MlKem1024 => "MLKEM1024",
        }
    }

    /// Returns OpenSSL's name in a list of groups, or None if the exchange has no group.
    pub fn openssl(self) -> Option<&'static str> {
        match self {
            KeyExchange::Rsa | KeyExchange::Dhe => None,
            KeyExchange::EcdheP256 => Some("P-256"),
            KeyExchange::EcdheP384 => Some("P-384"),
            KeyExchange::X25519 => Some("X25519"),
            post_quantum => Some(post_quantum.group()),
        }
    }

    /// Returns true for ML-KEM, alone or combined with a curve. TLS 1.3 only.
    pub fn is_post_quantum(self) -> bool {
        use KeyExchange::{Dhe, EcdheP256, EcdheP384, Rsa, X25519};
        !matches!(self, Rsa | Dhe | EcdheP256 | EcdheP384 | X25519)
    }
}

impl Asked {
    /// Returns the parts of each suite of TLS 1.2 for the requested ciphers and kinds of certificate.
    pub fn suites_12(&self) -> Vec<(Cipher, SuiteKind)> {
        let kinds = match self.key_exchange {
            Some(KeyExchange::Rsa) => vec![SuiteKind::Rsa],
            Some(KeyExchange::Dhe) => vec![SuiteKind::DheRsa],
            Some(_) | None => vec![SuiteKind::EcdheEcdsa, SuiteKind::EcdheRsa],
        };
        let signed = |kind: &SuiteKind| self.signer.is_none_or(|signer| kind.is_signed_by(signer));
        let kinds: Vec<SuiteKind> = kinds.into_iter().filter(signed).collect();
        self.ciphers().flat_map(|cipher| kinds.iter().map(move |kind| (cipher, *kind))).collect()
    }

    /// Returns the registered names of all suites that meet the request, for each version that does.
    pub fn suites(&self) -> Vec<String> {
        let newer = self.ciphers().filter_map(Cipher::suite_13).map(str::to_owned);
        let older = self.suites_12().into_iter().filter_map(|(cipher, kind)| cipher.suite_12(kind));
        match self.protocol {
            None => newer.chain(older).collect(),
            Some(Protocol::Tls13) => newer.collect(),
            Some(Protocol::Tls12) => older.collect(),
        }
    }

    fn ciphers(&self) -> impl Iterator<Item = Cipher> {
        Cipher::all().into_iter().filter(|one| self.cipher.is_none_or(|cipher| cipher == *one))
    }

    /// Fails if no library can combine these.
    pub fn check(&self) -> Result<(), Failure> {
        let Some(protocol) = self.protocol else { return Ok(()) };
        let reason = match (protocol, self.key_exchange, self.cipher, self.signer) {
            (Protocol::Tls13, Some(KeyExchange::Rsa), ..) => "TLS 1.3 has no RSA key exchange",
            (Protocol::Tls13, Some(KeyExchange::Dhe), ..) => {
                "TLS 1.3 has no finite-field exchange over parameters of the server's own"
            }
            (Protocol::Tls13, _, Some(Cipher::Aes128Cbc), _) => "TLS 1.3 has no CBC suites",
            (Protocol::Tls12, Some(exchange), ..) if exchange.is_post_quantum() => {
                "TLS 1.2 has no post-quantum key exchange"
            }
            (Protocol::Tls12, _, _, Some(Signer::MlDsa)) => "TLS 1.2 has no ML-DSA certificates",
            (Protocol::Tls12, Some(KeyExchange::Rsa), Some(Cipher::ChaCha20Poly1305), _) => {
                "RSA key exchange has no suite with ChaCha20-Poly1305"
            }
            (
                Protocol::Tls12,
                Some(KeyExchange::Rsa | KeyExchange::Dhe),
                _,
                Some(Signer::Ecdsa | Signer::Ed25519),
            ) => "this key exchange has suites for RSA certificates only",
            _ => return Ok(()),
        };
        Err(Failure::Unsupported(reason.to_owned()))
    }
}

impl SuiteKind {
    fn is_signed_by(self, signer: Signer) -> bool {
        match self {
            SuiteKind::Rsa | SuiteKind::DheRsa | SuiteKind::EcdheRsa => signer == Signer::Rsa,
            // Ed25519 uses the suites of ECDSA (RFC 8422).
            SuiteKind::EcdheEcdsa => matches!(signer, Signer::Ecdsa | Signer::Ed25519),
        }
    }

    fn registered(self) -> &'static str {
        match self {
            SuiteKind::Rsa => "TLS_RSA",
            SuiteKind::DheRsa => "TLS_DHE_RSA",
            SuiteKind::EcdheRsa => "TLS_ECDHE_RSA",
            SuiteKind::EcdheEcdsa => "TLS_ECDHE_ECDSA",
        }
    }

    fn openssl(self) -> &'static str {
        match self {
            SuiteKind::Rsa => "",
            SuiteKind::DheRsa => "DHE-RSA-",
            SuiteKind::EcdheRsa => "ECDHE-RSA-",
            SuiteKind::EcdheEcdsa => "ECDHE-ECDSA-",
        }
    }
}

impl Cipher {
    pub fn all() -> [Cipher; 4] {
        [Cipher::Aes128Gcm, Cipher::Aes256Gcm, Cipher::Aes128Cbc, Cipher::ChaCha20Poly1305]
    }

    /// Returns the registered suite of TLS 1.3, which has no CBC.
    pub fn suite_13(self) -> Option<&'static str> {
        match self {
            Cipher::Aes128Gcm => Some("TLS_AES_128_GCM_SHA256"),
            Cipher::Aes256Gcm => Some("TLS_AES_256_GCM_SHA384"),
            Cipher::Aes128Cbc => None,
            Cipher::ChaCha20Poly1305 => Some("TLS_CHACHA20_POLY1305_SHA256"),
        }
    }

    /// Returns the registered suite of TLS 1.2; RSA key exchange has none with ChaCha20.
    pub fn suite_12(self, kind: SuiteKind) -> Option<String> {
        let tail = match self {
            Cipher::Aes128Gcm => "AES_128_GCM_SHA256",
            Cipher::Aes256Gcm => "AES_256_GCM_SHA384",
            Cipher::Aes128Cbc => "AES_128_CBC_SHA",
            Cipher::ChaCha20Poly1305 if kind == SuiteKind::Rsa => return None,
            Cipher::ChaCha20Poly1305 => "CHACHA20_POLY1305_SHA256",
        };
        Some(format!("{}_WITH_{tail}", kind.registered()))
    }

    /// Returns OpenSSL's name of the suite in a cipher list.
    pub fn openssl_12(self, kind: SuiteKind) -> Option<String> {
        let tail = match self {
            Cipher::Aes128Gcm => "AES128-GCM-SHA256",
            Cipher::Aes256Gcm => "AES256-GCM-SHA384",
            Cipher::Aes128Cbc => "AES128-SHA",
            Cipher::ChaCha20Poly1305 if kind == SuiteKind::Rsa => return None,
            Cipher::ChaCha20Poly1305 => "CHACHA20-POLY1305",
        };
        Some(format!("{}{tail}", kind.openssl()))
    }
}

impl Protocol {
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Tls12 => "TLS 1.2",
            Protocol::Tls13 => "TLS 1.3",
        }
    }
}

impl MacOrder {
    pub fn name(self) -> &'static str {
        match self {
            MacOrder::MacThenEncrypt => "MAC-then-encrypt",
            MacOrder::EncryptThenMac => "encrypt-then-MAC",
        }
    }
}

impl Signer {
    /// Returns the name of such a certificate's key, without its size.
    pub fn key(self) -> &'static str {
        match self {
            Signer::Rsa => "RSA",
            Signer::Ecdsa => "ECDSA",
            Signer::Ed25519 => "Ed25519",
            Signer::MlDsa => "ML-DSA",
        }
    }
}

/// Returns IANA's name of a group by its number on the wire.
pub fn group(number: u16) -> String {
    match number {
        0x0017 => "secp256r1".to_owned(),
        0x0018 => "secp384r1".to_owned(),
        0x0019 => "secp521r1".to_owned(),
        0x001d => "x25519".to_owned(),
        0x001e => "x448".to_owned(),
        0x0100 => "ffdhe2048".to_owned(),
        0x0101 => "ffdhe3072".to_owned(),
        0x0102 => "ffdhe4096".to_owned(),
        0x0201 => "MLKEM768".to_owned(),
        0x0202 => "MLKEM1024".to_owned(),
        0x11eb => "SecP256r1MLKEM768".to_owned(),
        0x11ec => "X25519MLKEM768".to_owned(),
        0x11ed => "SecP384r1MLKEM1024".to_owned(),
        other => format!("group {other:#06x}"),
    }
}
