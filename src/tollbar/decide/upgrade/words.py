"""Answer of `upgrade`: rows that became more expensive, cheaper, new or gone, and the part of the new defaults."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tollbar.analysis import StudyJudgement, reach
from tollbar.analysis.comparison import upgrade as upgrade_words
from tollbar.analysis.trust import STEADY_NEIGHBOUR
from tollbar.core.intervals import Interval
from tollbar.core.words import counted, enumeration
from tollbar.decide.upgrade import Change, Kind, Upgrade, shared_settings
from tollbar.decide.upgrade.changed import Apart
from tollbar.report.blocks import Brief, Listing, Table, TableCell, numbers, row_names, texts
from tollbar.report.coordinates import Form, named_value
from tollbar.report.names import place_words, varying
from tollbar.report.numbers import NOISY_MARK, amount, apart_words, change_ends, change_words, marked, percent
from tollbar.report.page import MIXED_MOMENTS, moments_words
from tollbar.report.sections.trust import noisy_words
from tollbar.report.table_cells import with_ends
from tollbar.results import Row

_GOOD = {Kind.DEARER: False, Kind.CHEAPER: True}
TOLD = (Kind.DEARER, Kind.CHEAPER, Kind.SAME, Kind.OPEN)
"""Kinds with a measured change, in reading order."""
LISTED = (Kind.NEW, Kind.GONE, Kind.FAILED)
_WORDS = {Kind.DEARER: "more expensive"}
"""Words for people of kinds whose name in JSON is another."""


def upgrade_answer(found: Upgrade, above: float | None = None) -> Brief:
    """Return the answer about an upgrade; `above` is the share of `--fail-above`."""
    return Brief(
        f"What changes from {found.old.name} to {found.new.name}, on one core?",
        _headline(found),
        how=tuple(_how(found)),
        listings=tuple(_listings(found)),
        missing=(
            *(f"Neither build has {rows}: {why}" for why, rows in by_reason(found.neither)),
            *(f"Not measured: {rows}: {why}" for why, rows in by_reason(found.not_asked)),
            *(f"Not measured: {name}: {why}" for name, why in found.skipped.items()),
        ),
        notes=tuple(_notes(found, above)),
    )


def kind_words(kind: Kind) -> str:
    """Return a kind for people."""
    return _WORDS.get(kind, kind.value)


def by_reason(changes: Sequence[Change]) -> Iterator[tuple[str, str]]:
    """Yield each reason once, with the rows that have it: `signature ECDSA P-256 · sign and verify`."""
    found: dict[str, list[str]] = {}
    for one in changes:
        found.setdefault(one.reason or "", []).append(f"{one.study.about.name} {row_words(one)}")
    yield from ((reason, enumeration([*dict.fromkeys(rows)])) for reason, rows in found.items())


def row_words(change: Change) -> str:
    """Return the words of a row without its family and the library: `SHA-256 · 64 B`."""
    return _place(change.study, change.row)


def apart_sentence(one: Apart, what: str = "library") -> str:
    """Return the sentence of a split change; a part that rose or fell by too little says so.

    For example: `… on one core: +24 % […] as shipped: +19 % the new defaults (X25519MLKEM768, …), +5.0 % the library.`
    or `+0.2 % the library (no change)`.
    """
    split, place = one.found.split, _place(one.study, one.found.rows[0])
    if split is None:
        return f"{place} could not be split: {one.found.reason or 'no block has all four cells'}."
    before, after = one.negotiated[:2]
    whole, alike, rest = ("" if kind in _GOOD else kind.value for kind in one.kinds)
    differ = _differing(before, after) if before != after else ""
    defaults = _rest_words(one, what)
    return (
        f"{place}, on one core: {_change_words(split.whole)} {change_ends(split.whole)} as shipped{_bracketed(whole)}:"
        f" {_change_words(split.rest)} {defaults}{_bracketed(differ, rest)},"
        f" {_change_words(split.alike)} the {what}{_bracketed(alike)}."
    )


def _rest_words(one: Apart, what: str) -> str:
    """Return the words for the part outside the held pair: the new defaults, or equal negotiated ones beyond it."""
    before, after = one.negotiated[:2]
    return "the new defaults" if before != after else f"the {what} at the defaults of both, beyond the fixed part"


def _bracketed(*words: str) -> str:
    said = "; ".join(filter(None, words))
    return f" ({said})" if said else ""


def _change_words(change: Interval) -> str:
    """Return a change in words, with a mark if it is noisy."""
    return marked(change_words(change.estimate), change.is_noisy)


def _headline(found: Upgrade) -> str:
    words = [f"{len(some)} {kind_words(kind)}" for kind in (*TOLD, *LISTED) if (some := found.of(kind))]
    name = upgrade_words(found.old.name, found.new.name)
    return f"{name}, on one core: {enumeration(words) or 'no row could be measured with both'}."


def _how(found: Upgrade) -> Iterator[str]:
    if not found.judged.studies:
        return
    confidence = max(study.confidence for study in found.judged.studies)
    threshold = max(study.about.threshold for study in found.judged.studies)
    found_in = {moments_words(study) for study in found.judged.studies}
    moments = found_in.pop() if len(found_in) == 1 else MIXED_MOMENTS
    confidence_words = f"{percent(confidence)} intervals"
    if found.among > 1:
        confidence_words = f"intervals that hold jointly, all {found.among}, at {percent(confidence)}"
    yield (
        f"CPU time per operation, both sides in the same batches, {moments}; {confidence_words}. A row counts as"
        f" changed if its whole interval is beyond {percent(threshold)} and beyond the noise of A/A pairs, and as"
        f" unchanged if it is within {percent(threshold)}."
    )
    for study in found.judged.studies:
        for name in shared_settings(found.new.kind, study.about):
            yield _shared_words(study, name)


def _shared_words(study: StudyJudgement, name: str) -> str:
    """Return the sentence about values used in place of a default that one build does not support.

    For example: `rsa-api was asked with digest=implicit: one build at least does not support the default,
    digest=fetched.`
    """
    family = study.about.family
    usual = family.settings[name].default
    typed = {value: f"`{named_value(family, name, value, Form.TYPED)}`" for value in (usual, *study.about.vary[name])}
    default, *values = typed.values()
    return f"{study.about.name} was measured with {enumeration(values)}: one build does not support {default}."


def _listings(found: Upgrade) -> Iterator[Listing]:
    for one in found.apart:
        yield Listing(
            "As shipped, and with the same negotiated parameters",
            [apart_sentence(one, found.what)],
            tables=[_parts(found, one)] if one.found.split else [],
            notes=[*_negotiated(one)],
        )
    # Split rows are listed too, because `--fail-above` checks their own ratios.
    tables = [_table(kind, some) for kind in TOLD if (some := found.of(kind))]
    if tables:
        yield Listing("Rows by their change", tables=tables, heads="found")
    for kind in LISTED:
        if some := found.of(kind):
            said = [f"{rows}{f' ({reason})' if reason else ''}" for reason, rows in by_reason(some)]
            yield Listing(f"{kind.capitalize()} ({len(some)})", said)


_CELLS = ("the old one as shipped", "the new one as shipped", "the old one fixed", "the new one fixed")


def _negotiated(one: Apart) -> Iterator[str]:
    """Yield the parameters read from the wire, each with its cells."""
    by_words: dict[str, list[str]] = {}
    for name, words in zip(_CELLS, one.negotiated, strict=True):
        by_words.setdefault(words, []).append(name)
    yield from (f"{words}: {enumeration(names)}" for words, names in by_words.items() if words)


def _parts(found: Upgrade, one: Apart) -> Table:
    split = one.found.split
    assert split is not None
    whole, alike, rest = one.kinds
    parts = (
        (f"the {found.what}", split.alike, alike),
        (_rest_words(one, found.what), split.rest, rest),
        ("both, as shipped", split.whole, whole),
    )
    columns = (*row_names("part"), *numbers("change"), *texts("interval", "verdict"))
    rows = [
        [TableCell(name), *with_ends(of, change_words, change_ends), TableCell(kind_words(kind))]
        for name, of, kind in parts
    ]
    return Table("", columns, rows)


def _table(kind: Kind, some: Sequence[Change]) -> Table:
    columns = (
        *row_names("family", "row"),
        *numbers("CPU time", leaves=1),
        *numbers("change"),
        *texts("interval"),
        *texts("noise", leaves=2),
        *texts("more blocks", leaves=0),
    )
    return Table(f"{kind_words(kind)} ({len(some)})", columns, [_row(change) for change in some])


def _row(change: Change) -> list[TableCell]:
    ratio, toll = change.ratio, change.toll
    more = f"about {toll.more_blocks}" if toll.more_blocks else ""
    costs = [cost for row in (change.old_row, change.row) if (cost := cost_of(change.study, row)) is not None]
    return [
        TableCell(change.study.about.name),
        TableCell(row_words(change)),
        TableCell(" → ".join(map(amount, costs))),
        *with_ends(ratio, change_words, change_ends, good=_GOOD.get(change.kind)),
        TableCell(apart_words(reach(toll.noise)) if toll.noise and change.kind is Kind.OPEN else ""),
        TableCell(more),
    ]


def cost_of(study: StudyJudgement, row: Row) -> float | None:
    """Return the nanoseconds per operation, quiet if its core was quiet; None if not measured."""
    wanted = study.about.measure.cost
    found = (m for m in study.measurements if m.row.key == row.key and m.metric == wanted and m.component is None)
    return next((one.value for one in found), None)


def _place(study: StudyJudgement, row: Row) -> str:
    # For an upgraded server its two builds are the difference.
    silent = {"provider", "users", *study.about.baseline}
    names = [name for name in varying(study.rows, always=("choice", "server")) if name not in silent]
    return place_words(study)({name: value for name, value in row.coordinates.items() if name in names}, names)


def _differing(before: str, after: str) -> str:
    """Return the changed parameters in words: `X25519MLKEM768, where it was x25519`."""
    old, new = before.split(", "), after.split(", ")
    pairs = [(one, other) for one, other in zip(old, new, strict=False) if one != other]
    return "; ".join(f"{other}, where it was {one}" for one, other in pairs) or f"{after}, where it was {before}"


def _notes(found: Upgrade, above: float | None) -> Iterator[str]:
    noises = [study.noise_floor for study in found.judged.studies if study.noise_floor]
    if noises:
        yield f"A/A pairs differed by at most {apart_words(max(noises))}."
    ratios = [
        *((change.study, change.ratio) for change in found.changes),
        *((one.study, of) for one in found.apart if (s := one.found.split) for of in (s.whole, s.alike, s.rest)),
    ]
    noisy = dict.fromkeys(said for study, ratio in ratios if (said := noisy_words(study, ratio)))
    yield from (f"{NOISY_MARK} {said}." for said in noisy)
    if above is None:
        return
    if near := found.near(above):
        yield (
            f"Cannot exclude a steady neighbour: first run on this processor. {counted(near, 'row')} within"
            f" ×{STEADY_NEIGHBOUR} of {percent(above)} cannot be judged."
        )
    dearer, of = found.above(above), f"{found.tellable(above):,} of {counted(len(found.changes), 'row')}"
    if dearer:
        names = enumeration([f"{one.study.about.name} {row_words(one)}" for one in dearer])
        yield f"Rose by more than {percent(above)} with the whole interval: {names}; {of} could have shown it."
    else:
        yield f"No row rose by more than {percent(above)} with its whole interval; {of} could have shown it."
