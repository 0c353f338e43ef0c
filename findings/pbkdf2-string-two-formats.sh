#!/usr/bin/env bash
# Two libraries write `$pbkdf2-sha256$…` for a stored password, and neither reads the other's.
#
# passlib puts the iterations there as a bare number and spells Base64 with "." for "+". RustCrypto's crate `pbkdf2` puts
# the parameters by name (i=…,l=…), as the PHC string format asks, in Base64 without padding. Both begin with the same
# identifier, so the prefix by which a login chooses its verifier cannot tell them apart. passlib even says that
# RustCrypto's string is its own (`identify` is true), and then raises ValueError about an integer. An expert expects what
# the same two do for scrypt: one string from both, which each verifies.
#
# Seen with passlib 1.7.4 (PyPI) and the crates pbkdf2 0.12.2 and scrypt 0.11.0, password, salt and iterations alike:
#   pbkdf2: the derived bytes are equal; each side refuses the other's string
#   scrypt: the strings are equal, and each side accepts
# Needs Python 3.11 or 3.12 and Cargo. Ends with 0 while all of it is so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q --disable-pip-version-check passlib==1.7.4
mkdir src
cat > Cargo.toml <<'TOML'
[package]
name = "stored"
version = "0.1.0"
edition = "2021"

[dependencies]
pbkdf2 = { version = "=0.12.2", features = ["simple", "std"] }
scrypt = { version = "=0.11.0", features = ["simple", "std"] }
TOML
cat > src/main.rs <<'RUST'
use pbkdf2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use pbkdf2::Pbkdf2;
use scrypt::Scrypt;

const PASSWORD: &[u8] = b"an example";

fn main() {
    let salt = SaltString::encode_b64(b"sixteen bytes ..").expect("a salt");
    let read: Vec<String> = std::env::args().skip(1).collect();
    if read.is_empty() {
        let cost = pbkdf2::Params { rounds: 1000, output_length: 32 };
        println!("{}", Pbkdf2.hash_password_customized(PASSWORD, None, None, cost, &salt).expect("a hash"));
        let cost = scrypt::Params::new(10, 8, 1, 32).expect("a cost");
        println!("{}", Scrypt.hash_password_customized(PASSWORD, None, None, cost, &salt).expect("a hash"));
    } else {
        println!("RustCrypto reads passlib's pbkdf2: {}", verified(&Pbkdf2, &read[0]));
        println!("RustCrypto reads passlib's scrypt: {}", verified(&Scrypt, &read[1]));
    }
}

fn verified(with: &dyn PasswordVerifier, text: &str) -> String {
    match PasswordHash::new(text).and_then(|stored| with.verify_password(PASSWORD, &stored)) {
        Ok(()) => "accepted".to_owned(),
        Err(error) => format!("error: {error}"),
    }
}
RUST
cat > stored.py <<'PYTHON'
import sys

from passlib.hash import pbkdf2_sha256, scrypt
from passlib.utils.binary import ab64_decode, b64s_decode

PASSWORD = "an example"


def verified(handler, text):
    try:
        return "accepted" if handler.verify(PASSWORD, text) else "refused"
    except ValueError as error:
        return f"ValueError: {error}"


ours = [handler.using(rounds=rounds, salt=b"sixteen bytes ..").hash(PASSWORD)
        for handler, rounds in ((pbkdf2_sha256, 1000), (scrypt, 10))]
if sys.argv[1:]:
    theirs = sys.argv[1:]
    same = ab64_decode(ours[0].split("$")[-1]) == b64s_decode(theirs[0].split("$")[-1])
    print("passlib identifies RustCrypto's pbkdf2 as its own:", pbkdf2_sha256.identify(theirs[0]))
    print("passlib reads RustCrypto's pbkdf2:", verified(pbkdf2_sha256, theirs[0]))
    print("passlib reads RustCrypto's scrypt:", verified(scrypt, theirs[1]))
    print("derived bytes of pbkdf2 are equal:", same)
    print("strings of scrypt are equal:", ours[1] == theirs[1])
else:
    print("\n".join(ours))
PYTHON
cargo build -q
mapfile -t rust < <(target/debug/stored)
mapfile -t python < <(venv/bin/python stored.py)
printf '%s\n' "${rust[0]}" "${python[0]}"
{
  target/debug/stored "${python[@]}"
  venv/bin/python stored.py "${rust[@]}"
} | tee seen
diff seen - <<'EXPECTED'
RustCrypto reads passlib's pbkdf2: error: password hash string contains trailing characters
RustCrypto reads passlib's scrypt: accepted
passlib identifies RustCrypto's pbkdf2 as its own: True
passlib reads RustCrypto's pbkdf2: ValueError: invalid literal for int() with base 10: 'i=1000,l=32'
passlib reads RustCrypto's scrypt: accepted
derived bytes of pbkdf2 are equal: True
strings of scrypt are equal: True
EXPECTED
