"""The JSON document of `tollbar upgrade`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple

from tollbar.core.intervals import Interval
from tollbar.decide.upgrade import Change, Kind, Upgrade
from tollbar.decide.upgrade.changed import Apart
from tollbar.decide.upgrade.words import apart_sentence, cost_of, row_words
from tollbar.report.json_forms.form import Bounded, Document, Form, Number, Values, of, within


class SideForm(Form):
    said: str
    """as the command names it"""
    name: str
    """with its version"""
    file: str
    """the measured rows"""


class RatioForm(Form):
    estimate: Annotated[Number, of("ratio.estimate")]
    """the new one's over the old one's"""
    interval: Annotated[Bounded, of("ratio")]
    """null where there were too few blocks; all of this document hold jointly"""
    confidence: Annotated[Number, of("ratio.confidence")]
    """of this interval by itself"""
    noisy: Annotated[bool, of("ratio.is_noisy")]
    """whether the core was quiet in too few blocks, so that all samples count"""


class PartForm(RatioForm):
    kind: str
    """`dearer`, `cheaper`, `no change` or `cannot tell`, of this ratio"""


class ChangeForm(Form):
    study: Annotated[str, of("study.about.name")]
    cell: Annotated[Values, of("row.coordinates")]
    """of the new build"""
    kind: str
    """`dearer`, `cheaper`, `no change`, `cannot tell`, `new`, `gone` or `not measured`"""
    old_ns: Annotated[Number, of(lambda change: cost_of(change.study, change.old_row))]
    """CPU time of an operation"""
    new_ns: Annotated[Number, of(lambda change: cost_of(change.study, change.row))]
    ratio: Annotated[RatioForm | None, of(lambda change: change if change.ratio else None)]
    above: Annotated[bool, within(lambda change, asked: any(one is change for one in asked.above))]
    """whether it is dearer by more than `--fail-above` with its whole interval"""
    reason: str | None
    """why one of the builds has none, or nothing was measured"""


class ApartForm(Form):
    study: Annotated[str, of("study.about.name")]
    cell: Annotated[Values, of(lambda apart: apart.found.rows[1].coordinates)]
    """of the new build as shipped"""
    whole: Annotated[PartForm | None, of(lambda apart: _parts(apart)[0])]
    """as shipped: the new one's cost over the old one's"""
    library: Annotated[PartForm | None, of(lambda apart: _parts(apart)[1])]
    """with equal version, group, certificate and cipher on both: the change by the library, on the old one's cost"""
    defaults: Annotated[PartForm | None, of(lambda apart: _parts(apart)[2])]
    """the change by the new defaults; the parts minus one add up to the whole"""
    negotiated: list[str]
    """by the old one as shipped, the new one as shipped, the old one held, the new one held"""
    says: Annotated[str, within(lambda apart, asked: apart_sentence(apart, asked.what))]


class UpgradeDocument(Document):
    old: SideForm
    new: SideForm
    run: Annotated[str, of(lambda found: str(found.judged.run.directory))]
    """the directory of the run"""
    cores: Literal[1] = 1
    """on how many each operation ran"""
    among: int
    """how many intervals there are; together they miss no oftener than one of a run's would"""
    changes: list[ChangeForm]
    apart: list[ApartForm]
    """changes as shipped, taken apart into the library's and the new defaults'"""
    neither: Annotated[dict[str, str], of(lambda found: _reasons(found.neither))]
    """by row: why neither build has it"""
    not_asked: Annotated[dict[str, str], of(lambda found: {**_reasons(found.not_asked), **found.skipped})]
    """by row: software that is missing here for both builds"""


class _Asked(NamedTuple):
    above: Sequence[Change]
    what: str


class _Part(NamedTuple):
    ratio: Interval
    kind: Kind


def document(found: Upgrade, above: float | None = None) -> UpgradeDocument:
    """Return the document of this answer; `above` is the share of `--fail-above`."""
    return UpgradeDocument.read(found, _Asked(found.above(above) if above is not None else (), found.what))


def _reasons(changes: Sequence[Change]) -> dict[str, str]:
    return {f"{one.study.about.name} {row_words(one)}": one.reason or "" for one in changes}


def _parts(apart: Apart) -> Sequence[_Part | None]:
    split = apart.found.split
    if split is None:
        return (None, None, None)
    return [_Part(*part) for part in zip((split.whole, split.alike, split.rest), apart.kinds, strict=True)]
