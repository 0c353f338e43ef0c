"""Ticks: where a logarithmic axis is labelled."""

from __future__ import annotations

from math import ceil, floor, log10

from tollbar.present.charts import Scale

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
    """Where this axis is labelled: sizes in memory at powers of two."""
    return _binary_ticks(scale.low, scale.high) if scale.unit == "B" else log_ticks(scale.low, scale.high)


def log_ticks(low: float, high: float) -> tuple[float, ...]:
    """Where a log axis is labelled: at the roundest numbers that give four labels or more."""
    exponents = range(floor(log10(low)), ceil(log10(high)) + 1)
    for digits in _DIGITS:
        ticks = [float(f"{d * 10.0**e:.6g}") for e in exponents for d in digits]
        inside = tuple(t for t in ticks if low <= t <= high)
        if len(inside) >= FEWEST_TICKS:
            every = ceil(len(inside) / MOST_TICKS)
            # Thinned so that one, where it is there, keeps its label.
            first = inside.index(1.0) % every if 1.0 in inside else 0
            return inside[first::every]
    # Less than half a decade: even steps are as good as any.
    rough = (high - low) / MOST_TICKS
    step = next(d * 10.0 ** floor(log10(rough)) for d in (1, 2, 5, 10) if d * 10.0 ** floor(log10(rough)) >= rough)
    return tuple(round(i * step, 10) for i in range(ceil(low / step), floor(high / step) + 1))


def _binary_ticks(low: float, high: float) -> tuple[float, ...]:
    powers = [p for p in range(60) if low <= 2**p <= high]
    every = next(e for e in (1, 2, 5, 10, 20) if len(powers) / e <= MOST_TICKS)
    return tuple(float(2**p) for p in powers if p % every == 0)
