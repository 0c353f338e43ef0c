//! Forms: which bodies are read, and which are not.

use serde_json::json;

use super::Served;

/// A body is read only at the path of a sign-in's form, and only if it is sent as forms are.
#[test]
fn a_body_is_read_at_the_form_alone() {
    let path = std::env::temp_dir().join(format!("tollbar-{}-form", std::process::id()));
    std::fs::write(&path, "u1:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n").expect("a file");
    let config = json!({"listen": "127.0.0.1:0", "sign_in": {"scheme": "form", "store": {"file": path}}});
    let served = Served::start(&config, None);
    std::fs::remove_file(&path).expect("the file");
    let mut client = served.client();
    client.send("GET /login HTTP/1.1\r\nHost: x\r\n\r\n");
    let given = client.reply();
    let cookie =
        given.header("Set-Cookie").and_then(|cookie| cookie.split(';').next()).expect("a cookie").to_owned();
    let form =
        format!("Content-Type: application/x-www-form-urlencoded; charset=utf-8\r\nCookie: {cookie}\r\n");
    let body = format!("name=u1&{cookie}&password=passwor");
    let length = format!("Content-Length: {}\r\n", body.len() + 1);
    for (status, method, target, headers) in [
        (302, "POST", "/login", format!("{form}{length}")),
        (302, "POST", "/login?x=y", format!("{form}{length}")),
        (405, "POST", "/login", length.clone()),
        (405, "POST", "/login", format!("Content-Type: text/plain\r\n{length}")),
        (405, "POST", "/bytes/1", format!("{form}{length}")),
        (405, "PUT", "/login", format!("{form}{length}")),
        (400, "GET", "/login", format!("{form}{length}")),
        (405, "POST", "/login", format!("{form}{length}{length}")),
        (405, "POST", "/login", format!("{form}{length}Transfer-Encoding: chunked\r\n")),
        (405, "POST", "/login", format!("{form}Content-Length: 8193\r\n")),
    ] {
        let mut client = served.client();
        client.send(format!("{method} {target} HTTP/1.1\r\nHost: x\r\n{headers}\r\n{body}"));
        if status == 302 {
            // The body comes in two pieces, with another request right after it.
            client.send("dGET /login HTTP/1.1\r\nHost: x\r\n\r\n");
        }
        let reply = client.reply();
        assert_eq!(status, reply.status, "{method} {target} {headers}");
        if status == 302 {
            assert_eq!(200, client.reply().status);
        } else {
            assert_eq!(Some("close"), reply.header("Connection"), "{method} {target} {headers}");
        }
    }
}
