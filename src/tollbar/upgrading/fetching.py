"""Packages of other versions: verified by the package manager, unpacked into the cache, never installed."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
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
# As apt verifies it: a source that its user calls trusted is taken at its word. Its own caches are left alone.
APT = (
    "apt-get",
    *("-o", "APT::Get::AllowUnauthenticated=false"),
    *("-o", "Acquire::AllowInsecureRepositories=false"),
    *("-o", "Acquire::AllowWeakRepositories=false"),
    *("-o", "Dir::Cache::pkgcache="),
    *("-o", "Dir::Cache::srcpkgcache="),
    "-q",
)
PIP = ("-m", "pip", "--disable-pip-version-check", "--no-input")
# Settings of pip by which it takes files that its index did not name, or an index that no certificate vouches for.
UNVERIFIED = ("find-links", "trusted-host", "extra-index-url")
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
        archive = _only(folder, "*.deb", said)
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
            (of / "beds" / said / "bed.toml").write_text(_with_program(text, programs[0]), "utf-8")
            paths = os.environ.get(SEARCH_PATH, "").split(os.pathsep)
            os.environ[SEARCH_PATH] = os.pathsep.join(dict.fromkeys([*filter(None, paths), str(of)]))
            return beds.all_beds()[said]
    return None


def _with_program(text: str, program: Path) -> str:
    """A bed's description with this program: by its whole path it is found before one of the user's own path."""
    line = f"program = {json.dumps([str(program)], ensure_ascii=False)}"
    return re.sub(r"^program .*$", lambda _: line, text, flags=re.MULTILINE)


def wheel(name: str, version: str) -> Path:
    """The folder that a wheel of this version is unpacked in, without what it depends on. Raises TollbarError."""
    said = f"{name}=={version}"

    def fetch(folder: Path) -> None:
        _pip(sys.executable, ("download", "--no-deps", "--only-binary", ":all:", "--dest", str(folder), said), folder)
        archive = _only(folder, "*.whl", said)
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
        _pip(python, ("install", "--only-binary", ":all:", "--target", str(folder), said), folder)

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
    if not os.path.exists(kept):
        with tempfile.TemporaryDirectory(dir=kept.parent, prefix=".", ignore_cleanup_errors=True) as half:
            folder = Path(half) / "whole"
            folder.mkdir()
            fetch(folder)
            if not kept.exists():
                os.rename(folder, kept)
    return kept


def _only(folder: Path, pattern: str, said: str) -> Path:
    """The archive that was fetched. Raises TollbarError for none, or several."""
    found = [*folder.glob(pattern)]
    if len(found) != 1:
        raise TollbarError(f"one archive was asked for, and {len(found)} came", where=said, hint="name one version")
    return found[0]


def _pip(python: str, words: Sequence[str], folder: Path) -> None:
    """Has pip fetch what the last word names, as its index has it: by the index's digests. Raises TollbarError."""
    *_, said = words
    configured = _run((python, *PIP, "config", "list"), said, folder)
    environment = pip_environment(words[0], configured, os.environ)
    _run((python, *PIP, "--quiet", *words), said, folder, "ERROR:", environment)


def pip_environment(command: str, configured: str, environment: Mapping[str, str]) -> Mapping[str, str]:
    """The environment in which this command of pip has its user's settings, without those that are UNVERIFIED.

    `configured` is what `pip config list` prints, of which files have what the environment does not say.
    """
    settings: dict[str, str] = {}
    for section in ("global", command):
        found = re.findall(rf"^{section}\.([\w-]+)=(.+)$", configured, re.MULTILINE)
        settings |= {f"PIP_{name.upper().replace('-', '_')}": str(ast.literal_eval(value)) for name, value in found}
    merged = {**settings, **environment, "PIP_CONFIG_FILE": os.devnull}
    unverified = [f"pip-{name}" for name in UNVERIFIED]
    return {name: value for name, value in merged.items() if name.lower().replace("_", "-") not in unverified}


def _run(
    words: Sequence[str], said: str, folder: Path, errors: str = "", environment: Mapping[str, str] | None = None
) -> str:
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
            env={**(environment or os.environ), "LC_ALL": "C.UTF-8"},
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
