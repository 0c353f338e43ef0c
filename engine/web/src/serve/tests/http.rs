//! Answers of the server to valid and invalid requests.

use super::{Served, get};

const MOST: &str = "67108864";

#[test]
fn every_path_has_its_status_and_length() {
    let served = Served::plain();
    let nowhere = served.ask("/").body.len();
    let rows = [
        (200, 0, "/bytes/0"),
        (200, 1, "/bytes/1"),
        (200, 4096, "/bytes/4096"),
        (200, 4096, "/bytes/4096?u=17"),
        (200, 65537, "/bytes/65537"),
        (200, 4096, "http://localhost:80/bytes/4096"),
        (404, nowhere, "/"),
        (404, nowhere, "/bytes"),
        (404, nowhere, "/bytes/"),
        (404, nowhere, "/bytes/+1"),
        (404, nowhere, "/bytes/-1"),
        (404, nowhere, "/bytes/1/"),
        (404, nowhere, "/bytes/x"),
        (404, nowhere, "/bytes/67108865"),
        (404, nowhere, "/bytes/99999999999999999999999999"),
        (404, nowhere, "/op/digest"),
        (404, nowhere, "http://localhost"),
        (404, nowhere, "*"),
    ];
    let mut client = served.client();
    for (status, length, target) in rows {
        client.send(get(target));
        let reply = client.reply();
        assert_eq!((status, length), (reply.status, reply.body.len()), "{target}");
        assert_eq!(None, reply.header("Connection"), "{target}");
    }
}

#[test]
fn the_longest_body_comes_whole() {
    assert_eq!(MOST, Served::plain().ask(&format!("/bytes/{MOST}")).body.len().to_string());
}

#[test]
fn a_head_is_that_of_the_answer_without_its_body() {
    let served = Served::plain();
    let mut client = served.client();
    for target in ["/bytes/4096", "/nowhere"] {
        client.send(format!("HEAD {target} HTTP/1.1\r\nHost: x\r\n\r\n{}", get(target)));
        let (head, whole) = (client.reply_to("HEAD"), client.reply());
        assert_eq!(head.head, whole.head);
    }
}

#[test]
fn a_connection_is_kept_or_closed_as_asked() {
    let served = Served::plain();
    let rows = [
        (None, "GET /bytes/9 HTTP/1.1\r\nHost: x\r\n"),
        (None, "GET /bytes/9 HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n"),
        (Some("close"), "GET /bytes/9 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"),
        (Some("close"), "GET /bytes/9 HTTP/1.1\r\nhost: x\r\ncONNECTION: Keep-Alive , CLOSE\r\n"),
        (Some("close"), "GET /nowhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"),
        (Some("close"), "GET /bytes/9 HTTP/1.0\r\n"),
        (Some("close"), "GET /bytes/9 HTTP/1.0\r\nHost: x\r\nConnection: close\r\n"),
        (Some("keep-alive"), "GET /bytes/9 HTTP/1.0\r\nConnection: Keep-Alive\r\n"),
    ];
    for (connection, head) in rows {
        let mut client = served.client();
        client.send(format!("{head}\r\n"));
        let reply = client.reply();
        assert_eq!(connection, reply.header("Connection"), "{head}");
        if connection == Some("close") {
            assert!(client.is_ended(), "{head}");
        } else {
            client.send(get("/bytes/7"));
            assert_eq!(7, client.reply().body.len(), "{head}");
        }
    }
}

#[test]
fn what_is_no_request_is_answered_so_and_the_connection_ends() {
    let served = Served::plain();
    let long = "x".repeat(17_000);
    let many = "A: b\r\n".repeat(65);
    let rows = [
        (400, "garbage\r\n\r\n".to_owned()),
        (400, "GET  HTTP/1.1\r\nHost: x\r\n\r\n".to_owned()),
        (400, "GET /bytes/1 HTTP/2.0\r\nHost: x\r\n\r\n".to_owned()),
        (400, "GET /bytes/1 HTTP/1.1\r\n\r\n".to_owned()),
        (400, "GET /bytes/1 HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n".to_owned()),
        (400, "GET /bytes/1 HTTP/1.1\r\nHost: x\r\nAuthorization: a\r\nAuthorization: b\r\n\r\n".to_owned()),
        (400, "GET /bytes/1 HTTP/1.1\r\nHost : x\r\n\r\n".to_owned()),
        (400, "GET /bytes/1 HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n".to_owned()),
        (400, "GET /bytes/1 HTTP/1.1\r\nHost: x\r\nContent-Length:\r\n\r\n".to_owned()),
        (400, "GET /bytes/1 HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody".to_owned()),
        (
            400,
            "GET /bytes/1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n"
                .to_owned(),
        ),
        (405, "POST /bytes/1 HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody".to_owned()),
        (400, "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}".to_owned()),
        (431, format!("GET /bytes/1 HTTP/1.1\r\nHost: x\r\nX: {long}\r\n\r\n")),
        (431, format!("GET /{long} HTTP/1.1\r\nHost: x\r\n\r\n")),
        (431, format!("GET /bytes/1 HTTP/1.1\r\nHost: x\r\nX: {long}")),
        (431, format!("GET /bytes/1 HTTP/1.1\r\nHost: x\r\n{many}\r\n")),
    ];
    for (status, request) in rows {
        let mut client = served.client();
        client.send(&request);
        let reply = client.reply();
        assert_eq!((status, Some("close")), (reply.status, reply.header("Connection")), "{request:.60}");
        assert!(reply.text().ends_with('\n') && reply.body.len() > 5, "{request:.60}: {}", reply.text());
        assert!(client.is_ended(), "{request:.60}");
    }
}

#[test]
fn a_head_of_sixteen_kib_is_still_a_request() {
    let served = Served::plain();
    let mut client = served.client();
    let short = "GET /bytes/3 HTTP/1.1\r\nHost: x\r\nX: \r\n\r\n";
    let filling = "x".repeat(16 * 1024 - short.len());
    client.send(short.replace("X: ", &format!("X: {filling}")));
    assert_eq!(3, client.reply().body.len());
}

#[test]
fn other_methods_are_refused_and_the_connection_kept() {
    let served = Served::plain();
    let mut client = served.client();
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "get", "X"] {
        client.send(format!("{method} /bytes/1 HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"));
        let reply = client.reply();
        assert_eq!((405, Some("GET, HEAD")), (reply.status, reply.header("Allow")), "{method}");
    }
    client.send(get("/bytes/1"));
    assert_eq!(200, client.reply().status);
}

#[test]
fn nothing_after_a_last_request_is_answered() {
    let served = Served::plain();
    let mut client = served.client();
    client.send(format!("GET /bytes/5 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n{}", get("/bytes/6")));
    assert_eq!(5, client.reply().body.len());
    assert!(client.is_ended());
}

#[test]
fn a_request_may_come_in_any_pieces() {
    let served = Served::plain();
    let two = get("/bytes/11") + &get("/bytes/22");
    let mut client = served.client();
    for middle in 0..=two.len() {
        client.send(&two[..middle]);
        // The pieces must arrive separately: the first answer is awaited if there is one.
        let first = (middle >= get("/bytes/11").len()).then(|| client.reply());
        std::thread::sleep(std::time::Duration::from_millis(1));
        client.send(&two[middle..]);
        let first = first.unwrap_or_else(|| client.reply());
        assert_eq!((11, 22), (first.body.len(), client.reply().body.len()), "{middle}");
    }
    for byte in two.bytes() {
        client.send([byte]);
    }
    assert_eq!((11, 22), (client.reply().body.len(), client.reply().body.len()));
}

#[test]
fn a_client_that_has_said_all_still_gets_its_answer() {
    let served = Served::plain();
    let mut client = served.client();
    client.send(get("/bytes/5000000"));
    client.end_sending();
    assert_eq!(5_000_000, client.reply().body.len());
    assert!(client.is_ended());
}
