//! Text with drawn and captured values in it: `${name}`, and `$${` for a `${` that is sent as it is.

use super::source::Source;

/// Encoding of a value at its place in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Plain,
    Header,
    /// A target: all bytes but the unreserved ones are percent-encoded.
    Path,
    /// `application/x-www-form-urlencoded`.
    Form,
    /// Inside the quotes of a JSON string.
    Json,
}

/// Place of a value: a column of a source, or a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Column { source: usize, column: usize },
    Captured(usize),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Value(Place, String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<Part>);

/// Values of one user in one operation.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    pub sources: &'a [Source],
    pub rows: &'a [u64],
    pub captured: &'a [Option<String>],
}

impl Scope<'_> {
    fn value(self, place: Place) -> Option<String> {
        match place {
            Place::Column { source, column } => Some(self.sources[source].value(self.rows[source], column)),
            Place::Captured(index) => self.captured[index].clone(),
        }
    }

    /// Returns the values that no message may contain: those of files and the environment, and captures.
    pub fn secrets(self) -> Vec<String> {
        let drawn = self.sources.iter().zip(self.rows).filter(|(source, _)| source.is_secret);
        let drawn = drawn.flat_map(|(source, row)| source.row(*row));
        drawn.chain(self.captured.iter().flatten().cloned()).filter(|value| !value.is_empty()).collect()
    }
}

impl Template {
    /// Parses a text; `find` returns the place of a name.
    pub fn parse(text: &str, find: impl Fn(&str) -> Option<Place>) -> Result<Template, String> {
        let (mut parts, mut plain, mut rest) = (Vec::new(), String::new(), text);
        while let Some(at) = rest.find("${") {
            if rest[..at].ends_with('$') {
                plain.push_str(&rest[..at]);
                plain.push('{');
                rest = &rest[at + 2..];
                continue;
            }
            plain.push_str(&rest[..at]);
            let (name, after) = rest[at + 2..].split_once('}').ok_or("a `${` without `}`")?;
            let place = find(name).ok_or_else(|| format!("`${{{name}}}` names no value"))?;
            parts.push(Part::Text(std::mem::take(&mut plain)));
            parts.push(Part::Value(place, name.to_owned()));
            rest = after;
        }
        plain.push_str(rest);
        parts.push(Part::Text(plain));
        Ok(Template(parts))
    }

    /// Returns the text with its values.
    pub fn rendered(&self, scope: Scope, encoding: Encoding) -> Result<String, String> {
        let mut text = String::new();
        for part in &self.0 {
            match part {
                Part::Text(plain) => text.push_str(plain),
                Part::Value(place, name) => {
                    let value = scope.value(*place).ok_or_else(|| format!("`{name}` is not captured yet"))?;
                    if encoding == Encoding::Header && value.contains(['\r', '\n', '\0']) {
                        return Err(format!("the value of `{name}` cannot be sent in a header"));
                    }
                    text.push_str(&encoded(&value, encoding));
                }
            }
        }
        Ok(text)
    }
}

pub fn encoded(value: &str, encoding: Encoding) -> String {
    match encoding {
        Encoding::Plain | Encoding::Header => value.to_owned(),
        Encoding::Path => percent(value, "%20"),
        Encoding::Form => percent(value, "+"),
        Encoding::Json => {
            let quoted = serde_json::Value::from(value).to_string();
            quoted[1..quoted.len() - 1].to_owned()
        }
    }
}

fn percent(value: &str, space: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => text.push(byte as char),
            b' ' => text.push_str(space),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}
