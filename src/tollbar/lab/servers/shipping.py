"""Files sent between two machines' sandboxes: the sender's directory in them is replaced by the receiver's."""

from __future__ import annotations

import base64
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tollbar.core.errors import TollbarError
from tollbar.core.files import write

# End of a path in a configuration; a run's own paths have none of these characters.
_NAMED = r"/[^\s'\"`;:,(){}<>|&]+"

# Files of one component: keytabs, certificates, and accounts, which are some ten bytes each.
MOST_GIVEN = 64
MOST_GIVEN_BYTES = 16 << 20
# Less than the limit of file names, because a file is first written under a longer one.
MOST_OF_NAME = 200

Bundle = list[dict[str, Any]]
"""Files, each with its path below the sandbox."""


def named(texts: Iterable[str], directory: Path) -> list[Path]:
    """Return the existing paths in this directory that these texts contain."""
    paths = dict.fromkeys(Path(match) for text in texts for match in _paths_in(directory).findall(text))
    return [path for path in paths if path.exists()]


def replaced(said: Any, directory: Path, names: Mapping[str, str]) -> Any:
    """Return the value with each path of this directory that is a key of `names` replaced by its value there."""
    if isinstance(said, str):
        return _paths_in(directory).sub(lambda match: names.get(match.group(), match.group()), said)
    if isinstance(said, Mapping):
        return {name: replaced(value, directory, names) for name, value in said.items()}
    return [replaced(value, directory, names) for value in said] if isinstance(said, list | tuple) else said


def _paths_in(directory: Path) -> re.Pattern[str]:
    return re.compile(re.escape(str(directory)) + _NAMED)


def texts_of(said: Any) -> Iterator[str]:
    """Yield all texts in this value."""
    if isinstance(said, str):
        yield said
    elif isinstance(said, Mapping):
        for value in said.values():
            yield from texts_of(value)
    elif isinstance(said, list | tuple):
        for value in said:
            yield from texts_of(value)


def packed(paths: Iterable[Path], directory: Path) -> Bundle:
    """Return these files and folders of the directory as a bundle. Raises TollbarError for sockets and devices."""
    return [_entry(path, directory) for path in dict.fromkeys(one for path in paths for one in _below(path))]


def unpack(bundle: Bundle, directory: Path, sender: str) -> None:
    """Write a bundle below a directory, as files of the lab. Existing files stay.

    `sender` is the sender's directory, which is replaced by this one in their content. Raises TollbarError for a path
    that leads out of the directory.
    """
    for entry in bundle:
        path = directory / entry["path"]
        # An earlier link may lead elsewhere.
        if ".." in path.parts or not path.parent.resolve().is_relative_to(directory.resolve()):
            raise TollbarError(f"the file {entry['path']} is outside the run's directory")
        _make_folders(path.parent, directory)
        if os.path.lexists(path):
            continue
        if "link" in entry:
            path.symlink_to(entry["link"])
            continue
        data = base64.b64decode(entry["data"]).replace(sender.encode(), str(directory).encode())
        write(path, data, int(entry["mode"]) & 0o777)


def is_given(name: str, gives: Sequence[str]) -> bool:
    """Return whether a file of this name in a component's directory is for others to read."""
    return "/" not in name and any(fnmatchcase(name, pattern) for pattern in gives)


def plain_file(path: Path, most_bytes: int) -> bytes:
    """Return the content of a file from another account, without following links, pipes or devices.

    Raises TollbarError for these, and for more than `most_bytes`.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise TollbarError(f"cannot be read as a plain file: {error.strerror}", where=str(path)) from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise TollbarError("must be a regular file for a component to give it to others", where=str(path))
    with os.fdopen(handle, "rb") as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise TollbarError(
            f"files of a component for others must be at most {MOST_GIVEN_BYTES >> 20} MiB", where=str(path)
        )
    return data


def take(bundle: Bundle, store: Path, gives: Sequence[str], sender: str) -> None:
    """Write the files that another machine's component gives into the folder `store`, which only the lab writes.

    That machine may be compromised: it can only send new plain files whose names match `gives`. Raises TollbarError for
    anything else.
    """
    left_bytes = MOST_GIVEN_BYTES
    if not isinstance(bundle, list) or not all(isinstance(entry, dict) for entry in bundle):
        raise TollbarError("the answer is not a list of files")
    if len(bundle) > MOST_GIVEN:
        raise TollbarError(f"{len(bundle)} files came back; the limit is {MOST_GIVEN}")
    for entry in bundle:
        folder, _, name = str(entry.get("path")).rpartition("/")
        is_name = name.isprintable() and len(name.encode()) <= MOST_OF_NAME
        if folder != store.name or not is_given(name, gives) or "link" in entry or not is_name:
            raise TollbarError(f"a file came back that the component does not give: {entry.get('path')!r}")
        try:
            data = base64.b64decode(entry["data"], validate=True).replace(sender.encode(), str(store.parent).encode())
        except (KeyError, TypeError, ValueError):
            raise TollbarError(f"a file came back that cannot be read: {entry['path']}") from None
        left_bytes -= len(data)
        if left_bytes < 0:
            raise TollbarError(f"more than {MOST_GIVEN_BYTES // 1024**2} MiB of files came back")
        store.mkdir(mode=0o700, exist_ok=True)
        path = store / name
        if not os.path.lexists(path):
            write(path, data, 0o600)


def renamed(said: Any, one: str, other: str) -> Any:
    """Return the value with one directory's name replaced by another in all of its texts."""
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


def _entry(path: Path, directory: Path) -> dict[str, Any]:
    about = path.lstat()
    where = {"path": str(path.relative_to(directory))}
    if stat.S_ISLNK(about.st_mode):
        return {**where, "link": os.readlink(path)}
    if not stat.S_ISREG(about.st_mode):
        raise TollbarError("is a socket or a device; its users must be on the same machine", where=str(path))
    data = base64.b64encode(plain_file(path, MOST_GIVEN_BYTES)).decode()
    return {**where, "mode": stat.S_IMODE(about.st_mode), "data": data}


def _make_folders(folder: Path, directory: Path) -> None:
    """Make folders like the sandbox's own: others can enter them, and only the owner may list them."""
    for part in reversed([folder, *folder.parents]):
        if part.is_relative_to(directory) and not part.exists():
            part.mkdir()
            part.chmod(0o711)
