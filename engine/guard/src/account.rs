//! `account`: an agent that reports the accounts of this machine's components to a load client on another
//! machine.

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use aws_lc_rs::hmac;
use serde::{Deserialize, Serialize};

use crate::accounting::elsewhere::{
    ANSWER_LIMIT, Answer, Asked, Greeting, MOST_LINE_BYTES, NONCE_BYTES, Proof, VERSION, hear, say, token,
};
use crate::accounting::{Accounts, Opening};

/// Time limit for a client to prove that it has the token, however slowly its bytes arrive.
const PROOF_LIMIT: Duration = Duration::from_secs(5);
/// Room for a tag in hexadecimal and the JSON around it.
const MOST_PROOF_BYTES: usize = 256;
/// Limit of connections: a batch has a client for each of its trials.
const MOST_CONNECTIONS: usize = 256;

/// Configuration of an agent: the first line of its standard input.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    /// An address of this machine, and a port, or 0 for a free one.
    listen: SocketAddr,
    token: String,
}

#[derive(Serialize)]
struct Listening {
    listening: String,
}

/// Runs `account`: reports this machine's components until standard input ends.
pub fn main() -> i32 {
    crate::process::die_with_parent();
    let mut input = std::io::stdin().lock();
    let listener = match configured(&mut input) {
        Ok((listener, token)) => {
            let address = listener.local_addr().map(|address| address.to_string()).unwrap_or_default();
            std::thread::spawn(move || serve(&listener, &token));
            crate::runner::say(&Listening { listening: address })
        }
        Err(reason) => {
            eprintln!("account: {reason}");
            return 1;
        }
    };
    // No more lines come: the agent ends with its input.
    let _ = std::io::copy(&mut input, &mut std::io::sink());
    i32::from(!listener)
}

fn configured(input: &mut impl BufRead) -> Result<(TcpListener, Vec<u8>), String> {
    let mut line = String::new();
    input.take(MOST_LINE_BYTES).read_line(&mut line).map_err(|error| error.to_string())?;
    let told: Configuration = serde_json::from_str(&line).map_err(|error| error.to_string())?;
    if told.listen.ip().is_unspecified() {
        return Err(format!("{}: an agent must listen on one address, not on all", told.listen));
    }
    let token = token(&told.token)?;
    let listener =
        TcpListener::bind(told.listen).map_err(|error| format!("{}: {error}", told.listen.ip()))?;
    Ok((listener, token))
}

fn serve(listener: &TcpListener, token: &[u8]) {
    let key = Arc::new(hmac::Key::new(hmac::HMAC_SHA256, token));
    let open = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming().flatten() {
        if open.fetch_add(1, Relaxed) >= MOST_CONNECTIONS {
            open.fetch_sub(1, Relaxed);
            continue;
        }
        let (key, open) = (Arc::clone(&key), Arc::clone(&open));
        std::thread::spawn(move || {
            // An error ends the connection, and the client notices that.
            let _ = converse(stream, &key);
            open.fetch_sub(1, Relaxed);
        });
    }
}

fn converse(stream: TcpStream, key: &hmac::Key) -> Result<(), String> {
    let words = |error: std::io::Error| error.to_string();
    stream.set_nodelay(true).map_err(words)?;
    stream.set_write_timeout(Some(ANSWER_LIMIT)).map_err(words)?;
    let mut stream = BufReader::new(stream);
    let mut nonce = [0; NONCE_BYTES];
    getrandom::fill(&mut nonce).map_err(|error| error.to_string())?;
    say(&mut stream, &Greeting { accounts: VERSION, nonce: hex::encode(nonce) })?;
    let said = hear_proof(&mut stream, Instant::now() + PROOF_LIMIT)?;
    let is_proved = hex::decode(said.proof).is_ok_and(|tag| hmac::verify(key, &nonce, &tag).is_ok());
    if !is_proved {
        let fault = Some("the token is not this run's".to_owned());
        return say(&mut stream, &Answer { fault, ..Answer::default() });
    }
    // The lab may pause between chunks.
    stream.get_ref().set_read_timeout(None).map_err(words)?;
    let (mut accounts, mut opening) = (None, None);
    loop {
        let asked: Asked = hear(&mut stream)?;
        let answer = answered(asked, &mut accounts, &mut opening);
        say(&mut stream, &answer)?;
    }
}

/// Reads a proof, with one deadline for the whole line. A limit for each read would let a client send a byte
/// every few seconds and keep the connection for days.
fn hear_proof(stream: &mut BufReader<TcpStream>, by: Instant) -> Result<Proof, String> {
    let mut line = Vec::new();
    while line.last() != Some(&b'\n') {
        let left = by.saturating_duration_since(Instant::now());
        if left.is_zero() || line.len() == MOST_PROOF_BYTES {
            return Err("no proof of the token came in time".to_owned());
        }
        stream.get_ref().set_read_timeout(Some(left)).map_err(|error| error.to_string())?;
        let mut byte = [0];
        stream.read_exact(&mut byte).map_err(|error| error.to_string())?;
        line.extend(byte);
    }
    serde_json::from_slice(&line).map_err(|error| error.to_string())
}

fn answered(asked: Asked, accounts: &mut Option<Accounts>, opening: &mut Option<Opening>) -> Answer {
    let fault = |reason: String| Answer { fault: Some(reason), ..Answer::default() };
    if let Asked::Open(components) = asked {
        return match Accounts::open(&components) {
            Ok(opened) => {
                *accounts = Some(opened);
                Answer::default()
            }
            Err(reason) => fault(reason),
        };
    }
    let Some(accounts) = accounts else {
        return fault("no accounts were opened before this request".to_owned());
    };
    let mut answer = Answer::default();
    match asked {
        Asked::Ping | Asked::Open(_) => return answer,
        Asked::Begin => {
            let begun = accounts.begin();
            answer.unsettled = !begun.settled;
            *opening = Some(begun);
        }
        Asked::Start => {
            let Some(begun) = opening else {
                return fault("no account was begun before this request".to_owned());
            };
            accounts.start(begun);
            answer.unsettled = !begun.settled;
        }
        Asked::Bill => {
            let Some(begun) = opening.take() else {
                return fault("no account was begun before this request".to_owned());
            };
            let bill = accounts.bill(&begun);
            (answer.components, answer.ticks, answer.unsettled) =
                (bill.components, bill.ticks, bill.unsettled);
        }
        Asked::Read => {
            accounts.read();
        }
        Asked::Close => answer.usage = accounts.close(),
    }
    answer.fault = accounts.all_there().err();
    answer
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Write;
    use std::process::Command;

    use super::*;
    use crate::accounting::elsewhere::{Place, tests::TokenFile};

    /// Sends a proof a byte at a time, `pause` apart, and returns the result of reading it within this limit.
    fn heard(pause: Duration, limit: Duration) -> Result<Proof, String> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its number");
        let sender = std::thread::spawn(move || {
            let mut stream = TcpStream::connect(address).expect("a connection");
            for byte in b"{\"proof\":\"00\"}\n" {
                if stream.write_all(&[*byte]).is_err() {
                    break;
                }
                std::thread::sleep(pause);
            }
        });
        let (stream, _) = listener.accept().expect("a connection");
        let said = hear_proof(&mut BufReader::new(stream), Instant::now() + limit);
        sender.join().expect("all of it sent");
        said
    }

    #[test]
    fn a_proof_is_heard_whole_or_not_at_all_within_its_limit() {
        assert_eq!("00", heard(Duration::ZERO, Duration::from_secs(60)).expect("a proof").proof);
        assert!(heard(Duration::from_millis(100), Duration::from_millis(300)).is_err());
    }

    /// JSON allows spaces before a proof; with too many of them the line is too long.
    #[test]
    fn a_proof_that_is_too_long_is_none() {
        let proof = "{\"proof\":\"00\"}\n";
        for (spaces, is_proof) in [(MOST_PROOF_BYTES - proof.len(), true), (MOST_PROOF_BYTES, false)] {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let mut client =
                TcpStream::connect(listener.local_addr().expect("its number")).expect("a connection");
            client.write_all(format!("{}{proof}", " ".repeat(spaces)).as_bytes()).expect("sent");
            let (stream, _) = listener.accept().expect("a connection");
            let said = hear_proof(&mut BufReader::new(stream), Instant::now() + Duration::from_secs(60));
            assert_eq!(is_proof, said.is_ok(), "{spaces} spaces");
        }
    }

    /// Concurrent connections are greeted, each with its own nonce.
    #[test]
    fn who_connects_is_greeted() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its number");
        std::thread::spawn(move || serve(&listener, b"token"));
        let connections: Vec<_> =
            (0..2).map(|_| TcpStream::connect(address).expect("a connection")).collect();
        let greetings = connections.into_iter().map(|stream| {
            stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a limit");
            let greeting: Greeting = hear(&mut BufReader::new(stream)).expect("a greeting");
            greeting
        });
        let [one, other] = greetings.collect::<Vec<_>>().try_into().expect("two");
        assert_eq!((VERSION, VERSION), (one.accounts, other.accounts));
        assert_eq!(2 * NONCE_BYTES, one.nonce.len());
        assert_ne!(one.nonce, other.nonce);
    }

    /// Starts an agent with this token, and opens the accounts of a process as a client whose token is 32
    /// zeros.
    fn asked_by_another(token: &'static [u8], process: u32) -> Result<Accounts, String> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its number");
        std::thread::spawn(move || serve(&listener, token));
        let file = TokenFile::new();
        let components = BTreeMap::from([("web".to_owned(), process as i32)]);
        let place = Place { address, token_file: file.0.clone(), components };
        Accounts::open(&BTreeMap::new())?.with_others(&[place])
    }

    #[test]
    fn who_has_the_token_is_told_what_was_paid() {
        let mut accounts = asked_by_another(&[0; 32], std::process::id()).expect("accounts");
        let opening = accounts.begin();
        let end_ns = crate::clock::process_cpu_ns() + 5_000_000;
        while crate::clock::process_cpu_ns() < end_ns {}
        let bill = accounts.bill(&opening);
        assert!(bill.components["web"].cpu_ns >= 4_000_000, "{bill:?}");
        accounts.read();
        let usage = accounts.close();
        // Other tests' threads may have child processes, which this process's account includes.
        assert!(usage["web"].memory_bytes > 0 && usage["web"].processes >= 1, "{usage:?}");
        assert_eq!(Ok(()), accounts.all_there());
    }

    /// The agent reports whether its components were idle when a bill was begun, and the opening carries
    /// that.
    #[test]
    fn a_bill_that_is_begun_at_work_elsewhere_says_so() {
        let settled = |script: &str, attempts: usize| {
            let mut child = Command::new("sh").args(["-c", script]).spawn().expect("a shell");
            let accounts = asked_by_another(&[0; 32], child.id());
            let settled = accounts.map(|mut accounts| (0..attempts).any(|_| accounts.begin().settled));
            child.kill().expect("an end");
            child.wait().expect("a status");
            settled
        };
        assert_eq!(Ok(false), settled("while :; do :; done", 1));
        // A busy machine may keep the process running for longer than the agent waits.
        assert_eq!(Ok(true), settled("exec sleep 60", 100));
    }

    #[test]
    fn who_has_another_token_is_told_nothing() {
        let refused = asked_by_another(&[1; 32], std::process::id()).err().expect("a refusal");
        assert!(refused.ends_with("the token is not this run's"), "{refused}");
    }

    /// An account must be opened before it is begun, and begun before it is billed.
    #[test]
    fn what_was_not_opened_or_begun_is_not_billed() {
        let (mut accounts, mut opening) = (None, None);
        let mut fault = |asked: Asked| answered(asked, &mut accounts, &mut opening).fault;
        let none_opened = Some("no accounts were opened before this request".to_owned());
        for asked in [Asked::Ping, Asked::Begin, Asked::Bill, Asked::Read, Asked::Close] {
            assert_eq!(none_opened, fault(asked));
        }
        for pid in [-1, 0, i32::MAX] {
            let said = Some(format!("web: there is no process {pid} to account for"));
            assert_eq!(said, fault(Asked::Open(BTreeMap::from([("web".to_owned(), pid)]))));
            assert_eq!(none_opened, fault(Asked::Ping));
        }
        let here = BTreeMap::from([("web".to_owned(), std::process::id() as i32)]);
        assert_eq!(None, fault(Asked::Open(here)));
        assert_eq!(None, fault(Asked::Ping));
        assert_eq!(Some("no account was begun before this request".to_owned()), fault(Asked::Bill));
        assert_eq!(None, fault(Asked::Begin));
        assert_eq!(None, fault(Asked::Bill));
        assert_eq!(Some("no account was begun before this request".to_owned()), fault(Asked::Bill));
    }
}
