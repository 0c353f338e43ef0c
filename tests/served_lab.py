"""A study over a server that goes wrong on request."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tollbar import study
from tollbar.core.records import Proven, Trial
from tollbar.lab import measure
from tollbar.lab.servers.sandbox import Sandbox
from tollbar.lab.tls import Certificates
from tollbar.study import plan
from tollbar.study.plan import Plan

FAKE_SERVER = Path(__file__).with_name("fake_server.py")

SERVER = """
title    = "Fake"
install  = "wishing"
runs-on  = ["libcrypto"]
"""

COMPONENT = """
[[component]]
name     = "{name}"
lifetime = "trial"
program  = ["fake-server"]
folders  = ["{folder}"]
version  = {{ arguments = ["-v"], pattern = 'fake/(\\S+)' }}
start    = []
stdin    = "told.json"
ready    = {{ by = "http", limit = "60 s" }}
grace    = "0.5 s"
refusals = ['refused: (.*)']
complaints = ['^sorry, (.*)']
"""

# One cell alone has the fault.
TOLD = """
{{"port": {{{{ port }}}}, "after": {after}, "sign": "{sign}", "other": {other},
  "fault": {{{{ '"{fault}"' if settings.bytes == {struck} else "null" }}}},
  "tls": {{% if tls %}}{{
    "version": "{{{{ tls.protocol | replace(".", "_") }}}}", "cipher": "{{{{ tls.ciphers or "ALL" }}}}",
    "chain": "{{{{ tls.certificates[0].chain }}}}", "key": "{{{{ tls.certificates[0].key }}}}"
  }}{{% else %}}null{{% endif %}}}}
"""

STUDY = """
question  = "Does a fault stay where it is?"
family    = "tls"
choices   = ["{choice}"]
providers = ["libcrypto"]
servers      = {servers}
baseline  = {{ choice = "{choice}", bytes = "2000 B" }}

[vary]
op    = ["{op}"]
bytes = ["1000 B", "2000 B"]
{encrypted}

[load]
users   = [2]
request = {{ get = "/bytes/{{bytes}}" }}
expect  = {{ bytes = "{{bytes}}" }}

[measure]
chunk  = "20 ms"
rounds = {rounds}
blocks = {blocks}
"""

# Enough for a fault to come in the middle.
ROUNDS = 4
# The cell that goes wrong, and the baseline that it is compared with.
STRUCK, BASELINE = 1000, 2000


# Longer than an answer of the fake server on a busy machine; limit for answers that never come.
ANSWERED_S, NEVER_S = 60.0, 5.0


class Lab:
    """Study over a server that fails on request, in a sandbox of its own."""

    def __init__(self, folder: Path, sandbox: Sandbox) -> None:
        self.folder = folder
        self.sandbox = sandbox
        self.seed = 3

    @property
    def sign(self) -> Path:
        """Return the file whose existence starts a waiting fault."""
        return self.folder / "now"

    def server(self, fault: str = "", *, after: int | None = 0, components: Sequence[str] = ("web",)) -> None:
        """Set how the struck cell's server goes wrong: after this number of requests, or at the sign."""
        folder = self.folder / "fake"
        folder.mkdir(exist_ok=True)
        program = folder / "fake-server"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -I {FAKE_SERVER} "$@"\n')
        program.chmod(0o755)
        other = Certificates(self.folder / "others").server("ecdsa-p256")
        identity = json.dumps({"chain": str(other.chain), "key": str(other.key)})
        parts = "".join(COMPONENT.format(name=name, folder=folder) for name in components)
        (folder / "server.toml").write_text(SERVER + parts)
        told = TOLD.format(struck=STRUCK, after=json.dumps(after), sign=self.sign, other=identity, fault=fault)
        (folder / "told.json.jinja").write_text(told)

    def study(
        self,
        choice: str = "plaintext",
        op: str = "request",
        servers: str = '["fake"]',
        blocks: int = 1,
        rounds: int = ROUNDS,
    ) -> Plan:
        """Return two cells: one of 1000 bytes, and a baseline of 2000 bytes."""
        path = self.folder / "served.toml"
        # The only curve that every Python can name.
        encrypted = "" if choice == "plaintext" else 'key-exchange = ["ecdhe-p256"]'
        said = STUDY.format(choice=choice, op=op, servers=servers, blocks=blocks, rounds=rounds, encrypted=encrypted)
        path.write_text(said)
        return plan.make(study.load([str(path)]), seed=self.seed)

    def prove(self, plan: Plan, **more: Any) -> dict[object, Proven]:
        """Return the proof of each cell, by its bytes."""
        cells = plan.studies[0].cells
        proven = measure.prove(cells, plan.seed, sandbox=self.sandbox, **more)
        return {cell.coordinates["bytes"]: one for cell, one in zip(cells, proven, strict=True)}

    def batches(self, plan: Plan) -> list[list[Trial]]:
        """Return the trials of each batch."""
        counts = {one.study.name: one.study.measure.blocks for one in plan.studies}
        left = measure.batches_left(plan, counts=counts, done=(), excluded=())
        return [trials for trials, _ in measure.measured(plan, left, sandbox=self.sandbox)]

    def trials(self, plan: Plan) -> dict[object, list[Trial]]:
        """Return the trials of each cell, by its bytes, in the order of measurement."""
        return by_bytes(plan, self.batches(plan))


def by_bytes(plan: Plan, batches: list[list[Trial]]) -> dict[object, list[Trial]]:
    """Group the trials by their cells' bytes, in the order of measurement."""
    size = {cell.key: cell.coordinates["bytes"] for cell in plan.studies[0].cells}
    made: dict[object, list[Trial]] = {}
    for trial in (trial for batch in batches for trial in batch):
        made.setdefault(size[trial.cell], []).append(trial)
    return made
