//! TLS by a libssl bound at run time: features that rustls does not have, and OpenSSL's own implementation if
//! a task requests it.

mod api;
mod client;
mod context;
mod contexts;
mod dialect;
mod library;
pub mod making;
mod server;
mod shared;
mod stream;

pub use client::Client;
pub use server::Server;
pub use stream::Tls;
