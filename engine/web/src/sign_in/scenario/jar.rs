//! Cookies of one user of one server. They are sent with every path: `Path`, `Domain` and `Secure` are not read.

const MOST_COOKIES: usize = 100;
/// Limit of a cookie (RFC 6265, 6.1).
const LONGEST_COOKIE: usize = 4096;

#[derive(Default, Clone)]
pub struct Jar(Vec<(String, String)>);

impl Jar {
    /// Takes the value of a `Set-Cookie` header. A cookie whose time is over is removed.
    pub fn take(&mut self, header: &str) {
        let mut parts = header.split(';');
        let Some((name, value)) = parts.next().and_then(|pair| pair.split_once('=')) else { return };
        let (name, value) = (name.trim(), value.trim());
        let is_over = parts.filter_map(|part| part.split_once('=')).any(|(key, value)| {
            let (key, value) = (key.trim(), value.trim());
            (key.eq_ignore_ascii_case("max-age") && value.parse::<i64>().is_ok_and(|age| age <= 0))
                // Servers that end a cookie write the first second of the epoch.
                || (key.eq_ignore_ascii_case("expires") && value.contains("1970"))
        });
        self.0.retain(|(known, _)| known != name);
        let fits = self.0.len() < MOST_COOKIES && name.len() + value.len() <= LONGEST_COOKIE;
        if !is_over && fits && !name.is_empty() {
            self.0.push((name.to_owned(), value.to_owned()));
        }
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the value of the `Cookie` header, if there are any.
    pub fn header(&self) -> Option<String> {
        let pairs: Vec<String> = self.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        (!pairs.is_empty()).then(|| pairs.join("; "))
    }

    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(_, value)| value.as_str())
    }
}
