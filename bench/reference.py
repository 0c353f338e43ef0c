"""The reference of commands and studies: `python -m bench.reference > docs/generated/commands.md` writes it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from textwrap import fill

from tollbar import study
from tollbar.cli import COMMANDS, EXIT_STATUSES, GROUPS
from tollbar.cli.pages import page

HEAD = """# Commands and studies

`python -m bench.reference > docs/generated/commands.md` writes this page from the source. `tollbar COMMAND --help`
prints every option with its default, and `tollbar list studies` prints the studies. `tollbar --install-completion`
completes commands and options in your shell.
"""
STUDIES = """## Studies

`tollbar run` without a study measures the set `quick`. A set is a folder of studies. Run it, or one member, by its
name: for example `tollbar run tls-today` or `tollbar run tls-post-quantum`.
"""


def written() -> str:
    """Return the page: a table for each group of commands, the exit statuses, and the studies that ship."""
    text = [HEAD]
    for group, names in GROUPS.items():
        text += [f"## {group}", "", *_table(("command", "does", "example"), (_command(name) for name in names)), ""]
    text += ["## Exit status", "", fill(EXIT_STATUSES, 120), ""]
    return "\n".join([*text, STUDIES, *_table(("study", "asks"), _studies())]) + "\n"


def _command(name: str) -> tuple[str, ...]:
    place, does = COMMANDS[name]
    example = re.search(r"^tollbar .+?(?=$|  )", page(name, place, ""), re.MULTILINE)
    return f"`tollbar {name}`", does, f"`{example[0]}`" if example else ""


def _studies() -> Iterator[tuple[str, ...]]:
    for name in (*study.shipped(), study.AS_PUBLISHED):
        members = study.load([name])
        whole = f"a set: {', '.join(f'`{one.name}`' for one in members)}"
        yield f"`{name}`", members[0].question if len(members) == 1 else whole


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    for cells in (head, ["---"] * len(head), *rows):
        yield f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    print(written(), end="")
