//! Messages of database servers, as clients parse them. The server has sent all of them before the client
//! asks.

use std::io::Write;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::give::Give;
use crate::failure::Failure;
use crate::store::mariadb::client::{self as mariadb, Plugin};
use crate::store::postgresql::client as postgresql;
use crate::store::postgresql::login::{Login, Proof};
use crate::tls::Stream;

const LIMIT: Duration = Duration::from_secs(10);

/// Returns the value, or checks that a failure has a message.
fn said<T>(result: Result<T, Failure>) -> Option<T> {
    result.map_err(|failure| assert!(!failure.into_words().is_empty())).ok()
}

fn stream(said: &[u8]) -> (Stream, UnixStream) {
    let (near, mut far) = UnixStream::pair().expect("sockets");
    far.write_all(said).and_then(|()| far.shutdown(Shutdown::Write)).expect("room");
    near.set_read_timeout(Some(LIMIT)).expect("a limit");
    (Stream::plain(OwnedFd::from(near)), far)
}

/// Tests PostgreSQL's client; the first byte selects the operation.
pub fn postgresql() -> Give {
    const PROOFS: [Proof; 4] = [Proof::Nothing, Proof::Password, Proof::Md5, Proof::Scram];
    Box::new(|bytes| {
        let Some((&first, bytes)) = bytes.split_first() else { return };
        let (stream, _far) = stream(bytes);
        let mut client = postgresql::Client::over(stream, LIMIT);
        match first % 9 {
            proof @ 0..4 => {
                let [user, database, password] = ["user", "base", "secret"].map(str::to_owned);
                let proof = PROOFS[usize::from(proof)];
                if said(client.sign_on(&Login { user, database, proof, password })).is_some() {
                    said(client.text_of("select 1"));
                }
            }
            4 => {
                said(client.text_of("select 1"));
                said(client.tell("begin"));
                if let Some(statement) = said(client.prepare("select $1")) {
                    said(client.first(&statement, &[&None::<i64>]));
                }
                said(client.forget());
                said(client.part());
            }
            5 => {
                let Some(Some(row)) = said(client.ask("select 1", &[])) else { return };
                for column in 0..=row.len() {
                    let _ = row.get::<&str>(column);
                    let _ = row.get::<i64>(column);
                    let _ = row.get::<Option<&[u8]>>(column);
                    let _ = row.get::<Vec<Option<&str>>>(column);
                }
            }
            6 => drop(said(client.ask("select $1", &[&"text"]))),
            7 => {
                said(client.execute_once("update", &[]));
                said(client.close());
            }
            _ => drop(said(client.copy("copy", 0..3, |id, line| {
                line.extend(id.to_string().bytes());
                Ok(())
            }))),
        }
    })
}

/// Tests MariaDB's client with a sign-on and then an operation.
pub fn mariadb() -> Give {
    Box::new(|bytes| {
        let Some((&first, bytes)) = bytes.split_first() else { return };
        let (stream, _far) = stream(bytes);
        let mut client = mariadb::Client::over(stream, LIMIT);
        if first & 1 == 0 {
            let Some(greeting) = said(client.greeting()) else { return };
            let plugin = if first & 2 == 0 { Plugin::Native } else { Plugin::Ed25519 };
            let login = mariadb::Login { user: "user".to_owned(), password: "secret".to_owned(), plugin };
            if said(client.sign_on(&login, mariadb::WANTED, &greeting)).is_none() {
                return;
            }
        }
        said(client.text_of("select 1"));
        said(client.part());
    })
}
