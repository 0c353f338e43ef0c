//! Pages that a client requests, and the answers that it expects.

use serde::Deserialize;

/// Pages of a server, as a client requests them.
#[derive(Debug, Clone)]
pub struct Site {
    /// Value of the Host header.
    pub host: String,
    pub page: Page,
    pub expect: Expectation,
    /// True if a connection ends with the answer to its last request.
    pub closes: bool,
    /// True if no other machine can read its connections: they have TLS, or stay on this machine.
    pub is_secure: bool,
}

/// Request, as it is configured.
#[derive(Deserialize, Debug, Clone)]
#[serde(deny_unknown_fields)]
pub struct Page {
    #[serde(default = "get")]
    pub method: String,
    pub paths: Vec<String>,
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    pub body: Option<String>,
    #[serde(default)]
    pub unique_query: bool,
}

/// Expected answer, as it is configured.
#[derive(Deserialize, Debug, Clone)]
#[serde(deny_unknown_fields, default)]
pub struct Expectation {
    pub status: u16,
    pub bytes: Option<u64>,
    /// Whole body, compared exactly.
    pub body: Option<String>,
}

impl Default for Expectation {
    fn default() -> Self {
        Expectation { status: 200, bytes: None, body: None }
    }
}

fn get() -> String {
    "GET".to_owned()
}
