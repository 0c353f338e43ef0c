"""Sets with one file for each study, and studies reduced to the cells of their claims."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from fabricated import loaded
from tollbar import results, study
from tollbar.core.errors import TollbarError
from tollbar.study import Study, plan
from tollbar.study.plan.pairs import claimed, matching

SOURCES = {one.name: one for one in loaded("sources")}


def test_the_set_of_sources_has_each_of_them() -> None:
    assert {one.source for one in SOURCES.values()} == set(study.sources())


@pytest.mark.share(4)
@pytest.mark.parametrize("name", SOURCES)
def test_what_claims_are_about_is_measured_and_nothing_else(name: str) -> None:
    (whole,) = study.load([name])
    (all_cells,), (few,) = (plan.make([one], seed=1).studies for one in (whole, SOURCES[name]))
    kept = {cell.key for cell in few.cells}
    compared: set[str] = set()
    for claim in whole.claims:
        pairs = [[(of.key, over.key) for of, over, _ in claimed(claim, one.cells)] for one in (all_cells, few)]
        assert pairs[0] == pairs[1], claim.says
        compared |= {key for pair in pairs[0] for key in pair}
        compared |= (
            {cell.key for cell in matching(all_cells.cells, claim.of)} if claim.over == {} and claim.of else set()
        )
    against = {cell.against for cell in all_cells.cells if cell.key in compared}
    assert kept == compared | against - {None}
    dropped = {cell.key for cell in all_cells.cells} - kept
    assert dropped == {plan.key_of(at) for at, because in few.left_out if because == "No claim is about it."}


def test_a_run_keeps_which_cells_it_has(tmp_path: Path) -> None:
    asked = SOURCES["kerberos-and-ntlm"]
    store = results.create(plan.make([asked], seed=1), tmp_path, command=(), libraries=(), fingerprint={})
    with closing(store):
        (read,) = results.studies(store.directory)
    assert read.measure.cells == "claimed"


def _of(text: str) -> Study:
    return study.read("s", text, where="s.toml")


def test_the_set_is_shown_as_any_other() -> None:
    assert study.is_named(study.AS_PUBLISHED)


def test_a_study_without_claims_has_no_cells_to_choose() -> None:
    text = 'question = "?"\nfamily = "digest"\nchoices = ["md5"]\n[measure]\ncells = "claimed"\n'
    with pytest.raises(TollbarError, match="about a cell"):
        _of(text)
    with pytest.raises(TollbarError, match=r"measure\.cells"):
        _of(text.replace("claimed", "some"))
