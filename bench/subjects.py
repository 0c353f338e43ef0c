"""Subjects of commits, by rule 14 of the style: `area: imperative change`, at most 72 characters, one change."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

MOST_LETTERS = 72
_FORM = re.compile(r"[a-z0-9][\w ,./-]*: (?P<verb>[a-z][a-z-]*)\b.*")
# Third person and participles; verbs that end like them are imperatives.
_NOT_IMPERATIVE = re.compile(r"(?!.*(?:ss|focus)$)(?:.*(?:s|ed|ing))$")
_IMPERATIVES = frozenset(
    ("bring", "embed", "exceed", "feed", "need", "proceed", "seed", "shed", "speed", "string", "swing")
)
_OPENINGS = frozenset(("a", "an", "and", "it", "of", "one", "that", "the", "those", "what", "where"))


def faults(root: Path) -> list[str]:
    """Return a line for each fault of a commit's subject; none where there is no history of git."""
    return [f"commit {commit}: {what}: {subject}" for commit, subject in _commits(root) for what in complaints(subject)]


def complaints(subject: str) -> Iterator[str]:
    """Yield the faults of a subject."""
    if len(subject) > MOST_LETTERS:
        yield f"the subject has {len(subject)} characters, at most {MOST_LETTERS}"
    if ";" in subject:
        yield "the subject has a semicolon; one commit has one change"
    form = _FORM.fullmatch(subject)
    if form is None:
        yield "the subject must be `area: imperative change`"
    elif form["verb"] in _OPENINGS or (_NOT_IMPERATIVE.match(form["verb"]) and form["verb"] not in _IMPERATIVES):
        yield f"the change must begin with an imperative, not with `{form['verb']}`"


def _commits(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the commits from the one that added this file on, as their short hash and subject, without merges.

    In a shallow clone the oldest commit counts as the one that added all files, so that checking begins there.
    """
    path = str(Path(__file__).relative_to(root))
    added = _git(root, "log", "--diff-filter=A", "--format=%H", "--", path).split()
    if not added:
        return
    first = added[-1]
    has_parent = bool(_git(root, "rev-parse", "--verify", "--quiet", f"{first}^"))
    span = f"{first}^..HEAD" if has_parent else "HEAD"
    for line in _git(root, "log", "--no-merges", "--format=%h %s", span).splitlines():
        commit, _, subject = line.partition(" ")
        yield commit, subject


def _git(root: Path, *words: str) -> str:
    """Return the output of git; empty where it is not installed, or this is not a repository."""
    try:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout if done.returncode == 0 else ""
