"""The fuzzer's report is checked against CPU time; a missing report is no success."""

from pathlib import Path

import pytest
from bench import fuzz


def program(folder: Path, text: str) -> Path:
    path = folder / "program"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return path


@pytest.mark.parametrize(
    ("text", "hangs"),
    # The kernel ends the second command after a second of CPU time, however long that takes on a busy machine.
    [("sleep 1.2", False), ("ulimit -t 1; while :; do :; done", True)],
    ids=["waits for the core", "takes it"],
)
def test_a_hang_is_of_cpu_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, hangs: bool) -> None:
    monkeypatch.setattr(fuzz, "HANG_S", 0.3)
    assert hangs == fuzz.is_hang(program(tmp_path, text), "requests", tmp_path / "input"), "CPU time decides"


@pytest.mark.parametrize("text", ["exec sleep 60", "exit 77"], ids=["waits for what never comes", "crashes"])
def test_what_never_ends_or_ends_badly_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """The CPU time does not matter: a lock that never opens uses none."""
    monkeypatch.setattr(fuzz, "GIVEN_UP_S", 0.5)
    assert fuzz.is_hang(program(tmp_path, text), "requests", tmp_path / "input")


SAID = "echo stat::number_of_executed_units: {} >&2"
# Commands that write an input under a prefix of libFuzzer's, as a target does while it is fuzzed.
NAMES = 'for word; do case $word in -artifact_prefix=*) : > "${{word#*=}}{}1";; esac; done'


@pytest.mark.parametrize(
    ("text", "inputs", "fault"),
    [
        (SAID.format(5), 5, None),
        (SAID.format(0), 0, "status 0 after 0 inputs"),
        ("exit 0", 0, "status 0 after 0 inputs"),
        ("kill -9 $$", 0, "status -9 after 0 inputs"),
        (f"{SAID.format(5)}; exit 1", 5, "status 1 after 5 inputs"),
        (f"{SAID.format(5)}; {NAMES.format('slow-unit-')}", 5, None),
        (f"{SAID.format(5)}; {NAMES.format('slow-unit-')}; test $# = 1 || exit 1", 5, "status 1 after 5 inputs"),
        (f"{SAID.format(5)}; {NAMES.format('timeout-')}; test $# = 1 || exit 70", 5, None),
        (f"{SAID.format(5)}; {NAMES.format('crash-')}; exit 77", 5, "a crash"),
    ],
    ids=["well", "nothing", "silent", "out of memory", "fails", "slow", "slow, and fails", "starved", "crashes"],
)
def test_a_target_that_was_not_fuzzed_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, inputs: int, fault: str | None
) -> None:
    corpora = tmp_path / "corpora"
    corpora.mkdir()
    (corpora / "requests").write_text("AAAA\n")
    monkeypatch.setattr(fuzz, "CORPORA", corpora)
    found = fuzz.fuzz("requests", program(tmp_path, text), tmp_path, ["-runs=5"], keep=False)
    assert inputs == found.inputs
    assert (found.fault or "").startswith(fault or "")
    assert (fault is None) == (found.fault is None)


def test_lines_without_llvm_are_missed(monkeypatch: pytest.MonkeyPatch) -> None:

    def covered() -> None:
        raise SystemExit("error: no llvm-profdata and llvm-cov")

    monkeypatch.setattr(fuzz, "covered", covered)
    monkeypatch.setattr(fuzz, "run", lambda *_: [fuzz.Fuzzed("requests", 100, None)])
    *_, lines = fuzz.figures(100)
    assert (False, "error: no llvm-profdata and llvm-cov") == (lines.met, lines.here)


def test_only_what_is_slow_is_tried_again() -> None:
    found = Path("requests.found-")
    slow = [
        name
        for name in ("slow-unit-1", "timeout-1", "crash-1", "oom-1")
        if fuzz.is_slow_alone(Path(found.name + name), found)
    ]
    assert ["slow-unit-1", "timeout-1"] == slow, "a crash is a crash at once"


def test_what_nothing_is_fed_to_is_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "one.rs"
    source.write_text("fn read() {\n    one();\n}\n\nimpl Fed {\n    pub fn say(\n    ) {\n        two();\n    }\n}\n")
    monkeypatch.setattr(fuzz, "ENGINE", tmp_path)
    said = f"SF:{source}\nDA:1,5\nDA:2,0\nDA:6,0\nDA:8,0\nend_of_record\nSF:other\nDA:3,0\nend_of_record\n"
    assert (1, 4) == fuzz.counted("one.rs", said), "all lines of the file"
    monkeypatch.setattr(fuzz, "UNFED", {"one.rs": ("say",)})
    assert (1, 2) == fuzz.counted("one.rs", said), "without those of the function"
    monkeypatch.setattr(fuzz, "UNFED", {"one.rs": ("gone",)})
    with pytest.raises(SystemExit, match="no function `gone`"):
        fuzz.counted("one.rs", said)


@pytest.mark.parametrize("name", fuzz.UNFED)
def test_each_function_that_nothing_is_fed_to_is_there(name: str) -> None:
    text = (fuzz.ENGINE / name).read_text()
    assert name in fuzz.PARSERS
    assert all(len(fuzz.lines_of(function, text)) > 1 for function in fuzz.UNFED[name])
