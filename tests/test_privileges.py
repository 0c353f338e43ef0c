"""Servers that root's lab has started: which capabilities each process has, and that it can gain none."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from bench.ground import RUN_LIMIT_S, Ground, a_ground, cells_of
from bench.survival.kinds import BLOCKS, KINDS

from conftest import here, lacking
from tollbar import beds
from tollbar.beds import guarded, proc

MEASURE = """
[measure]
chunk  = "2 ms"
rounds = 4
blocks = BLOCKS
"""
POOLER = f"""
question  = "What may they do?"
family    = "database-sign-on"
choices   = ["trust"]
beds      = ["postgresql"]
baseline  = "trust"

[vary]
pooler = ["pgbouncer"]
{MEASURE}
"""
APPLICATION = f"""
question  = "What may they do?"
family    = "stack"
choices   = ["page"]
providers = ["libcrypto"]
beds      = ["nginx"]
baseline  = "page"

[vary]
op           = ["read"]
sign-in      = ["anonymous"]
transport    = ["plaintext"]
storage      = ["plaintext"]
storage-rows = [200]
database     = ["postgresql"]

[load]
users   = [2]
request = {{ get = "/bytes/{{bytes}}" }}
expect  = {{ bytes = "{{bytes}}" }}
{MEASURE}
"""
# Studies that between them have every component up, and whose these are.
STUDIES = {
    "embedded": (KINDS["embedded"], ("embedded",)),
    "nginx": (KINDS["nginx"], ("nginx",)),
    "samba": (KINDS["samba"], ("httpd", "samba")),
    "kdc": (KINDS["kdc"], ("httpd", "mit", "gssproxy")),
    "authenticator": (KINDS["authenticator"], ("nginx", "authenticator", "mit")),
    "accounts": (KINDS["accounts"], ("httpd", "postgresql-accounts")),
    "postgresql": (KINDS["postgresql"], ("postgresql",)),
    "mariadb": (KINDS["mariadb"], ("mariadb",)),
    "pooler": (POOLER, ("pgbouncer", "postgresql")),
    "application": (APPLICATION, ("nginx", "application", "postgresql")),
}
# The numbers that the kernel gives them.
NUMBERS = {
    "chown": 0,
    "dac_override": 1,
    "dac_read_search": 2,
    "kill": 5,
    "setgid": 6,
    "setuid": 7,
    "net_bind_service": 10,
}
# What a process has, may take again or gives to what it starts; and the most that it could get by any program, where
# this root may take from that.
SETS = ("CapEff", "CapPrm", "CapAmb")
MOST = "CapBnd"
# The name of a component's work directory, by which its guard is found: its log is there.
LOG = re.compile(r"/tollbar-\w+/(?P<bed>[a-z-]+)-(?P<component>[a-z]+)-\d+/(?P=component)\.log$")


class Privileges(NamedTuple):
    """Of a process."""

    program: str
    has: int
    """Capabilities, a bit each."""
    may_gain: bool


@pytest.fixture
def ground() -> Iterator[Ground]:
    """A ground for runs of root's."""
    if os.geteuid() != 0:
        lacking("only what root has started has capabilities to drop")
    with a_ground() as ground:
        yield ground


@pytest.mark.share(1)
@pytest.mark.parametrize("kind", [*STUDIES][1:] + [*STUDIES][:1])
def test_a_server_of_root_has_the_capabilities_of_its_bed_and_no_others(ground: Ground, kind: str) -> None:
    """Each process that the guard of a component has below it, from its start to its end."""
    text, names = STUDIES[kind]
    for name in names:
        here(name)
    (ground.folder / "study.toml").write_text(text.replace("BLOCKS", str(BLOCKS)))
    run = ground.start("study.toml", "--blocks", 1)
    seen: dict[tuple[str, str], set[Privileges]] = {}
    while run.poll() is None:
        for pid in proc.tree(run.pid):
            for component in of_component(pid):
                seen.setdefault(component, set()).update(filter(None, map(privileges, proc.tree(pid)[1:])))
        # Each is there for longer; without a pause the run would have one core less.
        time.sleep(0.02)
    assert 0 == run.wait(RUN_LIMIT_S), ground.output()
    assert {("ok", None)} == set(cells_of(ground.runs[0]))
    described = {**beds.all_beds(), **beds.services()}
    expected = {(name, one.name) for name in names for one in described[name].components}
    assert expected == set(seen)
    for (name, component), found in seen.items():
        (described_as,) = (one for one in described[name].components if one.name == component)
        allowed = sum(1 << NUMBERS[capability] for capability in described_as.capabilities)
        allowed |= (1 << NUMBERS["net_bind_service"]) * ((described_as.port or 1024) < 1024)
        assert found, component
        for program, has, may_gain in found:
            assert 0 == has & ~allowed, (name, component, program, hex(has))
            assert not may_gain, (name, component, program)


def test_every_component_is_in_a_study() -> None:
    """A bed that is added has one too."""
    described = {**beds.all_beds(), **beds.services()}
    assert {*described} == {name for _, names in STUDIES.values() for name in names}


def of_component(pid: int) -> Iterator[tuple[str, str]]:
    """Bed and component, where this process is the guard of one that is started."""
    words = Path(f"/proc/{pid}/cmdline")
    try:
        if b"\0guard\0--tree\0" in words.read_bytes() and (log := LOG.search(os.readlink(f"/proc/{pid}/fd/2"))):
            yield log["bed"], log["component"]
    except OSError:
        return


def privileges(pid: int) -> Privileges | None:
    """A process's command, its capabilities, and whether it may gain others; None where it is gone, or is still to
    become the server."""
    folder = Path(f"/proc/{pid}")
    try:
        words = (folder / "cmdline").read_bytes()
        lines = (folder / "status").read_text().splitlines()
        # What becomes another program meanwhile is looked at the next time.
        is_another = (folder / "cmdline").read_bytes() != words
    except OSError:
        return None
    program, _, arguments = words.partition(b"\0")
    # A process that has ended has no words any more.
    if is_another or not words or program.endswith(b"setpriv") or arguments.startswith(b"guard\0"):
        return None
    said = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    has = 0
    for name in (*SETS, *([MOST] if guarded._may_drop() else [])):
        has |= int(said[name], 16)
    return Privileges(program.decode(errors="replace"), has, said["NoNewPrivs"] == "0")
