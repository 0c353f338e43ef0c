//! SQLite, and SQLCipher built on AWS-LC: two builds of the same library, called through the same table of
//! functions.

mod api;
mod connection;
mod cryptography;

use std::collections::BTreeMap;
use std::ffi::{CStr, c_int};

use tollbar_contract::contract::Receipt;
use tollbar_contract::{calls, provider};
use tollbar_primitives::families::{IN_APPLICATION, Linked};
use tollbar_primitives::op::Kind;

pub use api::{Api, SQLITE as PLAIN, sqlcipher};
pub use connection::{Connection, Statement};

/// Providers of this library.
pub const KINDS: [Kind; 2] =
    [("sqlite", |_, _| Ok(Box::new(SQLITE))), ("sqlcipher", |_, _| Ok(Box::new(SQLCIPHER)))];

pub const SQLITE: Linked =
    Linked { name: "sqlite", receipt: of_sqlite, table: &[], storage: &[IN_APPLICATION] };
pub const SQLCIPHER: Linked = Linked {
    name: "sqlcipher",
    receipt: of_sqlcipher,
    table: &[],
    storage: &[IN_APPLICATION, &["sqlcipher"]],
};

fn of_sqlite() -> Receipt {
    let version = version(&PLAIN);
    Receipt {
        provider: format!("SQLite {version}"),
        name: format!("sqlite {version}"),
        parts: parts(&PLAIN, &["rusqlite", "aws-lc-rs", "aws-lc-sys"]),
        ..Receipt::default()
    }
}

fn of_sqlcipher() -> Receipt {
    let api = sqlcipher();
    let pragma = |name: &str| {
        let connection = Connection::open(api, std::path::Path::new(":memory:"))?;
        // SQLCipher reports its provider only for a database with a key.
        connection.execute("PRAGMA key = 'of nothing'")?;
        connection.text(&format!("PRAGMA {name}"))
    };
    // The version is, for example, `4.20.0 community`. Without one the receipt is empty, and nothing is
    // measured.
    let whole = pragma("cipher_version").unwrap_or_default();
    let number = whole.split(' ').next().unwrap_or_default();
    let mut parts = parts(api, &["sqlcipher-src", "aws-lc-rs", "aws-lc-sys"]);
    parts.insert("sqlite".to_owned(), version(api));
    for name in ["cipher_provider", "cipher_provider_version"] {
        parts.insert(name.to_owned(), pragma(name).unwrap_or_default());
    }
    let provider = if whole.is_empty() { String::new() } else { format!("SQLCipher {whole}") };
    Receipt { provider, name: format!("sqlcipher {number}"), parts, ..Receipt::default() }
}

fn version(api: &Api) -> String {
    // SAFETY: it is a constant text.
    unsafe { CStr::from_ptr((api.libversion)()) }.to_string_lossy().into_owned()
}

/// Returns the crates that it is built from, and its compile options.
fn parts(api: &Api, names: &[&str]) -> BTreeMap<String, String> {
    let mut parts = provider::parts(names);
    parts.insert("compile options".to_owned(), options(api).join(" "));
    parts
}

fn options(api: &Api) -> Vec<String> {
    // SAFETY: a number that is too large gives null; otherwise it is a constant text.
    let option = |number: c_int| unsafe {
        let text = (api.compileoption_get)(number);
        (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
    };
    (0..).map_while(option).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_differ_by_sqlcipher_alone() {
        assert_eq!(version(&PLAIN), version(sqlcipher()));
        let (plain, other) = (options(&PLAIN), options(sqlcipher()));
        let kept = |option: &&String| !other.contains(option);
        let lost: Vec<&String> = plain.iter().filter(kept).collect();
        assert_eq!(vec!["TEMP_STORE=1"], lost, "what plain SQLite has and SQLCipher has not");
        let more: Vec<&String> = other.iter().filter(|option| !plain.contains(option)).collect();
        let asked = ["EXTRA_INIT=", "EXTRA_SHUTDOWN=", "HAS_CODEC", "TEMP_STORE=2"];
        assert!(more.iter().all(|option| asked.iter().any(|name| option.starts_with(name))), "{more:?}");
    }

    #[test]
    fn a_receipt_says_version_cryptography_and_options() {
        let receipt = of_sqlcipher();
        assert!(receipt.name.starts_with("sqlcipher 4."), "{receipt:?}");
        assert_eq!("aws-lc", receipt.parts["cipher_provider"]);
        assert!(receipt.parts["cipher_provider_version"].contains("AWS-LC"), "{receipt:?}");
        assert!(of_sqlite().name.starts_with("sqlite 3."));
    }
}
