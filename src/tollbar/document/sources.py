"""The published comparisons: each of their numbers and conclusions, and where it is tried again (docs/sources.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tollbar import study
from tollbar.present.published import Line, compared_by, of_source, published_words, said_figures

HEAD = """# The published comparisons, and where each is tried again

Written from the studies: `python -m tollbar.document.sources > docs/sources.md`. *Published* is a ratio of the first
named over the second, an order, or a figure as the source prints it; *compared by* is what Tollbar sets beside it:
`capacity` is one over the servers' CPU time, `wall` the time that passes. `tollbar show SOURCE` sets what a run has
measured beside it.
"""
COLUMNS = ("where", "what was published", "published", "its figures", "tried by", "compared by", "what is to be known")
NOTHING = "–"


def written() -> str:
    """Every source with its table, in the order of its text; what is not the source's comes last."""
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
        published_words(claim),
        said_figures(claim) or NOTHING,
        NOTHING if claim.untestable else f"`{line.study.name}`",
        compared_by(claim),
        f"not testable here: {claim.untestable}" if claim.untestable else claim.note or NOTHING,
    )


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    print(written(), end="")
