//! The runner contract: the fields of a task and of its answers.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// Version of the contract that this engine speaks.
pub const VERSION: u64 = 2;

#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Report the provider's version and the choices it offers.
    List,
    /// Perform the operation once, and try wrong inputs once.
    Verify,
    /// Perform the operation repeatedly, and report its CPU time.
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
    /// True if a chunk works for a while before its clock starts. False only to measure the effect of that
    /// lead-in.
    #[serde(default = "yes")]
    pub lead: bool,
    /// Number of threads that perform the task at once, each on its own primitive; None: the process's first
    /// thread does, and it is the only one. A team of one thread also runs apart from the first, so that the
    /// cost of having threads is on both sides of a comparison.
    #[serde(default)]
    pub threads: Option<usize>,
    /// Core of each thread; empty: the cores of the process.
    #[serde(default)]
    pub cores: Vec<usize>,
}

fn yes() -> bool {
    true
}

/// Settings of a task. Each read is recorded, because a setting that nothing reads would be ignored in
/// silence.
#[derive(Deserialize, Debug, Default, Clone)]
#[serde(transparent)]
pub struct Settings {
    values: BTreeMap<String, Value>,
    #[serde(skip)]
    read: RefCell<BTreeSet<String>>,
}

impl Settings {
    /// Returns all settings, without a record that they were read.
    pub fn values(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.values.iter()
    }

    /// Returns the setting of this name, and records that it was read.
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
    /// Returns a setting that is a word, or its default.
    pub fn word<'a>(&'a self, name: &str, default: &'a str) -> Result<&'a str, Failure> {
        match self.setting.get(name) {
            None => Ok(default),
            Some(Value::Word(word)) => Ok(word),
            Some(Value::Number(_)) => Err(Failure::Failed(format!("the setting `{name}` must be a word"))),
        }
    }

    /// Returns a setting that is a whole number, or its default.
    pub fn number(&self, name: &str, default: u64) -> Result<u64, Failure> {
        match self.setting.get(name) {
            None => Ok(default),
            Some(Value::Number(number)) => Ok(*number),
            Some(Value::Word(_)) => {
                Err(Failure::Failed(format!("the setting `{name}` must be a whole number")))
            }
        }
    }

    /// Returns the value for a setting that is one of these words; the first is the default.
    pub fn one_of<T: Copy>(&self, name: &str, rows: &[(&str, T)]) -> Result<T, Failure> {
        let word = self.word(name, rows[0].0)?;
        let row = rows.iter().find(|row| row.0 == word);
        row.map(|row| row.1).ok_or_else(|| {
            let known: Vec<&str> = rows.iter().map(|row| row.0).collect();
            Failure::Failed(format!("no such `{name}`: `{word}` ({})", known.join(", ")))
        })
    }

    /// Returns the operation, one of those that the family has.
    pub fn operation<T: Copy>(&self, rows: &[(&str, T)]) -> Result<T, Failure> {
        let row = rows.iter().find(|row| row.0 == self.op);
        row.map(|row| row.1).ok_or_else(|| {
            Failure::Failed(format!("the family {} has no operation `{}`", self.family, self.op))
        })
    }

    /// Returns the setting `bytes`: the size of an operation's data.
    pub fn bytes(&self, default: u64) -> Result<usize, Failure> {
        // Data are kept in memory, several times over for a round trip.
        const MOST: u64 = 1 << 30;
        match self.number("bytes", default)? {
            bytes if bytes <= MOST => Ok(bytes as usize),
            bytes => {
                Err(Failure::Failed(format!("{bytes} bytes are too many; this engine takes at most {MOST}")))
            }
        }
    }

    /// Returns the setting `bytes`, or None if the task does not set it.
    pub fn bytes_if_given(&self) -> Result<Option<u64>, Failure> {
        self.setting.values.contains_key("bytes").then(|| self.number("bytes", 0)).transpose()
    }

    /// Records as read a setting that belongs to this task but does not change its operation.
    pub fn belongs(&self, name: &str) {
        self.setting.get(name);
    }

    /// Fails if nothing that prepared the task read one of its settings.
    pub fn all_settings_read(&self) -> Result<(), Failure> {
        let read = self.setting.read.borrow();
        match self.setting.values.keys().find(|name| !read.contains(*name)) {
            None => Ok(()),
            Some(name) => Err(Failure::Failed(format!(
                "the setting `{name}` does not apply to `{}` of `{}` ({})",
                self.op, self.choice, self.family
            ))),
        }
    }

    /// Returns an input given as text, or None.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.inputs.get(name).map(String::as_str)
    }

    /// Returns an input given in hexadecimal as `NAME_hex`.
    pub fn hex(&self, name: &str) -> Result<Option<Vec<u8>>, Failure> {
        match self.inputs.get(&format!("{name}_hex")) {
            None => Ok(None),
            Some(text) => hex::decode(text).map(Some).map_err(|error| {
                Failure::Failed(format!("the input `{name}_hex` is not hexadecimal: {error}"))
            }),
        }
    }

    /// Returns an input given in hexadecimal, which this task needs.
    pub fn need_hex(&self, name: &str) -> Result<Vec<u8>, Failure> {
        self.hex(name)?.ok_or_else(|| Failure::Failed(format!("the input `{name}_hex` is missing")))
    }

    /// Returns the known answer's message (`of` or `of_hex`), if this task carries one.
    pub fn message(&self) -> Result<Option<Vec<u8>>, Failure> {
        Ok(self.hex("of")?.or_else(|| self.text("of").map(|text| text.as_bytes().to_vec())))
    }
}

/// Proof that an operation works, made before it is timed.
#[derive(Serialize, Default, Debug)]
pub struct Proof {
    /// The answer to the known-answer inputs of the task, in hexadecimal; None if it carried none.
    pub answer: Option<String>,
    /// Right inputs that were accepted.
    pub accepted: Vec<String>,
    /// Wrong inputs that were refused, or gave another answer.
    pub refused: Vec<String>,
    /// Wrong inputs that could not be tried, as `input: reason`.
    pub not_tried: Vec<String>,
}

impl Proof {
    /// Records that a right input was accepted, or fails.
    pub fn accept(&mut self, what: &str, accepted: bool) -> Result<(), Failure> {
        if !accepted {
            return Err(Failure::Failed(format!("not accepted: {what}")));
        }
        self.accepted.push(what.to_owned());
        Ok(())
    }

    /// Records that a wrong input was refused, or fails.
    pub fn refuse(&mut self, what: &str, refused: bool) -> Result<(), Failure> {
        if !refused {
            return Err(Failure::Failed(format!("not refused: {what}")));
        }
        self.refused.push(what.to_owned());
        Ok(())
    }

    /// Records that a wrong input could not be tried, and the reason.
    pub fn leave(&mut self, what: &str, why: &str) {
        self.not_tried.push(format!("{what}: {why}"));
    }
}

/// Identity of the code that answered: its version and how it was built.
#[derive(Serialize, Debug, Clone, Default)]
pub struct Receipt {
    /// Provider's own version line.
    pub provider: String,
    /// Short name with version, by which rows are labelled: `openssl 3.0.19`.
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cflags: Option<String>,
    /// CPU features that the library reports it will use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
    /// Other facts that distinguish this build.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub parts: BTreeMap<String, String>,
    pub engine: String,
}

/// A choice of a family that a provider offers.
#[derive(Serialize, Debug)]
pub struct Offer {
    pub family: &'static str,
    pub choice: &'static str,
}

/// Last line of a task: its outcome.
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

/// First line of a session: everything is prepared and warm.
#[derive(Serialize, Debug)]
pub struct Ready {
    #[serde(flatten)]
    pub receipt: Receipt,
    /// CPU time of one operation, measured while warming up; for a load the server's, if it is known.
    pub operation_ns: f64,
    /// Growth of resident memory during the first operation; absent if the kernel does not show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// True if the runner can slice its chunks.
    pub slices: bool,
}

/// Answer of a session to one `advance` line.
#[derive(Serialize, Debug, Default)]
pub struct Chunk<Observed = BTreeMap<String, u64>> {
    /// Operations with a right result.
    pub operations: u64,
    /// CPU time of the whole process, all its threads, user and system.
    pub cpu_ns: u64,
    pub wall_ns: u64,
    /// Observations other than the cost; a primitive has none.
    pub observed: Observed,
}
