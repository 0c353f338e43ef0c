//! Digests, and message authentication codes.

use hmac::{EagerHash, Hmac, KeyInit, Mac};
use poly1305::Poly1305;
use poly1305::universal_hash::{KeyInit as UniversalHashInit, UniversalHash};
use sha2::Digest;

use crate::contract::Task;
use crate::families::{self, Prepared, Row, failed};

pub const DIGESTS: &[Row] = &[
    ("md5", hash::<md5::Md5>),
    ("sha-1", hash::<sha1::Sha1>),
    ("sha-224", hash::<sha2::Sha224>),
    ("sha-256", hash::<sha2::Sha256>),
    ("sha-384", hash::<sha2::Sha384>),
    ("sha-512", hash::<sha2::Sha512>),
    ("sha-512-256", hash::<sha2::Sha512_256>),
    ("sha3-256", hash::<sha3::Sha3_256>),
    ("sha3-512", hash::<sha3::Sha3_512>),
    ("blake2b-512", hash::<blake2::Blake2b512>),
    ("blake2s-256", hash::<blake2::Blake2s256>),
    ("blake3", |task| families::digest::digest(task, |data| Ok(*blake3::hash(data).as_bytes()))),
];

pub const MACS: &[Row] = &[
    ("hmac-sha-1", authenticate::<sha1::Sha1>),
    ("hmac-sha-256", authenticate::<sha2::Sha256>),
    ("hmac-sha-512", authenticate::<sha2::Sha512>),
    ("poly1305", poly1305),
];

fn hash<D: Digest + 'static>(task: &Task) -> Prepared {
    families::digest::digest(task, |data| Ok(D::digest(data)))
}

fn authenticate<D: EagerHash>(task: &Task) -> Prepared
where
    Hmac<D>: Mac + KeyInit,
{
    families::digest::mac(task, |key, data| {
        let mut mac = <Hmac<D> as KeyInit>::new_from_slice(key).map_err(failed("setting the key"))?;
        mac.update(data);
        Ok(mac.finalize().into_bytes())
    })
}

fn poly1305(task: &Task) -> Prepared {
    families::digest::mac(task, |key, data| {
        let mut mac =
            <Poly1305 as UniversalHashInit>::new_from_slice(key).map_err(failed("setting the key"))?;
        // Whole blocks are passed to the vector code, which `compute_unpadded` does not use.
        let (blocks, rest) = poly1305::Block::slice_as_chunks(data);
        mac.update(blocks);
        Ok(mac.compute_unpadded(rest))
    })
}
