"""Published comparisons: each number and conclusion, and the study that tests it (docs/generated/sources.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tollbar import study
from tollbar.report.sections.published.figures import figures_words, reading_words
from tollbar.report.sections.published.lines import Line, of_source
from tollbar.report.sections.published.tables import compared_by, published_words
from tollbar.study import Claim

HEAD = """# The published comparisons, and the studies that test them again

`python -m tollbar.report.json_forms.sources > docs/generated/sources.md` writes this file from the studies.
*Published* is a ratio of the first named over the second, an order, or a figure as the source prints it. *Compared by*
is the measured quantity: `capacity` is one over the servers' CPU time, `wall` is elapsed time. For example,
`tollbar show rsa-apis` prints one source next to the results of your last run.
"""
COLUMNS = ("where", "published claim", "published", "its figures", "measured by", "metric", "notes")
NOTHING = "–"


def written() -> str:
    """Return every source with its table, in the order of its text; claims that are not the source's come last."""
    text = [HEAD]
    for source in study.sources().values():
        lines = of_source(source).lines
        text += [f"## {source.cited}", "", f"{source.system}. Here: {source.differs}.", "", *_table(lines), ""]
    return "\n".join(text).rstrip() + "\n"


def _table(lines: Sequence[Line]) -> Iterator[str]:
    yield _line(COLUMNS)
    yield _line(["---"] * len(COLUMNS))
    yield from (_line(_cells(line)) for line in lines)


def _cells(line: Line) -> Sequence[str]:
    claim = line.claim
    return (
        claim.where or NOTHING,
        claim.says,
        _published(claim),
        figures_words(claim) or NOTHING,
        NOTHING if claim.untestable else f"`{line.study.name}`",
        compared_by(claim),
        f"not testable here: {claim.untestable}" if claim.untestable else claim.note or NOTHING,
    )


def _published(claim: Claim) -> str:
    return "; ".join(filter(None, (published_words(claim), reading_words(claim))))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    print(written(), end="")
