"""Answers of runners that are too long, too many or no numbers: a reason within limits of time and memory."""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable, Mapping
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from patience import PATIENCE_S
from tollbar.catalog import libraries
from tollbar.catalog.libraries import Broken
from tollbar.core.records import MOST_OF_REASON, Outcome
from tollbar.core.runner import Session, Stopped, ask, process
from tollbar.results.stored import MOST_OF_TEXT

TASK = {"mode": "measure", "provider": {"kind": "fake"}}
READY = {"ready": {"provider": "fake 1.0"}}
MOST_CPU_S, MOST_MORE = 5, 300 << 20
PIECE = 1 << 16

# Prints the first line at once, and for the next line of input the second, or pieces without end.
SCRIPT = """
import json, os, sys
print(sys.argv[1], flush=True)
sys.stdin.readline()
sys.stdin.readline()
if sys.argv[2] == "endless":
    while True:
        os.write(1, b"x" * 65536)
part, item, times, separator = json.loads(sys.argv[2])
print(part.replace("TIMES", separator.join([item] * times), 1), flush=True)
sys.stdin.read()
"""


def command(first: object, then: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", SCRIPT, json.dumps(first), then]


def test_a_line_without_end_ends_while_the_lab_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "MOST_BYTES", 1 << 20)
    with Session(command(READY, "endless"), TASK) as runner:
        runner.ready(PATIENCE_S)
        with pytest.raises(Stopped, match="the answer is larger than 1 MiB"):
            runner.advance(0.0, 1, 3.0, (0.05, lambda: None))
        assert (1 << 20) + PIECE >= len(runner._process._heard)


def test_output_without_end_after_the_last_line_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "MOST_BYTES", 1 << 20)
    kept = []
    kill = process.Process.kill

    def killed(self: process.Process) -> None:
        kept.append(len(self._heard))
        kill(self)

    monkeypatch.setattr(process.Process, "kill", killed)
    record = ask(command({"outcome": "ok"}, "endless"), TASK, limit_s=3.0)
    assert Outcome.FAILED == record.outcome
    assert "the answer is larger than 1 MiB" == record.reason
    assert [True] == [(1 << 20) + PIECE >= size for size in kept]


def document(text: str, item: str = "", times: int = 0, separator: str = ",") -> str:
    """Return the second argument of the script: a text with an item many times."""
    return json.dumps([text, item, times, separator])


CHUNK = '{"operations":1,"cpu_ns":1,"wall_ns":1,"observed":{"%s":[TIMES]}}'
CHUNKS: Mapping[str, tuple[str, str]] = {
    "values": (document('{"operations":[TIMES]}', "[]", 4_000_000), "no JSON object"),
    "keys": (document("{TIMES}", '"a":{}', 2_000_000), "no JSON object"),
    "slices that are none": (document(CHUNK % "slices", "{}", 400_000), "observed.slices.0"),
    "slices of wrong numbers": (document(CHUNK % "slices", '{"cpu_ns":-1}', 200_000), "observed.slices.0"),
    "threads that are none": (document(CHUNK % "threads", "0", 900_000), "observed.threads.0"),
    "a deep list": (document("TIMES", "[", 900_000, ""), "no JSON object"),
    "a long number": (document('{"operations":' + "9" * 100_000 + "}"), "no JSON object"),
}
RECORDS: Mapping[str, tuple[str, str]] = {
    "offers that are none": (document('{"outcome":"ok","offers":[TIMES]}', "0", 900_000), "offers.0"),
    "offers without a family": (document('{"outcome":"ok","offers":[TIMES]}', "{}", 400_000), "offers.0.family"),
    "words that are none": (
        document('{"outcome":"ok","proof":{"accepted":[TIMES]}}', "0", 900_000),
        "proof.accepted.0",
    ),
    "many words": (
        document('{"outcome":"ok","proof":{"refused":[TIMES]}}', '"another"', 10_000),
        "proof.refused: Value error, has",
    ),
    "a long receipt": (document('{"outcome":"ok","receipt":{"a":"TIMES"}}', "xxxx", 20_000), "the limit is 65,536"),
    "a long reason": (document('{"outcome":"failed","reason":"TIMES"}', "x" * 1000, 10_000), "xxxx"),
}


def _refused(words: str, said: Callable[[], str | None]) -> None:
    """Exit with 1 unless the reason has these words, within limits, in a process of its own."""
    (pages, *_) = Path("/proc/self/statm").read_text().split()
    most = int(pages) * resource.getpagesize() + MOST_MORE
    # The runner has the same limit, of which it needs a fraction.
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
    reason = said() or ""
    used = resource.getrusage(resource.RUSAGE_SELF)
    is_within = used.ru_utime + used.ru_stime <= MOST_CPU_S and len(reason) <= MOST_OF_REASON
    raise SystemExit(not (words in reason and is_within))


def within_limits(words: str, said: Callable[[], str | None]) -> int | None:
    one = get_context("fork").Process(target=_refused, args=(words, said))
    one.start()
    one.join()
    return one.exitcode


@pytest.mark.parametrize("what", CHUNKS)
def test_whatever_a_chunk_holds_it_is_refused_within_limits(what: str) -> None:
    then, words = CHUNKS[what]

    def reason() -> str | None:
        with Session(command(READY, then), TASK) as runner:
            runner.ready(PATIENCE_S)
            try:
                runner.advance(0.0, 1, PATIENCE_S)
            except Stopped as stopped:
                return stopped.record.reason
        return None

    assert 0 == within_limits(words, reason)


@pytest.mark.parametrize("what", RECORDS)
def test_whatever_a_record_holds_it_is_a_short_reason_within_limits(what: str) -> None:
    then, words = RECORDS[what]

    def reason() -> str | None:
        with Session(command(READY, then), TASK) as runner:
            runner.ready(PATIENCE_S)
            runner._process.say({})
            return runner.finish().reason

    assert 0 == within_limits(words, reason)


def test_a_reason_of_a_runner_leaves_its_run_readable() -> None:
    """Other texts of the lab precede and follow it."""
    assert 2 * MOST_OF_REASON < MOST_OF_TEXT


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("operation_ns", value) for value in (float("nan"), float("inf"), -1, 1e-320, 1e300, "x")),
        *(("memory_bytes", value) for value in (10**30, -(10**17), 0.5, "x")),
    ],
)
def test_what_is_no_number_of_a_warm_up_is_refused(key: str, value: Any) -> None:
    ready = {"ready": {"provider": "fake 1.0", key: value}}
    with (
        Session(command(ready, "endless"), TASK) as runner,
        pytest.raises(Stopped, match=f"the runner's answer is not one of the contract: {key}"),
    ):
        runner.ready(PATIENCE_S)


LISTED: Mapping[str, tuple[dict[str, Any], str]] = {
    "an offer without a choice": ({"offers": [{"family": "digest"}]}, "offers.0.choice"),
    "an offer that is a text": ({"offers": ["digest"]}, "offers.0"),
    "a name that is a list": ({"receipt": {"provider": "x", "name": ["x"]}}, "must be a text of at most 200 letters"),
    "a deep receipt": ({"receipt": {"provider": "x", "more": json.loads("[" * 100 + "]" * 100)}}, "nested too deeply"),
    "a long name": ({"receipt": {"name": "x" * 201}}, "must be a text of at most 200 letters"),
}


@pytest.mark.parametrize("what", LISTED)
def test_a_runner_that_lists_nonsense_is_no_provider(what: str, tmp_path: Path) -> None:
    said, words = LISTED[what]
    runner = tmp_path / "runner"
    line = json.dumps({"outcome": "ok", "receipt": {"provider": "x"}} | said)
    runner.write_text(f"#!/bin/sh\ncat <<'END'\n{line}\nEND\n")
    runner.chmod(0o755)
    libraries.open_provider.cache_clear()
    found = libraries.open_provider(f"runner:{runner}")
    assert isinstance(found, Broken)
    assert words in found.reason
