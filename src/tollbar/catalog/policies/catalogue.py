"""Search for policies: the shipped ones, those on `TOLLBAR_PATH`, and any file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tollbar.catalog.policies.definition import Policy
from tollbar.catalog.policies.policy_file import check, read_policy
from tollbar.core import spelling
from tollbar.core.errors import TollbarError, unknown
from tollbar.core.files import is_folder, named_files

_OWN = Path(__file__).parent
_ENVIRONMENTS = _OWN / "environments"

MOST_DEPTH = 16
"""Limit of a chain of policies that extend one another; shipped chains have two."""


MOST_FILES = 128
"""Limit of the policies that a command reads, with those that they extend."""

MOST_BYTES = 4 << 20
"""Limit of their files, all together: to read 1 MiB takes up to half a second."""


def shipped() -> Mapping[str, Path]:
    """Return the shipped files, by name."""
    return {path.name.removesuffix(".toml"): path for path in sorted(_OWN.glob("*.toml"))}


def policies() -> Mapping[str, Path]:
    """Return every named policy: the shipped ones, and those on `TOLLBAR_PATH`."""
    return named_files(_OWN)


def with_edition(name: str) -> str:
    """Return the newest edition of a name without edition, or of a prefix; other names are unchanged.

    `tlsref-intermediate` is `tlsref-intermediate-6.0`, and `OWASP` is `owasp-password-storage-2026-06`. The digit after
    a name may be a level, as in `asvs-level`: editions of one policy have one title.
    """
    known = policies()
    same = [one for one in known if one.casefold() == name.casefold()]
    if same or name.endswith(".toml") or "/" in name:
        return (same or [name])[0]
    begins = [
        [one for one in known if re.match(rf"{re.escape(name)}-[0-9]", one, re.IGNORECASE)],
        [one for one in known if one.casefold().startswith(name.casefold())],
        # Without separators: `tr02102`, and `cnsa2`.
        [one for one in known if spelling.squeezed(one).startswith(spelling.squeezed(name))],
    ]
    for some in begins:
        editions = [policy(one) for one in some]
        if len({one.title for one in editions}) == 1:
            return max(editions, key=lambda one: one.dated).name
    return name


def policy(
    name: str, *, beside: Path = Path(), where: str | None = None, already: dict[Path, Policy] | None = None
) -> Policy:
    """Return the policy of this name, or in this file: a path that ends in `.toml`, relative to the folder `beside`.

    `already` are the policies that the same command read before, of which each is read once, and to which this one is
    added. Raises TollbarError with the nearest names if there is none, or with the fault in its file, or in one that it
    extends, and for more files than a command may read.
    """
    return _found(name, beside, (), where, {} if already is None else already)


def named(names: Iterable[str]) -> tuple[Policy, ...]:
    """Return the policies of these names, each once. Raises TollbarError as `policy` does."""
    already: dict[Path, Policy] = {}
    return tuple(policy(name, already=already) for name in dict.fromkeys(map(with_edition, names)))


def environments() -> Mapping[str, Path]:
    """Return the shipped environments by name: rules in a policy's form, which a choice must meet in a place of use."""
    return {path.name.removesuffix(".toml"): path for path in sorted(_ENVIRONMENTS.glob("*.toml"))}


def environment(name: str, family: str | None = None) -> Policy:
    """Return the environment of this name.

    Raises TollbarError with the nearest names if no environment has it, and for one without rules on the `family`.
    """
    known = environments()
    found = spelling.find(name, known)
    if found is None:
        raise unknown("environment", name, known)
    read = read_policy(known[found], lambda other, _: environment(other)).model_copy(update={"is_place": True})
    if family is not None and not read.is_about(family):
        about = [one for one in known if environment(one).is_about(family)]
        hint = f"environments with such rules: {', '.join(about)}" if about else None
        raise TollbarError(f"the environment has no rule for the family {family}", where=found, hint=hint)
    return read


def refuse_silent(asked: Iterable[Policy], family: str) -> None:
    """Raise TollbarError for a policy without rules on this family, because nothing can meet it."""
    for one in asked:
        if not one.is_about(family):
            about = [name for name in shipped() if policy(name).is_about(family)]
            hint = f"policies with such rules: {', '.join(about)}" if about else None
            raise TollbarError(
                f"the policy has no rule for the family {family}; it needs one", where=one.name, hint=hint
            )


def _found(
    name: str, beside: Path, extending: Sequence[Path], where: str | None, already: dict[Path, Policy]
) -> Policy:
    """Return the policy of a name. `extending` are the files that lead to it, `already` all that were read so far."""
    known = policies()
    path = known.get(name)
    if path is None and name.endswith(".toml") and _is_there(beside / name):
        path = (beside / name).resolve()
    if path is None and _is_there(beside / name):
        raise TollbarError(
            f"`{name}` is not a policy; a policy must be a TOML file with a name that ends in `.toml`",
            where=where,
            hint=_ours(name),
        )
    if path is None:
        folder = (beside / name).parent
        there = [str(Path(name).parent / one.name) for one in (folder.glob("*.toml") if is_folder(folder) else ())]
        longer = [one for one in known if one.casefold().startswith(name.casefold())]
        meant = longer or _titled(name) or spelling.nearest(name, (*known, *there))
        hint = f"did you mean {' or '.join(f'`{one}`' for one in meant)}?" if meant else _listed(known)
        raise TollbarError(f"no such policy: `{name}`", where=where, hint=hint)
    if path in extending:
        raise TollbarError(
            f"the policy cannot extend itself, by `{name}`", where=where, hint=f"remove `{name}` from `extends`"
        )
    if path not in already:
        _refuse_many(extending, already, where)
        found = read_policy(
            path, lambda other, file: _found(other, file.parent, (*extending, path), f"{file}: `extends`", already)
        )
        if path.parent != _OWN:
            # Tollbar's own tests check the shipped ones; a family is only read if a cell of it is judged.
            check(found, str(path))
        already[path] = found
    return already[path]


def _titled(word: str) -> Sequence[str]:
    """Return the shipped policies whose title and publisher have these words, such as `nist` and `owasp-asvs`."""
    wanted = {*re.findall("[^-_./ ]+", word.casefold())}
    titles = {name: f"{one.title} {one.by}" for name, one in ((name, policy(name)) for name in shipped())}
    return [name for name, title in titles.items() if wanted and wanted <= {*re.findall(r"\w+", title.casefold())}]


def _ours(name: str) -> str:
    """Return the hint for a file of another format: guidelines of TLSRef and policies of Fedora ship with Tollbar."""
    word = Path(name).name.casefold()
    found = {".json": "tlsref-", ".pol": "fedora-"}.get(Path(word).suffix, "")
    ship = [one for one in shipped() if found and one.startswith(found)]
    own = "docs/policies.md says how to write one"
    return f"{' and '.join(f'`{one}`' for one in ship)} ship with Tollbar; {own}" if ship else own


def _is_there(path: Path) -> bool:
    # A name that is too long for a file raises ValueError or OSError.
    with suppress(OSError, ValueError):
        return path.exists()
    return False


def _refuse_many(extending: Sequence[Path], already: Mapping[Path, Policy], where: str | None) -> None:
    what = f"{MOST_DEPTH} policies extend one another in a chain" if len(extending) >= MOST_DEPTH else None
    if len(extending) + len(already) >= MOST_FILES:
        what = f"more than {MOST_FILES} policies are read, with those that they extend"
    with suppress(OSError):
        if sum(path.stat().st_size for path in (*extending, *already)) > MOST_BYTES:
            what = f"the policies have more than {MOST_BYTES >> 20} MiB together, with those that they extend"
    if what:
        hint = "name fewer policies at once; the rules of several may move into one file"
        raise TollbarError(f"{what}, which is the limit", where=where, hint=hint)


def _listed(known: Mapping[str, Path]) -> str:
    return "known: " + ", ".join(known)
