"""Subject of a comparison with a baseline: name, verdict and ratio."""

from __future__ import annotations

from dataclasses import dataclass

from tollbar.analysis import Toll, Verdict
from tollbar.report.numbers import ratio_range, signed_range


@dataclass(frozen=True, slots=True)
class Subject:
    """Choice or coordinate, with its tolls in all cells that have it."""

    name: str
    standing: str | None
    tolls: tuple[Toll, ...]

    @property
    def measured(self) -> tuple[Toll, ...]:
        return tuple(t for t in self.tolls if t.verdict is not Verdict.NOT_MEASURED)

    @property
    def verdict(self) -> Verdict | None:
        """Verdict that all its measured cells share; None if they differ."""
        verdicts = {t.verdict for t in self.measured}
        if not verdicts:
            return Verdict.NOT_MEASURED
        return verdicts.pop() if len(verdicts) == 1 else None

    @property
    def middle(self) -> float:
        ratios = sorted(t.ratio.estimate for t in self.measured if t.ratio is not None)
        return ratios[len(ratios) // 2] if ratios else 0.0

    @property
    def named(self) -> str:
        return f"{self.name} ({self.standing})" if self.standing else self.name

    @property
    def with_range(self) -> str:
        ratios = ratio_range([t.ratio for t in self.measured if t.ratio is not None])
        return f"{self.name} ({', '.join(filter(None, (self.standing, self._apart, ratios)))})"

    @property
    def _apart(self) -> str:
        """Differences of connections, because over loopback their ratios to plaintext are too high (METHOD.md)."""
        connects = [t.difference for t in self.measured if t.row.coordinates.get("op") == "connect" and t.row.server]
        known = [difference for difference in connects if difference is not None]
        return signed_range(known) if known and len(known) == len(self.measured) else ""
