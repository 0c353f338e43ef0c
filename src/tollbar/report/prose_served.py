"""Sentences about what was measured through servers, made from the same verdicts and from nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from tollbar.judge import Limit, StudyJudgement
from tollbar.judge.measurements import BUSY
from tollbar.measure import Outcome
from tollbar.report import words
from tollbar.report.agreed import Agreed
from tollbar.report.limits import MARKS
from tollbar.report.loads import THROUGHPUT
from tollbar.results import Row

_WHY_LIMITED = {
    Limit.CLIENT_BOUND: f"the load client's core was more than {words.percent(BUSY)} busy, so that a faster client"
    " would have got more.",
    Limit.NOT_SATURATED: f"the server's core was less than {words.percent(BUSY)} busy, so that more users would have"
    " got more.",
    Limit.CONTENDED: "other programs had the server's or the load client's core for part of the time, so that a"
    " quieter machine would have got more.",
}


def unavailable(study: StudyJudgement) -> list[str]:
    """A sentence for each server on which nothing could be measured, for one reason."""
    family = study.study.study.family
    by_bed: dict[str, list[Row]] = {}
    for row in study.study.rows:
        if row.bed is not None:
            by_bed.setdefault(row.bed, []).append(row)
    said = []
    for bed, rows in by_bed.items():
        reasons = {r.reason for r in rows if r.outcome is Outcome.UNSUPPORTED}
        if all(r.outcome is Outcome.UNSUPPORTED for r in rows) and len(reasons) == 1:
            name, reason = words.value_words(family, "bed", bed), (reasons.pop() or "no reason was recorded")
            said.append(f"Not available here, {words.counted(len(rows), 'cell')} on {name}: {reason.rstrip('.')}.")
    return said


def limited(study: StudyJudgement) -> list[str]:
    """What the hollow points and marked numbers mean, and how many of them there are."""
    found = list(words.by_row(study, THROUGHPUT).values())
    all_of = words.counted(len(found), "cell")
    said = []
    for limit, why in _WHY_LIMITED.items():
        count = sum(m.limit is limit for m in found)
        if count:
            said.append(f"{MARKS[limit]} hollow, {limit} ({count:,} of {all_of}): {why}")
    if said:
        told = "CPU per request is right there too." if words.cost_metric(study) == "server-cpu" else ""
        said.append(f"Such requests a second and response times get no verdict. {told}".strip())
    return said


def agreed(found: Sequence[Agreed]) -> str:
    """One sentence: how many handshakes there were, and how many of them were resumed."""
    full = sum(one.full for one in found if one.version)
    resumed = sum(one.resumed for one in found)
    cells = len({one.row.key for one in found if one.version})
    if not full + resumed:
        return "No connection had TLS."
    told = f"{resumed:,} resumed a session" if resumed else "none resumed a session"
    return f"{words.counted(full + resumed, 'handshake')} in {words.counted(cells, 'cell')}: {told}."
