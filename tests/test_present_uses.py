"""Which choice is usable for what: sentences, table and document are the family's threats × the run's verdicts."""

from __future__ import annotations

from dataclasses import replace

from report_example import digests
from served_example import handshakes
from tollbar.families import Degree, Standing
from tollbar.judge import StudyJudgement, Verdict
from tollbar.present.uses import Uses, losses, sentences, uses_document, uses_table


def _with_verdicts(study: StudyJudgement, verdict: Verdict) -> StudyJudgement:
    return replace(study, tolls=tuple(replace(t, verdict=verdict) if t.ratio else t for t in study.tolls))


def test_the_cheapest_against_a_threat_mitigates_it_and_nothing_cheaper_does() -> None:
    """For each threat and operation: no offer in good standing before it in cost mitigates as much."""
    uses = Uses(handshakes())
    assert uses.against
    told = [threat for against in uses.against for threat in against.threats]
    assert sorted(uses.threats) == sorted(told)
    for against in uses.against:
        for threat in against.threats:
            for offer, degree in against.cheapest:
                assert offer.is_good
                assert degree is uses.mitigation(offer, threat).degree is not Degree.NO
                before = uses.offers[: uses.offers.index(offer)]
                rivals = [o for o in before if o.operation == offer.operation and o.is_good]
                assert all(uses.mitigation(o, threat).degree is not degree for o in rivals)
                if degree is Degree.PARTLY:
                    good = [o for o in uses.offers if o.operation == offer.operation and o.is_good]
                    assert Degree.YES not in {uses.mitigation(o, threat).degree for o in good}


def test_what_nothing_mitigates_is_said_to_be_so() -> None:
    """A threat that only what is deprecated mitigates has no cheapest."""
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
    said = sentences(study)
    assert said
    assert all(s.endswith("nothing recommended or acceptable that was measured.") for s in said)


def test_ratios_are_to_the_same_without_protection_and_carry_their_verdicts() -> None:
    """What was not decided is said to be undecided; what is decided has its number alone."""
    study = handshakes()
    undecided = [s for s in sentences(_with_verdicts(study, Verdict.UNCLEAR)) if s.startswith("For ")]
    free = [s for s in sentences(_with_verdicts(study, Verdict.FREE)) if s.startswith("For ")]
    costs = [s for s in sentences(_with_verdicts(study, Verdict.COSTS)) if s.startswith("For ")]
    assert [True] == ["(undecided)" in s for s in undecided]
    assert [True] == ["(no meaningful difference)" in s for s in free]
    assert [False] == ["(" in s.partition("×")[2] for s in costs]
    judged = {t.row.key: t.ratio.estimate for t in study.tolls if t.ratio}
    for offer in Uses(study).offers:
        assert all(judged[cost.way.row.key] == cost.ratio for cost in offer.costs)


def test_the_document_and_the_table_have_what_the_sentences_have() -> None:
    """One source: names, notes and conditions alike."""
    study = handshakes()
    found = uses_document(study)
    uses = Uses(study)
    assert sentences(study) == found["sentences"]
    assert [o.name for o in uses.offers] == [o["name"] for o in found["operations"]]
    assert set(uses.threats) == {t["threat"] for t in found["threats"]}
    assert {o.name for o in uses.offers} == {row[0].says for row in uses_table(study).rows}
    choices = study.about.family.choices.values()
    assert all(any(line.startswith(f"{c.title}: ") for c in choices) for line in losses(study))


def test_a_family_without_threats_has_no_such_words() -> None:
    """Nor has a study whose cells all do the same about every threat."""
    study = digests()
    assert ([], [], ()) == (sentences(study), losses(study), tuple(uses_table(study).rows))
    assert {"sentences": [], "operations": [], "threats": []} == uses_document(study)
