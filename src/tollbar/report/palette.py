"""The charts' colours and shapes, and the configuration that all of them share.

In the page every colour is a CSS variable: light, dark and paper are then the stylesheet's business and
no chart is drawn twice. A picture outside the page has no stylesheet, so there the light colours are put in.
"""

from __future__ import annotations

from typing import Any

from tollbar.families import Standing

# Vega's own symbols; markup.py draws the same in the legends. Standing is told by shape, then by colour.
SHAPES = {
    Standing.RECOMMENDED: "circle",
    Standing.ACCEPTABLE: "square",
    Standing.DEPRECATED: "triangle-up",
    Standing.DISALLOWED: "diamond",
    Standing.BROKEN: "cross",
    Standing.NULL: "triangle-right",
}

# The same values as in style.css, light.
LIGHT = {
    "--ink": "#1b1f24",
    "--muted": "#59636e",
    "--paper": "#ffffff",
    "--grid": "#e4e7eb",
    "--band": "#dfe6ee",
    "--accent": "#0a5fb4",
    "--recommended": "#0f766e",
    "--acceptable": "#1d5fbf",
    "--deprecated": "#9a6700",
    "--disallowed": "#bc4c00",
    "--broken": "#b4182d",
    "--null": "#59636e",
    "--line-1": "#0a5fb4",
    "--line-2": "#bc4c00",
    "--line-3": "#0f766e",
    "--line-4": "#8034c8",
    "--line-5": "#b02a6f",
    "--line-6": "#7a6200",
}

LINES = 6
"""How many colours lines and parts are told apart by: `--line-1` and on in the stylesheet."""
LINE_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-right")
# Whole for the first of each colour, dashed for the second.
LINE_DASHES = ([1, 0], [5, 3])

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"


def colour(name: str) -> str:
    """A colour of the page's theme, as the stylesheet names it."""
    return f"var(--{name})"


def line_colour(number: int) -> str:
    """The colour of the line or part with this number, from nought."""
    return colour(f"line-{number % LINES + 1}")


def line_shape(number: int) -> str:
    """The mark on the line with this number, from nought."""
    return LINE_SHAPES[number % LINES]


def line_dash(number: int) -> list[int]:
    """How the line with this number is broken, from nought."""
    return LINE_DASHES[number // LINES % 2]


def config() -> dict[str, Any]:
    """Vega-Lite's configuration for every chart of the page."""
    axis = {
        "labelColor": colour("ink"),
        "titleColor": colour("muted"),
        "gridColor": colour("grid"),
        "domainColor": colour("muted"),
        "tickColor": colour("muted"),
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
    }
    return {
        "background": "transparent",
        "font": FONT,
        "axis": axis,
        "view": {"stroke": None},
        "text": {"fontSize": 12, "color": colour("ink")},
    }


def in_light(text: str) -> str:
    """The text of a chart with the light theme's colours in place of the page's variables."""
    for name, value in LIGHT.items():
        text = text.replace(f"var({name})", value)
    return text
