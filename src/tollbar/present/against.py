"""What was found against a study's baseline, in sentences made from verdicts, and from nothing else.

Every function here is pure. A sentence says what a verdict says, in the verdict's own words; where
there is no verdict it says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tollbar.families import Value
from tollbar.judge import StudyJudgement, Toll, Verdict
from tollbar.present import cells, words
from tollbar.present.cells import labels, split
from tollbar.present.costs import cost_words

# More names than this in one sentence hide the answer: then the least and the greatest speak for the rest.
MOST_NAMES = 4
# Those that differ from cell to cell take a clause each, so fewer of them fit.
MOST_MIXED = 3


def against_baseline(study: StudyJudgement) -> tuple[str, str]:
    """Two sentences: what costs or saves in every cell; what depends, is free, unclear or not measured."""
    tolls = cells.real_tolls(study)
    baseline = words.quoted(cells.baseline_words(study))
    measured = [t for t in tolls if t.verdict is not Verdict.NOT_MEASURED]
    if not measured:
        return _nothing(study, baseline)
    operations = list(dict.fromkeys(t.row.coordinates.get("op") for t in measured))
    if len(operations) > 1 and "op" not in study.about.baseline:
        return _by_operation(study, tolls, baseline)
    subjects = _subjects(study, tolls)
    several_cells = any(len(s.measured) > 1 for s in subjects)
    everywhere = _everywhere(subjects)
    if everywhere:
        scope = ", in every cell measured" if several_cells else ""
        first = f"{_against(study, baseline)}{scope}, {everywhere}."
    else:
        throughout = " throughout" if several_cells else ""
        first = f"{_against(study, baseline)}, nothing is found to cost more or to cost less{throughout}."
    rest = _rest(study, subjects)
    if rest:
        return first, words.opened("; ".join(rest)) + "."
    number = words.counted(len(tolls), "cell")
    return first, f"{'The' if len(tolls) == 1 else 'All'} {number} compared {_is(tolls)} decided."


def _by_operation(study: StudyJudgement, tolls: Sequence[Toll], baseline: str) -> tuple[str, str]:
    """The same where there are several operations: what holds for signing says nothing of verifying."""
    said, others = [], 0
    for operation in dict.fromkeys(t.row.coordinates.get("op") for t in tolls):
        subjects = _subjects(study, [t for t in tolls if t.row.coordinates.get("op") == operation])
        if clause := _everywhere(subjects, most=1):
            said.append(f"for `{operation}`, {clause}")
        others += sum(s.verdict in (None, Verdict.FREE, Verdict.UNCLEAR) for s in subjects)
    gone = sum(t.verdict is Verdict.NOT_MEASURED for t in tolls)
    rest = []
    if others:
        rest.append(f"{words.counted(others, 'comparison')} {'is' if others == 1 else 'are'} free, unclear or mixed")
    if gone:
        rest.append(f"{words.counted(gone, 'cell')} could not be measured")
    second = words.opened("; ".join(rest)) if rest else f"All {words.counted(len(tolls), 'cell')} compared are decided"
    found = "; ".join(said) if said else "nothing is found to cost more or to cost less throughout an operation"
    return f"{_against(study, baseline)}, {found}.", f"{second}."


def _against(study: StudyJudgement, baseline: str) -> str:
    """What is compared with what: whose CPU time is said where it is not just the operation's own."""
    if cells.cost_metric(study) == "cpu":
        return f"Against {baseline}"
    return f"By {cost_words(study).in_sentence} and against {baseline}"


def _everywhere(subjects: Sequence[_Subject], most: int = MOST_NAMES) -> str:
    """What costs more, and what costs less, in each of its measured cells."""
    more = _ranked([s for s in subjects if s.verdict is Verdict.COSTS], "costs more", "cost more", most)
    less = _ranked([s for s in subjects if s.verdict is Verdict.SAVES], "costs less", "cost less", most)
    # A comma before the "and": each clause holds lists of its own.
    return ", and ".join(clause for clause in (more, less) if clause)


def _rest(study: StudyJudgement, subjects: Sequence[_Subject]) -> list[str]:
    worth = words.percent(study.about.worth)
    mixed = [s for s in subjects if s.verdict is None]
    free = [s for s in subjects if s.verdict is Verdict.FREE]
    unclear = [s for s in subjects if s.verdict is Verdict.UNCLEAR]
    missing = [s for s in subjects if s.verdict is Verdict.NOT_MEASURED]
    clauses = [_mixed(study, s) for s in mixed]
    if len(mixed) > MOST_MIXED:
        clauses = [f"for {_names(mixed)} it differs from cell to cell"]
    if free:
        clauses.append(f"{_names(free)} {_is(free)} free (no meaningful difference: within {worth})")
    if unclear:
        clauses.append(f"{_names(unclear)} {_is(unclear)} unclear")
    if missing:
        clauses.append(f"{_names(missing)} {'was' if len(missing) == 1 else 'were'} not measured")
    # Of what was measured somewhere, the cells where it could not be.
    gone = sum(len(s.tolls) - len(s.measured) for s in subjects if s.measured)
    if gone:
        more = "more " if missing else ""
        clauses.append(f"{words.counted(gone, f'{more}cell')} could not be measured")
    return clauses


@dataclass(frozen=True, slots=True)
class _Subject:
    """What is compared with the baseline, in every cell where it stands."""

    name: str
    standing: str | None
    tolls: tuple[Toll, ...]

    @property
    def measured(self) -> tuple[Toll, ...]:
        return tuple(t for t in self.tolls if t.verdict is not Verdict.NOT_MEASURED)

    @property
    def verdict(self) -> Verdict | None:
        """The verdict that all its measured cells share; None where they differ."""
        verdicts = {t.verdict for t in self.measured}
        if not verdicts:
            return Verdict.NOT_MEASURED
        return verdicts.pop() if len(verdicts) == 1 else None

    @property
    def middle(self) -> float:
        ratios = sorted(t.ratio.estimate for t in self.measured if t.ratio is not None)
        return ratios[len(ratios) // 2] if ratios else 0.0

    @property
    def named(self) -> str:
        return f"{self.name} ({self.standing})" if self.standing else self.name

    @property
    def with_range(self) -> str:
        ratios = words.ratio_range([t.ratio for t in self.measured if t.ratio is not None])
        return f"{self.name} ({self.standing}, {ratios})" if self.standing else f"{self.name} ({ratios})"


def _subjects(study: StudyJudgement, tolls: Sequence[Toll]) -> list[_Subject]:
    """The tolls by what sets a cell apart from its baseline: most often the choice."""
    baseline = study.about.baseline
    in_rows, _ = split(study, [row for t in tolls for row in (t.row, t.against)])
    names = [n for n in in_rows if n != "provider" or n in baseline] or ["choice"]
    label = labels(study, names)
    grouped: dict[str, list[Toll]] = {}
    for toll in tolls:
        grouped.setdefault(label(toll.row), []).append(toll)
    subjects = []
    for name, found in grouped.items():
        standing = found[0].row.standing
        called_out = "choice" in names and standing in words.CALLED_OUT
        said = words.standing_words(standing) if called_out else None
        subjects.append(_Subject(words.quoted(name), said, tuple(found)))
    return sorted(subjects, key=lambda s: s.middle)


def _nothing(study: StudyJudgement, baseline: str) -> tuple[str, str]:
    reasons = list(dict.fromkeys(r.reason for r in study.rows if r.reason))
    because = f"The first reason given: {reasons[0].rstrip('.')}." if reasons else "No reason was recorded."
    return f"Nothing was measured against {baseline}.", because


def _ranked(subjects: Sequence[_Subject], one: str, several: str, most: int) -> str:
    if not subjects:
        return ""
    if len(subjects) == 1:
        return f"{subjects[0].with_range} {one}"
    if len(subjects) <= most:
        return f"{words.enumeration([s.with_range for s in subjects])} {several}"
    return f"{len(subjects)} {several}, from {subjects[0].with_range} to {subjects[-1].with_range}"


def _mixed(study: StudyJudgement, subject: _Subject) -> str:
    """`SHA-512 costs more at 64 B and costs less at 16 KiB`, where one setting divides it; else a tally."""
    for name in cells.varying(t.row for t in subject.measured):
        found: dict[Value | None, set[Verdict]] = {}
        for toll in subject.measured:
            found.setdefault(toll.row.coordinates.get(name), set()).add(toll.verdict)
        where: dict[Verdict, list[Value]] = {}
        for value, verdicts in found.items():
            if value is not None and len(verdicts) == 1:
                where.setdefault(next(iter(verdicts)), []).append(value)
        # A longer list of values is for the table, not for a sentence.
        if sum(map(len, where.values())) == len(found) <= MOST_NAMES:
            parts = [f"{_SAYS[v]} {cells.where_words(study, {name: values})}" for v, values in where.items()]
            return f"{subject.named} {words.enumeration(parts)}"
    counted = {v: sum(t.verdict is v for t in subject.measured) for v in _SAYS}
    tally = words.enumeration([f"{_SAYS[v]} in {n}" for v, n in counted.items() if n])
    return f"{subject.with_range} {tally} of {words.counted(len(subject.measured), 'cell')}"


_SAYS = {
    Verdict.COSTS: "costs more",
    Verdict.SAVES: "costs less",
    Verdict.FREE: "is free",
    Verdict.UNCLEAR: "is unclear",
}


def _names(subjects: Sequence[_Subject]) -> str:
    names = [s.named for s in subjects[:MOST_NAMES]]
    if len(subjects) > MOST_NAMES:
        names.append(f"{len(subjects) - MOST_NAMES} more")
    return words.enumeration(names)


def _is(subjects: Sequence[object]) -> str:
    return "is" if len(subjects) == 1 else "are"
