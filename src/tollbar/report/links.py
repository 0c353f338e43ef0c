"""Links: a name for each section of a page, and for each row of its tables."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, count
from typing import TypeVar

from tollbar.core.words import slug
from tollbar.report.blocks import (
    Block,
    Boxed,
    Folded,
    Listing,
    Section,
    Table,
)
from tollbar.report.sections.results import Results

B = TypeVar("B", bound=Block)


def linked(block: B, at: str, taken: set[str]) -> B:
    """Return the block with a name for each section and each table's row in it, made of their own words."""
    if isinstance(block, Section):
        name = block.name or _free(f"{at}-{slug(block.title)}", taken)
        return replace(block, name=name, blocks=tuple(linked(inside, name, taken) for inside in block.blocks))
    if isinstance(block, Listing):
        name = block.name or _free(f"{at}-{slug(block.title)}", taken)
        # If a page has a listing in another form, only that form is linked to.
        tables = block.tables if block.whole else [linked(table, name, taken) for table in block.tables]
        return replace(block, name=name, tables=tables, whole=[linked(one, name, taken) for one in block.whole])
    if isinstance(block, Folded | Boxed):
        return replace(block, blocks=tuple(linked(inside, at, taken) for inside in block.blocks))
    if isinstance(block, Results):
        return replace(block, table=linked(block.table, at, taken))
    if isinstance(block, Table):
        heads = [n for n, column in enumerate(block.columns) if column.names] or [0]
        said = block.names or [f"{at}-{slug(' '.join(row[n].says for n in heads))}" for row in block.rows]
        return replace(block, names=[_free(name, taken) for name in said])
    return block


def _free(name: str, taken: set[str]) -> str:
    """Return the name, or if it is taken the first free one of `name-2`, `name-3` …"""
    found = next(one for one in chain([name], (f"{name}-{n}" for n in count(2))) if one not in taken)
    taken.add(found)
    return found
