"""Part of a study's document that gives the choices for each use, as the sentences and the table have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from tollbar.report.json_forms.form import Form, Number, Values, of, within
from tollbar.report.json_forms.parts import names_of
from tollbar.report.sections.uses import Against, Uses, use_sentences


class PlaceForm(Form):
    at: Annotated[Values, within(lambda cost, run: names_of(cost.place.at, run))]
    cost: Annotated[float, of("way.cost")]
    ratio: Number
    verdict: Annotated[str | None, of("pair.verdict")]


class OfferForm(Form):
    choice: Annotated[str, of("row.choice")]
    name: str
    op: Annotated[str, of("operation")]
    standing: Annotated[str, of("row.standing")]
    note: Annotated[str | None, within(lambda offer, run: run.study.family.choices[offer.row.choice].note)]
    places: Annotated[list[PlaceForm], of("costs")]


class CandidateForm(Form):
    name: str
    mitigates: str
    condition: str | None


class ThreatForm(Form):
    threat: str
    candidates: list[CandidateForm]


class UsesForm(Form):
    sentences: Annotated[list[str], of(lambda uses: use_sentences(uses))]
    operations: Annotated[list[OfferForm], of("offers")]
    threats: Annotated[list[ThreatForm], of(lambda uses: _threats(uses))]


def _threats(uses: Uses) -> Sequence[ThreatForm]:
    return [
        ThreatForm(threat=threat, candidates=_candidates(uses, against, threat))
        for against in uses.against
        for threat in against.threats
    ]


def _candidates(uses: Uses, against: Against, threat: str) -> list[CandidateForm]:
    found = [(one, uses.mitigation(one.offers, threat)) for one in against.candidates]
    return [CandidateForm(name=one.name, mitigates=done.degree, condition=done.condition) for one, done in found]
