//! Hashes of Digest: of a user, and of the user's answer to a nonce.

use md5::Digest;
use serde::Deserialize;

use crate::calls;

#[derive(Deserialize, Debug, Clone, Copy, PartialEq, Eq, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    #[default]
    #[serde(rename = "sha-256")]
    Sha256,
    Md5,
}

/// A hash in hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hex {
    digits: [u8; 64],
    length: usize,
}

impl Hex {
    pub fn as_bytes(&self) -> &[u8] {
        &self.digits[..self.length]
    }
}

impl Algorithm {
    /// Returns the name in headers.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Sha256 => "SHA-256",
            Algorithm::Md5 => "MD5",
        }
    }

    /// Hashes these parts, with colons between them.
    fn hash(self, parts: &[&[u8]]) -> Hex {
        let mut text = [0; 1024];
        let mut joined;
        let all: usize = parts.iter().map(|part| part.len() + 1).sum();
        // Only a long target needs more than the fixed buffer.
        let text = if all <= text.len() {
            &mut text[..]
        } else {
            joined = vec![0; all];
            &mut joined[..]
        };
        let mut length = 0;
        for part in parts {
            text[length..length + part.len()].copy_from_slice(part);
            text[length + part.len()] = b':';
            length += part.len() + 1;
        }
        let text = &text[..length - 1];
        calls::tally("digest hash");
        match self {
            Algorithm::Sha256 => {
                hexadecimal(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text).as_ref())
            }
            Algorithm::Md5 => hexadecimal(&md5::Md5::digest(text)),
        }
    }

    /// Returns the hash of a user, which is all that a server must store.
    pub fn of_user(self, name: &str, realm: &str, password: &str) -> Hex {
        self.hash(&[name.as_bytes(), realm.as_bytes(), password.as_bytes()])
    }

    /// Returns a client's answer to a nonce (RFC 7616, 3.4.1).
    pub fn response(self, user: &[u8], method: &str, answered: &Answered<'_>) -> Hex {
        let request = self.hash(&[method.as_bytes(), answered.uri]);
        let Answered { nonce, count, client_nonce, .. } = answered;
        self.hash(&[user, nonce, count, client_nonce, b"auth", request.as_bytes()])
    }
}

fn hexadecimal(bytes: &[u8]) -> Hex {
    let (mut digits, length) = ([0; 64], 2 * bytes.len());
    hex::encode_to_slice(bytes, &mut digits[..length]).expect("room for the longest hash");
    Hex { digits, length }
}

/// Input of a response, besides the user.
pub struct Answered<'a> {
    pub uri: &'a [u8],
    pub nonce: &'a [u8],
    pub count: &'a [u8],
    pub client_nonce: &'a [u8],
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values are the examples of RFC 7616, 3.9.1.
    #[test]
    fn a_response_is_as_in_the_standard() {
        let answered = Answered {
            uri: b"/dir/index.html",
            nonce: b"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v",
            count: b"00000001",
            client_nonce: b"f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ",
        };
        for (algorithm, expected) in [
            (Algorithm::Md5, "8ca523f5e9506fed4657c9700eebdbec"),
            (Algorithm::Sha256, "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
        ] {
            let user = algorithm.of_user("Mufasa", "http-auth@example.org", "Circle of Life");
            let response = algorithm.response(user.as_bytes(), "GET", &answered);
            assert_eq!(expected, String::from_utf8_lossy(response.as_bytes()));
        }
    }

    /// Texts may exceed the fixed buffer.
    #[test]
    fn any_length_is_hashed() {
        for length in [0, 1, 1021, 1022, 1023, 1024, 5000] {
            let long = vec![b'x'; length];
            let expected =
                aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &[b"a:".as_slice(), &long].concat());
            let found = Algorithm::Sha256.hash(&[b"a", &long]);
            assert_eq!(hex::encode(expected).as_bytes(), found.as_bytes(), "{length}");
        }
    }
}
