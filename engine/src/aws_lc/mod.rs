//! AWS-LC, through the crate `aws-lc-rs`.

mod cipher;
mod digest;
mod key_exchange;
mod signature;

use crate::contract::Receipt;
use crate::crates;
use crate::families::{Linked, storage};

pub const AWS_LC: Linked = Linked {
    name: "aws-lc-rs",
    receipt,
    table: &[
        ("digest", digest::DIGESTS),
        ("mac", digest::MACS),
        ("cipher", cipher::CIPHERS),
        ("signature", signature::SIGNATURES),
        ("key-exchange", key_exchange::KEY_EXCHANGES),
        ("password-hash", digest::ALGORITHMS),
        ("storage", storage::BESIDE_A_SERVER),
    ],
};

fn receipt() -> Receipt {
    let parts = crates::all().filter(|(name, _)| name.starts_with("aws-lc"));
    Receipt {
        provider: format!("AWS-LC {}", aws_lc_rs::awslc_version()),
        name: format!("aws-lc {}", aws_lc_rs::awslc_version()),
        cflags: option_env!("AWS_LC_SYS_NO_JITTER_ENTROPY")
            .map(|value| format!("AWS_LC_SYS_NO_JITTER_ENTROPY={value}")),
        parts: parts.map(|(name, version)| (name.to_owned(), version.to_owned())).collect(),
        ..Receipt::default()
    }
}
