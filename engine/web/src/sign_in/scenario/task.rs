//! A scenario as the task has it, and its compiled form.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::authorise::{AuthoriseSpec, AuthoriseTask};
use super::capture::{Capture, CaptureSpec};
use super::source::{Source, SourceSpec};
use super::template::{Encoding, Place, Scope, Template};
use crate::http::page::Site;

/// Limit of steps: each may need three requests, and a visit counts its requests in a byte.
const MOST_STEPS: usize = 64;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    sources: Vec<SourceSpec>,
    /// Source and column of each name.
    values: BTreeMap<String, (usize, usize)>,
    #[serde(default)]
    sign_in: Option<AuthoriseTask>,
    steps: Vec<StepSpec>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepSpec {
    name: String,
    method: String,
    path: String,
    #[serde(default)]
    headers: Vec<(String, String)>,
    body: Option<String>,
    form: Option<Vec<(String, String)>>,
    status: u16,
    text: Option<String>,
    #[serde(default)]
    capture: BTreeMap<String, CaptureSpec>,
    #[serde(default)]
    once: bool,
}

pub struct Step {
    number: usize,
    name: String,
    pub method: String,
    pub path: Template,
    pub headers: Vec<(String, Template)>,
    pub body: Option<Body>,
    pub is_form: bool,
    pub status: u16,
    pub text: Option<Template>,
    pub captures: Vec<(usize, Capture)>,
    pub is_once: bool,
}

impl Step {
    /// Returns the step's name in messages.
    pub fn title(&self) -> String {
        format!("step {} ({})", self.number, self.name)
    }
}

pub enum Body {
    Text(Template, Encoding),
    Form(Vec<(Template, Template)>),
}

impl Body {
    pub fn rendered(&self, scope: Scope) -> Result<String, String> {
        match self {
            Body::Text(text, encoding) => text.rendered(scope, *encoding),
            Body::Form(fields) => {
                let mut pairs = Vec::with_capacity(fields.len());
                for (name, value) in fields {
                    let in_form = |one: &Template| {
                        let plain = one.rendered(scope, Encoding::Plain)?;
                        Ok::<_, String>(super::template::encoded(&plain, Encoding::Form))
                    };
                    pairs.push(format!("{}={}", in_form(name)?, in_form(value)?));
                }
                Ok(pairs.join("&"))
            }
        }
    }
}

pub struct Compiled {
    pub sources: Vec<Source>,
    pub steps: Vec<Step>,
    /// Number of captured values.
    pub captures: usize,
    pub authoriser: Option<AuthoriseSpec>,
}

impl Settings {
    /// Compiles the scenario. Every template names a drawn value, or one that an earlier step captures.
    pub fn compiled(self, site: &Site) -> Result<Compiled, String> {
        let Settings { sources, values, sign_in, steps } = self;
        if steps.is_empty() || steps.len() > MOST_STEPS {
            return Err(format!("`load.exchange.steps` has {}; it must have 1 to {MOST_STEPS}", steps.len()));
        }
        let sources: Vec<Source> = sources.into_iter().map(SourceSpec::checked).collect::<Result<_, _>>()?;
        for (name, (source, column)) in &values {
            let has = sources.get(*source).is_some_and(|one| one.has_column(*column));
            if !has {
                return Err(format!("`load.exchange.values` names no column for {name:?}"));
            }
        }
        let drawn: BTreeMap<String, Place> = values
            .into_iter()
            .map(|(name, (source, column))| (name, Place::Column { source, column }))
            .collect();
        let authoriser = sign_in
            .map(|spec| spec.compiled(site, |text| Template::parse(text, |name| drawn.get(name).copied())))
            .transpose()?;
        let mut known = drawn;
        let mut captures = 0;
        let mut made = Vec::with_capacity(steps.len());
        for (place, spec) in steps.into_iter().enumerate() {
            let name = spec.name.clone();
            let step = spec
                .compiled(place + 1, &mut known, &mut captures)
                .map_err(|words| format!("step {} ({name}): {words}", place + 1))?;
            made.push(step);
        }
        Ok(Compiled { sources, steps: made, captures, authoriser })
    }
}

impl StepSpec {
    fn compiled(
        self,
        number: usize,
        known: &mut BTreeMap<String, Place>,
        captures: &mut usize,
    ) -> Result<Step, String> {
        let parse = |text: &str| Template::parse(text, |name| known.get(name).copied());
        let is_json = self.headers.iter().any(|(name, value)| {
            name.eq_ignore_ascii_case("content-type") && value.to_ascii_lowercase().contains("json")
        });
        let headers = self
            .headers
            .iter()
            .map(|(name, value)| Ok((name.clone(), parse(value)?)))
            .collect::<Result<_, String>>()?;
        let is_form = self.form.is_some();
        let body = match (&self.body, &self.form) {
            (Some(_), Some(_)) => return Err("a body and a form cannot be combined".to_owned()),
            (Some(text), None) => {
                Some(Body::Text(parse(text)?, if is_json { Encoding::Json } else { Encoding::Plain }))
            }
            (None, Some(fields)) => {
                let fields = fields.iter().map(|(name, value)| Ok((parse(name)?, parse(value)?)));
                Some(Body::Form(fields.collect::<Result<_, String>>()?))
            }
            (None, None) => None,
        };
        word("the method", &self.method)?;
        word("the path", &self.path)?;
        for (name, value) in &self.headers {
            word("a header's name", name)?;
            if name.contains(':') || value.contains(['\r', '\n', '\0']) {
                return Err(format!("the header {name} cannot be sent as it is"));
            }
        }
        let (path, text) = (parse(&self.path)?, self.text.as_deref().map(parse).transpose()?);
        let mut own = Vec::new();
        for (name, spec) in &self.capture {
            own.push((*captures, Capture::new(spec)?));
            known.insert(name.clone(), Place::Captured(*captures));
            *captures += 1;
        }
        Ok(Step {
            number,
            name: self.name,
            method: self.method,
            path,
            headers,
            body,
            is_form,
            status: self.status,
            text,
            captures: own,
            is_once: self.once,
        })
    }
}

/// Refuses text that would end a line or a word of a request early.
fn word(place: &str, text: &str) -> Result<(), String> {
    let is_valid = !text.is_empty() && text.bytes().all(|byte| byte > b' ' && byte != 0x7f);
    if is_valid { Ok(()) } else { Err(format!("{place} {text:?} cannot be sent as it is")) }
}
