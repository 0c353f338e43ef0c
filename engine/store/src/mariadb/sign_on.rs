//! Signing on to MariaDB.

use std::sync::{Arc, Mutex};

use super::super::channel::Channel;
use super::super::sign_on::{SignsOn, UNKNOWN, USER, fresh_password, refused};
use super::super::task::Server;
use super::client::{Client, Login, Plugin, broken};
use super::connection::Connection;
use crate::contract::{Proof, Task};
use crate::failure::Failure;
use crate::tls::ClientSpec;

const UNIX_SOCKET: &str = "unix-socket";
const STATEMENT: &str = "select 1";
/// Message for a refused user, also if a secure transport is required.
const DENIED: &str = "Access denied";

pub struct SignOn {
    server: Server,
    channel: Channel,
    login: Login,
    choice: String,
}

/// Makes the user, with a fresh password if the choice has one, which only the server learns.
pub fn open(task: &Task, server: &Server) -> Result<SignOn, Failure> {
    let (plugin, has_password) = match task.choice.as_str() {
        "trust" | UNIX_SOCKET => (Plugin::Native, false),
        "mysql-native-password" => (Plugin::Native, true),
        "ed25519" => (Plugin::Ed25519, true),
        other => return Err(Failure::Unsupported(format!("MariaDB has no `{other}`"))),
    };
    // The setting takes effect in the server's configuration and in its address.
    task.belongs("channel");
    let password = if has_password { fresh_password()? } else { String::new() };
    // The server compares it with the account of the process at the other end.
    let user = if task.choice == UNIX_SOCKET { account()? } else { USER.to_owned() };
    let login = Login { user, password, plugin };
    let channel = Channel::of(server, server.socket.clone())?;
    let sign_on = SignOn { server: server.clone(), channel, login, choice: task.choice.clone() };
    sign_on.make(&sign_on.login.user)?;
    Ok(sign_on)
}

/// Returns the name of this process's system account.
fn account() -> Result<String, Failure> {
    let number = rustix::process::geteuid().as_raw().to_string();
    let known = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let mut lines = known.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let found = lines.find(|fields| fields.get(2) == Some(&number.as_str()));
    let name = found.and_then(|fields| fields.first().map(|name| (*name).to_owned()));
    name.ok_or_else(|| Failure::Unsupported(format!("the account {number} has no name in /etc/passwd")))
}

impl SignOn {
    /// Executes a statement as the server's superuser, over the socket, on a connection that ends before
    /// anything is measured.
    fn administer(&self, words: &str) -> Result<Option<String>, Failure> {
        Connection::open(&self.server, &Arc::new(Mutex::new(Vec::new())))?.ask(words)
    }

    /// Makes a user with the authentication of the choice.
    fn make(&self, user: &str) -> Result<(), Failure> {
        let password = &self.login.password;
        let identified = match self.choice.as_str() {
            UNIX_SOCKET => "via unix_socket".to_owned(),
            "trust" => "by ''".to_owned(),
            _ => format!("via {} using password('{password}')", self.known_by()),
        };
        self.administer(&format!("create or replace user '{user}'@'%' identified {identified}")).map(|_| ())
    }

    /// Returns the server's plugin.
    fn known_by(&self) -> String {
        match self.choice.as_str() {
            "trust" => "mysql_native_password".to_owned(),
            choice => choice.replace('-', "_"),
        }
    }

    /// Performs one operation, and returns the plugin that satisfied the server.
    fn once(&self, channel: &Channel, login: &Login) -> Result<String, Failure> {
        let (mut client, agreed) = Client::connect(channel, login, self.server.answer_limit()?)?;
        match client.text_of(STATEMENT)?.as_deref() {
            Some("1") => {}
            other => return Err(broken(format!("it answers `{STATEMENT}` with {other:?}"))),
        }
        client.part()?;
        Ok(agreed)
    }

    fn prove_tls(&self, proof: &mut Proof) -> Result<(), Failure> {
        let (Some(_), Some(address)) = (&self.server.tls, self.server.address) else {
            proof.leave("a connection in clear", "the channel is not encrypted");
            return Ok(());
        };
        let in_clear = self.once(&Channel::Tcp(address), &self.login);
        refused(proof, "a connection in clear", &[DENIED], in_clear)?;
        if let Some(other) = &self.server.other_certificate_pem {
            let mut server = self.server.clone();
            let pinned = |spec: &mut ClientSpec| spec.certificate_pem = Some(other.clone());
            server.tls.as_mut().map(pinned);
            let channel = Channel::of(&server, server.socket.clone())?;
            let tried = self.once(&channel, &self.login);
            refused(proof, "a server with another certificate", &["handshake"], tried)?;
        }
        Ok(())
    }

    /// Proves the connection by the server's own report.
    fn prove_channel(&self, proof: &mut Proof) -> Result<(), Failure> {
        let (mut client, _) = Client::connect(&self.channel, &self.login, self.server.answer_limit()?)?;
        let found = client.text_of(
            "select concat(if(v.variable_value = '', 'in clear', concat(v.variable_value, ', ', c.variable_value)), ', from ',
               substring_index(p.host, ':', 1))
             from information_schema.session_status v, information_schema.session_status c, information_schema.processlist p
             where v.variable_name = 'SSL_VERSION' and c.variable_name = 'SSL_CIPHER' and p.id = connection_id()",
        )?;
        client.part()?;
        let found = found.unwrap_or_default();
        let (is_tls, is_tcp) = (found.starts_with("TLSv1.3"), !found.ends_with("localhost"));
        let expected = match self.channel {
            Channel::Socket(_) => !is_tls && !is_tcp,
            Channel::Tcp(_) => !is_tls && is_tcp,
            Channel::Tls(..) => is_tls && is_tcp,
        };
        proof.accept(&format!("the connection, as the server sees it: {found}"), expected)
    }
}

impl SignsOn for SignOn {
    fn sign_on(&mut self) -> Result<(), Failure> {
        self.once(&self.channel, &self.login).map(|_| ())
    }

    fn parts(&mut self) -> Result<Vec<(String, String)>, Failure> {
        let server = ("mariadb".to_owned(), self.administer("select version()")?.unwrap_or_default());
        let library = self.channel.library().map(|library| ("client TLS".to_owned(), library));
        Ok([server].into_iter().chain(library).collect())
    }

    fn prove(&mut self, proof: &mut Proof) -> Result<(), Failure> {
        let agreed = self.once(&self.channel, &self.login)?;
        let expected =
            if self.login.password.is_empty() { "nothing asked" } else { self.login.plugin.name() };
        proof.accept(&format!("a sign-on by {agreed}"), agreed == expected)?;
        let user = &self.login.user;
        let known =
            format!("select json_value(priv, '$.plugin') from mysql.global_priv where user = '{user}'");
        let known = self.administer(&known)?.unwrap_or_default();
        proof.accept(&format!("a user whom the server knows by {known}"), known == self.known_by())?;
        self.prove_channel(proof)?;
        self.prove_tls(proof)?;
        // The server may request the plugin of another user for an unknown one.
        let unknown = Login { user: UNKNOWN.to_owned(), ..self.login.clone() };
        refused(proof, "an unknown user", &[DENIED, "does not give"], self.once(&self.channel, &unknown))?;
        if self.choice == UNIX_SOCKET {
            self.make(USER)?;
            let other = Login { user: USER.to_owned(), ..self.login.clone() };
            refused(proof, "the user of another account", &[DENIED], self.once(&self.channel, &other))?;
        }
        if self.login.password.is_empty() {
            proof.leave("a wrong password", "none is asked for");
        } else {
            let wrong = Login { password: fresh_password()?, ..self.login.clone() };
            refused(proof, "a wrong password", &[DENIED], self.once(&self.channel, &wrong))?;
        }
        let again = self.once(&self.channel, &self.login);
        again.map_err(|failure| failure.about("not accepted any more, after what was refused: ")).map(|_| ())
    }
}
