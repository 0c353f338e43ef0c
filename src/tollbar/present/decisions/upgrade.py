"""What `upgrade` answers: what became dearer, cheaper, new or gone, and how much of it the new defaults are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tollbar.judge import StudyJudgement, reach
from tollbar.judge.comparison import upgrade as upgrade_words
from tollbar.present.blocks import DASH, Brief, Listing, Table, TableCell, numbers, row_names, texts
from tollbar.present.names import counted, enumeration, place_words, varying
from tollbar.present.numbers import amount, apart_words, change_ends, change_words, percent
from tollbar.results import Row
from tollbar.upgrading import Change, Kind, Upgrade
from tollbar.upgrading.changed import Apart

_GOOD = {Kind.DEARER: False, Kind.CHEAPER: True}
TOLD = (Kind.DEARER, Kind.CHEAPER, Kind.SAME, Kind.OPEN)
"""Those with a change, in the order in which they are read."""
LISTED = (Kind.NEW, Kind.GONE, Kind.FAILED)


def upgrade_answer(found: Upgrade, above: float | None = None) -> Brief:
    """All that is said of an upgrade; `above` is the share of `--fail-above`."""
    return Brief(
        f"What changes from {found.old.name} to {found.new.name}, on one core?",
        _headline(found),
        how=tuple(_how(found)),
        listings=tuple(_listings(found)),
        missing=tuple(f"Neither build has {title}: {why}" for title, why in found.neither),
        notes=tuple(_notes(found, above)),
    )


def row_words(change: Change) -> str:
    """What a row is, beside its family and without the library: `SHA-256 · 64 B`."""
    return _place(change.study, change.row)


def apart_sentence(one: Apart, what: str = "library") -> str:
    """`… on one core: +24 % […] as shipped: +19 % the new defaults (X25519MLKEM768, …), +5.0 % the library.`"""
    split, place = one.found.split, _place(one.study, one.found.rows[0])
    if split is None:
        return f"{place} could not be taken apart: {one.found.reason or 'no block holds all four cells'}."
    before, after = one.negotiated[:2]
    defaults = f"the new defaults ({_differing(before, after)})" if before != after else "the defaults, which agree"
    return (
        f"{place}, on one core: {change_words(split.whole.estimate)} {change_ends(split.whole)} as shipped:"
        f" {change_words(split.rest.estimate)} {defaults}, {change_words(split.alike.estimate)} the {what}."
    )


def _headline(found: Upgrade) -> str:
    words = [f"{len(some)} {kind}" for kind in (*TOLD, *LISTED) if (some := found.of(kind))]
    name = upgrade_words(found.old.name, found.new.name)
    return f"{name}, on one core: {enumeration(words) or 'nothing could be asked of both'}."


def _how(found: Upgrade) -> Iterator[str]:
    if not found.judged.studies:
        return
    confidence = max(study.confidence for study in found.judged.studies)
    worth = max(study.about.worth for study in found.judged.studies)
    yield (
        f"CPU time per operation, both sides in the same heats, undisturbed; {percent(confidence)} intervals; a change"
        f" is told where the whole interval is beyond {percent(worth)} and beyond the noise, which is how far what was"
        f" measured twice may differ; none where it is within {percent(worth)}."
    )


def _listings(found: Upgrade) -> Iterator[Listing]:
    for one in found.apart:
        yield Listing(
            "As shipped, and held to one agreement",
            [apart_sentence(one, found.what)],
            tables=[_parts(found, one)] if one.found.split else [],
            notes=[*_negotiated(one)],
        )
    # What is taken apart stands above already.
    above = {row.key for one in found.apart if one.found.split for row in one.found.rows}
    rest = {kind: [change for change in found.of(kind) if change.row.key not in above] for kind in TOLD}
    tables = [_table(kind, some) for kind, some in rest.items() if some]
    if tables:
        yield Listing("What changed, and what did not", tables=tables, heads="found")
    for kind in LISTED:
        if some := found.of(kind):
            by_reason: dict[str, list[str]] = {}
            for change in some:
                by_reason.setdefault(change.reason or "", []).append(f"{change.study.about.name} {row_words(change)}")
            said = [f"{enumeration(rows)}{f' ({reason})' if reason else ''}" for reason, rows in by_reason.items()]
            yield Listing(f"{kind.capitalize()} ({len(some)})", said)


_CELLS = ("the old one as shipped", "the new one as shipped", "the old one held", "the new one held")


def _negotiated(one: Apart) -> Iterator[str]:
    """What was read from the wire, and by which cells."""
    by_words: dict[str, list[str]] = {}
    for name, words in zip(_CELLS, one.negotiated, strict=True):
        by_words.setdefault(words, []).append(name)
    yield from (f"{words}: {enumeration(names)}" for words, names in by_words.items() if words)


def _parts(found: Upgrade, one: Apart) -> Table:
    split = one.found.split
    assert split is not None
    kinds = {change.row.key: change.kind for change in found.changes}
    # The new build's cells: as shipped, and held.
    shipped, held = (kinds.get(one.found.rows[number].key, "") for number in (1, 3))
    parts = (
        (f"the {found.what}", split.alike, held),
        ("the new defaults", split.rest, ""),
        ("both, as shipped", split.whole, shipped),
    )
    columns = (*row_names("part"), *numbers("change"), *texts("interval", "found"))
    rows = [[name, change_words(of.estimate), change_ends(of), kind] for name, of, kind in parts]
    return Table("", columns, [[TableCell(words) for words in row] for row in rows])


def _table(kind: Kind, some: Sequence[Change]) -> Table:
    columns = (
        *row_names("asked of", "row"),
        *numbers("CPU time", leaves=1),
        *numbers("change"),
        *texts("interval"),
        *texts("noise", leaves=2),
        *texts("more blocks", leaves=0),
    )
    return Table(f"{kind} ({len(some)})", columns, [_row(change) for change in some])


def _row(change: Change) -> list[TableCell]:
    ratio, toll = change.ratio, change.toll
    more = f"about {toll.more_blocks}" if toll.more_blocks else ""
    costs = [cost for row in (change.old_row, change.row) if (cost := cost_of(change.study, row)) is not None]
    return [
        TableCell(change.study.about.name),
        TableCell(row_words(change)),
        TableCell(" → ".join(map(amount, costs))),
        TableCell(change_words(ratio.estimate), ratio.estimate, good=_GOOD.get(change.kind)) if ratio else DASH,
        TableCell(change_ends(ratio)) if ratio else DASH,
        TableCell(apart_words(reach(toll.noise)) if toll.noise and change.kind is Kind.OPEN else ""),
        TableCell(more),
    ]


def cost_of(study: StudyJudgement, row: Row) -> float | None:
    """Nanoseconds per operation, undisturbed."""
    wanted = study.about.measure.cost
    found = (m for m in study.measurements if m.row.key == row.key and m.metric == wanted and m.component is None)
    return next((one.value for one in found), None)


def _place(study: StudyJudgement, row: Row) -> str:
    # Of a server that is upgraded its two builds are what differs.
    silent = {"provider", "users", *study.about.baseline}
    names = [name for name in varying(study.rows, always=("choice", "bed")) if name not in silent]
    return place_words(study)({name: value for name, value in row.coordinates.items() if name in names}, names)


def _differing(before: str, after: str) -> str:
    """`X25519MLKEM768, where it was x25519`."""
    old, new = before.split(", "), after.split(", ")
    pairs = [(one, other) for one, other in zip(old, new, strict=False) if one != other]
    return "; ".join(f"{other}, where it was {one}" for one, other in pairs) or f"{after}, where it was {before}"


def _notes(found: Upgrade, above: float | None) -> Iterator[str]:
    noises = [study.noise_floor for study in found.judged.studies if study.noise_floor]
    if noises:
        yield f"What was measured twice differed by {apart_words(max(noises))} at most."
    if above is None:
        return
    dearer, of = found.above(above), f"{found.tellable:,} of {counted(len(found.changes), 'row')}"
    if dearer:
        names = enumeration([f"{one.study.about.name} {row_words(one)}" for one in dearer])
        yield f"Above {percent(above)} with the whole interval: {names}; {of} could have shown it."
    else:
        yield f"Nothing became dearer by more than {percent(above)} with its whole interval; {of} could have shown it."
