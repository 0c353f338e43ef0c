//! Every offer of the providers: each choice and operation is proved and performed.

mod proofs;
mod settings;

use serde_json::{Value, json};

use crate::clock::Clocks;
use crate::contract::{Proof, ProviderName, Task};
use crate::failure::Failure;
use crate::provider::Provider;

/// Returns the linked-in providers and a libcrypto: the one that `TOLLBAR_LIBCRYPTO` names, or the system's
/// if there is one. The TLS clients that accompany it have their own tests.
fn providers() -> Vec<(&'static str, Box<dyn Provider>)> {
    let linked = |kind: &'static str| {
        let name = ProviderName { kind: kind.to_owned(), path: None };
        (
            kind,
            crate::op::open(crate::op::KINDS, &name, "native")
                .unwrap_or_else(|failure| panic!("{kind}: {failure:?}")),
        )
    };
    let mut all = vec![linked("aws-lc"), linked("rustcrypto")];
    let named = std::env::var("TOLLBAR_LIBCRYPTO").ok();
    match crate::libcrypto::open(named.as_deref(), "native") {
        Ok(found) => all.push(("libcrypto", Box::new(found))),
        Err(failure) if named.is_some() => panic!("{failure:?}"),
        Err(_) => crate::lacking("this machine has no libcrypto"),
    }
    all
}

fn operations(family: &str) -> &'static [&'static str] {
    match family {
        "digest" | "password-hash" => &["hash"],
        "mac" => &["authenticate"],
        "cipher" => &["encrypt", "decrypt", "round-trip"],
        "signature" => &["generate-key", "sign", "verify"],
        "key-exchange" => &["client", "server"],
        other => panic!("a family without operations: {other}"),
    }
}

/// Returns the cheapest parameters that an algorithm accepts.
fn light(family: &str, choice: &str) -> Value {
    match choice.split('-').next() {
        _ if family != "password-hash" => json!({}),
        Some("pbkdf2") => json!({"iterations": 2}),
        Some("bcrypt") => json!({"cost": 4}),
        Some("scrypt") => json!({"n": 16, "r": 8, "p": 2}),
        Some("argon2id") => json!({"memory": 64 * 1024, "passes": 1, "lanes": 4}),
        _ => json!({}),
    }
}

/// Returns the test key of a choice, if it has one.
fn key_of(choice: &str) -> Option<String> {
    let keys = concat!(env!("CARGO_MANIFEST_DIR"), "/../../src/tollbar/catalog/families/keys");
    std::fs::read_to_string(format!("{keys}/{choice}.pem")).ok()
}

fn task(family: &str, op: &str, choice: &str, setting: Value, mut inputs: Value) -> Task {
    if let Some(pem) = key_of(choice) {
        inputs["private_key_pem"] = json!(pem);
    }
    let task = json!({"mode": "verify", "provider": {"kind": "test"}, "family": family, "op": op,
        "choice": choice, "setting": setting, "inputs": inputs, "seed": 7});
    serde_json::from_value(task).unwrap()
}

/// Proves and performs a task, in an order that shows whether a proof leaves the operation usable.
fn proved(provider: &dyn Provider, task: &Task) -> Result<Proof, Failure> {
    let mut operation = provider.prepare(task)?;
    operation.perform()?;
    let proof = operation.prove()?;
    operation.perform()?;
    operation.batch(2)?;
    Ok(proof)
}

/// Returns true if performing takes the CPU time of real work. A disturbance adds to that time, so that it
/// cannot fail a working choice. SHA-1 of a password takes 60 ns if the processor has instructions for it,
/// and a call that does nothing a few.
fn works(provider: &dyn Provider, task: &Task) -> Result<bool, Failure> {
    const TIMES: u64 = 1000;
    const LEAST_NS: u64 = TIMES * 30;
    let mut operation = provider.prepare(task)?;
    for count in [1, TIMES] {
        let clocks = Clocks::of_thread();
        operation.batch(count)?;
        if clocks.since().0 >= LEAST_NS {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns true if the operation takes seconds in an optimised build, and minutes in a debug build.
fn is_long(op: &str, choice: &str) -> bool {
    match (op, choice) {
        ("generate-key", "rsa-3072" | "rsa-4096") => true,
        ("generate-key", "rsa-1024" | "rsa-2048") | (_, "slh-dsa-128s") => cfg!(debug_assertions),
        _ => false,
    }
}
