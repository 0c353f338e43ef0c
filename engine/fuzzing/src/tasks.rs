//! Input from the lab: lines of the runner contract, tasks, configurations. Password hashes are here as well.

use std::fmt::Debug;

use argon2::Params;
use argon2::password_hash::phc::PasswordHash;
use serde::de::DeserializeOwned;

use super::give::Give;
use crate::contract::{Settings, Task, Value};
use crate::failure::Failure;
use crate::op;
use crate::runner::Lines;
use crate::serve::Config;
use crate::sign_in::{SignIn, password};
use crate::{load, store};

/// Returns the value, or checks that a reason is one line and not empty.
fn one_line<T>(result: Result<T, String>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(words) => {
            assert!(!words.is_empty() && !words.contains('\n'), "{words:?}");
            None
        }
    }
}

fn understood<T>(result: Result<T, Failure>) -> Option<T> {
    one_line(result.map_err(Failure::into_words))
}

/// Reads the task on the first line, and the lines after it.
fn read<T: DeserializeOwned + Debug>(bytes: &[u8]) -> Option<T> {
    let mut lines = Lines::of(bytes);
    let task = one_line(lines.task())?;
    while let Some(Some((advance, _))) = one_line(lines.advance()) {
        assert!(advance.seconds > 0.0 || advance.operations > 0);
    }
    Some(task)
}

pub fn lines() -> Give {
    Box::new(|bytes| {
        let mut lines = Lines::of(bytes);
        while let Some(Some((advance, _))) = one_line(lines.advance()) {
            assert!((0.0..=3600.0).contains(&advance.seconds));
        }
        let _ = Lines::of(bytes).task::<serde_json::Value>();
    })
}

/// Prepares and performs a valid task, if its numbers are so small that this takes no time.
pub fn operations() -> Give {
    const FAMILIES: [&str; 6] = ["digest", "mac", "cipher", "password-hash", "spin", "rsa-api"];
    Box::new(|bytes| {
        let Some(task) = read::<Task>(bytes) else { return };
        let opens = ["aws-lc", "rustcrypto", "spin"].contains(&task.provider.kind.as_str());
        // The cost of bcrypt is an exponent.
        let most = |name: &str| if name == "cost" { 4 } else { 4096 };
        let is_small = |settings: &Settings| {
            settings
                .values()
                .all(|(name, value)| !matches!(value, Value::Number(number) if *number > most(name)))
        };
        let has_known_answer = task.inputs.keys().any(|name| name == "expected_hex");
        if !opens || !FAMILIES.contains(&task.family.as_str()) || !is_small(&task.setting) || has_known_answer
        {
            return;
        }
        let cpu = task.word("cpu", "native").map(str::to_owned);
        let provider = cpu.and_then(|cpu| op::open(op::KINDS, &task.provider, &cpu));
        let prepared = understood(provider).and_then(|provider| understood(op::prepare(&*provider, &task)));
        if let Some(mut primitive) = prepared {
            understood(primitive.perform());
        }
    })
}

pub fn loads() -> Give {
    Box::new(|bytes| {
        let Some(task) = read::<load::task::Task>(bytes) else { return };
        let Some(load) = one_line(task.load()) else { return };
        let mut visitors = load.visitors();
        // A sign-in reads files that it names, and users are kept in memory; both are skipped here.
        if visitors.sign_in.is_none() && visitors.users <= 4096 {
            visitors.site.page.paths.truncate(16);
            understood(SignIn::new(&visitors));
        }
    })
}

pub fn stores() -> Give {
    Box::new(|bytes| {
        let Some(store::Task { task, place }) = read::<store::Task>(bytes) else { return };
        understood(store::task::Settings::of(&task));
        if let Some(server) = place.and_then(|place| place.server) {
            understood(server.answer_limit());
        }
    })
}

pub fn configurations() -> Give {
    Box::new(|bytes| {
        if let Ok(text) = std::str::from_utf8(bytes) {
            understood(Config::read(text));
        }
    })
}

/// Verifies a stored password hash if that takes no time: the hash itself sets its cost.
pub fn password_hashes() -> Give {
    Box::new(|bytes| {
        let Ok(stored) = std::str::from_utf8(bytes) else { return };
        let of_bcrypt = stored.starts_with("$2").then(|| stored.split('$').nth(2)).flatten();
        let of_argon2 = PasswordHash::new(stored).ok().and_then(|hash| Params::try_from(&hash).ok());
        let is_cheap = of_bcrypt.and_then(|cost| cost.parse().ok()).is_none_or(|cost: u32| cost <= 4)
            && of_argon2.is_none_or(|costs| u64::from(costs.m_cost()) * u64::from(costs.t_cost()) <= 1024);
        if is_cheap {
            one_line(password::matches(stored, b"password"));
        }
    })
}
