//! How a client says who asks, and how a server finds out: one file a sign-in scheme, with its client half and its
//! server half, and one line in `schemes.rs` that makes it known.
//!
//! The client half (`client::Client`) sends the requests of a user's operation, expects something of each answer and
//! says whether another leg follows. The server half (`server::Server`) checks what the embedded server is asked.

pub mod accounts;
mod anonymous;
mod basic;
mod bearer;
pub mod client;
mod client_certificate;
mod digest;
pub mod exchange;
mod form;
mod hmac;
mod jwt;
mod jwt_keys;
mod kerberos;
mod lookup;
mod negotiate;
mod ntlm;
mod opaque_token;
pub mod operation;
mod password;
pub mod scheme;
pub mod schemes;
pub mod server;
mod session_cookie;
mod settings;
pub mod sign_in;
mod store;
#[cfg(test)]
mod tests;
