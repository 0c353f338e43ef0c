//! Right inputs accepted, wrong inputs refused, known answers met, by every provider.

use serde_json::{Value, json};

use super::{is_long, light, operations, proved, providers, task, works};
use crate::failure::Failure;
use crate::random;
use crate::rustcrypto;

/// Cells that are not offered with default settings, for a reason of the library's.
const NOT_BY_DEFAULT: &[(&str, &str, &str)] = &[
    ("aws-lc", "generate-key", "rsa-1024"),
    ("aws-lc", "sign", "rsa-1024"),
    ("aws-lc", "sign", "ecdsa-p384"),
];

#[test]
fn every_offer_proves_itself_and_performs() {
    for (name, provider) in providers() {
        // The RSA interfaces of one library, and `store` for databases, have their own operations and tests.
        for (family, choices) in
            provider.offers().into_iter().filter(|(family, _)| !matches!(*family, "rsa-api" | "storage"))
        {
            for (choice, op) in
                choices.iter().flat_map(|choice| operations(family).iter().map(move |op| (*choice, *op)))
            {
                // OpenSSL 3 signs with keys of 512 bits but does not generate them.
                if is_long(op, choice) || (op, choice) == ("generate-key", "dsa-512") {
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
                        let has_worked = works(provider.as_ref(), &task).expect("what was proved");
                        assert!(has_worked, "{name} {choice} {op} takes no time");
                        // Every exchange refuses a share of another length, as TLS requires.
                        let is_share = family == "key-exchange" && !choice.starts_with("rsa");
                        let is_cut = proof.refused.iter().any(|what| what.ends_with("cut short"));
                        assert_eq!(is_share, is_cut, "{name} {choice} {op}");
                    }
                    (Err(Failure::Unsupported(reason)), true) => assert!(!reason.is_empty()),
                    (outcome, _) => panic!("{name}: {family} {op} {choice}: {outcome:?}"),
                }
            }
        }
    }
}

/// Rows are labelled by the provider's name and version.
#[test]
fn every_provider_names_itself_with_its_version() {
    for (name, provider) in providers() {
        let receipt = provider.receipt();
        for line in [&receipt.provider, &receipt.name] {
            assert!(line.contains(char::is_numeric), "{name}: {line:?}");
        }
    }
}

/// An offered family has choices, and only one provider offers `storage`.
#[test]
fn nothing_is_offered_without_choices() {
    for (name, provider) in providers() {
        let offers = provider.offers();
        assert!(offers.iter().all(|(_, choices)| !choices.is_empty()), "{name}: {offers:?}");
        let stores = offers.iter().any(|(family, _)| *family == "storage");
        assert_eq!(name == "aws-lc", stores, "{name}");
    }
}

/// Returns the answer of each provider that offers the choice.
fn answers(family: &str, op: &str, choice: &str, inputs: &Value) -> Vec<String> {
    let mut answers = Vec::new();
    for (name, provider) in providers() {
        if provider.offers().iter().any(|(of, choices)| *of == family && choices.contains(&choice)) {
            let task = task(family, op, choice, light(family, choice), inputs.clone());
            let proof = proved(provider.as_ref(), &task);
            answers.push(proof.unwrap_or_else(|why| panic!("{name} {choice}: {why:?}")).answer.unwrap());
        }
    }
    answers
}

#[test]
fn published_answers_are_met_by_every_provider_that_offers_the_choice() {
    const ED25519_KEY: &str =
        "302a300506032b65700321003d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
    const ED25519: &str = "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da\
        085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00";
    // FIPS 180-4, RFC 1321, RFC 4231, SP 800-38A, the GCM specification, RFC 7748, RFC 8032, RFC 6070.
    let aes = "2b7e151628aed2a6abf7158809cf4f3c";
    let block = "6bc1bee22e409f96e93d7e117393172a";
    let zeros = "00".repeat(16);
    let pbkdf2 = "ea6c014dc72d6f8ccd1ed92ace1d41f0d8de8957";
    let rows = [
        ("digest hash sha-1", json!({"of": "abc"}), "a9993e364706816aba3e25717850c26c9cd0d89d"),
        ("digest hash md5", json!({"of": "abc"}), "900150983cd24fb0d6963f7d28e17f72"),
        (
            "mac authenticate hmac-sha-256",
            json!({"key_hex": "4a656665", "of": "what do ya want for nothing?"}),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        ),
        (
            "cipher encrypt aes-128-cbc",
            json!({"key_hex": aes, "iv_hex": "000102030405060708090a0b0c0d0e0f", "of_hex": block}),
            "7649abac8119b246cee98e9b12e9197d",
        ),
        (
            "cipher decrypt aes-128-ctr",
            json!({"key_hex": aes, "iv_hex": "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff", "of_hex": block}),
            "874d6191b620e3261bef6864990db6ce",
        ),
        (
            "cipher round-trip aes-128-gcm",
            json!({"key_hex": zeros, "iv_hex": zeros[8..], "of_hex": zeros}),
            "0388dace60b6a392f328c2b971b2fe78ab6e47d42cec13bdf53a67b21257bddf",
        ),
        (
            "key-exchange client x25519",
            json!({"private_hex": "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
                "peer_hex": "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c"}),
            "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552",
        ),
        (
            "signature verify ed25519",
            json!({"public_key_der_hex": ED25519_KEY, "of": "r", "expected_hex": ED25519}),
            ED25519,
        ),
        // The known answer has two iterations, which `light` sets.
        (
            "password-hash hash pbkdf2-sha-1",
            json!({"password": "password", "salt_hex": "73616c74", "expected_hex": pbkdf2}),
            pbkdf2,
        ),
    ];
    for (cell, inputs, answer) in rows {
        let [family, op, choice] = cell.split(' ').collect::<Vec<_>>()[..] else { panic!("{cell}") };
        let answers = answers(family, op, choice, &inputs);
        assert!(!answers.is_empty(), "{choice} is not offered, so nothing was tried");
        assert_eq!(vec![answer; answers.len()], answers, "{choice}");
    }
}

#[test]
fn providers_agree_on_the_secret_of_the_same_keys() {
    let bytes = |bytes: usize, seed: u64| hex::encode(random::filled(bytes, seed));
    let agreement = |peer: String| json!({"private_hex": bytes(32, 3), "peer_hex": peer});
    let kem = |ciphertext| json!({"seed_hex": bytes(64, 5), "ciphertext_hex": bytes(ciphertext, 6)});
    // The peers' public values are the curves' base points.
    let p256 = "046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296\
                4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5";
    let hybrid = json!({"ml_kem_seed_hex": bytes(64, 5), "x25519_private_hex": bytes(32, 3),
        "ciphertext_hex": bytes(1088 + 32, 6)});
    let rows = [
        ("x25519", 32, agreement("09".to_owned() + &"00".repeat(31))),
        ("ecdh-p256", 32, agreement(p256.to_owned())),
        ("ml-kem-512", 32, kem(768)),
        ("ml-kem-768", 32, kem(1088)),
        ("ml-kem-1024", 32, kem(1568)),
        ("x25519mlkem768", 64, hybrid),
    ];
    for (choice, secret_bytes, inputs) in rows {
        let answers = answers("key-exchange", "client", choice, &inputs);
        assert!(answers.len() >= 2, "{choice}");
        assert_eq!(2 * secret_bytes, answers[0].len(), "{choice}");
        assert_eq!(vec![answers[0].clone(); answers.len()], answers, "{choice}");
    }
}

/// A key or IV whose length is not the cipher's must be refused, because a library that gets an address would
/// read past it. An invalid published signature must be refused as well.
#[test]
fn a_wrong_known_answer_fails() {
    let (key, iv) = ("00".repeat(16), "00".repeat(12));
    let signs = task("signature", "sign", "rsa-2048", json!({}), json!({}));
    let der = rustcrypto::pkcs8_der(&signs).and_then(|pkcs8| rustcrypto::rsa_public_key_der(&pkcs8));
    let signature = json!({"public_key_der_hex": hex::encode(der.unwrap()), "of": "abc",
        "expected_hex": "00".repeat(256)});
    for (name, provider) in providers() {
        for (family, op, choice, inputs) in [
            ("cipher", "encrypt", "aes-128-gcm", json!({"key_hex": key[2..], "iv_hex": iv, "of": "abc"})),
            ("cipher", "encrypt", "aes-128-gcm", json!({"key_hex": key, "iv_hex": iv[2..], "of": "abc"})),
            ("signature", "verify", "rsa-2048", signature.clone()),
        ] {
            let outcome = proved(provider.as_ref(), &task(family, op, choice, json!({}), inputs));
            assert!(matches!(outcome, Err(Failure::Failed(_))), "{name} {choice}: {outcome:?}");
        }
    }
}
