//! Answers of servers, as clients parse them.

use serde_json::{Value, json};

use super::give::{Give, file};
use crate::failure::Fault;
use crate::gssapi::Mechanism;
use crate::http::page::{Expectation, Site};
use crate::http::response::{Expected, Response, Taken};
use crate::sign_in::scheme::{Judgement, Visit};
use crate::sign_in::{SignIn, Visitors, negotiate};

const ACCOUNTS: &str = "u1\tpassword\tusers\n";

fn expected(status: u16, to_head: bool) -> Expected {
    Expected {
        status,
        bytes: Some(5),
        body: Some(b"hello".to_vec()),
        to_head,
        keeps_head: true,
        kept_body_bytes: 0,
    }
}

/// Checks that an answer parses equally in one piece and byte by byte, and that its message is one line.
pub fn bodies() -> Give {
    let (page, head) = (expected(200, false), expected(200, true));
    Box::new(move |bytes| {
        let Some((&first, bytes)) = bytes.split_first() else { return };
        let expected = if first & 1 == 0 { &page } else { &head };
        let whole = taken(bytes, bytes.len().max(1), expected);
        let pieces = taken(bytes, 1, expected);
        assert_eq!(whole, pieces);
    })
}

/// Length of the answer; its status, its body's length, whether its connection is kept, and whether it is
/// right.
type Whole = (usize, u16, u64, bool, Result<(), Fault>);

/// Parses all bytes, `piece` of them at a time.
fn taken(bytes: &[u8], piece: usize, expected: &Expected) -> Result<Whole, &'static str> {
    let mut response = Response::default();
    response.begin();
    let mut used = 0;
    for piece in bytes.chunks(piece) {
        match response.take(piece, expected) {
            Ok(Taken::More) => used += piece.len(),
            Ok(Taken::Whole(length)) => {
                used += length;
                break;
            }
            Err(fault) => {
                assert!(!fault.words.contains('\n'), "{fault:?}");
                return Err(fault.kind);
            }
        }
    }
    let ended = response.end();
    for result in [&ended, &response.check(expected)] {
        assert!(!result.as_ref().is_err_and(|fault| fault.words.contains('\n')), "{result:?}");
    }
    let right = if ended.is_ok() { response.check(expected) } else { Ok(()) };
    Ok((used, response.status, response.bytes, response.keeps, right))
}

/// Tests the client of each scheme that reads answers with several answers in one visit; the first byte
/// selects the scheme. Each request must be complete, and none may contain a line from an answer.
pub fn sign_ins() -> Give {
    const SCHEMES: [&str; 2] = ["form", "digest"];
    let accounts = json!({"file": file(ACCOUNTS), "count": 1});
    let visitors = |spec: Value| Visitors {
        site: Site {
            host: "localhost".to_owned(),
            page: serde_json::from_value(json!({"paths": ["/a"]})).expect("a page"),
            expect: Expectation::default(),
            closes: false,
            is_secure: true,
        },
        users: 1,
        certificate_names: None,
        sign_in: Some(serde_json::from_value(spec).expect("a sign-in")),
    };
    let made = move |bits: u8| {
        let mut spec = json!({"scheme": SCHEMES[usize::from(bits & 1)], "accounts": accounts});
        match (bits & 1, bits & 2) {
            (0, token) => spec["token"] = json!(token != 0),
            (_, 0) => spec["algorithm"] = json!("md5"),
            _ => {}
        }
        if bits & 4 != 0 {
            spec["operation"] = json!("sign-on");
        }
        SignIn::new(&visitors(spec)).unwrap_or_else(|failure| panic!("{failure:?}"))
    };
    Box::new(move |bytes| {
        let Some((&first, mut bytes)) = bytes.split_first() else { return };
        let mut sign_in = made(first);
        let mut visit = Visit::default();
        if sign_in.begin(&visit).is_err() {
            return;
        }
        let mut response = Response::default();
        for leg in 0..8 {
            visit.leg = leg;
            let request = sign_in.request(&visit).to_vec();
            let parsed = crate::http::request::parse(&request);
            assert!(matches!(parsed, Ok(Some(_))), "{parsed:?} {}", request.escape_ascii());
            response.begin();
            match response.take(bytes, sign_in.expected(&visit)) {
                Ok(Taken::Whole(length)) => bytes = &bytes[length..],
                _ => return,
            }
            match sign_in.judge(&visit, &response) {
                Ok(Judgement::Continue) => {}
                Ok(Judgement::Done) | Err(_) => return,
            }
        }
    })
}

/// Tests tokens of Kerberos and NTLM in the heads of answers, and their parsing before they reach the
/// library.
pub fn tokens() -> Give {
    let expected = expected(401, false);
    Box::new(move |bytes| {
        for mechanism in [Mechanism::Spnego, Mechanism::Kerberos, Mechanism::Ntlm] {
            mechanism.is_of(bytes);
        }
        let mut response = Response::default();
        response.begin();
        let head = [b"HTTP/1.1 401 Unauthorized\r\n", bytes, b"\r\nContent-Length: 0\r\n\r\n"].concat();
        if response.take(&head, &expected).is_err() {
            return;
        }
        for scheme in ["Negotiate", "NTLM"] {
            if let Ok(token) = negotiate::token(scheme, &response) {
                Mechanism::Spnego.is_of(&token);
                assert!(negotiate::header(scheme, &token).ends_with(b"\r\n"));
            }
        }
    })
}
