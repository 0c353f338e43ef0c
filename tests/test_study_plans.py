"""Plans of studies: cells, providers, servers and baselines; every shipped study can be planned."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from test_study import GOOD, SERVED
from tollbar import study
from tollbar.catalog import libraries, servers
from tollbar.catalog.families import MadeOf, families
from tollbar.catalog.libraries import Broken
from tollbar.core.errors import TollbarError
from tollbar.lab.workloads.request import _shape
from tollbar.report.coordinates import value_words
from tollbar.study import plan
from tollbar.study.plan import batches, grid


def test_a_study_of_servers_is_planned() -> None:
    (one,) = plan.make([study.read("good", SERVED, where="good.toml")], seed=0).studies
    assert {("plaintext", 1), ("plaintext", 8), ("tls-1.3", 1), ("tls-1.3", 8)} == {
        (cell.choice.name, cell.coordinates["users"]) for cell in one.cells
    }
    assert 6 == len(one.cells)
    users = {cell.key: cell.coordinates["users"] for cell in one.cells}
    assert all(cell.against and users[cell.against] == cell.coordinates["users"] for cell in one.cells)
    assert {("embedded", True)} == {
        (c.coordinates["server"], str(c.server_version).startswith("embedded ")) for c in one.cells
    }


def test_a_cell_is_named_by_what_distinguishes_it_in_its_study() -> None:
    planned = plan.make([study.read("good", SERVED, where="good.toml")], seed=0)
    (one,) = planned.studies
    found = [planned.labels[cell.study, cell.key] for cell in one.cells]
    assert 6 == len(set(found))
    assert {"plaintext · users=1", "tls-1.3 · users=8 · certificate=rsa-2048"} <= {*found}


AT_RATES = SERVED.replace("users   = [1, 8]", 'shape = "open"\nrates = ["0.5 /s", "0.2/s", "200 /s"]')


def test_a_rate_below_one_a_second_is_a_rate() -> None:
    (planned,) = plan.make([study.read("rates", AT_RATES, where="rates.toml")], seed=1).studies
    # Plaintext, and two certificates.
    assert {0.5: 3, 0.2: 3, 200: 3} == Counter(cell.coordinates["rate"] for cell in planned.cells)
    assert {'"rate":0.5', '"rate":0.2', '"rate":200'} == {
        re.findall('"rate":[^,}]*', cell.key)[0] for cell in planned.cells
    }
    assert {0.5, 0.2, 200.0} == {
        _shape(cell.load, cell.coordinates, 1)["rate_hz"] for cell in planned.cells if cell.load
    }
    family = planned.study.family
    assert ["0.5\u00a0/s", "200\u00a0/s"] == [value_words(family, "rate", rate) for rate in (0.5, 200)]


def test_a_share_of_a_core_and_unpaced_users_meet_in_one_study() -> None:
    text = AT_RATES.replace('rates = ["0.5 /s", "0.2/s", "200 /s"]', 'utilisation = ["60 %", "unpaced"]')
    (planned,) = plan.make([study.read("busy", text, where="busy.toml")], seed=1).studies
    assert {60: 3, 0: 3} == Counter(cell.coordinates["utilisation"] for cell in planned.cells)
    told = [_shape(cell.load, cell.coordinates, 1) for cell in planned.cells if cell.load]
    assert {("open", 0.6, 0.0), ("closed", 0.0, 0.0)} == {
        (one["shape"], one["utilisation"], one["rate_hz"]) for one in told
    }


def test_a_rate_is_named_as_a_number_with_or_without_a_fraction() -> None:
    """A left-out cell is found by its rate in any notation; numbers of users have no fraction."""
    text = AT_RATES + '[[leave-out]]\nwhere = { rate = [0.5, 200.0] }\nbecause = "too slow, too fast"\n'
    (planned,) = plan.make([study.read("rates", text, where="rates.toml")], seed=1).studies
    assert {0.2} == {cell.coordinates["rate"] for cell in planned.cells}
    with pytest.raises(TollbarError, match="users must be whole numbers"):
        study.read("rates", text.replace("rate = [0.5, 200.0]", "users = 0.5"), where="rates.toml")


def test_a_provider_has_one_name_on_every_server() -> None:
    text = SERVED.replace('["embedded"]', '["embedded", "nginx"]').replace('"aws-lc"', '"libcrypto", "aws-lc"')
    planned = plan.make([study.read("good", text, where="good.toml")], seed=0)
    (one,) = planned.studies
    places = {(cell.coordinates["server"], cell.coordinates["provider"]) for cell in one.cells}
    assert {("embedded", "libcrypto"), ("embedded", "aws-lc"), ("nginx", "libcrypto")} == places
    named = {one.spec: one.name for one in libraries.resolve(["libcrypto", "aws-lc"])}
    assert named == {spec: receipt["name"] for spec, receipt in planned.receipts.items()}
    assert all(re.search(r"\d", name) for name in named.values())
    found = servers.find(servers.all_servers()["nginx"])
    name = f"nginx {found.version}" if isinstance(found, servers.Installed) else "nginx"
    assert {name} == {cell.server_version for cell in one.cells if cell.coordinates["server"] == "nginx"}
    said = planned.servers["nginx"]
    assert (said.get("version") or "nginx") in name
    assert {"version", "program"} == set(said) or {"unavailable"} == set(said)


def test_a_baseline_may_stand_on_another_server() -> None:
    """A cell is compared with it if the baseline's server supports the cell's provider, and otherwise with nothing."""
    text = SERVED.replace('["embedded"]', '["embedded", "nginx"]').replace('"aws-lc"', '"libcrypto", "aws-lc"')
    text = text.replace('baseline  = "plaintext"', 'baseline  = { choice = "plaintext", server = "nginx" }')
    (one,) = plan.make([study.read("good", text, where="good.toml")], seed=0).studies
    cells = {cell.key: cell for cell in one.cells}
    against = {
        (cell.coordinates["server"], cell.provider.kind): cells[cell.against].coordinates["server"]
        if cell.against
        else None
        for cell in one.cells
    }
    expected = {("nginx", "libcrypto"): "nginx", ("embedded", "libcrypto"): "nginx", ("embedded", "aws-lc"): None}
    assert expected == against


def test_the_least_that_a_study_says() -> None:
    text = 'question = "?"\nfamily = "digest"\nchoices = ["sha-256", "md5"]\n'
    one = study.read("least", text, where="least.toml")
    assert ("md5", ("libcrypto",)) == (one.baseline["choice"], one.providers)
    assert (0.005, 10, 12) == (one.measure.chunk_s, one.measure.rounds, one.measure.blocks)
    (planned,) = plan.make([one], seed=0).studies
    assert {"md5"} == {cell.choice.name for cell in planned.cells if cell.is_baseline}


@pytest.mark.parametrize("words", ["libcrypto", "libcrypto:system", "libcrypto:*", "the name"])
def test_a_study_means_a_provider_by_its_spec_a_pattern_or_its_name(words: str) -> None:
    (system, _) = libraries.resolve(["libcrypto", "rustcrypto"])
    asked = words if words != "the name" else system.name
    text = GOOD.replace('"rustcrypto"', '"libcrypto", "rustcrypto"')
    text = text.replace('"sha-256"\n\n', f'{{ provider = "{asked}" }}\n\n', 1)
    left_out = f'[[leave-out]]\nwhere = {{ choice = "md5", provider = "{asked}" }}\nbecause = "asked"\n'
    (one,) = plan.make([study.read("meant", text + left_out, where="meant.toml")], seed=0).studies
    assert {"libcrypto"} == {cell.coordinates["provider"] for cell in one.cells if cell.is_baseline}
    assert {("md5", "libcrypto")} == {(at["choice"], at["provider"]) for at, _ in one.left_out}


@pytest.fixture
def broken_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Put a file that is no libcrypto next to the system's library."""
    path = tmp_path / "libcrypto.so.3"
    path.write_text("no library")
    monkeypatch.setattr(libraries, "libcryptos", lambda: {"system": None, "broken": str(path)})
    libraries.open_provider.cache_clear()
    yield path
    libraries.open_provider.cache_clear()


LIBRARIES = GOOD.replace('"rustcrypto"', '"libcrypto:*"')


def test_a_pattern_passes_over_a_library_that_cannot_be_loaded(broken_library: Path) -> None:
    planned = plan.make([study.read("all", LIBRARIES, where="all.toml")], seed=0)
    assert {"libcrypto"} == {cell.provider.spec for cell in planned.studies[0].cells}
    assert [str(broken_library)] == list(planned.broken)
    assert all(planned.broken.values())


@pytest.mark.parametrize(
    ("providers", "named"), [('"libcrypto:broken"', False), ('"libcrypto:*"', True), ('"libcrypto:bro*"', False)]
)
def test_a_library_that_was_asked_for_is_not_passed_over(broken_library: Path, providers: str, named: bool) -> None:
    one = study.read("one", LIBRARIES.replace('"libcrypto:*"', providers), where="one.toml")
    with pytest.raises(TollbarError, match=str(broken_library)):
        plan.make([one], seed=0, named_libraries=[str(broken_library)] if named else [])


def test_a_study_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TollbarError, match="cannot read the study"):
        study.load([str(tmp_path / "none.toml")])
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TollbarError, match="cannot read the study"):
        study.load([str(tmp_path / "binary.toml")])
    with pytest.raises(TollbarError, match="no such study: `digets`") as caught:
        study.load(["digets"])
    assert str(caught.value.hint).startswith("did you mean `digests`")


def test_a_good_study_is_planned(tmp_path: Path) -> None:
    path = tmp_path / "good.toml"
    path.write_text(GOOD)
    (one,) = plan.make(study.load([str(path)]), seed=4).studies
    assert 6 == len(one.cells)
    baselines = {cell.key: cell.coordinates["bytes"] for cell in one.cells if cell.is_baseline}
    assert [16, 4096] == sorted(baselines.values())
    assert all(cell.against and baselines[cell.against] == cell.coordinates["bytes"] for cell in one.cells)


def test_a_block_visits_every_cell_in_batches_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "good.toml"
    path.write_text(GOOD)
    (one,) = plan.make(study.load([str(path)]), seed=4).studies

    def drawn(seed: int) -> list[tuple[frozenset[tuple[str, bool]], ...]]:
        return [
            tuple(frozenset((visit.cell.key, visit.repeat) for visit in batch.visits) for batch in block)
            for block in batches.blocks(one, seed, 6)
        ]

    first = drawn(1)
    assert first == drawn(1)
    assert first != drawn(2)
    assert 1 < len(set(first))
    compared = {(cell.key, False) for cell in one.cells if not cell.is_baseline}
    repeats = {(cell.key, True) for cell in one.cells if cell.is_baseline}
    for block in first:
        there = [visit for batch in block for visit in batch]
        assert sorted(compared | repeats) == sorted(visit for visit in there if visit in compared | repeats)
        # A compared cell shares a batch with its baseline, and so does the repeat.
        against = {cell.key: (cell.against, False) for cell in one.cells}
        assert all(against[key] in batch for batch in block for key, _ in batch)


@pytest.mark.share(8)
@pytest.mark.parametrize("name", study.shipped())
def test_every_shipped_study_can_be_planned(name: str) -> None:
    planned = plan.make(study.load([name]), seed=0)
    for one in planned.studies:
        assert one.cells
        assert len(one.cells) == len({planned.labels[cell.study, cell.key] for cell in one.cells})
        for claim in one.study.claims:
            for side in (claim.of, claim.over):
                wanted = [c for c in one.cells if all(c.coordinates.get(k) == v for k, v in side.items())]
                assert wanted, (claim.says, side)


# Limit of examined combinations for each cell, left out or not: a setting without a meaning at a choice is found by the
# settings it depends on, at most two.
MOST_FOR_EACH = 4


@pytest.mark.share(1)
@pytest.mark.parametrize("name", ["web-authentication", "tls-certificates"])
def test_what_means_nothing_to_a_cell_is_not_combined(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the product of all settings, planning took many seconds; the cells are the same."""
    asked: list[plan.Coordinates] = []
    normal = plan.Grid.normal
    monkeypatch.setattr(plan.Grid, "normal", lambda self, wanted: asked.append(wanted) or normal(self, wanted))
    planned = plan.make(study.load([name]), seed=0).studies
    there = sum(len(one.cells) + len(one.left_out) for one in planned)
    assert there <= len(asked) <= MOST_FOR_EACH * there
    monkeypatch.setattr(grid, "fits", lambda *_: True)
    monkeypatch.setattr(grid, "MOST_COMPARISONS", 1_000_000_000)
    every = plan.make(study.load([name]), seed=0).studies
    assert [one.cells for one in every] == [one.cells for one in planned]
    assert [one.left_out for one in every] == [one.left_out for one in planned]


def test_quick_asks_about_every_family() -> None:
    """Exceptions: composed families, families that compare two builds, and families that need a database server."""
    asked = {one.family.name for one in study.load(["quick"])}
    assert asked == {
        name
        for name, one in families().items()
        if not isinstance(one, MadeOf) and one.servers not in (("postgresql",), ("nginx",)) and name != "defaults"
    }


def test_a_library_that_cannot_be_used_is_named_by_its_path_or_else_as_it_was_asked_for() -> None:
    made = plan.make([study.read("good", GOOD, where="good.toml")], seed=1)
    broken = (Broken("libcrypto:one", "/opt/one.so", "too old"), Broken("libcrypto:other", None, "not found"))
    changed = replace(made, studies=tuple(replace(each, broken=broken) for each in made.studies))
    assert {"/opt/one.so": "too old", "libcrypto:other": "not found"} == changed.broken
