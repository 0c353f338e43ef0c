"""Results of `choose` for one question, and the names of their cells and places."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tollbar.catalog.policies import Ruling
from tollbar.decide.choosing import Choosing
from tollbar.decide.rulings import Candidate, Wanted
from tollbar.report.coordinates import Form, named_value
from tollbar.report.names import place_of


@dataclass(frozen=True, slots=True)
class Answered:
    """Results of `choose` for one question."""

    wanted: Wanted
    places: Sequence[Choosing]
    unmeasured: Sequence[Candidate]
    """Candidates that are judged but were not measured."""
    source: str
    """Words for the origin of the costs."""
    is_of_run: bool = False
    """True if the costs are from an existing run, which more time cannot extend."""
    is_unpriced: bool = False
    """True if no costs were requested."""
    instead: Sequence[Candidate] = ()
    """Candidates that were not asked for and qualify, if none that was asked for does on a later day."""

    @property
    def qualifies(self) -> bool:
        """Return true if any candidate qualifies, measured or not."""
        return any(one.qualifies for one in self.places) or any(one.ruling is Ruling.MEETS for one in self.unmeasured)

    def candidates(self, names: Sequence[str]) -> Mapping[str, tuple[Choosing | None, Candidate]]:
        """Return every cell once, by its name, measured ones first: in the first place that has it, or with None."""
        found: dict[str, tuple[Choosing | None, Candidate]] = {}
        for place in self.places:
            for one in all_of(place):
                found.setdefault(typed_name(self, one, names), (place, one))
        for one in self.unmeasured:
            found.setdefault(typed_name(self, one, names), (None, one))
        return found


def all_of(place: Choosing) -> Iterable[Candidate]:
    """Return all candidates of a place."""
    return (*place.qualifies, *place.refused, *place.unsaid)


def typed_name(of: Answered, one: Candidate, names: Sequence[str]) -> str:
    """Return a candidate's name as a question has it: `ecdsa-p256 · digest sha-256`."""
    at = one.row.shown if one.row else one.coordinates
    said = [named_value(of.wanted.family, name, at[name], Form.QUESTION) for name in names if name in at]
    return " · ".join(said)


def place_name(of: Answered, place: Choosing) -> str:
    """Return the coordinates that a place's candidates share; with its study if the run has several."""
    # A row without a setting is in the place of each of its values.
    shown: Mapping[str, object] = next((one.row.shown for one in all_of(place) if one.row), {})
    at = {name: shown.get(name, value) for name, value in place.where.items()}
    words = place_of(of.wanted.family, at, at)  # type: ignore[arg-type]
    # Two studies of a run may ask for the same.
    several = len({one.study for one in of.places}) > 1
    return f"{place.study} · {words}" if several else words


def distinguishing(of: Answered) -> list[str]:
    """Return the coordinates that distinguish candidates: the choice, and settings that vary and belong to no place."""
    every = [one.coordinates for place in of.places for one in all_of(place)]
    every += [one.coordinates for one in of.unmeasured]
    wheres = {name for place in of.places for name in place.where}
    found = dict.fromkeys(name for at in every for name in at)
    return [
        name
        for name in ("choice", *(n for n in found if n != "choice"))
        if name == "choice" or (name not in wheres and len({str(at.get(name)) for at in every if name in at}) > 1)
    ]
