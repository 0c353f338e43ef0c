//! Operations of a server, each proved before the first connection is accepted.

use crate::contract::{ProviderName, Receipt, Task};
use crate::failure::Failure;
use crate::op;
use crate::provider::{Primitive, Provider};
use crate::runner::engine_receipt;
use crate::tls::ServerSpec;

#[derive(Default)]
pub struct Operations {
    prepared: Vec<Served>,
    providers: Vec<Opened>,
}

pub struct Served {
    family: String,
    choice: String,
    op: String,
    /// Setting `bytes`, if the task has one.
    bytes: Option<u64>,
    operation: Box<dyn Primitive>,
    /// Body of each answer, of one length, whatever happened before.
    done: String,
}

/// Operation that a path requests.
#[derive(Debug, PartialEq, Clone, Copy)]
pub struct Query<'a> {
    pub family: &'a str,
    pub choice: &'a str,
    /// Number as it was written: an invalid one matches no operation.
    pub bytes: Option<&'a str>,
    pub op: Option<&'a str>,
}

/// Reason why no operation was performed.
#[derive(Debug, PartialEq)]
pub enum Refusal {
    NotPrepared,
    /// Several operations fit, so that the measured one would be unknown.
    Ambiguous,
    Failed(String),
}

struct Opened {
    name: ProviderName,
    cpu: String,
    provider: Box<dyn Provider>,
}

impl Operations {
    pub fn prepare(tasks: &[Task]) -> Result<Operations, Failure> {
        let mut operations = Operations::default();
        for task in tasks {
            operations.add(task).map_err(|failure| failure.about(&format!("{}: ", path_of(task))))?;
        }
        Ok(operations)
    }

    fn add(&mut self, task: &Task) -> Result<(), Failure> {
        let mut operation = op::prepare(self.provider(task)?, task)?;
        operation.perform()?;
        operation.prove()?;
        self.push(task, operation)
    }

    /// Adds an operation under its path.
    pub fn push(&mut self, task: &Task, operation: Box<dyn Primitive>) -> Result<(), Failure> {
        let prepared = Served {
            family: task.family.clone(),
            choice: task.choice.clone(),
            op: task.op.clone(),
            bytes: task.bytes_if_given()?,
            done: format!("done {}\n", operation.bytes()),
            operation,
        };
        let path = prepared.path();
        if self.paths().any(|other| other == path) {
            return Err(Failure::Failed("two operations have this path; each needs its own".to_owned()));
        }
        self.prepared.push(prepared);
        Ok(())
    }

    /// Returns the provider of a task, opened once for all tasks that name it.
    fn provider(&mut self, task: &Task) -> Result<&dyn Provider, Failure> {
        let cpu = task.word("cpu", "native")?;
        let same = |opened: &Opened| opened.name == task.provider && opened.cpu == cpu;
        let index = match self.providers.iter().position(same) {
            Some(index) => index,
            None => {
                if task.provider.kind == "libcrypto"
                    && let Some(other) = self.libcrypto()
                {
                    return Err(Failure::Failed(format!(
                        "a process holds one libcrypto: {} ({}) and {} ({cpu}) are two",
                        path_or_system(other.name.path.as_deref()),
                        other.cpu,
                        path_or_system(task.provider.path.as_deref()),
                    )));
                }
                let provider = op::open(op::KINDS, &task.provider, cpu)?;
                self.providers.push(Opened { name: task.provider.clone(), cpu: cpu.to_owned(), provider });
                self.providers.len() - 1
            }
        };
        Ok(self.providers[index].provider.as_ref())
    }

    fn libcrypto(&self) -> Option<&Opened> {
        self.providers.iter().find(|opened| opened.name.kind == "libcrypto")
    }

    /// Fails if TLS runs on a libssl whose libcrypto is not that of the operations.
    pub fn refuse_another_libcrypto(&self, spec: &ServerSpec, library: &str) -> Result<(), Failure> {
        match self.libcrypto() {
            Some(opened) if !library.starts_with("rustls") && opened.name.path != spec.libcrypto => {
                Err(Failure::Failed(format!(
                    "a process holds one libcrypto: {} for operations and {} for TLS are two",
                    path_or_system(opened.name.path.as_deref()),
                    path_or_system(spec.libcrypto.as_deref()),
                )))
            }
            _ => Ok(()),
        }
    }

    /// Returns the receipt of the providers; several are joined, in the order in which they were named.
    pub fn receipt(&self) -> Option<Receipt> {
        let mut receipts = self.providers.iter().map(|opened| opened.provider.receipt());
        let mut all = receipts.next()?;
        for receipt in receipts {
            all.provider = format!("{}, {}", all.provider, receipt.provider);
            all.name = format!("{}, {}", all.name, receipt.name);
            // Only a libcrypto has these, and there is at most one.
            all.path = all.path.or(receipt.path);
            all.cflags = all.cflags.or(receipt.cflags);
            all.cpu = all.cpu.or(receipt.cpu);
            all.parts.extend(receipt.parts);
        }
        Some(Receipt { engine: engine_receipt(), ..all })
    }

    /// Performs the operation of a path once, and returns the answer's body.
    pub fn perform(&mut self, asked: Query<'_>) -> Result<&str, Refusal> {
        let mut fitting = (0..self.prepared.len()).filter(|index| self.prepared[*index].fits(asked));
        let index = fitting.next().ok_or(Refusal::NotPrepared)?;
        if fitting.next().is_some() {
            return Err(Refusal::Ambiguous);
        }
        let prepared = &mut self.prepared[index];
        match prepared.operation.perform() {
            Ok(()) => Ok(&prepared.done),
            Err(failure) => Err(Refusal::Failed(failure.into_words())),
        }
    }

    /// Returns the paths of operations.
    pub fn paths(&self) -> impl Iterator<Item = String> {
        self.prepared.iter().map(Served::path)
    }
}

impl Served {
    fn fits(&self, asked: Query<'_>) -> bool {
        self.family == asked.family
            && self.choice == asked.choice
            && asked.op.is_none_or(|op| op == self.op)
            && self.bytes.is_none_or(|bytes| asked.bytes.is_some_and(|asked| asked.parse() == Ok(bytes)))
    }

    fn path(&self) -> String {
        path(&self.family, &self.choice, &self.op, self.bytes)
    }
}

fn path(family: &str, choice: &str, op: &str, bytes: Option<u64>) -> String {
    let bytes = bytes.map_or(String::new(), |bytes| format!("bytes={bytes}&"));
    format!("/op/{family}/{choice}?{bytes}op={op}")
}

fn path_of(task: &Task) -> String {
    path(&task.family, &task.choice, &task.op, task.bytes_if_given().unwrap_or_default())
}

fn path_or_system(path: Option<&str>) -> &str {
    path.unwrap_or("the system's")
}
