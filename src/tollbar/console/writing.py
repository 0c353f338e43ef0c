"""How values stand in a terminal's tables."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from tollbar import units
from tollbar.families import Value
from tollbar.results import Row
from tollbar.stats import Interval

BAR_WIDTH = 12


def new_table(title: str | None = None) -> Table:
    return Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False, padding=(0, 1))


def varying(rows: Sequence[Row], always: Sequence[str] = ("choice",)) -> list[str]:
    """The coordinates that tell these rows apart, and those shown always. A setting that a row lacks tells nothing."""
    names: dict[str, set[Value]] = {}
    for row in rows:
        for name, value in row.coordinates.items():
            names.setdefault(name, set()).add(value)
    return [name for name, seen in names.items() if name in always or len(seen) > 1]


def show_value(name: str, value: Value | None) -> str:
    if value is None:
        return ""
    return units.show_bytes(value) if name == "bytes" and isinstance(value, int) else escape(str(value))


def show_interval(interval: Interval) -> str:
    return f"{units.show_ratio(interval.estimate)} {ends(interval)}"


def ends(interval: Interval) -> str:
    return between(interval.low, interval.high)


def between(low: float, high: float) -> str:
    # The brackets would be read as markup where a table's cell is a plain string.
    return escape(f"[{units.show_ratio(low)}, {units.show_ratio(high)}]")


def bar(share: float) -> Text:
    """To the right for dearer, to the left for cheaper; the middle is ×1."""
    half = BAR_WIDTH // 2
    length = max(1, round(abs(share) * half)) if abs(share) > 0.01 else 0
    left, right = (" " * half, "█" * length) if share >= 0 else (" " * (half - length) + "█" * length, "")
    return Text(f"{left}│{right}".ljust(BAR_WIDTH + 1), style="red" if share > 0 else "green")
