//! The table of providers: a kind, and what opens it.

use crate::contract::{Failure, ProviderName};
use crate::provider::Provider;

/// The provider of this name, ready to be asked; `cpu` says which instruction sets it may use.
pub fn open(name: &ProviderName, cpu: &str) -> Result<Box<dyn Provider>, Failure> {
    // A library that is linked in has looked at the processor before `main`: too late to mask anything.
    if cpu != "native" && name.kind != "libcrypto" {
        return Err(Failure::Unsupported(format!(
            "{} cannot be told to leave instruction sets unused",
            name.kind
        )));
    }
    match name.kind.as_str() {
        "libcrypto" => crate::libcrypto::open(name.path.as_deref(), cpu),
        "aws-lc" => Ok(Box::new(crate::aws_lc::AWS_LC)),
        "rustcrypto" => Ok(Box::new(crate::rustcrypto::RUSTCRYPTO)),
        "spin" => Ok(Box::new(crate::spin::Spin)),
        "sqlite" => Ok(Box::new(crate::sqlite::SQLITE)),
        "sqlcipher" => Ok(Box::new(crate::sqlite::SQLCIPHER)),
        kind => {
            let known = "libcrypto, aws-lc, rustcrypto, spin, sqlite, sqlcipher";
            Err(Failure::Failed(format!("no such provider: `{kind}` ({known})")))
        }
    }
}
