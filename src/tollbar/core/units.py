"""Numbers with their units: read from text, written for people.

Inside the package a duration is seconds, a size is bytes, a share is a fraction of one, and a cost is CPU nanoseconds
per operation; the name or the type says so.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}
# Decimal and binary names differ: 1 KB is 1,000 bytes and 1 KiB is 1,024.
BYTES = {"B": 1, "KB": 1000, "MB": 1000**2, "GB": 1000**3, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}

# Units as people write them, with the unit meant and its multiple.
_SPELLED: Mapping[str, tuple[str, int]] = {
    **dict.fromkeys(("byte", "bytes", "octets"), ("B", 1)),
    **dict.fromkeys(("kilobyte", "kilobytes"), ("KB", 1)),
    **dict.fromkeys(("megabyte", "megabytes"), ("MB", 1)),
    **dict.fromkeys(("gigabyte", "gigabytes"), ("GB", 1)),
    **dict.fromkeys(("nsec", "nanosecond", "nanoseconds"), ("ns", 1)),
    **dict.fromkeys(("usec", "microsecond", "microseconds", "μs"), ("us", 1)),
    **dict.fromkeys(("msec", "msecs", "millis", "millisecond", "milliseconds"), ("ms", 1)),
    **dict.fromkeys(("sec", "secs", "second", "seconds"), ("s", 1)),
    **dict.fromkeys(("m", "mins", "minute", "minutes"), ("min", 1)),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), ("min", 60)),
    **dict.fromkeys(("percent", "pct", "pc"), ("%", 1)),
    **dict.fromkeys(("/sec", "/second", "persecond", "rps", "qps", "hz", "req/s", "requests/s"), ("/s", 1)),
}
IN_BYTES, IN_MEMORY = ("B", "KiB"), ("MiB", "KiB")
"""Likeliest units of a number without one: for data, and for memory."""

# More digits than any number here has: one of thousands would be slow, and fill a screen when quoted.
_MOST_LETTERS = 40

_COUNT = re.compile(r"\s*([0-9][0-9_]{0,39})(?:\^([0-9]{1,2}))?\s*")
_THOUSANDS = re.compile(r"\s*([0-9]+)\s*([kKmM])\s*")
_POWERS = {"k": 1, "m": 2}
_POWER = re.compile(r"\s*([0-9]{1,9})\s*\*\*\s*([0-9]{1,2})\s*")
_DECIMAL = re.compile(r"\s*[0-9]{1,9}(?:\.[0-9]{1,9})?[eE]\+?([0-9]{1,2})\s*")
_FIGURE = re.compile(r"\s*([0-9][0-9,]*(?:\.[0-9]+)?)\s*((?![eE][-+]?[0-9])[A-Za-zµ%×].*?)\s*")
_NUMBER_AND_UNIT = re.compile(r"\s*([0-9][0-9_]*(?:\.[0-9]+)?)\s*([A-Za-zµμ%/]*)\s*")


def quoted(value: object) -> str:
    """Return a value as a message quotes it: the beginning, if it is long."""
    try:
        text = str(value)
    except ValueError:
        # Python refuses to convert numbers of more than 4,300 digits.
        return "a number of thousands of digits"
    return text if len(text) <= _MOST_LETTERS else f"{text[:_MOST_LETTERS]}…"


class Misread(ValueError):
    """Raised for a text that is not a number with a unit."""

    def __init__(self, what: str, meant: Sequence[str] = ()) -> None:
        super().__init__(what)
        self.meant = tuple(meant)
        """Possible numbers with a unit, the likeliest first."""


def seconds(text: str | int | float, likely: Sequence[str] = ("s", "ms")) -> float:
    """Return `"100 ms"` as seconds. Raises ValueError with the expected spelling.

    `likely` are the units to suggest for a number without one.
    """
    return _read(text, SECONDS, "5 s", likely)


def size_bytes(text: str | int | float, likely: Sequence[str] = IN_BYTES) -> int:
    """Return `"4 KiB"` as bytes. Raises ValueError with the expected spelling.

    `likely` are the units to suggest for a number without one.
    """
    match = _NUMBER_AND_UNIT.fullmatch(quoted(text))
    # `K` is ambiguous: 1,000 for some people and 1,024 for others.
    meant = [unit for unit in BYTES if match and len(match[2]) == 1 and unit != "B" and unit[0] == match[2].upper()]
    if match and meant:
        number = float(match[1].replace("_", ""))
        said = " or ".join(f"`{match[1]} {unit}` ({number * BYTES[unit]:,.0f} B)" for unit in meant)
        raise Misread(
            f"`{match[0].strip()}` needs a unit, for example {said}", [f"{match[1]} {unit}" for unit in meant]
        )
    value = _read(text, BYTES, "4 KiB", likely)
    if value != int(value):
        raise ValueError(f"`{quoted(text)}` must be a whole number of bytes, for example `1536 B`")
    return int(value)


def count(text: str | int) -> int:
    """Return a whole number: `600000`, `600_000`, `2^17`. Raises ValueError with the expected spelling."""
    match = _COUNT.fullmatch(quoted(text))
    if not match:
        meant = _meant_count(quoted(text))
        raise Misread(f"`{quoted(text)}` must be a whole number, for example `{meant or 12}`", [meant] if meant else ())
    number, power = int(match[1].replace("_", "")), match[2]
    return number if power is None else number ** int(power)


def _meant_count(text: str) -> str | None:
    """Return the whole number of another notation: `600k`, `6e5`, `2**17`; None for another text."""
    if short := _THOUSANDS.fullmatch(text):
        return f"{short[1]}{'_000' * _POWERS[short[2].lower()]}"
    if power := _POWER.fullmatch(text):
        return f"{power[1]}^{power[2]}"
    if decimal := _DECIMAL.fullmatch(text):
        value = float(text)
        return f"{value:_.0f}" if value == int(value) and int(decimal[1]) < 12 else None
    return None


def share(text: str | int | float) -> float:
    """Return `"3 %"` as 0.03. Raises ValueError with the expected spelling."""
    return _read(text, {"%": 0.01}, "3 %", ("%",))


def per_second(text: str | int | float) -> float:
    """Return `"200 /s"` as 200.0. Raises ValueError with the expected spelling."""
    return _read(text, {"/s": 1.0}, "200 /s", ("/s",))


UNPACED = "unpaced"
"""Name of a load whose users ask again as soon as they are answered; its rate is zero."""
# Beyond it the queue grows with the measured time.
MOST_BUSY = 90


def arrivals(text: str | int | float) -> float:
    """Return arrivals a second: `"200 /s"` as 200.0, `"unpaced"` as zero.

    Raises ValueError with the expected spelling.
    """
    if text == UNPACED:
        return 0.0
    found = per_second(text)
    if found <= 0:
        raise ValueError(f"`{quoted(text)}` must be a rate above zero, for example `200 /s`, or `{UNPACED}`")
    return found


def utilisation(text: str | int | float) -> int:
    """Return a core's utilisation: `"60 %"` as 60, `"unpaced"` as zero.

    Raises ValueError with the expected spelling.
    """
    if text == UNPACED:
        return 0
    percent = share(text) * 100
    if not 1 <= percent <= MOST_BUSY or abs(percent - round(percent)) > 1e-9:
        raise ValueError(
            f"`{quoted(text)}` must be a whole percentage from 1 % to {MOST_BUSY} %, for example `60 %`, or `{UNPACED}`"
        )
    return round(percent)


def published(text: str) -> tuple[float, str]:
    """Return `"10,750 ms"` as 10750.0 and `ms`: a figure in its source's unit. Raises ValueError without a unit."""
    match = _FIGURE.fullmatch(text)
    if not match:
        raise ValueError(f'`{text}` must be a figure with its unit, for example "10,750 ms"')
    return float(match[1].replace(",", "")), match[2]


def _read(
    text: str | int | float, units: Mapping[str, float] | Mapping[str, int], example: str, likely: Sequence[str]
) -> float:
    match = _NUMBER_AND_UNIT.fullmatch(quoted(text))
    if not match:
        raise Misread(f'`{quoted(text)}` must be a number with a unit, for example "{example}"')
    number, unit = match.groups()
    if unit in units:
        return float(number.replace("_", "")) * units[unit]
    meant = _meant(number, unit, units) if unit else [f"{number} {one}" for one in likely]
    shown = " or ".join(f"`{one}`" for one in meant)
    if not unit:
        raise Misread(f"`{number}` needs a unit, for example {shown}", meant)
    known = f"did you mean {shown}?" if meant else f'for example "{example}"'
    raise Misread(f"`{unit}` is not a unit here; {known}", meant)


def _meant(number: str, unit: str, units: Mapping[str, object]) -> Sequence[str]:
    """Return the possible meanings of a number with a misspelt unit."""
    spelled, each = _SPELLED.get(unit.casefold(), (unit, 1))
    found = [name for name in units if name.casefold() == spelled.casefold()]
    scaled = number if each == 1 else f"{float(number.replace('_', '')) * each:g}"
    return [f"{scaled} {name}" for name in found]


def show_nanoseconds(value: float) -> str:
    """Return a cost or a duration to three significant figures, in the unit a person would choose."""
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        # A value that three figures would print as a thousand of the smaller unit is one of this.
        if abs(value) >= 0.9995 * scale:
            return f"{_three_figures(value / scale)} {unit}"
    return f"{_three_figures(value)} ns"


def show_seconds(value: float) -> str:
    """Return a waiting time: `45 s`, `12 min`, `1 h 05 min`."""
    if value < 90:
        return f"{value:.0f} s"
    minutes = round(value / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"


def show_bytes(value: float) -> str:
    """Return a measured size in binary units, without a fraction if it is whole: `4 KiB`, `19.1 MiB`."""
    for unit, scale in (("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024)):
        if abs(value) >= scale:
            number = value / scale
            return f"{number:.0f} {unit}" if number == int(number) else f"{number:.1f} {unit}"
    return f"{value:.0f} B"


def show_size(size: int) -> str:
    """Return a requested size in the binary unit that divides it, else in bytes: `64 KiB`, `16,000 B`."""
    for unit, scale in (("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024)):
        if size >= scale and size % scale == 0:
            return f"{size // scale:,} {unit}"
    return f"{size:,} B"


def show_ratio(value: float) -> str:
    """Return a ratio as `1.04`, `12.3` or `1,240`: two decimals near one, fewer as it grows, two figures below 0.1."""
    if value >= 1000:
        return f"{value:,.0f}"
    if value >= 100:
        return f"{value:.0f}"
    if value >= 10:
        return f"{value:.1f}"
    if value >= 0.1:
        return f"{value:.2f}"
    # Two figures; below a ten-millionth the zeros would fill a column.
    return f"{value:.{1 - math.floor(math.log10(value))}f}" if value >= 1e-7 else f"{value:.1e}"


def _three_figures(value: float) -> str:
    size = abs(value)
    if size >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}"
