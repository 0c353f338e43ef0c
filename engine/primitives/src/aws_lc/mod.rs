//! AWS-LC, through the crate `aws-lc-rs`.

mod cipher;
mod digest;
mod key_exchange;
mod signature;

use crate::contract::Receipt;
use crate::families::{IN_APPLICATION, IN_SERVER, Linked};
use crate::provider::parts;

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
    ],
    storage: &[IN_APPLICATION, IN_SERVER],
};

fn receipt() -> Receipt {
    Receipt {
        provider: format!("AWS-LC {}", aws_lc_rs::awslc_version()),
        name: format!("aws-lc {}", aws_lc_rs::awslc_version()),
        cflags: option_env!("AWS_LC_SYS_NO_JITTER_ENTROPY")
            .map(|value| format!("AWS_LC_SYS_NO_JITTER_ENTROPY={value}")),
        parts: parts(&["aws-lc-rs", "aws-lc-sys"]),
        ..Receipt::default()
    }
}
