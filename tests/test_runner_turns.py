"""Lines out of turn: a session gives one reason, whether the line comes before or after the lab asks."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from patience import PATIENCE_S
from tollbar.core.records import Outcome, Record
from tollbar.core.runner import Session, Stopped

TASK = {"mode": "measure", "provider": {"kind": "fake"}}

READY = {"ready": {"provider": "fake 1.0"}}
CHUNK = {"operations": 20, "cpu_ns": 1, "wall_ns": 1}
SORRY = {"outcome": "failed", "reason": "the third answer was wrong"}

# For each line of its input, and for its end, it writes the next text at once, so that the lab finds all lines of a
# text together.
SCRIPT = """
import json, os, sys
for text in json.loads(sys.argv[1]):
    sys.stdin.buffer.readline()
    os.write(1, text.encode())
"""


@contextmanager
def started(*answers: str) -> Iterator[Session]:
    """Yield a session with a runner that writes these texts, the first after its task."""
    with Session([sys.executable, "-I", "-S", "-c", SCRIPT, json.dumps(answers)], TASK) as runner:
        runner.ready(PATIENCE_S)
        yield runner


def line(said: Mapping[str, Any]) -> str:
    """Return one line of the contract."""
    return json.dumps(said) + "\n"


def advanced(runner: Session) -> Record | None:
    """Return the reason why a chunk is refused, or None if it is accepted."""
    try:
        runner.advance(0.0, 1, PATIENCE_S)
    except Stopped as stopped:
        return stopped.record
    return None


def finished(runner: Session) -> Record:
    return runner.finish()


OUT_OF_TURN = (Outcome.FAILED, "the runner answered out of turn")
EARLY_END = (Outcome.FAILED, "the runner ended before its input did")
ASKED = {"chunk": advanced, "last": finished}
# The expected line, the line that comes instead, and the trial's outcome.
LINES = {
    "ready, for a chunk": ("chunk", line(READY), OUT_OF_TURN),
    "ready, for the last line": ("last", line(READY), OUT_OF_TURN),
    "a chunk, for the last line": ("last", line(CHUNK), OUT_OF_TURN),
    "an end, for a chunk": ("chunk", line({"outcome": "ok"}), EARLY_END),
    "a failure, for a chunk": ("chunk", line(SORRY), (Outcome.FAILED, SORRY["reason"])),
    "a failure, for the last line": ("last", line(SORRY), (Outcome.FAILED, SORRY["reason"])),
    "rubbish, for a chunk": ("chunk", "hello\n", (Outcome.FAILED, "no JSON object: 'hello'")),
    "rubbish, for the last line": ("last", "hello\n", (Outcome.FAILED, "no JSON object: 'hello'")),
    "nothing known, for a chunk": ("chunk", "{}\n", (Outcome.FAILED, "operations: Field required")),
    "nothing known, for the last line": ("last", "{}\n", (Outcome.FAILED, "outcome: Field required")),
    "half a line, for a chunk": ("chunk", '{"operations', (Outcome.FAILED, "the runner ended with status 0")),
}


@pytest.mark.parametrize("is_early", [True, False], ids=["early", "late"])
@pytest.mark.parametrize("case", LINES)
def test_a_line_out_of_turn_has_one_reason_whenever_it_arrives(case: str, is_early: bool) -> None:
    due, said, (outcome, words) = LINES[case]
    answers = [line(READY) + said] if is_early else [line(READY), said]
    with started(*answers) as runner:
        record = ASKED[due](runner)
    assert record is not None
    assert outcome == record.outcome
    assert words in (record.reason or "")


# Arrival times of the second answer to the first of two requests.
TWICE = {
    "before the second request": (line(CHUNK) * 2,),
    # It claims to have taken an hour.
    "after the second request, and it was begun before": (line(CHUNK), line({**CHUNK, "wall_ns": 3_600 * 10**9})),
    # It could be the answer to the second request, which leaves one too many in the end.
    "after the second request": (line(CHUNK), line(CHUNK), line(CHUNK)),
}


@pytest.mark.parametrize("when", TWICE)
def test_a_chunk_that_is_answered_twice_is_out_of_turn_whenever_the_second_arrives(when: str) -> None:
    with started(line(READY), *TWICE[when]) as runner:
        assert advanced(runner) is None
        record = advanced(runner) or runner.finish()
    assert record is not None
    assert Outcome.FAILED == record.outcome
    assert "the runner answered out of turn" in (record.reason or "")


def test_what_a_runner_says_before_its_input_ends_is_not_its_last_line() -> None:
    """A runner that ends by itself did not get the end of its input."""
    with started(line(READY) + line({"outcome": "ok"})) as runner:
        record = runner.finish()
    assert EARLY_END == (record.outcome, record.reason)
