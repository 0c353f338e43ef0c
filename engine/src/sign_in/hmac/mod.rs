//! Requests that are signed each (RFC 9421, HTTP Message Signatures): by an HMAC-SHA-256 with a key that the user and
//! the server share, over method, host, path and query, and when that was.
//!
//! Of a request without a body, as pages are asked for: there is no `Content-Digest` to be covered.
use super::scheme::{Scheme, Wrong};

mod client;
mod message;
mod server;

pub const SCHEME: Scheme = Scheme {
    name: "hmac",
    client: client::client,
    server: Some(server::server),
    keeps_state: false,
    has_sign_on: false,
    refused: &[
        Wrong::NoCredentials,
        Wrong::Password,
        Wrong::User,
        Wrong::Own(client::ANOTHER_PATH),
        Wrong::Own(client::OLD),
        Wrong::Own(client::REPLAYED),
    ],
};
