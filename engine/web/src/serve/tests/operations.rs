//! Operations behind a path.

use serde_json::{Value, json};

use super::super::operations::{Operations, Query, Refusal};
use super::super::routes::Service;
use super::{Served, get, refused};
use crate::contract::{Proof, ProviderName, Task};
use crate::failure::Failure;
use crate::http::request;
use crate::op;
use crate::provider::Primitive;

fn task(kind: &str, family: &str, op: &str, choice: &str, bytes: u64) -> Value {
    let mut inputs = json!({});
    let keys = concat!(env!("CARGO_MANIFEST_DIR"), "/../../src/tollbar/catalog/families/keys");
    if let Ok(pem) = std::fs::read_to_string(format!("{keys}/{choice}.pem")) {
        inputs["private_key_pem"] = json!(pem);
    }
    json!({"mode": "measure", "provider": {"kind": kind}, "family": family, "op": op, "choice": choice,
        "setting": {"bytes": bytes}, "inputs": inputs, "seed": 7})
}

fn has_libcrypto() -> bool {
    let libcrypto = ProviderName { kind: "libcrypto".to_owned(), path: None };
    op::open(op::KINDS, &libcrypto, "native").is_ok()
}

#[test]
fn each_provider_performs_behind_a_path() {
    let has_libcrypto = has_libcrypto();
    for kind in ["rustcrypto", "aws-lc", "libcrypto"] {
        if kind == "libcrypto" && !has_libcrypto {
            crate::lacking("this machine has no libcrypto");
            continue;
        }
        let served = Served::with(json!([
            task(kind, "digest", "hash", "sha-256", 4096),
            task(kind, "digest", "hash", "sha-256", 16),
            task(kind, "cipher", "round-trip", "aes-128-cbc", 1000),
            task(kind, "signature", "sign", "rsa-2048", 32),
            task(kind, "signature", "verify", "rsa-2048", 32),
            task(kind, "digest", "hash", "none", 8),
        ]));
        assert!(served.listening["provider"]["provider"].as_str().unwrap().len() > 5, "{}", served.listening);
        let rows = [
            (200, "done 4096\n", "/op/digest/sha-256?bytes=4096"),
            (200, "done 16\n", "/op/digest/sha-256?bytes=16&op=hash"),
            (200, "done 4096\n", "/op/digest/sha-256?u=5&bytes=4096&op=hash&x"),
            (200, "done 1000\n", "/op/cipher/aes-128-cbc?bytes=1000&op=round-trip"),
            (200, "done 32\n", "/op/signature/rsa-2048?bytes=32&op=sign"),
            (200, "done 32\n", "/op/signature/rsa-2048?bytes=32&op=verify"),
            (200, "done 8\n", "/op/digest/none?bytes=8"),
            (404, "not prepared", "/op/digest/sha-256"),
            (404, "not prepared", "/op/digest/sha-256?bytes=17"),
            (404, "not prepared", "/op/digest/sha-256?bytes=many"),
            (404, "not prepared", "/op/digest/sha-256?bytes=4096&op=sign"),
            (404, "not prepared", "/op/mac/sha-256?bytes=4096"),
            (404, "not prepared", "/op/digest/sha-25?bytes=4096"),
            (404, "several operations fit", "/op/signature/rsa-2048?bytes=32"),
        ];
        let mut client = served.client();
        for (status, words, target) in rows {
            client.send(get(target));
            let reply = client.reply();
            assert_eq!(status, reply.status, "{kind} {target}: {}", reply.text());
            if status == 200 {
                assert_eq!(words, reply.text(), "{kind} {target}");
            } else {
                assert!(reply.text().starts_with(words), "{kind} {target}: {}", reply.text());
                assert!(reply.text().contains("\n/op/digest/sha-256?bytes=16&op=hash\n"));
            }
        }
        client.send("HEAD /op/digest/sha-256?bytes=16 HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!(Some("8"), client.reply_to("HEAD").header("Content-Length"));
    }
}

#[test]
fn providers_of_several_kinds_serve_side_by_side_and_are_all_named() {
    let served = Served::with(json!([
        task("rustcrypto", "digest", "hash", "sha-256", 1),
        task("aws-lc", "digest", "hash", "sha-256", 2),
    ]));
    let named = served.listening["provider"]["name"].as_str().unwrap();
    assert!(named.contains("rustcrypto") && named.contains(", aws-lc"), "{named}");
    assert_eq!("done 2\n", served.ask("/op/digest/sha-256?bytes=2").text());
}

#[test]
fn a_second_libcrypto_is_refused() {
    if !has_libcrypto() {
        crate::lacking("this machine has no libcrypto");
        return;
    }
    let first = task("libcrypto", "digest", "hash", "sha-256", 1);
    let mut second = task("libcrypto", "digest", "hash", "sha-256", 2);
    second["provider"]["path"] = json!("/another/libcrypto.so");
    let (mut masked, cpu) = (task("libcrypto", "digest", "hash", "sha-256", 3), "no-aes");
    masked["setting"]["cpu"] = json!(cpu);
    for (other, words) in [(second, "/another/libcrypto.so"), (masked, cpu)] {
        let config = json!({"listen": "127.0.0.1:0", "operations": [first, other]});
        let (status, line, _) = refused(&config.to_string());
        assert_eq!(Some(3), status.code(), "{line}");
        assert!(line.contains("a process holds one libcrypto") && line.contains(words), "{line}");
    }
}

#[test]
fn an_operation_is_really_performed_each_time() {
    let served = Served::with(json!([task("rustcrypto", "digest", "hash", "sha-256", 16 << 20)]));
    let before = served.cpu_ticks();
    let mut client = served.client();
    for _ in 0..20 {
        client.send(get("/op/digest/sha-256?bytes=16777216"));
        assert_eq!(200, client.reply().status);
    }
    // 320 MiB take more than 50 ms on any existing processor.
    assert!(served.cpu_ticks() - before >= 5);
}

/// An operation that fails from its third call on.
struct Failing(u32);

impl Primitive for Failing {
    fn perform(&mut self) -> Result<(), Failure> {
        self.0 += 1;
        if self.0 > 2 { Err(Failure::Failed("a wrong answer".to_owned())) } else { Ok(()) }
    }

    fn prove(&mut self) -> Result<Proof, Failure> {
        Ok(Proof::default())
    }
}

#[test]
fn a_failing_operation_is_answered_with_its_reason() {
    let task: Task = serde_json::from_value(
        json!({"mode": "measure", "provider": {"kind": "test"}, "family": "f", "op": "o",
            "choice": "c"}),
    )
    .unwrap();
    let mut operations = Operations::default();
    operations.push(&task, Box::new(Failing(0))).unwrap();
    let asked = Query { family: "f", choice: "c", bytes: None, op: None };
    assert_eq!(Ok("done 0\n"), operations.perform(asked));
    assert_eq!(Err(Refusal::NotPrepared), operations.perform(Query { choice: "d", ..asked }));

    let mut service = Service::new(operations, None, None);
    // An operation without the setting `bytes` ignores the `bytes` of the path.
    let text = get("/op/f/c?bytes=7");
    let request = request::parse(text.as_bytes()).unwrap().unwrap();
    let mut answers = ["200 OK", "500 Internal Server Error", "500 Internal Server Error"].into_iter();
    for expected in &mut answers {
        let answer = String::from_utf8(service.answer(&request, None).whole.to_vec()).unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {expected}\r\n")), "{answer}");
        assert_eq!(expected.starts_with("500"), answer.ends_with("\r\n\r\na wrong answer\n"), "{answer}");
    }
}
