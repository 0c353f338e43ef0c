//! Counts that the lab's own servers keep: remembered credentials, and rows that pages used.

use super::connector::Connector;
use super::probe::Probe;
use super::task::{ClientKind, Load};
use crate::failure::Failure;
use crate::http::page::{Expectation, Page};
use crate::sign_in::verified::{FOUND_PATH, Found};
use crate::store::USED_PATH;

/// Checks the server's count of remembered credentials since the last call; with None it only resets the
/// count.
pub fn was_found(load: &Load, kind: &ClientKind, found: Option<Found>) -> Result<(), Failure> {
    says(load, Connector::new(kind)?, FOUND_PATH, found.map(Found::words))
        .map_err(|failure| failure.about("what the server remembers: "))
}

/// Checks the server's count of used rows since the last call, over a connection as the task sets it; with
/// None it only resets the count. Does nothing if no page uses a row.
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

/// Checks the server's text under a path; with None it only sends the request.
fn says(load: &Load, connector: Connector, path: &str, said: Option<String>) -> Result<(), Failure> {
    let page = Page { paths: vec![path.to_owned()], unique_query: false, ..load.request.clone() };
    let expected =
        said.as_ref().map_or(String::new(), |said| format!("it was to find {}: ", said.trim_end()));
    let expect = Expectation { body: said, ..Expectation::default() };
    let ask = Load { exchange: None, request: page, expect, ..load.clone() };
    let answer = Probe::new(&ask, connector, path)?.send();
    answer.map(|_| ()).map_err(|fault| Failure::Failed(format!("{expected}{}", fault.words)))
}
