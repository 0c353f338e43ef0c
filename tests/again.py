"""Second attempt of the few tests that failed in a whole run, alone, with a report.

Tests depend on clocks, servers and processes of a real machine. Next to a neighbour's burst one of some 8,000 fails now
and then. A test that fails twice fails the run, and more than `MOST` failures have another cause.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

MOST = 3
# pytest-xdist adds a test's group to its name.
_GROUP = re.compile(r"@[^\]@]*$")
FAILED = Path(__file__).parent.parent / ".pytest_cache" / "v" / "cache" / "lastfailed"


def attempt(failed: Path = FAILED) -> int:
    """Return the exit status of the second attempt, or 1 if there is none.

    `failed`: pytest's cache of names.
    """
    try:
        names = sorted({_GROUP.sub("", name) for name in json.loads(failed.read_text("utf-8"))})
    except FileNotFoundError:
        names = []
    if not 0 < len(names) <= MOST:
        print(f"{len(names)} tests failed: no second attempt (for 1 to {MOST})", file=sys.stderr)
        return 1
    print(f"SECOND ATTEMPT, alone: {', '.join(names)}", file=sys.stderr)
    status = int(pytest.main(["-p", "no:xdist", *names]))
    said = "failed again" if status else "passed the second time: unstable"
    print(f"SECOND ATTEMPT {said}: {', '.join(names)}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(attempt())
