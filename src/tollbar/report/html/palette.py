"""Colours and shapes of charts and legends.

Every colour is a variable of the stylesheet, which defines it for light, dark and paper, so that no chart is drawn
twice.
"""

from __future__ import annotations

from tollbar.catalog.families import Standing

# Vega's own symbols, which legends draw too. The shape identifies the standing, and the colour repeats it.
SHAPES = {
    Standing.RECOMMENDED: "circle",
    Standing.ACCEPTABLE: "square",
    Standing.DEPRECATED: "triangle-up",
    Standing.DISALLOWED: "diamond",
    Standing.BROKEN: "cross",
    Standing.NULL: "triangle-right",
    Standing.REFERENCE: "triangle-down",
}

LINES = 6
"""Number of colours of lines and parts: `--line-1` and on in the stylesheet."""
LINE_SHAPES = tuple(SHAPES.values())
# Solid for the first of each colour, dashed for the second.
LINE_DASHES = ([1, 0], [5, 3])


def line_colour(number: int) -> str:
    """Return the colour of the line with this number, from 0."""
    return f"var(--line-{number % LINES + 1})"


def part_colour(number: int) -> str:
    """Return a part's colour, the same in bars and curves. The first is the client, not part of the cost, and grey."""
    return line_colour(number - 1) if number else "var(--muted)"


def line_shape(number: int) -> str:
    """Return the mark on the line with this number, from 0."""
    return LINE_SHAPES[number % LINES]


def line_dash(number: int) -> list[int]:
    """Return the dash pattern of the line with this number, from 0."""
    return LINE_DASHES[number // LINES % 2]
