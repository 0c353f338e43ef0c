"""Two builds and a study of them with made-up costs."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

from builders import lognormal, measured, row, run, study, study_run
from tollbar.analysis import judge
from tollbar.catalog.families import Value
from tollbar.catalog.libraries import Provider
from tollbar.core.records import Outcome
from tollbar.decide import upgrade
from tollbar.decide.upgrade import Thing, Upgrade
from tollbar.report.blocks import Brief
from tollbar.results import Row

BLOCKS = 12
OLD, NEW = "openssl 3.0.19", "openssl 3.5.9"


def side(name: str, spec: str = "libcrypto") -> Thing:
    return Thing(spec, "libcrypto", Provider(spec, name, "libcrypto", f"/lib/{name}", (), {}))


def pair(choice: str, ratio: float, lacks: str | None = None, why: Outcome = Outcome.UNSUPPORTED) -> list[Row]:
    """Return a choice on the old and the new library, one of which may not have it."""
    base, repeat, other = measured([1, 1, ratio], lognormal(0.002), random.Random(choice), blocks=BLOCKS)
    made = {OLD: base, NEW: other}
    found = []
    for name, costs in made.items():
        gone = {"outcome": why, "reason": f"{name} has no {choice}"} if lacks in (name, "both") else {}
        at: Mapping[str, Value] = {"choice": choice, "provider": name}
        repeats = repeat if name == OLD else ()
        against = row({"choice": choice, "provider": OLD}).key
        found.append(row(at, () if gone else costs, repeats_ns=repeats if not gone else (), against=against, **gone))
    return found


def of(*rows: Row) -> Upgrade:
    about = replace(study(threshold=0.01, blocks=BLOCKS), baseline={"provider": OLD})
    return upgrade.upgrade(side(OLD), side(NEW, "libcrypto:psycopg"), judge(run(study_run(rows, (BLOCKS,), about))))


def texts_of(answer: Brief) -> dict[str, list[list[str]]]:
    """Return each row's words up to the change, by the first words of its table's caption."""
    return {
        table.caption.partition(" (")[0]: [[cell.says for cell in cells[:4]] for cells in table.rows]
        for listing in answer.listings
        for table in listing.tables
    }
