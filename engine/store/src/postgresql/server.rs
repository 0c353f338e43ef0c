//! Socket of a server, and the connection of its superuser.

use std::path::PathBuf;

use super::super::channel::Channel;
use super::super::task::Server;
use super::client::Client;
use super::login::{Login, Proof};
use crate::failure::Failure;

/// Returns the server's Unix socket, whose permissions identify its users.
pub fn socket_of(server: &Server) -> PathBuf {
    server.socket.join(format!(".s.PGSQL.{}", server.port.unwrap_or(5432)))
}

/// Connects as the superuser, to whom the permissions of the server's socket give access.
pub fn administrator(server: &Server) -> Result<(Client, Login), Failure> {
    let database = server.database.clone().unwrap_or_else(|| "postgres".to_owned());
    let login = Login { user: server.user.clone(), database, proof: Proof::Nothing, password: String::new() };
    let (client, _) = Client::connect(&Channel::Socket(socket_of(server)), &login, server.answer_limit()?)?;
    Ok((client, login))
}
