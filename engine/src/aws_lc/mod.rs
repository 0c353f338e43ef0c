//! AWS-LC, through the crate `aws-lc-rs`.

mod cipher;
mod digest;
mod key_exchange;
mod signature;

use std::collections::BTreeMap;

use crate::contract::{Receipt, Task};
use crate::crates;
use crate::families::{self, Prepared, Table};
use crate::provider::{Offers, Provider};

pub struct AwsLc;

const TABLE: Table = &[
    ("digest", digest::DIGESTS),
    ("mac", digest::MACS),
    ("cipher", cipher::CIPHERS),
    ("signature", signature::SIGNATURES),
    ("key-exchange", key_exchange::KEY_EXCHANGES),
    ("password-hash", digest::ALGORITHMS),
];

impl Provider for AwsLc {
    fn receipt(&self) -> Receipt {
        let parts = crates::all().filter(|(name, _)| name.starts_with("aws-lc"));
        Receipt {
            provider: format!("AWS-LC {}", aws_lc_rs::awslc_version()),
            name: format!("aws-lc {}", aws_lc_rs::awslc_version()),
            parts: parts
                .map(|(name, version)| (name.to_owned(), version.to_owned()))
                .collect::<BTreeMap<_, _>>(),
            ..Receipt::default()
        }
    }

    fn offers(&self) -> Offers {
        families::offers(TABLE)
    }

    fn prepare(&self, task: &Task) -> Prepared {
        families::prepare("aws-lc-rs", TABLE, task)
    }
}
