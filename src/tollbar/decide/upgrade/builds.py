"""Other builds of servers and runtimes: each becomes a server or a platform next to the system's."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from tollbar.catalog import runners, servers
from tollbar.catalog.runners import Platform
from tollbar.catalog.servers import Server
from tollbar.core import wire
from tollbar.core.errors import TollbarError
from tollbar.core.files import SEARCH_PATH, write
from tollbar.decide.upgrade.fetching import kept_folder

_PROGRAM_FOLDERS = ("bin", "sbin")
RUNNERS = "runners"
# By its own libraries, where it has any; and of Go the toolchain that was asked for, not one that a setting names.
STARTED = """#!/bin/sh
libraries={libraries}
export GOTOOLCHAIN=local ${{libraries:+"LD_LIBRARY_PATH=$libraries"}}
exec {program} "$@"
"""
# Folders of a package with the libraries of its programs.
_LIBRARY_FOLDERS = ("usr/lib", "usr/lib/*-linux-gnu*")
# Longest end of a path in a name: sockets lie in folders with a server's name, and a socket's path has at most 107
# characters.
_MOST_LETTERS = 32

MOST_ENTRIES = 50_000
"""Limit of the entries of a build's folder: three times those of a Go toolchain. To search `/` would take minutes."""

Build = TypeVar("Build", Server, Platform)


def server_in(place: Path, said: str) -> Server | None:
    """Return the server in this file or folder as a server of its own; None where there is none.

    Its own programs and folders are used; missing ones are the system's. Raises TollbarError.
    """
    here = files_in(place)
    for server in servers.all_servers().values():
        program = _program(place, here, [name for one in server.components for name in one.programs])
        if program is None or server.build_of or len(server.components) > 1:
            continue
        made = _described(server.folder / "server.toml")
        (component,) = made["component"]
        tools = component.get("tools", {})
        component["program"] = [str(program)]
        component["tools"] = {tool: _beside(program, names) for tool, names in tools.items()}
        root = _root(program, place)
        places = {name: [*_moved(folders, root), *folders] for name, folders in server.places.items()}
        name = _slug(said)
        _stand_beside(server.folder, name, "server.toml", {**made, "build-of": server.name, "places": places})
        return _of(server.name, servers.all_servers()[name], said)
    return None


def runtime_in(place: Path, said: str) -> tuple[str, str, Path] | None:
    """Return the runtime in this file or folder: its platform, its build's spec, and its program; None: it has none.

    Its runner is built with it, with programs next to it, and with the system's others. Raises TollbarError.
    """
    here = files_in(place)
    for platform in runners.all_platforms().values():
        program = _program(place, here, [platform.runtime]) if platform.runtime else None
        if program is None or platform.runtime is None or platform.build_of:
            continue
        name = f"{platform.name}@{_slug(said).removeprefix(f'{platform.name}@')}"
        started = kept_folder("builds", name) / RUNNERS / name / platform.runtime
        by_it = {one: _beside(program, [one])[0] for one in platform.programs} | {platform.runtime: str(started)}
        made = {
            **_described(platform.folder / "runner.toml"),
            "build-of": platform.name,
            "programs": [*by_it.values()],
            **{key: [by_it.get(word, word) for word in getattr(platform, key)] for key in ("versions", "command")},
            "build": [[by_it.get(word, word) for word in step] for step in platform.build],
        }
        _stand_beside(platform.folder, name, "runner.toml", made)
        libraries = _libraries(_root(program, place))
        write(
            started, STARTED.format(libraries=shlex.quote(libraries), program=shlex.quote(str(program))).encode(), 0o755
        )
        _of(platform.name, runners.all_platforms()[name], said)
        return platform.name, name, program
    return None


def side_by_side(*libraries: Path) -> Path:
    """Return the first of these libraries in a folder of the cache that has copies of all of them.

    CMake puts libcrypto and libssl into folders of their own, where the loader finds neither by the other. The copies
    are made again where a library has changed.
    """
    described = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in libraries]
    folder = kept_folder("builds", f"pair-{hashlib.sha256(repr(described).encode()).hexdigest()[:16]}")
    folder.mkdir(exist_ok=True)
    for path in libraries:
        if not (folder / path.name).exists():
            write(folder / path.name, path.read_bytes(), 0o755)
    return folder / libraries[0].name


def _of(name: str, found: Build, said: str) -> Build:
    """Return the build, after a check that it is one of the named server or platform.

    Raises TollbarError where its own name is taken.
    """
    if found.build_of != name:
        what = f"this build of {name} needs the name `{found.name}`, which {found.folder} has"
        raise TollbarError(what, where=said, hint="name the build by its path, or remove that folder from TOLLBAR_PATH")
    return found


def _described(file: Path) -> dict[str, Any]:
    return tomllib.loads(file.read_text("utf-8"))


def _stand_beside(source: Path, name: str, file: str, made: Mapping[str, Any]) -> None:
    """Copy a folder of data under this name, with another description, onto the search path of this process."""
    root = kept_folder("builds", name)
    folder = root / source.parent.name / name
    shutil.copytree(source, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    tables = {key: value for key, value in made.items() if isinstance(value, dict) or key == "component"}
    text = wire.text_of({"": {key: value for key, value in made.items() if key not in tables}, **tables})
    (folder / file).write_text(text, "utf-8")
    paths = os.environ.get(SEARCH_PATH, "").split(os.pathsep)
    os.environ[SEARCH_PATH] = os.pathsep.join(dict.fromkeys([*filter(None, paths), str(root)]))


def files_in(folder: Path) -> Sequence[Path]:
    """Return the files below a folder, and those in its links named `bin` or `sbin`; none for a file.

    Raises TollbarError for a folder with more entries than any build has.
    """
    found: list[Path] = []
    entries = 0
    for parent, folders, names in os.walk(folder):
        linked = [one for one in folders if one in _PROGRAM_FOLDERS and os.path.islink(f"{parent}/{one}")]
        names += [f"{one}/{name}" for one in linked for name in os.listdir(f"{parent}/{one}")]
        entries += len(folders) + len(names)
        if entries > MOST_ENTRIES:
            what = f"has more than {MOST_ENTRIES:,} files and folders, the limit of a build"
            raise TollbarError(what, where=str(folder), hint="name the build's own folder, or the file itself")
        found += [Path(parent, name) for name in names]
    return found


def _program(place: Path, here: Sequence[Path], names: Sequence[str]) -> Path | None:
    """Return the program with one of these names, or a version after it, that is this file or lies in this folder.

    `here` are the files of the folder.
    """
    alike = re.compile(rf"({'|'.join(map(re.escape, names)) or '(?!)'})[\d.]*")
    if os.path.isfile(place):
        return place.absolute() if alike.fullmatch(place.name) and os.access(place, os.X_OK) else None
    found = (path for path in here if path.parent.name in _PROGRAM_FOLDERS and alike.fullmatch(path.name))
    programs = [path.absolute() for path in found if os.path.isfile(path)]
    # The nearest, and of a runtime that has several names the plain one.
    return min(programs, key=lambda path: (len(path.parts), len(path.name)), default=None)


def _beside(program: Path, names: Sequence[str]) -> list[str]:
    """Return the paths of these programs that lie next to this one; without any, their names."""
    found = [str(program.parent / name) for name in names if os.path.isfile(program.parent / name)]
    return found or [*names]


def _root(program: Path, place: Path) -> Path:
    """Return the folder that replaces `/`, or the prefix, of the program's build."""
    return place.absolute() if os.path.isdir(place) else program.parent.parent


def _moved(folders: Sequence[str], root: Path) -> list[str]:
    """Return the folders that exist under this root, by their path or their last name."""
    tried = [root / end for folder in folders for end in (folder.lstrip("/"), Path(folder).name)]
    return [str(path) for path in dict.fromkeys(tried) if path.is_dir()]


def _libraries(root: Path) -> str:
    """Return the library folders of an unpacked package, as a search path for the loader."""
    found = [path for pattern in _LIBRARY_FOLDERS for path in sorted(root.glob(pattern)) if any(path.glob("lib*.so*"))]
    return os.pathsep.join(map(str, found))


def _slug(said: str) -> str:
    """Return the name of a folder for a build; one for a path has a digest, so that two places never share it."""
    readable = re.sub(r"[^A-Za-z0-9.+~=@_-]+", "-", said).strip("-.")
    if os.sep not in said:
        return readable
    digest = hashlib.sha256(os.path.realpath(said).encode()).hexdigest()[:8]
    return f"{readable[-_MOST_LETTERS:]}-{digest}".lstrip("-.")
