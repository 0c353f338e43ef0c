//! Machines that answer as a test wants it: what is asked of several is asked of all before any has to answer.

use std::collections::BTreeMap;
use std::io::BufReader;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::{Arc, Barrier};
use std::thread::JoinHandle;

use super::{Answer, Asked, Greeting, NONCE_BYTES, Place, Proof, VERSION, hear, say};
use crate::accounting::{Accounts, Paid};

/// Who is answered only once all others were asked as well.
const TOGETHER: [&str; 4] = ["Begin", "Bill", "Read", "Close"];

/// An agent of one component, until its connection ends; what it was asked.
fn agent(name: &'static str, all: Arc<Barrier>) -> (SocketAddr, JoinHandle<Vec<String>>) {
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
                heard.push(word);
            }
            say(&mut stream, &answer).expect("an answer");
        }
        heard
    });
    (address, answering)
}

/// Sequentially asked, none would answer: each waits for the others.
#[test]
fn all_machines_are_asked_before_any_has_to_answer() {
    let token = std::env::temp_dir().join(format!("tollbar-token-{}", std::process::id()));
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&token).expect("a file");
    std::io::Write::write_all(&mut file, "00".repeat(32).as_bytes()).expect("a token");
    let names = ["web", "database", "directory"];
    let all = Arc::new(Barrier::new(names.len()));
    let agents: Vec<_> = names.into_iter().map(|name| agent(name, Arc::clone(&all))).collect();
    let places: Vec<Place> = std::iter::zip(names, &agents)
        .map(|(name, (address, _))| Place {
            address: *address,
            token_file: token.to_str().expect("a plain path").to_owned(),
            components: BTreeMap::from([(name.to_owned(), 1)]),
        })
        .collect();
    let opened = Accounts::open(&BTreeMap::new()).and_then(|here| here.beside(&places));
    std::fs::remove_file(&token).expect("the token");
    let mut accounts = opened.expect("accounts");
    let opening = accounts.begin();
    let bill = accounts.bill(&opening);
    accounts.read();
    accounts.close();
    assert_eq!(Ok(()), accounts.all_there());
    assert_eq!(names.len() as u64, bill.components_ns());
    drop(accounts);
    for (_, answering) in agents {
        assert_eq!(TOGETHER.to_vec(), answering.join().expect("what it was asked"));
    }
}
