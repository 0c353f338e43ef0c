//! Tests with a libcrypto whose functions return nothing: each object that can be missing is checked before
//! use. Each bound function also has the type that the headers of OpenSSL and AWS-LC declare.

use std::ffi::{c_int, c_uchar};

use serde_json::{Value, json};

use super::Libcrypto;
use super::api::{Api, Handle, RawParam};
use super::dialect::{Fork, OpenSsl};
use crate::contract::Task;
use crate::failure::Failure;
use crate::provider::Provider;
use tollbar_testing::headers::{AWS_LC, OPENSSL, boringssl, forks, named};

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
/// Reports a length of 65 bytes, and gives no bytes.
unsafe extern "C" fn a_length_alone(_: Handle, _: *mut *mut c_uchar) -> usize {
    65
}

/// Function that is removed from the library, and a task (family, operation, choice, setting) that needs it.
type Row = (&'static str, fn(&mut Api), [&'static str; 3], Value);

fn rows() -> Vec<Row> {
    let low_level = || json!({"call": "low-level"});
    let sign = ["signature", "sign", "rsa-2048"];
    let argon2id = json!({"algorithm": "argon2id", "memory": 64 * 1024, "passes": 1, "lanes": 1});
    let before_3 = |api: &mut Api| (api.EVP_MAC_fetch, api.HMAC_CTX_new) = (None, none);
    vec![
        (
            "EVP_MAC_CTX_new",
            // The forks have only the older interface.
            |api| match &mut api.EVP_MAC_CTX_new {
                Some(new) => *new = none_of,
                None => api.HMAC_CTX_new = none,
            },
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
        ("BIO_new_mem_buf", |api| api.dialect = api.dialect.clone().without_memory(), sign, json!({})),
        (
            "BIO_new_mem_buf",
            |api| api.dialect = api.dialect.clone().without_memory(),
            ["rsa-api", "sign", "key-from-pem"],
            low_level(),
        ),
        (
            "BN_bin2bn",
            |api| api.dialect = api.dialect.clone().without_memory(),
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

/// Opens the library that `TOLLBAR_LIBCRYPTO` names, or the system's.
fn library() -> Option<&'static Api> {
    match std::env::var("TOLLBAR_LIBCRYPTO") {
        Ok(path) => Some(Api::open(&path).unwrap_or_else(|failure| panic!("{failure:?}"))),
        Err(_) => super::SYSTEM_NAMES.iter().find_map(|name| Api::open(name).ok()),
    }
}

fn task([family, op, choice]: [&str; 3], setting: &Value, mut inputs: Value) -> Task {
    inputs["private_key_pem"] =
        json!(include_str!("../../../../src/tollbar/catalog/families/keys/rsa-2048.pem"));
    let task = json!({"mode": "verify", "provider": {"kind": "libcrypto"}, "family": family, "op": op,
        "choice": choice, "setting": setting, "inputs": inputs, "seed": 7});
    serde_json::from_value(task).expect("a task")
}

/// Prepares, performs and proves a task, or returns the reason of a failure.
fn outcome(api: &Api, cell: [&str; 3], setting: &Value) -> Result<(), Failure> {
    let task = task(cell, setting, json!({}));
    let mut operation = Libcrypto { api: Box::leak(Box::new(api.clone())) }.prepare(&task)?;
    operation.perform()?;
    operation.prove().map(|_| ())
}

/// OpenSSL 1.1.1 has macros instead of these functions: a command does the same there.
#[test]
fn a_number_is_set_by_its_command_where_there_is_no_function() {
    let Some(api) = super::SYSTEM_NAMES.iter().find_map(|name| Api::open(name).ok()) else {
        crate::lacking("this machine has no libcrypto");
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
    let Some(api) = library() else {
        crate::lacking("this machine has no libcrypto");
        return;
    };
    for (taken, take, task, setting) in rows() {
        match outcome(api, task, &setting) {
            Ok(()) => (),
            // Older libraries do not have it at all, and some newer ones have no low-level calls.
            Err(Failure::Unsupported(_)) => continue,
            Err(failure) => panic!("{task:?}: {failure:?}"),
        }
        let mut poor = api.clone();
        take(&mut poor);
        assert!(outcome(&poor, task, &setting).is_err(), "{task:?} without {taken}");
    }
}

/// Returns the family's known answer: a message, and its signature in hexadecimal.
fn known_signature() -> (&'static str, &'static str) {
    let family = include_str!("../../../../src/tollbar/catalog/families/rsa-api/family.toml");
    let between = |from: &str| family.split(from).nth(1).and_then(|rest| rest.split('"').next());
    (between("{ of = \"").expect("a message"), between(", is = \"").expect("a signature"))
}

fn rsa_task(op: &str, choice: &str, setting: &Value, expected: &str) -> Task {
    let known = json!({"of": known_signature().0, "expected_hex": expected});
    task(["rsa-api", op, choice], setting, known)
}

/// Tests each call, source of the key and operation on the library as it is, and without the functions that
/// OpenSSL 1.1.1 does not have.
#[test]
fn every_route_to_an_rsa_key_signs_and_verifies() {
    let Some(api) = library() else {
        crate::lacking("this machine has no libcrypto");
        return;
    };
    let mut before_3 = api.clone();
    (before_3.EVP_PKEY_fromdata, before_3.EVP_PKEY_CTX_set_signature_md) = (None, None);
    let mut libraries = vec![api];
    // The forks always had the second as a function, and have no command for it.
    if api.EVP_PKEY_CTX_ctrl.is_some() {
        libraries.push(Box::leak(Box::new(before_3)));
    }
    let expected = known_signature().1;
    let ways = [json!({}), json!({"digest": "implicit"}), json!({"call": "low-level"})];
    let reused = json!({"context": "reused"});
    let choices = super::rsa_api::offers(api).into_iter();
    let of_all = choices.flat_map(|choice| ways.iter().map(move |way| (choice, way)));
    for (choice, setting) in of_all.chain([("key-cached", &reused)]) {
        for (api, op) in libraries.iter().flat_map(|api| ["sign", "verify"].map(|op| (api, op))) {
            let what = format!("{op} {choice} {setting}");
            let prepared = Libcrypto { api }.prepare(&rsa_task(op, choice, setting, expected));
            let mut operation = prepared.unwrap_or_else(|why| panic!("{what}: {why:?}"));
            // The batch is larger than a pool.
            operation.batch(10).expect(&what);
            let proof = operation.prove().unwrap_or_else(|why| panic!("{what}: {why:?}"));
            assert_eq!(Some(expected), proof.answer.as_deref(), "{what}");
            assert_eq!(2, proof.refused.len(), "{what}");
            operation.perform().expect(&what);
        }
        let wrong = "00".repeat(256);
        let mut operation =
            Libcrypto { api }.prepare(&rsa_task("verify", choice, setting, &wrong)).expect(choice);
        let refusal = operation.prove().expect_err("a signature of zeros");
        assert_eq!(Failure::Failed("the library refuses the published signature".to_owned()), refusal);
    }
}

#[test]
fn a_route_that_a_c_program_has_not_is_refused_in_words() {
    let Some(api) = library() else {
        crate::lacking("this machine has no libcrypto");
        return;
    };
    let refusal = |choice, setting| {
        let prepared = Libcrypto { api }.prepare(&rsa_task("sign", choice, &setting, known_signature().1));
        prepared.err().unwrap_or_else(|| panic!("{choice} is prepared"))
    };
    assert!(
        matches!(refusal("key-from-store", json!({})), Failure::Unsupported(words) if words.contains("X509_STORE"))
    );
    let kept = json!({"context": "reused"});
    assert!(matches!(refusal("key-pooled", kept), Failure::Failed(words) if words.contains("`reused`")));
}

named! { RawParam: "OSSL_PARAM"; }

#[test]
fn a_function_has_the_type_that_the_headers_give_it() {
    let (openssl, aws_lc) =
        (OPENSSL.compare(&Api::signatures(), &RawParam::fields()), AWS_LC.compare(&Api::signatures(), &[]));
    assert!(openssl.differs.is_empty() && aws_lc.differs.is_empty(), "{openssl:#?} {aws_lc:#?}");
    if let Some(headers) = boringssl() {
        let boringssl = headers.compare(&Api::signatures(), &[]);
        assert!(boringssl.differs.is_empty(), "{boringssl:#?}");
    }
    let nowhere: Vec<&String> = openssl.undeclared.intersection(&aws_lc.undeclared).collect();
    assert!(nowhere.is_empty(), "functions that no header declares: {nowhere:?}");
}

#[test]
fn a_function_of_a_dialect_has_the_type_that_its_headers_give_it() {
    let of_forks = forks().map(|headers| headers.compare(&Fork::signatures(), &[]));
    for compared in of_forks.chain([OPENSSL.compare(&OpenSsl::signatures(), &[])]) {
        assert!(compared.differs.is_empty() && compared.undeclared.is_empty(), "{compared:#?}");
    }
}

/// A comparison that never fails, or a function that needs no dialect, fails here.
#[test]
fn a_function_of_the_other_dialect_differs() {
    for compared in [OPENSSL.compare(&Fork::signatures(), &[]), AWS_LC.compare(&OpenSsl::signatures(), &[])] {
        assert_eq!(Fork::signatures().len(), compared.differs.len(), "{compared:#?}");
    }
}
