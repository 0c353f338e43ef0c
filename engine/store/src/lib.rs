//! `store`: a database with a table whose columns are encrypted, or not, and the account of the cost of using
//! it.

mod card;
mod channel;
mod columns;
mod database;
pub mod mariadb;
mod nothing;
mod openpgp;
pub mod postgresql;
mod protection;
mod served;
mod sign_on;
mod sqlite;
mod table;
pub mod task;
#[cfg(test)]
mod tests;
mod trial;
mod verify;

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;

use tollbar_contract::{clock, contract, failure, pacing, random, runner, scheduling};
use tollbar_guard::accounting;
use tollbar_primitives::families;
use tollbar_primitives::op::{self, Kind};
use tollbar_tls as tls;

use crate::contract::{Done, Mode, Receipt, Record};
use crate::failure::Failure;
use crate::runner::Lines;
use card::Cards;
use database::Database;
use sign_on::SignOn;
use table::Table;
use task::{Access, Place, ServerKind, Settings};
use trial::Trial;

pub use served::{Rows, USED_PATH};
pub use task::{Connection, Task};

/// Providers of protection: of columns in the application, or of whole databases.
const KINDS: &[Kind] = &[
    op::LIBCRYPTO,
    op::AWS_LC,
    op::RUSTCRYPTO,
    op::SPIN,
    tollbar_sqlite::KINDS[0],
    tollbar_sqlite::KINDS[1],
];

pub fn main() -> i32 {
    scheduling::give_way();
    runner::run(perform)
}

fn perform(task: &Task, lines: &mut Lines) -> Record<Done> {
    let mut known = None;
    match answer(task, lines, &mut known) {
        Ok(done) => Record::Ok(Box::new(done)),
        Err(failure) => Record::refusal(failure, known),
    }
}

/// Performs a task; `known` is set to the receipt as soon as it is known.
fn answer(task: &Task, lines: &mut Lines, known: &mut Option<Receipt>) -> Result<Done, Failure> {
    let Task { task, place } = task;
    if task.mode == Mode::List {
        return Err(Failure::Unsupported("`tollbar-engine op` lists the choices of a provider".to_owned()));
    }
    let place = place.as_ref().ok_or_else(|| Failure::Failed("the task has no `store`".to_owned()))?;
    let settings = Settings::of(task)?;
    let mark = if task.mode == Mode::Verify { task.text("mark").unwrap_or_default() } else { "" };
    let cards = Cards::new(task.seed, mark);
    let (mut database, mut receipt) = open(task, place, &settings, cards.clone())?;
    task.all_settings_read()?;
    receipt.parts.extend(database.parts()?);
    *known = Some(receipt.clone());
    if task.mode == Mode::Verify {
        let proof = match settings.access {
            _ if task.choice == "none" => nothing::prove(),
            Access::SignOn => verify::alone(database)?,
            _ => verify::verify(database, &settings)?,
        };
        return Ok(Done { receipt: Some(receipt), proof: Some(proof), ..Done::default() });
    }
    runner::optimised(cfg!(debug_assertions))?;
    let (mut trial, ready) = Trial::open(database, place, &settings, task, receipt)?;
    runner::session(lines, ready, |advance, _| trial.advance(advance))?;
    trial.end()?;
    Ok(Done::default())
}

/// Makes a table for the pages of a server, in the database that the task names.
pub fn rows(task: &Task) -> Result<Rows, Failure> {
    let Task { task, place } = task;
    let place = place.as_ref().ok_or_else(|| Failure::Failed("the task has no `store`".to_owned()))?;
    let settings = Settings::of(task)?;
    match settings.access {
        Access::Read => {}
        Access::Insert if settings.rows_per_commit == 1 => {}
        _ => {
            let words = "a page must read one row, or insert one with its own commit";
            return Err(Failure::Unsupported(words.to_owned()));
        }
    }
    if place.server.is_none() && !place.directory.exists() {
        let made = DirBuilder::new().mode(0o700).create(&place.directory);
        made.map_err(|error| Failure::Failed(format!("{}: {error}", place.directory.display())))?;
    }
    let (mut database, mut receipt) = open(task, place, &settings, Cards::new(task.seed, ""))?;
    task.all_settings_read()?;
    receipt.parts.extend(database.parts()?);
    Rows::of(database, settings, task.seed, receipt, place.connection)
}

/// Opens the database of a task, and returns it with its receipt for the lab's rows.
fn open(
    task: &crate::contract::Task,
    place: &Place,
    settings: &Settings,
    cards: Cards,
) -> Result<(Box<dyn Database>, Receipt), Failure> {
    if task.word("cpu", "native")? != "native" {
        return Err(Failure::Unsupported("a database has no switch for instruction sets".to_owned()));
    }
    let provider = op::open(KINDS, &task.provider, "native")?;
    let receipt = op::receipt(provider.as_ref());
    let provider_kind = task.provider.kind.as_str();
    if settings.access == Access::SignOn {
        return match &place.server {
            Some(server) => {
                let database: Box<dyn Database> = match server.kind {
                    ServerKind::Postgresql => Box::new(SignOn(postgresql::sign_on::open(task, server)?)),
                    ServerKind::Mariadb => Box::new(SignOn(mariadb::sign_on::open(task, server)?)),
                };
                Ok((database, receipt))
            }
            None => Err(Failure::Unsupported("an embedded database has no users or sign-on".to_owned())),
        };
    }
    let protection = protection::of(&task.choice, &protection::Keys::of(task)?)?;
    let table = Table::new(cards, &task.choice, protection);
    if task.choice == "none" {
        return Ok((nothing::open(task, settings, table)?, receipt));
    }
    if !provider
        .offers()
        .iter()
        .any(|(family, choices)| *family == "storage" && choices.contains(&&*task.choice))
    {
        return Err(families::not_offered(provider_kind, &format!("{} (storage)", task.choice)));
    }
    let database: Box<dyn Database> = match (provider_kind, &place.server) {
        ("sqlite", None) => {
            Box::new(sqlite::open(&tollbar_sqlite::PLAIN, &place.directory, task, settings, table)?)
        }
        ("sqlcipher", None) => {
            Box::new(sqlite::open(tollbar_sqlite::sqlcipher(), &place.directory, task, settings, table)?)
        }
        ("aws-lc", Some(server)) => match server.kind {
            ServerKind::Postgresql => postgresql::open(task, server, settings, table)?,
            ServerKind::Mariadb => mariadb::open(task, server, settings, table)?,
        },
        (kind, None) => return Err(Failure::Failed(format!("{kind} is not an embedded database"))),
        (kind, Some(_)) => {
            return Err(Failure::Failed(format!(
                "a server's rows must be encrypted by aws-lc, not by {kind}"
            )));
        }
    };
    Ok((database, receipt))
}
