//! OpenPGP keys (RFC 4880) for a database that encrypts to them: an RSA key as a primary key, a user and a
//! subkey to encrypt to. They have no signatures: the maker of the key knows it, and the database does not
//! check them.

use std::time::{SystemTime, UNIX_EPOCH};

use getrandom::SysRng;
use getrandom::rand_core::UnwrapErr;
use rsa::RsaPrivateKey;
use rsa::pkcs1::{EncodeRsaPrivateKey, RsaPrivateKeyRef};

use crate::failure::Failure;

/// A pair of transferable keys, in binary.
pub struct KeyPair {
    pub public: Vec<u8>,
    pub private: Vec<u8>,
}

/// Packet tags (section 4.3).
const SECRET_KEY: u8 = 5;
const PUBLIC_KEY: u8 = 6;
const SECRET_SUBKEY: u8 = 7;
const USER_ID: u8 = 13;
const PUBLIC_SUBKEY: u8 = 14;

const VERSION: u8 = 4;
/// Algorithm RSA, to encrypt or sign (section 9.1).
const RSA: u8 = 1;
/// Marker of unencrypted secret numbers (section 5.5.3).
const IN_CLEAR: u8 = 0;

impl KeyPair {
    /// Generates a key pair of a fresh RSA key whose modulus has this number of bits. RustCrypto makes it:
    /// AWS-LC makes none below 2048.
    pub fn generate(bits: usize) -> Result<KeyPair, Failure> {
        let key = RsaPrivateKey::new(&mut UnwrapErr(SysRng), bits).map_err(|error| failed(&error))?;
        let der = key.to_pkcs1_der().map_err(|error| failed(&error))?;
        let numbers = RsaPrivateKeyRef::try_from(der.as_bytes()).map_err(|error| failed(&error))?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Ok(packets(&numbers, since.map_or(0, |since| since.as_secs() as u32)))
    }
}

fn failed(error: &dyn std::fmt::Display) -> Failure {
    Failure::Failed(format!("making an RSA key failed: {error}"))
}

fn packets(key: &RsaPrivateKeyRef<'_>, created: u32) -> KeyPair {
    let mut public = vec![VERSION];
    public.extend(created.to_be_bytes());
    public.push(RSA);
    number(&mut public, key.modulus.as_bytes());
    number(&mut public, key.public_exponent.as_bytes());
    let mut secret = Vec::new();
    number(&mut secret, key.private_exponent.as_bytes());
    // OpenPGP needs the inverse of the first prime modulo the second; PKCS #1 has that of its second modulo
    // its first.
    number(&mut secret, key.prime2.as_bytes());
    number(&mut secret, key.prime1.as_bytes());
    number(&mut secret, key.coefficient.as_bytes());
    let sum = secret.iter().fold(0_u16, |sum, byte| sum.wrapping_add(u16::from(*byte)));
    let private: Vec<u8> = [&public[..], &[IN_CLEAR], &secret, &sum.to_be_bytes()].concat();
    let transferable = |primary, subkey, body: &[u8]| {
        [packet(primary, body), packet(USER_ID, b"tollbar"), packet(subkey, body)].concat()
    };
    KeyPair {
        public: transferable(PUBLIC_KEY, PUBLIC_SUBKEY, &public),
        private: transferable(SECRET_KEY, SECRET_SUBKEY, &private),
    }
}

/// Makes a packet with a header of the new format and a length of five bytes (section 4.2.2).
fn packet(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut packet = vec![0xc0 | tag, 0xff];
    packet.extend((body.len() as u32).to_be_bytes());
    packet.extend(body);
    packet
}

/// Writes a multiprecision integer (section 3.2): its length in bits, and its bytes without leading zeros.
fn number(out: &mut Vec<u8>, bytes: &[u8]) {
    let first = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len());
    let bytes = &bytes[first..];
    let bits = bytes.first().map_or(0, |byte| 8 * bytes.len() as u32 - byte.leading_zeros());
    out.extend((bits as u16).to_be_bytes());
    out.extend(bytes);
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn numbers_have_their_length_in_bits_and_no_leading_zero() {
        let written = |bytes: &[u8]| {
            let mut out = Vec::new();
            number(&mut out, bytes);
            out
        };
        // The values are the examples of section 3.2.
        assert_eq!(vec![0x00, 0x01, 0x01], written(&[0, 1]));
        assert_eq!(vec![0x00, 0x09, 0x01, 0xff], written(&[1, 0xff]));
        assert_eq!(vec![0x00, 0x00], written(&[0, 0]));
    }

    #[test]
    fn gnupg_reads_both_where_it_is_installed() {
        for bits in [1024, 2048] {
            is_read_by_gnupg(bits);
        }
    }

    fn is_read_by_gnupg(bits: usize) {
        let pair = KeyPair::generate(bits).unwrap();
        let home = std::env::temp_dir().join(format!("tollbar-gnupg-{bits}-{}", std::process::id()));
        std::fs::create_dir(&home).unwrap();
        for (key, kind) in [(pair.public, "public"), (pair.private, "secret")] {
            let mut gnupg = Command::new("gpg");
            gnupg.args(["--batch", "--no-autostart", "--list-packets", "--homedir"]).arg(&home);
            gnupg.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
            let Ok(mut gnupg) = gnupg.spawn() else { continue };
            gnupg.stdin.take().unwrap().write_all(&key).unwrap();
            let done = gnupg.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&done.stdout).into_owned();
            assert!(done.status.success(), "{said}");
            for words in ["key packet:", "sub key packet:"] {
                assert!(said.contains(&format!(":{kind} {words}")), "{said}");
            }
            assert!(said.contains(":user ID packet: \"tollbar\""), "{said}");
            assert!(said.contains(&format!("[{bits} bits]")), "{said}");
        }
        std::fs::remove_dir_all(&home).unwrap();
    }

    #[test]
    fn both_keys_are_three_whole_packets_and_the_private_one_contains_the_public_numbers() {
        let pair = KeyPair::generate(1024).unwrap();
        let bodies = |mut bytes: &[u8]| {
            let mut found = Vec::new();
            while let [tag, 0xff, a, b, c, d, rest @ ..] = bytes {
                let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
                found.push((tag & 0x3f, rest[..length].to_vec()));
                bytes = &rest[length..];
            }
            assert!(bytes.is_empty());
            found
        };
        let (public, private) = (bodies(&pair.public), bodies(&pair.private));
        let tags = |found: &[(u8, Vec<u8>)]| found.iter().map(|(tag, _)| *tag).collect::<Vec<_>>();
        assert_eq!(vec![PUBLIC_KEY, USER_ID, PUBLIC_SUBKEY], tags(&public));
        assert_eq!(vec![SECRET_KEY, USER_ID, SECRET_SUBKEY], tags(&private));
        // The length is that of version, time, algorithm, a modulus of 1024 bits and the exponent 65537.
        assert_eq!(1 + 4 + 1 + 2 + 128 + 2 + 3, public[2].1.len());
        assert!(private[2].1.starts_with(&public[2].1));
    }
}
