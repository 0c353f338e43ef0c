"""Size: three mixes, predicted by questions and run under a load. About four minutes."""

from __future__ import annotations

import json
import shlex
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.figures import TOLLBAR, Figure, timed

NEAR = 0.05
TERM = """
[term.{name}]
rate   = "{rate} /s"
family = "{family}"
choice = "{choice}"
op     = "{op}"
server    = "embedded"
{more}
"""
LOGINS = TERM.format(name="logins", rate=20, family="web-auth", choice="form", op="sign-on", more="")
REQUESTS = TERM.format(name="requests", rate=2000, family="web-auth", choice="session-cookie", op="request", more="")
HANDSHAKES = TERM.format(name="handshakes", rate=500, family="tls", choice="tls-1.3", op="connect", more="{more}")
MIXTURE = 'resumed = "80 %"\noff = { choice = "plaintext" }'
MIXES = {
    "logins and requests": LOGINS + REQUESTS,
    "handshakes, 80 % resumed": HANDSHAKES.format(more='resumed = "80 %"'),
    "requests and handshakes": REQUESTS + HANDSHAKES.format(more=MIXTURE),
}


def figures() -> Iterator[Figure]:
    """Yield for each mix measured CPU over predicted CPU, and whether the intervals meet."""
    for name, text in MIXES.items():
        yield _figure(name, text)


def _figure(name: str, text: str) -> Figure:
    what, goal = f"size: {name}, CPU time measured over predicted", f"within {NEAR:.0%}, intervals meet"
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        (here / "mix.toml").write_text(text, "utf-8")
        asked = json.loads(timed(TOLLBAR, "size", "mix.toml", "--json", cwd=here).out)["ask"]
        for question in asked:
            timed(TOLLBAR, *shlex.split(question)[1:], "--for", "10s", "--json", cwd=here)
        runs = [word for run in sorted((here / "runs").iterdir()) for word in ("--run", str(run))]
        done = timed(TOLLBAR, "size", "mix.toml", *runs, "--check", "--for", "40s", "--json", cwd=here)
        check = json.loads(done.out)["check"] if done.status == 0 else None
    if not check or not check["total"]:
        return Figure(what, goal, "not measured", False)
    return of_check(what, goal, check["total"])


def of_check(what: str, goal: str, total: Mapping[str, Any]) -> Figure:
    """Return the figure of a whole check, unmeasured if its sides are of other moments."""
    predicted, measured, longer = (total[side] for side in ("predicted", "measured", "in_phases"))
    ratio, in_phases = (one["estimate"] / predicted["estimate"] for one in (measured, longer))
    ends = predicted["interval"], measured["interval"]
    meets = all(ends) and max(low for low, _ in ends) <= min(high for _, high in ends)
    moments = ["noisy" if one["noisy"] else "quiet" for one in (predicted, measured)]
    if len({*moments}) > 1:
        return Figure(what, goal, f"{moments[1]} over {moments[0]}: {ratio:.3f} says nothing", False)
    whether = "meet" if meets else "do not meet"
    said = f"{ratio:.3f} {moments[0]}, intervals {whether}; in throughput phases {in_phases:.3f}"
    return Figure(what, goal, said, abs(ratio - 1) <= NEAR and meets)
