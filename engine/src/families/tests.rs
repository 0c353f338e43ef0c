//! Every promise of the providers: each choice, each operation, proved and performed.

use serde_json::{Value, json};

use crate::aws_lc::AWS_LC;
use crate::contract::{Failure, Proof, ProviderName, Task};
use crate::op;
use crate::provider::Provider;
use crate::rustcrypto::RUSTCRYPTO;

const PROVIDERS: &[(&str, &dyn Provider)] = &[("aws-lc", &AWS_LC), ("rustcrypto", &RUSTCRYPTO)];

/// Those that are linked in, and the system's libcrypto where there is one.
fn providers() -> Vec<(&'static str, Box<dyn Provider>)> {
    let open = |kind: &'static str| {
        let name = ProviderName { kind: kind.to_owned(), path: None };
        Some((kind, crate::providers::open(&name, "native").ok()?))
    };
    ["aws-lc", "rustcrypto", "libcrypto"].into_iter().filter_map(open).collect()
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

/// The cheapest parameters an algorithm takes.
fn light(family: &str, choice: &str) -> Value {
    match choice.split('-').next() {
        _ if family != "password-hash" => json!({}),
        Some("pbkdf2") => json!({"iterations": 2}),
        Some("bcrypt") => json!({"cost": 4}),
        Some("scrypt") => json!({"n-log2": 4, "r": 8, "p": 2}),
        Some("argon2id") => json!({"memory-kib": 64, "passes": 1, "lanes": 4}),
        _ => json!({}),
    }
}

/// The test key of a choice, where it has one.
fn key_of(choice: &str) -> Option<String> {
    let keys = concat!(env!("CARGO_MANIFEST_DIR"), "/../src/tollbar/families/keys");
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

/// Cells that are not offered with default settings, for a reason of the library's own.
const NOT_BY_DEFAULT: &[(&str, &str, &str)] = &[
    ("aws-lc", "generate-key", "rsa-1024"),
    ("aws-lc", "sign", "rsa-1024"),
    ("aws-lc", "sign", "ecdsa-p384"),
];

/// What takes seconds in an optimised build, and minutes in another.
fn is_long(op: &str, choice: &str) -> bool {
    match (op, choice) {
        ("generate-key", "rsa-3072" | "rsa-4096") => true,
        ("generate-key", "rsa-1024" | "rsa-2048") | (_, "slh-dsa-128s") => cfg!(debug_assertions),
        _ => false,
    }
}

#[test]
fn every_offer_proves_itself_and_performs() {
    for (name, provider) in providers() {
        // The routes of one library have operations of their own, and tests.
        for (family, choices) in provider.offers().into_iter().filter(|(family, _)| *family != "rsa-api") {
            for choice in choices {
                for op in operations(family) {
                    // OpenSSL 3 signs with keys of 512 bits, and makes none.
                    if is_long(op, choice) || (op, choice) == (&"generate-key", "dsa-512") {
                        continue;
                    }
                    let task = task(family, op, choice, light(family, choice), json!({}));
                    match (proved(provider.as_ref(), &task), NOT_BY_DEFAULT.contains(&(name, op, choice))) {
                        (Ok(proof), false) => {
                            assert_eq!(None, proof.answer);
                            assert!(
                                !proof.accepted.is_empty() && !proof.refused.is_empty(),
                                "{name} {choice} {op}"
                            );
                        }
                        (Err(Failure::Unsupported(reason)), true) => assert!(!reason.is_empty()),
                        (outcome, _) => panic!("{name}: {family} {op} {choice}: {outcome:?}"),
                    }
                }
            }
        }
    }
}

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
        cells.push(("mac", "authenticate", "hmac-sha-256", json!({"bytes": bytes})));
    }
    for (name, provider) in PROVIDERS {
        let mut done = 0;
        for (family, op, choice, setting) in &cells {
            match proved(*provider, &task(family, op, choice, setting.clone(), json!({}))) {
                Ok(_) => done += 1,
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
    for (_, provider) in providers() {
        for (family, choice) in [("digest", "sha-0"), ("rsa-api", "key-lost"), ("key-exchange", "x447")] {
            let refusal = provider.prepare(&task(family, "hash", choice, json!({}), json!({}))).err();
            assert!(matches!(refusal, Some(Failure::Unsupported(_))), "{choice}: {refusal:?}");
        }
    }
}

#[test]
fn published_answers_are_met_by_every_provider_that_offers_the_choice() {
    // FIPS 180-4, RFC 4231, SP 800-38A, the GCM specification, RFC 7748, RFC 6070, RFC 7914, RFC 9106, jBCrypt.
    let aes = "2b7e151628aed2a6abf7158809cf4f3c";
    let block = "6bc1bee22e409f96e93d7e117393172a";
    let iv = "000102030405060708090a0b0c0d0e0f";
    let cells = [
        (
            "digest",
            "hash",
            "sha-1",
            json!({}),
            json!({"of": "abc"}),
            "a9993e364706816aba3e25717850c26c9cd0d89d",
        ),
        ("digest", "hash", "md5", json!({}), json!({"of": "abc"}), "900150983cd24fb0d6963f7d28e17f72"),
        (
            "mac",
            "authenticate",
            "hmac-sha-256",
            json!({}),
            json!({"key_hex": "4a656665", "of": "what do ya want for nothing?"}),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        ),
        (
            "cipher",
            "encrypt",
            "aes-128-cbc",
            json!({}),
            json!({"key_hex": aes, "iv_hex": iv, "of_hex": block}),
            "7649abac8119b246cee98e9b12e9197d",
        ),
        (
            "cipher",
            "decrypt",
            "aes-128-ctr",
            json!({}),
            json!({"key_hex": aes, "iv_hex": "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff", "of_hex": block}),
            "874d6191b620e3261bef6864990db6ce",
        ),
        (
            "cipher",
            "round-trip",
            "aes-128-gcm",
            json!({}),
            json!({"key_hex": "00000000000000000000000000000000", "iv_hex": "000000000000000000000000",
                "of_hex": "00000000000000000000000000000000"}),
            "0388dace60b6a392f328c2b971b2fe78ab6e47d42cec13bdf53a67b21257bddf",
        ),
        (
            "key-exchange",
            "client",
            "x25519",
            json!({}),
            json!({"private_hex": "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
                "peer_hex": "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c"}),
            "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552",
        ),
        (
            "password-hash",
            "hash",
            "pbkdf2-sha-1",
            json!({"iterations": 2}),
            json!({"password": "password", "salt_hex": "73616c74",
                "expected_hex": "ea6c014dc72d6f8ccd1ed92ace1d41f0d8de8957"}),
            "ea6c014dc72d6f8ccd1ed92ace1d41f0d8de8957",
        ),
    ];
    for (family, op, choice, setting, inputs, answer) in cells {
        let mut tried = 0;
        for (name, provider) in providers() {
            if provider.offers().iter().any(|(name, choices)| *name == family && choices.contains(&choice)) {
                let task = task(family, op, choice, setting.clone(), inputs.clone());
                let proof = proved(provider.as_ref(), &task);
                assert_eq!(Some(answer.to_owned()), proof.unwrap().answer, "{name} {choice}");
                tried += 1;
            }
        }
        assert!(tried > 0, "{choice} is not offered, so nothing was tried");
    }
}

/// A key or an IV of another length than the cipher's is refused: a library that is given an address would read on.
#[test]
fn a_known_answer_has_a_key_and_an_iv_of_the_ciphers_length() {
    let (key, iv) = ("00".repeat(16), "00".repeat(12));
    for (name, provider) in providers() {
        for (key, iv) in [(&key[2..], &iv[..]), (&key[..], &iv[2..])] {
            let inputs = json!({"key_hex": key, "iv_hex": iv, "of": "abc"});
            let outcome =
                proved(provider.as_ref(), &task("cipher", "encrypt", "aes-128-gcm", json!({}), inputs));
            assert!(matches!(outcome, Err(Failure::Failed(_))), "{name}: {outcome:?}");
        }
    }
}

/// Shares of another length are refused by every exchange, as TLS has its stacks do.
#[test]
fn a_share_cut_short_is_refused() {
    for (name, provider) in providers() {
        for choice in ["ffdhe2048", "ecdh-p256", "x25519", "ml-kem-768"] {
            match proved(provider.as_ref(), &task("key-exchange", "server", choice, json!({}), json!({}))) {
                Ok(proof) => assert!(proof.refused.iter().any(|what| what.ends_with("cut short")), "{name}"),
                Err(Failure::Unsupported(reason)) => println!("SKIPPED: {name}: {reason}"),
                Err(failure) => panic!("{name} {choice}: {failure:?}"),
            }
        }
    }
}

/// The answer of each provider to the same inputs.
fn answers(family: &str, op: &str, choice: &str, inputs: Value) -> Vec<String> {
    let answer = |(_, provider): &(&str, &dyn Provider)| {
        proved(*provider, &task(family, op, choice, json!({}), inputs.clone())).unwrap().answer.unwrap()
    };
    PROVIDERS.iter().map(answer).collect()
}

#[test]
fn providers_agree_on_the_secret_of_the_same_keys() {
    let bytes = |bytes: usize, seed: u64| hex::encode(crate::buffers::filled(bytes, seed));
    // The peers' public values: the curves' base points.
    let peers = [
        ("x25519", 32, "0900000000000000000000000000000000000000000000000000000000000000".to_owned()),
        (
            "ecdh-p256",
            32,
            "046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296\
             4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5"
                .to_owned(),
        ),
    ];
    for (choice, length, peer) in peers {
        let inputs = json!({"private_hex": bytes(length, 3), "peer_hex": peer});
        let answers = answers("key-exchange", "server", choice, inputs);
        assert_eq!(answers[0], answers[1], "{choice}");
    }
    for (choice, ciphertext) in [("ml-kem-512", 768), ("ml-kem-768", 1088), ("ml-kem-1024", 1568)] {
        let inputs = json!({"seed_hex": bytes(64, 5), "ciphertext_hex": bytes(ciphertext, 6)});
        let answers = answers("key-exchange", "client", choice, inputs);
        assert_eq!(answers[0], answers[1], "{choice}");
    }
    let inputs = json!({"ml_kem_seed_hex": bytes(64, 5), "x25519_private_hex": bytes(32, 3),
        "ciphertext_hex": bytes(1088 + 32, 6)});
    let answers = answers("key-exchange", "client", "x25519mlkem768", inputs);
    assert_eq!(answers[0], answers[1]);
    assert_eq!(2 * 64, answers[0].len());
}

#[test]
fn a_wrong_published_signature_is_not_an_answer() {
    let der = crate::rustcrypto::rsa_public_key_der(
        &crate::rustcrypto::pkcs8_der(&task("signature", "sign", "rsa-2048", json!({}), json!({}))).unwrap(),
    );
    let inputs = json!({"public_key_der_hex": hex::encode(der.unwrap()), "of": "abc", "expected_hex": "00".repeat(256)});
    for (name, provider) in PROVIDERS {
        let outcome = proved(*provider, &task("signature", "verify", "rsa-2048", json!({}), inputs.clone()));
        assert!(matches!(outcome, Err(Failure::Failed(_))), "{name}: {outcome:?}");
    }
}

/// The settings that the lab sends for a cell, at some value each.
fn sent(family: &str, op: &str, choice: &str) -> Value {
    let mut setting = light(family, choice);
    let names: &[&str] = match family {
        "digest" | "mac" => &["bytes"],
        "cipher" => &["bytes", "key"],
        "rsa-api" if choice == "key-cached" => &["bytes", "call", "digest", "context"],
        "rsa-api" => &["bytes", "call", "digest"],
        "password-hash" if choice != "none" => &["algorithm"],
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
            "algorithm" => json!(choice),
            "key" => json!("fresh"),
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

/// Each setting that the lab sends has a part in every operation it is sent to, null choices included, and one that
/// nothing reads is refused by its name.
#[test]
fn a_setting_is_read_or_refused() {
    let libcrypto = crate::libcrypto::open(None, "native").ok();
    let mut providers: Vec<&dyn Provider> = PROVIDERS.iter().map(|row| row.1).collect();
    providers.push(&crate::spin::Spin);
    providers.extend(libcrypto.as_deref());
    let mut tried = 0;
    for provider in providers {
        for (family, mut choices) in provider.offers() {
            choices.push("none");
            for choice in choices {
                let operations: &[&str] = match family {
                    "rsa-api" => &["sign"],
                    "spin" => &["spin"],
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
                        op::prepare(provider, &task).map(|_| ())
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

/// A refusal that cannot be tried is said with its reason, and so is that a null choice refuses nothing.
#[test]
fn what_could_not_be_tried_is_said() {
    let libcrypto = crate::libcrypto::open(None, "native").ok();
    let mut providers: Vec<&dyn Provider> = vec![&RUSTCRYPTO];
    providers.extend(libcrypto.as_deref());
    let rows = [
        ("cipher", "encrypt", "aes-128-ctr", json!({"bytes": 0}), "another key: nothing encrypted"),
        ("cipher", "encrypt", "aes-128-ctr", json!({}), "a tampered tag or padding: "),
        ("cipher", "round-trip", "rc4", json!({}), "another IV: "),
        ("signature", "sign", "rsa-2048", json!({}), "another key: "),
        ("digest", "hash", "none", json!({}), "a wrong input: "),
    ];
    for provider in providers {
        for (family, op, choice, setting, words) in &rows {
            let task = task(family, op, choice, setting.clone(), json!({}));
            let mut operation = match op::prepare(provider, &task) {
                Err(Failure::Unsupported(reason)) => {
                    println!("SKIPPED: {choice}: {reason}");
                    continue;
                }
                prepared => prepared.expect("an operation"),
            };
            let proof = operation.prove().expect("a proof");
            let said = proof.not_tried.iter().any(|said| said.contains(words));
            assert!(said, "{choice}: {words}: {:?}", proof.not_tried);
        }
        let task = task("cipher", "encrypt", "aes-128-gcm", json!({}), json!({}));
        let proof = op::prepare(provider, &task).expect("an operation").prove().expect("a proof");
        assert_eq!(Vec::<String>::new(), proof.not_tried);
    }
}
