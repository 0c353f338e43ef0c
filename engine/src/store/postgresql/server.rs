//! Where a server listens, and the connection of its superuser.

use std::path::PathBuf;

use super::super::channel::Channel;
use super::super::task::Server;
use super::client::Client;
use super::login::{Login, Proof};
use crate::failure::Failure;

/// The server's Unix socket, for whom its permissions let in.
pub fn socket_of(server: &Server) -> PathBuf {
    server.socket.join(format!(".s.PGSQL.{}", server.port.unwrap_or(5432)))
}

/// A connection as the superuser, whom the permissions of the server's socket let in.
pub fn administrator(server: &Server) -> Result<(Client, Login), Failure> {
    let database = server.database.clone().unwrap_or_else(|| "postgres".to_owned());
    let login = Login { user: server.user.clone(), database, proof: Proof::Nothing, password: String::new() };
    let (client, _) = Client::connect(&Channel::Socket(socket_of(server)), &login, server.answer_limit()?)?;
    Ok((client, login))
}
