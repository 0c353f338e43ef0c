"""Large studies are planned in time linear in their cells, not quadratic."""

from __future__ import annotations

import re
import resource
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from bench.figures import TOLLBAR

from conftest import Tollbar
from tollbar import study
from tollbar.catalog.families import Standing
from tollbar.core.errors import TollbarError
from tollbar.study import Coordinates, plan
from tollbar.study.plan import grid, pairs

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
    assert 0 == planned.returncode
    # A plan is for reading, too: it is printed whole.
    (refused,) = planned.stderr.splitlines()
    cells = re.search(r"refuses this plan: ([\d,]+) cells; a run has at most 1,500;", refused)
    assert cells
    assert int(cells[1].replace(",", "")) >= CELLS
    assert cells[1].replace(",", "") in planned.stdout


def test_a_plan_that_a_run_can_have_has_no_warning(tollbar: Tollbar) -> None:
    assert "refuses" not in tollbar("plan", "macs").stderr


def test_a_folder_of_more_studies_than_a_run_has_is_not_read(tmp_path: Path) -> None:
    for number in range(study.MOST_STUDIES):
        (tmp_path / f"s{number}.toml").write_text(ITERATIONS.format(iterations=[1]))
    assert study.MOST_STUDIES == len(study.load([str(tmp_path)]))
    (tmp_path / "t.toml").write_text(ITERATIONS.format(iterations=[1]))
    (tmp_path / "z.toml").write_text("not a study")
    with pytest.raises(TollbarError, match="more than 100 studies; a run has at most as many"):
        study.load([str(tmp_path)])


def test_more_studies_than_a_run_has_are_not_planned() -> None:
    (one,) = study.load(["macs"])
    with pytest.raises(TollbarError, match="101 studies; a run has at most 100"):
        plan.make([one] * (study.MOST_STUDIES + 1), seed=1)


def test_studies_of_more_combinations_than_are_read_are_not_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("first", "second"):
        (tmp_path / f"{name}.toml").write_text(ITERATIONS.format(iterations=[1, 2, 3]))
    asked = study.load([str(tmp_path)])
    monkeypatch.setattr(grid, "MOST_COMBINATIONS", 6)
    assert 6 == len(plan.make(asked, seed=1).cells)
    monkeypatch.setattr(grid, "MOST_COMBINATIONS", 5)
    with pytest.raises(TollbarError, match="more than 5 combinations"):
        plan.make(asked, seed=1)


def test_claims_are_limited_by_the_cells_that_they_are_searched_in(tmp_path: Path) -> None:
    path = tmp_path / "claims.toml"
    sizes = ", ".join(f'"{size} B"' for size in range(1, 2_000))
    claims = "".join(OF_ONE.replace("Everything", f"Claim {number}:") for number in range(101))
    path.write_text(SIZES.format(sizes=sizes, baseline='{ choice = "md5", bytes = "1 B" }', claim=claims))
    with pytest.raises(TollbarError, match="more than 400,000 comparisons of cells with claims"):
        plan.make(study.load([str(path)]), seed=1)


def test_studies_of_more_letters_than_a_run_keeps_are_not_read(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"s{number}.toml").write_text(f"{ITERATIONS.format(iterations=[1])}# {'x' * 500_000}\n")
    with pytest.raises(TollbarError, match="more than 1,048,576 letters together"):
        study.load([str(tmp_path)])


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


ALL_PAIRS = f"""
question  = "?"
family    = "password-hash"
choices   = ["argon2id", "pbkdf2-sha-256"]
providers = ["rustcrypto"]
[vary]
op         = ["hash"]
passes     = {[*range(1, 41)]}
lanes      = {[*range(1, 33)]}
memory     = ["1 MiB"]
iterations = {[*range(1, 1001)]}
[[claim]]
says   = "Every cell of one is compared with every cell of the other."
of     = {{ choice = "pbkdf2-sha-256" }}
over   = {{ choice = "argon2id" }}
metric = "cost"
ratio  = 2
"""


def test_pairs_without_end_are_refused_before_they_are_made() -> None:
    one = study.read("pairs", ALL_PAIRS, where="pairs")
    cells = plan.make([one], seed=1).cells
    assert 40 * 32 + 1000 == len(cells)
    with pytest.raises(TollbarError, match=r"compare 1,280,000 pairs of 2,280 cells; the limit is 5,560"):
        next(pairs.claimed(one.claims[0], cells))
    few = [cell for cell in cells if cell.coordinates.get("iterations", 1) == 1]
    assert 1280 == len([*pairs.claimed(one.claims[0], few)])


class Placed(NamedTuple):
    coordinates: Coordinates
    standing: Standing = Standing.ACCEPTABLE


def test_factors_are_found_in_time_linear_in_their_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []
    agree = pairs._agree

    def noted(*of: Any) -> bool:
        compared.append(of)
        return agree(*of)

    monkeypatch.setattr(pairs, "_agree", noted)
    cells = [Placed({"a": a, "b": b, "bytes": size}) for size in range(500) for a in (0, 1) for b in (0, 1)]
    one = replace(
        study.read("x", SIZES.format(sizes='"1 B"', baseline='"md5"', claim=""), where="x"),
        factors={"a": (0, 1), "b": (0, 1)},
    )
    groups = pairs.factored(one, cells)
    assert [[(0, 0), (1, 0), (0, 1), (1, 1)]] * 500 == [
        [(cell.coordinates["a"], cell.coordinates["b"]) for cell in group] for group in groups
    ]
    assert 3 * 500 == len(compared)


def test_combinations_without_end_are_refused_before_they_are_made() -> None:
    """Three settings of 200, 64 and 100 values make more than a million cells."""
    with pytest.raises(TollbarError, match="more than 45,000 combinations"):
        plan.make([study.read("wide", WIDE, where="wide.toml")], seed=1)
