//! Hashes of passwords, as text: LDAP's `{SHA}` and `{SSHA}`, bcrypt's `$2b$`, and Argon2id's `$argon2id$`.

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{Error, PasswordVerifier};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY, SHA1_OUTPUT_LEN};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::calls;

/// Returns true if a stored hash is that of a password, or an error if this server does not know its format.
pub fn matches(stored: &str, password: &[u8]) -> Result<bool, String> {
    calls::tally("password hash");
    let unknown = || "a stored hash must begin with {SHA}, {SSHA}, $2a$, $2b$, $2y$ or $argon2id$".to_owned();
    if let Some(text) = stored.strip_prefix("{SHA}").or_else(|| stored.strip_prefix("{SSHA}")) {
        let bytes = STANDARD.decode(text).map_err(|_| unknown())?;
        let (hash, salt) = bytes.split_at_checked(SHA1_OUTPUT_LEN).ok_or_else(unknown)?;
        let mut sha_1 = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
        sha_1.update(password);
        sha_1.update(salt);
        return Ok(verify_slices_are_equal(sha_1.finish().as_ref(), hash).is_ok());
    }
    if stored.starts_with("$argon2id$") {
        let hash = PasswordHash::new(stored).ok().filter(|hash| hash.hash.is_some()).ok_or_else(unknown)?;
        // The crate computes lanes on the threads of rayon; one is enough, because an idle one spends time
        // looking for work. This has no effect if a pool exists already.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(1).build_global();
        return match Argon2::default().verify_password(password, &hash) {
            Ok(()) => Ok(true),
            Err(Error::PasswordInvalid) => Ok(false),
            Err(_) => Err(unknown()),
        };
    }
    if stored.starts_with("$2") {
        // The comparison takes constant time.
        return bcrypt::verify(password, stored).map_err(|_| unknown());
    }
    Err(unknown())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hashes of other implementations: Python's hashlib, Apache's htpasswd, the reference implementation of
    /// Argon2.
    const KNOWN: &[&str] = &[
        "{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=",
        "{SSHA}Xgvcg8iHuLf395P3+UgzYh5nZ5UNj7ZWm3Alcg==",
        "$2y$04$NoTfs6YH4wfT1naXuX/Upu7mfrGgeBBaAzsaJOO17mdSIuSZ8VhU6",
        "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
    ];

    #[test]
    fn known_hashes_are_verified() {
        for stored in KNOWN {
            assert_eq!(Ok(true), matches(stored, b"password"), "{stored}");
            assert_eq!(Ok(false), matches(stored, b"passwore"), "{stored}");
            assert_eq!(Ok(false), matches(stored, b""), "{stored}");
            // The stored hash is not a password: stealing the table is not enough.
            assert_eq!(Ok(false), matches(stored, stored.as_bytes()), "{stored}");
        }
    }

    #[test]
    fn what_is_no_hash_is_refused() {
        for stored in KNOWN {
            for length in 0..stored.len() {
                let cut = matches(&stored[..length], b"password");
                assert_ne!(Ok(true), cut, "{}", &stored[..length]);
            }
        }
        for stored in
            ["", "password", "{SHA}", "{SSHA}????", "$2", "$2b$99$x", "$argon2id$v=19$m=0,t=0,p=0$$"]
        {
            assert!(matches(stored, b"password").is_err(), "{stored}");
        }
    }
}
