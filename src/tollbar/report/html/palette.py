"""The colours and shapes of charts and legends.

Every colour is a variable of the stylesheet: light, dark and paper are then its business, and no chart is drawn twice.
"""

from __future__ import annotations

from tollbar.catalog.families import Standing

# Vega's own symbols; the legends draw the same. A shape says the standing, and its colour says it again.
SHAPES = {
    Standing.RECOMMENDED: "circle",
    Standing.ACCEPTABLE: "square",
    Standing.DEPRECATED: "triangle-up",
    Standing.DISALLOWED: "diamond",
    Standing.BROKEN: "cross",
    Standing.NULL: "triangle-right",
}

LINES = 6
"""How many colours lines and parts have: `--line-1` and on in the stylesheet."""
LINE_SHAPES = tuple(SHAPES.values())
# Whole for the first of each colour, dashed for the second.
LINE_DASHES = ([1, 0], [5, 3])


def line_colour(number: int) -> str:
    """The colour of the line with this number, from nought."""
    return f"var(--line-{number % LINES + 1})"


def part_colour(number: int) -> str:
    """A part's colour, the same in bars and curves. The first is the client, no part of the cost, and grey."""
    return line_colour(number - 1) if number else "var(--muted)"


def line_shape(number: int) -> str:
    """The mark on the line with this number, from nought."""
    return LINE_SHAPES[number % LINES]


def line_dash(number: int) -> list[int]:
    """How the line with this number is broken, from nought."""
    return LINE_DASHES[number // LINES % 2]
