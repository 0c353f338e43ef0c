"""Answer of a look: its facts and changes, and the measurements that price these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

from tollbar import study
from tollbar.analysis import quickness
from tollbar.analysis.decisions import Terms
from tollbar.analysis.ledger import Ledger
from tollbar.catalog import families
from tollbar.catalog.families import Value
from tollbar.catalog.policies import Ruling
from tollbar.decide.look.offered import Fact, facts_of
from tollbar.decide.look.pasted import Approved, approved
from tollbar.decide.look.proposed import Change, changes_of
from tollbar.decide.rulings import Wanted
from tollbar.lab.tls.looking import Look
from tollbar.results import Row, Run
from tollbar.study import Question
from tollbar.study.asking import offering

FAMILY, EMBEDDED = "tls", "embedded"
# Size of the answers whose records price a cipher: with a smaller one the handshake's keys hide in noise.
RECORDS = "bytes=16KiB"


@dataclass(frozen=True)
class Looked:
    """A look, judged, with the changes and their prices."""

    look: Look
    wanted: Wanted
    facts: tuple[Fact, ...]
    changes: tuple[Change, ...]
    run: Path | None = None
    """Directory of the run that priced the changes; None: nothing was measured."""

    @property
    def on(self) -> date:
        return self.wanted.on

    @property
    def breaking(self) -> tuple[Fact, ...]:
        return tuple(one for one in self.facts if one.ruling is Ruling.BREAKS)

    @property
    def breaks(self) -> bool:
        return bool(self.breaking)

    @property
    def is_incomplete(self) -> bool:
        """True if a part of the server was not seen, so that it may break a policy there."""
        return bool(self.look.doubts)

    @cached_property
    def approved(self) -> Approved:
        """Values for the lines to paste."""
        return approved(self.wanted)


def looked(look: Look, wanted: Wanted) -> Looked:
    """Return a look with its rulings and changes, without prices."""
    facts = facts_of(look, wanted)
    return Looked(look, wanted, facts, changes_of(look, facts, wanted))


def placed(of: Looked, server: str) -> Looked:
    """Return the look with a server for each priced change: this one, or the embedded one for newer algorithms.

    A server runs on the system's OpenSSL, which has ML-KEM from version 3.5 on; the embedded server's library has it.
    """
    is_asked = any(one.pair and one.pair.is_post_quantum for one in of.changes)
    has_ml_kem = is_asked and offering(families.family("key-exchange"), "x25519mlkem768", ["libcrypto"]) is not None
    changes = (
        replace(one, server=EMBEDDED if one.pair.is_post_quantum and not has_ml_kem else server) if one.pair else one
        for one in of.changes
    )
    return replace(of, changes=tuple(changes))


def questions(of: Looked) -> Mapping[str, Question]:
    """Return a study for each server and operation that price changes, by its name."""
    family = families.family(FAMILY)
    found: dict[tuple[str, str], list[Mapping[str, Value]]] = {}
    for change in of.changes:
        if change.pair is not None and change.server is not None:
            cells = found.setdefault((change.server, change.pair.op), [])
            cells += [one for one in (change.pair.before, change.pair.after) if one not in cells]
    asked = {}
    for (server, op), cells in found.items():
        words = [f"server={server}", f"op={op}", *([RECORDS] if op == "request" else [])]
        question = study.of_candidates(family, words, cells)
        head = {**question.tables[""], "question": f"How much does each change of {of.look.remote.name} cost?"}
        asked[f"look-{server}-{op}"] = replace(question, tables={**question.tables, "": head})
    return asked


def priced(of: Looked, run: Run) -> Looked:
    """Return the look with the prices that a run measured."""
    known, family = quickness(run), families.family(FAMILY)
    ledgers = [Ledger(one.rows, Terms.of(one), one.study.measure.cost, family, known) for one in run.studies]
    changes = (replace(one, **_price(one, ledgers)) if one.pair else one for one in of.changes)
    return replace(of, changes=tuple(changes), run=run.directory)


def _price(change: Change, ledgers: Sequence[Ledger]) -> Mapping[str, Any]:
    """Return the toll of a change, or the reason for a missing one."""
    assert change.pair
    where = {"server": change.server, "op": change.pair.op}
    for ledger in ledgers:
        after, before = (_row(ledger.rows, {**where, **cell}) for cell in (change.pair.after, change.pair.before))
        if after is not None and before is not None:
            toll = ledger.compare(after, before)
            return {"toll": toll, "unpriced": toll.reason if toll.ratio is None else None}
    return {"unpriced": "the run has no such cells"}


def _row(rows: Sequence[Row], cell: Mapping[str, Value | None]) -> Row | None:
    return next((row for row in rows if cell.items() <= row.coordinates.items()), None)
