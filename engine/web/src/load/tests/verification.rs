//! Proof before a number, without TLS; with TLS it is proved against real servers.

use serde_json::json;

use super::load;
use super::server::{GOOD, Server, Then, say};
use crate::failure::Failure;
use crate::load::verify::verify;

fn verified(server: &Server, change: serde_json::Value) -> Result<(Vec<String>, Vec<String>), String> {
    let proof = verify(&load(server.address, change)).map_err(Failure::into_words)?;
    Ok((proof.accepted, proof.refused))
}

/// Makes this process the server's component, so that a path that is not there must be refused.
fn ours() -> serde_json::Value {
    json!({"components": {"web": std::process::id()}})
}

/// The right path is served, and another is refused.
#[test]
fn a_server_that_tells_paths_apart_is_proved() {
    // Requests come in this order: right, wrong, right again.
    let server = Server::start(|stream, number| match number {
        1 => say(stream, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", Then::GoOn),
        _ => say(stream, GOOD, Then::GoOn),
    });
    let expected = (vec!["status 200 and 5 bytes".to_owned()], vec!["a path that is not there".to_owned()]);
    assert_eq!(Ok(expected), verified(&server, ours()));
    assert!(server.lines()[1].starts_with("GET /a-path-that-is-not-there "));
}

/// A server that answers everything equally proves nothing, unless it is the user's own.
#[test]
fn a_server_that_refuses_nothing_is_not_proved() {
    let server = Server::good();
    assert_eq!(Err("not refused: a path that is not there".to_owned()), verified(&server, ours()));
    assert_eq!(Ok((vec!["status 200 and 5 bytes".to_owned()], vec![])), verified(&server, json!({})));
}

/// Each of several paths is accepted by its name.
#[test]
fn each_path_is_accepted() {
    let server = Server::good();
    let paths = json!({"request": {"paths": ["/a", "/b"]}});
    let accepted = ["/a", "/b"].map(|path| format!("status 200 and 5 bytes from {path}")).to_vec();
    assert_eq!(Ok((accepted, vec![])), verified(&server, paths));
}

/// A wrong answer is not accepted, and the message describes it.
#[test]
fn a_wrong_answer_is_not_accepted() {
    let server = Server::good();
    assert_eq!(
        Err("not accepted: GET /: wrong length: expected 7 bytes, got 5".to_owned()),
        verified(&server, json!({"expect": {"bytes": 7}}))
    );
}

/// A server that breaks because of a wrong input has not refused it.
#[test]
fn a_server_that_breaks_is_not_proved() {
    let server = Server::start(|stream, number| match number {
        1 => say(stream, "", Then::Die),
        _ => say(stream, GOOD, Then::GoOn),
    });
    let words = verified(&server, ours()).expect_err("a broken server");
    assert!(words.contains("refused"), "{words}");
}

/// Refusals that are not tried are reported with the reason.
#[test]
fn what_is_not_tried_is_said() {
    let own = verify(&load(Server::good().address, json!({}))).expect("a proof");
    assert_eq!(vec!["a path that is not there: the server is the user's own, and may"], own.not_tried);
    let absent = "HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nhello";
    let server = Server::start(move |stream, _| say(stream, absent, Then::GoOn));
    let mut change = ours();
    change["expect"] = json!({"status": 404});
    let proof = verify(&load(server.address, change)).expect("a proof");
    assert_eq!(vec!["a path that is not there: what is expected is a refusal already"], proof.not_tried);
}
