"""The answer to a question, in sentences: each ratio with its interval and verdict, and how often a core can do it."""

from __future__ import annotations

from collections.abc import Sequence

from tollbar.families import Standing
from tollbar.judge import StudyJudgement, Toll, Verdict
from tollbar.present import cells, words
from tollbar.present.costs import cost_words
from tollbar.present.operations import sizes_of
from tollbar.records import Outcome
from tollbar.results import Row

# More than these are for the table.
MOST_SENTENCES = 6


def sentences(study: StudyJudgement) -> list[str]:
    """What holds of all cells, then a sentence for each comparison, in the order of the study."""
    return [*_of_all(study), *(sentence(study, toll) for toll in cells.real_tolls(study))]


def first_sentences(study: StudyJudgement) -> list[str]:
    """As many of these as are read, and how many comparisons more there are."""
    comparisons = [sentence(study, toll) for toll in cells.real_tolls(study)]
    more = len(comparisons) - MOST_SENTENCES
    said = [f"{words.counted(more, 'more comparison')} in the table above."] if more > 0 else []
    return [*_of_all(study), *comparisons[:MOST_SENTENCES], *said]


def _of_all(study: StudyJudgement) -> list[str]:
    return list(filter(None, [weakness(study), rates(study)]))


def weakness(study: StudyJudgement) -> str | None:
    """The value of a setting that keeps all cells out of good standing, by whose word, and what else it may be."""
    family = study.about.family
    real = [row for row in study.rows if row.standing is not Standing.NULL]
    for name, setting in family.settings.items():
        of = {row.coordinates.get(name) for row in real}
        about = setting.about.get(str(next(iter(of)))) if len(of) == 1 else None
        if about is None or about.standing not in words.CALLED_OUT:
            continue
        if all(about in family.parts_of(row.coordinates) and row.standing is about.standing for row in real):
            standings = {
                str(value): known.standing if (known := setting.about.get(str(value))) else None
                for value in setting.values or ()
            }
            better = [f"`{name}={value}`" for value, standing in standings.items() if standing not in words.CALLED_OUT]
            instead = f"; ask with {words.enumeration(better, 'or')}" if better else ""
            by = f" ({about.authority[0].by}, {about.authority[0].where})" if about.authority else ""
            return (
                f"{words.opened(words.named_value(family, name, about.name))} is {about.standing.words}{by}{instead}."
            )
    return None


def rates(study: StudyJudgement) -> str | None:
    """How often a second of one core is enough: `42 × argon2id-owasp-19m, 16 × bcrypt-10`, the most first.

    None where operations have a size, of which the tables say how much is done in a second, and where there are many.
    """
    costs = cells.by_row(study, cells.cost_metric(study))
    rows = [row for row in study.rows if row.key in costs and row.standing is not Standing.NULL]
    names = cells.varying(rows, always=("choice",))
    if not 0 < len(rows) <= MOST_SENTENCES or "op" in names or any(sizes_of(study, row.coordinates) for row in rows):
        return None
    rows.sort(key=lambda row: costs[row.key].value)
    each = [f"{words.often(costs[row.key].value)} × {_named(study, row, names)}" for row in rows]
    return f"A second of one core is enough for {words.enumeration(each)}."


def sentence(study: StudyJudgement, toll: Toll) -> str:
    """`blake3 takes 0.55 of sha-256's CPU [0.54, 0.56] at 4 KiB: saves (acceptable for recommended).`"""
    row, against = toll.row, toll.against
    apart = [name for name in study.about.baseline if row.coordinates.get(name) != against.coordinates.get(name)]
    # What only the other one has, and not always alike, tells which it is: Argon2id with which memory.
    its_own = [
        name for name in cells.varying(study.rows) if name in against.coordinates.keys() - row.coordinates.keys()
    ]
    of = _named(study, row, apart or ["choice"])
    over = _named(study, against, [*dict.fromkeys([*(apart or ["choice"]), *its_own])])
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
    """What the sentence is about, as studies write it, and numbers with their names: `bcrypt with cost 12`."""
    said = [(name, study.study.named(name, row.coordinates[name])) for name in names if name in row.coordinates]
    return " with ".join(words.coordinate(study.about.family, name, value) for name, value in said) or "none"


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
