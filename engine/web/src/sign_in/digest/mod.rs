//! Digest (RFC 7616) with `qop=auth`: a hash of the password, the request and a number from the server.
//!
//! A client is challenged once and then sends credentials without being asked, with a rising nonce count. The
//! server accepts each count of a nonce once.
use super::scheme::{Scheme, Wrong};

mod client;
mod hash;
mod header;
mod server;

pub use hash::{Algorithm, Answered};
pub use header::Challenge;

pub const SCHEME: Scheme = Scheme {
    name: "digest",
    client: client::client,
    server: Some(server::server),
    keeps_state: true,
    has_sign_on: true,
    refused: &[Wrong::NoCredentials, Wrong::Password, Wrong::User, Wrong::Own(client::REPLAYED)],
};

#[cfg(test)]
pub mod tests {
    use super::hash::Algorithm;
    use super::server::REALM;

    /// Returns a user's stored hash, for other tests.
    pub fn stored(algorithm: &str, name: &str, password: &str) -> String {
        let algorithm = if algorithm == "md5" { Algorithm::Md5 } else { Algorithm::Sha256 };
        let hash = algorithm.of_user(name, REALM, password);
        format!("{REALM}:{}", String::from_utf8_lossy(hash.as_bytes()))
    }
}
