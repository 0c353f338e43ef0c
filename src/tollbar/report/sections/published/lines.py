"""Claims of a source in the order of its text, each in the place where it is tested, or would be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tollbar import study
from tollbar.analysis import ClaimResult, ClaimVerdict, Judgement, StudyJudgement
from tollbar.core.words import counted
from tollbar.study import Claim, Publication, Study

HEADING = "Published and measured"
OURS = "Ours, not the source's"
NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class Line:
    """Claim in a place where it is tested, or would be."""

    study: Study
    judged: StudyJudgement | None
    """Judgement of the study; None: nothing was measured of it."""
    result: ClaimResult

    @property
    def claim(self) -> Claim:
        return self.result.claim

    @property
    def is_tested(self) -> bool:
        """True if two cells were compared here, so that it has a verdict."""
        return self.claim.is_judged and self.verdict != NOT_MEASURED

    @property
    def verdict(self) -> str:
        """Verdict in a word or two."""
        untried = self.claim.is_judged and self.result.ratio is None if self.judged else self.claim.untestable is None
        return NOT_MEASURED if untried else str(self.result.verdict)


@dataclass(frozen=True, slots=True)
class Group:
    """Lines of one study; or, over all studies of the source, claims that it did not publish."""

    title: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Published:
    """Claims of one source, with their results."""

    source: Publication | None
    """Source; None: the study names no source that is known here."""
    studies: tuple[str, ...]
    """Studies of which something was measured."""
    groups: tuple[Group, ...]
    """Groups in the order of the source's text; claims that are not the source's come last."""
    missing: tuple[str, ...] = ()
    """Names of the source's other studies, for `tollbar run`."""

    @property
    def lines(self) -> tuple[Line, ...]:
        return tuple(line for group in self.groups for line in group.lines)

    @property
    def theirs(self) -> tuple[Line, ...]:
        """Lines that the source published, without ours."""
        return tuple(line for line in self.lines if not line.claim.is_ours)

    @property
    def heading(self) -> str:
        return HEADING if self.source is None else f"{HEADING}: {self.source.cited}"


def of_source(source: Publication, judgement: Judgement | None = None) -> Published:
    """Return all claims of a source: those that a run has tested, and the rest as published."""
    tried = [one for one in judgement.studies if _is_of(one, source)] if judgement else []
    names = [one.about.name for one in tried]
    return _part(source, [*tried, *(one for one in study.load(source.studies) if one.name not in names)])


def sources_of(judgement: Judgement) -> tuple[Published, ...]:
    """Return a part for each source that the run's studies test."""
    found = [(one, [s for s in judgement.studies if _is_of(s, one)]) for one in study.sources().values()]
    return tuple(_part(source, tried) for source, tried in found if tried)


def together(judgement: Judgement) -> tuple[Published, ...]:
    """Return the parts that come before all studies; empty for a run of one study, which has its own."""
    return sources_of(judgement) if len(judgement.studies) > 1 else ()


def within(judgement: Judgement, of: StudyJudgement) -> Published | None:
    """Return the part that belongs into a study; None if it has no claims, or `together` has them."""
    source = next((one for one in study.sources().values() if _is_of(of, one)), None)
    return None if not of.claims or (source and len(judgement.studies) > 1) else _part(source, [of])


def _is_of(judged: StudyJudgement, source: Publication) -> bool:
    return judged.about.source == source.name and bool(judged.claims)


def _part(source: Publication | None, tries: Sequence[Study | StudyJudgement]) -> Published:
    order = source.order if source else {}
    in_order = sorted(tries, key=lambda one: order.get(_name(one), len(order)))
    by_study = {_name(one): tuple(_lines(one)) for one in in_order}
    groups = [Group(name, tuple(line for line in found if not line.claim.is_ours)) for name, found in by_study.items()]
    ours = Group(OURS, tuple(line for found in by_study.values() for line in found if line.claim.is_ours))
    measured = tuple(name for name, found in by_study.items() if found and found[0].judged)
    return Published(
        source,
        measured,
        tuple(group for group in (*groups, ours) if group.lines),
        tuple(name for name, own in zip(source.studies, order, strict=True) if own not in measured) if source else (),
    )


def _name(one: Study | StudyJudgement) -> str:
    return one.name if isinstance(one, Study) else one.about.name


def _lines(one: Study | StudyJudgement) -> Iterator[Line]:
    if isinstance(one, Study):
        for claim in one.claims:
            verdict = ClaimVerdict.NOT_TESTABLE if claim.untestable else ClaimVerdict.CANNOT_TELL
            yield Line(one, None, ClaimResult(claim, {}, verdict=verdict, reason=claim.untestable))
    else:
        yield from (Line(one.about, one, result) for result in one.claims)


def verdict_counts(lines: Iterable[Line]) -> dict[str, int]:
    """Return the number of lines with each verdict, in the order of the verdicts."""
    found = Counter(line.verdict for line in lines)
    return {verdict: found[verdict] for verdict in (*map(str, ClaimVerdict), NOT_MEASURED) if found[verdict]}


def claims_of(lines: Iterable[Line]) -> int:
    """Return the number of different claims: one that several studies, libraries or settings test counts once."""
    return len({line.claim.says for line in lines})


def counted_tests(lines: Sequence[Line]) -> str:
    """Return `16 claims in 21 tests: 12 still true, 9 larger; 2 not measured`: claims without a test come apart."""
    tested = [line for line in lines if line.is_tested]
    rest = [line for line in lines if not line.is_tested]
    tests = f"{counted(claims_of(tested), 'claim')} in {counted(len(tested), 'test')}: {counted_verdicts(tested)}"
    return "; ".join(filter(None, (tests if tested else "", counted_verdicts(rest))))


def counted_verdicts(lines: Iterable[Line]) -> str:
    """Return `12 still true, 3 larger, 2 cannot tell, 4 not testable here`."""
    found = verdict_counts(lines)
    return ", ".join(
        counted(n, "absolute figure") if verdict == ClaimVerdict.NOT_JUDGED else f"{n:,} {verdict}"
        for verdict, n in found.items()
    )
