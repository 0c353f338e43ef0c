"""Plain English in figures: the counted parts of a document, and ceilings that only fall."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench import prose

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


def test_documents_are_at_their_ceilings() -> None:
    assert [] == prose.faults()


@pytest.mark.parametrize(("ceiling", "words"), [(0, "reword"), (1, None), (2, "lower its ceiling")])
def test_a_count_is_its_ceiling(
    ceiling: int, words: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reword additional hits; for fewer, lower the ceiling."""
    (tmp_path / "prose.toml").write_text(f'["one.md"]\nwhat = {ceiling}\nprivate = 1\nof = 1\n')
    monkeypatch.setattr(prose, "CEILINGS", tmp_path / "prose.toml")
    monkeypatch.setattr(prose, "documents", lambda: [prose.Document("one.md", TEXT)])
    found = prose.faults()
    assert (0 if words is None else 1) == len(found)
    assert words is None or words in found[0]


@pytest.mark.parametrize(("name", "lines"), [("README.md", 130), ("METHOD.md", 280), ("CHANGELOG.md", 30)])
def test_a_document_is_short(name: str, lines: int) -> None:
    assert len((prose.ROOT / name).read_text("utf-8").splitlines()) <= lines
