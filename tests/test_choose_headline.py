"""First sentences of `choose`: the family's default, or what protects as it does, and what others save and give up."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from builders import lognormal, measured, row, study, study_run
from fabricated import fabricated, shipped
from policy_lab import asked
from tollbar.catalog import families
from tollbar.catalog.families import Standing, default_cell, given_up
from tollbar.decide.choose.answered import Answered, distinguishing
from tollbar.decide.choose.headline import Qualifying, first_sentences
from tollbar.decide.choosing import choose, chosen
from tollbar.decide.rulings import Candidate, Wanted, candidate
from tollbar.report.standings import IN_GOOD_STANDING
from tollbar.report.ways import of_default
from tollbar.results import StudyRun

MACS = {"poly1305": 0.4, "hmac-sha-256": 3.0, "hmac-sha-512": 7.0, "kmac-256": 9.0}


def run_of(family: str, operation: str, costs: Mapping[str, float], seed: int = 3) -> StudyRun:
    """Return a run of choices at these costs."""
    known = families.family(family)
    base, again, *found = measured([1.0, 1.0, *costs.values()], lognormal(0.003), random.Random(seed), blocks=20)
    at = {"op": operation, "bytes": 4096}
    rows = [row({"choice": known.null.name, **at}, base, repeats_ns=again, standing=Standing.NULL)]
    rows += [row({"choice": name, **at}, cost, against=rows[0].key) for name, cost in zip(costs, found, strict=True)]
    return study_run(rows, (20,), replace(study(blocks=20), family=known))


def said(want: Wanted, run: StudyRun, unmeasured: Sequence[Candidate] = ()) -> str:
    found = Answered(want, choose(want, run, {}), unmeasured, "from a run")
    return first_sentences(found, distinguishing(found))


def test_the_default_is_the_answer_and_the_cheapest_names_its_losses() -> None:
    text = said(asked("mac"), run_of("mac", "authenticate", MACS))
    assert text.startswith("HMAC-SHA-256 (recommended, 256 bits): ")
    assert "of CPU a tag. 1 of the 3 other qualifying options costs less than it. " in text
    assert "Poly1305 saves " in text
    assert "and protects only in part against forgery, key recovery and quantum search." in text


def test_without_the_default_the_best_that_protects_as_it_does_is_the_answer() -> None:
    costs = {name: cost for name, cost in MACS.items() if name != "hmac-sha-256"}
    default = candidate(asked("mac"), {"choice": "hmac-sha-256", "op": "authenticate", "bytes": 4096})
    text = said(asked("mac"), run_of("mac", "authenticate", costs), [default])
    assert text.startswith("HMAC-SHA-512 (recommended, 256 bits): ")
    assert "The default, HMAC-SHA-256, was not measured." in text
    alone = said(asked("mac"), run_of("mac", "authenticate", {"poly1305": 0.4}))
    losses = "protects only in part against forgery, key recovery and quantum search"
    assert f"; unlike the default (HMAC-SHA-256), it {losses}." in alone
    assert "The default, HMAC-SHA-256, is not among the choices that were asked for." in alone
    assert alone.endswith("It is the only qualifying option measured.")


def test_a_default_that_a_policy_refuses_is_named_with_the_rule() -> None:
    run = run_of("digest", "hash", {"sha-256": 4.0, "sha-384": 5.0, "sha-512": 5.5})
    text = said(asked("digest", "cnsa"), run)
    assert text.startswith("SHA-384 (")
    assert "The default, SHA-256, does not qualify: " in text
    assert "(cnsa-2.0-2024-12: " in text


def test_what_cannot_be_distinguished_from_the_default_does_not_come_before_it() -> None:
    run = run_of("digest", "hash", {"sha-512": 3.999, "sha-256": 4.0, "sha3-256": 9.0})
    text = said(asked("digest"), run)
    assert text.startswith("SHA-256 (")
    assert "It costs the same within 3 % as SHA-512." in text.replace("\u00a0", " ")


def test_without_costs_the_default_is_named_if_it_qualifies() -> None:
    def text_of(want: Wanted) -> str:
        cells = [{"choice": name, "op": "hash", "bytes": 4096} for name in ("sha-256", "sha-384", "sha-512")]
        found = Answered(want, [chosen(want, {}, [candidate(want, cell) for cell in cells])], (), "", is_unpriced=True)
        return first_sentences(found, distinguishing(found))

    counted = "Of the cells near what was asked {} qualify; nothing was measured."
    assert "SHA-256, the default, qualifies. " + counted.format(3) == text_of(asked("digest"))
    refused = text_of(asked("digest", "cnsa"))
    assert refused.startswith("The default, SHA-256, does not qualify: ")
    assert refused.endswith(counted.format(2))


@pytest.mark.share(10)
@pytest.mark.parametrize("name", shipped())
def test_no_answer_gives_up_a_threat_of_the_default_without_naming_it(name: str) -> None:
    run = fabricated(name).study
    family = run.study.family
    want = Wanted(family, (), {}, asked("digest").on, asked("digest").today, Standing.ACCEPTABLE)
    for place in choose(want, run, {}):
        if not place.priced:
            continue
        found = Answered(want, [place], (), "from a run")
        steps, text = Qualifying(place, distinguishing(found)), first_sentences(found, distinguishing(found))
        own = steps.answer.coordinates
        assert family.standing_of(own) in IN_GOOD_STANDING
        if family.default is None:
            continue
        default = default_cell(family, own, of_default(family))
        assert all(threat.replace("-", " ") in text for threat in given_up(family, own, default))
