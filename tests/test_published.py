"""What the shipped studies say was published: where, of what, and with figures that make the ratio."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tollbar import study
from tollbar.present import sources
from tollbar.study import Claim, Study

SOURCED = {one.name: one for name in study.shipped() for one in study.load([name]) if one.source is not None}
CLAIMS = [pytest.param(one, claim, id=f"{name}: {claim.says}") for name, one in SOURCED.items() for claim in one.claims]
# Of these more is less: a figure that is a time or a cost is one over what capacity is.
INVERSE = "capacity"


def test_the_five_sources_have_studies() -> None:
    """Each published comparison is tried somewhere."""
    assert 5 == len(study.sources())
    assert set(study.sources()) == {one.source for one in SOURCED.values()}


def test_the_page_of_sources_is_what_the_studies_say() -> None:
    """It is written from them, and not by hand."""
    assert sources.written() == (Path(__file__).parent.parent / "docs" / "sources.md").read_text("utf-8")


@pytest.mark.parametrize(("one", "claim"), CLAIMS)
def test_a_claim_says_where_it_was_published(one: Study, claim: Claim) -> None:
    """A table, a figure or a sentence, or that it is not the source's."""
    assert claim.where


@pytest.mark.parametrize(("one", "claim"), CLAIMS)
def test_no_claim_compares_a_cell_with_itself(one: Study, claim: Claim) -> None:
    """That is what twins are for."""
    assert not claim.is_judged or {**claim.over, **claim.of} != {**claim.of, **claim.over}


@pytest.mark.parametrize(("one", "claim"), [each for each in CLAIMS if each.values[1].published])
def test_published_figures_make_the_published_ratio(one: Study, claim: Claim) -> None:
    """To the last digit that the source prints of it."""
    if claim.ratio is None:
        return
    found = []
    for of, over in zip(claim.published[::2], claim.published[1::2], strict=True):
        assert of.unit == over.unit
        found.append(over.value / of.value if claim.metric == INVERSE else of.value / over.value)
    for end, made in zip(claim.ratio, (min(found), max(found)), strict=True):
        # The sources print two decimals, or one of hundreds.
        assert math.isclose(end, made, rel_tol=1e-4, abs_tol=0.0051), (claim.says, end, made)
