"""Comparison: two runs side by side, whatever the versions of their libraries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from builders import row, run, study_run
from tollbar.console import show_comparison, streams
from tollbar.errors import TollbarError
from tollbar.judge import Comparison, compare, judge
from tollbar.results import Run

BLOCKS = 8


def measured(providers: Mapping[str, tuple[str, float]], server: str | None = None, choices: int = 2) -> Run:
    """A run of some choices with these providers: by its spec, its name and what a choice costs."""
    rows = []
    for spec, (name, times) in providers.items():
        at = {"choice": "none", "provider": spec}
        base = [100.0 + 0.01 * block for block in range(BLOCKS)]
        rows.append(replace(row(at, base, twins_ns=base), provider=name, server=server))
        for choice in range(choices):
            cell = row({"choice": f"c{choice}", "provider": spec}, [times * b for b in base], against=f"none {spec}")
            rows.append(replace(cell, provider=name, server=server))
    return run(study_run(rows, (BLOCKS,)))


def compared(one: Run, other: Run) -> Comparison:
    return compare(judge(one), judge(other))


SYSTEM, WHEEL = "libcrypto", "libcrypto:psycopg"


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        # The same versions.
        ({SYSTEM: ("openssl 3.0.19", 2.0)}, {SYSTEM: ("openssl 3.0.19", 2.0)}, ()),
        # An upgrade.
        ({SYSTEM: ("openssl 3.0.19", 2.0)}, {SYSTEM: ("openssl 3.0.20", 2.0)}, ("openssl 3.0.19 → openssl 3.0.20",)),
        # Two of one name, of which one has the version that the other had.
        (
            {SYSTEM: ("openssl 3.0.19", 2.0), WHEEL: ("openssl 3.5.4", 3.0)},
            {SYSTEM: ("openssl 3.0.20", 2.0), WHEEL: ("openssl 3.0.19", 3.0)},
            ("openssl 3.0.19 → openssl 3.0.20", "openssl 3.5.4 → openssl 3.0.19"),
        ),
        (
            {SYSTEM: ("openssl 3.0.19", 2.0), "aws-lc": ("aws-lc 1.71.0", 3.0)},
            {"aws-lc": ("aws-lc 1.72.0", 3.0), SYSTEM: ("openssl 3.0.19", 2.0)},
            ("aws-lc 1.71.0 → aws-lc 1.72.0",),
        ),
    ],
)
def test_an_upgraded_library_is_the_same_row(
    one: Mapping[str, tuple[str, float]], other: Mapping[str, tuple[str, float]], expected: tuple[str, ...]
) -> None:
    """Each row is set beside the one of the same library, and what has another version is said."""
    found = compared(measured(one), measured(other))
    assert expected == found.upgrades
    assert 2 * len(one) == len(found.pairs)
    assert (0, 0) == found.without_partner
    assert pytest.approx(0.0, abs=1e-6) == found.median_difference
    assert 1.0 == found.overlapping


def test_an_upgrade_is_shown_by_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Every library and server with another version is named under the tables, once each."""
    one = measured({SYSTEM: ("openssl 3.0.19", 2.0), "aws-lc": ("aws-lc 1.71.0", 3.0)}, "nginx 1.22.1")
    other = measured({SYSTEM: ("openssl 3.0.20", 2.0), "aws-lc": ("aws-lc 1.71.0", 3.0)}, "nginx 1.24.0")
    streams.stdout.cache_clear()
    show_comparison(compared(one, other))
    streams.stdout.cache_clear()
    said = [line.strip() for line in capsys.readouterr().out.splitlines() if "another version" in line]
    assert ["another version: openssl 3.0.19 → openssl 3.0.20", "another version: nginx 1.22.1 → nginx 1.24.0"] == said


def test_rows_without_a_partner_are_counted() -> None:
    """What only one of the runs has is said, and not passed over under `all overlap`."""
    one = measured({SYSTEM: ("openssl 3.0.19", 2.0), "rustcrypto": ("rustcrypto", 2.0)})
    found = compared(one, measured({SYSTEM: ("openssl 3.0.19", 2.0)}, choices=3))
    assert (2, 1) == found.without_partner
    assert {"study": (2, 1)} == found.alone
    assert 2 == len(found.pairs)


def test_another_version_of_the_server_is_said() -> None:
    """A server is a bed whatever its version, and that it was upgraded is said."""
    library = {SYSTEM: ("openssl 3.0.19", 2.0)}
    found = compared(measured(library, "nginx 1.22.1"), measured(library, "nginx 1.24.0"))
    assert ("nginx 1.22.1 → nginx 1.24.0",) == found.upgrades


def test_nothing_in_common_is_an_error() -> None:
    """Two runs of different things are not compared; nor two machines, unless asked."""
    one = measured({SYSTEM: ("openssl 3.0.19", 2.0)})
    with pytest.raises(TollbarError, match="no toll in common"):
        compared(one, measured({"rustcrypto": ("rustcrypto", 2.0)}))
    elsewhere = judge(replace(one, fingerprint={"cpu": "another"}))
    with pytest.raises(TollbarError, match="not measured on the same machine"):
        compare(judge(one), elsewhere)
    assert ("cpu: None / another",) == compare(judge(one), elsewhere, across_machines=True).fingerprint_differences
