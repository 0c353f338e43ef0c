"""Sentences that compare each cell with the study's baseline, made from verdicts alone.

A sentence uses the verdict's own words; without a verdict it reports that there is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from tollbar.analysis import BreakEven, StudyJudgement, Toll, Verdict
from tollbar.catalog.families import Family, Standing, Value, at_defaults
from tollbar.core.records import Outcome
from tollbar.core.words import capitalised, counted, enumeration, few, more, quoted
from tollbar.report.coordinates import Form, named_value
from tollbar.report.costs import cost_words
from tollbar.report.groups import by_row, cost_metric, real_tolls, split
from tollbar.report.names import baseline_words, labels, on_one_core, sizes_of, varied, varying, where_words
from tollbar.report.numbers import amount, bracket, often, percent, percent_of, ratio_words
from tollbar.report.sections.subject import Subject
from tollbar.report.standings import CALLED_OUT, standing_words, worst
from tollbar.results import Row

# More names than this in one sentence hide the answer: then the least and the greatest represent the rest.
MOST_NAMES = 4
# Names with results that differ from cell to cell take a clause each, so fewer of them fit.
MOST_MIXED = 3


def against_baseline(study: StudyJudgement) -> tuple[str, str]:
    """Return two sentences: costs and savings in every cell; then mixed, free, unclear and unmeasured ones."""
    tolls = real_tolls(study)
    baseline = quoted(baseline_words(study)) + on_one_core(study, study.about.baseline)
    if not tolls:
        return _alone(study, baseline)
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
        first = f"{_against(study, baseline)}, no option is known to cost more or less{throughout}."
    rest = _rest(study, subjects)
    if rest:
        return first, capitalised("; ".join(rest)) + "."
    number = counted(len(tolls), "cell")
    return first, f"{'The' if len(tolls) == 1 else 'All'} {number} compared {_is(tolls)} decided."


def _by_operation(study: StudyJudgement, tolls: Sequence[Toll], baseline: str) -> tuple[str, str]:
    """Return the two sentences for several operations, because a result for signing does not hold for verifying."""
    said, others = [], 0
    for operation in dict.fromkeys(t.row.coordinates.get("op") for t in tolls):
        subjects = _subjects(study, [t for t in tolls if t.row.coordinates.get("op") == operation])
        if clause := _everywhere(subjects, most=1):
            said.append(f"for `{operation}`, {clause}")
        others += sum(s.verdict in (None, Verdict.FREE, Verdict.UNCLEAR) for s in subjects)
    gone = sum(t.verdict is Verdict.NOT_MEASURED for t in tolls)
    rest = []
    if others:
        rest.append(f"{counted(others, 'comparison')} {'is' if others == 1 else 'are'} free, unclear or mixed")
    if gone:
        rest.append(f"{counted(gone, 'cell')} could not be measured")
    second = capitalised("; ".join(rest)) if rest else f"All {counted(len(tolls), 'cell')} compared are decided"
    found = "; ".join(said) if said else "no option is known to cost more or less throughout an operation"
    return f"{_against(study, baseline)}, {found}.", f"{second}."


def _against(study: StudyJudgement, baseline: str) -> str:
    """Return the baseline of the comparison, with the kind of cost unless it is the operation's own CPU time."""
    by = [f"by {cost_words(study).in_sentence}"] if cost_metric(study) != "cpu" else []
    return capitalised(" and ".join([*by, f"against {baseline}"]))


def _everywhere(subjects: Sequence[Subject], most: int = MOST_NAMES) -> str:
    """Return the subjects that cost more, and those that cost less, in each of their measured cells."""
    more = _ranked([s for s in subjects if s.verdict is Verdict.COSTS], "costs more", "cost more", most)
    less = _ranked([s for s in subjects if s.verdict is Verdict.SAVES], "costs less", "cost less", most)
    # A comma before the "and", because each clause contains lists.
    return ", and ".join(clause for clause in (more, less) if clause)


def _rest(study: StudyJudgement, subjects: Sequence[Subject]) -> list[str]:
    threshold = percent(study.about.threshold)
    mixed = [s for s in subjects if s.verdict is None]
    free = [s for s in subjects if s.verdict is Verdict.FREE]
    unclear = [s for s in subjects if s.verdict is Verdict.UNCLEAR]
    missing = [s for s in subjects if s.verdict is Verdict.NOT_MEASURED]
    clauses = [_mixed(study, s) for s in mixed]
    if len(mixed) > MOST_MIXED:
        clauses = [f"{_names_of(mixed)} differ from cell to cell"]
    if free:
        clauses.append(f"{_names_of(free)} {_is(free)} free (no meaningful difference: within {threshold})")
    if unclear:
        clauses.append(f"{_names_of(unclear)} {_is(unclear)} unclear")
    if missing:
        clauses.append(f"{_names_of(missing)} {'was' if len(missing) == 1 else 'were'} not measured")
    # Unmeasured cells of subjects that were measured elsewhere.
    gone = sum(len(s.tolls) - len(s.measured) for s in subjects if s.measured)
    if gone:
        more = "more " if missing else ""
        clauses.append(f"{counted(gone, f'{more}cell')} could not be measured")
    return clauses


def _subjects(study: StudyJudgement, tolls: Sequence[Toll]) -> list[Subject]:
    """Return the tolls by what distinguishes a cell from its baseline: most often the choice."""
    baseline = study.about.baseline
    in_rows, _ = split(study, [row for t in tolls for row in (t.row, t.against)])
    names = [n for n in in_rows if n != "provider" or n in baseline] or ["choice"]
    label = labels(study, names)
    grouped: dict[str, list[Toll]] = {}
    for toll in tolls:
        grouped.setdefault(label(toll.row), []).append(toll)
    subjects = []
    for name, found in grouped.items():
        standing = worst(toll.row for toll in found)
        said = standing_words(standing) if "choice" in names and standing in CALLED_OUT else None
        subjects.append(Subject(quoted(name), said, tuple(found)))
    return sorted(subjects, key=lambda s: s.middle)


def _alone(study: StudyJudgement, baseline: str) -> tuple[str, str]:
    """Return the cost of a baseline with which no cell is compared, such as the only step of a scenario."""
    costs = sorted(by_row(study, cost_metric(study)).values(), key=lambda one: one.value)
    if not costs:
        return f"{capitalised(baseline)} was not measured.", _first_reason(study)
    values = dict.fromkeys(amount(one.value, one.unit) for one in (costs[0], costs[-1]))
    by = f"by {cost_words(study).in_sentence}, " if cost_metric(study) != "cpu" else ""
    return capitalised(f"{by}{baseline} costs {' to '.join(values)}."), "No cell is compared with it."


def _nothing(study: StudyJudgement, baseline: str) -> tuple[str, str]:
    return f"Nothing was measured against {baseline}.", _first_reason(study)


def _first_reason(study: StudyJudgement) -> str:
    reasons = list(dict.fromkeys(r.reason for r in study.rows if r.reason))
    return f"The first reason given: {reasons[0].rstrip('.')}." if reasons else "No reason was recorded."


def _ranked(subjects: Sequence[Subject], one: str, several: str, most: int) -> str:
    if not subjects:
        return ""
    if len(subjects) == 1:
        return f"{subjects[0].with_range} {one}"
    if len(subjects) <= most:
        return f"{enumeration([s.with_range for s in subjects])} {several}"
    return f"{len(subjects)} {several}, from {subjects[0].with_range} to {subjects[-1].with_range}"


def _mixed(study: StudyJudgement, subject: Subject) -> str:
    """Return `SHA-512 costs more at 64 B and costs less at 16 KiB` if one setting divides it; else a tally."""
    for name in varying(t.row for t in subject.measured):
        found: dict[Value | None, set[Verdict]] = {}
        for toll in subject.measured:
            found.setdefault(toll.row.coordinates.get(name), set()).add(toll.verdict)
        where: dict[Verdict, list[Value]] = {}
        for value, verdicts in found.items():
            if value is not None and len(verdicts) == 1:
                where.setdefault(next(iter(verdicts)), []).append(value)
        # A longer list of values belongs into the table.
        if sum(map(len, where.values())) == len(found) <= MOST_NAMES:
            parts = [f"{_SAYS[v]} {where_words(study, {name: values})}" for v, values in where.items()]
            return f"{subject.named} {enumeration(parts)}"
    number_of = {v: sum(t.verdict is v for t in subject.measured) for v in _SAYS}
    tally = enumeration([f"{_SAYS[v]} in {n}" for v, n in number_of.items() if n])
    return f"{subject.with_range} {tally} of {counted(len(subject.measured), 'cell')}"


_SAYS = {
    Verdict.COSTS: "costs more",
    Verdict.SAVES: "costs less",
    Verdict.FREE: "is free",
    Verdict.UNCLEAR: "is unclear",
}


def _names_of(subjects: Sequence[Subject]) -> str:
    return enumeration(few([s.named for s in subjects], MOST_NAMES))


def _is(subjects: Sequence[object]) -> str:
    return "is" if len(subjects) == 1 else "are"


# More than these belong into the table.
MOST_SENTENCES = 6


def sentences(study: StudyJudgement) -> list[str]:
    """Return the sentences on all cells, then one for each comparison, in the order of the study."""
    return [*_of_all(study), *(sentence(study, toll) for toll in real_tolls(study))]


def first_sentences(study: StudyJudgement) -> list[str]:
    """Return the first of the sentences, and the number of comparisons left out."""
    tolls = real_tolls(study)
    left = len(tolls) - MOST_SENTENCES
    said = [f"{more(left, 'comparison')} in the table above."] if left > 0 else []
    return [*_of_all(study), *(sentence(study, toll) for toll in tolls[:MOST_SENTENCES]), *said]


def _of_all(study: StudyJudgement) -> list[str]:
    return [*filter(None, [weakness(study), rates(study)]), *(break_even(study, one) for one in study.break_evens)]


def break_even(study: StudyJudgement, one: BreakEven) -> str:
    """Return `verified cached costs less than verified each-time from a hit share of 34 % on [31 %, 37 %]`."""
    family, name = study.about.family, one.setting
    without = family.settings[name].breaks_even_with
    ways = (
        " with ".join(
            named_value(family, of, study.study.named(of, row.coordinates[of]), Form.QUESTION) for of in without
        )
        for row in (one.line[0], one.row)
    )
    way, other = ways
    share = name.replace("-", " ")
    where = _where_alike(study, one.row, list(without))
    by = f"by a line through {counted(len(one.line), 'share')}, {where}" if where else "by a line through them"
    verdicts = [toll.verdict for toll in one.tolls]
    shares = [_share(float(toll.row.coordinates[name])) for toll in one.tolls]
    # Counted from the largest share down, as long as the verdict is *saves*.
    saving = len(list(takewhile(lambda verdict: verdict is Verdict.SAVES, reversed(verdicts))))
    if saving == len(verdicts):
        said = f"{way} costs less than {other} at every {share} that was measured"
    elif not saving:
        costs = all(verdict is Verdict.COSTS for verdict in verdicts)
        more = f"costs more than {other}" if costs else f"was not found to cost less than {other}"
        said = f"{way} {more} at any {share} that was measured"
    elif verdicts[0] is Verdict.COSTS and one.at is not None and one.at.is_bounded:
        low, high = max(one.at.low, 0.0), min(one.at.high, 100.0)
        place = f"{_share(min(max(one.at.estimate, low), high))} on [{_share(low)}, {_share(high)}]"
        said = f"{way} costs less than {other} from a {share} of {place}"
    else:
        known = f"at {enumeration(shares[-saving:])}"
        said = f"{way} costs less than {other} {known}; this run cannot decide from which {share} on"
    return capitalised(f"{said}: {by}.")


def _share(of: float) -> str:
    """Return a number of per cent in words."""
    if 99 < of < 100:
        return f"{of:.1f} %"
    return f"{of:.0f} %" if of >= 10 or of == 0 else f"{of:.2g} %"


def weakness(study: StudyJudgement) -> str | None:
    """Return the setting's value that keeps all cells from a good standing, its source, and better values.

    A good standing is *recommended* or *acceptable*. None if no single value is the cause.
    """
    family = study.about.family
    real = [row for row in study.rows if row.standing.is_of_option]
    for name, setting in family.settings.items():
        of = {row.coordinates.get(name) for row in real}
        about = setting.about.get(str(next(iter(of)))) if len(of) == 1 else None
        if about is None or about.standing not in CALLED_OUT:
            continue
        if all(about in family.parts_of(row.coordinates) and row.standing is about.standing for row in real):
            better = [f"`{name}={value}`" for value in setting.values or () if _raises(family, name, value, real)]
            instead = f"; ask with {enumeration(better, 'or')}" if better else ""
            by = f" ({about.authority[0].by}, {about.authority[0].where})" if about.authority else ""
            return f"{capitalised(named_value(family, name, about.name))} is {about.standing.words}{by}{instead}."
    return None


def _raises(family: Family, name: str, value: Value, rows: Sequence[Row]) -> bool:
    """Return whether each of these rows could have another value of a setting, with a better standing."""
    cells = [(row, at_defaults(family, {**row.coordinates, name: value})) for row in rows]
    return all(
        not family.why_unsupported(cell) and family.standing_of(cell).is_above(row.standing) for row, cell in cells
    )


def rates(study: StudyJudgement) -> str | None:
    """Return the operations a second of one core: `42 × argon2id-owasp-19m, 16 × bcrypt-10`, the most first.

    None if operations have a size, because the tables have amounts a second for these, or if there are too many.
    """
    costs = by_row(study, cost_metric(study))
    rows = [row for row in study.rows if row.key in costs and row.standing.is_of_option]
    names = varying(rows, always=("choice",))
    # A client's cost does not tell how much a server's core can do.
    if study.about.measure.cost == "client-cpu":
        return None
    if not 0 < len(rows) <= MOST_SENTENCES or "op" in names or any(sizes_of(study, row.coordinates) for row in rows):
        return None
    rows.sort(key=lambda row: costs[row.key].value)
    each = [f"{often(costs[row.key].value)} × {_named(study, row, names)}" for row in rows]
    return f"A second of one core is enough for {enumeration(each)}."


def sentence(study: StudyJudgement, toll: Toll) -> str:
    """Return `blake3 takes 0.55 of md5's CPU [0.54, 0.56] at 4 KiB: saves 45 %; acceptable, where md5 is broken.`"""
    row, against = toll.row, toll.against
    apart = [name for name in study.about.baseline if row.coordinates.get(name) != against.coordinates.get(name)]
    # Coordinates that only the other cell has, and that vary, identify it: for example, the memory of Argon2id.
    its_own = [name for name in varied(study) if name in against.coordinates.keys() - row.coordinates.keys()]
    of = _named(study, row, apart or ["choice"])
    over = _named(study, against, [*dict.fromkeys([*(apart or ["choice"]), *its_own])])
    where = _where_alike(study, row, apart) + on_one_core(study, apart)
    are_several = apart == ["threads"] and row.coordinates["threads"] != 1
    if toll.ratio is None or toll.verdict is Verdict.NOT_MEASURED:
        reason = row.reason or toll.reason or "no reason was given"
        was = "were" if are_several else "was"
        what = f"{was} not measured" if row.outcome is not Outcome.OK else f"is not compared with {over}"
        return f"{of} {what} {where}: {reason.rstrip('.')}."
    ratio = toll.ratio.estimate
    times = f"{ratio_words(ratio)} {'of' if ratio < 1 else 'times'}"
    cost = cost_words(study).cpu
    costly = f"the {cost} of {over}" if " " in over else f"{over}'s {cost}"
    decided = f"{toll.verdict}{_by_how_much(toll.verdict, ratio)}{_more(toll)}; {_standings(row, against, over)}"
    costs = "cost" if are_several else "costs"
    return f"{of} {costs} {times} {costly} {bracket(toll.ratio)} {where}: {decided}."


def _named(study: StudyJudgement, row: Row, names: Sequence[str]) -> str:
    """Return the sentence's subject as studies write it, and numbers with their names: `bcrypt with cost 12`."""
    said = [(name, study.study.named(name, row.coordinates[name])) for name in names if name in row.coordinates]
    return " with ".join(named_value(study.about.family, name, value, Form.QUESTION) for name, value in said) or "none"


def _where_alike(study: StudyJudgement, row: Row, apart: Sequence[str]) -> str:
    """Return the coordinates that both cells share, if they vary, were requested, or determine every cost."""
    about = study.about
    sizes = [name for name, setting in about.family.settings.items() if setting.is_size]
    wanted = dict.fromkeys([*sizes, *about.vary, *varied(study), "provider", "server"])
    # A choice is in the sentence already, unless both sides share it; an operation is printed only if there are
    # several.
    silent = {*apart, *(["op"] if len(about.family.operations) == 1 else [])}
    if "choice" in apart or len(about.choices) > 1:
        silent.add("choice")
    else:
        wanted = dict.fromkeys(["choice", *wanted])
    where = {name: [row.coordinates[name]] for name in wanted if name in row.coordinates and name not in silent}
    if "server" in where and "provider" in where:
        where.pop("provider")
        library = study.study.named("provider", row.coordinates["provider"])
        return f"{where_words(study, {**where, 'server': [row.shown['server']]})}, {library}"
    return where_words(study, where)


def _more(toll: Toll) -> str:
    if toll.verdict is not Verdict.UNCLEAR or not toll.more_blocks:
        return ""
    return f", about {more(toll.more_blocks, 'block')} would decide"


def _by_how_much(verdict: Verdict, ratio: float) -> str:
    """Return the difference as a share, as long as that reads well: from twice the cost on, the ratio suffices."""
    if verdict is Verdict.SAVES and ratio > 0.1:
        return f" {percent_of(1 - ratio)}"
    return f" {percent_of(ratio - 1)} more" if verdict is Verdict.COSTS and ratio < 2 else ""


def _standings(row: Row, against: Row, over: str) -> str:
    one, other = standing_words(row.standing), standing_words(against.standing)
    if one == other:
        return f"both {one}" if row.standing.is_of_option else one
    return f"{one}, where {over} {'gives' if against.standing is Standing.NULL else 'is'} {other}"
