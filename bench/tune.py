"""Tune: five times the same question; the proposal is measured again, by fresh processes. A minute for each."""

from __future__ import annotations

from collections.abc import Iterator

from bench.figures import Figure
from tollbar.decide import tune

TIMES = 5
AT_ONCE = 8


def figures() -> Iterator[Figure]:
    """Yield the question of the goal: 250 ms."""
    yield _figure("argon2id", 0.25)


def others() -> Iterator[Figure]:
    """Yield choices whose smallest parameters take longer than that on few cores, and whose steps are small enough."""
    for choice in ("scrypt", "pbkdf2-sha-256", "pbkdf2-sha-512"):
        yield _figure(choice, 1.0)


def _figure(choice: str, within_s: float) -> Figure:
    asked = tune.asked([choice], [], within_s=within_s, at_once=AT_ONCE)
    found = [one for _ in range(TIMES) for one in tune.tune(asked)]
    said, near = [], 0
    for one in found:
        if isinstance(one, tune.Missed):
            said.append(one.reason or "not found")
            continue
        again_s = tune.measure(asked, one.choice, one.provider, one.measured.parameters).elapsed.median_s
        # The search ends at a proposal near the time, so only later measurements can be off.
        near += abs(again_s / within_s - 1) <= tune.NEAR
        said.append(f"{one.measured.elapsed.median_s / within_s:.3f} (again {again_s / within_s:.3f})")
    return Figure(
        f"tune: {choice}, of {within_s * 1e3:.0f} ms at {AT_ONCE} at once, measured again, within {tune.NEAR:.0%}",
        f"{TIMES} of {TIMES}",
        f"{near} of {TIMES}: {', '.join(said)}",
        near == TIMES,
    )
