"""Glossary: the words of the documents and of a report, from one table."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tollbar.core import wire
from tollbar.report.blocks import Section, Table, TableCell, row_names, texts

_TABLE = Path(__file__).with_name("glossary.toml")


class _Glossary(wire.Wire):
    words: dict[str, str]


@cache
def words() -> Mapping[str, str]:
    """Return each word with its meaning, in which a name is between backquotes."""
    return wire.read(_TABLE, _Glossary).words


def glossary_section() -> Section:
    """Return the section of a report's page."""
    rows = [(TableCell(word), TableCell(meaning.replace("`", ""))) for word, meaning in words().items()]
    return Section("Glossary", (Table("", (*row_names("word"), *texts("meaning")), rows),), "glossary")


def markdown() -> str:
    """Return docs/glossary.md."""
    rows = [f"| {word} | {meaning} |" for word, meaning in words().items()]
    return "\n".join(["# Glossary", "", "| word | meaning |", "| --- | --- |", *rows, ""])


if __name__ == "__main__":
    print(markdown(), end="")
