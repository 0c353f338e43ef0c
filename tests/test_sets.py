"""Sets with one file for each study, and studies reduced to the cells of their claims."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from fabricated import loaded
from tollbar import results, study
from tollbar.core.errors import TollbarError
from tollbar.study import Figure, Series, Study, plan
from tollbar.study.plan import StudyPlan
from tollbar.study.plan.cells import Cell
from tollbar.study.plan.pairs import claimed, matching

SOURCES = {one.name: one for one in loaded("sources")}
SHORT = {one.name: one for one in loaded("sources-short")}
SOME = {name: one for name, one in SOURCES.items() if one.measure.cells == "claimed"} | SHORT


@pytest.mark.parametrize("found", [SOURCES, SHORT])
def test_a_set_of_sources_has_each_of_them(found: dict[str, Study]) -> None:
    assert {one.source for one in found.values()} == set(study.sources())


def test_the_set_of_sources_has_each_study_and_those_with_figures_whole() -> None:
    assert [name.rpartition("/")[2] for one in study.sources().values() for name in one.studies] == [*SOURCES]
    assert {"all"} == {one.measure.cells for one in SOURCES.values() if one.figures}
    assert {"claimed"} == {one.measure.cells for one in SHORT.values()}


# Numbers of loads other than the five of the article of 2002.
LOADS = {"kerberos-and-ntlm-users": 3}


@pytest.mark.parametrize("name", [name for name, one in SOURCES.items() if one.figures])
def test_a_series_of_a_figure_has_a_cell_in_each_place(name: str) -> None:
    (planned,) = plan.make([SOURCES[name]], seed=1).studies
    for figure in planned.study.figures:
        places = [
            [figure.place_of(cell.coordinates) for cell in _cells(figure, series, planned)] for series in figure.series
        ]
        # More loads, or keys that one of them does not have.
        assert all(len(some) == len(set(some)) for some in places)
        if figure.draws == "load" and name != "tls-certificates":
            assert all(some == places[0] and len(some) == LOADS.get(name, 5) for some in places), figure.title


def _cells(figure: Figure, series: Series, planned: StudyPlan) -> list[Cell]:
    return figure.cells_of(series, planned.cells)


@pytest.mark.share(4)
@pytest.mark.parametrize("name", SOME)
def test_what_claims_are_about_is_measured_and_nothing_else(name: str) -> None:
    (whole,) = study.load([name])
    (all_cells,), (few,) = (plan.make([one], seed=1).studies for one in (whole, SOME[name]))
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
    asked = SHORT["kerberos-and-ntlm"]
    store = results.create(plan.make([asked], seed=1), tmp_path, command=(), libraries=(), fingerprint={})
    with closing(store):
        (read,) = results.studies(store.directory)
    assert read.measure.cells == "claimed"


def _of(text: str) -> Study:
    return study.read("s", text, where="s.toml")


def test_the_set_is_shown_as_any_other() -> None:
    assert all(map(study.is_named, study.SETS_OF_SOURCES))


def test_a_study_without_claims_has_no_cells_to_choose() -> None:
    text = 'question = "?"\nfamily = "digest"\nchoices = ["md5"]\n[measure]\ncells = "claimed"\n'
    with pytest.raises(TollbarError, match="about a cell"):
        _of(text)
    with pytest.raises(TollbarError, match=r"measure\.cells"):
        _of(text.replace("claimed", "some"))


DRAWN = """
question = "?"
family   = "digest"
choices  = ["md5", "sha-1"]
providers = ["libcrypto"]
vary     = { bytes = ["64 B", "4 KiB"] }
[[figure]]
title = "F"
draws = "use"
"""


@pytest.mark.parametrize(
    ("series", "words"),
    [
        ('series = [{ title = "x", where = { choice = "md5" } }]', "have the same place"),
        ('series = [{ title = "x", where = { choice = "md5", bytes = "128 B" } }]', "selects no cells"),
        ("series = []", "series`"),
        ('series = [{ title = "x", where = { colour = "md5" } }]', "has no setting `colour`"),
        ('groups = "bytes"\nseries = [{ title = "x" }]', "`groups` needs"),
        ('component = "web"\nseries = [{ title = "x" }]', "`component` needs"),
    ],
)
def test_a_wrong_figure_is_refused_with_its_place(series: str, words: str) -> None:
    with pytest.raises(TollbarError) as refused:
        plan.make([_of(DRAWN + series)], seed=1)
    assert words in f"{refused.value.where}: {refused.value.what}"


@pytest.mark.parametrize("draws", ["load", "rates"])
def test_a_figure_of_requests_needs_a_load(draws: str) -> None:
    groups = 'groups = "bytes"\n' if draws == "rates" else ""
    text = DRAWN.replace('"use"', f'"{draws}"') + groups + 'series = [{ title = "x", where = { choice = "md5" } }]'
    with pytest.raises(TollbarError, match=r"needs `\[load\]`"):
        _of(text)
