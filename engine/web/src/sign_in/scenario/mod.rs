//! A user's own scenario: steps that each user performs in turn, with drawn and captured values, cookies and a
//! sign-in. One pass over the steps is one operation, and every answer of it is checked.
//!
//! It has only a client half, because its server is the user's own.

mod authorise;
mod capture;
mod jar;
mod quote;
mod source;
mod task;
mod template;

use std::cell::OnceCell;

use self::authorise::Authoriser;
use self::jar::Jar;
use self::quote::{Secrets, masked};
use self::source::Source;
use self::task::{Settings, Step};
use self::template::{Encoding, Scope};
use super::scheme::{Adversary, Client, Judgement, Scheme, Setup, Visit};
use crate::failure::{self, Failure, Fault};
use crate::http::response::{Expected, Response};
use crate::random::Sequence;

pub const SCHEME: Scheme = Scheme {
    name: "scenario",
    client,
    server: None,
    // Steps that are done once are done before anything is counted.
    keeps_state: true,
    has_sign_on: false,
    refused: &[],
};

/// Bytes of a body that are kept, to find text and captures in it.
const KEPT_BODY_BYTES: usize = 1 << 20;
/// Bytes of a body in which its first visible text is quoted.
const QUOTED_BYTES: usize = 64 << 10;
/// Letters of a value of another account that is masked: shorter ones are parts of words.
const LEAST_OF_OTHERS: usize = 4;

struct ScenarioClient {
    host: String,
    is_secure: bool,
    sources: Vec<Source>,
    /// Steps of an operation, the last one included.
    steps: Vec<Step>,
    expected: Vec<Expected>,
    authoriser: Authoriser,
    users: Vec<User>,
    /// Values of all accounts, once an answer is quoted.
    others: OnceCell<Secrets>,
}

#[derive(Default, Clone)]
struct User {
    /// Current step.
    step: usize,
    /// True once the steps that are done once are done.
    has_begun: bool,
    /// Row of each source.
    rows: Vec<u64>,
    captured: Vec<Option<String>>,
    jar: Jar,
    authorised: authorise::State,
    /// Challenges answered in this step.
    challenges: u8,
    /// Target and `Authorization` header of the current request.
    target: String,
    authorization: String,
    request: Vec<u8>,
}

fn client(setup: &Setup) -> Result<Box<dyn Client>, Failure> {
    let settings: Settings = setup.settings()?;
    let task::Compiled { sources, steps, captures, authoriser } =
        settings.compiled(setup.site).map_err(Failure::Failed)?;
    let expected = steps.iter().map(expected).collect();
    let user = User { rows: vec![0; sources.len()], captured: vec![None; captures], ..User::default() };
    let authoriser = Authoriser::new(authoriser)?;
    Ok(Box::new(ScenarioClient {
        host: setup.site.host.clone(),
        is_secure: setup.site.is_secure,
        sources,
        steps,
        expected,
        authoriser,
        users: vec![user; setup.users],
        others: OnceCell::new(),
    }))
}

fn expected(step: &Step) -> Expected {
    let reads_body = step.text.is_some() || step.captures.iter().any(|(_, from)| from.reads_body());
    Expected {
        status: step.status,
        bytes: None,
        body: None,
        to_head: step.method.eq_ignore_ascii_case("HEAD"),
        keeps_head: true,
        kept_body_bytes: if reads_body { KEPT_BODY_BYTES } else { 0 },
    }
}

/// Returns the values of all rows of files and the environment, of which a message may contain none.
fn of_accounts(sources: &[Source]) -> impl Iterator<Item = String> {
    let rows = |source: &Source| (0..source.count()).flat_map(|row| source.row(row)).collect::<Vec<_>>();
    let values = sources.iter().filter(|source| source.is_secret).flat_map(rows);
    values.filter(|value| value.chars().count() >= LEAST_OF_OTHERS)
}

impl ScenarioClient {
    /// Draws the values of an operation. A row of a file stays with a user that keeps its cookies, because the
    /// server knows it by them.
    fn draw(&mut self, visit: &Visit, has_begun: bool) {
        let user = &mut self.users[visit.user as usize];
        for (number, source) in self.sources.iter().enumerate() {
            if !has_begun || !source.is_of_user {
                let mut random = Sequence::of(visit.unique, [number as u64, 0]);
                user.rows[number] = random.under(source.count());
            }
        }
    }

    /// Builds the request of a user's current step.
    fn build(&mut self, visit: &Visit) -> Result<(), Fault> {
        let ScenarioClient { host, sources, steps, authoriser, users, .. } = self;
        let user = &mut users[visit.user as usize];
        let step = &steps[user.step];
        let scope = Scope { sources, rows: &user.rows, captured: &user.captured };
        let named = |words: String| Fault::new(failure::NOT_HTTP, format!("{}: {words}", step.title()));
        user.target = step.path.rendered(scope, Encoding::Path).map_err(named)?;
        let body = step.body.as_ref().map(|body| body.rendered(scope)).transpose().map_err(named)?;
        let mut head = format!("{} {} HTTP/1.1\r\nHost: {host}\r\n", step.method, user.target);
        for (name, value) in &step.headers {
            let value = value.rendered(scope, Encoding::Header).map_err(named)?;
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(cookies) = user.jar.header(&user.target) {
            head.push_str(&format!("Cookie: {cookies}\r\n"));
        }
        let value =
            authoriser.header(&mut user.authorised, scope, &step.method, &user.target, visit.unique)?;
        user.authorization = value
            .as_deref()
            .and_then(|value| value.split_once(' '))
            .map_or(String::new(), |(_, secret)| secret.to_owned());
        if let Some(value) = value {
            head.push_str(&format!("Authorization: {value}\r\n"));
        }
        if step.is_form {
            head.push_str("Content-Type: application/x-www-form-urlencoded\r\n");
        }
        if let Some(body) = &body {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        user.request.clear();
        user.request.extend_from_slice(head.as_bytes());
        user.request.extend_from_slice(body.unwrap_or_default().as_bytes());
        Ok(())
    }

    /// Checks an answer, and takes its cookies and captures.
    fn take(&mut self, visit: &Visit, response: &Response) -> Result<(), String> {
        let ScenarioClient { is_secure, sources, steps, authoriser, users, others, .. } = self;
        let user = &mut users[visit.user as usize];
        let step = &steps[user.step];
        let scope = Scope { sources, rows: &user.rows, captured: &user.captured };
        let quoted = |bytes: &[u8]| {
            // A page may list the accounts of other users.
            let others = others.get_or_init(|| Secrets::of(of_accounts(scope.sources)));
            let own = scope.secrets().into_iter().chain(user.jar.values().map(str::to_owned));
            let own = Secrets::of(own.chain([user.authorization.clone()]));
            let beginning = &bytes[..bytes.len().min(QUOTED_BYTES)];
            let is_cut = response.bytes > beginning.len() as u64;
            quote::text_of(&masked(&String::from_utf8_lossy(beginning), &[&own, others], is_cut))
        };
        let body = String::from_utf8_lossy(response.kept_body());
        if response.status != step.status {
            let said = quoted(response.said());
            let said = if said.is_empty() { String::new() } else { format!(": {said}") };
            return Err(format!("expected status {}, got {}{said}", step.status, response.status));
        }
        if let Some(text) = &step.text
            && !body.contains(&text.rendered(scope, Encoding::Plain)?)
        {
            let said = quoted(response.kept_body());
            return Err(format!(
                "the expected text is not in the answer of {} bytes: {said}",
                response.bytes
            ));
        }
        authoriser.prove(&mut user.authorised, response)?;
        for value in response.headers("Set-Cookie") {
            user.jar.take(value, &user.target, *is_secure);
        }
        for (place, from) in &step.captures {
            user.captured[*place] = Some(from.captured(response, &body, &user.jar)?);
        }
        Ok(())
    }
}

impl Client for ScenarioClient {
    fn begin(&mut self, visit: &Visit) -> Result<(), Fault> {
        let first = self.steps.iter().position(|step| !step.is_once).unwrap_or(0);
        let user = &mut self.users[visit.user as usize];
        let has_begun = user.has_begun && first > 0;
        if !has_begun {
            user.jar = Jar::default();
            user.captured.fill(None);
            user.authorised = authorise::State::default();
        }
        user.step = if has_begun { first } else { 0 };
        user.challenges = 0;
        self.draw(visit, has_begun);
        self.build(visit)
    }

    fn request(&mut self, visit: &Visit) -> &[u8] {
        &self.users[visit.user as usize].request
    }

    fn expected(&self, visit: &Visit) -> &Expected {
        &self.expected[self.users[visit.user as usize].step]
    }

    fn judge(&mut self, visit: &Visit, response: &Response) -> Result<Judgement, Fault> {
        let index = visit.user as usize;
        let step = self.users[index].step;
        if response.status == 401 && self.steps[step].status != 401 && self.users[index].challenges < 2 {
            let user = &mut self.users[index];
            user.challenges += 1;
            if self.authoriser.challenged(&mut user.authorised, response) {
                return self.build(visit).map(|()| Judgement::Continue);
            }
        }
        if let Err(words) = self.take(visit, response) {
            self.users[index].has_begun = false;
            let kind = if response.status == self.steps[step].status {
                failure::WRONG_BODY
            } else {
                failure::WRONG_STATUS
            };
            return Err(Fault::new(kind, format!("{}: {words}", self.steps[step].title())));
        }
        let user = &mut self.users[index];
        user.challenges = 0;
        if step + 1 == self.steps.len() {
            user.has_begun = true;
            return Ok(Judgement::Done);
        }
        user.step += 1;
        self.build(visit).map(|()| Judgement::Continue)
    }

    fn signs_on(&self, _visit: &Visit) -> bool {
        false
    }

    fn library(&self) -> Option<&str> {
        self.authoriser.library()
    }
}

impl Adversary for ScenarioClient {}

#[cfg(test)]
mod tests;
