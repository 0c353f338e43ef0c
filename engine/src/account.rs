//! `account`: answers for the accounts of this machine's components, asked by a load client on another one.

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use aws_lc_rs::hmac;
use serde::{Deserialize, Serialize};

use crate::accounting::elsewhere::{
    ANSWER_LIMIT, Answer, Asked, Greeting, MOST_LINE_BYTES, NONCE_BYTES, Proof, VERSION, hear, say, token,
};
use crate::accounting::{Accounts, Opening};

/// Who connects has to prove that it has the token within this.
const PROOF_LIMIT: Duration = Duration::from_secs(5);
/// A heat has a client for each of its trials.
const MOST_CONNECTIONS: usize = 256;

/// What an agent is told on the first line of its standard input.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    /// One address of this machine, and a port, or 0 for one that is free.
    listen: SocketAddr,
    token: String,
}

#[derive(Serialize)]
struct Listening {
    listening: String,
}

/// `account`: answers for the components of this machine, until standard input ends.
pub fn main() -> i32 {
    crate::guard::die_with_parent();
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
    // Nothing more comes: the end of the input is the end of the agent.
    let _ = std::io::copy(&mut input, &mut std::io::sink());
    i32::from(!listener)
}

fn configured(input: &mut impl BufRead) -> Result<(TcpListener, Vec<u8>), String> {
    let mut line = String::new();
    input.take(MOST_LINE_BYTES).read_line(&mut line).map_err(|error| error.to_string())?;
    let told: Configuration = serde_json::from_str(&line).map_err(|error| error.to_string())?;
    if told.listen.ip().is_unspecified() {
        return Err(format!("{}: an agent listens on one address, and not on all", told.listen));
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
            // An error ends the connection, which is where the other side notices it.
            let _ = converse(stream, &key);
            open.fetch_sub(1, Relaxed);
        });
    }
}

fn converse(stream: TcpStream, key: &hmac::Key) -> Result<(), String> {
    let words = |error: std::io::Error| error.to_string();
    stream.set_nodelay(true).map_err(words)?;
    stream.set_read_timeout(Some(PROOF_LIMIT)).map_err(words)?;
    stream.set_write_timeout(Some(ANSWER_LIMIT)).map_err(words)?;
    let mut stream = BufReader::new(stream);
    let mut nonce = [0; NONCE_BYTES];
    getrandom::fill(&mut nonce).map_err(|error| error.to_string())?;
    say(&mut stream, &Greeting { accounts: VERSION, nonce: hex::encode(nonce) })?;
    let said: Proof = hear(&mut stream)?;
    let is_proved = hex::decode(said.proof).is_ok_and(|tag| hmac::verify(key, &nonce, &tag).is_ok());
    if !is_proved {
        let fault = Some("the token is not this run's".to_owned());
        return say(&mut stream, &Answer { fault, ..Answer::default() });
    }
    // Between chunks the lab may take its time.
    stream.get_ref().set_read_timeout(None).map_err(words)?;
    let (mut accounts, mut opening) = (None, None);
    loop {
        let asked: Asked = hear(&mut stream)?;
        let answer = answered(asked, &mut accounts, &mut opening);
        say(&mut stream, &answer)?;
    }
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
    let Some(accounts) = accounts else { return fault("no accounts were opened".to_owned()) };
    let mut answer = Answer::default();
    match asked {
        Asked::Ping | Asked::Open(_) => return answer,
        Asked::Begin => {
            let begun = accounts.begin();
            answer.unsettled = !begun.settled;
            *opening = Some(begun);
        }
        Asked::Bill => {
            let Some(begun) = opening.take() else { return fault("no bill was begun".to_owned()) };
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
