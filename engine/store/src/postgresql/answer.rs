//! Answers of PostgreSQL: rows with their columns' types, or the server's error messages.

use std::io::Error;
use std::ops::Range;
use std::rc::Rc;

use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::{DataRowBody, ErrorResponseBody};
use postgres_types::{FromSql, Type, WrongType};

use crate::failure::Failure;

/// A statement that the server has parsed.
pub type Statement = Rc<Prepared>;

pub struct Prepared {
    pub name: String,
    pub parameters: Vec<Type>,
    pub columns: Vec<Type>,
}

/// A row of an answer.
pub struct Answer {
    statement: Statement,
    body: DataRowBody,
    ranges: Vec<Option<Range<usize>>>,
}

impl Answer {
    pub fn new(statement: &Statement, body: DataRowBody) -> Result<Answer, Failure> {
        let ranges = body.ranges().collect().map_err(garbled)?;
        Ok(Answer { statement: Rc::clone(statement), body, ranges })
    }

    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Returns the value of a column, or the reason if it has another type.
    pub fn get<'a, T: FromSql<'a>>(&'a self, at: usize) -> Result<T, String> {
        let (Some(kind), Some(range)) = (self.statement.columns.get(at), self.ranges.get(at)) else {
            return Err(format!("the answer has no column {at}"));
        };
        if !T::accepts(kind) {
            return Err(format!("column {at}: {}", WrongType::new::<T>(kind.clone())));
        }
        let bytes = range.clone().map(|range| &self.body.buffer()[range]);
        T::from_sql_nullable(kind, bytes).map_err(|error| format!("column {at}: {error}"))
    }
}

/// Makes a failure with the server's message; a missing feature is unsupported.
pub fn said(body: &ErrorResponseBody) -> Failure {
    // The codes are: feature not supported, undefined file, undefined object.
    const NOT_THERE: [&str; 3] = ["0A000", "58P01", "42704"];
    const UNDEFINED_FUNCTION: &str = "42883";
    let (mut state, mut message) = (String::new(), String::new());
    let mut fields = body.fields();
    while let Ok(Some(field)) = fields.next() {
        let value = || String::from_utf8_lossy(field.value_bytes()).into_owned();
        match field.type_() {
            b'C' => state = value(),
            b'M' => message = value(),
            _ => {}
        }
    }
    match &*state {
        UNDEFINED_FUNCTION => {
            Failure::Unsupported(format!("PostgreSQL: {message}; a newer PostgreSQL has it"))
        }
        state if NOT_THERE.contains(&state) => Failure::Unsupported(format!("PostgreSQL: {message}")),
        state => broken(format!("{message} (SQLSTATE {state})")),
    }
}

pub fn broken(words: impl std::fmt::Display) -> Failure {
    Failure::Failed(format!("PostgreSQL: {words}"))
}

/// Makes the failure of a message that cannot be written: a name with a zero byte, or more than two
/// gigabytes.
pub fn unsaid(error: Error) -> Failure {
    broken(format!("a message cannot be sent: {error}"))
}

pub fn garbled(error: Error) -> Failure {
    broken(format!("a message of it is not understood: {error}"))
}
