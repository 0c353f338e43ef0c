//! Cookies of one user, as a browser keeps them (RFC 6265): each is sent with the paths that it is for, and one with
//! `Secure` over a connection that others cannot read. `Domain` is not read, because all requests are for one server.

const MOST_COOKIES: usize = 100;
/// Limit of a cookie (RFC 6265, 6.1).
const LONGEST_COOKIE: usize = 4096;

#[derive(Default, Clone)]
pub struct Jar(Vec<Cookie>);

#[derive(Clone)]
struct Cookie {
    name: String,
    value: String,
    path: String,
}

impl Jar {
    /// Takes the value of a `Set-Cookie` header in the answer to a request for `target`. A cookie whose time is over
    /// is removed. `is_secure`: others cannot read the connection.
    pub fn take(&mut self, header: &str, target: &str, is_secure: bool) {
        let mut parts = header.split(';');
        let Some((name, value)) = parts.next().and_then(|pair| pair.split_once('=')) else { return };
        let (name, value) = (name.trim(), value.trim());
        let (mut is_over, mut path) = (false, folder_of(target));
        for part in parts {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
            match key.as_str() {
                "secure" if !is_secure => return,
                "max-age" => is_over |= value.parse::<i64>().is_ok_and(|age| age <= 0),
                // Servers that end a cookie write the first second of the epoch.
                "expires" => is_over |= value.contains("1970"),
                "path" if value.starts_with('/') => path = value,
                _ => {}
            }
        }
        self.0.retain(|known| known.name != name || known.path != path);
        let fits = self.0.len() < MOST_COOKIES && name.len() + value.len() <= LONGEST_COOKIE;
        if !is_over && fits && !name.is_empty() {
            self.0.push(Cookie { name: name.to_owned(), value: value.to_owned(), path: path.to_owned() });
        }
    }

    /// Returns the value that was set last.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|known| known.name == name).map(|known| known.value.as_str())
    }

    /// Returns the value of the `Cookie` header for a target, if there are any: longer paths are first.
    pub fn header(&self, target: &str) -> Option<String> {
        let mut sent: Vec<&Cookie> = self.0.iter().filter(|known| is_in(&known.path, target)).collect();
        sent.sort_by_key(|known| std::cmp::Reverse(known.path.len()));
        let pairs: Vec<String> = sent.iter().map(|known| format!("{}={}", known.name, known.value)).collect();
        (!pairs.is_empty()).then(|| pairs.join("; "))
    }

    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|known| known.value.as_str())
    }
}

/// Returns the path of a target, without its query.
fn path_of(target: &str) -> &str {
    target.split('?').next().unwrap_or_default()
}

/// Returns the path of a cookie that has none.
fn folder_of(target: &str) -> &str {
    match path_of(target).rfind('/') {
        None | Some(0) => "/",
        Some(end) => &target[..end],
    }
}

/// Returns true if a target is this path or is below it.
fn is_in(path: &str, target: &str) -> bool {
    path_of(target)
        .strip_prefix(path)
        .is_some_and(|rest| rest.is_empty() || path.ends_with('/') || rest.starts_with('/'))
}
