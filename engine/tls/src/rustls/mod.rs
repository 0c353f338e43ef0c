//! TLS by rustls on AWS-LC: the current protocol, at a lower cost for a client than with any other library
//! here.

mod client;
mod provider;
mod records;
mod server;
mod stream;

pub use client::Client;
pub use provider::{lacks, library};
pub use server::Server;
pub use stream::{ClientStream, ServerStream};
