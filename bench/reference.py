"""Commands, studies and policies: `python -m bench.reference > docs/generated/commands.md` writes the reference."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from textwrap import fill

from tollbar import study
from tollbar.catalog import policies
from tollbar.catalog.families import families
from tollbar.cli import COMMANDS, EXIT_STATUSES, GROUPS
from tollbar.cli.pages import page

HEAD = """# Commands, studies, policies

`python -m bench.reference > docs/generated/commands.md` writes this page from the source. `tollbar COMMAND --help`
prints every option with its default, and `tollbar list studies` prints the studies. `tollbar --install-completion`
completes commands and options in your shell.
"""
STUDIES = """## Studies

`tollbar run` without a study measures the set `quick`. A set is a folder of studies. Run it, or one member, by its
name: for example `tollbar run tls-today` or `tollbar run tls-post-quantum`.
"""

PARAMETERS = """Memory is in whole KiB, at least 8 KiB for each lane. `n` is a power of two, and a hash by scrypt uses
128·n·r bytes.
"""


def written() -> str:
    """Return the page: a table for each group of commands, the exit statuses, and the studies that ship."""
    text = [HEAD]
    for group, names in GROUPS.items():
        text += [f"## {group}", "", *_table(("command", "does", "example"), (_command(name) for name in names)), ""]
    text += ["## Exit status", "", fill(EXIT_STATUSES, 120), ""]
    text += [STUDIES, *_table(("study", "asks"), _studies()), ""]
    text += ["## Policies", "", *_table(("policy", "title", "edition", "rules on"), _policies()), ""]
    text += ["## Parameters of a password hash", "", PARAMETERS]
    text += _table(("choice", "parameter", "meaning", "from", "to", "default"), _parameters())
    return "\n".join(text) + "\n"


def _command(name: str) -> tuple[str, ...]:
    place, does = COMMANDS[name]
    example = re.search(r"^tollbar .+?(?=$|  )", page(name, place, ""), re.MULTILINE)
    return f"`tollbar {name}`", does, f"`{example[0]}`" if example else ""


def _studies() -> Iterator[tuple[str, ...]]:
    for name in (*study.shipped(), *study.SETS_OF_SOURCES):
        members = study.load([name])
        whole = f"a set: {', '.join(f'`{one.name}`' for one in members)}"
        yield f"`{name}`", members[0].question if len(members) == 1 else whole


def _policies() -> Iterator[tuple[str, ...]]:
    for name in policies.policies():
        one = policies.policy(name)
        yield f"`{name}`", one.title, one.edition, ", ".join(filter(one.is_about, families()))


def _parameters() -> Iterator[tuple[str, ...]]:
    for name, setting in families()["password-hash"].settings.items():
        if setting.least is not None and setting.most is not None:
            bounds = (setting.words(value) for value in (setting.least, setting.most, setting.default))
            yield ", ".join(f"`{choice}`" for choice in setting.only["choice"]), f"`{name}`", setting.title, *bounds


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    for cells in (head, ["---"] * len(head), *rows):
        yield f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    print(written(), end="")
