"""Sentences made from verdicts, and from nothing else.

Every function here is pure. A sentence says what a verdict says, in the verdict's own words; where
there is no verdict it says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tollbar import units
from tollbar.catalogue import Family
from tollbar.judge import ClaimVerdict, StudyJudgement, Toll, Verdict
from tollbar.measure import Outcome
from tollbar.report import words

# More names than this in one sentence hide the answer: then the least and the greatest speak for the rest.
MOST_NAMES = 4


def answer(study: StudyJudgement) -> tuple[str, str]:
    """Two sentences: what costs or saves in every cell; then what depends, is free, unclear or not measured."""
    subjects = _subjects(study)
    baseline = words.baseline_words(study)
    if not any(s.measured for s in subjects):
        return _nothing(study, baseline)
    groups = {verdict: [s for s in subjects if s.verdict is verdict] for verdict in Verdict}
    mixed = [s for s in subjects if s.verdict is None]
    everywhere = [
        clause
        for verdict, one, several in (
            (Verdict.COSTS, "costs more", "cost more"),
            (Verdict.SAVES, "costs less", "cost less"),
        )
        if (clause := _ranked(groups[verdict], one, several))
    ]
    several_cells = len({t.row.key for s in subjects for t in s.measured}) > len(subjects)
    scope = " in every cell measured" if several_cells else ""
    first = (
        f"Against {baseline}, {_and(everywhere)}{scope}."
        if everywhere
        else f"Against {baseline}, nothing costs more and nothing costs less{scope}."
    )
    worth = words.percent(study.study.study.worth)
    rest = [_mixed(study.study.study.family, s) for s in mixed[:MOST_NAMES]]
    if len(mixed) > MOST_NAMES:
        rest.append(f"{len(mixed) - MOST_NAMES} more differ from cell to cell")
    free, unclear, missing = (groups[v] for v in (Verdict.FREE, Verdict.UNCLEAR, Verdict.NOT_MEASURED))
    if free:
        rest.append(f"{_names(free)} {_is(free)} free (within {worth})")
    if unclear:
        rest.append(f"{_names(unclear)} {_is(unclear)} unclear")
    if missing:
        rest.append(f"{_names(missing)} {'was' if len(missing) == 1 else 'were'} not measured")
    if rest:
        text = "; ".join(rest)
        return first, text[0].upper() + text[1:] + "."
    cells = len({t.row.key for s in subjects for t in s.tolls})
    return first, f"Every one of the {_count(cells, 'cell')} compared has a verdict."


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
    def range(self) -> str:
        return words.ratio_range([t.ratio for t in self.measured if t.ratio is not None])

    @property
    def middle(self) -> float:
        ratios = sorted(t.ratio.estimate for t in self.measured if t.ratio is not None)
        return ratios[len(ratios) // 2] if ratios else 0.0

    @property
    def named(self) -> str:
        return f"{self.name} ({self.standing})" if self.standing else self.name


def _subjects(study: StudyJudgement) -> list[_Subject]:
    """The tolls by what sets a cell apart from its baseline: most often the choice."""
    family, baseline = study.study.study.family, study.study.study.baseline
    tolls = words.real_tolls(study)
    vary = words.varying(t.row for t in tolls)
    names = ["choice"] if "choice" in baseline else []
    names += [n for n in baseline if n != "choice" and n in vary] or ([] if names else list(baseline))
    grouped: dict[str, list[Toll]] = {}
    for toll in tolls:
        grouped.setdefault(words.place(family, toll.row.coordinates, names) or toll.row.title, []).append(toll)
    subjects = []
    for name, found in grouped.items():
        standing = found[0].row.standing
        called_out = "choice" in names and standing in words.CALLED_OUT
        subjects.append(_Subject(name, words.standing_words(standing) if called_out else None, tuple(found)))
    return sorted(subjects, key=lambda s: s.middle)


def _nothing(study: StudyJudgement, baseline: str) -> tuple[str, str]:
    reasons = list(dict.fromkeys(r.reason for r in study.study.rows if r.reason))
    because = f" The first reason given: {reasons[0].rstrip('.')}." if reasons else " No reason was recorded."
    return f"Nothing was measured against {baseline}.", because.strip()


def _ranked(subjects: Sequence[_Subject], one: str, several: str) -> str:
    if not subjects:
        return ""
    if len(subjects) == 1:
        return f"{_with_range(subjects[0])} {one}"
    if len(subjects) <= MOST_NAMES:
        return f"{words.enumeration([_with_range(s) for s in subjects])} {several}"
    least, most = subjects[0], subjects[-1]
    return f"{len(subjects)} {several}, from {_with_range(least)} to {_with_range(most)}"


def _with_range(subject: _Subject) -> str:
    inside = f"{subject.standing}, {subject.range}" if subject.standing else subject.range
    return f"{subject.name} ({inside})"


def _mixed(family: Family, subject: _Subject) -> str:
    """`SHA-512 costs more at 64 B and less at 16 KiB`, where one setting divides it; else the range."""
    for name in words.varying(t.row for t in subject.measured):
        by_value: dict[Any, set[Verdict]] = {}
        for toll in subject.measured:
            by_value.setdefault(toll.row.coordinates.get(name), set()).add(toll.verdict)
        divides = all(len(found) == 1 for found in by_value.values()) and None not in by_value
        # A longer list of values is for the table, not for a sentence.
        if divides and len(by_value) <= MOST_NAMES:
            where: dict[Verdict, list[Any]] = {}
            for value, found in by_value.items():
                where.setdefault(next(iter(found)), []).append(value)
            says = {Verdict.COSTS: "costs more", Verdict.SAVES: "costs less", Verdict.FREE: "is free"}
            parts = [
                f"{says.get(verdict, 'is unclear')} {words.where_words(family, {name: values})}"
                for verdict, values in where.items()
            ]
            return f"{subject.named} {words.enumeration(parts)}"
    return f"{_with_range(subject)} differs from cell to cell: {_tally(subject.measured)}"


def _tally(tolls: Sequence[Toll]) -> str:
    says = {
        Verdict.COSTS: "costs more in {}",
        Verdict.SAVES: "costs less in {}",
        Verdict.FREE: "free in {}",
        Verdict.UNCLEAR: "unclear in {}",
    }
    counted = [(text, sum(t.verdict is verdict for t in tolls)) for verdict, text in says.items()]
    return words.enumeration([text.format(count) for text, count in counted if count])


def _and(clauses: Sequence[str]) -> str:
    # A comma before the "and": each clause holds lists of its own.
    return ", and ".join(clauses)


def _names(subjects: Sequence[_Subject]) -> str:
    if len(subjects) > MOST_NAMES:
        return f"{words.enumeration([*(s.named for s in subjects[:MOST_NAMES]), f'{len(subjects) - MOST_NAMES} more'])}"
    return words.enumeration([s.named for s in subjects])


def _is(subjects: Sequence[_Subject]) -> str:
    return "is" if len(subjects) == 1 else "are"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def claims(study: StudyJudgement) -> str:
    """One sentence: how the published comparisons came out."""
    counts = {v: sum(c.verdict is v for c in study.claims) for v in ClaimVerdict}
    parts = [f"{n} {v}" for v, n in counts.items() if n and v is not ClaimVerdict.CANNOT_TELL]
    if counts[ClaimVerdict.CANNOT_TELL]:
        parts.append(f"{counts[ClaimVerdict.CANNOT_TELL]} cannot be told")
    noun = _count(len(study.claims), "comparison")
    return f"{noun} with published ratios: {words.enumeration(parts)}."


def verdict(verdict: Verdict, more_blocks: int | None) -> str:
    """A verdict with what would decide it: `unclear (about 25 more blocks)`."""
    if verdict is Verdict.UNCLEAR and more_blocks is not None:
        return f"{verdict} (about {_count(more_blocks, 'more block')} would tell)"
    return str(verdict)


def noise(study: StudyJudgement) -> str:
    """One sentence: the noise floor, and what follows from it."""
    if study.noise_floor is None:
        return "No baseline was measured twice, so there is no noise floor and no verdict rests on one."
    return (
        "Each baseline is measured twice in every block. The two may differ by up to"
        f" {times_exactly(study.noise_floor)} here: no verdict is given below that."
    )


def times_exactly(ratio: float) -> str:
    """A ratio near one, to three decimals: two would round a noise floor away."""
    return f"× {ratio:.3f}" if 0.5 < ratio < 2 else words.times(ratio)


def drift(study: StudyJudgement) -> str:
    """One sentence: how far the machine moved under the run."""
    if study.drift is None:
        return "There are too few blocks to tell whether the machine drifted."
    return (
        f"From the first to the last third of the blocks the median cell's cost changed by"
        f" {(study.drift - 1) * 100:+.1f} %; ratios are formed within blocks, so this cancels."
    ).replace("-", "−", 1)


def checked(study: StudyJudgement) -> str:
    """One sentence: how many cells answered rightly and were measured, and what became of the others."""
    rows = study.study.rows
    ok = sum(r.outcome is Outcome.OK for r in rows)
    text = f"{ok:,} of {_count(len(rows), 'cell')} gave the right answer before they were timed"
    others = [(o, sum(r.outcome is o for r in rows)) for o in Outcome if o is not Outcome.OK]
    rest = [f"{n:,} {o}" for o, n in others if n]
    return f"{text}; {words.enumeration(rest)}." if rest else f"{text}."


def steal(study: StudyJudgement) -> str:
    """One sentence: the CPU time that the hypervisor gave to others meanwhile."""
    trials = [t for r in study.study.rows for t in (*r.trials, *r.twins)]
    stolen, wall = sum(t.steal_ns for t in trials), sum(t.wall_ns for t in trials)
    if not trials:
        return "There are no trials."
    if not stolen:
        return f"No CPU time was given to other machines in {_count(len(trials), 'trial')}."
    touched = sum(t.steal_ns > 0 for t in trials)
    return (
        f"The hypervisor gave {units.show_nanoseconds(stolen)} of CPU time to others during"
        f" {touched:,} of {_count(len(trials), 'trial')}, which took {units.show_nanoseconds(wall)} in all."
    )


def not_drawn(shown: int, folded: int) -> str:
    """One sentence for a chart that keeps some of its panels folded."""
    return f"{shown} of {_count(shown + folded, 'panel')} drawn; the others unfold below." if folded else ""
