"""What the shipped studies say was published: all of it, where, of what, and with figures that make the ratio."""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tollbar import study
from tollbar.present import sources
from tollbar.study import Claim, Study

SOURCED = {one.name: one for name in study.shipped() for one in study.load([name]) if one.source is not None}
CLAIMS = [pytest.param(one, claim, id=f"{name}: {claim.says}") for name, one in SOURCED.items() for claim in one.claims]
# Of these more is less: a figure that is a time or a cost is one over what capacity is; one that is a rate is not.
INVERSE = "capacity"
RATE = "/s"
# All that the sources say, by hand.
SAID = tomllib.loads((Path(__file__).parent / "published.toml").read_text("utf-8"))["said"]
ENTRIES = [pytest.param(said, id=f"{said['source']}: {said['what']}") for said in SAID]
# Entries that no claim tries, and how a claim's `where` begins that is of no source.
MISSING = 6
OURS = ("Ours: ", "Not the source's: ")


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
        is_inverse = claim.metric == INVERSE and not of.unit.endswith(RATE)
        found.append(over.value / of.value if is_inverse else of.value / over.value)
    for end, made in zip(claim.ratio, (min(found), max(found)), strict=True):
        # The sources print two decimals, or one of hundreds.
        assert math.isclose(end, made, rel_tol=1e-4, abs_tol=0.0051), (claim.says, end, made)


@pytest.mark.parametrize("said", ENTRIES)
def test_what_a_source_says_is_tried_or_says_what_is_missing(said: dict[str, Any]) -> None:
    """Its claims are those of studies of that source."""
    assert {"source", "where", "what", "claims"} == {*said} or {"source", "where", "what", "missing"} == {*said}
    assert all(said.values())
    there = {claim.says for one in SOURCED.values() if one.source == said["source"] for claim in one.claims}
    assert [] == [says for says in said.get("claims", ()) if says not in there]


def test_nothing_is_said_twice() -> None:
    """Each entry is one number or conclusion of its source."""
    assert [] == [key for key, n in Counter((said["source"], said["what"]) for said in SAID).items() if n > 1]


def test_what_is_missing_becomes_less() -> None:
    """What is added for one of them is taken off this number."""
    assert MISSING == sum("missing" in said for said in SAID)


@pytest.mark.parametrize(("one", "claim"), CLAIMS)
def test_a_claim_is_of_its_source_or_says_whose_it_is(one: Study, claim: Claim) -> None:
    """A published claim is one of what is known to be said; any other says in `where` that it is ours, or whose."""
    named = {says for said in SAID if said["source"] == one.source for says in said.get("claims", ())}
    assert claim.says in named or (claim.where or "").startswith(OURS)
