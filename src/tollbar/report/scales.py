"""Log scales: what an axis spans, where it is labelled, and in which units."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, floor, inf, log10
from typing import Any

# Costs and sizes get their unit from the number itself, on an axis that may span nine decades.
NANOSECONDS = (
    "datum.value >= 1e9 ? format(datum.value / 1e9, ',.3~r') + ' s'"
    " : datum.value >= 1e6 ? format(datum.value / 1e6, '.3~r') + ' ms'"
    " : datum.value >= 1e3 ? format(datum.value / 1e3, '.3~r') + ' µs' : format(datum.value, '.3~r') + ' ns'"
)
BYTES = (
    "datum.value >= 1073741824 ? format(datum.value / 1073741824, ',.3~r') + ' GiB'"
    " : datum.value >= 1048576 ? format(datum.value / 1048576, '.3~r') + ' MiB'"
    " : datum.value >= 1024 ? format(datum.value / 1024, '.3~r') + ' KiB'"
    " : format(datum.value, '.3~r') + ' B'"
)
RATIO = (
    "datum.value < 0.01 ? '1/' + format(1 / datum.value, ',.3~r')"
    " : datum.value < 1000 ? format(datum.value, '.3~r') : format(datum.value, ',.3~r')"
)


@dataclass(frozen=True, slots=True)
class Scale:
    """The horizontal axis that a set of panels shares."""

    title: str
    low: float
    high: float
    labels: str = RATIO
    worth: float | None = None
    noise: float | None = None
    """How far from one noise alone may take a ratio."""
    binary: bool = False
    """Ticks at powers of two times ten bits, for sizes in memory."""
    ticks: tuple[float, ...] = ()

    @classmethod
    def over(cls, title: str, values: Iterable[float | None], **more: Any) -> Scale:
        """The scale that holds all these values, and the band of what is worth nothing where one is given."""
        # Too few blocks give an interval from nothing to infinity, which no axis can hold.
        held = [v for v in values if v is not None and 0 < v < inf]
        worth = more.get("worth")
        if worth is not None:
            held += [1 / (1 + worth), 1 + worth]
        low, high = (min(held), max(held)) if held else (1.0, 10.0)
        # A little air, so that no mark sits on the frame.
        air = max(1.06, (high / low) ** 0.04)
        low, high = low / air, high * air
        ticks = _binary_ticks(low, high) if more.get("binary") else log_ticks(low, high)
        return cls(title, low, high, ticks=ticks, **more)


# From few to many labels a decade; all are numbers that a reader halves and doubles easily.
_DIGITS = (
    (1,),
    (1, 3),
    (1, 2, 5),
    (1, 1.5, 2, 3, 5, 7),
    (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9),
)
FEWEST_TICKS, MOST_TICKS = 4, 8


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
