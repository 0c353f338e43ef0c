"""The published comparisons: each of their numbers and conclusions, and where it is tried again (docs/sources.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tollbar import study
from tollbar.present.comparisons import compared_by, published_words, said_figures
from tollbar.study import Claim, Source, Study

HEAD = """# The published comparisons, and where each is tried again

Written from the studies: `python -m tollbar.present.sources > docs/sources.md`. *Published* is a ratio of the first
named over the second, an order, or a figure as the source prints it; *compared by* is what Tollbar sets beside it:
`capacity` is one over the servers' CPU time, `wall` the time that passes.
"""
COLUMNS = ("where", "what was published", "published", "its figures", "tried by", "compared by", "what is to be known")
NOTHING = "–"


def written() -> str:
    """Every source with its table."""
    studies = study.load(list(study.shipped()))
    text = [HEAD]
    for source in study.sources().values():
        # Of a set and of its members each claim stands once.
        of = list({one.name: one for one in studies if one.source == source.name}.values())
        text += [f"## {_titled(source)}", "", f"{source.system}. Here: {source.differs}.", "", *_table(of), ""]
    return "\n".join(text).rstrip() + "\n"


def _titled(source: Source) -> str:
    about = ", ".join(str(part) for part in (source.by, source.year) if part)
    return f"{source.title} ({about})" if about else source.title


def _table(studies: Sequence[Study]) -> Iterator[str]:
    yield _line(COLUMNS)
    yield _line(["---"] * len(COLUMNS))
    for one in studies:
        for claim in one.claims:
            yield _line(_cells(one, claim))


def _cells(one: Study, claim: Claim) -> Sequence[str]:
    tried = NOTHING if claim.untestable else f"`{one.name}`"
    known = f"not testable here: {claim.untestable}" if claim.untestable else claim.note
    figures = said_figures(claim)
    return (
        claim.where or NOTHING,
        claim.says,
        published_words(claim),
        figures or NOTHING,
        tried,
        compared_by(claim),
        known or NOTHING,
    )


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    print(written(), end="")
