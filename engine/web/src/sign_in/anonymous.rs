//! The null case: one request, built once, and one answer.

use super::scheme::{
    Adversary, Client, NoSettings, Scheme, Server, Settings, Setup, Verdict, Visit, read_server,
};
use crate::failure::Failure;
use crate::http::prebuilt::Prebuilt;
use crate::http::request::Request;
use crate::http::response::Expected;

pub const SCHEME: Scheme = Scheme {
    name: "anonymous",
    client: |setup| {
        let NoSettings {} = setup.settings()?;
        Ok(Box::new(Anonymous::new(setup)))
    },
    server: Some(server),
    keeps_state: false,
    has_sign_on: false,
    refused: &[],
};

struct Anonymous {
    requests: Vec<Prebuilt>,
    expected: Expected,
}

impl Anonymous {
    fn new(setup: &Setup) -> Anonymous {
        Anonymous { requests: setup.requests(), expected: setup.expected() }
    }
}

impl Client for Anonymous {
    #[inline]
    fn request(&mut self, visit: &Visit) -> &[u8] {
        self.requests[usize::from(visit.path)].with(visit.unique, b"")
    }

    #[inline]
    fn expected(&self, _visit: &Visit) -> &Expected {
        &self.expected
    }

    #[inline]
    fn signs_on(&self, _visit: &Visit) -> bool {
        false
    }
}

impl Adversary for Anonymous {}

struct AnonymousServer;

fn server(settings: &Settings) -> Result<Box<dyn Server>, Failure> {
    let NoSettings {} = read_server(settings)?;
    Ok(Box::new(AnonymousServer))
}

impl Server for AnonymousServer {
    fn check(&mut self, _request: &Request<'_>) -> Verdict<'_> {
        Verdict::Unprotected
    }
}
