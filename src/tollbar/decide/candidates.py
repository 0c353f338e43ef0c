"""Candidate cells before anything is measured, and the selection of those to measure.

A choice is a whole cell. Settings that are not given and decide policies or threats vary, such as a certificate or a
key exchange. All combinations may be hundreds, so candidates differ in a few settings from the nearest cell, the one
with the fewest violations: they show the cost of each setting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from tollbar.catalog.families import Family, Setting, Standing, Value, at_defaults, is_answer, is_default
from tollbar.catalog.policies import Ruling
from tollbar.core.patterns import is_like
from tollbar.decide.rulings import Candidate, Wanted, candidate, lacks, turned_on

# Largest number of settings in which a cell may differ from the nearest one that meets what is wanted.
MOST_APART = 2
# Share of the measured cells for those that do not qualify, and their largest number: they show the cost of a rule.
FOR_OTHERS, MOST_OTHERS = 1 / 3, 4

# An operation with more memory takes a second or more, so it comes later in the order.
HEAVY_BYTES = 256 << 20

PROVIDER = "provider"

_STANDINGS = tuple(Standing)
_ORDER = (Ruling.MEETS, Ruling.CANNOT_SAY, Ruling.BREAKS)


@dataclass(frozen=True, slots=True)
class Nearby:
    """Cells to choose from."""

    candidates: tuple[Candidate, ...]
    """Candidates, qualifying ones first, of each kind the family's default, then the nearest."""
    names: tuple[str, ...]
    """`choice`, and the settings that distinguish the candidates."""
    refusal: str | None = None
    """Reason why one combination is unsupported and left out; None: all are supported."""

    @property
    def measurable(self) -> tuple[Candidate, ...]:
        """Candidates without a known reason why they cannot be measured."""
        return tuple(one for one in self.candidates if one.unmeasured is None)

    def to_measure(self, most: int) -> tuple[Candidate, ...]:
        """Return at most `most` candidates: qualifying ones first, then those with the fewest violations."""
        qualify = [one for one in self.measurable if one.ruling is Ruling.MEETS]
        others = [one for one in self.measurable if one.ruling is not Ruling.MEETS]
        kept = min(len(others), max(min(int(FOR_OTHERS * most), MOST_OTHERS), most - len(qualify)))
        return (*qualify[: most - kept], *others[:kept])

    def cell(self, one: Candidate) -> Mapping[str, Value]:
        """Return the coordinates that distinguish a candidate from the others."""
        return {name: one.coordinates[name] for name in self.names if name in one.coordinates}


Providers = Callable[[Mapping[str, Value]], Sequence[str]]
"""Providers able to perform a cell with its choice and its server, in order of preference."""


def deciding(wanted: Wanted) -> tuple[str, ...]:
    """Return the settings that the policies' rules name or a threat depends on, in the family's order."""
    found = turned_on(wanted)
    return tuple(name for name, setting in wanted.family.settings.items() if name in found and setting.values)


def nearby(wanted: Wanted, given: Mapping[str, Sequence[Value]], providers: Providers | None = None) -> Nearby:
    """Return the candidates with the given coordinates: `choice` by patterns, each other by its values.

    Unsupported combinations are omitted, such as a hybrid in TLS 1.2. Where a policy rules on providers and none is
    given, a cell gets the one of `providers` with the fewest violations.
    """
    family = wanted.family
    patterns = [str(one) for one in given.get("choice", ("*",))]
    said = {name: tuple(values) for name, values in given.items() if name != "choice"}
    free = [name for name in deciding(wanted) if name not in said]
    # Settings that can lower a standing do not vary; they get a value that does not lower it.
    set_well = [n for n, s in family.settings.items() if n not in (*free, *said) and _lowers(s)]
    found: dict[frozenset[tuple[str, Value]], tuple[tuple[int, int, int], Candidate]] = {}
    turns: Counter[tuple[str, tuple[str, ...], Ruling]] = Counter()
    refusal: str | None = None
    names = ["choice", *(turned_on(wanted) & {PROVIDER})]
    names += [n for n in family.settings if n in free or n in said]
    for choice in family.choices.values():
        if not is_answer(family, choice.name) or not any(is_like(choice.name, one) for one in patterns):
            continue
        own = _settings_of_default(family, choice.name)
        for values, of_default in product(product(*said.values()), [{}, own] if own else [{}]):
            fixed: dict[str, Value] = {**of_default, "choice": choice.name, **dict(zip(said, values, strict=True))}
            varied = [n for n in (*free, *set_well) if n not in of_default]
            base = _nearest(wanted, _performed(wanted, fixed, providers), varied)
            shown = [*set_well, *of_default]
            names += [n for n in shown if n not in names and n in base and base[n] != family.settings[n].default]
            # The cell of the default alone: the cells around it are those around the usual settings.
            for apart in range(1 if of_default else MOST_APART + 1):
                for changed in combinations(free, apart):
                    for others in product(*(_others(wanted, name, base) for name in changed)):
                        cell = at_defaults(family, {**base, **dict(zip(changed, others, strict=True))})
                        at = frozenset(cell.items())
                        why = family.why_unsupported(cell) or family.contradiction(cell)
                        refusal = refusal or why
                        if why is not None or at in found or not all(name in cell for name in changed):
                            continue
                        one = candidate(wanted, cell)
                        # The first of each choice and setting come before the second, so that a few candidates cover
                        # all.
                        kind = choice.name, changed, one.ruling
                        is_heavy = choice.memory_bytes(cell) > HEAVY_BYTES
                        place = apart + is_heavy, turns[kind], _STANDINGS.index(family.standing_of(cell))
                        turns[kind] += 1
                        found[at] = place, one
    along = {"choice", *family.parameters, *free, *(family.default.setting if family.default else ())}
    ordered = sorted(
        found.values(),
        key=lambda one: (
            _ORDER.index(one[1].ruling),
            lacks(one[1]),
            not is_default(family, one[1].coordinates, along),
            one[0],
        ),
    )
    return Nearby(tuple(one for *_, one in ordered), tuple(names), refusal)


def _settings_of_default(family: Family, choice: str) -> Mapping[str, Value]:
    """Return the settings of the family's default, if it is this choice and they are not the usual ones."""
    default = family.default
    if default is None or default.choice != choice:
        return {}
    return {name: one for name, one in default.setting.items() if one != family.settings[name].default}


def _lowers(setting: Setting) -> bool:
    return bool(setting.values) and any(value.standing is not None for value in setting.about.values())


def _performed(wanted: Wanted, fixed: Mapping[str, Value], providers: Providers | None) -> Mapping[str, Value]:
    """Return the coordinates with the provider of the fewest violations, where a policy rules on providers."""
    if providers is None or PROVIDER in fixed or PROVIDER not in turned_on(wanted):
        return fixed
    cells = [at_defaults(wanted.family, {**fixed, PROVIDER: one}) for one in providers(fixed)]
    best = min(cells, key=lambda cell: lacks(candidate(wanted, cell)), default=None)
    return fixed if best is None else {**fixed, PROVIDER: best[PROVIDER]}


def _values(wanted: Wanted, name: str, at: Mapping[str, Value]) -> list[Value]:
    """Return the values over which a setting varies, its default first, without those done elsewhere."""
    setting = wanted.family.settings[name]
    values = dict.fromkeys((setting.default, *(setting.values or ())))
    return [value for value in values if not wanted.family.done_elsewhere(name, {**at, name: value})]


def _others(wanted: Wanted, name: str, base: Mapping[str, Value]) -> list[Value]:
    default = wanted.family.settings[name].default
    return [value for value in _values(wanted, name, base) if value != base.get(name, default)]


def _nearest(wanted: Wanted, fixed: Mapping[str, Value], free: Sequence[str]) -> Mapping[str, Value]:
    """Return the coordinates with each free setting at its default, or at a supported value with fewer violations."""
    at = dict(fixed)

    def rank(name: str, value: Value) -> tuple[bool, tuple[int, int]]:
        cell = at_defaults(wanted.family, {**at, name: value})
        return wanted.family.why_unsupported(cell) is not None, lacks(candidate(wanted, cell))

    for name in free:
        at[name] = min(_values(wanted, name, at), key=lambda value, name=name: rank(name, value))  # type: ignore[misc]
    return at
