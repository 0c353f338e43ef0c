//! Signing on: a connection made, its user authenticated, one trivial statement answered, and the connection
//! ended.

use postgres_protocol::password::md5;

use super::super::channel::Channel;
use super::super::sign_on::{SignsOn, UNKNOWN, USER, fresh_password, random, refused};
use super::super::task::Server;
use super::answer::broken;
use super::client::Client;
use super::login::{Login, Proof, SignedOn, verifier};
use super::server::{administrator, socket_of};
use crate::contract::{self, Task};
use crate::failure::Failure;
use crate::tls::ClientSpec;

const STATEMENT: &str = "select 1";
const MOST_ITERATIONS: u64 = 100_000;

pub struct SignOn {
    server: Server,
    channel: Channel,
    login: Login,
    /// Server's stored value of the password; None if it needs none.
    stored: Option<String>,
    iterations: u32,
    by_certificate: bool,
}

/// Makes the role with a fresh password, which no other process learns.
pub fn open(task: &Task, server: &Server) -> Result<SignOn, Failure> {
    let proof = match task.choice.as_str() {
        "trust" | "client-certificate" => Proof::Nothing,
        "password" => Proof::Password,
        "md5" => Proof::Md5,
        "scram-sha-256" => Proof::Scram,
        other => return Err(Failure::Unsupported(format!("PostgreSQL has no `{other}`"))),
    };
    let iterations = match task.number("scram-iterations", 4096)? {
        count if (1..=MOST_ITERATIONS).contains(&count) => count as u32,
        count => {
            let words =
                format!("the setting `scram-iterations` must be from 1 to {MOST_ITERATIONS}, not {count}");
            return Err(Failure::Failed(words));
        }
    };
    // Both settings take effect in the server's configuration and in its address.
    for name in ["channel", "pooler"] {
        task.belongs(name);
    }
    let password = fresh_password()?;
    let stored = match proof {
        Proof::Nothing => None,
        Proof::Md5 => Some(md5(password.as_bytes(), USER)),
        Proof::Password | Proof::Scram => Some(verifier(&password, iterations, &random::<16>()?)?),
    };
    let by_certificate = task.choice == "client-certificate";
    let database = server.database.clone().unwrap_or_else(|| "postgres".to_owned());
    let login = Login { user: USER.to_owned(), database, proof, password };
    let channel = Channel::of(server, socket_of(server))?;
    let sign_on = SignOn { server: server.clone(), channel, login, stored, iterations, by_certificate };
    sign_on.administer(|client| {
        client.tell(&format!("drop role if exists \"{USER}\""))?;
        client.tell(&format!("create role \"{USER}\" login"))
    })?;
    sign_on.store(sign_on.stored.as_deref())?;
    Ok(sign_on)
}

impl SignOn {
    /// Performs a function as the superuser, on a separate connection that ends before anything is measured.
    fn administer<T>(&self, perform: impl FnOnce(&mut Client) -> Result<T, Failure>) -> Result<T, Failure> {
        let (mut client, _) = administrator(&self.server)?;
        let done = perform(&mut client)?;
        client.part()?;
        Ok(done)
    }

    /// Stores the password's derived value in the server, which keeps it unchanged.
    fn store(&self, verifier: Option<&str>) -> Result<(), Failure> {
        let Some(verifier) = verifier else { return Ok(()) };
        self.administer(|client| client.tell(&format!("alter role \"{USER}\" password '{verifier}'")))
    }

    /// Performs one operation.
    fn once(&self, channel: &Channel, login: &Login) -> Result<SignedOn, Failure> {
        let (mut client, found) = Client::connect(channel, login, self.server.answer_limit()?)?;
        match client.text_of(STATEMENT)?.as_deref() {
            Some("1") => {}
            other => return Err(broken(format!("it answers `{STATEMENT}` with {other:?}"))),
        }
        client.part()?;
        Ok(found)
    }

    /// Makes a channel with a change of the client's own TLS parameters.
    fn over_tls(&self, change: impl FnOnce(&mut ClientSpec)) -> Result<Channel, Failure> {
        let mut server = self.server.clone();
        if let Some(spec) = &mut server.tls {
            change(spec);
        }
        Channel::of(&server, socket_of(&server))
    }

    fn prove_tls(&self, proof: &mut contract::Proof) -> Result<(), Failure> {
        let (Some(spec), Some(address)) = (&self.server.tls, self.server.address) else {
            proof.leave("a connection in clear", "the channel is not encrypted");
            return Ok(());
        };
        // The SQLSTATE is "invalid authorization specification", which means that no line of `pg_hba.conf`
        // matches.
        let in_clear = self.once(&Channel::Tcp(address), &self.login);
        refused(proof, "a connection in clear", &["28000", "SSL required"], in_clear)?;
        if let Some(other) = &self.server.other_certificate_pem {
            let channel = self.over_tls(|spec| spec.certificate_pem = Some(other.clone()))?;
            let what = "a server with another certificate";
            refused(proof, what, &["handshake"], self.once(&channel, &self.login))?;
        }
        if self.by_certificate {
            let channel = self.over_tls(|spec| spec.identity = None)?;
            let what = "a client without a certificate";
            refused(proof, what, &["28000", "ertificate"], self.once(&channel, &self.login))?;
            if let Some(revoked) = spec.revoked.clone() {
                let channel = self.over_tls(|spec| spec.identity = Some(revoked))?;
                let what = "a client with another's certificate";
                refused(proof, what, &["28000", "ertificate"], self.once(&channel, &self.login))?;
            }
        }
        Ok(())
    }

    /// Proves the connection by the server's own report.
    fn prove_channel(&self, proof: &mut contract::Proof) -> Result<(), Failure> {
        if self.server.pooler.is_some() {
            proof.leave("the connection, as the server sees it", "the server sees the pooler's");
            return Ok(());
        }
        let (mut client, _) = Client::connect(&self.channel, &self.login, self.server.answer_limit()?)?;
        let found = client.text_of(
            "select coalesce(s.version || ', ' || s.cipher, 'in clear') || coalesce(' over TCP ' || text(a.client_addr), '')
             from pg_stat_activity a left join pg_stat_ssl s on s.pid = a.pid and s.ssl where a.pid = pg_backend_pid()",
        )?;
        client.part()?;
        let found = found.unwrap_or_default();
        let (is_tls, is_tcp) = (found.starts_with("TLSv1.3"), found.contains("over TCP"));
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
        let version = self.administer(|client| client.text_of("show server_version"))?;
        let server = ("postgresql".to_owned(), version.unwrap_or_default());
        let library = self.channel.library().map(|library| ("client TLS".to_owned(), library));
        Ok([server].into_iter().chain(library).collect())
    }

    fn prove(&mut self, proof: &mut contract::Proof) -> Result<(), Failure> {
        let found = self.once(&self.channel, &self.login)?;
        let counted = found.iterations.map_or(String::new(), |count| format!(", {count} iterations"));
        let is_as_asked = found.iterations.is_none_or(|count| count == self.iterations);
        let bound = found.mechanism.ends_with("-PLUS");
        // A pooler cannot bind it, because its connection to the server is another.
        let can_bind = matches!(self.channel, Channel::Tls(..)) && self.server.pooler.is_none();
        let is_bound = self.login.proof != Proof::Scram || bound == can_bind;
        proof.accept(&format!("a sign-on by {}{counted}", found.mechanism), is_as_asked && is_bound)?;
        self.prove_channel(proof)?;
        self.prove_tls(proof)?;
        // The SQLSTATE is "invalid password", or for a missing role that it does not exist. PgBouncer sends
        // only a message.
        const WRONG: [&str; 4] = ["28P01", "authentication failed", "28000", "no such user"];
        let unknown = Login { user: UNKNOWN.to_owned(), ..self.login.clone() };
        refused(proof, "an unknown user", &WRONG, self.once(&self.channel, &unknown))?;
        if self.login.proof == Proof::Nothing {
            proof.leave("a wrong password", "none is asked for");
            return Ok(());
        }
        let wrong = Login { password: fresh_password()?, ..self.login.clone() };
        refused(proof, "a wrong password", &WRONG[..2], self.once(&self.channel, &wrong))?;
        let stored = self.stored.clone();
        if let (Proof::Scram, Some((client_half, _))) =
            (self.login.proof, stored.as_deref().and_then(|text| text.rsplit_once(':')))
        {
            // The server can still check a password, but signs with a key that is not derived from it.
            let other = verifier(&wrong.password, self.iterations, &random::<16>()?)?;
            let server_half = other.rsplit_once(':').map_or("", |(_, key)| key);
            self.store(Some(&format!("{client_half}:{server_half}")))?;
            let tried = self.once(&self.channel, &self.login);
            self.store(stored.as_deref())?;
            refused(proof, "a server that does not know the verifier", &["does not know"], tried)?;
        }
        let again = self.once(&self.channel, &self.login);
        again.map_err(|failure| failure.about("not accepted any more, after what was refused: ")).map(|_| ())
    }
}
