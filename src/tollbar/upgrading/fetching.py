"""Packages of other versions: verified by the package manager, unpacked into the cache, never installed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from tollbar import beds, runners
from tollbar.beds import Bed
from tollbar.errors import TollbarError
from tollbar.files import SEARCH_PATH, cache_folder, write
from tollbar.runners import NotBuilt

PYTHON_PACKAGES = ("cryptography", "pycryptodome")
"""Those of Python that their own calls drive, which hold their cryptography in themselves."""
# Some tens of megabytes over a slow line.
LIMIT_S = 300.0
# The package manager's chain of signatures decides: nothing is taken without it, and its own caches are left alone.
APT = (
    "apt-get",
    *("-o", "APT::Get::AllowUnauthenticated=false"),
    *("-o", "Acquire::AllowInsecureRepositories=false"),
    *("-o", "Acquire::AllowWeakRepositories=false"),
    *("-o", "Dir::Cache::pkgcache="),
    *("-o", "Dir::Cache::srcpkgcache="),
    "-q",
)
PIP = ("-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet")
# Runs a package's own version by the runner of its platform, which is what a study's `python` is.
RUNNER = """#!{python} -IB
import sys
sys.path[:0] = [{folder!r}, {runner!r}]
import runner
runner.PACKAGES = ({package!r},)
runner.run()
"""


def package(name: str, version: str) -> Path:
    """The folder that a Debian package of this version is unpacked in. Raises TollbarError."""
    said = f"{name}={version}"

    def fetch(folder: Path) -> None:
        _run((*APT, "download", said), said, folder, "E:")
        (archive,) = folder.glob("*.deb")
        own = _run(("dpkg", "--print-architecture"), said, folder)
        theirs = _run(("dpkg-deb", "--field", str(archive), "Architecture"), said, folder)
        if theirs not in (own, "all"):
            raise TollbarError(f"is built for {theirs}, and this machine is {own}", where=said)
        _run(("dpkg-deb", "--extract", str(archive), str(folder)), said, folder)
        archive.unlink()

    return _kept("packages", said, fetch)


def server_in(folder: Path, said: str) -> Bed | None:
    """The server of an unpacked package as a bed of its own, which stands beside the one of the system.

    None where it holds none that is one program with its files.
    """
    for bed in beds.all_beds().values():
        (component, *others), places = bed.components, bed.places
        named = [path for name in component.programs for path in folder.rglob(name) if path.is_file()]
        programs = [path for path in named if path.parent.name in ("bin", "sbin")]
        if programs and not (others or component.tools or places):
            of = folder.with_name(f"{folder.name}.beds")
            shutil.copytree(bed.folder, of / "beds" / said, dirs_exist_ok=True)
            text = (bed.folder / "bed.toml").read_text("utf-8")
            # A file by its whole path is found before one of the user's own path.
            own = re.sub(r"^program .*$", f"program = {json.dumps([str(programs[0])])}", text, flags=re.MULTILINE)
            (of / "beds" / said / "bed.toml").write_text(own, "utf-8")
            paths = os.environ.get(SEARCH_PATH, "").split(os.pathsep)
            os.environ[SEARCH_PATH] = os.pathsep.join(dict.fromkeys([*filter(None, paths), str(of)]))
            return beds.all_beds()[said]
    return None


def wheel(name: str, version: str) -> Path:
    """The folder that a wheel of this version is unpacked in, without what it depends on. Raises TollbarError."""
    said = f"{name}=={version}"

    def fetch(folder: Path) -> None:
        # As pip verifies it: by the index's digests, over TLS.
        download = ("download", "--no-deps", "--only-binary", ":all:", "--dest", str(folder), said)
        _run((sys.executable, *PIP, *download), said, folder, "ERROR:")
        (archive,) = folder.glob("*.whl")
        shutil.unpack_archive(archive, folder, "zip")
        archive.unlink()

    return _kept("wheels", said, fetch)


def python_runner(name: str, version: str) -> Path:
    """A program that performs this version of a package of Python, as a runner. Raises TollbarError."""
    said = f"{name}=={version}"
    platform = runners.all_platforms()["python"]
    try:
        python, *_, program = runners.command_of(platform)
    except NotBuilt as error:
        raise TollbarError(error.reason, where=said) from error

    def fetch(folder: Path) -> None:
        # With what it depends on, for the interpreter that will run it.
        install = ("install", "--only-binary", ":all:", "--target", str(folder), said)
        _run((python, *PIP, *install), said, folder, "ERROR:")

    folder = _kept("python", said, fetch)
    path = folder / "run-by-tollbar"
    text = RUNNER.format(python=python, folder=str(folder), runner=str(Path(program).parent), package=name)
    write(path, text.encode(), 0o755)
    return path


def _kept(kind: str, said: str, fetch: Callable[[Path], None]) -> Path:
    """What was fetched before, or now: there whole or not at all. Raises TollbarError."""
    try:
        kept = cache_folder() / "upgrades" / kind / said.replace("/", "_")
        kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:
        raise TollbarError(f"cannot be kept: {error}", where=said, hint="set XDG_CACHE_HOME") from error
    if not kept.exists():
        with tempfile.TemporaryDirectory(dir=kept.parent, prefix=".", ignore_cleanup_errors=True) as half:
            folder = Path(half) / "whole"
            folder.mkdir()
            fetch(folder)
            if not kept.exists():
                os.rename(folder, kept)
    return kept


def _run(words: Sequence[str], said: str, folder: Path, errors: str = "") -> str:
    """What a command of the package manager prints. Raises TollbarError with the line that says what is wrong.

    Of the lines that begin with `errors`, which is how it marks them, the first is that.
    """
    try:
        done = subprocess.run(
            words,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
        )
    except FileNotFoundError as error:
        raise TollbarError(f"cannot be fetched: there is no {words[0]} here", where=said) from error
    except subprocess.TimeoutExpired as error:
        raise TollbarError(f"not fetched within {LIMIT_S:.0f} s", where=said, hint="is there a network?") from error
    if done.returncode:
        lines = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        marked = [line.removeprefix(errors).strip() for line in lines if line.startswith(errors)]
        raise TollbarError(f"cannot be fetched: {(marked or lines or ['it does not say why'])[0]}", where=said)
    return done.stdout.strip()
