//! What the lab's own servers count of what they did: credentials that were remembered, rows that pages used.

use super::connector::Connector;
use super::probe::Probe;
use super::task::{ClientKind, Load};
use crate::failure::Failure;
use crate::http::page::{Expectation, Page};
use crate::sign_in::verified::{FOUND_PATH, Found};
use crate::store::USED_PATH;

/// Whether the server has found so many among what it remembers, since it was asked last; without, only asks it.
pub fn was_found(load: &Load, kind: &ClientKind, found: Option<Found>) -> Result<(), Failure> {
    says(load, Connector::new(kind)?, FOUND_PATH, found.map(Found::words))
        .map_err(|failure| failure.about("what the server remembers: "))
}

/// Whether the server has used so many rows since it was asked last, over a connection as the task has it; without, only
/// asks it. Nothing where no page uses one.
pub fn were_used(load: &Load, kind: &ClientKind, rows: Option<u64>) -> Result<(), Failure> {
    let Some(known) = load.rows else { return Ok(()) };
    let said = rows.map(|rows| known.connection.words(rows));
    let (connector, address) = match known.address {
        Some(address) => (Connector::clear(), address),
        None => (Connector::new(kind)?, load.address),
    };
    says(&Load { address, ..load.clone() }, connector, USED_PATH, said)
        .map_err(|failure| failure.about("rows that were used: "))
}

/// Whether the server says so there; without, only asks it.
fn says(load: &Load, connector: Connector, path: &str, said: Option<String>) -> Result<(), Failure> {
    let page = Page { paths: vec![path.to_owned()], unique_query: false, ..load.request.clone() };
    let expected =
        said.as_ref().map_or(String::new(), |said| format!("it was to find {}: ", said.trim_end()));
    let expect = Expectation { body: said, ..Expectation::default() };
    let ask = Load { exchange: None, request: page, expect, ..load.clone() };
    let answer = Probe::new(&ask, connector, path)?.send();
    answer.map(|_| ()).map_err(|fault| Failure::Failed(format!("{expected}{}", fault.words)))
}
