//! TLS by rustls on AWS-LC: all of today's protocol, at less cost to a client than any other library here.

mod client;
mod provider;
mod records;
mod server;
mod stream;

pub use client::Client;
pub use provider::{lacks, library};
pub use server::Server;
pub use stream::{ClientStream, ServerStream};
