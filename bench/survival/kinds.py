"""Kinds of runs: a study for each, small enough that a kill and the work after it take some seconds."""

from __future__ import annotations

from bench.ground import EVERY_SERVER, STUDY
from tollbar.core.intervals import FEWEST_BLOCKS

BLOCKS = FEWEST_BLOCKS
# A busy machine must not add any more.
EXACTLY = ("--blocks", BLOCKS)
PRIMITIVES = """
question  = "What is left of this?"
family    = "digest"
choices   = [{choices}]
providers = {providers}
baseline  = {baseline}

[vary]
op    = ["hash"]
bytes = ["4 KiB"]
{vary}

[measure]
chunk  = "2 ms"
rounds = 4
blocks = BLOCKS
"""
STORAGE = """
question  = "What is left of this?"
family    = "storage"
choices   = ["plaintext", "aes-256-gcm"]
{where}
baseline  = "plaintext"

[vary]
op   = ["read"]
rows = [200]

[measure]
chunk  = "2 ms"
rounds = 4
blocks = BLOCKS
"""


SIGN_IN = """
question  = "What is left of this?"
family    = "web-auth"
choices   = ["anonymous", "{choice}"]
providers = ["libcrypto"]
servers      = ["{server}"]
baseline  = "anonymous"

[vary]
op        = ["request"]
accounts  = [1]
transport = ["clear"]
{vary}

[load]
users   = [2]
request = {{ get = "/bytes/{{bytes}}" }}
expect  = {{ bytes = "{{bytes}}" }}

[measure]
chunk  = "2 ms"
rounds = 4
blocks = BLOCKS
"""


def _platform(name: str) -> str:
    """Return a study of a hash through this platform, compared with the engine's own."""
    baseline = '{ provider = "libcrypto" }'
    return PRIMITIVES.format(
        choices='"sha-256"', providers=f'["libcrypto", "{name}"]', baseline=baseline, vary='lookup = ["implicit"]'
    )


def _served(server: str) -> str:
    return STUDY.format(servers=f'["{server}"]', rounds=4, blocks="BLOCKS").replace(
        '["tls-1.3"]', '["tls-1.3", "plaintext"]'
    )


def _by_ticket(server: str, directory: str, runs: str) -> str:
    """Return a study of Kerberos with this directory and this checker of the ticket."""
    vary = f'groups    = [100]\ndirectory = ["{directory}"]\nruns      = ["{runs}"]'
    return SIGN_IN.format(choice="kerberos", server=server, vary=vary)


KINDS: dict[str, str] = {
    # A single construction: SHA-256, which has processor instructions, gave other results next to other tests.
    "primitives": PRIMITIVES.format(
        choices='"sha3-256", "sha3-512"', providers='["libcrypto"]', baseline='"sha3-256"', vary=""
    ),
    **{server: _served(server) for server in ("embedded", "nginx", "httpd")},
    "samba": _by_ticket("httpd", "samba", "in-server"),
    "kdc": _by_ticket("httpd", "mit", "gssproxy"),
    "authenticator": _by_ticket("nginx", "mit", "auth-request"),
    "accounts": SIGN_IN.format(choice="basic", server="httpd", vary='store = ["sql"]\npassword-hash = ["sha-1"]'),
    "every server": EVERY_SERVER,
    "sqlite": STORAGE.format(where='providers = ["sqlite"]'),
    **{
        server: STORAGE.format(where=f'servers = ["{server}"]\nproviders = ["aws-lc"]')
        for server in ("postgresql", "mariadb")
    },
    **{name: _platform(name) for name in ("python", "node", "java", "go", "dotnet")},
}
# Kinds whose runs have at most one kind of process besides the lab.
WITHOUT_SERVERS = frozenset({"primitives", "sqlite", "python", "node", "java", "go", "dotnet"})
SERVED = frozenset(KINDS) - WITHOUT_SERVERS
WITH_SERVERS_OF_OTHERS = SERVED - {"embedded", "postgresql", "mariadb"}
WITH_DATABASES = frozenset({"postgresql", "mariadb", "accounts", "every server"})


def study_of(kind: str) -> str:
    """Return the text of the kind's study."""
    return KINDS[kind].replace("BLOCKS", str(BLOCKS))
