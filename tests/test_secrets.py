"""Secrets that a run makes: searched for in files, in arguments and environments of processes, in what is said."""

from __future__ import annotations

import base64
import contextlib
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.ground import Ground, a_ground
from bench.survival.kinds import KINDS

from conftest import here
from tollbar.beds import proc

# What the lab makes itself, it makes by this module; what is shorter names files, and keeps nothing from anybody.
WATCHED = """
import secrets, sys
told = open("made", "ab", 0)
def watched(make):
    def made(*arguments):
        value = make(*arguments)
        word = value if isinstance(value, bytes) else value.encode()
        if len(word) >= 16:
            told.write(word.hex().encode() + b"\\n")
        return value
    return made
for name in ("token_bytes", "token_hex", "token_urlsafe"):
    setattr(secrets, name, watched(getattr(secrets, name)))
from tollbar.cli import main
sys.argv[0] = "tollbar"
main()
"""
SIGN_IN = """
question  = "Where are its secrets?"
family    = "web-auth"
choices   = ["anonymous", "basic"]
providers = ["libcrypto"]
beds      = ["httpd"]
baseline  = "anonymous"

[vary]
op            = ["request"]
accounts      = [1]
store         = ["sql"]
password-hash = ["sha-1"]
transport     = ["clear"]

[load]
users   = [2]
request = { get = "/bytes/{bytes}" }
expect  = { bytes = "{bytes}" }

[measure]
chunk  = "2 ms"
rounds = 4
blocks = 4
"""
TOKENS = """
question  = "Where are its secrets?"
family    = "web-auth"
choices   = ["anonymous", "session-cookie", "jwt", "opaque-token", "api-key", "hmac"]
providers = ["libcrypto"]
beds      = ["embedded"]
baseline  = "anonymous"

[vary]
op        = ["request"]
accounts  = [2]
transport = ["clear"]

[load]
users   = [2]
request = { get = "/bytes/{bytes}" }
expect  = { bytes = "{bytes}" }

[measure]
chunk  = "2 ms"
rounds = 4
blocks = 4
"""
# Each with a server, or a database, that is told secrets; and what must be here for it.
STUDIES = {
    "TLS keys": (KINDS["nginx"], ("nginx",)),
    "keys of stored columns": (KINDS["postgresql"], ("postgresql",)),
    "passwords in a database": (SIGN_IN, ("httpd", "postgresql-accounts")),
    "tokens and session cookies": (TOKENS, ("embedded",)),
    "a domain's passwords and keytabs": (KINDS["samba"], ("httpd", "samba")),
    "a realm's passwords and keytabs, by gssproxy": (KINDS["kdc"], ("httpd", "mit", "gssproxy")),
}
# In which files there must have been some.
HELD_BY = {
    "tokens and session cookies": {".tsv"},
    "a domain's passwords and keytabs": {".tsv", ".password", ".keytab"},
    "a realm's passwords and keytabs, by gssproxy": {".tsv", ".password", ".keytab"},
}
PRIVATE_KEY = b"PRIVATE KEY-----"


@pytest.fixture
def ground() -> Iterator[Ground]:
    """A ground whose runs make secrets that are written down."""
    with a_ground() as ground:
        yield ground


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", STUDIES)
def test_no_secret_is_where_others_can_read_it(ground: Ground, name: str) -> None:
    """Neither while it runs nor after it: files that only their owner can reach are the one place for them."""
    text, beds = STUDIES[name]
    for bed in beds:
        here(bed)
    (ground.folder / "study.toml").write_text(text.replace("BLOCKS", "4"))
    words = [sys.executable, "-c", WATCHED, "run", "study.toml", "--blocks", "1", "--json"]
    environment = {**os.environ, "TMPDIR": str(ground.temporary), "HOME": str(ground.folder)}
    found: set[str] = set()
    held: dict[Path, list[bytes]] = {}
    with open(ground.folder / "said", "wb") as said:
        run = subprocess.Popen(words, cwd=ground.folder, env=environment, stdout=said, stderr=subprocess.STDOUT)
    while run.poll() is None:
        # Those of the processes first: what is made after that is met the next time.
        places = [*of_processes(run.pid), *of_files(ground.temporary), *of_files(ground.folder / ".cache")]
        note_held(ground.temporary, held)
        found |= shown(places, [*made(ground.folder), *flat(held)])
        with contextlib.suppress(subprocess.TimeoutExpired):
            run.wait(0.05)
    assert 0 == run.returncode, (ground.folder / "said").read_text()
    said_of_it = (str(ground.folder / "said"), (ground.folder / "said").read_bytes())
    left = [said_of_it, *of_files(ground.folder / "runs"), *of_files(ground.folder / ".cache")]
    found |= shown(left, [*made(ground.folder), *flat(held)])
    assert not found
    kinds = {path.suffix for path, secrets in held.items() if secrets}
    assert HELD_BY.get(name, set()) <= kinds, f"nothing was looked for of what directories and accounts hold: {kinds}"


def test_the_scanner_finds_what_is_shown(tmp_path: Path) -> None:
    """A secret in a readable file is found as it is, in hexadecimal and in base64; in one of its owner's it is not."""
    secret = b"0123456789abcdef"
    for number, word in enumerate((secret, secret.hex().encode(), base64.b64encode(secret), PRIVATE_KEY)):
        (tmp_path / f"shown-{number}").write_bytes(b"so: " + word)
    (tmp_path / "kept").write_bytes(secret)
    (tmp_path / "kept").chmod(0o600)
    (tmp_path / "folder").mkdir(0o700)
    (tmp_path / "folder" / "behind").write_bytes(secret)
    assert {f"shown-{number}" for number in range(4)} == {
        Path(place).name for place in shown(of_files(tmp_path), [secret])
    }


def test_keys_are_found_in_a_keytab(tmp_path: Path) -> None:
    """Behind a hole, and before a longer version number."""
    key = bytes(range(32))
    entry = struct.pack(">HH3sH4sIIBHH", 1, 3, b"ONE", 4, b"HTTP", 1, 0, 1, 18, len(key)) + key
    path = tmp_path / "web1.keytab"
    # The hole is where a key was that was removed.
    path.write_bytes(
        b"\x05\x02" + struct.pack(">i", -8) + bytes(8) + struct.pack(">i", len(entry) + 4) + entry + bytes(4)
    )
    assert [key] == secrets_in(path)


def note_held(folder: Path, held: dict[Path, list[bytes]]) -> None:
    """Adds the passwords, keys and tokens that files of directories and accounts have, each once they are whole."""
    for root, _, names in os.walk(folder):
        for name in names:
            path = Path(root, name)
            # One that is still being written may have a part of them.
            if path.suffix in HOLDING and not held.get(path):
                with contextlib.suppress(OSError, struct.error):
                    held[path] = secrets_in(path)


# Names, passwords and further columns; a password, or PostgreSQL's line that ends with it; keys; a token.
HOLDING = (".tsv", ".password", ".keytab", ".token")


def secrets_in(path: Path) -> list[bytes]:
    """Those of a file that is whole."""
    content = path.read_bytes()
    match path.suffix:
        case ".tsv":
            # Of ten thousand accounts, some: each is looked for in every file.
            found = [line.split(b"\t")[1] for line in content.splitlines()[:20]]
        case ".keytab":
            found = [*keys_of(content)]
        case _:
            found = [content.strip().rpartition(b":")[2]]
    return [secret for secret in found if len(secret) >= 16]


def keys_of(keytab: bytes) -> Iterator[bytes]:
    """MIT's file format, version 2: all numbers begin with their highest byte."""
    at = 2
    while at + 4 <= len(keytab):
        (size,) = struct.unpack_from(">i", keytab, at)
        at += 4
        if size > 0:
            (components,) = struct.unpack_from(">H", keytab, at)
            within = at + 2
            for _ in range(components + 1):
                within += 2 + struct.unpack_from(">H", keytab, within)[0]
            # Type of the name, time, version and type of the key.
            within += 4 + 4 + 1 + 2
            (length,) = struct.unpack_from(">H", keytab, within)
            yield keytab[within + 2 : within + 2 + length]
        at += abs(size)


def flat(held: dict[Path, list[bytes]]) -> list[bytes]:
    """All of them."""
    return [secret for secrets in held.values() for secret in secrets]


def made(folder: Path) -> list[bytes]:
    """All secrets that were made so far."""
    with contextlib.suppress(FileNotFoundError):
        return [bytes.fromhex(line) for line in (folder / "made").read_text().split()]
    return []


def shown(places: Iterator[tuple[str, bytes]] | list[tuple[str, bytes]], secrets: list[bytes]) -> set[str]:
    """The places that have one of them, in whichever of its forms, or a private key."""
    forms = [PRIVATE_KEY]
    for secret in secrets:
        forms += [
            secret,
            secret.hex().encode(),
            base64.b64encode(secret).rstrip(b"="),
            base64.urlsafe_b64encode(secret).rstrip(b"="),
        ]
    return {place for place, content in places if any(form in content for form in forms)}


def of_processes(root: int) -> Iterator[tuple[str, bytes]]:
    """Arguments and environments of a process and all below it."""
    for pid in proc.tree(root):
        for kind in ("cmdline", "environ"):
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes()[:200].decode(errors="replace")
                yield f"{kind} of {words}", Path(f"/proc/{pid}/{kind}").read_bytes()


def of_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """What another user can read below a folder."""
    for root, folders, names in os.walk(folder):
        with contextlib.suppress(OSError):
            folders[:] = [one for one in folders if os.stat(Path(root, one)).st_mode & 0o011]
        for name in names:
            path = Path(root, name)
            with contextlib.suppress(OSError):
                if path.is_file() and path.stat().st_mode & 0o044:
                    yield str(path), path.read_bytes()
