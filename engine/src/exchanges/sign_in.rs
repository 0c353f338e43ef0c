//! Who may see the embedded server's protected pages, as its configuration says it.

use serde::Deserialize;

use super::schemes::scheme;
use super::server::Server;
use super::settings::Settings;
use crate::contract::Failure;

/// `sign_in` of the server's configuration, as it comes in.
#[derive(Deserialize, Debug)]
pub struct SignIn {
    scheme: String,
    /// The scheme's own.
    #[serde(flatten)]
    settings: Settings,
}

impl SignIn {
    pub fn prepare(&self) -> Result<Box<dyn Server>, Failure> {
        let scheme = scheme(&self.scheme, "sign_in.scheme")?;
        let name = scheme.name;
        let missing = || Failure::Unsupported(format!("the embedded server does not offer {name}"));
        scheme.server.ok_or_else(missing)?(&self.settings)
    }
}
