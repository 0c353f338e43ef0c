//! Scenarios with a server of the test.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use super::jar::Jar;
use super::quote::{self, Secrets};
use super::template::{Encoding, encoded};
use crate::failure::Failure;
use crate::load::task::Load;
use crate::load::trial::Trial;
use crate::load::verify::verify;
use crate::runner::Advance;
use crate::sign_in::tests::cases::{CLEAR, Files, accounts_file, cases, name, password};

/// Site that answers each request, head and body, with a function; it keeps the requests.
struct Site {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Site {
    fn start(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> Site {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let site = Site { address: listener.local_addr().expect("an address"), requests: Arc::default() };
        let (requests, answer) = (Arc::clone(&site.requests), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (requests, answer) = (Arc::clone(&requests), Arc::clone(&answer));
                thread::spawn(move || serve(stream, &requests, answer.as_ref()));
            }
        });
        site
    }

    fn load(&self, exchange: Value, users: u32) -> Load {
        let mut exchange = exchange;
        exchange["scheme"] = json!("scenario");
        serde_json::from_value(json!({
            "address": self.address, "host": "localhost", "clients": [{"share": 1}], "users": users, "is_lab": false,
            "connection": "user", "request": {"paths": ["/"]}, "exchange": exchange, "request_limit_s": 5.0,
        }))
        .expect("a load")
    }

    fn seen(&self) -> Vec<String> {
        self.requests.lock().expect("requests").clone()
    }
}

fn serve(
    mut stream: TcpStream,
    requests: &Mutex<Vec<String>>,
    answer: &(dyn Fn(&str) -> String + Send + Sync),
) {
    let (mut came, mut buffer) = (String::new(), [0; 4096]);
    loop {
        if let Some(end) = came.find("\r\n\r\n") {
            let length = came[..end].split("Content-Length: ").nth(1).and_then(|rest| rest.lines().next());
            let whole = end + 4 + length.map_or(0, |length| length.parse().expect("a length"));
            if came.len() >= whole {
                let request: String = came.drain(..whole).collect();
                let said = answer(&request);
                requests.lock().expect("requests").push(request);
                if stream.write_all(said.as_bytes()).is_err() {
                    return;
                }
                continue;
            }
        }
        match stream.read(&mut buffer) {
            Ok(count) if count > 0 => came.push_str(&String::from_utf8_lossy(&buffer[..count])),
            _ => return,
        }
    }
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
}

/// Site with a form: a page with a token, a sign-in that needs it, and a page for the session.
fn with_form() -> Site {
    Site::start(|request| {
        let line = request.lines().next().unwrap_or_default();
        let body = request.split("\r\n\r\n").nth(1).unwrap_or_default();
        match line {
            "GET /login HTTP/1.1" => answer(
                "200 OK",
                "Set-Cookie: pre=1; Path=/; HttpOnly\r\n",
                "<form><input type=hidden name='csrf' value=\"a&amp;b+c\"><input name=\"user\"></form>",
            ),
            "POST /login HTTP/1.1" => {
                let is_right = body.contains("csrf=a%26b%2Bc") && request.contains("Cookie: pre=1\r\n");
                let user =
                    body.split("user=").nth(1).and_then(|rest| rest.split('&').next()).unwrap_or("none");
                let is_password = body.contains(&format!("password=of+{user}"));
                match is_right && is_password {
                    true => answer(
                        "302 Found",
                        &format!(
                            "Set-Cookie: session=s-{user}\r\nSet-Cookie: pre=; Max-Age=0\r\nLocation: /\r\n"
                        ),
                        "",
                    ),
                    false => answer("403 Forbidden", "", &format!("<p>wrong password: {body}")),
                }
            }
            _ => match request.split("Cookie: session=s-").nth(1).and_then(|rest| rest.lines().next()) {
                Some(user) => {
                    answer("200 OK", "X-Token: t1\r\n", &format!("{{\"user\": \"{user}\", \"n\": [1, 7]}}"))
                }
                None => answer("401 Unauthorized", "", "sign in first"),
            },
        }
    })
}

fn form_scenario() -> Value {
    json!({
        "sources": [
            {"rows": [["u1", "of u1"], ["u2", "of u2"]], "is_secret": true, "is_of_user": true},
            {"range": [5, 9]}, {"rows": [["tea"], ["green tea"]]},
        ],
        "values": {"user": [0, 0], "password": [0, 1], "page": [1, 0], "word": [2, 0]},
        "steps": [
            {"name": "form", "method": "GET", "path": "/login", "status": 200, "text": "<form>",
             "capture": {"csrf": {"field": "csrf"}}},
            {"name": "sign in", "method": "POST", "path": "/login", "status": 302,
             "form": [["csrf", "${csrf}"], ["user", "${user}"], ["password", "${password}"]],
             "capture": {"session": {"cookie": "session"}}},
            {"name": "page", "method": "GET", "path": "/page/${page}?q=${word}", "status": 200,
             "text": "\"user\": \"${user}\"", "headers": [["X-Session", "${session}"], ["X-Literal", "$${page}"]],
             "capture": {"n": {"json": "/n/1"}, "t": {"header": "x-token"}, "u": {"regex": "\"user\": \"(u\\d)\""}}},
            {"name": "api", "method": "POST", "path": "/api", "status": 200,
             "headers": [["Content-Type", "application/json"]],
             "body": "{\"n\": ${n}, \"t\": \"${t}\", \"u\": \"${u}\", \"password\": \"${password}\"}"},
        ],
    })
}

#[test]
fn a_scenario_signs_in_by_its_form_and_uses_what_it_captured() {
    let site = with_form();
    let proof = verify(&site.load(form_scenario(), 1)).unwrap_or_else(|failure| panic!("{failure:?}"));
    assert!(proof.accepted[0].starts_with("every step; the last: status 200"), "{:?}", proof.accepted);
    let seen = site.seen();
    let page = seen.iter().find(|request| request.starts_with("GET /page/")).expect("a page");
    assert!(page.contains("X-Session: s-u") && page.contains("X-Literal: ${page}\r\n"), "{page}");
    assert!(!page.contains("pre="), "an ended cookie is not sent: {page}");
    let api = seen.iter().find(|request| request.starts_with("POST /api")).expect("an api");
    let body: Value = serde_json::from_str(api.split("\r\n\r\n").nth(1).expect("a body")).expect("JSON");
    assert_eq!((json!(7), json!("t1")), (body["n"].clone(), body["t"].clone()));
    assert_eq!(json!(format!("of {}", body["u"].as_str().expect("a user"))), body["password"]);
}

/// Each operation draws its own values, from all rows and the whole range.
#[test]
fn values_are_drawn_for_each_operation() {
    let site = with_form();
    let mut trial = Trial::open(&site.load(form_scenario(), 3), 7).expect("a trial");
    let chunk = trial.advance(Advance { seconds: 0.0, operations: 200 }).expect("a chunk");
    assert!(chunk.operations >= 200);
    let seen = site.seen().concat();
    for part in ["user=u1&", "user=u2&", "GET /page/5?q=", "GET /page/9?q=", "q=tea ", "q=green%20tea "] {
        assert!(seen.contains(part), "{part}");
    }
    assert!(!seen.contains("GET /page/4") && !seen.contains("GET /page/10"));
}

/// Steps that are done once are done by each user, whose account then stays; all other values are drawn again.
#[test]
fn a_user_that_signed_in_once_keeps_its_cookies() {
    let site = with_form();
    let mut scenario = form_scenario();
    for step in 0..2 {
        scenario["steps"][step]["once"] = json!(true);
    }
    let mut trial = Trial::open(&site.load(scenario, 3), 7).expect("a trial");
    trial.advance(Advance { seconds: 0.0, operations: 100 }).expect("a chunk");
    let seen = site.seen();
    assert_eq!(3, seen.iter().filter(|request| request.starts_with("POST /login")).count());
    assert!(seen.concat().contains("GET /page/5") && seen.concat().contains("GET /page/9"));
}

/// A failing step is named with its status and the beginning of its answer, in which no secret is left.
#[test]
fn a_failing_step_is_named_without_its_secrets() {
    let site = with_form();
    let refused = |change: &dyn Fn(&mut Value)| {
        let mut scenario = form_scenario();
        change(&mut scenario);
        match verify(&site.load(scenario, 1)) {
            Ok(proof) => panic!("accepted: {:?}", proof.accepted),
            Err(failure) => Failure::into_words(failure),
        }
    };
    let wrong = refused(&|scenario| scenario["sources"][0]["rows"] = json!([["u1", "se cret&1"]]));
    assert_eq!(
        "not accepted: wrong status: step 2 (sign in): expected status 302, got 403: wrong password: \
         csrf=[…]&user=[…]&password=[…]",
        wrong
    );
    let missing = refused(&|scenario| scenario["steps"][0]["capture"]["csrf"] = json!({"field": "token"}));
    assert_eq!(
        "not accepted: wrong body: step 1 (form): the form's field token is not in the answer",
        missing
    );
    let text = refused(&|scenario| scenario["steps"][2]["text"] = json!("Welcome"));
    assert!(
        text.contains(
            "step 3 (page): the expected text is not in the answer of 27 bytes: {\"user\": \"[…]\""
        ),
        "{text}"
    );
}

#[test]
fn an_impossible_scenario_is_refused_before_anything_is_sent() {
    let site = with_form();
    for (place, value, expected) in [
        ("/steps/0/path", json!("/${nothing}"), "step 1 (form): `${nothing}` names no value"),
        ("/steps/0/path", json!("/${csrf}"), "step 1 (form): `${csrf}` names no value"),
        ("/steps/0/path", json!("/${csrf"), "step 1 (form): a `${` without `}`"),
        ("/steps/0/path", json!("/a b"), "step 1 (form): the path"),
        ("/steps/2/headers/0/1", json!("a\r\nb: c"), "step 3 (page): the header"),
        ("/steps/2/capture/u", json!({"regex": "("}), "step 3 (page): the expression cannot be used"),
        ("/steps/2/capture/u", json!({"regex": "u"}), "has no group"),
        ("/steps/2/capture/u", json!({"regex": "(((a{500}){500}){500})"}), "the expression cannot be used"),
        ("/sources/1/range", json!([9, 5]), "a range from 9 to 5"),
        ("/sources/0/rows", json!([]), "a source without rows"),
        ("/values/user", json!([0, 2]), "names no column for \"user\""),
        ("/steps", json!([]), "`load.exchange.steps` has 0"),
    ] {
        let mut scenario = form_scenario();
        *scenario.pointer_mut(place).expect(place) = value;
        let words = verify(&site.load(scenario, 1)).map(|_| ()).expect_err(place).into_words();
        assert!(words.contains(expected), "{place}: {words}");
    }
    assert!(site.seen().is_empty());
}

/// Basic and Digest with the embedded server, and a bearer token.
#[test]
fn a_scenario_signs_in_by_a_header() {
    for by in ["basic", "digest"] {
        let files = Files::new(&format!("scenario-{by}"));
        let accounts = accounts_file(&files);
        let case = cases(&files).into_iter().find(|case| case.scheme == by && case.tls == CLEAR).expect(by);
        let served = case.served();
        let of_case = case.load(&served, &accounts, json!({}));
        let scenario = |password: &str| {
            json!({"scheme": "scenario", "sources": [{"rows": [[name(0), password]], "is_secret": true}],
            "values": {"name": [0, 0], "password": [0, 1]},
            "sign_in": {"by": by, "user": "${name}", "password": "${password}"},
            "steps": [
                {"name": "page", "method": "GET", "path": of_case.request.paths[0], "status": 200},
                {"name": "again", "method": "GET", "path": of_case.request.paths[0], "status": 200},
            ]})
        };
        let asked = |password: &str| {
            let exchange = serde_json::from_value(scenario(password)).expect("an exchange");
            verify(&Load { exchange: Some(exchange), is_lab: false, ..of_case.clone() })
        };
        asked(&password(0)).unwrap_or_else(|failure| panic!("{by}: {failure:?}"));
        let words = asked("another").map(|_| ()).expect_err(by).into_words();
        assert!(words.contains("step 1 (page): expected status 200, got 401"), "{by}: {words}");
    }
    let site = Site::start(|_| answer("200 OK", "", "hello"));
    let scenario = json!({"sources": [{"rows": [["t0ken"]], "is_secret": true}], "values": {"token": [0, 0]},
        "sign_in": {"by": "bearer", "token": "${token}"},
        "steps": [{"name": "page", "method": "GET", "path": "/", "status": 200}]});
    verify(&site.load(scenario, 1)).unwrap_or_else(|failure| panic!("{failure:?}"));
    assert!(site.seen().iter().all(|request| request.contains("\r\nAuthorization: Bearer t0ken\r\n")));
}

/// A jar replaces, ends and limits cookies.
#[test]
fn a_jar_keeps_the_last_cookie_of_a_name() {
    let mut jar = Jar::default();
    for header in
        ["a=1; Path=/", "b=2", "a=3", "no cookie", "=x", "b=; Expires=Thu, 01 Jan 1970 00:00:00 GMT"]
    {
        jar.take(header, "/", true);
    }
    assert_eq!(Some("a=3".to_owned()), jar.header("/"));
    for number in 0..200 {
        jar.take(&format!("c{number}={}", "x".repeat(if number % 2 == 0 { 1 } else { 5000 })), "/", true);
    }
    assert_eq!(100, jar.header("/").expect("cookies").split("; ").count());
}

#[test]
fn a_cookie_is_sent_with_its_paths_alone() {
    let mut jar = Jar::default();
    jar.take("own=1", "/shop/cart?to=/a/b", true);
    jar.take("admin=2; Path=/admin", "/login", true);
    jar.take("all=3; path=/", "/shop/cart", true);
    jar.take("odd=4; Path=shop", "/login", true);
    jar.take("own=5; Path=/shop/cart", "/", true);
    for (target, expected) in [
        ("/shop", "own=1; all=3; odd=4"),
        ("/shop/cart?x=1", "own=5; own=1; all=3; odd=4"),
        ("/shopping", "all=3; odd=4"),
        ("/admin?x=/shop", "admin=2; all=3; odd=4"),
        ("/administrator", "all=3; odd=4"),
    ] {
        assert_eq!(Some(expected.to_owned()), jar.header(target), "{target}");
    }
    assert_eq!(Some("5"), jar.get("own"));
    jar.take("all=; Path=/; Max-Age=0", "/", true);
    jar.take("odd=; Max-Age=0", "/", true);
    assert_eq!(None, jar.header("/elsewhere"));
}

#[test]
fn a_secure_cookie_is_not_sent_where_others_can_read_it() {
    let mut jar = Jar::default();
    for header in ["a=1; Secure", "b=2; SECURE; Path=/", "c=3; secure=x", "d=4; HttpOnly"] {
        jar.take(header, "/", false);
    }
    assert_eq!(Some("d=4".to_owned()), jar.header("/"));
    jar.take("a=1; Secure", "/", true);
    assert_eq!(Some("d=4; a=1".to_owned()), jar.header("/"));
    for (clients, address, is_secure) in [
        (json!([{"share": 1}]), "127.0.0.1:80", true),
        (json!([{"share": 1}]), "[::1]:80", true),
        (json!([{"share": 1}]), "192.0.2.7:80", false),
        (json!([{"share": 1}, {"share": 1, "tls": {}}]), "192.0.2.7:443", false),
        (json!([{"share": 0}, {"share": 1, "tls": {}}]), "192.0.2.7:443", true),
    ] {
        let load: Load = serde_json::from_value(json!({
            "address": address, "host": "x", "clients": clients, "users": 1, "connection": "user",
            "request": {"paths": ["/"]},
        }))
        .unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(is_secure, load.visitors().site.is_secure, "{address}");
    }
}

fn masked(text: &str, secrets: &[&str], is_cut: bool) -> String {
    quote::masked(text, &[&Secrets::of(secrets.iter().map(|one| (*one).to_owned()))], is_cut)
}

/// A secret is masked in each encoding, and where the kept part of an answer cuts it.
#[test]
fn a_secret_is_masked_however_it_is_written() {
    let secret = "p<ä \"1";
    for encoding in [Encoding::Plain, Encoding::Path, Encoding::Form, Encoding::Json] {
        let text = format!("you sent {} here", encoded(secret, encoding));
        assert_eq!("you sent […] here", masked(&text, &[secret], true), "{encoding:?}");
    }
    for written in
        ["p&lt;ä &quot;1", "p&lt;ä &#34;1", "p<\\u00e4 \\\"1", "p%3C%C3%A4%20%221", "p%3c%c3%a4+%221"]
    {
        assert_eq!("<p>[…]", masked(&format!("<p>{written}"), &[secret], true), "{written}");
    }
    assert_eq!("[…]", masked("a\\/b", &["a/b"], true));
    assert_eq!("<p>[…]", masked("<p>p&lt;ä &#34;1", &[secret], true));
}

#[test]
fn a_secret_that_is_cut_off_is_left_out() {
    assert_eq!("cut: ", masked("cut: sec", &["secret"], true));
    assert_eq!("whole: sec", masked("whole: sec", &["secret"], false));
    assert_eq!("[…]", masked("secretsecre", &["secret"], true));
    assert_eq!("a […]", masked("a secret", &["secret", "etx"], true));
    assert_eq!("", masked("", &["secret"], true));
    assert_eq!("plain", masked("plain", &[], true));
}

#[test]
fn secrets_inside_each_other_are_masked_together() {
    for (text, expected) in [
        ("abcdef", "[…]f"),
        ("xabcx", "x[…]x"),
        ("abcab", "[…]ab"),
        ("cdebcde", "[…][…]"),
        ("abäabc", "abä[…]"),
    ] {
        assert_eq!(expected, masked(text, &["abc", "bcde", "cde"], false), "{text}");
    }
    // Forms of which one begins with the other, and one between them in their order.
    assert_eq!("[…]!", masked("ab!", &["ab", "ab#", "abc", "a"], false));
    assert_eq!("[…]z", masked("abz", &["ab", "abc", "abca"], false));
}

/// Lists whose pages a support user sees have the passwords of others.
#[test]
fn a_page_that_lists_other_accounts_is_quoted_without_them() {
    let site = Site::start(|_| answer("500 Oh", "", "<li>bert: red horse <li>dora: green%20apple <li>key"));
    let scenario = json!({
        "sources": [
            {"rows": [["anna", "blue wine", "1"], ["bert", "red horse", "2"], ["dora", "green apple", "key"]],
             "is_secret": true, "is_of_user": true},
            {"rows": [["list"]]},
        ],
        "values": {"name": [0, 0], "password": [0, 1], "group": [0, 2], "page": [1, 0]},
        "steps": [{"name": "accounts", "method": "GET", "path": "/${page}", "status": 200}],
    });
    let words = verify(&site.load(scenario, 1)).map(|_| ()).expect_err("a status").into_words();
    assert!(words.contains("got 500: […]: […] […]: […] "), "{words}");
}
