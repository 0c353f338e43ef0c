//! A runner, whatever it measures: a task on the first line, then `advance` lines, each answered by a chunk,
//! and a last line with the outcome.

use std::io::{BufRead, BufReader, Read, Stdin, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::calls;
use crate::contract::{Chunk, Ready, Record, VERSION};
use crate::failure::{Failure, on_one_line};

/// Length of a chunk: at least this time and at least this number of operations.
#[derive(Deserialize, Debug, Clone, Copy, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Advance {
    #[serde(default)]
    pub seconds: f64,
    #[serde(default)]
    pub operations: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Command {
    advance: Advance,
    /// Approximate length of a chunk's slices, if the runner can slice; 0: the chunk is whole.
    #[serde(default)]
    slice_seconds: f64,
}

/// Limit of one hour: a longer time was meant in another unit.
const MOST_SECONDS: f64 = 3600.0;

const LEAST_SLICE_SECONDS: f64 = 1e-5;

/// Limit of a line. Keys and messages of a task are some kilobytes; a longer line is refused without reading
/// its end.
const MOST_LINE_BYTES: u64 = 16 * 1024 * 1024;

/// Lines from the lab.
pub struct Lines<Input = BufReader<Stdin>> {
    input: Input,
    line: String,
}

impl Lines {
    pub fn of_stdin() -> Lines {
        Lines::of(BufReader::new(std::io::stdin()))
    }
}

impl<Input: BufRead> Lines<Input> {
    pub fn of(input: Input) -> Lines<Input> {
        Lines { input, line: String::new() }
    }

    /// Returns the task on the first line, or refuses another version of the contract. Other versions have
    /// other fields, so that the version is read first and the refusal names it.
    pub fn task<Task: DeserializeOwned>(&mut self) -> Result<Task, String> {
        if !self.read("the task")? {
            return Err("the task is missing: standard input is empty".to_owned());
        }
        let unknown = |error: serde_json::Error| format!("the task is not valid: {}", on_one_line(error));
        let mut task: Value = serde_json::from_str(&self.line).map_err(unknown)?;
        match task.as_object_mut().and_then(|fields| fields.remove("contract")) {
            Some(contract) if contract == VERSION => serde_json::from_value(task).map_err(unknown),
            Some(other) => {
                Err(format!("the task is of contract {other}; this engine supports contract {VERSION}"))
            }
            None => Err(format!("the task needs a `contract`; this engine supports contract {VERSION}")),
        }
    }

    /// Waits for the next line, and returns the length of the chunk and of a slice in seconds, or None at the
    /// end of the input.
    pub fn advance(&mut self) -> Result<Option<(Advance, f64)>, String> {
        if !self.read("the next line")? {
            return Ok(None);
        }
        let command: Command = serde_json::from_str(&self.line)
            .map_err(|error| format!("the line is not of the runner contract: {}", on_one_line(error)))?;
        let Command { advance: Advance { seconds, operations }, slice_seconds } = command;
        if !(0.0..=MOST_SECONDS).contains(&seconds) || (seconds == 0.0 && operations == 0) {
            return Err(format!("cannot advance {seconds} seconds and {operations} operations"));
        }
        // No operation is shorter, and an unlimited number of slices would fill the memory.
        if slice_seconds != 0.0 && !(LEAST_SLICE_SECONDS..=MOST_SECONDS).contains(&slice_seconds) {
            return Err(format!("cannot slice a chunk into parts of {slice_seconds} seconds"));
        }
        Ok(Some((command.advance, slice_seconds)))
    }

    /// Reads a line. Returns false at the end of the input.
    fn read(&mut self, what: &str) -> Result<bool, String> {
        self.line.clear();
        let read = self.input.by_ref().take(MOST_LINE_BYTES).read_line(&mut self.line);
        let count = read.map_err(|error| format!("{what} cannot be read: {error}"))?;
        if count as u64 == MOST_LINE_BYTES && !self.line.ends_with('\n') {
            return Err(format!("{what} is longer than {MOST_LINE_BYTES} bytes"));
        }
        Ok(count > 0)
    }
}

/// Writes one line. Returns false if the reader is gone.
pub fn say<Line: Serialize>(line: &Line) -> bool {
    let mut out = std::io::stdout().lock();
    let Ok(mut text) = serde_json::to_vec(line) else { return false };
    text.push(b'\n');
    out.write_all(&text).and_then(|()| out.flush()).is_ok()
}

/// Reads a task, performs it, answers with one last line, and returns the exit status.
pub fn run<Task: DeserializeOwned, Done: Serialize>(
    perform: impl FnOnce(&Task, &mut Lines) -> Record<Done>,
) -> i32 {
    crate::process::die_with_parent();
    let mut lines = Lines::of_stdin();
    let record = match lines.task() {
        Ok(task) => perform(&task, &mut lines),
        Err(reason) => Record::refusal(Failure::Failed(reason), None),
    };
    i32::from(!say(&record))
}

pub fn engine_receipt() -> String {
    let profile = if cfg!(debug_assertions) { "debug" } else { "optimised" };
    format!("tollbar-engine {} ({profile})", env!("CARGO_PKG_VERSION"))
}

/// Fails in a debug build, which measures nothing.
pub fn optimised(debug: bool) -> Result<(), Failure> {
    match debug {
        true => Err(Failure::Failed(
            "this engine is a debug build, which cannot measure; build it with --release".to_owned(),
        )),
        false => Ok(()),
    }
}

/// Runs a session to the end of its input: a `ready` line, and a chunk for each `advance` line.
pub fn session<Observed: Serialize>(
    lines: &mut Lines,
    ready: Ready,
    mut advance: impl FnMut(Advance, f64) -> Result<Chunk<Observed>, Failure>,
) -> Result<(), Failure> {
    tell(&Line::<Observed>::Ready(ready))?;
    while let Some((asked, slice_seconds)) = lines.advance().map_err(Failure::Failed)? {
        tell(&Line::Chunk(advance(asked, slice_seconds)?))?;
        calls::say();
    }
    Ok(())
}

/// A line of a session before its last one.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
enum Line<Observed> {
    Ready(Ready),
    #[serde(untagged)]
    Chunk(Chunk<Observed>),
}

fn tell(line: &impl Serialize) -> Result<(), Failure> {
    say(line)
        .then_some(())
        .ok_or_else(|| Failure::Failed("no program reads the output of this runner".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_an_end_is_refused() {
        let endless = BufReader::new(std::io::repeat(b' '));
        let mut lines = Lines::of(endless);
        assert_eq!(
            Err("the next line is longer than 16777216 bytes".to_owned()),
            lines.advance().map(|_| ())
        );
        let mut lines = Lines::of(b"{\"advance\": {\"operations\": 2}}\n".as_slice());
        assert_eq!(Ok(Some((Advance { seconds: 0.0, operations: 2 }, 0.0))), lines.advance());
        assert_eq!(Ok(None), lines.advance());
    }

    #[test]
    fn a_debug_build_measures_nothing() {
        let refusal = optimised(true).expect_err("a debug build");
        assert!(matches!(refusal, Failure::Failed(reason) if reason.contains("debug build")));
        assert!(optimised(false).is_ok());
    }
}
