"""Hints for words at a wrong place: names that another command knows, and settings as options."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence

from tollbar.catalog import families, policies
from tollbar.core import spelling
from tollbar.core.errors import one_line


def elsewhere(word: str) -> str | None:
    """Return where a family, choice or policy of this name is listed, or None for an unknown name."""
    known = families.families()
    if family := spelling.find(word, known):
        return f"`{family}` is a family: `tollbar list choices {family}` lists its choices"
    for family, one in known.items():
        if choice := spelling.find(word, one.choices):
            return f"`{choice}` is a choice: `tollbar list choices {family}` lists it"
    found = _policy(word)
    return f"`{found}` is a policy: `tollbar list policies` lists it" if found else None


def unexpected(command: str, arguments: Sequence[str], word: str) -> str | None:
    """Return the hint for an argument too many, or None where nothing is likely."""
    policy = next((one for one in arguments[1:] if _policy(one)), None)
    if policy and command == "price":
        return f"did you mean `--policy {policy}`?"
    if command == "new":
        family = shlex.quote(next((one for one in arguments[1:] if not one.startswith("-")), "digest"))
        is_file = word.endswith(".toml")
        return f"`tollbar new {family} > {shlex.quote(word) if is_file else 'mine.toml'}` writes a study to change"
    return None


def swapped(word: str, others: Sequence[str]) -> str | None:
    """Return the family and the policy to type, if a policy is in the place of the family, else None."""
    known = families.families()
    if spelling.find(word, known) or (policy := _policy(word)) is None:
        return None
    family = next((name for one in others if (name := spelling.find(one, known))), "FAMILY")
    return f"{family} --policy {policy}"


def _policy(word: str) -> str | None:
    shipped = policies.shipped()
    return spelling.find(word, shipped) or next((one for one in shipped if one == policies.with_edition(word)), None)


def of_lists(arguments: Sequence[str], lists: Collection[str]) -> str | None:
    """Return the hint for a word that `tollbar list` does not have, or None if no list has it."""
    word = next((one for one in arguments[1:] if not one.startswith("-")), "")
    near = spelling.nearest(word, lists)
    return elsewhere(word) or (f"did you mean `{near[0]}`?" if near else None)


def coordinate(arguments: Sequence[str], known: Collection[str]) -> tuple[str, str | None]:
    """Return the first unknown option that names a coordinate, and the word to type in its place or None."""
    settings = {name for family in families.families().values() for name in family.settings}
    for place, one in enumerate(arguments):
        option, _, value = one.partition("=")
        name = option.removeprefix("--")
        if option.startswith("--") and option not in known and name in {"provider", "server", "op", *settings}:
            after = value or next(iter(arguments[place + 1 : place + 2]), "-")
            return one_line(one), f"{name}={'VALUE' if after.startswith('-') else one_line(after)}"
    return "", None
