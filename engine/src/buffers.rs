//! Data to work on.

/// Bytes that look random and depend on nothing but the seed.
pub fn filled(bytes: usize, seed: u64) -> Vec<u8> {
    // SplitMix64: any seed, zero included, gives bytes without a pattern that a library could profit from.
    let mut state = seed;
    let mut data = Vec::with_capacity(bytes + 8);
    while data.len() < bytes {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        data.extend_from_slice(&(z ^ (z >> 31)).to_le_bytes());
    }
    data.truncate(bytes);
    data
}

/// A copy with its first bit turned, or one byte more where there is no bit to turn.
pub fn tampered(data: &[u8]) -> Vec<u8> {
    let mut other = data.to_vec();
    match other.first_mut() {
        Some(byte) => *byte ^= 1,
        None => other.push(0),
    }
    other
}

/// A copy with the lowest bit of its last byte turned. The first bytes of a signature are DER's in DSA and ECDSA, and
/// would be refused for their form alone.
pub fn tampered_at_end(data: &[u8]) -> Vec<u8> {
    let mut other = data.to_vec();
    if let Some(byte) = other.last_mut() {
        *byte ^= 1;
    }
    other
}
