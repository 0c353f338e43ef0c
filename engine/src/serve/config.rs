//! What a server is asked to be.

use std::net::SocketAddr;

use serde::Deserialize;

use crate::contract::{Failure, Mode, Task};
use crate::tls::ServerSpec;

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// `127.0.0.1:40123`, `[::1]:40123`; port 0 takes a free one.
    pub listen: SocketAddr,
    #[serde(default)]
    pub tls: Option<ServerSpec>,
    /// What is made ready to be performed, each under a path of its own.
    #[serde(default)]
    pub operations: Vec<Task>,
}

impl Config {
    pub fn read(text: &str) -> Result<Config, Failure> {
        let config: Config = serde_json::from_str(text).map_err(|error| {
            Failure::Failed(format!("the configuration is not one this engine understands: {error}"))
        })?;
        match config.operations.iter().find(|task| task.mode != Mode::Measure) {
            Some(task) => Err(Failure::Failed(format!(
                "a server measures its operations; {} {} asks for something else",
                task.family, task.choice
            ))),
            None => Ok(config),
        }
    }
}
