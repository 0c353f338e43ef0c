//! Sign-in of a scenario's users by a header: Basic, Digest, Negotiate or a bearer token. A form is steps of its
//! own.

use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::template::{Encoding, Scope, Template};
use crate::failure::{Failure, Fault};
use crate::gssapi::{self, Context, Credentials, Library, Mechanism};
use crate::http::page::Site;
use crate::http::prebuilt::put_digits;
use crate::http::response::Response;
use crate::sign_in::digest::{Algorithm, Answered, Challenge};
use crate::sign_in::negotiate;

#[derive(Deserialize, Debug, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum By {
    Basic,
    Digest,
    Negotiate,
    Bearer,
}

/// A sign-in, as the task has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuthoriseTask {
    by: By,
    #[serde(default)]
    user: String,
    #[serde(default)]
    password: String,
    #[serde(default)]
    token: String,
    /// Configuration of Kerberos; None: the machine's.
    krb5_config: Option<PathBuf>,
}

pub struct AuthoriseSpec {
    by: By,
    user: Template,
    password: Template,
    token: Template,
    service: String,
    krb5_config: Option<PathBuf>,
}

impl AuthoriseTask {
    pub fn compiled(
        self,
        site: &Site,
        parse: impl Fn(&str) -> Result<Template, String>,
    ) -> Result<AuthoriseSpec, String> {
        let host = site.host.rsplit_once(':').map_or(site.host.as_str(), |(host, _)| host);
        Ok(AuthoriseSpec {
            by: self.by,
            user: parse(&self.user)?,
            password: parse(&self.password)?,
            token: parse(&self.token)?,
            service: format!("HTTP@{host}"),
            krb5_config: self.krb5_config,
        })
    }
}

pub struct Authoriser {
    spec: Option<AuthoriseSpec>,
    library: Option<&'static Library>,
}

/// A user's sign-in: the server's last challenge, or the credentials of a directory.
#[derive(Default)]
pub struct State {
    digest: Option<Challenged>,
    credentials: Option<Credentials<'static>>,
    context: Option<Context<'static>>,
}

impl Clone for State {
    /// Returns a user's beginning: credentials are one user's own.
    fn clone(&self) -> State {
        State::default()
    }
}

struct Challenged {
    algorithm: Algorithm,
    realm: String,
    nonce: String,
    opaque: Option<String>,
    count: u32,
}

impl Authoriser {
    pub fn new(spec: Option<AuthoriseSpec>) -> Result<Authoriser, Failure> {
        let uses_library = spec.as_ref().filter(|spec| spec.by == By::Negotiate);
        let library = uses_library
            .map(|spec| gssapi::open(Mechanism::Spnego, spec.krb5_config.as_deref()))
            .transpose()?;
        Ok(Authoriser { spec, library })
    }

    pub fn library(&self) -> Option<&str> {
        self.library.map(|library| library.version.as_str())
    }

    /// Returns the value of the `Authorization` header of a request, if it has one.
    pub fn header(
        &self,
        state: &mut State,
        scope: Scope,
        method: &str,
        target: &str,
        unique: u64,
    ) -> Result<Option<String>, Fault> {
        let Some(spec) = &self.spec else { return Ok(None) };
        let plain = |template: &Template| template.rendered(scope, Encoding::Header).map_err(cannot_sign_in);
        Ok(match spec.by {
            By::Basic => {
                let pair = format!("{}:{}", plain(&spec.user)?, plain(&spec.password)?);
                Some(format!("Basic {}", STANDARD.encode(pair)))
            }
            By::Bearer => Some(format!("Bearer {}", plain(&spec.token)?)),
            By::Digest => {
                let Some(challenged) = &mut state.digest else { return Ok(None) };
                Some(challenged.answer(&plain(&spec.user)?, &plain(&spec.password)?, method, target, unique))
            }
            By::Negotiate => {
                let Some(library) = self.library else { return Ok(None) };
                if state.credentials.is_none() {
                    let user = library.user(&plain(&spec.user)?).map_err(cannot_sign_in)?;
                    let password = plain(&spec.password)?;
                    let signed_in = library.sign_in(Mechanism::Spnego, &user, &password);
                    state.credentials = Some(signed_in.map_err(cannot_sign_in)?);
                }
                let Some(credentials) = &state.credentials else { return Ok(None) };
                let service = library.service(&spec.service).map_err(cannot_sign_in)?;
                let mut context = library.context(Mechanism::Spnego);
                let step = context.step(credentials, &service, &[]).map_err(cannot_sign_in)?;
                state.context = Some(context);
                Some(format!("Negotiate {}", STANDARD.encode(step.token)))
            }
        })
    }

    /// Takes the challenge of an answer with status 401. Returns true if the request is to be sent again.
    pub fn challenged(&self, state: &mut State, response: &Response) -> bool {
        if self.spec.as_ref().is_none_or(|spec| spec.by != By::Digest) {
            return false;
        }
        let found = [Algorithm::Sha256, Algorithm::Md5].into_iter().find_map(|algorithm| {
            let parsed = response
                .headers("WWW-Authenticate")
                .find_map(|value| Some((algorithm, Challenge::parse(value, algorithm)?)));
            parsed.filter(|(_, challenge)| state.digest.is_none() || challenge.is_stale)
        });
        let Some((algorithm, challenge)) = found else { return false };
        state.digest = Some(Challenged {
            algorithm,
            realm: challenge.realm.to_owned(),
            nonce: challenge.nonce.to_owned(),
            opaque: challenge.opaque.map(str::to_owned),
            count: 0,
        });
        true
    }

    /// Checks the server's own token in an answer to a token, if there is one.
    pub fn prove(&self, state: &mut State, response: &Response) -> Result<(), String> {
        let (Some(mut context), Some(credentials)) = (state.context.take(), &state.credentials) else {
            return Ok(());
        };
        let (Some(spec), Some(library)) = (&self.spec, self.library) else { return Ok(()) };
        let Ok(came) = negotiate::token("Negotiate", response) else { return Ok(()) };
        let service = library.service(&spec.service)?;
        match context.step(credentials, &service, &came)?.is_complete {
            true => Ok(()),
            false => Err("the server's token does not prove that it is the one asked for".to_owned()),
        }
    }
}

impl Challenged {
    /// Returns the credentials that answer the challenge for one request (RFC 7616, 3.4).
    fn answer(&mut self, user: &str, password: &str, method: &str, target: &str, unique: u64) -> String {
        self.count += 1;
        let (mut count, mut client_nonce) = ([0; 8], [0; 16]);
        put_digits(u64::from(self.count) << 32, &mut count);
        put_digits(unique, &mut client_nonce);
        let answered = Answered {
            uri: target.as_bytes(),
            nonce: self.nonce.as_bytes(),
            count: &count,
            client_nonce: &client_nonce,
        };
        let hash = self.algorithm.of_user(user, &self.realm, password);
        let response = self.algorithm.response(hash.as_bytes(), method, &answered);
        let user = user.replace('\\', "\\\\").replace('"', "\\\"");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let opaque = self.opaque.as_ref().map_or(String::new(), |opaque| format!(", opaque=\"{opaque}\""));
        format!(
            "Digest username=\"{user}\", realm=\"{}\", nonce=\"{}\", uri=\"{target}\", algorithm={}, qop=auth, nc={}, \
             cnonce=\"{}\", response=\"{}\"{opaque}",
            self.realm,
            self.nonce,
            self.algorithm.name(),
            text(&count),
            text(&client_nonce),
            text(response.as_bytes()),
        )
    }
}

/// Makes the fault of a sign-in that cannot continue.
fn cannot_sign_in(words: impl std::fmt::Display) -> Fault {
    negotiate::refused(format!("the sign-in: {words}"))
}
