//! Fields of the form and cookies, which client and server write and read.

/// Path of the form.
pub const PATH: &str = "/login";
pub const COOKIE: &str = "ticket";
/// Name of the form's token, in a cookie and in a field of the form.
pub const TOKEN: &str = "token";

/// Returns the value of this cookie among those of a request.
pub fn of_cookie<'a>(header: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let cookies = header.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
    cookies.filter_map(|cookie| cookie.strip_prefix(name.as_bytes())?.strip_prefix(b"=")).next()
}

/// Decodes a field of a form. Returns None if it is missing or malformed.
pub fn field(body: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    let mut fields = body.split(|byte| *byte == b'&');
    decode(fields.find_map(|field| field.strip_prefix(name)?.strip_prefix(b"="))?)
}

fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.iter();
    while let Some(byte) = rest.next() {
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || (*rest.next()? as char).to_digit(16);
                (digit()? << 4 | digit()?) as u8
            }
            other => *other,
        });
    }
    Some(decoded)
}

pub fn encode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).into() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_read_as_it_was_written() {
        for text in ["", "a", "a b", "a&b=c%", "wörd+", "\r\n"] {
            let body = format!("x=1&name={}&password=2", encode(text));
            assert_eq!(Some(text.as_bytes().to_vec()), field(body.as_bytes(), b"name"), "{text:?}");
        }
        assert_eq!(Some(b"a b".to_vec()), field(b"name=a+b", b"name"));
        for wrong in ["", "name", "names=a", "name=%", "name=%4", "name=%4x", "&&"] {
            assert_eq!(None, field(wrong.as_bytes(), b"name"), "{wrong}");
        }
    }

    #[test]
    fn a_ticket_is_found_among_cookies() {
        for (expected, header) in [
            (Some("x"), "ticket=x"),
            (Some("x"), "a=b; ticket=x; c=d"),
            (Some(""), "ticket="),
            (None, "tickets=x"),
            (None, "a=ticket=x"),
            (None, ""),
        ] {
            assert_eq!(expected.map(str::as_bytes), of_cookie(header.as_bytes(), COOKIE), "{header}");
        }
    }
}
