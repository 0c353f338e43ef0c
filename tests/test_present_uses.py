"""Usable choices: sentences, table and document combine the family's threats with the run's verdicts."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from report_example import digests, judgement
from served_example import handshakes
from tollbar.analysis import StudyJudgement, Toll, Verdict
from tollbar.catalog.families import Degree, Standing
from tollbar.report.json_forms import of_run
from tollbar.report.sections.uses import Candidate, Offer, Uses, losses, use_sentences, uses_table


def _with_verdicts(study: StudyJudgement, verdict: Verdict) -> StudyJudgement:
    return replace(study, tolls=tuple(replace(t, verdict=verdict) if t.ratio else t for t in study.tolls))


def test_what_stands_against_a_threat_mitigates_it_and_nothing_that_does_undercuts_it() -> None:
    uses = Uses(handshakes())
    told = [threat for against in uses.against for threat in against.threats]
    assert sorted(uses.threats) == sorted(told)
    good = {name: way for name, way in uses.ways.items() if all(offer.is_good for offer in way)}
    for against in uses.against:
        for threat in against.threats:
            degrees = {name: uses.mitigation(way, threat).degree for name, way in good.items()}
            most = next(d for d in (Degree.YES, Degree.PARTLY) if d in degrees.values())
            alike = {name for name, degree in degrees.items() if degree is most}
            kept = {one.name: one for one in against.candidates}
            assert {most} == {one.degree for one in against.candidates}
            assert kept.keys() <= alike
            for name in alike:
                beaten = any(Candidate(good[name], most).is_beaten_by(one) for one in kept.values())
                assert beaten is (name not in kept)


def test_one_beats_another_only_in_all_that_both_were_measured_in(monkeypatch: pytest.MonkeyPatch) -> None:
    cheap, *_, dear = Uses(handshakes()).offers

    def one(**ops: Offer) -> Candidate:
        return Candidate(tuple(replace(offer, operation=op) for op, offer in ops.items()), Degree.YES)

    assert one(read=dear).is_beaten_by(one(read=cheap))
    assert not one(read=cheap).is_beaten_by(one(read=dear))
    assert not one(read=cheap).is_beaten_by(one(read=cheap))
    assert not one(read=dear, write=cheap).is_beaten_by(one(read=cheap, write=dear))
    assert not one(read=dear, write=dear).is_beaten_by(one(read=cheap))
    assert one(read=dear).is_beaten_by(one(read=cheap, write=dear))
    wide = replace(cheap, costs=tuple(replace(cost, pair=_widened(cost.pair)) for cost in cheap.costs))
    assert not one(read=dear).is_beaten_by(one(read=wide))
    monkeypatch.setattr("tollbar.report.sections.uses.MOST_PAIRS", 0)
    assert not one(read=dear).is_beaten_by(one(read=cheap))


def _widened(pair: Toll | None) -> Toll:
    assert pair is not None
    assert pair.ratio is not None
    return replace(pair, ratio=replace(pair.ratio, high=1e9))


def test_of_very_many_ways_the_cheapest_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is compared with each: a stranger's run of 120 cells in one place took minutes."""
    # So that none is left out because another beats it.
    monkeypatch.setattr("tollbar.report.sections.uses.MOST_PAIRS", 0)
    before = Uses(handshakes()).against
    assert any(len(against.candidates) > 1 for against in before)
    monkeypatch.setattr("tollbar.report.sections.uses.MOST_WAYS", 1)
    after = Uses(handshakes()).against
    first = {threat: against.candidates[0].name for against in before for threat in against.threats}
    assert first == {threat: one.name for of in after for one in of.candidates for threat in of.threats}


def test_what_nothing_mitigates_is_said_to_be_so() -> None:
    study = handshakes()
    rows = tuple(
        replace(r, standing=Standing.DEPRECATED) if r.standing is not Standing.NULL else r for r in study.study.rows
    )
    keys = {row.key: row for row in rows}
    study = replace(
        study,
        study=replace(study.study, rows=rows),
        measurements=tuple(replace(m, row=keys[m.row.key]) for m in study.measurements),
        tolls=tuple(replace(t, row=keys[t.row.key], against=keys[t.against.key]) for t in study.tolls),
    )
    said = use_sentences(Uses(study))
    assert said
    assert all(s.endswith("no approved choice was measured.") for s in said)


def test_ratios_are_to_the_same_without_protection_and_carry_their_verdicts() -> None:
    study = handshakes()
    undecided = [s for s in use_sentences(Uses(_with_verdicts(study, Verdict.UNCLEAR))) if s.startswith("For ")]
    free = [s for s in use_sentences(Uses(_with_verdicts(study, Verdict.FREE))) if s.startswith("For ")]
    costs = [s for s in use_sentences(Uses(_with_verdicts(study, Verdict.COSTS))) if s.startswith("For ")]
    assert [True] == ["(undecided)" in s for s in undecided]
    assert [True] == ["(no meaningful difference)" in s for s in free]
    assert [False] == ["(" in s.partition("×")[2] for s in costs]
    judged = {t.row.key: t.ratio.estimate for t in study.tolls if t.ratio}
    for offer in Uses(study).offers:
        assert all(judged[cost.way.row.key] == cost.ratio for cost in offer.costs)


def test_connections_have_their_difference_before_their_ratio() -> None:
    """On loopback ratios of connections to plaintext are too high; differences are right."""
    costs = re.compile(r"× [\d.]+(?: to × [\d.]+)?")
    apart = re.compile(r"\+[\d.]+ (?:µs|ms)(?: to \+[\d.]+ (?:µs|ms))?, ")
    told = [s for s in use_sentences(Uses(handshakes())) if s.startswith(("For ", "Against "))]
    assert len(told) > 2
    for sentence in told:
        plain = sentence.replace("\xa0", " ")
        assert len(costs.findall(plain)) == len(re.findall(apart.pattern + costs.pattern, plain)) > 0, plain


def test_the_document_and_the_table_have_what_the_sentences_have() -> None:
    study = handshakes()
    found = of_run(judgement([study]))["studies"][0]["uses"]
    uses = Uses(study)
    assert use_sentences(Uses(study)) == found["sentences"]
    assert [o.name for o in uses.offers] == [o["name"] for o in found["operations"]]
    assert set(uses.threats) == {t["threat"] for t in found["threats"]}
    assert {o.name for o in uses.offers} == {row[0].says for row in uses_table(uses).rows}
    choices = study.about.family.choices.values()
    assert all(any(line.startswith(f"{c.title}: ") for c in choices) for line in losses(uses))


def test_a_family_without_threats_has_no_such_words() -> None:
    study = digests()
    uses = Uses(study)
    assert ([], [], ()) == (use_sentences(uses), losses(uses), tuple(uses_table(uses).rows))
    assert {"sentences": [], "operations": [], "threats": []} == of_run(judgement([study]))["studies"][0]["uses"]
