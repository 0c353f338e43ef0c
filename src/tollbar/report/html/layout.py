"""Layout inside charts: labels of logarithmic axes, and places of names next to points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, exp, floor, log, log10

from tollbar.report.chart import Point, Scale

# Height of the strength chart.
HEIGHT_PX = 280
# Twelve-pixel type with a little leading, its mean letter, and a point with the room around it.
LINE_PX, LETTER_PX, MARK_PX = 14, 6.5, 10
# With more levels of strength than this, names need the page's whole width.
MOST_LEVELS = 5
# Approximate width of the plot, alone and next to another.
WIDE_PX, NARROW_PX = 1000, 430

# From few to many labels a decade; all are numbers that a reader halves and doubles easily.
_DIGITS = (
    (1,),
    (1, 3),
    (1, 2, 5),
    (1, 1.5, 2, 3, 5, 7),
    (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9),
)
FEWEST_TICKS, MOST_TICKS = 4, 8


def ticks(scale: Scale) -> tuple[float, ...]:
    """Return the labels of this axis: sizes in memory at powers of two."""
    return _binary_ticks(scale.low, scale.high) if scale.unit == "B" else log_ticks(scale.low, scale.high)


def log_ticks(low: float, high: float) -> tuple[float, ...]:
    """Return the labels of a log axis: the roundest numbers that give four labels or more."""
    exponents = range(floor(log10(low)), ceil(log10(high)) + 1)
    for digits in _DIGITS:
        round_ones = [float(f"{d * 10.0**e:.6g}") for e in exponents for d in digits]
        inside = tuple(t for t in round_ones if low <= t <= high)
        if len(inside) >= FEWEST_TICKS:
            every = ceil(len(inside) / MOST_TICKS)
            # Thinned so that 1, if it is there, keeps its label.
            first = inside.index(1.0) % every if 1.0 in inside else 0
            return inside[first::every]
    # In less than half a decade even steps are as good as any.
    rough = (high - low) / MOST_TICKS
    step = next(d * 10.0 ** floor(log10(rough)) for d in (1, 2, 5, 10) if d * 10.0 ** floor(log10(rough)) >= rough)
    return tuple(round(i * step, 10) for i in range(ceil(low / step), floor(high / step) + 1))


def _binary_ticks(low: float, high: float) -> tuple[float, ...]:
    powers = [p for p in range(60) if low <= 2**p <= high]
    every = next(e for e in (1, 2, 5, 10, 20) if len(powers) / e <= MOST_TICKS)
    return tuple(float(2**p) for p in powers if p % every == 0)


def needs_width(letters: int, levels: int) -> bool:
    """Return whether names of this number of letters at this number of levels need the page's whole width."""
    return levels > MOST_LEVELS or letters * LETTER_PX > NARROW_PX / levels


@dataclass(frozen=True, slots=True)
class Columns:
    """Places of the levels, in steps and in pixels, so that the names of the last ones have room too."""

    levels: Sequence[int]
    padding: float
    step_px: float

    @classmethod
    def of(cls, points: Sequence[Point]) -> Columns:
        levels = sorted({p.bits for p in points})
        letters = max(len(p.label) for p in points)
        width = WIDE_PX if needs_width(letters, len(levels)) else NARROW_PX
        name = min(MARK_PX + letters * LETTER_PX, 0.4 * width)
        # A quarter of a step to the left of the first level, and a name's length to the right of the last.
        padding = max(0.25, (name * (len(levels) - 1) + width / 4) / (width - name) / 2)
        return cls(levels, padding, width / (len(levels) - 1 + 2 * padding))


def spread(points: Sequence[Point], columns: Columns, scale: Scale) -> list[float]:
    """Return the position of each point's name on the cost axis: the point's, or the nearest without overlap."""
    px = HEIGHT_PX / log(scale.high / scale.low)
    marks = [(columns.levels.index(p.bits) * columns.step_px, log(p.cost / scale.low) * px) for p in points]
    # Each taken place as left, right and middle height, from the bottom of the plot.
    taken = [(x - MARK_PX / 2, x + MARK_PX / 2, y) for x, y in marks]
    beside = [0.0] * len(points)
    for i in sorted(range(len(points)), key=lambda i: marks[i]):
        x, y = marks[i]
        left, right = x + MARK_PX, x + MARK_PX + LETTER_PX * len(points[i].label)
        near = sorted((step * LINE_PX / 3 for step in range(-45, 46)), key=abs)
        free = (
            y + off
            for off in near
            if LINE_PX / 2 <= y + off <= HEIGHT_PX
            and not any(left < end and start < right and abs(y + off - at) < LINE_PX for start, end, at in taken)
        )
        height = next(free, y)
        taken.append((left, right, height))
        beside[i] = scale.low * exp(height / px)
    return beside
