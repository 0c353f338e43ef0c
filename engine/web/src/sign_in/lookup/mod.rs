//! Look-ups of a server: a user's password (`stored`), and the user of a cookie or a token (`held`). All of
//! them use SQL in one way, whatever the scheme.

pub mod database;
pub mod held;
pub mod revoked;
pub mod stored;
mod text;

pub use database::Sql;
pub use text::Lookup;
