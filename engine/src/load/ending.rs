//! Why a load ends before it was told to.

use super::counts::Counts;
use super::phase::Work;
use super::record::Outcome;
use crate::contract::Failure;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    pub outcome: Outcome,
    pub reason: String,
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        match failure {
            Failure::Unsupported(reason) => Stop { outcome: Outcome::Unsupported, reason },
            Failure::Failed(reason) => Stop { outcome: Outcome::Failed, reason },
        }
    }
}

/// Whether a phase went as it should: no errors, all components there, no connection lost that was to be kept,
/// and as many requests as were asked for.
pub fn judge(
    work: Work,
    counts: &Counts,
    least: u64,
    there: Result<(), String>,
    kept: bool,
) -> Result<(), Stop> {
    let mut reasons = Vec::new();
    if counts.faults.total > 0 {
        let what = if work == Work::Open { "connections" } else { "requests" };
        reasons.push(counts.faults.reason(counts.ended, what));
    } else if kept && counts.reopened > 0 {
        reasons.push(format!("the server closed {} connections that were to be kept", counts.reopened));
    }
    reasons.extend(there.err());
    let place = if let Work::Timed(_) = work { String::new() } else { format!("while {}: ", work.name()) };
    if !reasons.is_empty() {
        return Err(Stop { outcome: Outcome::Failed, reason: format!("{place}{}", reasons.join("; ")) });
    }
    if counts.ended < least {
        let reason = format!("{place}only {} of {least} requests were done in time", counts.ended);
        return Err(Stop { outcome: Outcome::TimedOut, reason });
    }
    Ok(())
}

pub fn hung(work: Work) -> Stop {
    let reason = format!("the client itself did not come to an end while {}", work.name());
    Stop { outcome: Outcome::TimedOut, reason }
}
