"""Files between two machines' sandboxes: each knows its files by its own directory, whose name is replaced in them."""

from __future__ import annotations

import base64
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tollbar.beds.sandbox import Account
from tollbar.errors import TollbarError
from tollbar.files import write

# What ends a path in a configuration; none of a run's own has any of these in it.
_NAMED = r"(/[^\s'\"`;:,(){}<>|&]+)"

# Of one component: keytabs, certificates, and accounts, which are some ten bytes each.
MOST_GIVEN = 64
MOST_GIVEN_BYTES = 16 * 1024 * 1024
# Less than a file's name may have: it is written under a longer one first.
MOST_OF_NAME = 200

Bundle = list[dict[str, Any]]
"""Files, each with its path below the sandbox."""


def named(texts: Iterable[str], directory: Path) -> list[Path]:
    """What these texts name in this directory, and is there: files, and all that is in folders."""
    pattern = re.compile(re.escape(str(directory)) + _NAMED)
    paths = dict.fromkeys(Path(str(directory) + match) for text in texts for match in pattern.findall(text))
    return [path for path in paths if path.exists()]


def texts_of(said: Any) -> Iterator[str]:
    """All that are in this value."""
    if isinstance(said, str):
        yield said
    elif isinstance(said, Mapping):
        for value in said.values():
            yield from texts_of(value)
    elif isinstance(said, list | tuple):
        for value in said:
            yield from texts_of(value)


def packed(paths: Iterable[Path], directory: Path, account: Account | None) -> Bundle:
    """These files and folders of the directory. Raises TollbarError for what is on one machine only."""
    return [_entry(path, directory, account) for path in dict.fromkeys(one for path in paths for one in _below(path))]


def unpack(bundle: Bundle, directory: Path, sender: str, account: Account | None) -> None:
    """Lays them out below a directory, those of the account to this machine's. What is there already stays.

    `sender` is the sender's directory, in whose place they name this one then. Raises TollbarError for a path that
    leads out of the directory.
    """
    for entry in bundle:
        path = directory / entry["path"]
        # A link that came before may lead elsewhere.
        if ".." in path.parts or not path.parent.resolve().is_relative_to(directory.resolve()):
            raise TollbarError(f"a file that would be outside of the run's directory: {entry['path']}")
        _make_folders(path.parent, directory)
        if os.path.lexists(path):
            continue
        if "link" in entry:
            path.symlink_to(entry["link"])
            continue
        data = base64.b64decode(entry["data"]).replace(sender.encode(), str(directory).encode())
        write(path, data, int(entry["mode"]) & 0o777)
        if entry["of_account"] and account:
            os.chown(path, account.user_id, account.group_id)


def is_given(name: str, gives: Sequence[str]) -> bool:
    """Whether a file of this name in a component's directory is for others to read."""
    return "/" not in name and any(fnmatchcase(name, pattern) for pattern in gives)


def take(bundle: Bundle, work_dir: Path, gives: Sequence[str], sender: str, account: Account | None) -> None:
    """Lays what another machine gives of a component into its work directory here, for its account alone.

    That machine may be another's by now: it can write files that the component `gives`, by their names, and none that
    is there already, and they are plain files. Raises TollbarError for anything else.
    """
    left_bytes = MOST_GIVEN_BYTES
    if not isinstance(bundle, list) or not all(isinstance(entry, dict) for entry in bundle):
        raise TollbarError("what came back is no list of files")
    if len(bundle) > MOST_GIVEN:
        raise TollbarError(f"{len(bundle)} files came back, and a component gives {MOST_GIVEN} at most")
    for entry in bundle:
        folder, _, name = str(entry.get("path")).rpartition("/")
        is_name = name.isprintable() and len(name.encode()) <= MOST_OF_NAME
        if folder != work_dir.name or not is_given(name, gives) or "link" in entry or not is_name:
            raise TollbarError(f"a file came back that the component does not give: {entry.get('path')!r}")
        try:
            data = base64.b64decode(entry["data"], validate=True).replace(
                sender.encode(), str(work_dir.parent).encode()
            )
        except (KeyError, TypeError, ValueError):
            raise TollbarError(f"a file came back that cannot be read: {entry['path']}") from None
        left_bytes -= len(data)
        if left_bytes < 0:
            raise TollbarError(f"more than {MOST_GIVEN_BYTES // 1024**2} MiB of files came back")
        path = work_dir / name
        if os.path.lexists(path):
            continue
        write(path, data, 0o600)
        if account:
            os.chown(path, account.user_id, account.group_id)


def renamed(said: Any, one: str, other: str) -> Any:
    """The same value, with another directory's name in all of its texts."""
    if isinstance(said, str):
        return said.replace(one, other)
    if isinstance(said, Mapping):
        return {name: renamed(value, one, other) for name, value in said.items()}
    return [renamed(value, one, other) for value in said] if isinstance(said, list | tuple) else said


def _below(path: Path) -> Iterator[Path]:
    if path.is_dir() and not path.is_symlink():
        for inner in sorted(path.iterdir()):
            yield from _below(inner)
    else:
        yield path


def _entry(path: Path, directory: Path, account: Account | None) -> dict[str, Any]:
    about = path.lstat()
    where = {"path": str(path.relative_to(directory))}
    if stat.S_ISLNK(about.st_mode):
        return {**where, "link": os.readlink(path)}
    if not stat.S_ISREG(about.st_mode):
        raise TollbarError("a socket or a device: what uses it has to be on the same machine", where=str(path))
    of_account = account is not None and about.st_uid == account.user_id
    data = base64.b64encode(path.read_bytes()).decode()
    return {**where, "mode": stat.S_IMODE(about.st_mode), "of_account": of_account, "data": data}


def _make_folders(folder: Path, directory: Path) -> None:
    """As the sandbox's own: others pass through, and only the owner may list them."""
    for part in reversed([folder, *folder.parents]):
        if part.is_relative_to(directory) and not part.exists():
            part.mkdir()
            part.chmod(0o711)
