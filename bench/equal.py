"""Equal is equal: forty cells without any difference in cost, twenty of nginx and twenty of a hash."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from bench.figures import Figure
from bench.studies import SERVED, Unmeasured, halves, measured

CELLS = 20
MEDIAN_GOAL = 0.003
# Two of forty 95 % intervals miss on average, and more than three one time in seven.
MISSED_GOAL = 3

# A message one byte longer has as many blocks of SHA-256, and an answer one byte longer as many records and packets.
SIZES = ", ".join(f'"{4096 + number} B"' for number in range(CELLS + 1))

HASHES = f"""
question  = "Does the same hash cost the same?"
family    = "digest"
choices   = ["sha-256"]
providers = ["libcrypto"]
baseline  = {{ choice = "sha-256", bytes = "4096 B" }}

[vary]
bytes = [{SIZES}]
"""
HANDSHAKES = f"""
question  = "Does the same handshake cost the same?"
family    = "tls"
servers      = ["nginx"]
providers = ["libcrypto"]
choices   = ["tls-1.3"]
baseline  = {{ choice = "tls-1.3", bytes = "4096 B" }}

[vary]
op           = ["connect"]
certificate  = ["ecdsa-p256"]
key-exchange = ["x25519"]
bytes        = [{SIZES}]
{SERVED}
"""


def figures(studies: Sequence[str] = (HASHES, HANDSHAKES)) -> Iterator[Figure]:
    """Yield the distance of the ratios from ×1, and the number of intervals without it."""
    off: list[float] = []
    each: list[float] = []
    missed: list[str] = []
    called = 0
    for text in studies:
        try:
            study = measured(text)
        except Unmeasured as error:
            yield Figure(f"equal: {2 * CELLS} pairs of equals", "(not measured)", str(error), False)
            return
        tolls = [toll for toll in study["tolls"] if not toll["aa"]]
        bounded = [toll for toll in tolls if toll["ratio"] is not None and toll["high"] is not None]
        off += [abs(toll["ratio"] - 1) for toll in bounded]
        each += halves(bounded)
        missed += [
            f"{toll['low']:.4f} to {toll['high']:.4f}" for toll in bounded if not toll["low"] <= 1 <= toll["high"]
        ]
        called += sum(toll["verdict"] in ("costs", "saves") for toll in tolls)
        free = sum(toll["verdict"] == "free" for toll in tolls)
        noisy = sum(toll["noisy"] is True for toll in tolls)
        alone = "unknown" if study["quiet_share"] is None else f"{study['quiet_share']:.0%}"
        yield Figure(
            f"equal: {study['question']}",
            "(for comparison)",
            f"{free} of {len(tolls)} called free, noise floor ×{study['noise_floor'] or float('inf'):.4f}; "
            f"the core quiet {alone}, {noisy} noisy",
            None,
        )
    if not off:
        yield Figure(f"equal: {2 * CELLS} pairs of equals", "(not measured)", "no toll has an interval", False)
        return
    is_whole = len(off) == 2 * CELLS
    yield Figure(
        f"equal: {len(off)} pairs of equals, median of |ratio - 1|",
        f"at most {MEDIAN_GOAL:.1%}",
        f"{median(off):.2%} (half of the interval ± {median(each):.2%})",
        median(off) <= MEDIAN_GOAL and is_whole,
    )
    yield Figure(
        f"equal: of {len(off)} intervals, that do not hold ×1",
        f"at most {MISSED_GOAL}",
        f"{len(missed)}{': ' + '; '.join(missed) if missed else ''}",
        len(missed) <= MISSED_GOAL and is_whole,
    )
    yield Figure(f"equal: of {len(off)}, called costs or saves", "(for comparison)", str(called), None)
