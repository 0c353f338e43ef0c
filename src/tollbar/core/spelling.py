"""Other spellings and aliases of names: one table for command lines, studies and inventories."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path

_TABLE = Path(__file__).with_name("aliases.toml")
_SEPARATORS = re.compile(r"[-_./\s]+")
MOST_LETTERS = 100
"""Limit of a word that is compared with names, because comparing a long one takes seconds. Every name is shorter."""
MOST_COMPARED = 1000
"""Limit of the names that a word is compared with. All names of a family are fewer, and each takes up to a ms."""
_MOST_SUGGESTED = 3
_MOST_REMEMBERED = 2**14


@lru_cache(_MOST_REMEMBERED)
def squeezed(name: str) -> str:
    """Return a name in lower case and without separators: `sha256` for `SHA-256`."""
    return _SEPARATORS.sub("", name.casefold())


def find(word: str, known: Iterable[str]) -> str | None:
    """Return the known name that a word means: the word itself, a spelling or an alias of one name.

    None if it matches no name or several.
    """
    names = known if isinstance(known, Collection) else list(known)
    if word in names:
        return word
    found = meant(word, names)
    return found[0] if len(found) == 1 else None


def meant(word: str, known: Iterable[str]) -> Sequence[str]:
    """Return the known names that a word may mean: those with this spelling, or else those with this alias."""
    if not word or len(word) > MOST_LETTERS:
        return ()
    wanted, names = squeezed(word), list(dict.fromkeys(known))
    spelled = [name for name in names if squeezed(name) == wanted]
    return spelled or [name for name in names if wanted in _aliases().get(name, ())]


def nearest(word: str, known: Iterable[str]) -> Sequence[str]:
    """Return up to three known names that are similar to a word, the most similar first."""
    if len(word) > MOST_LETTERS:
        return ()
    names = sorted(set(known))
    return list(dict.fromkeys((*meant(word, names), *_similar(word, names))))[:_MOST_SUGGESTED]


def is_near(word: str, known: Iterable[str]) -> bool:
    """Return whether the table suggests one of these names for a word."""
    return len(word) <= MOST_LETTERS and any(squeezed(word) in _aliases("near").get(name, ()) for name in known)


def _similar(word: str, names: Sequence[str]) -> Sequence[str]:
    """Return the names whose spelling or alias is similar, the most similar first."""
    wanted = squeezed(word)
    score: dict[str, float] = {}
    for name in names[:MOST_COMPARED]:
        if wanted in _aliases("near").get(name, ()):
            score[name] = 1
            continue
        for spelling in (squeezed(name), *_aliases().get(name, ())):
            matcher = difflib.SequenceMatcher(None, spelling, wanted)
            if matcher.real_quick_ratio() >= 0.6 and matcher.quick_ratio() >= 0.6 and (found := matcher.ratio()) >= 0.6:
                score[name] = max(found, score.get(name, 0))
    return sorted(score, key=lambda name: -score[name])


def table() -> Mapping[str, Mapping[str, Sequence[str]]]:
    """Return Tollbar's own names with their aliases, as written: `also` are accepted, `near` are suggested."""
    read = tomllib.loads(_TABLE.read_text("utf-8"))
    return {kind: {name: others.split() for name, others in names.items()} for kind, names in read.items()}


@cache
def _aliases(kind: str = "also") -> Mapping[str, frozenset[str]]:
    return {name: frozenset(map(squeezed, others)) for name, others in table()[kind].items()}
