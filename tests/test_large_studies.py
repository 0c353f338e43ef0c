"""Large studies are planned in time linear in their cells, not quadratic."""

from __future__ import annotations

import resource
import subprocess
from pathlib import Path

import pytest
from bench.figures import TOLLBAR

from tollbar import study
from tollbar.core.errors import TollbarError
from tollbar.study import plan

CELLS = 20_000
# This plan takes some five seconds of CPU time; in quadratic time it takes minutes.
CPU_LIMIT_S = 30

SIZES = """
question  = "?"
family    = "digest"
choices   = ["md5", "sha-256"]
providers = ["libcrypto"]
baseline  = {baseline}
[vary]
op    = ["hash"]
bytes = [{sizes}]
{claim}
"""
ITERATIONS = """
question  = "?"
family    = "password-hash"
choices   = ["pbkdf2-sha-256"]
providers = ["libcrypto"]
baseline  = {{ iterations = 1 }}
[vary]
op         = ["hash"]
iterations = {iterations}
"""
OF_ONE = """
[[claim]]
says   = "Everything is compared with one cell."
of     = { choice = "sha-256" }
over   = { choice = "md5", bytes = "1 B" }
metric = "cost"
ratio  = 2
"""
BYTES = ", ".join(f'"{size + 1} B"' for size in range(CELLS))


@pytest.mark.share(1)
@pytest.mark.parametrize(
    "text",
    [
        SIZES.format(sizes=BYTES, baseline='"md5"', claim=""),
        SIZES.format(sizes=BYTES, baseline='{ choice = "md5", bytes = "1 B" }', claim=OF_ONE),
        ITERATIONS.format(iterations=[*range(1, CELLS + 1)]),
    ],
    ids=["a baseline for each", "one for all, with a claim", "one for all, with contrasts"],
)
def test_a_study_of_twenty_thousand_values_is_planned(text: str, tmp_path: Path) -> None:
    study = tmp_path / "large.toml"
    study.write_text(text)
    command = [TOLLBAR, "plan", str(study)]

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT_S, CPU_LIMIT_S))

    planned = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=limited)
    assert (0, "") == (planned.returncode, planned.stderr)


WIDE = f"""
question  = "?"
family    = "password-hash"
choices   = ["argon2id"]
providers = ["rustcrypto"]
[vary]
passes = {[*range(1, 201)]}
lanes  = {[*range(1, 65)]}
memory = [{", ".join(f'"{kibibytes} KiB"' for kibibytes in range(512, 612))}]
"""


def test_combinations_without_end_are_refused_before_they_are_made() -> None:
    """Three settings of 200, 64 and 100 values make more than a million cells."""
    with pytest.raises(TollbarError, match="more than 100,000 combinations"):
        plan.make([study.read("wide", WIDE, where="wide.toml")], seed=1)
