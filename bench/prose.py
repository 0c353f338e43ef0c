"""Plain English in figures: `python -m bench.prose` prints them for each document, `--check` compares with ceilings.

Patterns are counted in prose: code blocks, tables, quotes and comments are left out. `words` are all, as `wc -w` counts
them, and `by hand` those outside of code blocks. A ceiling in `prose.toml` is the current number of hits in a document
or a source file: it may only fall, and `--lower` lowers it. `--check` also reads the subjects of commits.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench import subjects
from bench.prose_of_code import Source, sources

ROOT = Path(__file__).parents[1]
CEILINGS = Path(__file__).with_name("prose.toml")
# Generated from the source, where their words are counted.
GENERATED = ("docs/glossary.md", "docs/json.md")

COUNTED: Mapping[str, re.Pattern[str]] = {
    "what": re.compile(r"\bwhat\b", re.IGNORECASE),
    "private": re.compile(
        r"\b(beside|dear(er|est)?|anew|alike|lacks?|mended|stands|so (many|much|long)|held against|left alone"
        r"|as disturbed|in company|who asks|is none|told apart)\b",
        re.IGNORECASE,
    ),
    "of": re.compile(r"(?<=[.!?:] )Of\b|^(?:[-*] )?Of\b", re.MULTILINE),
}
"""Rules 2, 5 and 6 of the style: "what" clauses, private words, sentences that begin with "Of"."""
RULES_OF_CODE = (*COUNTED, "docstring", "help")
"""Rules of source files: also rules 3 and 13, first words of docstrings and defaults in help."""
SHOWN = {
    "what": COUNTED["what"],
    "beside": re.compile(r"\bbeside\b", re.I),
    "for example": re.compile(r"\bfor example\b", re.I),
}


@dataclass(frozen=True, slots=True)
class Document:
    """Text of one document."""

    name: str
    text: str

    @property
    def by_hand(self) -> str:
        """Return the text without comments and code blocks, which hold commands and their output."""
        return re.sub(r"^\s*```.*?^\s*```$|<!--.*?-->", "", self.text, flags=re.DOTALL | re.MULTILINE)

    @property
    def prose(self) -> str:
        """Return the running text, inline code as one word each."""
        lines = (line for line in self.by_hand.splitlines() if not line.lstrip().startswith(("|", ">", "#")))
        return re.sub(r"`[^`\n]+`", "code", "\n".join(lines))

    def hits(self, rule: str) -> int:
        """Return the number of hits of a rule."""
        return len(COUNTED[rule].findall(self.prose))


def documents() -> list[Document]:
    """Return the documents that are written by hand."""
    paths = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
    names = [str(path.relative_to(ROOT)) for path in paths]
    return [Document(name, (ROOT / name).read_text("utf-8")) for name in names if name not in GENERATED]


def code() -> list[Source]:
    """Return the source files."""
    return sources(ROOT, COUNTED)


def counts() -> dict[str, dict[str, int]]:
    """Return the hits by document or source file, and by rule; those without a hit have none."""
    hits = {one.name: {rule: one.hits(rule) for rule in COUNTED} for one in documents()}
    hits |= {one.name: {rule: one.hits(rule) for rule in RULES_OF_CODE} for one in code()}
    return {name: {rule: number for rule, number in rules.items() if number} for name, rules in hits.items()}


def faults() -> list[str]:
    """Return a line for each count above its ceiling, and for each document's count below it."""
    ceilings, found = _ceilings(), counts()
    exact = {one.name for one in documents()}
    said = []
    for name in sorted(ceilings.keys() | found.keys()):
        own, allowed = found.get(name, {}), ceilings.get(name, {})
        for rule in RULES_OF_CODE:
            hits, ceiling = own.get(rule, 0), allowed.get(rule, 0)
            if hits > ceiling:
                said.append(
                    f"{name}: {hits} hits of rule `{rule}`, at most {ceiling}; reword them (CONTRIBUTING.md, Style)"
                )
            elif hits < ceiling and name in exact:
                said.append(
                    f"{name}: {hits} hits of rule `{rule}`, ceiling {ceiling}; lower it: python -m bench.prose --lower"
                )
    return said


def lower() -> None:
    """Lower each ceiling to the current count; none is raised."""
    found = counts()
    kept = {
        name: {
            rule: least for rule, ceiling in rules.items() if (least := min(ceiling, found.get(name, {}).get(rule, 0)))
        }
        for name, rules in _ceilings().items()
    }
    CEILINGS.write_text(_ceilings_text(kept), "utf-8")


def _ceilings() -> dict[str, dict[str, int]]:
    return tomllib.loads(CEILINGS.read_text("utf-8"))


def _ceilings_text(ceilings: Mapping[str, Mapping[str, int]]) -> str:
    """Return the ceilings as a file: one line for each document or source file that has some."""
    head = "# Hits of the style's rules (python -m bench.prose). A ceiling may only fall; rules without one have 0.\n\n"
    lines = (
        f'"{name}" = {{ {", ".join(f"{rule} = {ceiling}" for rule, ceiling in rules.items())} }}\n'
        for name, rules in ceilings.items()
        if rules
    )
    return head + "".join(lines)


def table() -> str:
    """Return the figures of each document, and of all together."""
    rows = {one.name: _counts(one) for one in documents()}
    rows["all"] = [sum(column) for column in zip(*rows.values(), strict=True)]
    lines = [
        f"{'document':<34}{'lines':>6}{'words':>8}{'by hand':>9}{'prose':>8}" + "".join(f"{name:>13}" for name in SHOWN)
    ]
    for name, (length, words, by_hand, prose, *hits) in rows.items():
        shares = "".join(f"{1000 * number / max(prose, 1):>13.1f}" for number in hits)
        lines.append(f"{name:<34}{length:>6}{words:>8,}{by_hand:>9,}{prose:>8,}{shares}")
    return "\n".join(lines)


def _counts(one: Document) -> list[int]:
    """Return the numbers of lines, words, hand-written words and words of prose, and the hits of each pattern."""
    prose = one.prose
    sizes = [len(one.text.splitlines()), *(len(text.split()) for text in (one.text, one.by_hand, prose))]
    return [*sizes, *(len(how.findall(prose)) for how in SHOWN.values())]


def main(arguments: list[str]) -> int:
    """Print the figures; with `--check` the faults, which make the status 1; with `--lower` lower the ceilings."""
    if arguments == ["--lower"]:
        lower()
        return 0
    if arguments != ["--check"]:
        print(table())
        return 0
    found = [*faults(), *subjects.faults(ROOT)]
    print(*found, sep="\n", end="\n" if found else "", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
