//! Streams of requests, as a connection of the embedded server parses them, behind each sign-in.

use std::path::PathBuf;

use rusqlite::Connection;
use serde_json::{Value, json};

use super::give::{Give, file};
use crate::clock;
use crate::http::request::{MOST_HEAD_BYTES, Status, parse};
use crate::serve::operations::Operations;
use crate::serve::routes::Service;
use crate::sign_in::Gate;

/// Secret that signs the seeds.
const SECRET: &str = "a secret of at least 32 characters";
/// Accounts with the password `password`: in clear, as keys of HMAC, and hashed.
const IN_CLEAR: &str = "u1:password\n";
const SHA_1: &str = "u1:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n";
const SHA_256: &str = "u1:{SHA-256}5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8\n";
/// HMAC of the password `secret`, with the key `pepper`.
const HMAC: &str = "u2:{HMAC-SHA-256}804e6d854739162fdea0d455b3aafe67f40d2919406186a27be601596ac6d306\n";
const SHA_1_OF_ANOTHER: &str = "u3:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n";
/// Account whose hash is SHA-256 of `u1:tollbar:password`.
const DIGEST: &str = "u1:tollbar:be77626087728de3a6b4b53ec81d1bd47eea564f9b1c1f09a10f7c53ffa42219\n";

/// Database with the SHA-256 of `good` and of `old`.
const HELD: &str = "
    CREATE TABLE held (hash BLOB PRIMARY KEY, name TEXT NOT NULL, expires_s INTEGER NOT NULL) WITHOUT ROWID;
    INSERT INTO held VALUES (x'770e607624d689265ca6c44884d0807d9b054d23c473c106c72be9de08b7376c', 'u1', 99999999999);
    INSERT INTO held VALUES (x'cba06b5736faf67e54b07b561eae94395e774c517a7d910a54369e1263ccfbd4', 'u1', 1);
";

/// Restores `good` in a server's copy. Nothing is flushed to disk, because the copy ends with this process.
const PUT_BACK: &str = "
    PRAGMA synchronous = OFF;
    INSERT OR IGNORE INTO held VALUES (x'770e607624d689265ca6c44884d0807d9b054d23c473c106c72be9de08b7376c', 'u1', 99999999999);
";

pub fn plain() -> Give {
    behind(None)
}

pub fn basic() -> Give {
    behind(Some(json!({"scheme": "basic", "store": {"file": file(SHA_1)}})))
}

pub fn api_key() -> Give {
    let store = file(&[SHA_256, HMAC, SHA_1_OF_ANOTHER].concat());
    behind(Some(json!({"scheme": "api-key", "store": {"file": store}, "pepper": file("pepper")})))
}

pub fn form() -> Give {
    behind(Some(json!({"scheme": "form", "store": {"file": file(SHA_1)}})))
}

pub fn digest() -> Give {
    behind(Some(json!({"scheme": "digest", "store": {"file": file(DIGEST)}})))
}

pub fn jwt() -> Give {
    behind(Some(json!({"scheme": "jwt", "signature": "hs256", "verification_key": file(SECRET)})))
}

pub fn hmac() -> Give {
    behind(Some(json!({"scheme": "hmac", "store": {"file": file(IN_CLEAR)}})))
}

pub fn opaque_token() -> Give {
    let held = Held::new("tokens");
    held.kept(behind(Some(json!({"scheme": "opaque-token", "held": held.spec()}))))
}

pub fn session_cookie() -> Give {
    let held = Held::new("sessions");
    let spec = json!({"scheme": "session-cookie", "store": {"file": file(SHA_1)}, "held": held.spec()});
    held.kept(behind(Some(spec)))
}

/// Folder with a database of user tokens: `good`, which belongs to `u1`, and `old`, which has expired. The
/// server has both files of its copy open when this is dropped, so that nothing remains.
struct Held(PathBuf);

impl Held {
    fn new(name: &str) -> Held {
        let folder = std::env::temp_dir().join(format!("tollbar-fuzz-{}-{name}", std::process::id()));
        std::fs::create_dir(&folder).expect("a folder");
        let database = Connection::open(folder.join("from")).expect("a database");
        database.execute_batch(HELD).expect("a table");
        Held(folder)
    }

    fn spec(&self) -> Value {
        json!({"from": self.0.join("from"), "at": self.0.join("at")})
    }

    /// Restores the valid token after each input: an input that ends it would leave later ones nothing to
    /// sign in with.
    fn kept(&self, mut give: Give) -> Give {
        let database = Connection::open(self.0.join("at")).expect("the server's copy");
        let put_back = move || database.execute_batch(PUT_BACK).expect("a row");
        put_back();
        Box::new(move |bytes| {
            give(bytes);
            put_back();
        })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Checks that no request makes the server fail, none is longer than the input, and none changes with the
/// bytes behind it.
fn behind(sign_in: Option<Value>) -> Give {
    let gate = sign_in.map(|spec| serde_json::from_value::<Gate>(spec).expect("a sign-in"));
    let server = gate.map(|gate| gate.prepare().unwrap_or_else(|failure| panic!("{failure:?}")));
    let operations = Operations::prepare(&[]).unwrap_or_else(|failure| panic!("{failure:?}"));
    let mut service = Service::new(operations, server, None);
    let failed = Status::OperationFailed.line().as_bytes();
    Box::new(move |bytes| {
        let bytes = &dated(bytes);
        let mut used = 0;
        while used < bytes.len() {
            let rest = &bytes[used..];
            let answer = match parse(rest) {
                Ok(None) => {
                    assert!(rest.len() < MOST_HEAD_BYTES);
                    break;
                }
                Ok(Some(request)) => {
                    assert!((1..=rest.len().min(MOST_HEAD_BYTES)).contains(&request.bytes));
                    assert_eq!(Ok(Some(request)), parse(&rest[..request.bytes]));
                    let body = service.body_of(&request);
                    let end = request.bytes + body.unwrap_or(0);
                    if rest.len() < end {
                        break;
                    }
                    used += end;
                    service.answer(&request, body.map(|_| &rest[request.bytes..end]))
                }
                Err(refused) => {
                    assert!(!refused.why.is_empty());
                    service.refuse(refused)
                }
            };
            let line = answer.whole.strip_prefix(b"HTTP/1.1 ").expect("an answer");
            assert!(!line.starts_with(failed), "{}", answer.whole.escape_ascii());
            if answer.closing {
                break;
            }
        }
    })
}

/// Replaces `{now}` by the time, which no stored input can contain.
fn dated(bytes: &[u8]) -> Vec<u8> {
    const NOW: &[u8] = b"{now}";
    match bytes.windows(NOW.len()).position(|window| window == NOW) {
        None => bytes.to_vec(),
        Some(at) => [&bytes[..at], clock::unix_s().to_string().as_bytes(), &bytes[at + NOW.len()..]].concat(),
    }
}
