use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::thread;

use super::super::login::Proof;
use super::*;

/// Limit of the simulated servers, which answer at once unless a test makes them silent.
pub const LIMIT: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(50);

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    [&[kind], &length[..], body].concat()
}

fn error(state: &str, words: &str) -> Vec<u8> {
    message(b'E', format!("SERROR\0C{state}\0M{words}\0\0").as_bytes())
}

fn notice() -> Vec<u8> {
    message(b'N', b"SNOTICE\0C00000\0Mby the way\0\0")
}

fn ready() -> Vec<u8> {
    message(b'Z', b"I")
}

pub fn done(tag: &str) -> Vec<u8> {
    [message(b'C', format!("{tag}\0").as_bytes()), ready()].concat()
}

/// Returns a server's answer to the preparation of a statement without parameters whose rows have one column
/// of text.
pub fn prepared() -> Vec<u8> {
    let mut column = b"\0\x01name\0".to_vec();
    column.extend([0; 6]);
    column.extend(Type::TEXT.oid().to_be_bytes());
    column.extend([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0]);
    [message(b'1', b""), message(b't', &[0, 0]), message(b'T', &column), ready()].concat()
}

fn row(text: &str) -> Vec<u8> {
    let length = (text.len() as u32).to_be_bytes();
    message(b'D', &[&[0, 1], &length[..], text.as_bytes()].concat())
}

/// Makes a client of a server that has already sent all these messages, and waits in the other socket.
pub fn client_of(limit: Duration, said: &[Vec<u8>]) -> (Client, UnixStream) {
    let (near, mut far) = UnixStream::pair().expect("sockets");
    far.write_all(&said.concat()).expect("room");
    near.set_read_timeout(Some(limit)).and_then(|()| near.set_write_timeout(Some(limit))).expect("limits");
    (Client::over(Stream::plain(OwnedFd::from(near)), limit), far)
}

/// Returns the messages that the server got until the client ended.
pub fn heard(client: Client, mut far: UnixStream) -> Vec<(char, Vec<u8>)> {
    drop(client);
    let mut bytes = Vec::new();
    far.read_to_end(&mut bytes).expect("what was sent");
    let (mut rest, mut messages) = (&bytes[..], Vec::new());
    while let Some((&[kind, a, b, c, d], after)) = rest.split_first_chunk() {
        let (body, next) = after.split_at(u32::from_be_bytes([a, b, c, d]) as usize - 4);
        messages.push((char::from(kind), body.to_vec()));
        rest = next;
    }
    assert!(rest.is_empty(), "half a message: {rest:?}");
    messages
}

fn kinds(messages: &[(char, Vec<u8>)]) -> String {
    messages.iter().map(|(kind, _)| kind).collect()
}

/// Returns a comparable result, because rows and statements cannot be compared.
fn failed<T>(result: Result<T, Failure>) -> Result<(), String> {
    result.map(|_| ()).map_err(Failure::into_words)
}

const CLOSED: &str = "PostgreSQL: it closed the connection";
const SHUTTING_DOWN: &str = "PostgreSQL: shutting down (SQLSTATE 57P01)";

#[test]
fn after_an_error_the_connection_is_used_on() {
    let said = [notice(), error("22012", "division by zero"), notice(), ready(), done("UPDATE 1")];
    let (mut client, _far) = client_of(LIMIT, &said);
    let expected = "PostgreSQL: division by zero (SQLSTATE 22012)".to_owned();
    assert_eq!(Err(expected), failed(client.tell("select 1 / 0")));
    assert_eq!(Ok(()), client.tell("update cards set security_code1 = 1"));
}

#[test]
fn a_row_is_read_with_a_notice_in_between() {
    let status = message(b'S', b"TimeZone\0UTC\0");
    let said = [prepared(), message(b'2', b""), notice(), row("15.1"), status, done("SELECT 1")];
    let (mut client, far) = client_of(LIMIT, &said);
    let row = client.ask("select version", &[]).expect("an answer").expect("a row");
    assert_eq!(Ok("15.1"), row.get::<&str>(0));
    assert_eq!("PDSBES", kinds(&heard(client, far)));
}

#[test]
fn of_several_rows_where_one_was_asked_for_the_rest_is_read() {
    let rows = [message(b'2', b""), row("1"), row("2"), row("3"), done("SELECT 3")];
    let (mut client, _far) = client_of(LIMIT, &[&[prepared()][..], &rows, &[done("SELECT 1")]].concat());
    let expected = "PostgreSQL: it answers with several rows where one was asked for".to_owned();
    assert_eq!(Err(expected), failed(client.ask("select name", &[])));
    assert_eq!(Ok(()), client.tell("select 1"));
}

/// The reason is reported whether the message arrived or the connection had ended before.
#[test]
fn a_server_that_ends_a_connection_is_asked_why() {
    let last = [error("57P01", "shutting down")];
    for (expected, said) in [(SHUTTING_DOWN, &last[..]), (CLOSED, &[])] {
        let (mut client, far) = client_of(LIMIT, said);
        far.shutdown(Shutdown::Write).expect("a socket");
        assert_eq!(Err(expected.to_owned()), failed(client.tell("select 1")));
    }
    let (mut client, far) = client_of(LIMIT, &last);
    drop(far);
    assert_eq!(Err(SHUTTING_DOWN.to_owned()), failed(client.tell("select 1")));
    let (mut client, far) = client_of(LIMIT, &last);
    drop(far);
    let copied = client.copy("copy cards from stdin", 1..100, |_, lines| {
        lines.resize(PIECE_BYTES, b'1');
        Ok(())
    });
    assert_eq!(Err(SHUTTING_DOWN.to_owned()), failed(copied));
}

#[test]
fn a_login_is_over_when_the_server_is_ready() {
    let key = message(b'K', &[0; 8]);
    let (mut client, mut far) =
        client_of(LIMIT, &[message(b'R', &[0; 4]), key, notice(), ready(), done("SELECT 1")]);
    assert_eq!(Ok(()), client.sign_on(&login(Proof::Nothing)).map(|_| ()));
    assert_eq!(Ok(()), client.tell("select 1"));
    // The startup message has version 3.0, and then the parameters.
    let expected = b"\0\x03\0\0client_encoding\0UTF8\0user\0user\0database\0base\0\0";
    let mut told = vec![0; 4 + expected.len()];
    far.read_exact(&mut told).expect("what was sent");
    assert_eq!(expected, &told[4..]);
}

fn login(proof: Proof) -> Login {
    let [user, database, password] = ["user", "base", "secret"].map(str::to_owned);
    Login { user, database, proof, password }
}

/// An impostor would get the password itself, or would not need to know its stored value.
#[test]
fn a_server_that_wants_another_proof_or_none_is_not_believed() {
    let sasl = message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0");
    let (clear, md5) = (message(b'R', &[0, 0, 0, 3]), message(b'R', &[0, 0, 0, 5, 1, 2, 3, 4]));
    let accepted = [message(b'R', &[0; 4]), ready()].concat();
    for (asked, because) in [
        (clear, "another proof"),
        (md5, "another proof"),
        (accepted.clone(), "without a proof"),
        ([sasl.clone(), accepted].concat(), "without a proof"),
        ([sasl, message(b'R', b"\0\0\0\x0cv=AAAA")].concat(), "does not know"),
    ] {
        let (mut client, far) = client_of(LIMIT, &[asked]);
        let words = failed(client.sign_on(&login(Proof::Scram))).expect_err("a refusal");
        assert!(words.contains(because), "{words}");
        drop(client);
        let mut told = Vec::new();
        (&far).read_to_end(&mut told).expect("what was sent");
        assert!(!told.windows(6).any(|bytes| bytes == b"secret"));
    }
}

/// The client does not wait for messages after the request, which it would otherwise believe.
#[test]
fn a_server_that_asks_for_a_password_is_left_at_once() {
    let (password, md5) = (vec![0, 0, 0, 3], vec![0, 0, 0, 5, 1, 2, 3, 4]);
    let sasl = b"\0\0\0\x0aSCRAM-SHA-256\0\0".to_vec();
    for request in [password, md5, sasl] {
        let (mut client, _far) =
            client_of(LIMIT, &[message(b'R', &request), error("28P01", "no password"), ready()]);
        let words = failed(client.sign_on(&login(Proof::Nothing)).map(|_| ())).expect_err("a refusal");
        assert!(words.contains("`pg_hba.conf`"), "{request:?}: {words}");
    }
}

#[test]
fn a_message_that_claims_too_much_is_not_waited_for() {
    for (expected, bytes) in [
        ("PostgreSQL: a message of it claims to have 4294967295 bytes", u32::MAX),
        ("PostgreSQL: a message of it claims to have 16777217 bytes", MOST_MESSAGE_BYTES + 1),
        (CLOSED, MOST_MESSAGE_BYTES),
    ] {
        let header = [b"D", &bytes.to_be_bytes()[..]].concat();
        let (mut client, far) = client_of(LIMIT, &[header]);
        far.shutdown(Shutdown::Write).expect("a socket");
        assert_eq!(Err(expected.to_owned()), failed(client.tell("select 1")));
        assert!(bytes == MOST_MESSAGE_BYTES || client.incoming.capacity() <= MOST_MESSAGE_BYTES as usize);
    }
}

/// The client would otherwise read the messages that are there.
#[test]
fn a_server_that_takes_nothing_is_not_waited_for_twice() {
    let expected = failed::<()>(Err(unanswered("PostgreSQL", SHORT)));
    let (mut client, _far) = client_of(SHORT, &[error("57P01", "shutting down"), ready()]);
    assert_eq!(expected, failed(client.tell(&" ".repeat(4 * 1024 * 1024))));
    let (mut client, _far) = client_of(SHORT, &[error("57P01", "shutting down"), ready()]);
    let copied = client.copy("copy cards from stdin", 1..1000, |_, lines| {
        lines.resize(PIECE_BYTES, b'1');
        Ok(())
    });
    assert_eq!(expected, failed(copied));
}

#[test]
fn a_server_that_says_nothing_is_waited_for_as_long_as_was_said() {
    let (mut client, _far) = client_of(SHORT, &[notice()]);
    assert_eq!(Err(unanswered("PostgreSQL", SHORT)), client.tell("select 1"));
}

#[test]
fn rows_are_copied() {
    let (mut client, far) = client_of(LIMIT, &[message(b'G', &[0, 0, 0]), done("COPY 3")]);
    let copied =
        client.copy("copy cards from stdin", 1..4, |id, lines| writeln!(lines, "{id}").map_err(broken));
    assert_eq!(Ok(()), copied);
    let messages = heard(client, far);
    assert_eq!("Qdc", kinds(&messages));
    assert_eq!(b"1\n2\n3\n".as_slice(), messages[1].1);
}

/// More rows than the sockets hold are sent to a server that reads all the time.
#[test]
fn many_rows_are_copied_in_pieces() {
    const ROWS: usize = 1000;
    let (near, mut far) = UnixStream::pair().expect("sockets");
    let server = thread::spawn(move || {
        far.write_all(&[message(b'G', &[0, 0, 0]), done("COPY 1000")].concat()).expect("room");
        let mut bytes = Vec::new();
        far.read_to_end(&mut bytes).expect("what was sent");
        bytes.iter().filter(|byte| **byte == b'\n').count()
    });
    let mut client = Client::over(Stream::plain(OwnedFd::from(near)), LIMIT);
    let copied = client.copy("copy cards from stdin", 0..ROWS as i64, |_, lines| {
        lines.extend_from_slice(&[b'1'; 1000]);
        lines.push(b'\n');
        Ok(())
    });
    assert_eq!(Ok(()), copied);
    drop(client);
    assert_eq!(ROWS, server.join().expect("a server"));
}

/// The copy's own failure is reported instead of the server's, and the next statement is not mistaken for a
/// line of the copy.
#[test]
fn a_row_that_cannot_be_made_ends_the_copy() {
    let cancelled = error("57014", "COPY from stdin failed: a row could not be made");
    for (expected, rows) in [("QddfQ", 2), ("QfQ", 0)] {
        let said = [message(b'G', &[0, 0, 0]), cancelled.clone(), ready(), done("SELECT 1")];
        let (mut client, far) = client_of(LIMIT, &said);
        let copied = client.copy("copy cards from stdin", 0..10, |id, lines| {
            lines.resize(PIECE_BYTES, b'1');
            if id < rows { Ok(()) } else { Err(broken("no such row")) }
        });
        assert_eq!(Err("PostgreSQL: no such row".to_owned()), failed(copied));
        assert_eq!(Ok(()), client.tell("select 1"));
        assert_eq!(expected, kinds(&heard(client, far)));
    }
}

#[test]
fn what_is_used_once_has_no_name_and_names_begin_again() {
    let once = [prepared(), message(b'2', b""), done("UPDATE 1")];
    let named = [prepared(), prepared(), done("DEALLOCATE ALL"), prepared()];
    let (mut client, far) = client_of(LIMIT, &[&once[..], &named].concat());
    assert_eq!(Ok(1), client.execute_once("update cards set name = 'a'", &[]));
    let name = |client: &mut Client| client.prepare("select name").expect("a statement").name.clone();
    assert_eq!("s1", name(&mut client));
    assert_eq!("s2", name(&mut client));
    assert_eq!(Ok(()), client.forget());
    assert_eq!("s1", name(&mut client));
    let messages = heard(client, far);
    let of_kind =
        |wanted| messages.iter().filter(move |(kind, _)| *kind == wanted).map(|(_, body)| &body[..]);
    assert_eq!(vec![b"deallocate all\0"], of_kind('Q').collect::<Vec<_>>());
    let parsed = of_kind('P').map(|body| body.split(|byte| *byte == 0).next().unwrap_or_default());
    assert_eq!(vec![&b""[..], b"s1", b"s2", b"s1"], parsed.collect::<Vec<_>>());
}
