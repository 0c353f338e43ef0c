//! A libcrypto whose functions give nothing: every object that can be missing is looked for before it is used.

use std::ffi::{c_int, c_uchar};

use serde_json::{Value, json};

use super::Libcrypto;
use super::api::{Api, Handle};
use crate::contract::Failure;
use crate::provider::Provider;

unsafe extern "C" fn none() -> Handle {
    std::ptr::null_mut()
}
unsafe extern "C" fn none_of(_: Handle) -> Handle {
    std::ptr::null_mut()
}
unsafe extern "C" fn none_of_two(_: Handle, _: Handle) -> Handle {
    std::ptr::null_mut()
}
unsafe extern "C" fn none_of_kind(_: c_int, _: Handle) -> Handle {
    std::ptr::null_mut()
}
/// Says that it gave 65 bytes, and gives none.
unsafe extern "C" fn a_length_alone(_: Handle, _: *mut *mut c_uchar) -> usize {
    65
}

/// What is taken away from the library, and a task (family, operation, choice, setting) that needs it.
type Row = (&'static str, fn(&mut Api), [&'static str; 3], Value);

fn rows() -> Vec<Row> {
    let low_level = || json!({"call": "low-level"});
    let sign = ["signature", "sign", "rsa-2048"];
    let argon2id = json!({"algorithm": "argon2id", "memory-kib": 64, "passes": 1, "lanes": 1});
    let before_3 = |api: &mut Api| (api.EVP_MAC_fetch, api.HMAC_CTX_new) = (None, none);
    vec![
        (
            "EVP_MAC_CTX_new",
            |api| api.EVP_MAC_CTX_new = Some(none_of),
            ["mac", "authenticate", "hmac-sha-256"],
            json!({}),
        ),
        ("HMAC_CTX_new", before_3, ["mac", "authenticate", "hmac-sha-256"], json!({})),
        (
            "EVP_KDF_CTX_new",
            |api| api.EVP_KDF_CTX_new = Some(none_of),
            ["password-hash", "hash", "argon2id"],
            argon2id,
        ),
        ("BIO_new_mem_buf", |api| api.lengths = api.lengths.clone().without_memory(), sign, json!({})),
        (
            "BIO_new_mem_buf",
            |api| api.lengths = api.lengths.clone().without_memory(),
            ["rsa-api", "sign", "key-from-pem"],
            low_level(),
        ),
        (
            "BN_bin2bn",
            |api| api.lengths = api.lengths.clone().without_memory(),
            ["rsa-api", "sign", "key-from-parameters"],
            low_level(),
        ),
        ("RSA_new", |api| api.RSA_new = none, ["rsa-api", "sign", "key-from-parameters"], low_level()),
        ("EVP_MD_CTX_new", |api| api.EVP_MD_CTX_new = none, ["rsa-api", "sign", "key-cached"], json!({})),
        ("EVP_MD_CTX_new", |api| api.EVP_MD_CTX_new = none, sign, json!({})),
        ("EVP_PKEY_CTX_new", |api| api.EVP_PKEY_CTX_new = none_of_two, sign, json!({"digest": "none"})),
        (
            "EVP_PKEY_CTX_new_id",
            |api| api.EVP_PKEY_CTX_new_id = none_of_kind,
            ["signature", "sign", "ecdsa-p256"],
            json!({}),
        ),
        ("EVP_PKEY_new", |api| api.EVP_PKEY_new = none, ["key-exchange", "client", "ecdh-p256"], json!({})),
        (
            "a public key's bytes",
            |api| {
                api.EVP_PKEY_get1_encoded_public_key = Some(a_length_alone);
                api.EVP_PKEY_get1_tls_encodedpoint = Some(a_length_alone);
            },
            ["key-exchange", "client", "ecdh-p256"],
            json!({}),
        ),
        (
            "EVP_CIPHER_CTX_new",
            |api| api.EVP_CIPHER_CTX_new = none,
            ["cipher", "encrypt", "aes-128-gcm"],
            json!({}),
        ),
    ]
}

/// Prepares, performs and proves, or says why not.
fn outcome(api: &Api, [family, op, choice]: [&str; 3], setting: &Value) -> Result<(), Failure> {
    let keys = concat!(env!("CARGO_MANIFEST_DIR"), "/../src/tollbar/families/keys");
    let pem = std::fs::read_to_string(format!("{keys}/rsa-2048.pem")).expect("a key");
    let task = json!({"mode": "verify", "provider": {"kind": "libcrypto"}, "family": family, "op": op,
        "choice": choice, "setting": setting, "inputs": {"private_key_pem": pem}, "seed": 7});
    let task = serde_json::from_value(task).expect("a task");
    let mut operation = Libcrypto { api: Box::leak(Box::new(api.clone())) }.prepare(&task)?;
    operation.perform()?;
    operation.prove().map(|_| ())
}

/// OpenSSL 1.1.1 has macros where later ones have these functions: there a command does the same.
#[test]
fn a_number_is_set_by_its_command_where_there_is_no_function() {
    let Some(api) = super::SYSTEM_NAMES.iter().find_map(|name| Api::open(name).ok()) else {
        println!("SKIPPED: this machine has no libcrypto");
        return;
    };
    let mut macros = api.clone();
    macros.EVP_PKEY_CTX_set_rsa_keygen_bits = None;
    macros.EVP_PKEY_CTX_set_rsa_padding = None;
    macros.EVP_PKEY_CTX_set_rsa_pss_saltlen = None;
    macros.EVP_PKEY_CTX_set_ec_paramgen_curve_nid = None;
    let pss = json!({"padding": "pss"});
    for (op, choice, setting) in
        [("sign", "rsa-2048", &pss), ("generate-key", "rsa-2048", &pss), ("verify", "ecdsa-p256", &json!({}))]
    {
        assert!(matches!(outcome(&macros, ["signature", op, choice], setting), Ok(())), "{op} {choice}");
    }
}

#[test]
fn what_a_library_does_not_give_is_a_reason_and_not_a_crash() {
    let Some(api) = super::SYSTEM_NAMES.iter().find_map(|name| Api::open(name).ok()) else {
        println!("SKIPPED: this machine has no libcrypto");
        return;
    };
    for (taken, take, task, setting) in rows() {
        match outcome(api, task, &setting) {
            Ok(()) => (),
            // Older libraries lack it whole, and some newer ones have no low-level calls.
            Err(Failure::Unsupported(_)) => continue,
            Err(failure) => panic!("{task:?}: {failure:?}"),
        }
        let mut poor = api.clone();
        take(&mut poor);
        assert!(outcome(&poor, task, &setting).is_err(), "{task:?} without {taken}");
    }
}
