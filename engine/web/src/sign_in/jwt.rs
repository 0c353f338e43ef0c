//! JSON Web Tokens (RFC 7519) as bearer tokens: an issuer has signed the user's name and the expiry, and the
//! server verifies that without a look-up.
//!
//! `jsonwebtoken` does the work, as in many Rust servers, on the AWS-LC of the rest of the engine.

use std::path::{Path, PathBuf};

use aws_lc_rs::rand;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, encode, errors};
use serde::{Deserialize, Serialize};

use super::accounts::{Account, is_name};
use super::bearer::{BearerServer, HEADER};
use super::jwt_keys;
use super::scheme::{Client, Scheme, Server, Settings, Setup, Wrong, read_server};
use super::shown::{Issuer, RUN_OUT, RUNS_OUT_AFTER_S, ShownClient};
use super::verified::{CacheSpec, Identity, Verifier, by};
use crate::clock;
use crate::failure::Failure;

pub const SCHEME: Scheme = Scheme {
    name: "jwt",
    client,
    server: Some(server),
    keeps_state: false,
    has_sign_on: false,
    refused: &[
        Wrong::NoCredentials,
        Wrong::Own(EXPIRED),
        Wrong::Own(FORGED),
        Wrong::Own(UNSIGNED),
        Wrong::Own(ANOTHER_ALGORITHM),
        Wrong::Own(ANOTHER_AUDIENCE),
        Wrong::Own(RUN_OUT),
    ],
};

const EXPIRED: &str = "an expired token";
const FORGED: &str = "a forged signature";
const UNSIGNED: &str = "a token without a signature (alg none)";
/// Forgery with HS256, which would use a public key as its secret; if HS256 is the right algorithm, HS512.
const ANOTHER_ALGORITHM: &str = "a token by another algorithm with the verification key as its secret";
const ANOTHER_AUDIENCE: &str = "a token for another audience";

const ISSUER: &str = "https://issuer.tollbar.test";
const AUDIENCE: &str = "https://web.tollbar.test";
const LIFETIME_S: u64 = 3600;
/// Least length of a secret, that of the hash (RFC 7518, 3.2).
const LEAST_SECRET_BYTES: usize = 32;

#[derive(Deserialize, Debug, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Signature {
    Hs256,
    Rs256,
    Es256,
    EdDsa,
}

impl Signature {
    fn algorithm(self) -> Algorithm {
        match self {
            Signature::Hs256 => Algorithm::HS256,
            Signature::Rs256 => Algorithm::RS256,
            Signature::Es256 => Algorithm::ES256,
            Signature::EdDsa => Algorithm::EdDSA,
        }
    }

    /// Reads a signing key: a secret as it is, or a private key in PEM (PKCS #8).
    fn signing_key(self, key: &[u8]) -> errors::Result<EncodingKey> {
        match self {
            Signature::Hs256 => Ok(EncodingKey::from_secret(key)),
            Signature::Rs256 => EncodingKey::from_rsa_pem(key),
            Signature::Es256 => EncodingKey::from_ec_pem(key),
            Signature::EdDsa => EncodingKey::from_ed_pem(key),
        }
    }

    /// Reads a verification key: a secret as it is, or a public key in PEM (SPKI).
    fn verification_key(self, key: &[u8]) -> errors::Result<DecodingKey> {
        match self {
            Signature::Hs256 => Ok(DecodingKey::from_secret(key)),
            Signature::Rs256 => DecodingKey::from_rsa_pem(key),
            Signature::Es256 => DecodingKey::from_ec_pem(key),
            Signature::EdDsa => DecodingKey::from_ed_pem(key),
        }
    }

    /// Reads a key from a file.
    fn read<K>(
        self,
        path: &Path,
        parse: impl Fn(Signature, &[u8]) -> errors::Result<K>,
    ) -> Result<K, Failure> {
        let refuse = |why: String| Failure::Failed(format!("the key in {}: {why}", path.display()));
        let bytes = std::fs::read(path).map_err(|error| refuse(error.to_string()))?;
        if self == Signature::Hs256 && bytes.len() < LEAST_SECRET_BYTES {
            return Err(refuse(format!("the secret must have at least {LEAST_SECRET_BYTES} bytes")));
        }
        parse(self, &bytes).map_err(|error| refuse(error.to_string()))
    }
}

// Client half, with the issuer.

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClientSettings {
    signature: Signature,
    /// Key of the issuer.
    key: PathBuf,
    /// Key of the server, which a forgery misuses as a secret.
    verification_key: PathBuf,
}

#[derive(Serialize)]
struct Issued<'a> {
    iss: &'a str,
    sub: &'a str,
    aud: &'a str,
    exp: u64,
    iat: u64,
    jti: String,
}

struct TokenIssuer {
    algorithm: Algorithm,
    key: EncodingKey,
    verification_key: Vec<u8>,
    wrong: Option<&'static str>,
}

fn client(setup: &Setup) -> Result<Box<dyn Client>, Failure> {
    let ClientSettings { signature, key, verification_key } = setup.settings()?;
    let issuer = TokenIssuer {
        algorithm: signature.algorithm(),
        key: signature.read(&key, Signature::signing_key)?,
        verification_key: signature.read(&verification_key, |_, bytes| Ok(bytes.to_vec()))?,
        wrong: None,
    };
    // A key that cannot sign is refused now.
    let refuse = |why: String| Failure::Failed(format!("the key in {}: {why}", key.display()));
    issuer.issue(&Account { name: "u".to_owned(), password: String::new() }).map_err(refuse)?;
    ShownClient::made(setup, issuer)
}

impl Issuer for TokenIssuer {
    const HEADER: &'static str = HEADER;

    fn issue(&self, account: &Account) -> Result<String, String> {
        let mut jti = [0; 16];
        rand::fill(&mut jti).map_err(|_| "the system gives no random bytes")?;
        let mut iat = clock::unix_s();
        match self.wrong {
            Some(EXPIRED) => iat -= 2 * LIFETIME_S,
            Some(RUN_OUT) => iat -= LIFETIME_S + LEEWAY_S - RUNS_OUT_AFTER_S,
            _ => {}
        }
        let aud = if self.wrong == Some(ANOTHER_AUDIENCE) { "https://other.tollbar.test" } else { AUDIENCE };
        let claims = Issued {
            iss: ISSUER,
            sub: &account.name,
            aud,
            exp: iat + LIFETIME_S,
            iat,
            jti: hex::encode(jti),
        };
        let words = |error: errors::Error| error.to_string();
        let signed = || encode(&Header::new(self.algorithm), &claims, &self.key).map_err(words);
        match self.wrong {
            Some(UNSIGNED) => {
                let claims = serde_json::to_vec(&claims).map_err(|error| error.to_string())?;
                let header = URL_SAFE_NO_PAD.encode(r#"{"typ":"JWT","alg":"none"}"#);
                Ok(format!("{header}.{}.", URL_SAFE_NO_PAD.encode(claims)))
            }
            Some(ANOTHER_ALGORITHM) => {
                let is_hs256 = self.algorithm == Algorithm::HS256;
                let other = if is_hs256 { Algorithm::HS512 } else { Algorithm::HS256 };
                let key = EncodingKey::from_secret(&self.verification_key);
                encode(&Header::new(other), &claims, &key).map_err(words)
            }
            Some(FORGED) => signed().map(|mut token| {
                let signature = token.rfind('.').map_or(0, |dot| dot + 1);
                let other = if token[signature..].starts_with('A') { "B" } else { "A" };
                token.replace_range(signature..=signature, other);
                token
            }),
            _ => signed(),
        }
    }

    fn do_wrong(&mut self, wrong: &'static str) {
        self.wrong = Some(wrong);
    }
}

// Server half.

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerSettings {
    /// Only accepted algorithm (RFC 8725, 3.1).
    signature: Signature,
    verification_key: PathBuf,
    cache: Option<CacheSpec>,
}

struct Tokens {
    key: DecodingKey,
    validation: Validation,
}

fn server(settings: &Settings) -> Result<Box<dyn Server>, Failure> {
    let ServerSettings { signature, verification_key, cache } = read_server(settings)?;
    jwt_keys::keep();
    let key = signature.read(&verification_key, Signature::verification_key)?;
    let verifier = Tokens { key, validation: validation(signature) };
    Ok(BearerServer::of(by(verifier, cache)?))
}

/// Tolerance for clocks that differ.
const LEEWAY_S: u64 = 60;

/// Makes the rules for algorithm, issuer, audience and expiry.
fn validation(signature: Signature) -> Validation {
    let mut validation = Validation::new(signature.algorithm());
    validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
    validation.leeway = LEEWAY_S;
    validation.set_issuer(&[ISSUER]);
    validation.set_audience(&[AUDIENCE]);
    validation
}

#[derive(Deserialize)]
struct Claims {
    sub: String,
    exp: f64,
}

impl Verifier for Tokens {
    fn identity(&mut self, token: &[u8]) -> Result<Option<Identity>, String> {
        let decoded = decode::<Claims>(token, &self.key, &self.validation);
        let identity = |Claims { sub: name, exp }| {
            // A token is accepted up to and including that second.
            is_name(name.as_bytes()).then_some(Identity { name, expires_s: Some(exp as u64 + LEEWAY_S + 1) })
        };
        Ok(decoded.ok().and_then(|decoded| identity(decoded.claims)))
    }
}

#[cfg(test)]
pub mod tests {
    use base64::engine::general_purpose::STANDARD;
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    use rustls::server::ParsedCertificate;
    use serde_json::{Value, json};

    use super::*;
    use crate::alone;
    use crate::sign_in::lookup::database::tests::Folder;
    use crate::sign_in::tests::any_bytes;

    const SECRET: &str = "a secret of at least 32 characters";

    /// Returns each algorithm with the keys of the issuer and of the server as files contain them.
    pub fn keys() -> [(&'static str, String, String); 4] {
        let pair = |certificate: &str| {
            let identity = tollbar_testing::certificate(certificate);
            let leaf = CertificateDer::from_pem_slice(identity.chain_pem.as_bytes()).expect("a certificate");
            let leaf = ParsedCertificate::try_from(&leaf).expect("a certificate");
            let key = STANDARD.encode(leaf.subject_public_key_info());
            (identity.key_pem, format!("-----BEGIN PUBLIC KEY-----\n{key}\n-----END PUBLIC KEY-----\n"))
        };
        let of = |signature, (key, verification_key)| (signature, key, verification_key);
        [
            of("hs256", (SECRET.to_owned(), SECRET.to_owned())),
            of("rs256", pair("rsa-2048")),
            of("es256", pair("ecdsa-p256")),
            of("eddsa", pair("ed25519")),
        ]
    }

    fn tokens() -> Tokens {
        let key = DecodingKey::from_secret(SECRET.as_bytes());
        Tokens { key, validation: validation(Signature::Hs256) }
    }

    /// The forgery differs from the right signature in its first letter only, so that nothing else causes the
    /// refusal.
    #[test]
    fn a_forged_signature_is_wrong_in_one_letter() {
        let token = issued(Some(FORGED));
        let (signed, signature) = token.rsplit_once('.').expect("a signature");
        assert_eq!(2, signed.split('.').count());
        let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, SECRET.as_bytes());
        let right = URL_SAFE_NO_PAD.encode(aws_lc_rs::hmac::sign(&key, signed.as_bytes()));
        assert_eq!(right[1..], signature[1..]);
        assert_ne!(right[..1], signature[..1]);
    }

    /// Each required claim must be there, and right.
    #[test]
    fn a_token_is_taken_with_all_its_claims() {
        let now_s = clock::unix_s();
        let right = json!({"iss": ISSUER, "aud": AUDIENCE, "sub": "u1", "exp": now_s + 9});
        let user = |claims: &Value| {
            let key = EncodingKey::from_secret(SECRET.as_bytes());
            let token = encode(&Header::default(), claims, &key).expect("a token");
            tokens().identity(token.as_bytes()).expect("an answer").map(|identity| identity.name)
        };
        assert_eq!(Some("u1".to_owned()), user(&right));
        for (claim, wrong) in [
            ("iss", json!("https://other.test")),
            ("aud", json!("https://other.test")),
            ("sub", json!("a\r\nb")),
            ("sub", json!("")),
            ("exp", json!(now_s - 61)),
            ("exp", json!("tomorrow")),
        ] {
            let mut claims = right.clone();
            claims[claim] = wrong;
            assert_eq!(None, user(&claims), "{claims}");
            claims.as_object_mut().expect("claims").remove(claim);
            assert_eq!(None, user(&claims), "{claims}");
        }
    }

    fn issued(wrong: Option<&'static str>) -> String {
        let issuer = TokenIssuer {
            algorithm: Algorithm::HS256,
            key: EncodingKey::from_secret(SECRET.as_bytes()),
            verification_key: SECRET.into(),
            wrong,
        };
        issuer.issue(&Account { name: "u1".to_owned(), password: String::new() }).expect("a token")
    }

    /// Tokens expire an hour from now, in the past, or, with the leeway, during the wait of a proof.
    #[test]
    fn a_token_lasts_for_its_time() {
        for (wrong, from_s) in [
            (None, 0),
            (Some(EXPIRED), -2 * LIFETIME_S as i64),
            (Some(RUN_OUT), -((LIFETIME_S + LEEWAY_S - RUNS_OUT_AFTER_S) as i64)),
        ] {
            let (before_s, token) = (clock::unix_s() as i64, issued(wrong));
            let claims = token.split('.').nth(1).and_then(|claims| URL_SAFE_NO_PAD.decode(claims).ok());
            let claims: Value = serde_json::from_slice(&claims.expect("claims")).expect("an object");
            let since = |claim: &str| claims[claim].as_i64().expect("a time") - before_s;
            assert!((from_s..from_s + 9).contains(&since("iat")), "{wrong:?}: {claims}");
            assert_eq!(LIFETIME_S as i64, since("exp") - since("iat"));
        }
    }

    /// A remembered identity expires with its token, leeway included.
    #[test]
    fn an_identity_expires_when_its_token_is_taken_no_more() {
        let before_s = clock::unix_s();
        let identity = tokens().identity(issued(None).as_bytes()).expect("an answer").expect("a user");
        let left_s = identity.expires_s.expect("a time") - before_s;
        assert!((3661..3670).contains(&left_s), "{left_s}");
    }

    /// A server's process verifies tokens by the key that it has parsed once.
    #[test]
    fn a_server_verifies_by_keys_that_are_kept() {
        // If the process has issued or verified tokens before, the library keeps its first provider.
        if alone::tried_alone("sign_in::jwt::tests::a_server_verifies_by_keys_that_are_kept", &[]).is_some() {
            return;
        }
        let folder = Folder::new("jwt-kept");
        let key = folder.0.join("key");
        std::fs::write(&key, SECRET).expect("a file");
        let settings = json!({"signature": "hs256", "verification_key": key});
        assert!(server(settings.as_object().expect("an object")).is_ok());
        crate::calls::tallied();
        assert!(tokens().identity(issued(None).as_bytes()).expect("an answer").is_some());
        assert_eq!(Some(&1), crate::calls::tallied().get("signature verified"));
    }

    #[test]
    fn any_token_is_taken_for_none() {
        let mut tokens = tokens();
        for bytes in
            any_bytes(&[b"eyJhbGciOiJIUzI1NiJ9", b".", b"e30", b"eyJhbGciOiJub25lIn0", b"=", b"\xff"])
        {
            assert_eq!(Ok(None), tokens.identity(&bytes));
        }
    }

    /// A server or an issuer does not start if its key does not fit its algorithm.
    #[test]
    fn a_key_that_is_none_is_refused() {
        let folder = std::env::temp_dir().join(format!("tollbar-{}-jwt", std::process::id()));
        std::fs::create_dir(&folder).expect("a folder");
        let path = folder.join("key");
        for (signature, text) in [
            (Signature::Hs256, SECRET[..31].to_owned()),
            (Signature::Rs256, SECRET.to_owned()),
            (Signature::Es256, tollbar_testing::certificate("ed25519").key_pem),
            (Signature::EdDsa, tollbar_testing::certificate("ecdsa-p256").key_pem),
        ] {
            std::fs::write(&path, text).expect("a file");
            assert!(signature.read(&path, Signature::signing_key).is_err(), "{signature:?}");
            assert!(signature.read(&path, Signature::verification_key).is_err(), "{signature:?}");
        }
        std::fs::write(&path, &SECRET[..LEAST_SECRET_BYTES]).expect("a file");
        assert!(Signature::Hs256.read(&path, Signature::signing_key).is_ok());
        std::fs::remove_dir_all(&folder).expect("the folder");
    }
}
