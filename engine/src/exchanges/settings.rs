//! The fields of a task or a configuration that a scheme reads itself.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::contract::Failure;

/// The fields that a scheme reads itself.
pub type Settings = Map<String, Value>;

/// A scheme's own fields, none of them unknown to it; `place` is where they stand.
pub fn read<T: DeserializeOwned>(settings: &Settings, place: &str) -> Result<T, Failure> {
    let fields = Value::Object(settings.clone());
    serde_json::from_value(fields).map_err(|error| Failure::Failed(format!("`{place}`: {error}")))
}

/// Of a scheme without fields of its own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoSettings {}
