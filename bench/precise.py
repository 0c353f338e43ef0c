"""Precise: the precision of ratios for the measured seconds, compared with visiting each cell once.

The old way, from the same build: one chunk of 100 ms in each trial, and the ratio of all samples. About two minutes.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import hypot, sqrt

from bench.figures import Figure
from bench.studies import HANDSHAKES, SERVED, Document, Unmeasured, half_width, measured, toll

HASHES = """
question  = "How well is the ratio of two hashes known?"
family    = "digest"
choices   = ["sha-1", "sha-256"]
providers = ["libcrypto"]
baseline  = "sha-1"

[vary]
bytes = ["4 KiB"]

[measure]
{measure}
"""
SHORT = 'chunk = "5 ms"\nrounds = 16\nblocks = 12'
MANY = 'chunk = "5 ms"\nrounds = 20\nblocks = 24'
OLD = 'chunk = "100 ms"\nrounds = 1\nblocks = {blocks}'


def figures() -> Iterator[Figure]:
    """Yield a hash over another, a certificate over another, TLS over plaintext; each new and old."""
    yield from _hashes()
    yield from _handshakes()


def _hashes() -> Iterator[Figure]:
    what = "precise: SHA-256 over SHA-1 at 4 KiB, half the 95 % interval"
    try:
        new, old = (measured(HASHES.format(measure=how)) for how in (SHORT, OLD.format(blocks=10)))
        here, before = _of_toll(new, "sha-256"), _typical(old, "sha-256")
    except Unmeasured as error:
        yield Figure(what, "at most 0.50 %", str(error), False)
        return
    yield Figure(what, "at most 0.50 % within 1 s measured per cell", _said(here, new), _met(here, new, 0.005, 1.0))
    yield _beside(what, here, new, before, old)


def _handshakes() -> Iterator[Figure]:
    of_rsa = "precise: nginx, RSA-2048 over ECDSA P-256, half the 95 % interval"
    of_tls = "precise: nginx, TLS 1.3 over plaintext, half the 95 % interval"
    try:
        new, old = (
            measured(HANDSHAKES.format(servers='["nginx"]', served=SERVED, measure=how))
            for how in (MANY, OLD.format(blocks=40))
        )
        tls = _of_toll(new, "tls-1.3", certificate="ecdsa-p256")
        tls_before = _typical(old, "tls-1.3", certificate="ecdsa-p256")
        (rsa,) = (half_width(c["low"], c["high"]) for c in new["contrasts"] if c["setting"] == "certificate")
        # Both were compared with plaintext only.
        rsa_before = hypot(tls_before, _typical(old, "tls-1.3", certificate="rsa-2048"))
    except (Unmeasured, ValueError) as error:
        yield Figure(of_tls, "at most 2 %", str(error), False)
        return
    for what, here, before, goal in ((of_rsa, rsa, rsa_before, 0.01), (of_tls, tls, tls_before, 0.02)):
        words = f"at most {goal:.0%} within 5 s measured per cell"
        yield Figure(what, words, _said(here, new), _met(here, new, goal, 5.0))
        yield _beside(what, here, new, before, old)


def _of_toll(study: Document, choice: str, **setting: object) -> float:
    found = toll(study, choice, **setting)
    return half_width(found["low"], found["high"])


def _typical(study: Document, choice: str, **setting: object) -> float:
    """Return the half width of the old way's interval, of the ratio of all samples."""
    return half_width(*(toll(study, choice, **setting)["all_interval"] or (None, None)))


def _said(half: float, study: Document) -> str:
    return f"± {half:.2%} within {study['measured_s']:.2f} s"


def _met(half: float, study: Document, goal: float, within_s: float) -> bool:
    return half <= goal and study["measured_s"] <= within_s


def _beside(what: str, half: float, new: Document, before: float, old: Document) -> Figure:
    """Return the figure of both for one measured second: intervals shrink as the root of the time."""
    here, there = half * sqrt(new["measured_s"]), before * sqrt(old["measured_s"])
    return Figure(
        f"{what}, for one second measured per cell",
        "(for comparison)",
        f"± {here:.2%}; one visit of 100 ms a block ± {there:.2%}",
        None,
    )
