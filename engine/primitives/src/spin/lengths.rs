//! Number of steps of each operation: constant, higher in a part of a period, or random.

use crate::contract::Task;
use crate::failure::Failure;
use crate::random::Sequence;

pub enum Lengths {
    Periodic(Period),
    Drawn(Drawn),
}

impl Lengths {
    /// Reads the task's settings. The seed sets the starting point in the period, or the draws.
    pub fn of(task: &Task) -> Result<Lengths, Failure> {
        let mut random = Sequence::of(task.seed, [0, 0]);
        match setting(task, "sizes", 0)? {
            0 => Period::of(task, &mut random).map(Lengths::Periodic),
            sizes => Drawn::of(task, sizes, random).map(Lengths::Drawn),
        }
    }

    /// Makes operations of equal length.
    pub fn even(steps: u64) -> Lengths {
        Lengths::Periodic(Period { steps, operations: 1, dear: 0, extra: (0, 0), at: 0 })
    }

    /// Returns the steps of the next operation.
    #[inline]
    pub fn next(&mut self) -> u64 {
        match self {
            Lengths::Periodic(period) => period.next(),
            Lengths::Drawn(drawn) => drawn.next(),
        }
    }

    /// Returns all lengths in their proportions: a whole period from its start, or every size once. Their
    /// mean is the cost of an operation.
    pub fn whole(&self) -> Vec<u64> {
        match self {
            Lengths::Periodic(period) => (0..period.operations).map(|at| period.steps_at(at)).collect(),
            Lengths::Drawn(drawn) => drawn.sizes.clone(),
        }
    }
}

/// Period whose last `dear` operations take more steps, rising linearly from the least `extra` to the most.
pub struct Period {
    steps: u64,
    operations: u64,
    dear: u64,
    extra: (u64, u64),
    /// Operations since the period began.
    at: u64,
}

/// Limit of a setting of this family: a product of four of them is far from an overflow.
const MOST: u64 = 1 << 20;

fn setting(task: &Task, name: &str, default: u64) -> Result<u64, Failure> {
    match task.number(name, default)? {
        number if number <= MOST => Ok(number),
        number => {
            Err(Failure::Failed(format!("the setting `{name}` is {number}; it must be at most {MOST}")))
        }
    }
}

impl Period {
    fn of(task: &Task, random: &mut Sequence) -> Result<Period, Failure> {
        let span = setting(task, "span", 1)?;
        let spans = setting(task, "period", 1)?;
        let dear = setting(task, "dear", 0)?;
        let extra = (setting(task, "extra-least", 0)?, setting(task, "extra-most", 0)?);
        if span == 0 || spans == 0 || dear > spans {
            return Err(Failure::Failed(format!(
                "`dear` is at most `period`, and `span` at least 1: {dear} of {spans}, {span}"
            )));
        }
        // With an odd difference the mean of a line's whole steps cannot be in the middle.
        if extra.0 > extra.1 || !(extra.1 - extra.0).is_multiple_of(2) {
            return Err(Failure::Failed(format!(
                "`extra-most` is above `extra-least` by an even number, or the same: {} and {}",
                extra.1, extra.0
            )));
        }
        let operations = span * spans;
        let parts = [setting(task, "first", 0)?, setting(task, "second", 0)?, setting(task, "third", 0)?];
        let together = setting(task, "together", 0)?;
        let beyond = if parts.contains(&0) { 0 } else { together };
        let steps = setting(task, "iterations", 0)? + parts.iter().sum::<u64>() + beyond;
        Ok(Period { steps, operations, dear: dear * span, extra, at: random.under(operations) })
    }

    #[inline]
    fn next(&mut self) -> u64 {
        let steps = self.steps_at(self.at);
        self.at += 1;
        if self.at == self.operations {
            self.at = 0;
        }
        steps
    }

    /// Returns the steps of the operation at this place in the period. In the expensive part the first and
    /// the last, the second and the last but one, and so on have the same sum. So their mean is exactly in
    /// the middle of `extra`.
    #[inline]
    fn steps_at(&self, at: u64) -> u64 {
        match at.checked_sub(self.operations - self.dear) {
            None => self.steps,
            Some(into) => {
                let levels = self.extra.1 - self.extra.0 + 1;
                self.steps + self.extra.0 + (2 * into + 1) * levels / (2 * self.dear)
            }
        }
    }
}

/// Sizes of a Pareto distribution of shape 2, each drawn with equal probability.
///
/// With this shape the mean is twice the least, and only the number of sizes bounds the variance.
pub struct Drawn {
    sizes: Vec<u64>,
    random: Sequence,
}

impl Drawn {
    /// Makes the sizes with the mean `iterations` and the minimum `least`. A size is the distribution's
    /// quantile in the middle of its share; the last one represents the whole tail, and is set by the mean.
    fn of(task: &Task, count: u64, random: Sequence) -> Result<Drawn, Failure> {
        let (mean, least) = (setting(task, "iterations", 0)?, setting(task, "least", 0)?);
        let mut sizes: Vec<u64> = (1..count).rev().map(|above| quantile(least, count, above)).collect();
        let others: u64 = sizes.iter().sum();
        let last = (mean * count).checked_sub(others).filter(|last| *last >= quantile(least, count, 0));
        sizes.push(last.ok_or_else(|| {
            Failure::Failed(format!("`least` of {least} is too large for a mean `iterations` of {mean}"))
        })?);
        Ok(Drawn { sizes, random })
    }

    #[inline]
    fn next(&mut self) -> u64 {
        self.sizes[self.random.under(self.sizes.len() as u64) as usize]
    }
}

/// Returns least / √(share that is larger), in whole numbers, which are the same on every machine.
fn quantile(least: u64, count: u64, above: u64) -> u64 {
    (least * least * 2 * count / (2 * above + 1)).isqrt()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn lengths(setting: Value, seed: u64) -> Result<Lengths, Failure> {
        let task = json!({"mode": "measure", "provider": {"kind": "spin"}, "setting": setting, "seed": seed});
        Lengths::of(&serde_json::from_value(task).expect("a task"))
    }

    fn taken(lengths: &mut Lengths, operations: usize) -> Vec<u64> {
        (0..operations).map(|_| lengths.next()).collect()
    }

    const STEP: [(&str, u64); 4] = [("span", 2), ("period", 3), ("dear", 1), ("iterations", 100)];

    fn stepped(least: u64, most: u64) -> Value {
        let mut setting = json!({"extra-least": least, "extra-most": most});
        STEP.iter().for_each(|(name, value)| setting[*name] = json!(value));
        setting
    }

    #[test]
    fn a_period_ends_with_what_is_dear() {
        let even = lengths(json!({"iterations": 100}), 0).expect("lengths");
        assert_eq!(vec![100], even.whole());
        let parts = |third| json!({"iterations": 2, "first": 1, "second": 2, "third": third, "together": 4});
        assert_eq!(vec![5], lengths(parts(0), 0).expect("lengths").whole());
        assert_eq!(vec![12], lengths(parts(3), 0).expect("lengths").whole());
        let dear = lengths(stepped(50, 50), 0).expect("lengths");
        assert_eq!(vec![100, 100, 100, 100, 150, 150], dear.whole());
        let line = json!({"iterations": 100, "span": 5, "dear": 1, "extra-least": 0, "extra-most": 20});
        assert_eq!(vec![102, 106, 110, 114, 118], lengths(line, 0).expect("lengths").whole());
    }

    /// Operations continue through the periods, from the start that the seed sets.
    #[test]
    fn a_seed_is_a_phase() {
        let whole = lengths(stepped(50, 50), 0).expect("lengths").whole();
        let starts: std::collections::BTreeSet<Vec<u64>> = (0..40)
            .map(|seed| {
                let taken = taken(&mut lengths(stepped(50, 50), seed).expect("lengths"), 18);
                assert_eq!(taken[..6], taken[6..12]);
                assert_eq!(3 * whole.iter().sum::<u64>(), taken.iter().sum::<u64>());
                taken
            })
            .collect();
        assert_eq!(whole.len(), starts.len());
    }

    #[test]
    fn drawn_sizes_have_their_mean_and_a_long_tail() {
        let setting = json!({"iterations": 4000, "least": 2000, "sizes": 256});
        let drawn = lengths(setting.clone(), 1).expect("lengths");
        let whole = drawn.whole();
        assert_eq!(4000 * 256, whole.iter().sum::<u64>());
        assert!(whole.is_sorted() && whole[0] >= 2000 && whole[255] > 15 * 4000, "{whole:?}");
        let [one, again, other] = [1, 1, 2].map(|seed| {
            let mut drawn = lengths(setting.clone(), seed).expect("lengths");
            taken(&mut drawn, 100)
        });
        assert_eq!(one, again);
        assert_ne!(one, other);
    }

    #[test]
    fn what_has_no_exact_mean_is_refused() {
        let rows = [
            (stepped(0, 7), "`extra-most`"),
            (stepped(8, 0), "`extra-most`"),
            (json!({"dear": 2}), "`dear`"),
            (json!({"span": 0}), "`span`"),
            (json!({"iterations": MOST + 1}), "`iterations`"),
            (json!({"iterations": 1000, "least": 1000, "sizes": 64}), "`least`"),
        ];
        for (setting, words) in rows {
            match lengths(setting.clone(), 0).err() {
                Some(Failure::Failed(reason)) if reason.contains(words) => (),
                outcome => panic!("{setting}: {outcome:?}"),
            }
        }
    }
}
