//! TLS by rustls on AWS-LC: all of today's protocol, at less cost to a client than any other library here.

mod client;
mod provider;
mod server;
mod sessions;
mod side;
mod stream;
mod verifier;

use ::rustls::client::UnbufferedClientConnection;
use ::rustls::server::UnbufferedServerConnection;

pub use client::Client;
pub use provider::lacks;
pub use server::Server;
pub use stream::Tls;

use crate::contract::Failure;
use crate::crates;

pub type ClientStream = Tls<UnbufferedClientConnection>;
pub type ServerStream = Tls<UnbufferedServerConnection>;

/// `rustls 0.23.46 (aws-lc-rs 1.19.1)`
pub fn library() -> String {
    let version = |name| crates::all().find(|(found, _)| *found == name).map_or("", |(_, version)| version);
    format!("rustls {} (aws-lc-rs {})", version("rustls"), version("aws-lc-rs"))
}

fn unsupported(error: ::rustls::Error) -> Failure {
    Failure::Unsupported(format!("rustls: {error}"))
}
