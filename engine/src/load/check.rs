//! Whether what a `load` task asks can be done at all, in words that name the field if not.

use crate::load_task::{Load, Request, Shape, Task};

/// What the engine itself says in every request, and no task may say a second time.
const OWN_HEADERS: [&str; 4] = ["host", "connection", "content-length", "transfer-encoding"];

impl Task {
    /// The load, once every number in it makes sense.
    pub fn load(&self) -> Result<&Load, String> {
        let load = self.load.as_ref().ok_or("the task has no `load`")?;
        load.check()?;
        Ok(load)
    }
}

impl Load {
    fn check(&self) -> Result<(), String> {
        seconds("load.think_s", self.think_s)?;
        seconds("load.request_limit_s", self.request_limit_s)?;
        let threads = format!("is {}: 1 to {MOST_THREADS}, and no more than users", self.threads);
        let too_many = format!("holds more than {MOST_OF_A_KIND}");
        let is_rate = self.rate_hz > 0.0 && self.rate_hz <= MOST_HZ;
        let impossible = [
            (self.request_limit_s < 0.001, "request_limit_s", "is under a millisecond"),
            (self.users == 0, "users", "is 0"),
            (!(1..=self.users.min(MOST_THREADS)).contains(&self.threads), "threads", &threads),
            (self.shape == Shape::Open && !is_rate, "rate_hz", "is not a rate that arrivals can come at"),
            (self.clients.iter().all(|kind| kind.share == 0), "clients", "has no share above 0"),
            (self.clients.len() > MOST_OF_A_KIND, "clients", &too_many),
            (self.request.paths.is_empty(), "request.paths", "is empty"),
            (self.request.paths.len() > MOST_OF_A_KIND, "request.paths", &too_many),
        ];
        if let Some((_, field, why)) = impossible.into_iter().find(|(is_so, ..)| *is_so) {
            return Err(format!("`load.{field}` {why}"));
        }
        self.request.check(&self.host)
    }
}

/// More loops than that are a mistake, not a load.
const MOST_THREADS: u32 = 256;

/// Users remember what they drew in two bytes.
const MOST_OF_A_KIND: usize = 1 << 16;

/// An arrival each 10 ns is past what any machine sends.
const MOST_HZ: f64 = 1e8;

impl Request {
    fn check(&self, host: &str) -> Result<(), String> {
        word("load.host", host)?;
        word("load.request.method", &self.method)?;
        for path in &self.paths {
            word("load.request.paths", path)?;
            if !path.starts_with('/') {
                return Err(format!("`load.request.paths` holds {path:?}, which does not begin with /"));
            }
        }
        for (name, value) in &self.headers {
            word("load.request.headers", name)?;
            if name.contains(':') || value.contains(['\r', '\n', '\0']) {
                return Err(format!("the header {name:?} cannot be sent as it is"));
            }
            if OWN_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
                return Err(format!("the header {name:?} is the engine's own to say"));
            }
        }
        Ok(())
    }
}

/// Refuses what would end a line or a word of the request early.
fn word(field: &str, text: &str) -> Result<(), String> {
    let is_valid = !text.is_empty() && text.bytes().all(|byte| byte > b' ' && byte != 0x7f);
    if is_valid { Ok(()) } else { Err(format!("`{field}` holds {text:?}, which cannot be sent as it is")) }
}

fn seconds(field: &str, value: f64) -> Result<(), String> {
    // A day: past it another unit was meant.
    let is_valid = (0.0..=86_400.0).contains(&value);
    if is_valid { Ok(()) } else { Err(format!("`{field}` is {value}, which is not a time in seconds")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(change: &str) -> Result<(), String> {
        let text = r#"{"mode":"measure","provider":{"kind":"x"},"setting":{"a":1},
            "load":{"address":"127.0.0.1:80","host":"localhost","clients":[{"share":1,"tls":null}],"users":2,
            "connection":"user","request":{"paths":["/"]},"threads":1,"EXTRA":0}}"#;
        let text = text.replace(r#""threads":1,"EXTRA":0"#, change);
        let task: Task = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        task.load().map(|_| ())
    }

    /// What cannot be done is refused with the field's name, before anything is sent.
    #[test]
    fn a_task_that_makes_no_sense_is_refused_by_name() {
        assert_eq!(Ok(()), read(r#""threads":1"#));
        for (change, expected) in [
            (r#""colour":"red""#, "unknown field `colour`"),
            (r#""threads":3"#, "`load.threads` is 3"),
            (r#""requests":5"#, "unknown field `requests`"),
            (r#""shape":"open""#, "`load.rate_hz`"),
            (r#""think_s":-1"#, "`load.think_s` is -1"),
            (r#""request_limit_s":0"#, "`load.request_limit_s`"),
            (r#""shape":"square""#, "unknown variant `square`"),
        ] {
            let refusal = read(change).expect_err(change);
            assert!(refusal.contains(expected), "{change}: {refusal}");
        }
    }

    /// A header that the engine says itself, or that would end its line early, never leaves.
    #[test]
    fn a_request_that_cannot_be_sent_is_refused() {
        let request = |path: &str, name: &str, value: &str| Request {
            method: "GET".to_owned(),
            paths: vec![path.to_owned()],
            headers: vec![(name.to_owned(), value.to_owned())],
            body: None,
            unique_query: false,
        };
        assert_eq!(Ok(()), request("/a?b", "X-Name", "a value").check("localhost"));
        for wrong in [
            request("a", "X", "y"),
            request("/a b", "X", "y"),
            request("/", "X", "y\r\nZ: 1"),
            request("/", "Host", "elsewhere"),
            request("/", "content-LENGTH", "3"),
        ] {
            assert!(wrong.check("localhost").is_err(), "{wrong:?}");
        }
    }
}
