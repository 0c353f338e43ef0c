"""A study over a server that goes wrong as it is told to."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tollbar import measure, plan, study
from tollbar.beds.certificates import Certificates
from tollbar.beds.premises import Premises
from tollbar.measure import Proven, Trial
from tollbar.plan import Plan

FAKE_SERVER = Path(__file__).with_name("fake_server.py")

BED = """
title    = "Fake"
install  = "wishing"
runs-on  = ["libcrypto"]
version  = {{ arguments = ["-v"], pattern = 'fake/(\\S+)' }}

[[component]]
name     = "web"
lifetime = "trial"
program  = ["fake-server"]
folders  = ["{folder}"]
start    = []
stdin    = "told.json"
ready    = "answer"
refusals = ['refused: (.*)']
"""

# The fault is that of one cell alone.
TOLD = """
{{"port": {{{{ port }}}}, "after": {after}, "other": {other},
  "fault": {{{{ '"{fault}"' if settings.bytes == 1000 else "null" }}}},
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
beds      = {beds}
baseline  = {{ choice = "{choice}", bytes = "2000 B" }}

[vary]
op           = ["{op}"]
key-exchange = ["ecdhe-p256"]
bytes        = ["1000 B", "2000 B"]

[load]
users   = [2]
request = {{ get = "/bytes/{{bytes}}" }}
expect  = {{ bytes = "{{bytes}}" }}

[measure]
trial   = "100 ms"
warm-up = "0 s"
blocks  = 1
"""


class Lab:
    """A study over a bed that fails as it is told to, in premises of its own."""

    def __init__(self, folder: Path, premises: Premises) -> None:
        self.folder = folder
        self.premises = premises
        self.seed = 3

    def bed(self, fault: str = "", *, after: int = 0) -> None:
        """Says how the server of the cell of 1000 bytes goes wrong, after so many requests."""
        folder = self.folder / "fake"
        folder.mkdir(exist_ok=True)
        program = folder / "fake-server"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -I {FAKE_SERVER} "$@"\n')
        program.chmod(0o755)
        other = Certificates(self.folder / "others").server("ecdsa-p256")
        identity = json.dumps({"chain": str(other.chain), "key": str(other.key)})
        (folder / "bed.toml").write_text(BED.format(folder=folder))
        (folder / "told.json.jinja").write_text(TOLD.format(after=after, other=identity, fault=fault))

    def study(self, choice: str = "plaintext", op: str = "request", beds: str = '["fake"]', blocks: int = 1) -> Plan:
        """Two cells: one of 1000 bytes, and one of 2000 that is the baseline."""
        path = self.folder / "served.toml"
        path.write_text(STUDY.format(choice=choice, op=op, beds=beds).replace("blocks  = 1", f"blocks  = {blocks}"))
        return plan.make(study.load([str(path)]), seed=self.seed)

    def prove(self, plan: Plan, **more: Any) -> dict[object, Proven]:
        """What was proved of each cell, by its bytes."""
        cells = plan.studies[0].cells
        proven = measure.prove(cells, plan.seed, premises=self.premises, **more)
        return {cell.coordinates["bytes"]: one for cell, one in zip(cells, proven, strict=True)}

    def trials(self, plan: Plan, **more: Any) -> dict[object, list[Trial]]:
        """The trials of each cell, by its bytes, in the order they were made."""
        size = {cell.key: cell.coordinates["bytes"] for cell in plan.studies[0].cells}
        blocks = {one.study.name: one.study.measure.blocks for one in plan.studies}
        made: dict[object, list[Trial]] = {}
        for trial in measure.trials(plan, blocks=blocks, done=(), barred=(), premises=self.premises, **more):
            made.setdefault(size[trial.cell], []).append(trial)
        return made
