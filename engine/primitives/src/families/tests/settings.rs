//! Settings: each is read, or refused with a reason.

use serde_json::{Value, json};

use super::{is_long, key_of, light, operations, proved, providers, task};
use crate::failure::Failure;
use crate::op;
use crate::spin::Spin;

#[test]
fn every_setting_is_offered_or_refused_in_words() {
    let mut cells: Vec<(&str, &str, &str, Value)> = Vec::new();
    for choice in ["rsa-1024", "rsa-2048", "dsa-1024", "ecdsa-p256", "ecdsa-p384", "ecdsa-p521"] {
        for digest in ["sha-1", "sha-256", "sha-384", "sha-512", "none"] {
            for padding in if choice.starts_with("rsa") { &["pkcs1", "pss"][..] } else { &["pkcs1"] } {
                for op in ["sign", "verify"] {
                    cells.push(("signature", op, choice, json!({"digest": digest, "padding": padding})));
                }
            }
        }
    }
    for choice in ["des-cbc", "rc4", "aes-128-cbc", "aes-256-ctr", "aes-256-gcm", "chacha20-poly1305"] {
        for op in operations("cipher") {
            for bytes in [0, 8, 16, 17, 65536] {
                cells.push(("cipher", op, choice, json!({"key": "fresh", "bytes": bytes})));
            }
        }
    }
    for bytes in [0, 1, 100_000] {
        cells.push(("digest", "hash", "sha-256", json!({"bytes": bytes})));
        cells.push(("digest", "hash", "sha-256", json!({"bytes": bytes, "input": "file"})));
        cells.push(("mac", "authenticate", "hmac-sha-256", json!({"bytes": bytes})));
        cells.push(("signature", "sign", "ed25519", json!({"bytes": bytes})));
    }
    for (name, provider) in providers().into_iter().filter(|(name, _)| *name != "libcrypto") {
        let mut done = 0;
        for (family, op, choice, setting) in &cells {
            let task = task(family, op, choice, setting.clone(), json!({}));
            match proved(provider.as_ref(), &task) {
                Ok(proof) => {
                    assert!(!proof.accepted.is_empty(), "{name}: {op} {choice} {setting}");
                    let prepared = provider.prepare(&task).expect("what was proved");
                    let bytes = setting.get("bytes").and_then(Value::as_u64);
                    assert!(
                        bytes.is_none_or(|bytes| bytes == prepared.bytes()),
                        "{name}: {op} {choice} {setting}"
                    );
                    done += 1;
                }
                Err(Failure::Unsupported(reason)) => assert!(reason.contains(' '), "{reason}"),
                Err(failure) => panic!("{name}: {family} {op} {choice} {setting}: {failure:?}"),
            }
        }
        println!("{name}: {done} of {} cells", cells.len());
        assert!(done > cells.len() / 3);
    }
}

#[test]
fn what_is_not_offered_is_refused_and_not_failed() {
    for (name, provider) in providers() {
        for (family, choice) in [
            ("digest", "sha-0"),
            ("rsa-api", "key-lost"),
            ("key-exchange", "x447"),
            ("storage", "aes-128-gcm"),
            ("no-family", "sha-256"),
        ] {
            let refusal = provider.prepare(&task(family, "hash", choice, json!({}), json!({}))).err();
            let Some(Failure::Unsupported(words)) = refusal else { panic!("{choice}: {refusal:?}") };
            // A linked-in provider names the command that performs it.
            let is_stored = family == "storage" && name != "libcrypto";
            assert_eq!(is_stored, words.contains("`tollbar-engine store`"), "{name}: {words}");
            assert!(family != "no-family" || words.contains(family), "{words}");
        }
    }
}

/// Parameters that need more memory than any machine has fail their cell, and do not end the process.
#[test]
fn absurd_parameters_are_an_outcome() {
    const MOST: u64 = u32::MAX as u64;
    for (name, provider) in providers() {
        for (choice, setting) in [
            ("argon2id", json!({"memory": MOST * 1024, "passes": 1, "lanes": 1})),
            ("argon2id", json!({"memory": 64 * 1024, "passes": 1, "lanes": MOST})),
            ("scrypt", json!({"n": 1u64 << 48, "r": 8, "p": 1})),
            ("scrypt", json!({"n": 1u64 << 62, "r": 1 << 20, "p": 1})),
            ("scrypt", json!({"n": 16, "r": 8, "p": MOST})),
            ("scrypt", json!({"n": 16, "r": 1 << 16, "p": 1 << 16})),
        ] {
            let failure =
                proved(provider.as_ref(), &task("password-hash", "hash", choice, setting, json!({})));
            assert!(failure.is_err(), "{name}: {choice}");
        }
    }
}

/// Returns the settings that the lab sends for a cell, each with some value.
fn sent(family: &str, op: &str, choice: &str) -> Value {
    let mut setting = light(family, choice);
    let names: &[&str] = match family {
        "digest" => &["bytes", "input"],
        "mac" => &["bytes"],
        "cipher" => &["bytes", "key"],
        "rsa-api" if choice == "key-cached" => &["bytes", "call", "digest", "context"],
        "rsa-api" => &["bytes", "call", "digest"],
        "password-hash" if choice != "none" => &["algorithm"],
        "spin" if choice == "spin-heavy-tailed" => &["iterations", "least", "sizes"],
        "spin" if choice != "none" => {
            &["iterations", "work", "span", "period", "dear", "extra-least", "extra-most"]
        }
        "spin" => &["iterations"],
        "signature" if op == "generate-key" => &[],
        "signature" if choice.starts_with("rsa") => &["bytes", "digest", "padding"],
        "signature" if choice.starts_with("dsa") || choice.starts_with("ecdsa") => &["bytes", "digest"],
        "signature" => &["bytes"],
        _ => &[],
    };
    for name in names {
        setting[*name] = match *name {
            "bytes" => json!(48),
            "iterations" => json!(20),
            "work" => json!("wide"),
            "least" | "sizes" | "span" | "period" => json!(4),
            "dear" | "extra-least" | "extra-most" => json!(2),
            "algorithm" => json!(choice),
            "key" => json!("fresh"),
            "input" => json!("file"),
            "call" => json!("evp"),
            "context" => json!("new"),
            "padding" => json!("pkcs1"),
            "digest" if family == "rsa-api" => json!("implicit"),
            "digest" if choice == "ecdsa-p384" => json!("sha-384"),
            _ => json!("sha-256"),
        };
    }
    setting
}

/// Every operation reads each setting that the lab sends to it, null choices included. A setting that nothing
/// reads is refused by its name.
#[test]
fn a_setting_is_read_or_refused() {
    let mut providers = providers();
    providers.push(("spin", Box::new(Spin)));
    let mut tried = 0;
    for (_, provider) in providers {
        for (family, mut choices) in provider.offers() {
            choices.push("none");
            for choice in choices {
                let operations: &[&str] = match family {
                    "rsa-api" => &["sign", "verify"],
                    "spin" => &["spin"],
                    // `store` performs these, and has its own tests.
                    "storage" => &[],
                    family => operations(family),
                };
                for op in operations {
                    if is_long(op, choice) {
                        continue;
                    }
                    let key = if family == "rsa-api" { "rsa-2048" } else { choice };
                    let inputs = key_of(key).map_or(json!({}), |pem| json!({"private_key_pem": pem}));
                    let mut setting = sent(family, op, choice);
                    let prepared = |setting: &Value| {
                        let task = task(family, op, choice, setting.clone(), inputs.clone());
                        op::prepare(provider.as_ref(), &task).map(|_| ())
                    };
                    match prepared(&setting) {
                        Ok(()) => tried += 1,
                        Err(Failure::Unsupported(_)) => continue,
                        Err(failure) => panic!("{family} {op} {choice} {setting}: {failure:?}"),
                    }
                    setting["colour"] = json!("blue");
                    match prepared(&setting) {
                        Err(Failure::Failed(reason)) if reason.contains("`colour`") => (),
                        outcome => panic!("{family} {op} {choice}: {outcome:?}"),
                    }
                }
            }
        }
    }
    assert!(tried > 150, "{tried}");
}

/// A parameter that a password hash cannot have is refused, not rounded.
#[test]
fn a_parameter_that_cannot_be_is_refused() {
    let argon2id = |memory: u64, lanes: u64| json!({"memory": memory, "passes": 1, "lanes": lanes});
    let rows = [
        ("argon2id", argon2id(64 * 1024 + 1, 1), "`memory`"),
        ("argon2id", argon2id(1 << 42, 1), "`memory`"),
        ("argon2id", argon2id(0, 1), "`memory`"),
        ("argon2id", argon2id(64 * 1024, 0), "`lanes`"),
        ("scrypt", json!({"n": 100_000, "r": 8, "p": 1}), "`n`"),
        ("scrypt", json!({"r": 8, "p": 1}), "`n`"),
        ("pbkdf2-sha-256", json!({"iterations": 0}), "`iterations`"),
        ("bcrypt", json!({}), "`cost`"),
    ];
    for (name, provider) in providers() {
        for (choice, setting, words) in &rows {
            match proved(
                provider.as_ref(),
                &task("password-hash", "hash", choice, setting.clone(), json!({})),
            ) {
                Err(Failure::Failed(reason)) if reason.contains(words) => (),
                Err(Failure::Unsupported(_)) => (),
                outcome => panic!("{name} {choice} {setting}: {outcome:?}"),
            }
        }
    }
}

/// A refusal that cannot be tried is reported with its reason, and a null choice refuses nothing.
#[test]
fn what_could_not_be_tried_is_said() {
    let rows = [
        ("cipher", "encrypt", "aes-128-ctr", json!({"bytes": 0}), "another key: nothing encrypted"),
        ("cipher", "encrypt", "aes-128-ctr", json!({}), "a tampered tag or padding: "),
        ("cipher", "round-trip", "rc4", json!({}), "another IV: "),
        ("signature", "sign", "rsa-2048", json!({}), "another key: "),
        ("digest", "hash", "none", json!({}), "a wrong input: "),
    ];
    let providers = providers();
    for (family, op, choice, setting, words) in &rows {
        let mut tried = 0;
        for (name, provider) in &providers {
            let task = task(family, op, choice, setting.clone(), json!({}));
            let prepared = op::prepare(provider.as_ref(), &task);
            let offers = |(of, choices): &(&str, Vec<&str>)| of == family && choices.contains(choice);
            if *choice != "none" && !provider.offers().iter().any(offers) {
                let refusal = prepared.map(drop);
                assert!(matches!(refusal, Err(Failure::Unsupported(_))), "{name} {choice}: {refusal:?}");
                continue;
            }
            let proof = prepared.expect("an operation").prove().expect("a proof");
            let said = proof.not_tried.iter().any(|said| said.contains(words));
            assert!(said, "{name} {choice}: {words}: {:?}", proof.not_tried);
            tried += 1;
        }
        assert!(tried > 0, "{choice} is not offered, so nothing was tried");
    }
    for (_, provider) in &providers {
        let task = task("cipher", "encrypt", "aes-128-gcm", json!({}), json!({}));
        let proof = op::prepare(provider.as_ref(), &task).expect("an operation").prove().expect("a proof");
        assert_eq!(Vec::<String>::new(), proof.not_tried);
    }
}
