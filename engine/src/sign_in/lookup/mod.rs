//! What a server looks up of those who ask: what it knows of a user's password (`stored`), and what stands for a user in a
//! cookie or a token (`held`). One way to SQL for all of it, whichever scheme asks.

pub mod database;
pub mod held;
pub mod revoked;
pub mod stored;
mod text;

pub use database::Sql;
pub use text::Lookup;
