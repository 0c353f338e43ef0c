//! A row of a table for each page, read or written once its user is known.

use serde_json::{Value, json};

use super::{Served, get, refused};
use tollbar_sqlite::{Connection, PLAIN};

/// A directory of a test, which is removed with it.
pub struct Directory(std::path::PathBuf);

impl Directory {
    pub fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("tollbar-rows-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).expect("a new directory");
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn config(directory: &Directory, op: &str, setting: Value) -> Value {
    let store = json!({"directory": directory.0.join("rows"), "server": null});
    json!({"listen": "127.0.0.1:0", "rows": {
        "mode": "measure", "provider": {"kind": "sqlite"}, "family": "storage", "op": op, "choice": "aes-256-gcm",
        "setting": setting, "seed": 7, "store": store,
    }})
}

#[test]
fn each_page_reads_a_row() {
    let directory = Directory::new("read");
    let served = Served::start(&config(&directory, "read", json!({"rows": 20})), None);
    for _ in 0..3 {
        let reply = served.ask("/bytes/10");
        assert_eq!((200, 10), (reply.status, reply.body.len()));
    }
    for rows in ["3 rows", "0 rows"] {
        assert_eq!(format!("{rows}, connections: one that is kept\n").into_bytes(), served.ask("/rows").body);
    }
    // The next page fails if another program has deleted the rows.
    let table = Connection::open(&PLAIN, &directory.0.join("rows/cards.sqlite")).unwrap();
    table.execute("DELETE FROM card").unwrap();
    assert_eq!(500, served.ask("/bytes/10").status);
}

#[test]
fn each_page_writes_a_row() {
    let directory = Directory::new("insert");
    let served = Served::start(&config(&directory, "insert", json!({"rows-per-commit": 1})), None);
    let size = || -> u64 {
        let files = std::fs::read_dir(directory.0.join("rows")).unwrap().flatten();
        files.map(|entry| entry.metadata().unwrap().len()).sum()
    };
    let before = size();
    let mut client = served.client();
    for _ in 0..1100 {
        client.send(get("/bytes/1"));
        assert_eq!(200, client.reply().status);
    }
    assert!(size() > before + 100_000, "{} to {}", before, size());
}

/// The file is open only while a page is made.
#[test]
fn a_database_may_be_opened_for_each_page() {
    let directory = Directory::new("each");
    let mut config = config(&directory, "insert", json!({"rows-per-commit": 1}));
    config["rows"]["store"]["connection"] = "each-request".into();
    let served = Served::start(&config, None);
    (0..3).for_each(|_| assert_eq!(200, served.ask("/bytes/10").status));
    let said = served.ask("/rows").body;
    assert_eq!(b"3 rows, connections: none between requests\n".to_vec(), said);
    // The database was closed cleanly, without further files.
    assert_eq!(1, std::fs::read_dir(directory.0.join("rows")).unwrap().count());
}

#[test]
fn what_no_page_can_do_is_refused() {
    for (op, setting, words) in [
        ("find", json!({"rows": 20}), "a page must read one row"),
        ("insert", json!({"rows-per-commit": 250}), "a page must read one row"),
        ("read", json!({"rows": 20, "unknown": 1}), "unknown"),
    ] {
        let directory = Directory::new(&format!("refused-{op}-{}", words.len()));
        let (status, line, _) = refused(&config(&directory, op, setting).to_string());
        assert_eq!(Some(3), status.code(), "{line}");
        assert!(line.contains(words), "{line}");
    }
}
