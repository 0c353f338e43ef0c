//! Signed requests (RFC 9421, HTTP Message Signatures): an HMAC-SHA-256 with a key that the user and the
//! server share, over method, host, path, query and time.
//!
//! Only requests without a body are signed, as for pages, so that no `Content-Digest` is covered.
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
