//! TLS by a libssl bound at run time: what rustls has left out, and whatever a task wants of OpenSSL itself.

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
