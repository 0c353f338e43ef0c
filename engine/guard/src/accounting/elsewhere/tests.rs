//! Simulated machines: a request to several goes to all before any has to answer.

use std::collections::BTreeMap;
use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread::JoinHandle;
use std::time::Duration;

use super::{
    Answer, Asked, Greeting, NONCE_BYTES, Place, Proof, ROUND_TRIPS, VERSION, hear, read_token, say, token,
};
use crate::accounting::{Accounts, Bill, Paid};

/// Requests that are answered only after all other machines received them.
const TOGETHER: [&str; 4] = ["Begin", "Bill", "Read", "Close"];

const NAMES: [&str; 3] = ["web", "database", "directory"];

/// Limits of a bill's exactness that an agent reports: resolution of a tick, unsettled.
type Flags = (bool, bool);

/// Starts an agent of one component, which bills with these flags until its connection ends. Returns its
/// address, and a handle that yields the requests.
fn agent(name: &'static str, flags: Flags, all: Arc<Barrier>) -> (SocketAddr, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let answering = std::thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a client");
        let mut stream = BufReader::new(stream);
        say(&mut stream, &Greeting { accounts: VERSION, nonce: hex::encode([0; NONCE_BYTES]) })
            .expect("a greeting");
        hear::<Proof>(&mut stream).expect("a proof");
        let mut heard = Vec::new();
        while let Ok(asked) = hear::<Asked>(&mut stream) {
            let word = format!("{asked:?}");
            let mut answer = Answer::default();
            if TOGETHER.contains(&word.as_str()) {
                all.wait();
                answer.components.insert(name.to_owned(), Paid { cpu_ns: 1, ..Paid::default() });
                if word == "Bill" {
                    (answer.ticks, answer.unsettled) = flags;
                }
                heard.push(word);
            }
            say(&mut stream, &answer).expect("an answer");
        }
        heard
    });
    (address, answering)
}

/// File that only its owner can read, with a token of 32 zeros; removed when this is dropped.
pub struct TokenFile(pub String);

impl TokenFile {
    pub fn new() -> TokenFile {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let name = format!("tollbar-token-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(&path).expect("a file");
        std::io::Write::write_all(&mut file, "00".repeat(32).as_bytes()).expect("a token");
        TokenFile(path.to_str().expect("a plain path").to_owned())
    }
}

impl Drop for TokenFile {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).expect("the token");
    }
}

/// Bills three machines together, each with its flags.
fn billed(flags: [Flags; 3]) -> Bill {
    let token = TokenFile::new();
    let all = Arc::new(Barrier::new(NAMES.len()));
    let agents: Vec<_> =
        std::iter::zip(NAMES, flags).map(|(name, flags)| agent(name, flags, Arc::clone(&all))).collect();
    let places: Vec<Place> = std::iter::zip(NAMES, &agents)
        .map(|(name, (address, _))| Place {
            address: *address,
            token_file: token.0.clone(),
            components: BTreeMap::from([(name.to_owned(), 1)]),
        })
        .collect();
    let mut accounts =
        Accounts::open(&BTreeMap::new()).and_then(|here| here.with_others(&places)).expect("accounts");
    let round_trips = accounts.round_trips_ns();
    assert_eq!(BTreeMap::from(NAMES.map(|name| (name.to_owned(), true))), {
        round_trips.into_iter().map(|(name, ns)| (name, (1_000..60_000_000_000).contains(&ns))).collect()
    });
    let opening = accounts.begin();
    let bill = accounts.bill(&opening);
    accounts.read();
    accounts.close();
    assert_eq!(Ok(()), accounts.all_there());
    drop(accounts);
    for (_, answering) in agents {
        assert_eq!(TOGETHER.to_vec(), answering.join().expect("what it was asked"));
    }
    bill
}

/// Sequential requests would get no answer, because each machine waits for the others.
#[test]
fn all_machines_are_asked_before_any_has_to_answer() {
    assert_eq!(NAMES.len() as u64, billed([(false, false); 3]).components_ns());
}

/// A limit of exactness that some machines report applies to the whole bill.
#[test]
fn a_bill_is_as_exact_as_its_least_exact_part() {
    let exact = (false, false);
    for flags in [
        [exact; 3],
        [(true, false), exact, exact],
        [exact, (false, true), exact],
        [exact, (true, false), (true, false)],
        [(false, true), exact, (false, true)],
        [(true, false), (false, true), exact],
    ] {
        let bill = billed(flags);
        let any = (flags.iter().any(|one| one.0), flags.iter().any(|one| one.1));
        assert_eq!(any, (bill.ticks, bill.unsettled), "{flags:?}");
    }
}

/// Opens the accounts of an agent that answers `late` pings late and then sends only `then`; None: it ends
/// the connection.
fn opened(late: usize, then: Option<&'static str>) -> (SocketAddr, Result<Accounts, String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || -> Result<(), String> {
        let (stream, _) = listener.accept().expect("a client");
        let mut stream = BufReader::new(stream);
        say(&mut stream, &Greeting { accounts: VERSION, nonce: hex::encode([0; NONCE_BYTES]) })?;
        hear::<Proof>(&mut stream)?;
        for asked in 0..=ROUND_TRIPS {
            hear::<Asked>(&mut stream)?;
            if asked > ROUND_TRIPS - late {
                std::thread::sleep(LATE);
            }
            say(&mut stream, &Answer::default())?;
        }
        loop {
            hear::<Asked>(&mut stream)?;
            let Some(line) = then else { return Ok(()) };
            stream.get_mut().write_all(line.as_bytes()).map_err(|error| error.to_string())?;
        }
    });
    let token_file = TokenFile::new();
    let components = BTreeMap::from([("web".to_owned(), 1)]);
    let place = Place { address, token_file: token_file.0.clone(), components };
    (address, Accounts::open(&BTreeMap::new()).and_then(|here| here.with_others(&[place])))
}

const LATE: Duration = Duration::from_millis(20);

#[test]
fn of_round_trips_the_median_is_told() {
    let is_late = |late| {
        let (_, accounts) = opened(late, Some(""));
        accounts.expect("accounts").round_trips_ns()["web"] >= LATE.as_nanos() as u64
    };
    assert!(is_late(ROUND_TRIPS / 2 + 1));
    // A busy machine may itself be as late.
    assert!((0..5).any(|_| !is_late(ROUND_TRIPS / 2)));
}

/// A machine that is gone is a fault from then on, and the message names it.
#[test]
fn a_machine_that_fails_is_named() {
    for (then, words) in [
        (None, "the connection was closed"),
        (Some("{}}\n"), "not a line of the protocol"),
        (Some("{\"fault\": \"web (process 1) ended\"}\n"), "web (process 1) ended"),
    ] {
        let (address, accounts) = opened(0, then);
        let mut accounts = accounts.expect("accounts");
        assert_eq!(Ok(()), accounts.all_there());
        accounts.begin();
        let fault = accounts.all_there().expect_err("a fault");
        let place = if words.starts_with("web") { "" } else { &format!("the accounts at {address}: ") };
        assert!(fault.starts_with(&format!("{place}{words}")), "{fault}");
        accounts.read();
        assert_eq!(Err(fault), accounts.all_there());
    }
}

/// A missing answer and an invalid one have different messages.
#[test]
fn what_is_not_heard_says_why() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let connection = || {
        let client = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
        client.set_read_timeout(Some(LATE)).expect("a limit");
        (BufReader::new(client), listener.accept().expect("a client").0)
    };
    let (mut silent, _server) = connection();
    let words = hear::<Answer>(&mut silent).expect_err("no answer");
    assert!(words.starts_with("no answer within"), "{words}");
    let (mut talking, mut server) = connection();
    server.write_all(b"\xff\n").expect("sent");
    let words = hear::<Answer>(&mut talking).expect_err("no answer");
    assert!(words.contains("UTF-8"), "{words}");
}

#[test]
fn a_token_is_long_enough_hexadecimal_and_the_owners_alone() {
    let hexadecimal = "000102030405060708090a0b0c0d0e0f";
    let bytes: Vec<u8> = (0..16).collect();
    assert_eq!(Ok(bytes.clone()), token(hexadecimal));
    for wrong in [&hexadecimal[2..], "", &hexadecimal.replace('f', "g")] {
        assert!(token(wrong).is_err(), "{wrong}");
    }
    let file = TokenFile::new();
    std::fs::write(&file.0, format!("{hexadecimal}\n")).expect("a file");
    assert_eq!(Ok(bytes), read_token(&file.0));
    std::fs::set_permissions(&file.0, std::fs::Permissions::from_mode(0o640)).expect("a mode");
    assert_eq!(
        Err(format!("{}: other users can read this token; only its owner must", file.0)),
        read_token(&file.0)
    );
    assert!(read_token("/no/token").is_err());
}
