"""Writer of today's standings and new limits into a project's file; everything else in it is kept."""

from __future__ import annotations

from datetime import date
from typing import Any

import tomlkit
from tomlkit.container import Container
from tomlkit.items import InlineTable, Table

from tollbar.catalog.policies import Processor
from tollbar.core import method
from tollbar.decide.check.checked import Check

BYTE_ORDER_MARK = "\ufeff"
"""Mark at the beginning of files from some Windows editors."""


def accepted(text: str, check: Check, here: Processor, today: date) -> str:
    """Return the text of a `tollbar.toml` with today's standing of each use, and the new limits of its budgets.

    Comments, order and spaces are kept.
    """
    mark = BYTE_ORDER_MARK if text.startswith(BYTE_ORDER_MARK) else ""
    document: dict[str, Any] = tomlkit.parse(text.removeprefix(mark))
    for use in check.uses:
        if use.is_standing_sure and use.standing != use.use.standing:
            document["uses"][use.use.name]["standing"] = str(use.standing)
    for one in check.budgets:
        if one.new_limit is None or one.ratio is None:
            continue
        table = document["budget"][one.budget.name]
        below = _taken_from_the_end(table)
        table["at-most"] = one.new_limit
        set_on = {
            "ratio": round(one.ratio.estimate, 4),
            "libraries": list(one.libraries),
            "cpu": here.cpu,
            "model": here.model,
            "flags": here.flags,
            "day": today,
            "method": method.VERSION,
        }
        if isinstance(table, InlineTable):
            table["set-on"] = tomlkit.inline_table()
        elif "set-on" not in table:
            # A table of its own, a line for each key, so that a difference is seen key by key.
            table["set-on"] = tomlkit.table()
        table["set-on"].update(set_on)
        if below:
            table["set-on"].value.body.extend(below)
    return mark + tomlkit.dumps(document)


def _taken_from_the_end(table: Table | InlineTable) -> list[Any]:
    """Return the comments and empty lines after a table's last key, removed: they are about what follows the table."""
    body, taken = table.value.body, list[Any]()
    while isinstance(table, Table) and isinstance(table.value, Container) and body and body[-1][0] is None:
        taken.insert(0, body.pop())
    return taken
