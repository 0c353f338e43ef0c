//! Client certificates (mutual TLS): the connection's handshake identifies the client, and requests add
//! nothing.
//!
//! A kind of client has one certificate, and a load as many users as kinds. The cost is that of the
//! handshake, and does not depend on the certificate.

use super::accounts;
use super::scheme::{
    Adversary, Client, Judgement, NoSettings, Reply, Scheme, Server, Settings, Setup, Verdict, Visit,
    read_server,
};
use crate::failure::{Failure, Fault};
use crate::http::prebuilt::Prebuilt;
use crate::http::request::{Request, Status};
use crate::http::response::{Expected, Response};

/// Scheme without refusals of its own: TLS must refuse a client without a certificate, or with a revoked one.
pub const SCHEME: Scheme = Scheme {
    name: "client-certificate",
    client,
    server: Some(server),
    keeps_state: false,
    has_sign_on: false,
    refused: &[],
};

struct CertificateClient {
    requests: Vec<Prebuilt>,
    expected: Expected,
    /// Names in the certificates of the load's kinds of client.
    names: Vec<String>,
    /// Index of the name that the server saw.
    seen: usize,
    /// Last connection of each user.
    connections: Vec<Option<u32>>,
    signs_on: bool,
}

fn client(setup: &Setup) -> Result<Box<dyn Client>, Failure> {
    let NoSettings {} = setup.settings()?;
    let missing = || {
        let words = "`load.clients`: client-certificate needs a TLS identity with a common name of each kind";
        Failure::Failed(words.to_owned())
    };
    Ok(Box::new(CertificateClient {
        requests: setup.requests(),
        expected: setup.expected(),
        names: setup.certificate_names.ok_or_else(missing)?.to_vec(),
        seen: 0,
        connections: vec![None; setup.users],
        signs_on: false,
    }))
}

impl Client for CertificateClient {
    #[inline]
    fn request(&mut self, visit: &Visit) -> &[u8] {
        self.requests[usize::from(visit.path)].with(visit.unique, b"")
    }

    #[inline]
    fn expected(&self, _visit: &Visit) -> &Expected {
        &self.expected
    }

    #[inline]
    fn judge(&mut self, visit: &Visit, response: &Response) -> Result<Judgement, Fault> {
        response.check(&self.expected)?;
        let connection = Some(visit.connection);
        let former = std::mem::replace(&mut self.connections[visit.user as usize], connection);
        self.signs_on = former != connection;
        // Only the server's answer shows the kind of the connection's client.
        let seen = response.header("X-User");
        self.seen = self.names.iter().position(|name| Some(name.as_str()) == seen).unwrap_or(0);
        Ok(Judgement::Done)
    }

    fn user(&self, _visit: &Visit) -> Option<&str> {
        Some(&self.names[self.seen])
    }

    /// Returns true for the first request of each connection.
    fn signs_on(&self, _visit: &Visit) -> bool {
        self.signs_on
    }
}

impl Adversary for CertificateClient {}

struct CertificateServer(String);

fn server(settings: &Settings) -> Result<Box<dyn Server>, Failure> {
    let NoSettings {} = read_server(settings)?;
    Ok(Box::new(CertificateServer(String::new())))
}

impl Server for CertificateServer {
    fn check(&mut self, request: &Request<'_>) -> Verdict<'_> {
        match request.certificate_name.filter(|name| accounts::is_name(name.as_bytes())) {
            Some(name) => {
                self.0.clear();
                self.0.push_str(name);
                Verdict::User(&self.0)
            }
            None => Verdict::Answer(Reply {
                status: Status::Forbidden,
                headers: "",
                text: "a certificate without a name\n",
            }),
        }
    }

    fn needs_certificates(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The user is the one that the server names; an unknown name selects the first.
    #[test]
    fn the_user_is_the_one_that_the_server_saw() {
        let expected = Expected {
            status: 200,
            bytes: None,
            body: None,
            to_head: false,
            keeps_head: true,
            kept_body_bytes: 0,
        };
        let mut client = CertificateClient {
            requests: Vec::new(),
            expected: expected.clone(),
            names: ["u1", "u2", "u3"].map(str::to_owned).to_vec(),
            seen: 0,
            connections: vec![None],
            signs_on: false,
        };
        for (connection, named, user, signs_on) in
            [(1, "u2", "u2", true), (1, "u3", "u3", false), (2, "u1", "u1", true), (2, "u4", "u1", false)]
        {
            let visit = Visit { connection, ..Visit::default() };
            let head = format!("HTTP/1.1 200 OK\r\nX-User: {named}\r\nContent-Length: 0\r\n\r\n");
            let mut response = Response::default();
            response.begin();
            response.take(head.as_bytes(), &expected).expect("an answer");
            assert_eq!(Ok(Judgement::Done), client.judge(&visit, &response));
            assert_eq!((Some(user), signs_on), (client.user(&visit), client.signs_on(&visit)), "{named}");
        }
    }
}
