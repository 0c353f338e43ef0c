"""The JSON document of `tollbar upgrade`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from tollbar.document.schema import Ends, Form, Number, Values
from tollbar.present.decisions.upgrade import apart_sentence, cost_of, row_words
from tollbar.stats import Interval
from tollbar.upgrading import Change, Thing, Upgrade
from tollbar.upgrading.changed import Apart


class SideForm(Form):
    said: str
    """as the command names it"""
    name: str
    """with its version"""
    file: str
    """what was measured"""


class RatioForm(Form):
    estimate: Number
    """the new one's over the old one's"""
    interval: Ends | None
    """null where there were too few blocks; all of this document hold together"""
    confidence: Number
    """of this interval by itself"""
    noisy: bool
    """whether the core was quiet in too few blocks, so that all samples count"""


class PartForm(RatioForm):
    kind: str
    """`dearer`, `cheaper`, `no change` or `cannot tell`, of this ratio"""


class ChangeForm(Form):
    study: str
    cell: Values
    """of the new build"""
    kind: str
    """`dearer`, `cheaper`, `no change`, `cannot tell`, `new`, `gone` or `not measured`"""
    old_ns: Number | None
    """CPU time of an operation"""
    new_ns: Number | None
    ratio: RatioForm | None
    above: bool
    """whether it is dearer by more than `--fail-above` with its whole interval"""
    reason: str | None
    """why one of the builds has none, or nothing was measured"""


class ApartForm(Form):
    study: str
    cell: Values
    """of the new build as shipped"""
    whole: PartForm | None
    """as shipped: the new one's cost over the old one's"""
    library: PartForm | None
    """with the same version, group, certificate and cipher on both: what the library changes, on the old one's cost"""
    defaults: PartForm | None
    """what the new defaults change; less one, the parts add up to the whole"""
    negotiated: list[str]
    """by the old one as shipped, the new one as shipped, the old one held, the new one held"""
    says: str


class Document(Form):
    schema_: Literal[3] = Field(default=3, alias="schema")
    """the number of this form"""
    old: SideForm
    new: SideForm
    run: str
    """the directory of what was measured"""
    cores: Literal[1] = 1
    """on how many each operation ran"""
    among: int
    """how many intervals there are; together they miss no oftener than one of a run's would"""
    changes: list[ChangeForm]
    apart: list[ApartForm]
    """changes as shipped, taken apart into the library's and the new defaults'"""
    neither: dict[str, str]
    """by row: why neither build has it"""
    not_asked: dict[str, str]
    """by row: what this machine lacks to ask either build"""


def document(found: Upgrade, above: float | None = None) -> Document:
    """The document of this answer; `above` is the share of `--fail-above`."""
    beyond = {id(one) for one in found.above(above)} if above is not None else set()
    return Document(
        old=_side(found.old),
        new=_side(found.new),
        run=str(found.judged.run.directory),
        among=found.among,
        changes=[_change(one, id(one) in beyond) for one in found.changes],
        apart=[_apart(one, found.what) for one in found.apart],
        neither=_reasons(found.neither),
        not_asked={**_reasons(found.not_asked), **found.skipped},
    )


def _reasons(changes: Sequence[Change]) -> dict[str, str]:
    return {f"{one.study.about.name} {row_words(one)}": one.reason or "" for one in changes}


def _side(of: Thing) -> SideForm:
    return SideForm(said=of.said, name=of.name, file=of.file)


def _ratio(of: Interval | None) -> RatioForm | None:
    if of is None:
        return None
    return RatioForm(**_values(of))


def _values(of: Interval) -> dict[str, Any]:
    interval = (of.low, of.high) if of.is_bounded else None
    return {
        "estimate": of.estimate,
        "interval": interval,
        "confidence": of.confidence,
        "noisy": of.is_noisy,
    }


def _change(one: Change, above: bool) -> ChangeForm:
    return ChangeForm(
        study=one.study.about.name,
        cell=dict(one.row.coordinates),
        kind=one.kind.value,
        old_ns=cost_of(one.study, one.old_row),
        new_ns=cost_of(one.study, one.row),
        ratio=_ratio(one.ratio),
        above=above,
        reason=one.reason,
    )


def _apart(one: Apart, what: str) -> ApartForm:
    split = one.found.split
    ratios = (split.whole, split.alike, split.rest) if split else ()
    parts: list[PartForm | None] = [
        PartForm(**_values(ratio), kind=kind.value) for ratio, kind in zip(ratios, one.kinds, strict=True)
    ]
    whole, library, defaults = parts or [None, None, None]
    return ApartForm(
        study=one.study.about.name,
        cell=dict(one.found.rows[1].coordinates),
        whole=whole,
        library=library,
        defaults=defaults,
        negotiated=list(one.negotiated),
        says=apart_sentence(one, what),
    )
