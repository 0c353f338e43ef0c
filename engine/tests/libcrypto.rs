//! Libcryptos of this machine, each in its own process.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tollbar_testing::lacking;

use serde_json::{Value, json};

/// SONAME of the system's library; the copy gets the other.
const SONAME: &[u8] = b"libcrypto.so.3\0";
const OTHER_SONAME: &[u8] = b"libcrypto.so.X\0";

fn answer(task: &Value) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollbar-engine"));
    let mut process =
        command.arg("op").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the engine");
    process.stdin.take().expect("its input").write_all(task.to_string().as_bytes()).expect("told");
    let output = process.wait_with_output().expect("its end");
    assert!(output.status.success(), "{:?} of {task}", output.status);
    serde_json::from_slice(&output.stdout).expect("a record")
}

fn encrypt(choice: &str, path: Option<&Path>) -> Value {
    let mut provider = json!({"kind": "libcrypto"});
    if let Some(path) = path {
        provider["path"] = json!(path);
    }
    answer(
        &json!({"contract": 2, "mode": "verify", "provider": provider, "family": "cipher", "op": "encrypt",
        "choice": choice}),
    )
}

fn key(name: &str) -> String {
    let keys = concat!(env!("CARGO_MANIFEST_DIR"), "/../src/tollbar/catalog/families/keys");
    std::fs::read_to_string(format!("{keys}/{name}.pem")).expect(name)
}

/// A file in its own folder, which is removed with it.
struct Copy(PathBuf);

impl Copy {
    fn new(name: &str, bytes: &[u8]) -> Copy {
        let folder = std::env::temp_dir().join(format!("tollbar-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("libcrypto-copy.so");
        std::fs::write(&path, bytes).expect("a copy");
        Copy(path)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.0.parent().expect("a folder"));
    }
}

/// Returns the record of the system's OpenSSL 3 with its legacy module, or None without one.
fn with_legacy() -> Option<Value> {
    let record = encrypt("des-cbc", None);
    let is_here = record["receipt"]["parts"]["module legacy"].is_string();
    if !is_here {
        lacking(&format!("this machine's libcrypto has no legacy module: {record}"));
    }
    is_here.then_some(record)
}

/// A receipt names the modules that its operation uses, and no others.
#[test]
fn a_module_stands_in_the_receipt() {
    let Some(record) = with_legacy() else { return };
    assert_eq!("ok", record["outcome"], "{record}");
    assert!(record["receipt"]["parts"]["module legacy"].as_str().expect("a path").ends_with("legacy.so"));
    assert!(encrypt("aes-128-cbc", None)["receipt"]["parts"]["module legacy"].is_null());
}

/// A library with another SONAME finds the system's module, which loads the system's library instead of the
/// library's own code.
#[test]
fn a_module_of_another_library_is_unsupported() {
    let Some(record) = with_legacy() else { return };
    let system = record["receipt"]["path"].as_str().expect("a path");
    let bytes = std::fs::read(system).expect("the system's library");
    let at = bytes.windows(SONAME.len()).position(|window| window == SONAME).expect("its own name");
    let mut other = bytes.clone();
    other[at..at + SONAME.len()].copy_from_slice(OTHER_SONAME);

    let foreign = Copy::new("foreign", &other);
    for choice in ["des-cbc", "rc2-cbc", "rc4"] {
        let refused = encrypt(choice, Some(&foreign.0));
        assert_eq!("unsupported", refused["outcome"], "{refused}");
        let reason = refused["reason"].as_str().expect("a reason");
        assert!(reason.contains("legacy.so") && reason.contains(system), "{reason}");
        assert!(refused["receipt"]["parts"]["module legacy"].is_null(), "{refused}");
    }
    assert_eq!("ok", encrypt("aes-128-cbc", Some(&foreign.0))["outcome"]);
    let list = answer(&json!({"contract": 2, "mode": "list",
        "provider": {"kind": "libcrypto", "path": foreign.0}}));
    let offers = |choice: &str| {
        list["offers"].as_array().expect("offers").iter().any(|offer| offer["choice"] == choice)
    };
    assert!(offers("aes-128-cbc") && offers("3des-cbc") && !offers("des-cbc") && !offers("rc4"), "{list}");

    // The module finds a copy that keeps its SONAME, wherever the copy is.
    let moved = Copy::new("moved", &bytes);
    let record = encrypt("des-cbc", Some(&moved.0));
    assert_eq!("ok", record["outcome"], "{record}");
    assert_eq!(json!(moved.0.canonicalize().expect("a path")), record["receipt"]["path"]);
}

/// A signature is as long as its key on every route, also for keys longer than those of the families.
#[test]
fn a_signature_may_be_longer_than_any_of_the_families() {
    let long = include_str!("rsa-5120.pem").to_owned();
    for (name, pem) in [("rsa-2048", key("rsa-2048")), ("rsa-5120", long)] {
        for choice in ["key-cached", "key-from-pem", "key-from-der", "key-from-parameters"] {
            for call in ["evp", "low-level"] {
                let task = json!({"contract": 2, "mode": "verify", "provider": {"kind": "libcrypto"},
                    "family": "rsa-api", "op": "sign", "choice": choice, "setting": {"call": call},
                    "inputs": {"private_key_pem": pem, "of": "abc"}});
                let record = answer(&task);
                if record["outcome"] == "unsupported" {
                    lacking(&record.to_string());
                    return;
                }
                assert_eq!("ok", record["outcome"], "{name} {choice} {call}: {record}");
                let bytes = name[4..].parse::<usize>().expect("bits") / 8;
                assert_eq!(2 * bytes, record["proof"]["answer"].as_str().expect("an answer").len());
            }
        }
    }
}
