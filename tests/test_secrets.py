"""Secrets of a run: searched for in files, in arguments and environments of processes, and in output."""

from __future__ import annotations

import base64
import contextlib
import math
import os
import re
import stat
import struct
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from bench.ground import Ground, a_ground
from bench.survival.kinds import KINDS, STORAGE

from conftest import here
from tollbar.core import proc

# The lab makes its secrets by the module `secrets`; shorter values only name files. Packed state of a preparation stays
# in its first place until it was searched, because it moves to the cache a moment later.
WATCHED = """
import os, secrets, sys, time
notes, parent = sys.argv.pop(1), os.getppid()
told = open(notes + "/made", "ab", 0)
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
from tollbar.lab.servers import prepared
def looked_at(prepare):
    def prepare_and_wait(*arguments):
        archive = prepare(*arguments)
        os.symlink(archive, notes + "/packed")
        while os.path.islink(notes + "/packed") and os.getppid() == parent:
            time.sleep(0.01)
        return archive
    return prepare_and_wait
prepared._prepare = looked_at(prepared._prepare)
from tollbar.cli import main
sys.argv[0] = "tollbar"
main()
"""
SIGN_IN = """
question  = "Where are its secrets?"
family    = "web-auth"
choices   = ["anonymous", "basic"]
providers = ["libcrypto"]
servers      = ["httpd"]
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
servers      = ["embedded"]
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


class Kind(NamedTuple):
    """Study with a server or a database that gets secrets."""

    text: str
    servers: tuple[str, ...]
    """Servers that must be installed."""
    kept: frozenset[str]
    """Suffixes of files in the run's directory that must have held secrets, or else nothing was searched."""
    made: frozenset[str] = frozenset()
    """Suffixes, among these, of files with secrets that the lab made."""
    preparations: int = 0


OF_DIRECTORIES = frozenset({".tsv", ".password", ".keytab"})
STUDIES = {
    "TLS keys": Kind(KINDS["nginx"], ("nginx",), frozenset({".key"})),
    "the key of an encrypted table": Kind(
        STORAGE.format(where='servers = ["mariadb"]\nproviders = ["aws-lc"]').replace(
            "aes-256-gcm", "table-encryption"
        ),
        ("mariadb",),
        frozenset({".txt"}),
        frozenset({".txt"}),
        preparations=1,
    ),
    "passwords in a database": Kind(
        SIGN_IN,
        ("httpd", "postgresql-accounts"),
        frozenset({".tsv", ".password"}),
        frozenset({".password"}),
        preparations=1,
    ),
    "tokens and session cookies": Kind(
        TOKENS, ("embedded",), frozenset({".tsv", ".token", ".key"}), frozenset({".token"})
    ),
    "a domain's passwords and keytabs": Kind(KINDS["samba"], ("httpd", "samba"), OF_DIRECTORIES, preparations=1),
    "a realm's passwords and keytabs, by gssproxy": Kind(
        KINDS["kdc"], ("httpd", "mit", "gssproxy"), OF_DIRECTORIES, preparations=1
    ),
}
PRIVATE_KEY = b"PRIVATE KEY-----"


@pytest.fixture
def ground() -> Iterator[Ground]:
    """Yield a ground whose runs record the secrets they make."""
    with a_ground() as ground:
        yield ground


@pytest.mark.share(0)
@pytest.mark.parametrize("name", STUDIES)
def test_no_secret_is_where_others_can_read_it(ground: Ground, tmp_path: Path, name: str) -> None:
    """Secrets are only in files that their owner alone can reach, during the run and after it.

    These files are in the run's directory and in the prepared state of the user's cache. The cache is empty at first,
    so that everything is prepared.
    """
    kind = STUDIES[name]
    for server in kind.servers:
        here(server)
    (ground.folder / "study.toml").write_text(kind.text.replace("BLOCKS", "4"))
    words = [sys.executable, "-c", WATCHED, str(tmp_path), "run", "study.toml", "--blocks", "1", "--json"]
    cache, packed = ground.folder / "cache", tmp_path / "packed"
    own = {"TMPDIR": str(ground.temporary), "HOME": str(ground.folder), "XDG_CACHE_HOME": str(cache)}
    prepared = cache / "tollbar" / "prepared"
    found: set[str] = set()
    kept: set[str] = set()
    kept_of_made: set[str] = set()
    held: dict[Path, list[bytes]] = {}
    looked_at = 0
    with open(tmp_path / "said", "wb") as said:
        run = subprocess.Popen(
            words, cwd=ground.folder, env={**os.environ, **own}, stdout=said, stderr=subprocess.STDOUT
        )
    while run.poll() is None:
        is_packed = packed.is_symlink()
        if is_packed:
            note_packed(packed.readlink(), held)
        # Processes first: secrets made later are found the next time.
        places = [*of_processes(run.pid), *of_files(ground.folder)]
        note_held(ground.temporary, held)
        secrets = {*made(tmp_path), *flat(held)}
        found |= shown(places, secrets)
        owners = [*of_owners(ground.folder)]
        kept |= {Path(place).suffix for place in shown(owners, secrets)}
        kept_of_made |= {Path(place).suffix for place in shown(owners, made(tmp_path))}
        if is_packed:
            looked_at += 1
            packed.unlink()
        with contextlib.suppress(subprocess.TimeoutExpired):
            run.wait(0.05)
    assert 0 == run.returncode, (tmp_path / "said").read_text()
    said_of_it = (str(tmp_path / "said"), (tmp_path / "said").read_bytes())
    found |= shown([said_of_it, *of_files(ground.folder)], {*made(tmp_path), *flat(held)})
    assert not found
    archives = [*prepared.glob("*.tar")]
    assert (kind.preparations, kind.preparations) == (looked_at, len(archives))
    assert {0o600} >= {stat.S_IMODE(archive.stat().st_mode) for archive in archives}
    assert kind.kept <= kept, f"nothing was looked for of what these hold: {kind.kept - kept}"
    assert kind.made <= kept_of_made, f"nothing was looked for of what the lab has put in {kind.made - kept_of_made}"


def test_the_scanner_finds_what_is_shown(tmp_path: Path) -> None:
    """Plain, in hexadecimal and in base64; also in a file that only its owner can read."""
    secret = b"0123456789abcdef"
    run, elsewhere = tmp_path / "tmp" / "tollbar-1", tmp_path / "runs"
    for place in (run, elsewhere):
        place.mkdir(parents=True)
        for number, word in enumerate((secret, secret.hex().encode(), base64.b64encode(secret), PRIVATE_KEY)):
            (place / f"shown-{number}").write_bytes(b"so: " + word)
        (place / "kept").write_bytes(secret)
        (place / "kept").chmod(0o600)
        (place / "folder").mkdir(0o700)
        (place / "folder" / "behind").write_bytes(secret)

    def names(places: Iterable[tuple[str, bytes]]) -> set[str]:
        return {os.path.relpath(place, tmp_path) for place in shown(places, [secret])}

    readable = {f"shown-{number}" for number in range(4)}
    in_run, in_others = ({f"tmp/tollbar-1/{one}" for one in readable}, {f"runs/{one}" for one in readable})
    assert {*in_run, *in_others, "runs/kept", "runs/folder/behind"} == names(of_files(tmp_path))
    assert {"tmp/tollbar-1/kept"} == names(of_owners(tmp_path))


def test_what_was_packed_is_known(tmp_path: Path) -> None:
    (tmp_path / "bind.password").write_bytes(b"0123456789abcdef")
    with tarfile.open(tmp_path / "packed.tar", "w") as archive:
        archive.add(tmp_path / "bind.password", "./bind.password")
    held: dict[Path, list[bytes]] = {}
    note_packed(tmp_path / "packed.tar", held)
    assert [b"0123456789abcdef"] == flat(held)


def test_keys_are_found_in_a_keytab(tmp_path: Path) -> None:
    key = bytes(range(32))
    entry = struct.pack(">HH3sH4sIIBHH", 1, 3, b"ONE", 4, b"HTTP", 1, 0, 1, 18, len(key)) + key
    path = tmp_path / "web1.keytab"
    # The hole is a removed key.
    path.write_bytes(
        b"\x05\x02" + struct.pack(">i", -8) + bytes(8) + struct.pack(">i", len(entry) + 4) + entry + bytes(4)
    )
    assert [key] == secrets_in(path, path.read_bytes())


def note_held(folder: Path, held: dict[Path, list[bytes]]) -> None:
    """Add the passwords, keys and tokens in files of directories and accounts, once the files are complete."""
    for root, _, names in os.walk(folder):
        for name in names:
            path = Path(root, name)
            # A file that is still being written may have a part of them.
            if path.suffix in HOLDING and not held.get(path):
                with contextlib.suppress(OSError, struct.error):
                    held[path] = secrets_in(path, path.read_bytes())


def note_packed(archive: Path, held: dict[Path, list[bytes]]) -> None:
    """Add the secrets in the files that a preparation has packed."""
    with tarfile.open(archive) as files:
        for member in files:
            path = archive / member.name
            if path.suffix in HOLDING and (content := files.extractfile(member)):
                held[path] = secrets_in(path, content.read())


# Names, passwords and further columns; a password, or PostgreSQL's line that ends with it; keys; a token.
HOLDING = (".tsv", ".password", ".keytab", ".token")


def secrets_in(path: Path, content: bytes) -> list[bytes]:
    """Return the secrets of a complete file."""
    match path.suffix:
        case ".tsv":
            # Only some of ten thousand accounts, because each is searched for in every file.
            found = [line.split(b"\t")[1] for line in content.splitlines()[:20]]
        case ".keytab":
            found = [*keys_of(content)]
        case _:
            found = [content.strip().rpartition(b":")[2]]
    return [secret for secret in found if len(secret) >= 16]


def keys_of(keytab: bytes) -> Iterator[bytes]:
    """Yield the keys of a keytab in MIT's file format, version 2, which is big-endian."""
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
    """Return all secrets."""
    return [secret for secrets in held.values() for secret in secrets]


def made(folder: Path) -> list[bytes]:
    """Return all secrets that the lab has made."""
    with contextlib.suppress(FileNotFoundError):
        return [bytes.fromhex(line) for line in (folder / "made").read_text().split()]
    return []


def shown(places: Iterable[tuple[str, bytes]], secrets: Iterable[bytes]) -> set[str]:
    """Return the places that contain a secret in any form, or a private key."""
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
    """Yield the arguments and environments of a process and all below it."""
    for pid in proc.tree(root):
        for kind in ("cmdline", "environ"):
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes()[:200].decode(errors="replace")
                yield f"{kind} of {words}", Path(f"/proc/{pid}/{kind}").read_bytes()


# Below a ground: the run's directory, and prepared state in the user's cache.
OWN = re.compile(r"tmp/tollbar-[^/]+(/.*)?|cache/tollbar/prepared(/.*)?")
# Larger files are databases, which take long to search.
SMALL_BYTES = 100_000


def of_files(ground: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the content of files below a ground; in owner-only places, of files that another user can read."""
    for is_own, path in reached(ground):
        if not is_own or mode(path) & 0o044:
            yield from content_of(path)


def of_owners(ground: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the content of small files in owner-only places that another user can reach but not read."""
    for is_own, path in reached(ground):
        if is_own and not mode(path) & 0o044:
            yield from content_of(path, SMALL_BYTES)


def reached(ground: Path) -> Iterator[tuple[bool, Path]]:
    """Yield the files below a ground, and whether each is in an owner-only place.

    In such a place only files in reach of another user are yielded.
    """
    for root, folders, names in os.walk(ground):
        is_own = OWN.fullmatch(os.path.relpath(root, ground)) is not None
        if is_own:
            folders[:] = [one for one in folders if mode(Path(root, one)) & 0o011]
        yield from ((is_own, Path(root, name)) for name in names)


def content_of(path: Path, most: float = math.inf) -> Iterator[tuple[str, bytes]]:
    """Yield the content of a regular file that still exists."""
    with contextlib.suppress(OSError):
        if path.is_file() and path.stat().st_size <= most:
            yield str(path), path.read_bytes()


def mode(path: Path) -> int:
    """Return the mode of a file, or 0 if it is gone."""
    with contextlib.suppress(OSError):
        return path.stat().st_mode
    return 0
