//! Values captured from an answer: a header, a cookie, a place in a JSON document, a field of an HTML form, or a
//! regular expression, whose engine takes time in proportion to the body.

use regex::{Regex, RegexBuilder};
use serde::Deserialize;

use super::jar::Jar;
use crate::http::response::Response;

/// Limit of a compiled expression.
const REGEX_BYTES: usize = 1 << 20;
/// Limit of a captured value: longer than any token or cookie.
const LONGEST_VALUE: usize = 16 << 10;

/// A capture, as a scenario writes it.
#[derive(Deserialize, Debug, Clone)]
#[serde(rename_all = "kebab-case")]
pub enum CaptureSpec {
    Header(String),
    Cookie(String),
    /// JSON pointer (RFC 6901).
    Json(String),
    /// Value of an `<input>` of this name.
    Field(String),
    /// First group of a regular expression.
    Regex(String),
}

#[derive(Debug, Clone)]
pub enum Capture {
    Header(String),
    Cookie(String),
    Json(String),
    Field { name: String, input: Regex, value: Regex },
    Regex(Regex),
}

impl Capture {
    pub fn new(spec: &CaptureSpec) -> Result<Capture, String> {
        Ok(match spec {
            CaptureSpec::Header(name) => Capture::Header(name.clone()),
            CaptureSpec::Cookie(name) => Capture::Cookie(name.clone()),
            CaptureSpec::Json(pointer) => Capture::Json(pointer.clone()),
            CaptureSpec::Field(name) => {
                let own = regex::escape(name);
                let input =
                    format!(r#"(?is)<input\b[^>]*\bname\s*=\s*(?:"{own}"|'{own}'|{own}(?:[\s/>]))[^>]*>?"#);
                let value = r#"(?is)\bvalue\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))"#;
                Capture::Field { name: name.clone(), input: compiled(&input)?, value: compiled(value)? }
            }
            CaptureSpec::Regex(text) => {
                let regex = compiled(text)?;
                if regex.captures_len() < 2 {
                    return Err(format!("the expression `{text}` has no group in parentheses"));
                }
                Capture::Regex(regex)
            }
        })
    }

    pub fn reads_body(&self) -> bool {
        !matches!(self, Capture::Header(_) | Capture::Cookie(_))
    }

    /// Returns the value in an answer with this body, after its cookies are in the jar.
    pub fn captured(&self, response: &Response, body: &str, jar: &Jar) -> Result<String, String> {
        let value = match self {
            Capture::Header(name) => response.headers(name).next().map(str::to_owned),
            Capture::Cookie(name) => jar.get(name).map(str::to_owned),
            Capture::Json(pointer) => in_json(body, pointer),
            Capture::Field { input, value, .. } => input.find(body).and_then(|found| {
                let groups = value.captures(found.as_str())?;
                groups.iter().skip(1).flatten().next().map(|found| unescaped(found.as_str()))
            }),
            Capture::Regex(regex) => {
                regex.captures(body).and_then(|groups| groups.get(1)).map(|found| found.as_str().to_owned())
            }
        };
        let value = value.ok_or_else(|| format!("{} is not in the answer", self.title()))?;
        if value.len() > LONGEST_VALUE {
            return Err(format!("{} is longer than {LONGEST_VALUE} bytes", self.title()));
        }
        Ok(value)
    }

    fn title(&self) -> String {
        match self {
            Capture::Header(name) => format!("the header {name}"),
            Capture::Cookie(name) => format!("the cookie {name}"),
            Capture::Json(pointer) => format!("the JSON value at {pointer}"),
            Capture::Field { name, .. } => format!("the form's field {name}"),
            Capture::Regex(regex) => format!("a match of `{regex}`"),
        }
    }
}

fn compiled(text: &str) -> Result<Regex, String> {
    let made = RegexBuilder::new(text).size_limit(REGEX_BYTES).dfa_size_limit(REGEX_BYTES).build();
    made.map_err(|error| format!("the expression cannot be used: {}", crate::failure::on_one_line(error)))
}

fn in_json(body: &str, pointer: &str) -> Option<String> {
    let document: serde_json::Value = serde_json::from_str(body).ok()?;
    match document.pointer(pointer)? {
        serde_json::Value::String(text) => Some(text.clone()),
        serde_json::Value::Null => None,
        other => Some(other.to_string()),
    }
}

/// Returns an attribute's value without the character references that servers write in one.
fn unescaped(value: &str) -> String {
    let named =
        [("&quot;", "\""), ("&#34;", "\""), ("&#39;", "'"), ("&#x27;", "'"), ("&lt;", "<"), ("&gt;", ">")];
    let text = named.iter().fold(value.to_owned(), |text, (name, letter)| text.replace(name, letter));
    text.replace("&#43;", "+").replace("&#61;", "=").replace("&amp;", "&")
}
