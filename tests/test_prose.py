"""Plain English in figures: the counted parts of a document, and ceilings that only fall."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from bench import prose, subjects
from bench.prose_of_code import Source

TEXT = """# What a title says

Of two hosts, one is idle; see what `what` prints beside it.

```
what a sample says
```

| what | a table |
> what a quote says
"""


def test_code_tables_quotes_and_titles_are_left_out() -> None:
    one = prose.Document("one.md", TEXT)
    assert {"what": 1, "private": 1, "of": 1} == {rule: one.hits(rule) for rule in prose.COUNTED}


def test_documents_and_code_are_at_their_ceilings() -> None:
    assert [] == prose.faults()


@pytest.mark.parametrize(("ceiling", "words"), [(0, "reword"), (1, None), (2, "lower it: ")])
def test_a_count_is_its_ceiling(
    ceiling: int, words: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reword additional hits; for fewer, lower the ceiling."""
    (tmp_path / "prose.toml").write_text(f'["one.md"]\nwhat = {ceiling}\nprivate = 1\nof = 1\n')
    monkeypatch.setattr(prose, "CEILINGS", tmp_path / "prose.toml")
    monkeypatch.setattr(prose, "documents", lambda: [prose.Document("one.md", TEXT)])
    monkeypatch.setattr(prose, "code", list)
    found = prose.faults()
    assert (0 if words is None else 1) == len(found)
    assert words is None or words in found[0]


@pytest.mark.parametrize(("name", "lines"), [("README.md", 130), ("METHOD.md", 280), ("CHANGELOG.md", 30)])
def test_a_document_is_short(name: str, lines: int) -> None:
    assert len((prose.ROOT / name).read_text("utf-8").splitlines()) <= lines


CODE = '''"""What a module is."""

NAME = "the part that is none"
"""Name that stands here."""


def act() -> str:
    """Of all, the first."""
    # Work beside others.
    raise ValueError(f"what {NAME} lacks here")
'''
RUST = """/// What is timed, beside the rest.
fn act() -> Result<(), String> {
    Err(format!("no such name: the part lacks {}", "key")) // so long
}
"""


TOML = """# What is kept beside it.
question = "What does it cost?"
title = "what it lacks: #1" # so long
values = ["what"]
"""


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("src/one.py", CODE, {"what": 2, "private": 4, "of": 1, "docstring": 2, "help": 0}),
        # Tests repeat the messages that they expect.
        ("tests/test_one.py", CODE, {"what": 1, "private": 2, "of": 1, "docstring": 2, "help": 0}),
        ("src/tollbar/cli/one.py", '"""Command.\\n\\nNone: a new one."""', {"help": 1, "docstring": 0}),
        ("engine/src/one.rs", RUST, {"what": 1, "private": 3, "of": 0, "docstring": 0}),
        ("src/one.toml", TOML, {"what": 2, "private": 3, "of": 0, "docstring": 0}),
    ],
)
def test_texts_of_code_are_counted(name: str, text: str, expected: dict[str, int]) -> None:
    one = Source(name, text, prose.COUNTED)
    assert expected == {rule: one.hits(rule) for rule in expected}


def test_ceilings_are_lowered_and_never_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "prose.toml").write_text('"one.md" = { what = 3 }\n"gone.md" = { of = 1 }\n')
    monkeypatch.setattr(prose, "CEILINGS", tmp_path / "prose.toml")
    monkeypatch.setattr(prose, "documents", lambda: [prose.Document("one.md", TEXT)])
    monkeypatch.setattr(prose, "code", list)
    prose.lower()
    assert '"one.md" = { what = 1 }\n' in (tmp_path / "prose.toml").read_text()
    assert "gone.md" not in (tmp_path / "prose.toml").read_text()
    # The rules without a ceiling stay faults.
    assert ["private", "of"] == [line.split("`")[1] for line in prose.faults()]


@pytest.mark.parametrize(
    ("subject", "fault"),
    [
        ("report: print ratios below 0.01 as decimals", None),
        ("bench, tests: embed the page", None),
        ("study/plan: process batches by their size", None),
        ("report: print ratios; fix the legend", "semicolon"),
        ("report: prints ratios as decimals", "imperative"),
        ("report: reworded the notes", "imperative"),
        ("report: the notes are shorter", "imperative"),
        ("reword the notes", "`area: imperative change`"),
        (f"report: {'reword ' * 10}the notes", "87 characters"),
    ],
)
def test_a_subject_names_one_change(subject: str, fault: str | None) -> None:
    found = [*subjects.complaints(subject)]
    assert ([] if fault is None else [True]) == [str(fault) in one for one in found]


def _git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *who, "-C", str(folder), *words], check=True, capture_output=True)


def test_subjects_count_from_the_rule_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Earlier subjects are free; a shallow clone has fewer commits, and a folder without git has none."""
    origin = tmp_path / "origin"
    origin.mkdir()
    monkeypatch.setattr(subjects, "__file__", str(origin / "subjects.py"))
    assert [] == subjects.faults(origin)
    _git(origin, "init", "-q")
    for number, subject in enumerate(
        ("Before any rule; free", "rule: check subjects", "rule: checks more", "rule: stop")
    ):
        (origin / ("subjects.py" if number == 1 else f"{number}")).write_text(str(number))
        _git(origin, "add", "-A")
        _git(origin, "commit", "-qm", subject)
    assert ["checks"] == [line.split("`")[1] for line in subjects.faults(origin)]
    for depth, expected in ((1, 0), (2, 1)):
        clone = tmp_path / f"clone-{depth}"
        _git(tmp_path, "clone", "-q", "--depth", str(depth), f"file://{origin}", str(clone))
        monkeypatch.setattr(subjects, "__file__", str(clone / "subjects.py"))
        assert expected == len(subjects.faults(clone))
