//! The runner contract: what a task asks and what a record answers.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// The version of the contract that this engine speaks.
pub const VERSION: u64 = 2;

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

#[derive(Deserialize, Debug, Clone)]
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
    pub setting: Settings,
    #[serde(default)]
    pub inputs: BTreeMap<String, String>,
    #[serde(default)]
    pub seed: u64,
    /// Whether a chunk works for a while before its clock starts. Off only to measure what that is good for.
    #[serde(default = "yes")]
    pub lead: bool,
    /// How many threads perform it at once, each on its own; None: the process's first thread does, and there is no
    /// other. One that is named is a thread beside the first too, so that what threads cost a process is on both sides
    /// of a comparison.
    #[serde(default)]
    pub threads: Option<usize>,
    /// The core of each thread; empty: where the process is kept.
    #[serde(default)]
    pub cores: Vec<usize>,
}

fn yes() -> bool {
    true
}

/// The settings of a task. Each notes that it was read: one that nothing reads would be ignored in silence.
#[derive(Deserialize, Debug, Default, Clone)]
#[serde(transparent)]
pub struct Settings {
    values: BTreeMap<String, Value>,
    #[serde(skip)]
    read: RefCell<BTreeSet<String>>,
}

impl Settings {
    #[cfg(any(test, feature = "fuzz"))]
    pub fn values(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.values.iter()
    }

    /// The setting of this name, which is thereby read.
    fn get(&self, name: &str) -> Option<&Value> {
        let value = self.values.get(name)?;
        self.read.borrow_mut().insert(name.to_owned());
        Some(value)
    }
}

#[derive(Deserialize, Debug, Clone, PartialEq)]
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

    /// A setting that is one of these words; the first is its default.
    pub fn one_of<T: Copy>(&self, name: &str, rows: &[(&str, T)]) -> Result<T, Failure> {
        let word = self.word(name, rows[0].0)?;
        let row = rows.iter().find(|row| row.0 == word);
        row.map(|row| row.1).ok_or_else(|| {
            let known: Vec<&str> = rows.iter().map(|row| row.0).collect();
            Failure::Failed(format!("no such `{name}`: `{word}` ({})", known.join(", ")))
        })
    }

    /// The operation, among those that the family has.
    pub fn operation<T: Copy>(&self, rows: &[(&str, T)]) -> Result<T, Failure> {
        let row = rows.iter().find(|row| row.0 == self.op);
        row.map(|row| row.1).ok_or_else(|| {
            Failure::Failed(format!("the family {} has no operation `{}`", self.family, self.op))
        })
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

    /// The setting `bytes` as it was given, None where the task has none.
    pub fn bytes_if_given(&self) -> Result<Option<u64>, Failure> {
        self.setting.values.contains_key("bytes").then(|| self.number("bytes", 0)).transpose()
    }

    /// Notes that a setting belongs to this task although the operation does the same whatever its value.
    pub fn belongs(&self, name: &str) {
        self.setting.get(name);
    }

    /// Fails if some setting was read by nothing that made the task ready.
    pub fn all_settings_read(&self) -> Result<(), Failure> {
        let read = self.setting.read.borrow();
        match self.setting.values.keys().find(|name| !read.contains(*name)) {
            None => Ok(()),
            Some(name) => Err(Failure::Failed(format!(
                "the setting `{name}` means nothing to `{}` of `{}` ({})",
                self.op, self.choice, self.family
            ))),
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

/// What an operation shows for itself before it is timed.
#[derive(Serialize, Default, Debug)]
pub struct Proof {
    /// The answer to the known-answer inputs of the task, in hexadecimal; None if it carried none.
    pub answer: Option<String>,
    /// Each right thing that was accepted.
    pub accepted: Vec<String>,
    /// Each wrong thing that was refused, or gave another answer.
    pub refused: Vec<String>,
    /// Each wrong thing that could not be tried: "what: why".
    pub not_tried: Vec<String>,
}

impl Proof {
    /// Notes that a right thing was accepted, or fails.
    pub fn accept(&mut self, what: &str, accepted: bool) -> Result<(), Failure> {
        if !accepted {
            return Err(Failure::Failed(format!("not accepted: {what}")));
        }
        self.accepted.push(what.to_owned());
        Ok(())
    }

    /// Notes that a wrong thing was refused, or fails.
    pub fn refuse(&mut self, what: &str, refused: bool) -> Result<(), Failure> {
        if !refused {
            return Err(Failure::Failed(format!("not refused: {what}")));
        }
        self.refused.push(what.to_owned());
        Ok(())
    }

    /// Notes that a wrong thing could not be tried, and why.
    pub fn leave(&mut self, what: &str, why: &str) {
        self.not_tried.push(format!("{what}: {why}"));
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

/// The line that ends it.
#[derive(Serialize, Debug)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Record<Done> {
    Ok(Box<Done>),
    Unsupported(Reason),
    Failed(Reason),
    TimedOut(Reason),
}

#[derive(Serialize, Debug)]
pub struct Reason {
    reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt: Option<Receipt>,
}

impl<Done> Record<Done> {
    pub fn refusal(failure: Failure, receipt: Option<Receipt>) -> Record<Done> {
        let reason = |reason| Reason { reason, receipt };
        match failure {
            Failure::Unsupported(words) => Record::Unsupported(reason(words)),
            Failure::Failed(words) => Record::Failed(reason(words)),
            Failure::TimedOut(words) => Record::TimedOut(reason(words)),
        }
    }
}

#[derive(Serialize, Debug, Default)]
pub struct Done {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Receipt>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offers: Option<Vec<Offer>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

/// A session's first line: everything is made ready, and warm.
#[derive(Serialize, Debug)]
pub struct Ready {
    #[serde(flatten)]
    pub receipt: Receipt,
    /// CPU time of one operation, as found while warming up; behind a request the server's, where that is known.
    pub operation_ns: f64,
    /// How far resident memory rose during the first operation; absent where the kernel does not let that be seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// True if the runner can slice its chunks.
    pub slices: bool,
}

/// A session's answer to one `advance` line.
#[derive(Serialize, Debug, Default)]
pub struct Chunk<Observed = BTreeMap<String, u64>> {
    /// Those that came out right.
    pub operations: u64,
    /// CPU time of the whole process, all its threads, user and system.
    pub cpu_ns: u64,
    pub wall_ns: u64,
    /// What is seen beside the cost. An operation shows nothing.
    pub observed: Observed,
}
