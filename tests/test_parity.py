"""What one operation of each choice does: docs/parity.md, and the pair that once did unequal work, counted again."""

from __future__ import annotations

import shutil

import pytest
from bench import parity

from conftest import lacking
from tollbar import plan, study


@pytest.mark.parametrize("name", parity.PARTS)
def test_the_document_has_every_choice_and_a_reason_for_what_only_some_do(name: str) -> None:
    """Each choice of the part has a row; what has none is not offered by the provider that was counted."""
    section = parity.DOCUMENT.read_text("utf-8").split(f"## {name}\n")[1].split("\n## ")[0]
    assert "no reason is known" not in section
    (one,) = plan.make([study.read("parity", parity.PARTS[name], where="bench")], seed=1).studies
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    named = {line.split("`")[1] for line in rows}
    asked = {cell.choice.name for cell in one.cells}
    assert named <= asked
    # Legacy algorithms and those of a newer library may not be offered here.
    assert len(named) >= len(asked) / 2


def test_what_is_looked_up_is_looked_up_alike() -> None:
    """One received, one sent, and two locks: whatever stands for the user, and whichever table it is in."""
    if shutil.which("strace") is None:
        lacking("strace is not installed")
    rows = {row.cell.choice.name: row for row in parity.rows(parity.PARTS["web-auth"])}
    for choice in ("session-cookie", "opaque-token", "basic", "digest", "hmac"):
        # How often it waits depends on how the client and it take turns.
        counted = {name: count for name, count in rows[choice].system.items() if name != "epoll_pwait"}
        assert {"fcntl": 2.0, "recvfrom": 1.0, "sendto": 1.0} == counted, choice
