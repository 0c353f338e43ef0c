#!/usr/bin/env bash
# rustls's session cache in memory takes time that grows with its size for each session that TLS 1.3 resumes.
#
# A server of rustls keeps sessions in `ServerSessionMemoryCache`. TLS 1.2 reads a session (`get`), which takes the same
# time whatever the size. TLS 1.3 uses a session once (`take`), and to take one the cache searches the queue of all its
# sessions, from the oldest on. A server that raises the size from the default of 256 to serve more clients pays for it
# with each resumption.
#
# Seen with rustls 0.23.46, a full cache, the newest of its sessions taken and another put in its place: `take` and `put`
# took 406 times as long with 65,536 sessions as with 256; `get` and `put` 2.6 times as long.
# Needs a Rust toolchain (1.71 or later). Ends with 0 while `take` grows more than twenty times and `get` less than eight.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir src
cat > Cargo.toml <<'TOML'
[package]
name = "cache"
version = "0.0.0"
edition = "2021"

[dependencies]
rustls = { version = "=0.23.46", default-features = false, features = ["std"] }
TOML
cat > src/main.rs <<'RUST'
use std::time::Instant;

use rustls::server::{ServerSessionMemoryCache, StoresServerSessions};

const ROUNDS: u32 = 400;

fn id(number: u32) -> Vec<u8> {
    let mut id = vec![0; 32];
    id[..4].copy_from_slice(&number.to_be_bytes());
    id
}

/// Nanoseconds to use the newest session of a full cache and to put another, by the quickest of ten tries.
fn quickest(size: u32, use_one: fn(&dyn StoresServerSessions, &[u8]) -> Option<Vec<u8>>) -> f64 {
    let cache = ServerSessionMemoryCache::new(size as usize);
    let mut newest = 4 * size;
    for number in 0..=newest {
        cache.put(id(number), vec![0; 200]);
    }
    let tries = (0..10).map(|_| {
        let began = Instant::now();
        for _ in 0..ROUNDS {
            assert!(use_one(&*cache, &id(newest)).is_some());
            newest += 1;
            cache.put(id(newest), vec![0; 200]);
        }
        began.elapsed().as_nanos() as f64 / f64::from(ROUNDS)
    });
    tries.fold(f64::INFINITY, f64::min)
}

fn main() {
    let take = quickest(65_536, |cache, id| cache.take(id)) / quickest(256, |cache, id| cache.take(id));
    let get = quickest(65_536, |cache, id| cache.get(id)) / quickest(256, |cache, id| cache.get(id));
    println!("65,536 sessions over 256: take and put {take:.0} times as long, get and put {get:.1} times");
    assert!(take > 20.0, "`take` no longer grows with the cache");
    assert!(get < 8.0, "`get` grows with the cache");
}
RUST
cargo run --quiet --release
