//! What every family makes of a task.

use crate::contract::{Failure, Task};
use crate::operation::Operation;

/// An operation that is ready to be measured and proved, or why there is none.
pub type Prepared = Result<Box<dyn Operation>, Failure>;

/// An operation that the family does not have.
pub fn no_such_operation(task: &Task) -> Failure {
    Failure::Failed(format!("the family {} has no operation `{}`", task.family, task.op))
}
