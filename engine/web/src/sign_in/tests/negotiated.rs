//! Kerberos and NTLM without a server: the client's request after each answer, and its use of the directory.

use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::cases::Files;
use crate::alone::tried_alone;
use crate::failure::Failure;
use crate::gssapi::{self, Mechanism};
use crate::http::page::{Expectation, Site};
use crate::http::response::Response;
use crate::process;
use crate::sign_in::scheme::{Judgement, Visit};
use crate::sign_in::{SignIn, Visitors};

/// Number that draws the first account of two; `SECOND` draws the second.
const FIRST: u64 = 0;
const SECOND: u64 = 1 << 63;

fn visitors(files: &Files, mut sign_in: Value, closes: bool) -> Visitors {
    let accounts = files.0.join("accounts.tsv");
    if !accounts.exists() {
        files.put("accounts.tsv", "u0\tfirst-secret\t0\nu1\tsecond-secret\t0\n");
    }
    sign_in["accounts"] = json!({"file": accounts, "count": 2});
    Visitors {
        site: Site {
            host: "web1.tollbar.test".to_owned(),
            page: serde_json::from_value(json!({"paths": ["/a"]})).expect("a page"),
            expect: Expectation::default(),
            closes,
            is_secure: true,
        },
        users: 2,
        certificate_names: None,
        sign_in: Some(serde_json::from_value(sign_in).expect("a sign-in")),
    }
}

fn visit(connection: u32, unique: u64) -> Visit {
    Visit { connection, unique, ..Visit::default() }
}

/// Returns a request's credential or cookie, or None.
fn shown(sign_in: &mut SignIn, visit: &Visit) -> Option<String> {
    let request = String::from_utf8(sign_in.request(visit).to_vec()).expect("a request");
    let header = |name: &str| request.lines().find_map(|line| line.strip_prefix(name).map(str::to_owned));
    header("Authorization: ").or(header("Cookie: "))
}

/// Judges an answer of this status, with these headers.
fn judged(sign_in: &mut SignIn, visit: &Visit, status: u16, headers: &str) -> Result<Judgement, String> {
    let mut response = Response::default();
    response.begin();
    let head = format!("HTTP/1.1 {status} Some\r\n{headers}Content-Length: 0\r\n\r\n");
    response.take(head.as_bytes(), sign_in.expected(visit)).expect("an answer");
    sign_in.judge(visit, &response).map_err(|fault| fault.words)
}

/// Begins a visit of one request, answers it, and returns its credential or cookie.
fn visited(sign_in: &mut SignIn, visit: &Visit, headers: &str) -> Result<Option<String>, String> {
    sign_in.begin(visit).map_err(|fault| fault.words)?;
    let shown = shown(sign_in, visit);
    assert_eq!(200, sign_in.expected(visit).status);
    assert_eq!(Judgement::Done, judged(sign_in, visit, 200, headers)?);
    assert_eq!(shown.as_ref().is_some_and(|shown| !shown.starts_with("s=")), sign_in.signs_on(visit));
    Ok(shown)
}

fn words(made: Result<SignIn, Failure>) -> String {
    made.map(|_| ()).map_err(Failure::into_words).expect_err("a refusal")
}

/// Challenge of a server `WEB1` in the domain `TOLLBAR` (MS-NLMP, 2.2.1.2), in base64.
const CHALLENGE: &str = "TlRMTVNTUAACAAAADgAOADgAAAAVgomiAQIDBAUGBwgAAAAAAAAAACIAIgBGAAAABgEAAAAAAA9UAE8ATABMAEIAQQBSAAIADgBUAE8ATABMAEIAQQBSAAEACABXAEUAQgAxAAAAAAA=";
/// Beginning of messages of the first type, in base64; `AUTHENTICATE_MESSAGE` is that of the third.
const NEGOTIATE_MESSAGE: &str = "NTLM TlRMTVNTUAABAAAA";
const AUTHENTICATE_MESSAGE: &str = "NTLM TlRMTVNTUAADAAAA";

/// Exchanges the three messages of one connection, and returns the last one.
fn signed_on(sign_in: &mut SignIn, mut visit: Visit) -> String {
    sign_in.begin(&visit).expect("a message");
    assert!(shown(sign_in, &visit).is_some_and(|message| message.starts_with(NEGOTIATE_MESSAGE)));
    assert_eq!(401, sign_in.expected(&visit).status);
    assert!(!sign_in.signs_on(&visit));
    let challenge = format!("WWW-Authenticate: NTLM {CHALLENGE}\r\n");
    assert_eq!(Ok(Judgement::Continue), judged(sign_in, &visit, 401, &challenge));
    visit.leg = 1;
    let message = shown(sign_in, &visit).expect("a message");
    assert!(message.starts_with(AUTHENTICATE_MESSAGE), "{message}");
    assert_eq!(200, sign_in.expected(&visit).status);
    assert_eq!(Ok(Judgement::Done), judged(sign_in, &visit, 200, ""));
    assert!(sign_in.signs_on(&visit));
    message
}

/// A connection belongs to the user after three messages, and sends no further one, unless each visit is a
/// sign-on.
#[test]
fn ntlm_signs_a_connection_in() {
    if tried_alone("sign_in::tests::negotiated::ntlm_signs_a_connection_in", &[]).is_some() {
        return;
    }
    let files = Files::new("ntlm");
    let spec = json!({"scheme": "ntlm", "domain": "TOLLBAR", "service": "HTTP@web1.tollbar.test"});
    let made = |operation: &str| {
        let mut spec = spec.clone();
        spec["operation"] = json!(operation);
        SignIn::new(&visitors(&files, spec, false))
    };
    let mut request = match made("request") {
        Ok(made) => made,
        Err(Failure::Unsupported(words)) => return crate::lacking(&words),
        Err(failure) => panic!("{failure:?}"),
    };
    signed_on(&mut request, visit(1, SECOND));
    assert_eq!(Some("u1"), request.user(&visit(1, SECOND)));
    assert_eq!(Ok(None), visited(&mut request, &visit(1, FIRST), ""));
    assert_eq!(Some("u1"), request.user(&visit(1, FIRST)));
    signed_on(&mut request, visit(2, FIRST));
    assert_eq!(Some("u0"), request.user(&visit(2, FIRST)));
    assert!(request.library().is_some_and(|library| library.contains(char::is_numeric)));
    // The last request of an operation closes its connection, if each operation has its own.
    let closing = SignIn::new(&visitors(&files, spec.clone(), true));
    let mut closing = closing.unwrap_or_else(|failure| panic!("{failure:?}"));
    let mut opened = visit(1, FIRST);
    closing.begin(&opened).expect("a message");
    let closes = |sign_in: &mut SignIn, visit: &Visit| {
        String::from_utf8_lossy(sign_in.request(visit)).to_ascii_lowercase().contains("connection: close")
    };
    assert!(!closes(&mut closing, &opened));
    opened.leg = 1;
    assert!(closes(&mut closing, &opened));
    // The other user also has a connection of that number, and has not signed in.
    signed_on(&mut request, Visit { user: 1, ..visit(2, FIRST) });

    let mut sign_on = made("sign-on").expect("a sign-on");
    let first = signed_on(&mut sign_on, visit(1, FIRST));
    let second = signed_on(&mut sign_on, visit(1, FIRST));
    assert_ne!(first, second);
    // The answer to another challenge is the last one that was sent.
    sign_on.do_wrong("the answer to another challenge");
    assert_eq!(second, signed_on(&mut sign_on, visit(1, FIRST)));
    // An invalid challenge is not answered.
    let opened = visit(3, FIRST);
    sign_on.begin(&opened).expect("a message");
    let none = judged(&mut sign_on, &opened, 401, "WWW-Authenticate: NTLM\r\n");
    assert_eq!(Err("no token of NTLM in the answer".to_owned()), none);
}

/// A realm of two users and two services, and its KDC, until it is dropped.
struct Realm {
    config: PathBuf,
    kdc: Child,
}

const REALM: &str = "TOLLBAR.TEST";

impl Realm {
    /// Starts the KDC. Returns None if this machine has none.
    fn start(folder: &Path) -> Option<Realm> {
        let program = |name: &str| {
            let found = ["/usr/sbin", "/usr/bin", "/usr/local/sbin"].map(|place| Path::new(place).join(name));
            found.into_iter().find(|path| path.exists())
        };
        let (util, admin, kdc) = (program("kdb5_util")?, program("kadmin.local")?, program("krb5kdc")?);
        let port =
            UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").port();
        let (config, profile) = (folder.join("krb5.conf"), folder.join("kdc.conf"));
        let client = format!(
            "[libdefaults]\ndefault_realm = {REALM}\ndns_lookup_kdc = false\nrdns = false\ndns_canonicalize_hostname = false\n\
             [realms]\n{REALM} = {{\nkdc = 127.0.0.1:{port}\n}}\n[domain_realm]\n.tollbar.test = {REALM}\n"
        );
        std::fs::write(&config, client).expect("a file");
        let place = folder.display();
        let server = format!(
            "[kdcdefaults]\nkdc_listen = 127.0.0.1:{port}\nkdc_tcp_listen = \"\"\n[realms]\n{REALM} = {{\n\
             database_name = {place}/principal\nkey_stash_file = {place}/stash\nacl_file = {place}/acl\n}}\n\
             [logging]\nkdc = FILE:{place}/kdc.log\n"
        );
        std::fs::write(&profile, server).expect("a file");
        let command = |program: &Path| {
            let mut command = Command::new(program);
            command.env("KRB5_CONFIG", &config).env("KRB5_KDC_PROFILE", &profile);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command
        };
        let made = command(&util).args(["create", "-s", "-P", "master"]).status().expect("a database");
        assert!(made.success());
        for (principal, key) in [
            ("u0", "-pw first-secret"),
            ("u1", "-pw second-secret"),
            ("HTTP/web1.tollbar.test", "-randkey"),
            ("HTTP/web2.tollbar.test", "-randkey"),
        ] {
            let query = format!("addprinc {key} {principal}");
            assert!(command(&admin).args(["-q", &query]).status().expect("a principal").success());
        }
        let mut kdc = command(&kdc);
        kdc.arg("-n");
        // SAFETY: it only makes system calls.
        unsafe {
            kdc.pre_exec(|| {
                process::die_with_parent();
                Ok(())
            });
        }
        let mut kdc = kdc.spawn().expect("a KDC");
        // The KDC binds its port before it reports that.
        let log = || std::fs::read_to_string(folder.join("kdc.log")).unwrap_or_default();
        let is_ready = (0..500).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            log().contains("commencing operation") || kdc.try_wait().is_ok_and(|ended| ended.is_some())
        });
        assert!(is_ready && log().contains("commencing operation"), "the KDC is not ready: {}", log());
        Some(Realm { config, kdc })
    }

    /// Stops the KDC: only tickets that were fetched before are available.
    fn stop(&mut self) {
        let _ = self.kdc.kill();
        let _ = self.kdc.wait();
    }
}

impl Drop for Realm {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Beginning of a token of SPNEGO, in base64.
const TOKEN: &str = "Negotiate YI";

/// Tickets are fetched when needed, replaced by a connection or cookie, and kept for the next trial.
#[test]
fn kerberos_asks_the_directory_when_it_has_to() {
    if tried_alone("sign_in::tests::negotiated::kerberos_asks_the_directory_when_it_has_to", &[]).is_some() {
        return;
    }
    let files = Files::new("kerberos");
    let Some(mut realm) = Realm::start(&files.0) else { return crate::lacking("this machine has no KDC") };
    if let Err(failure) = gssapi::open(Mechanism::Spnego, Some(&realm.config)) {
        return crate::lacking(&failure.into_words());
    }
    let spec = json!({"scheme": "kerberos", "krb5_config": realm.config, "mechanism": "spnego",
        "service": "HTTP@web1.tollbar.test", "another_service": "HTTP@web2.tollbar.test"});
    let made = |more: Value, closes: bool| {
        let mut spec = spec.clone();
        spec.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        SignIn::new(&visitors(&files, spec, closes))
    };
    let with = |more: Value| match made(more, false) {
        Ok(made) => made,
        Err(failure) => panic!("{failure:?}"),
    };
    let is_token = |shown: &Option<String>| shown.as_ref().is_some_and(|shown| shown.starts_with(TOKEN));

    // Each request has its own token.
    let mut each = with(json!({}));
    assert!(each.prepares());
    let first = visited(&mut each, &visit(1, SECOND), "").expect("an answer");
    let second = visited(&mut each, &visit(1, SECOND), "").expect("an answer");
    assert!(is_token(&first) && is_token(&second) && first != second);
    assert_eq!(Some("u1"), each.user(&visit(1, SECOND)));
    assert!(each.library().is_some_and(|library| library.contains(char::is_numeric)));
    each.prepare(&[visit(1, FIRST)]).expect("tickets");

    // A token made ahead is used by whichever operation comes next.
    let mut ahead = with(json!({"ahead": true}));
    ahead.prepare(&[visit(1, SECOND), visit(1, FIRST)]).expect("tokens");
    for expected in ["u1", "u0", "u0"] {
        assert!(is_token(&visited(&mut ahead, &visit(1, FIRST), "").expect("an answer")));
        assert_eq!(Some(expected), ahead.user(&visit(1, FIRST)));
    }
    // Unused tokens are discarded.
    ahead.prepare(&[visit(1, SECOND)]).expect("a token");
    ahead.prepare(&[visit(1, FIRST)]).expect("a token");
    visited(&mut ahead, &visit(1, FIRST), "").expect("an answer");
    assert_eq!(Some("u0"), ahead.user(&visit(1, FIRST)));
    assert!(words(made(json!({"ahead": true, "persistence": "session"}), false)).contains("ahead"));
    assert!(words(made(json!({"ahead": true, "persistence": "connection"}), false)).contains("ahead"));
    assert!(words(made(json!({"ahead": true, "operation": "sign-on"}), false)).contains("ahead"));

    // A connection that has signed in, or the server's cookie, replaces a token.
    let mut connection = with(json!({"persistence": "connection"}));
    assert!(!connection.prepares());
    assert!(made(json!({"persistence": "connection"}), true).is_ok_and(|made| made.prepares()));
    for (number, has_token) in [(1, true), (1, false), (2, true), (2, false), (1, true)] {
        let shown = visited(&mut connection, &visit(number, FIRST), "").expect("an answer");
        assert_eq!(has_token, is_token(&shown), "{shown:?}");
        assert_eq!(has_token, shown.is_some());
    }
    let mut session = with(json!({"persistence": "session"}));
    assert!(!session.prepares());
    assert_eq!(
        Err("the server set no cookie".to_owned()),
        visited(&mut session, &Visit { user: 1, ..visit(1, FIRST) }, "")
    );
    let set = "Set-Cookie: s=abc; Path=/\r\n";
    assert!(is_token(&visited(&mut session, &visit(1, FIRST), set).expect("an answer")));
    assert!(!session.expected(&visit(2, SECOND)).keeps_head);
    assert!(session.expected(&Visit { user: 1, ..visit(2, SECOND) }).keeps_head);
    assert_eq!(Ok(Some("s=abc".to_owned())), visited(&mut session, &visit(2, SECOND), ""));

    // A sign-on begins with a request that is refused.
    let mut sign_on = with(json!({"operation": "sign-on", "persistence": "session"}));
    assert!(!sign_on.prepares());
    let signed_on = |sign_on: &mut SignIn| -> Result<(), String> {
        let mut visit = visit(1, FIRST);
        sign_on.begin(&visit).map_err(|fault| fault.words)?;
        assert_eq!((None, 401), (shown(sign_on, &visit), sign_on.expected(&visit).status));
        let none = judged(sign_on, &visit, 401, "WWW-Authenticate: Basic realm=\"a\"\r\n");
        assert_eq!(Err("no challenge for Negotiate".to_owned()), none);
        let challenge = "WWW-Authenticate: Negotiate\r\n";
        assert_eq!(Ok(Judgement::Continue), judged(sign_on, &visit, 401, challenge));
        visit.leg = 1;
        assert!(is_token(&shown(sign_on, &visit)));
        assert_eq!(Ok(Judgement::Done), judged(sign_on, &visit, 200, set));
        assert!(sign_on.signs_on(&visit));
        Ok(())
    };
    for _ in 0..2 {
        signed_on(&mut sign_on).expect("an answer");
    }

    // A proof waits for the server's own token.
    let proved = SignIn::proof(&visitors(&files, spec.clone(), false), "/a");
    let mut proof = proved.unwrap_or_else(|failure| panic!("{failure:?}"));
    let none = visited(&mut proof, &visit(1, FIRST), "").expect_err("no token");
    assert_eq!("no token of Negotiate in the answer", none);
    assert!(visited(&mut proof, &visit(1, FIRST), "WWW-Authenticate: Negotiate AQID\r\n").is_err());

    // Tickets are kept for the next trial, readable only by their owner.
    let tickets = files.0.join("tickets");
    let keeping = json!({"tickets": tickets});
    with(keeping.clone()).prepare(&[visit(1, FIRST)]).expect("tickets");
    let kept = |folder: &Path| {
        let found = std::fs::read_dir(folder).expect("a folder");
        found.map(|one| one.expect("a file").file_name().into_string().expect("a name")).collect::<Vec<_>>()
    };
    let name = "HTTP@web1.tollbar.test-u0";
    assert_eq!(vec![name.to_owned()], kept(&tickets));
    let mode = |path: &Path| path.metadata().expect("what is kept").permissions().mode() & 0o777;
    assert_eq!((0o700, 0o600), (mode(&tickets), mode(&tickets.join(name))));
    // A sign-on keeps none, because it must fetch them.
    let mut signing_on = with(json!({"tickets": files.0.join("others"), "operation": "sign-on"}));
    signed_on(&mut signing_on).expect("an answer");
    assert!(!files.0.join("others").exists());

    // From here on only fetched tickets are available.
    let mut another = with(json!({}));
    another.prepare(&[visit(1, FIRST)]).expect("tickets");
    realm.stop();
    visited(&mut each, &visit(1, FIRST), "").expect("what was prepared");
    let none = visited(&mut with(json!({})), &visit(1, FIRST), "").expect_err("no tickets");
    assert!(none.starts_with("u0 cannot sign in: "), "{none}");
    assert!(signed_on(&mut sign_on).is_err_and(|words| words.starts_with("u0 cannot sign in: ")));
    visited(&mut with(keeping.clone()), &visit(1, FIRST), "").expect("what was kept");
    let other = visited(&mut with(keeping.clone()), &visit(1, SECOND), "").expect_err("nothing kept");
    assert!(other.starts_with(&format!("{}/HTTP@web1.tollbar.test-u1: ", tickets.display())), "{other}");
    for (age_h, is_kept) in [(3, true), (5, false)] {
        let file = std::fs::File::options().append(true).open(tickets.join(name)).expect("a file");
        file.set_modified(SystemTime::now() - Duration::from_secs(age_h * 3600)).expect("a time");
        let used = visited(&mut with(keeping.clone()), &visit(1, FIRST), "");
        assert_eq!(is_kept, used.is_ok(), "{used:?}");
    }
    assert_eq!(vec![name.to_owned()], kept(&tickets));

    // The errors: no ticket was fetched for another service, and a replayed token is the same.
    another.do_wrong("a token for another service");
    assert!(visited(&mut another, &visit(1, FIRST), "").is_err());
    let shown = visited(&mut each, &visit(1, FIRST), "");
    each.do_wrong("a replayed token");
    assert_eq!(shown, visited(&mut each, &visit(1, FIRST), ""));
}
