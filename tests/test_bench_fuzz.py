"""What the fuzzer says of an input is held against its CPU time."""

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
    # The kernel ends the second after a second of CPU time, however long a busy machine takes to give it that.
    [("sleep 1.2", False), ("ulimit -t 1; while :; do :; done", True)],
    ids=["waits for the core", "takes it"],
)
def test_a_hang_is_of_cpu_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, hangs: bool) -> None:
    monkeypatch.setattr(fuzz, "HANG_S", 0.3)
    assert hangs == fuzz.is_hang(program(tmp_path, text), "requests", tmp_path / "input"), "CPU time decides"


def test_only_what_is_slow_is_tried_again() -> None:
    found = Path("requests.found-")
    slow = [
        name
        for name in ("slow-unit-1", "timeout-1", "crash-1", "oom-1")
        if fuzz.is_slow_alone(Path(found.name + name), found)
    ]
    assert ["slow-unit-1", "timeout-1"] == slow, "a crash is a crash at once"


def test_what_nothing_is_fed_to_is_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "src" / "one.rs"
    source.parent.mkdir()
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
    text = (fuzz.ENGINE / "src" / name).read_text()
    assert name in fuzz.PARSERS
    assert all(len(fuzz.lines_of(function, text)) > 1 for function in fuzz.UNFED[name])
