use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::targets::{MOST_BYTES, TARGETS};
use tollbar_contract::random::Sequence;

/// Reads the stored inputs of a target, a line each in base64: seeds, inputs that covered new code, and
/// former crashes.
fn kept(name: &str) -> Vec<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpora").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(|line| STANDARD.decode(line).expect("base64")).collect()
}

/// Changes some bytes of an input, or joins pieces of two.
fn changed(inputs: &[Vec<u8>], random: &mut Sequence) -> Vec<u8> {
    let some = |random: &mut Sequence| &inputs[random.under(inputs.len() as u64) as usize];
    let mut bytes = some(random).clone();
    for _ in 0..=random.under(4) {
        let at = random.under(bytes.len() as u64 + 1) as usize;
        match random.under(6) {
            0 => bytes.insert(at, random.draw() as u8),
            1 => bytes.truncate(at),
            2 => bytes.splice(at..at, bytes[at..].to_vec()).for_each(drop),
            3 => {
                let other = some(random);
                bytes.truncate(at);
                bytes.extend(&other[random.under(other.len() as u64 + 1) as usize..]);
            }
            _ if at < bytes.len() => bytes[at] = random.draw() as u8,
            _ => {}
        }
    }
    bytes.truncate(MOST_BYTES);
    bytes
}

#[test]
fn no_input_that_is_kept_nor_one_like_it_is_a_panic() {
    const CHANGED: usize = 20_000;
    for target in TARGETS {
        let inputs = kept(target.name);
        let mut random = Sequence::of(1, [0, 0]);
        let mut give = (target.make)();
        inputs.iter().for_each(|input| give(input));
        (0..CHANGED).for_each(|_| give(&changed(&inputs, &mut random)));
    }
}
