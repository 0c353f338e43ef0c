"""Sentences on stronger choices: a threat that is mitigated in part is never printed as mitigated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from builders import row
from fabricated import fabricated, shipped
from tollbar.analysis import Toll
from tollbar.catalog import families
from tollbar.catalog.families import Degree, Family, Value, at_defaults
from tollbar.report.sections.steps import Steps
from tollbar.report.sections.telling import Telling
from tollbar.report.ways import Place, Way
from tollbar.results import Row

# Words before the threats that are mitigated in part: of a gain as a property, and as a purpose.
IN_PART = ("in part against ", "partial protection against ")
# Each is compared with every other way of its family.
MOST_ANSWERS = 12


class Alone(Steps):
    """Ways of a family without any comparison of their costs."""

    def pair(self, row: Row, best: Row) -> Toll | None:
        return None

    def differing(self, differ: Mapping[str, Value]) -> str:
        return ""


def ways_of(family: Family) -> list[Way]:
    """Return a way for each option of a family, at its defaults and at each value that decides a threat."""
    found: list[Way] = []
    deciding = [one for one in family.settings.values() if one.about and one.values]
    for choice in family.choices.values():
        for given in [{}, *({one.name: value} for one in deciding for value in one.values or ())]:
            at = at_defaults(family, {"choice": choice.name, **given})
            standing = family.standing_of(at)
            if standing.is_of_option and not family.why_unsupported(at):
                found.append(Way(row(dict(at), standing=standing), 1.0 + len(found)))
    return found


def check(steps: Steps, way: Way, adds: Sequence[str]) -> str:
    """Return the words of a gain.

    Fail where they call a threat mitigated that the way mitigates in part, or not at all.
    """
    done = steps.family.mitigations_of(way.row.coordinates)
    texts = (steps.gain_words(way, adds), steps.purpose(way, adds))
    for text, in_part in zip(texts, IN_PART, strict=True):
        wholly, _, partly = f" {text}".partition(in_part)
        of_degree = {Degree.YES: wholly, Degree.PARTLY: f" {partly}"}
        for threat in steps.family.threats:
            named = {degree for degree, said in of_degree.items() if f" {threat.replace('-', ' ')}" in said}
            assert named <= {done[threat].degree}, (way.row.choice, text)
    return texts[0]


@pytest.mark.parametrize("name", [one for one, family in families.families().items() if family.threats])
def test_every_gain_has_its_degree(name: str) -> None:
    family = families.families()[name]
    ways = ways_of(family)
    steps = Alone(family, 0.03, [way.row for way in ways], ("choice",), lambda row: row.choice)
    gains = 0
    for answer in ways[:: max(len(ways) // MOST_ANSWERS, 1)]:
        for way, adds in steps.stronger(Place({}, ways, None, answer=answer)):
            gains += "against" in check(steps, way, adds)
    assert gains or name in ("tls-client", "rsa-api")


@pytest.mark.share(10)
@pytest.mark.parametrize("name", shipped())
def test_no_study_prints_part_of_a_protection_as_all_of_it(name: str) -> None:
    telling = Telling(fabricated(name))
    for place in telling.places:
        for way, adds in telling.stronger(place) if place.answer else ():
            check(telling, way, adds)


def test_a_bearer_token_mitigates_relay_in_part() -> None:
    telling = Telling(fabricated("quick/sign-in"))
    (place,) = telling.places
    gains = {way.row.choice: telling.gain_words(way, adds) for way, adds in telling.stronger(place)}
    in_part = "in part against relay, server break in and credential stuffing"
    assert f"against forged request and database theft, {in_part}" == gains["jwt"]
