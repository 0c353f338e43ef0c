"""Numbers in words: ratios, intervals, amounts and shares; and the meaning of verdicts made of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING

from tollbar.catalog.families import Value
from tollbar.core import units
from tollbar.core.words import more

if TYPE_CHECKING:
    from tollbar.analysis import Contrast, Measurement, StudyJudgement, Toll, Verdict
    from tollbar.core.intervals import Interval

VERDICT_MARKS: Mapping[str, str] = {"costs": "▲", "saves": "▼", "free": "=", "unclear": "?", "not measured": "–"}
"""Mark of each verdict, so that a column of verdicts reads without colour."""
LIMIT_MARKS: Mapping[str, str] = {"client-bound": "†", "not saturated": "‡", "contended": "§"}
"""Mark of requests a second and response times that something other than the server limited."""
# Mark behind a number or a verdict that is not quiet.
NOISY_MARK = "~"
NOISY = f"{NOISY_MARK} noisy: the core was quiet too rarely"
TOO_FEW = "[too few blocks for an interval]"


def marked(words: str, is_noisy: bool, gap: str = "") -> str:
    """Return the words of a number or a verdict, with a mark behind them if it is noisy."""
    return f"{words}{gap}{NOISY_MARK}" if is_noisy else words


def ends_by(of: Interval, words: Callable[[float], str]) -> str:
    """Return the two ends of an interval in these words: `[2.08, 2.12]`; or that the blocks are too few for one."""
    return f"[{words(of.low)}, {words(of.high)}]" if of.is_bounded else TOO_FEW


def ratio_words(ratio: float) -> str:
    """Return a ratio as `2.10`, `12.3` or `1,240`, and a small one as `0.0053`: three figures at most."""
    return _short(ratio) if ratio >= 1000 else units.show_ratio(ratio)


def times(ratio: float) -> str:
    """Return `× 2.10`, with a no-break space between its two parts."""
    return f"×\u00a0{ratio_words(ratio)}"


def bracket(ratio: Interval) -> str:
    """Return `[2.08, 2.12]`, or that the blocks are too few for an interval."""
    return ends_words(ratio.low, ratio.high)


def interval_title(study: StudyJudgement) -> str:
    """Return `96 % interval`."""
    return f"{100 * study.confidence:.4g} % interval"


def ends_words(low: float, high: float, unit: str | None = None) -> str:
    """Return the two ends of an interval, of ratios without a unit: `[2.08, 2.12]`; or that the blocks are too few."""
    if not isfinite(high) or low <= 0:
        return TOO_FEW
    return "[" + ", ".join(ratio_words(end) if unit is None else amount(end, unit) for end in (low, high)) + "]"


def ratio_range(ratios: Sequence[Interval]) -> str:
    """Return one ratio with its interval, `× 2.10 [2.08, 2.12]`, or the least and the greatest of several."""
    if len(ratios) == 1:
        return f"{times(ratios[0].estimate)} {bracket(ratios[0])}"
    return times_range(min(r.estimate for r in ratios), max(r.estimate for r in ratios))


def times_range(least: float, most: float) -> str:
    """Return `× 1.14 to × 1.18`, or one of them if they are printed equally."""
    low, high = times(least), times(most)
    return low if low == high else f"{low} to {high}"


def apart_words(ratio: float) -> str:
    """Return the distance of a ratio from one: `0.2 %`, or as `× 2.10` outside 0.5 to 1.5."""
    return percent_of(abs(ratio - 1)) if 0.5 < ratio < 1.5 else times(ratio)


def repeats_words(noise: Interval) -> str:
    """Return the difference of a baseline that was measured twice: `0.2 %, at most 1.4 %`."""
    if not noise.is_bounded:
        return apart_words(noise.estimate)
    return f"{apart_words(noise.estimate)}, at most {apart_words(max(1 / noise.low, noise.high))}"


def excess_words(ratio: Interval, threshold: float, noise: float | None = None) -> str:
    """Return an undecided interval as the range that it leaves open: `less by 2 to 4 %: …`.

    `noise` is the largest ratio that noise alone may make.
    """
    low, high = ratio.low, ratio.high
    if not ratio.is_bounded:
        return "too few blocks for an interval"
    within = 1 / (1 + threshold) <= low and high <= 1 + threshold
    if not within and (high < 1 / (1 + threshold) or low > 1 + threshold):
        border = "" if noise is None else f", but A/A pairs may differ by {apart_words(noise)}"
    elif within:
        known = "" if noise is None else f", but A/A pairs may differ by {apart_words(noise)}"
        border = f", within the {percent(threshold)} threshold{known}"
    else:
        border = f"; the interval crosses the {percent(threshold)} threshold"
    if low < 0.5 or high > 2:
        return f"from {times(low)} to {times(high)}{border}"
    less, more = abs(1 - low), abs(high - 1)
    if high <= 1:
        return f"less by {_percents(more, less, threshold)}{border}"
    if low >= 1:
        return f"more by {_percents(less, more, threshold)}{border}"
    return f"from {percent_of(less)} less to {percent_of(more)} more{border}"


def undecided(study: StudyJudgement, of: Toll | Contrast) -> str | None:
    """Return the range that an unclear verdict leaves open: `undecided, about 2 more blocks: less by 2 to 4 %: …`."""
    from tollbar.analysis import Contrast, Verdict, reach
    from tollbar.core.intervals import Interval

    if of.verdict is not Verdict.UNCLEAR:
        return None
    blocks = f", about {more(of.more_blocks, 'block')}" if of.more_blocks else ""
    threshold = study.about.threshold
    if isinstance(of, Contrast):
        # The ends are those of several pairs, each with a noise of its own.
        return f"undecided{blocks}: {excess_words(Interval(of.least, of.low, of.high, study.confidence, 0), threshold)}"
    if of.ratio is None:
        return None
    noise = None if of.noise is None else reach(of.noise)
    return f"undecided{blocks}: {excess_words(of.ratio, threshold, noise)}"


def verdict_meanings(found: Collection[Verdict], threshold: float) -> str:
    """Return the meanings of these verdicts in short: `free: no meaningful difference`."""
    from tollbar.analysis import Verdict

    least = percent(threshold)
    meaning = {
        Verdict.COSTS: f"more expensive by more than {least}",
        Verdict.SAVES: f"cheaper by more than {least}",
        Verdict.FREE: f"no meaningful difference (within {least})",
        Verdict.UNCLEAR: "undecided",
    }
    return " · ".join(f"{verdict}: {means}" for verdict, means in meaning.items() if verdict in found)


def change_words(change: float) -> str:
    """Return a quantity over its earlier value: `+18 %`, `−3.2 %`, or as `× 2.40` outside 0.5 to 2."""
    if not 0.5 < change < 2:
        return times(change)
    if abs(change - 1) < 0.00005:
        return "0 %"
    return f"{'+' if change >= 1 else '−'}{percent_of(abs(change - 1))}"


def change_ends(change: Interval) -> str:
    """Return the two ends of a change's interval: `[+16 %, +20 %]`."""
    return ends_by(change, change_words)


def _percents(low: float, high: float, threshold: float) -> str:
    """Return `2 to 4 %`, with the decimals that distinguish the ends from each other and from the threshold."""
    for digits in (0, 1, 2):
        ends = [f"{100 * end:.{digits}f}" for end in (low, high)]
        shares = [float(end) / 100 for end in ends]
        if ends[0] != ends[1] and all(
            (a < threshold) is (b < threshold) for a, b in zip((low, high), shares, strict=True)
        ):
            break
    return f"{ends[0]} to {ends[1]} %"


def percent_of(share: float) -> str:
    """Return a measured share as `12 %`, `2.3 %` or `0.24 %`: two figures."""
    return f"{100 * share:.{0 if share >= 0.0995 else 1 if share >= 0.00995 else 2}f} %"


def percent(share: float) -> str:
    """Return a share of one as `3 %`, with as many decimals as it needs, at most two."""
    return f"{share * 100:.2f}".rstrip("0").rstrip(".") + " %"


def amount(value: float, unit: str = "ns") -> str:
    """Return a measured value with its unit: nanoseconds per operation, bytes, or the measurement's own."""
    if unit.startswith("ns"):
        return units.show_nanoseconds(value)
    if unit in ("B", "bytes"):
        return units.show_bytes(value)
    if unit == "us":
        return units.show_nanoseconds(value * 1000)
    if unit == "1/s":
        return f"{_short(value)}\u00a0/s"
    return f"{value:,.4g} {unit}"


def signed(value_ns: float) -> str:
    """Return a difference, as `+1.2 µs` or `−340 ns`."""
    return f"{'−' if value_ns < 0 else '+'}{amount(abs(value_ns))}"


def signed_range(values_ns: Sequence[float]) -> str:
    """Return one difference, `+1.2 µs`, or the least and the greatest of several."""
    least, most = signed(min(values_ns)), signed(max(values_ns))
    return least if least == most else f"{least} to {most}"


def figure_words(value: float) -> str:
    """Return three figures of a number of any size: `13,700`, `0.512`, `0.0484`."""
    return _short(value) if value >= 1 else f"{value:.3g}"


def per_second(cost_ns: float, coordinates: Mapping[str, Value]) -> tuple[float, str]:
    """Return the work of one second of CPU at this cost: bytes if the cell has a size, else operations."""
    rate = 1e9 / cost_ns
    size = coordinates.get("bytes")
    if not isinstance(size, int):
        return rate, f"{_short(rate)} op/s"
    speed = rate * size
    for unit, scale in (("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3)):
        if speed >= scale:
            return speed, f"{_short(speed / scale)} {unit}"
    return speed, f"{_short(speed)} B/s"


def often(cost_ns: float) -> str:
    """Return the number of operations of this cost in one second of CPU time."""
    return _short(1e9 / cost_ns)


def measured_words(found: Measurement) -> str:
    """Return a measurement with its unit, and a mark behind it if something other than the server limited it."""
    mark = f"\u00a0{LIMIT_MARKS[found.limit]}" if found.limit else ""
    return amount(found.value, found.unit) + mark


def times_exactly(ratio: float) -> str:
    """Return a ratio near one to three decimals: two would round a noise floor away."""
    return f"×\u00a0{ratio:.3f}" if 0.5 < ratio < 2 else times(ratio)


def bracket_exactly(ratio: Interval) -> str:
    """Return `[0.998, 1.004]`, or that the blocks are too few for an interval."""
    return ends_by(ratio, "{:.3f}".format)


def _short(value: float) -> str:
    """Return three figures, grouped: further digits are noise."""
    if value >= 1000:
        return f"{round(value, 3 - len(str(int(value)))):,.0f}"
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
