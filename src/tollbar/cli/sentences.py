"""The answer to a question in one sentence: ratio, interval, where, verdict and standing."""

from __future__ import annotations

from collections.abc import Sequence

from tollbar.families import Standing
from tollbar.judge import StudyJudgement, Toll, Verdict
from tollbar.measure import Outcome
from tollbar.present import cells, words
from tollbar.present.costs import cost_words
from tollbar.results import Row

# More than these are for the table.
MOST_SENTENCES = 6


def sentences(study: StudyJudgement) -> list[str]:
    """A sentence for each comparison, in the order of the study, and how many more there are."""
    tolls = cells.real_tolls(study)
    found = [sentence(study, toll) for toll in tolls[:MOST_SENTENCES]]
    more = len(tolls) - len(found)
    return [*found, f"{words.counted(more, 'more comparison')} in the table above."] if more else found


def sentence(study: StudyJudgement, toll: Toll) -> str:
    """`blake3 takes 0.55 of sha-256's CPU [0.54, 0.56] at 4 KiB: saves (acceptable for recommended).`"""
    row, against = toll.row, toll.against
    apart = [name for name in study.about.baseline if row.coordinates.get(name) != against.coordinates.get(name)]
    of, over = (_named(study, one, apart or ["choice"]) for one in (row, against))
    where = _where(study, row, apart)
    if toll.ratio is None or toll.verdict is Verdict.NOT_MEASURED:
        reason = row.reason or toll.reason or "no reason was given"
        what = "was not measured" if row.outcome is not Outcome.OK else f"is not compared with {over}"
        return f"{of} {what} {where}: {reason.rstrip('.')}."
    ratio = toll.ratio.estimate
    times = f"{words.ratio_words(ratio)} {'of' if ratio < 1 else 'times'}"
    cost = "CPU" if study.about.measure.cost == "cpu" else cost_words(study).short
    costly = f"the {cost} of {over}" if " " in over else f"{over}'s {cost}"
    decided = f"{toll.verdict}{_more(toll)}"
    return f"{of} takes {times} {costly} {words.bracket(toll.ratio)} {where}: {decided} ({_standings(row, against)})."


def _named(study: StudyJudgement, row: Row, names: Sequence[str]) -> str:
    """What the sentence is about, as studies write it."""
    return " with ".join(str(study.study.named(name, row.coordinates.get(name, "none"))) for name in names)


def _where(study: StudyJudgement, row: Row, apart: Sequence[str]) -> str:
    """Where the two stand alike: what varies or was asked for, and what every cost depends on."""
    about = study.about
    sizes = [name for name, setting in about.family.settings.items() if setting.is_size]
    wanted = dict.fromkeys([*sizes, *about.vary, *cells.varying(study.rows), "provider", "bed"])
    # A choice stands in the sentence already, unless it is the same on both sides; an operation says something where
    # there are several.
    silent = {*apart, *(["op"] if len(about.family.operations) == 1 else [])}
    if "choice" in apart or len(about.choices) > 1:
        silent.add("choice")
    else:
        wanted = dict.fromkeys(["choice", *wanted])
    where = {name: [row.coordinates[name]] for name in wanted if name in row.coordinates and name not in silent}
    if "bed" in where and "provider" in where:
        where.pop("provider")
        library = study.study.named("provider", row.coordinates["provider"])
        return f"{cells.where_words(study, {**where, 'bed': [row.shown['bed']]})}, {library}"
    return cells.where_words(study, where)


def _more(toll: Toll) -> str:
    if toll.verdict is not Verdict.UNCLEAR or not toll.more_blocks:
        return ""
    return f", about {words.counted(toll.more_blocks, 'more block')} would tell"


def _standings(row: Row, against: Row) -> str:
    one, other = (words.standing_words(standing) for standing in (row.standing, against.standing))
    if one == other:
        return one if row.standing is Standing.NULL else f"both {one}"
    return f"{one} for {other}"
