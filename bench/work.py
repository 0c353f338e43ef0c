"""Kinds of work that parts measure in this process, and their sessions."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache

from tollbar import study
from tollbar.core import machine
from tollbar.core.records import CLIENT, ChunkRecord
from tollbar.core.runner import Session
from tollbar.lab import workloads
from tollbar.lab.servers.sandbox import Sandbox
from tollbar.lab.workloads import Work
from tollbar.study import plan
from tollbar.study.plan.cells import Cell

LIMIT_S = 60.0

OPERATIONS = """
question  = "What?"
family    = "{family}"
choices   = ["{choice}"]
providers = ["libcrypto"]
baseline  = "{choice}"
[vary]
op = ["{op}"]
{vary}
"""
SERVED = """
question  = "What?"
family    = "tls"
servers      = ["{server}"]
choices   = ["{choice}"]
baseline  = "{choice}"
[vary]
op           = ["{op}"]
{vary}
bytes        = ["4 KiB"]
[load]
users   = [8]
request = {{ get = "/bytes/{{bytes}}" }}
"""
HANDSHAKE = 'certificate = ["ecdsa-p256"]\nkey-exchange = ["x25519"]'
SHA_2 = "SHA-256 of 4 KiB"
SHA_3 = "SHA3-256 of 4 KiB"
RSA = "RSA-2048 sign"
GCM = "AES-256-GCM of 1 MiB"
ARGON = "Argon2id"
SCRYPT = "scrypt of 16 MiB"
NGINX = "an nginx handshake"
HTTPD = "an httpd handshake"
EMBEDDED = "an embedded handshake"
PLAIN = "a plain nginx request"
READ = "a read in SQLite"
MARIADB = "a read in MariaDB"
POSTGRESQL = "a read in PostgreSQL"
JAVA = "SHA-256 of 4 KiB in Java"
SCRAM = "a sign-on to PostgreSQL by SCRAM"
BARE = "a plain embedded request"
ANONYMOUS = "an anonymous embedded request"
PLAIN_EMBEDDED = SERVED.format(server="embedded", choice="plaintext", op="request", vary="").replace(
    "choices ", 'providers = ["aws-lc"]\nchoices '
)
# Name of each work here, and its place among the families.
WORK = {
    SHA_2: OPERATIONS.format(family="digest", choice="sha-256", op="hash", vary='bytes = ["4 KiB"]'),
    SHA_3: OPERATIONS.format(family="digest", choice="sha3-256", op="hash", vary='bytes = ["4 KiB"]'),
    RSA: OPERATIONS.format(family="signature", choice="rsa-2048", op="sign", vary='bytes = ["32 B"]'),
    GCM: OPERATIONS.format(family="cipher", choice="aes-256-gcm", op="encrypt", vary='bytes = ["1 MiB"]'),
    ARGON: OPERATIONS.format(family="password-hash", choice="argon2id-owasp-19m", op="hash", vary="").replace(
        '"libcrypto"', '"rustcrypto"'
    ),
    SCRYPT: OPERATIONS.format(family="password-hash", choice="scrypt", op="hash", vary='n = ["2^14"]'),
    NGINX: SERVED.format(server="nginx", choice="tls-1.3", op="connect", vary=HANDSHAKE),
    HTTPD: SERVED.format(server="httpd", choice="tls-1.3", op="connect", vary=HANDSHAKE),
    EMBEDDED: SERVED.format(server="embedded", choice="tls-1.3", op="connect", vary=HANDSHAKE).replace(
        "choices ", 'providers = ["aws-lc"]\nchoices '
    ),
    PLAIN: SERVED.format(server="nginx", choice="plaintext", op="request", vary=""),
    BARE: PLAIN_EMBEDDED,
    ANONYMOUS: PLAIN_EMBEDDED.replace('"tls"', '"web-auth"')
    .replace('"plaintext"', '"anonymous"')
    .replace("bytes ", 'transport = ["clear"]\nbytes '),
    READ: OPERATIONS.format(family="storage", choice="plaintext", op="read", vary="rows = [2000]").replace(
        '"libcrypto"', '"sqlite"'
    ),
    MARIADB: OPERATIONS.format(family="storage", choice="plaintext", op="read", vary="rows = [2000]").replace(
        'providers = ["libcrypto"]', 'providers = ["aws-lc"]\nservers      = ["mariadb"]'
    ),
    POSTGRESQL: OPERATIONS.format(family="storage", choice="plaintext", op="read", vary="rows = [2000]").replace(
        'providers = ["libcrypto"]', 'providers = ["aws-lc"]\nservers      = ["postgresql"]'
    ),
    JAVA: OPERATIONS.format(family="digest", choice="sha-256", op="hash", vary='bytes = ["4 KiB"]').replace(
        '"libcrypto"', '"java"'
    ),
    SCRAM: OPERATIONS.format(family="database-sign-on", choice="scram-sha-256", op="sign-on", vary="").replace(
        '"libcrypto"', '"aws-lc"'
    ),
}


@cache
def core() -> int | None:
    """Return the measuring core, as it was before this process kept off it."""
    return machine.measuring_core()


@dataclass(frozen=True, slots=True)
class Running:
    """Warm session of some work."""

    session: Session
    work: Work

    def chunk(self, seconds: float) -> ChunkRecord:
        """Return its next chunk of these seconds.

        Raises Stopped.
        """
        return self.session.advance(seconds, self.work.fewest, LIMIT_S)

    def spent_ns(self, chunk: ChunkRecord) -> float:
        """Return the cost of a chunk's operations together: of a runner, or of a server without its client."""
        return float(sum(ns for name, ns in self.work.cpu_ns(chunk).items() if name != CLIENT))


def running(stack: ExitStack, name: str, seed: int, *, lead: bool = True) -> Running:
    """Start a fresh process, and a fresh server if there is one.

    Without `lead` its chunks have no unclocked beginning.
    """
    cell = _cell(WORK[name])
    workload = workloads.of(cell)
    sandbox = stack.enter_context(Sandbox()) if workload.needs_sandbox(cell) else None
    work = stack.enter_context(workload.up(cell, seed, sandbox, core()))
    task = dict(work.task)
    if not lead:
        task |= {"load": {**task["load"], "lead": False}} if "load" in task else {"lead": False}
    session = stack.enter_context(Session(work.command, task, core=work.core, account=work.account))
    session.ready(LIMIT_S)
    return Running(session, work)


def _cell(text: str) -> Cell:
    (one,) = plan.make([study.read("work", text, where="bench")], seed=1).studies
    return one.cells[0]
