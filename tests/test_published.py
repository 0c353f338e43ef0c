"""Published claims of the shipped studies: complete, with place and subject, and with figures that give the ratio."""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fabricated import loaded
from tollbar import study
from tollbar.report.json_forms import sources
from tollbar.study import Amount, Claim, Study, plan
from tollbar.study.plan.cells import Cell
from tollbar.study.plan.pairs import claimed, matching

SOURCED = {one.name: one for name in study.shipped() for one in loaded(name) if one.source is not None}
CLAIMS = [pytest.param(one, claim, id=f"{name}: {claim.says}") for name, one in SOURCED.items() for claim in one.claims]
# More capacity is less time or cost, so such figures are inverted; a rate is not.
INVERSE = "capacity"
RATE = "/s"
# All statements of the sources, entered by hand.
SAID = tomllib.loads((Path(__file__).parent / "published.toml").read_text("utf-8"))["said"]
ENTRIES = [pytest.param(said, id=f"{said['source']}: {said['what']}") for said in SAID]


def test_the_five_sources_have_studies() -> None:
    """Published comparisons are tried somewhere, and name their studies in the order of the source's text."""
    assert 5 == len(study.sources())
    for name, source in study.sources().items():
        assert sorted(source.order) == sorted(one for one, of in SOURCED.items() if of.source == name)
    assert {one.source for one in SOURCED.values()} == set(study.sources())


def test_the_page_of_sources_is_what_the_studies_say() -> None:
    assert sources.written() == (Path(__file__).parent.parent / "docs" / "generated" / "sources.md").read_text("utf-8")


@pytest.mark.parametrize(("one", "claim"), CLAIMS)
def test_a_claim_says_where_it_was_published(one: Study, claim: Claim) -> None:
    assert claim.where


@pytest.mark.parametrize(("one", "claim"), CLAIMS)
def test_no_claim_compares_a_cell_with_itself(one: Study, claim: Claim) -> None:
    """A/A pairs do that."""
    assert not claim.is_judged or {**claim.over, **claim.of} != {**claim.of, **claim.over}


@pytest.mark.parametrize(("one", "claim"), [each for each in CLAIMS if each.values[1].published])
def test_published_figures_make_the_published_ratio(one: Study, claim: Claim) -> None:
    """To the last digit that the source prints; in an order, the right one has more."""
    found = []
    pairs = zip(claim.published[::2], claim.published[1::2], strict=True) if claim.is_judged else ()
    for of, over in pairs:
        assert of.unit == over.unit
        is_inverse = claim.metric == INVERSE and not of.unit.endswith(RATE)
        found.append(over.value / of.value if is_inverse else of.value / over.value)
    if claim.order is not None:
        assert all((made > 1) == (claim.order == "more") for made in found), (claim.says, found)
    if claim.ratio is None or not found:
        return
    for end, made in zip(claim.ratio, (min(found), max(found)), strict=True):
        # The sources print two decimals, or one of hundreds.
        assert math.isclose(end, made, rel_tol=1e-4, abs_tol=0.0051), (claim.says, end, made)


@pytest.mark.parametrize(("one", "claim"), [each for each in CLAIMS if each.values[1].ratio is not None])
def test_a_share_in_words_is_the_ratio(one: Study, claim: Claim) -> None:
    """For example, "20 % faster" is 1.2 times the capacity; "slower" is less capacity, or more time."""
    assert claim.ratio is not None
    for number, word in re.findall(r"([0-9]+) % (faster|slower)", claim.says):
        share = int(number) / 100
        may_be = (1 + share,) if word == "faster" else (1 - share, 1 / (1 + share))
        assert any(math.isclose(end, one, rel_tol=0.005) for end in claim.ratio for one in may_be), claim.says


@cache
def _planned(name: str) -> Sequence[Cell]:
    (found,) = plan.make([SOURCED[name]], seed=1).studies
    return found.cells


@pytest.mark.parametrize("name", ["tls-certificates", "tls-today"])
def test_claims_of_2014_have_the_order_of_mac_that_their_source_had(name: str) -> None:
    """OpenSSL 1.0.1e does not have encrypt-then-MAC."""
    found: set[Any] = set()
    for one in loaded(name):
        (planned,) = plan.make([one], seed=1).studies
        for claim in (claim for claim in one.claims if claim.is_judged):
            sides = [side.coordinates for pair in claimed(claim, planned.cells) for side in pair[:2]]
            found |= {at.get("mac-order") for at in sides if str(at.get("cipher")).endswith("-cbc")}
    assert {"mac-then-encrypt"} == found


@pytest.mark.share(15)
@pytest.mark.parametrize(("one", "claim"), CLAIMS)
def test_a_claim_has_what_it_compares(one: Study, claim: Claim) -> None:
    cells = _planned(one.name)
    assert claim.is_judged or claim.untestable or matching(cells, claim.of)
    if claim.is_judged:
        pairs = [of.coordinates for of, _, _ in claimed(claim, cells)]
        assert pairs
        for name, ends in claim.grows.items():
            assert set(ends) <= {at[name] for at in pairs}


@pytest.mark.parametrize("said", ENTRIES)
def test_what_a_source_says_is_tried(said: dict[str, Any]) -> None:
    assert {"source", "where", "what", "claims"} == {*said}
    assert all(said.values())
    claims = [claim for one in SOURCED.values() if one.source == said["source"] for claim in one.claims]
    tried = [claim for claim in claims if claim.says in said["claims"]]
    assert {*said["claims"]} == {claim.says for claim in tried}
    # Figures and ratios, as the claims have them.
    figures = [amount.text for claim in tried for amount in figures_of(claim)]
    ratios = [ratio for claim in tried for ratio in (*(claim.ratio or ()), *made_of(claim))]
    told = re.findall(r"[0-9][0-9.,]* ms", said["what"])
    assert [] == [text for text in told if not any(figure.startswith(text) for figure in figures)]
    for text in re.findall(r"([0-9.]+) : 1", said["what"]):
        # With several ratios, that of a disk may lie between the least and the greatest.
        assert min(ratios) - 0.051 <= float(text) <= max(ratios) + 0.051, (text, ratios)


def figures_of(claim: Claim) -> Sequence[Amount]:
    """Return all figures that the source prints for the claim."""
    return [*claim.published, *(one for one in (claim.error, claim.deviation) if one is not None)]


def made_of(claim: Claim) -> Sequence[float]:
    """Return the ratios of the claim's pairs of figures."""
    values = [amount.value for amount in claim.published]
    return [of / over for of, over in zip(values[::2], values[1::2], strict=True)] if claim.is_judged else []


def test_nothing_is_said_twice() -> None:
    assert [] == [key for key, n in Counter((said["source"], said["what"]) for said in SAID).items() if n > 1]


@pytest.mark.parametrize(("one", "claim"), CLAIMS)
def test_a_claim_is_of_its_source_or_says_whose_it_is(one: Study, claim: Claim) -> None:
    named = {says for said in SAID if said["source"] == one.source for says in said["claims"]}
    assert claim.says in named or claim.is_ours
