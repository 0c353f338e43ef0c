//! The runner contract: what a task asks and what a record answers.

use std::collections::BTreeMap;
use std::io::Read;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Reads the one task on standard input, or why there is none, and writes the one record. Returns the exit status.
pub fn answer<Task: DeserializeOwned, Record: Serialize>(
    perform: impl FnOnce(Result<Task, String>) -> Record,
) -> i32 {
    match serde_json::to_string(&perform(read_task())) {
        Ok(line) => {
            println!("{line}");
            0
        }
        Err(error) => {
            eprintln!("the record cannot be written: {error}");
            1
        }
    }
}

fn read_task<Task: DeserializeOwned>() -> Result<Task, String> {
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| format!("the task cannot be read: {error}"))?;
    serde_json::from_str(&text)
        .map_err(|error| format!("the task is not one this engine understands: {error}"))
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Say what this provider is and what it offers.
    List,
    /// Do it once, and try to be fooled once.
    Verify,
    /// Do it over and over, and account for the CPU time.
    Measure,
}

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Task {
    pub mode: Mode,
    pub provider: ProviderName,
    #[serde(default)]
    pub family: String,
    #[serde(default)]
    pub op: String,
    #[serde(default)]
    pub choice: String,
    #[serde(default)]
    pub setting: BTreeMap<String, Value>,
    #[serde(default)]
    pub inputs: BTreeMap<String, String>,
    #[serde(default)]
    pub warm_up_s: f64,
    #[serde(default)]
    pub duration_s: f64,
    #[serde(default)]
    pub seed: u64,
}

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct ProviderName {
    pub kind: String,
    #[serde(default)]
    pub path: Option<String>,
}

#[derive(Deserialize, Debug, Clone)]
#[serde(untagged)]
pub enum Value {
    Number(u64),
    Word(String),
}

impl Task {
    /// A setting that is a word, or its default.
    pub fn word<'a>(&'a self, name: &str, default: &'a str) -> Result<&'a str, Failure> {
        match self.setting.get(name) {
            None => Ok(default),
            Some(Value::Word(word)) => Ok(word),
            Some(Value::Number(_)) => Err(Failure::Failed(format!("the setting `{name}` is a word"))),
        }
    }

    /// A setting that is a whole number, or its default.
    pub fn number(&self, name: &str, default: u64) -> Result<u64, Failure> {
        match self.setting.get(name) {
            None => Ok(default),
            Some(Value::Number(number)) => Ok(*number),
            Some(Value::Word(_)) => Err(Failure::Failed(format!("the setting `{name}` is a whole number"))),
        }
    }

    /// The setting `bytes`: how much data an operation works on.
    pub fn bytes(&self, default: u64) -> Result<usize, Failure> {
        // Data are held in memory, several times over for a round trip.
        const MOST: u64 = 1 << 30;
        match self.number("bytes", default)? {
            bytes if bytes <= MOST => Ok(bytes as usize),
            bytes => {
                Err(Failure::Failed(format!("{bytes} bytes are more than the {MOST} this engine holds")))
            }
        }
    }

    /// An input given as text, or None.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.inputs.get(name).map(String::as_str)
    }

    /// An input given in hexadecimal as `NAME_hex`.
    pub fn hex(&self, name: &str) -> Result<Option<Vec<u8>>, Failure> {
        match self.inputs.get(&format!("{name}_hex")) {
            None => Ok(None),
            Some(text) => hex::decode(text).map(Some).map_err(|error| {
                Failure::Failed(format!("the input `{name}_hex` is not hexadecimal: {error}"))
            }),
        }
    }

    /// An input in hexadecimal that this task cannot do without.
    pub fn need_hex(&self, name: &str) -> Result<Vec<u8>, Failure> {
        self.hex(name)?.ok_or_else(|| Failure::Failed(format!("the input `{name}_hex` is missing")))
    }

    /// The known answer's message (`of` or `of_hex`), if this task carries one.
    pub fn message(&self) -> Result<Option<Vec<u8>>, Failure> {
        Ok(self.hex("of")?.or_else(|| self.text("of").map(|text| text.as_bytes().to_vec())))
    }
}

/// Why there is no number.
#[derive(Debug, Clone)]
pub enum Failure {
    /// The provider does not have it; in its own words where it has any.
    Unsupported(String),
    /// It should have worked.
    Failed(String),
}

/// What an operation shows for itself before it is timed.
#[derive(Default, Debug)]
pub struct Proof {
    /// The answer to the known-answer inputs of the task, in hexadecimal; None if it carried none.
    pub answer: Option<String>,
    /// Each right thing that was accepted.
    pub accepted: Vec<&'static str>,
    /// Each wrong thing that was refused, or gave another answer.
    pub refused: Vec<&'static str>,
}

impl Proof {
    /// Notes that a right thing was accepted, or fails.
    pub fn accept(&mut self, what: &'static str, accepted: bool) -> Result<(), Failure> {
        if !accepted {
            return Err(Failure::Failed(format!("not accepted: {what}")));
        }
        self.accepted.push(what);
        Ok(())
    }

    /// Notes that a wrong thing was refused, or fails.
    pub fn refuse(&mut self, what: &'static str, refused: bool) -> Result<(), Failure> {
        if !refused {
            return Err(Failure::Failed(format!("not refused: {what}")));
        }
        self.refused.push(what);
        Ok(())
    }
}

/// Says which code answered: its version and how it was built.
#[derive(Serialize, Debug, Clone, Default)]
pub struct Receipt {
    /// The provider's own version line.
    pub provider: String,
    /// Short name with version, by which rows are labelled: `openssl 3.0.19`.
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cflags: Option<String>,
    /// The CPU features the library says it will use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
    /// Anything else that makes this build what it is.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub parts: BTreeMap<String, String>,
    pub engine: String,
}

/// What a provider offers: a choice of a family.
#[derive(Serialize, Debug)]
pub struct Offer {
    pub family: &'static str,
    pub choice: &'static str,
}

#[derive(Serialize, Debug)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Record {
    Ok(Box<Done>),
    Unsupported {
        reason: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        receipt: Option<Receipt>,
    },
    Failed {
        reason: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        receipt: Option<Receipt>,
    },
}

#[derive(Serialize, Debug, Default)]
pub struct Done {
    pub receipt: Receipt,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offers: Option<Vec<Offer>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<ProofRecord>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
}

#[derive(Serialize, Debug)]
pub struct ProofRecord {
    pub answer: Option<String>,
    pub accepted: Vec<&'static str>,
    pub refused: Vec<&'static str>,
}

#[derive(Serialize, Debug)]
pub struct Measured {
    pub operations: u64,
    /// Bytes worked on, all operations together.
    pub bytes: u64,
    /// CPU time of the whole process, all its threads, user and system.
    pub cpu_ns: u64,
    pub wall_ns: u64,
    /// (operations, CPU nanoseconds) of each batch.
    pub batches: Vec<(u64, u64)>,
    /// Operations whose result was checked.
    pub checked: u64,
    /// How far peak memory rose during the first operation.
    pub memory_bytes: u64,
    pub warm_up_operations: u64,
}
