"""Words of gathered tolls that the tables and the page's matrix share: names of rows, ratios of runs, machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from tollbar.catalog import families
from tollbar.catalog.families import Family, Value
from tollbar.core.errors import TollbarError
from tollbar.core.words import counted, enumeration
from tollbar.decide.compare import Gathered, Machine, MachineToll, TollRow
from tollbar.decide.compare.found_runs import shown
from tollbar.report.names import place_of
from tollbar.report.numbers import marked, percent, ratio_words

DIFFERS = "runs differ"
"""In place of a verdict: runs of one machine contradict one another."""


def told(gathered: Gathered) -> list[int]:
    """Return the numbers of the machines that have any toll."""
    return sorted({number for row in gathered.rows for number in row.places})


@cache
def _family(name: str) -> Family | None:
    """Return the installed family; None if it is not installed."""
    try:
        return families.family(name)
    except TollbarError:
        return None


def title(name: str) -> str:
    family = _family(name)
    return family.title if family else name


@dataclass(frozen=True, slots=True)
class Names:
    """Names of the rows of one family, by the settings in which they differ."""

    family: str
    varying: tuple[str, ...]

    @classmethod
    def of(cls, family: str, rows: Iterable[TollRow]) -> Names:
        some = list(rows)
        values: dict[str, set[Value | None]] = {"choice": set(), "server": set(), "provider": set(), "op": set()}
        for name in dict.fromkeys(name for row in some for name in row.at):
            values.setdefault(name, set()).update(row.at.get(name) for row in some)
        return cls(family, tuple(name for name, found in values.items() if name == "choice" or len(found) > 1))

    def cell(self, row: TollRow) -> str:
        return self._words(row.at, self.varying)

    def over(self, row: TollRow) -> str:
        """Return the baseline's name, by the coordinates that differ from the row's."""
        return self._words(row.over, [name for name, value in row.over.items() if row.at.get(name) != value])

    def _words(self, at: Mapping[str, Value], names: Sequence[str]) -> str:
        family = _family(self.family)
        if family is None:
            # A family without an installed file has no words, so its values are used.
            return " · ".join(str(at[name]) for name in names if name in at)
        return place_of(family, at, names)


def by_family(rows: Sequence[TollRow]) -> dict[str, list[TollRow]]:
    found: dict[str, list[TollRow]] = {}
    for row in rows:
        found.setdefault(row.family, []).append(row)
    return found


def verdict_words(place: MachineToll) -> str:
    return DIFFERS if place.verdict is None else str(place.verdict)


def ratio_and_ends(place: MachineToll) -> tuple[str, str]:
    """Return the ratio of all runs, marked where it is noisy, and the ends of its interval. Empty: none."""
    if not place.ratios:
        return "", ""
    if len(place.ratios) == 1:
        return _range(place), _ends(place.ratios[0].low, place.ratios[0].high)
    together = place.ratio
    if together is None:
        return _range(place), _ends(None, None)
    return marked(ratio_words(together.estimate), together.is_noisy), _ends(together.low, together.high)


def _range(place: MachineToll) -> str:
    """Return the least and the greatest of the runs' own ratios, marked where one is noisy: `1.50 to 1.60`."""
    found = [toll.ratio for toll in place.ratios if toll.ratio is not None]
    low, high = ratio_words(min(found)), ratio_words(max(found))
    return marked(low if low == high else f"{low} to {high}", any(toll.is_noisy for toll in place.ratios))


def runs_words(place: MachineToll) -> str:
    """Return the number of runs and the range of their own ratios; empty where there is one run."""
    return f"{len(place.ratios)} runs: {_range(place)}" if len(place.ratios) > 1 else ""


def _ends(low: float | None, high: float | None) -> str:
    return "too few blocks" if low is None or high is None else f"{ratio_words(low)}, {ratio_words(high)}"


def reason(place: MachineToll) -> str:
    """Return the reason for a missing ratio, from the first run that has one."""
    return shown(next((one.toll.reason for one in place.seen if one.toll.reason), "not measured"))


def _studies(row: TollRow) -> str:
    return enumeration(sorted({shown(one.study.name) for place in row.places.values() for one in place.seen}))


def told_apart(rows: Sequence[TollRow], names: Names) -> list[str]:
    """Return for each row the words that distinguish it from rows of the same name, if there are any."""
    alike: dict[tuple[str, str], list[TollRow]] = {}
    for row in rows:
        alike.setdefault((names.cell(row), names.over(row)), []).append(row)
    found: dict[int, str] = {}
    for same in alike.values():
        said = [f"{row.cost}, {percent(row.threshold)} threshold" for row in same]
        if len(set(said)) < len(same):
            said = [f"{words}, in {_studies(row)}" for words, row in zip(said, same, strict=True)]
        # Studies of one name, of which one was changed.
        counts = Counter(said)
        numbers: Counter[str] = Counter()
        for row, words in zip(same, said, strict=True):
            numbers[words] += 1
            way = f", version {numbers[words]} of {counts[words]}" if counts[words] > 1 else ""
            found[id(row)] = f"; {words}{way}" if len(same) > 1 else ""
    return [found[id(row)] for row in rows]


def machine_words(machine: Machine) -> str:
    """Return the words that distinguish a machine from others with the same processor."""
    facts = machine.fingerprint.model_dump()
    cores = facts.get("cores")
    said = ["simulated" if facts.get("simulated") else "", f"kernel {facts['kernel']}" if facts.get("kernel") else ""]
    return shown(", ".join(filter(None, [*said, counted(cores, "core") if isinstance(cores, int) else ""])))
