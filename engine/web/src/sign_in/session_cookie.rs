//! A login form, and then random text in a cookie, which the server looks up in SQL for each request.

use serde::Deserialize;

use super::form::client::{ANOTHER_TOKEN, ENDED, FORGED, FORGED_LOGIN, UNSIGNED_TOKEN, client};
use super::form::server::{Cookie, FormServer, an_hour};
use super::lookup::Sql;
use super::lookup::held::Held;
use super::lookup::stored::{Store, StoreSpec};
use super::scheme::{Scheme, Server, Settings, Wrong, read_server};
use crate::failure::Failure;

pub const SCHEME: Scheme = Scheme {
    name: "session-cookie",
    client,
    server: Some(server),
    keeps_state: true,
    has_sign_on: true,
    refused: &[
        Wrong::NoCredentials,
        Wrong::Password,
        Wrong::User,
        Wrong::Own(FORGED),
        Wrong::Own(FORGED_LOGIN),
        Wrong::Own(ANOTHER_TOKEN),
        Wrong::Own(UNSIGNED_TOKEN),
        Wrong::Own(ENDED),
    ],
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerSettings {
    store: StoreSpec,
    /// Database with sessions of other users at the start.
    held: Sql,
    #[serde(default = "an_hour")]
    ticket_s: u64,
    #[serde(default)]
    secure: bool,
}

fn server(settings: &Settings) -> Result<Box<dyn Server>, Failure> {
    Ok(Box::new(form_server(settings)?))
}

fn form_server(settings: &Settings) -> Result<FormServer<Held>, Failure> {
    let ServerSettings { store, held, ticket_s, secure } = read_server(settings)?;
    let (store, tickets) = (Store::open(&store)?, Held::open(&held)?);
    FormServer::new(store, tickets, Cookie { lasts_s: ticket_s, secure })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::form::server::tests::lasts;
    use super::super::lookup::database::tests::Folder;
    use super::super::lookup::held::tests::fill;
    use super::*;

    #[test]
    fn a_login_lasts_as_long_as_the_server_was_told() {
        let folder = Folder::new("session");
        let from = folder.0.join("held");
        fill(&from, &[]);
        let held = |copy: &str| json!({"from": from, "at": folder.0.join(copy)});
        lasts(100, form_server, json!({"ticket_s": 100, "held": held("first")}), &folder.0);
        lasts(3600, form_server, json!({"held": held("second")}), &folder.0);
    }
}
