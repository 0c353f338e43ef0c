//! What a client asks a server for, and what has to answer.

use serde::Deserialize;

/// A server's pages, as a client asks for them.
#[derive(Debug, Clone)]
pub struct Site {
    /// The Host header.
    pub host: String,
    pub page: Page,
    pub expect: Expectation,
    /// Whether a connection ends with the answer to its last request.
    pub closes: bool,
}

/// What is asked for, as it comes in.
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

/// What the answer has to be, as it comes in.
#[derive(Deserialize, Debug, Clone)]
#[serde(deny_unknown_fields, default)]
pub struct Expectation {
    pub status: u16,
    pub bytes: Option<u64>,
    /// The whole body, to the letter.
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
