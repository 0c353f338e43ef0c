"""Packages of other versions: verified by the package manager, unpacked into the cache, never installed."""

from __future__ import annotations

import ast
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tollbar.catalog import runners
from tollbar.catalog.runners import NotBuilt
from tollbar.core.errors import TollbarError
from tollbar.core.files import SYSTEM_CACHE, cache_folder, write
from tollbar.lab.servers.sandbox import others_can_pass

# Some tens of megabytes over a slow line.
LIMIT_S = 300.0
# apt verifies what it fetches, except from a source that its user marked as trusted. Its own caches are quiet.
APT = (
    "apt-get",
    *("-o", "APT::Get::AllowUnauthenticated=false"),
    *("-o", "Acquire::AllowInsecureRepositories=false"),
    *("-o", "Acquire::AllowWeakRepositories=false"),
    *("-o", "Dir::Cache::pkgcache="),
    *("-o", "Dir::Cache::srcpkgcache="),
    "-q",
)
# "libnode108 (= 18.20.4+dfsg-1~deb12u3)"
_EXACTLY = re.compile(r"([a-z0-9][a-z0-9+.-]+)(?::\w+)? \(= ([^)]+)\)")
# Before where its log is, and how a connection failed.
NPM_ERRORS = ("npm error notarget ", "npm error FetchError: ", "npm error ")
_NPM_MACHINES = {"x86_64": "x64", "aarch64": "arm64"}
GO_ERRORS = ("go: download ", "go: ")
# By the checksum database that `go` has by itself, whatever the user leaves out of it: an empty variable is one that is
# not set, for which `go` looks into the file of its settings.
GO_UNVERIFIED = ("GOSUMDB", "GONOSUMDB", "GONOSUMCHECK", "GOPRIVATE", "GOINSECURE")
GO_VERIFIES = {"GOENV": "off", "GOFLAGS": "-modcacherw"}
GO_ITSELF = {"GOENV": "off", "GOTOOLCHAIN": "local"}
PIP = ("-m", "pip", "--disable-pip-version-check", "--no-input")
# Settings of pip by which it takes files that its index did not name, or an index that no certificate vouches for.
UNVERIFIED = ("find-links", "trusted-host", "extra-index-url")
# Program that runs a package's own version by the runner of its platform, a study's `python`.
RUNNER = """#!{python} -IB
import sys
sys.path[:0] = [{folder!r}, {runner!r}]
import runner
runner.PACKAGES = ({package!r},)
runner.run()
"""


def package(name: str, version: str) -> Path:
    """Return the folder of an unpacked Debian package of this version.

    Packages on which it depends in exactly one version are included: they are parts of the same build. Raises
    TollbarError.
    """
    said = f"{name}={version}"

    def fetch(folder: Path) -> None:
        own = _run(("dpkg", "--print-architecture"), said, folder)
        wanted = [said]
        for one in wanted:
            _run(
                (*APT, "download", one),
                said,
                folder,
                ("E:",),
                hint=f"one `=` names a Debian package; a wheel is `{name}=={version}`",
            )
            archive = _only(folder, "*.deb", said)
            theirs, needed = (
                _run(("dpkg-deb", "--field", str(archive), field), said, folder)
                for field in ("Architecture", "Depends")
            )
            if theirs not in (own, "all"):
                raise TollbarError(f"is built for {theirs}; it must be for {own} or for all architectures", where=said)
            wanted += [f"{part}={of}" for part, of in _EXACTLY.findall(needed) if f"{part}={of}" not in wanted]
            _run(("dpkg-deb", "--extract", str(archive), str(folder)), said, folder)
            archive.unlink()
        without_rights(folder)
        lead_inside(folder)

    # Not `packages`, where earlier versions kept programs with their rights.
    return _kept("debian", said, fetch)


def without_rights(folder: Path) -> None:
    """Remove set-user and set-group bits: unpacked by root, such a program would run as root for every user."""
    for path in folder.rglob("*"):
        if not path.is_symlink():
            path.chmod(stat.S_IMODE(path.lstat().st_mode) & ~(stat.S_ISUID | stat.S_ISGID))


def lead_inside(folder: Path) -> None:
    """Point links with an absolute path to the unpacked file of the package."""
    for path in folder.rglob("*"):
        if path.is_symlink() and (to := os.readlink(path)).startswith("/") and os.path.lexists(f"{folder}{to}"):
            path.unlink()
            path.symlink_to(os.path.relpath(f"{folder}{to}", path.parent))


def wheel(name: str, version: str) -> Path:
    """Return the folder of an unpacked wheel of this version, without its dependencies.

    Raises TollbarError.
    """
    said = f"{name}=={version}"

    def fetch(folder: Path) -> None:
        _pip(sys.executable, ("download", "--no-deps", "--only-binary", ":all:", "--dest", str(folder), said), folder)
        archive = _only(folder, "*.whl", said)
        shutil.unpack_archive(archive, folder, "zip")
        # The archive marks its programs, and the unpacking code ignores that.
        with zipfile.ZipFile(archive) as packed:
            for info in packed.infolist():
                path = folder / info.filename
                # The unpacking code skips names that lead out of the folder.
                if (
                    (info.external_attr >> 16) & 0o111
                    and path.is_file()
                    and path.resolve().is_relative_to(folder.resolve())
                ):
                    path.chmod(0o755)
        archive.unlink()

    return _kept("wheels", said, fetch)


def node(version: str) -> Path:
    """Return the folder of a build of Node, from the npm registry for this machine.

    Raises TollbarError.
    """
    said = f"node@{version}"

    def fetch(folder: Path) -> None:
        machine = os.uname().machine
        named = f"node-linux-{_NPM_MACHINES.get(machine, machine)}@{version}"
        _run(("npm", "pack", "--loglevel=error", named), said, folder, NPM_ERRORS)
        archive = _only(folder, "*.tgz", said)
        shutil.unpack_archive(archive, folder, "gztar", filter="data")
        archive.unlink()

    return _kept("npm", said, fetch)


def go(version: str) -> Path:
    """Return a Go toolchain: the user's `go` of this version, else the folder into which it fetched the version.

    Go verifies what it fetches. Raises TollbarError.
    """
    said = f"go@{version}"
    # The user's own `go` may be upgraded, so it is not cached.
    if own := shutil.which("go"):
        own = os.path.abspath(own)
        if f"go{version}" in _run((own, "version"), said, Path("/"), GO_ERRORS, {**os.environ, **GO_ITSELF}).split():
            return Path(own)

    def fetch(folder: Path) -> None:
        proxy = _run(("go", "env", "GOPROXY"), said, folder, GO_ERRORS)
        user = {name: value for name, value in os.environ.items() if name not in GO_UNVERIFIED}
        asked = {**user, **GO_VERIFIES, "GOTOOLCHAIN": f"go{version}", "GOMODCACHE": str(folder)}
        asked |= {"GOPROXY": proxy} if proxy else {}
        found = _run(("go", "version"), said, folder, GO_ERRORS, asked)
        if f"go{version}" not in found.split() or not any(folder.rglob("bin/go")):
            # A version before 1.21 knows no other toolchain than itself.
            raise TollbarError(
                f"cannot be fetched: the installed `go` printed {found or 'no version'}; it must be 1.21 or later",
                where=said,
            )

    return _kept("go-toolchains", said, fetch)


def python_packages() -> tuple[str, ...]:
    """Return the Python packages with a module of the runner, which calls them directly."""
    modules = sorted(runners.all_platforms()["python"].folder.glob("with_*.py"))
    return tuple(module.stem.removeprefix("with_").replace("_", "-") for module in modules)


def password_packages() -> tuple[str, ...]:
    """Return those packages of Python of which the default of a password hash is measured."""
    folder = runners.all_platforms()["python"].folder
    modules = {name: folder / f"with_{name.replace('-', '_')}.py" for name in python_packages()}
    return tuple(name for name, path in modules.items() if "def password_default" in path.read_text("utf-8"))


def python_runner(name: str, version: str) -> Path:
    """Return a runner program for this version of a Python package.

    Raises TollbarError.
    """
    said = f"{name}=={version}"
    platform = runners.all_platforms()["python"]
    try:
        python, *_, program = runners.command_of(platform)
    except NotBuilt as error:
        raise TollbarError(error.reason, where=said) from error

    def fetch(folder: Path) -> None:
        # Dependencies are included, for the interpreter that will run it.
        _pip(python, ("install", "--only-binary", ":all:", "--target", str(folder), said), folder)

    # Compiled modules depend on the interpreter.
    interpreter = _run((python, "-I", "-c", "import sys; print(sys.implementation.cache_tag)"), said, Path("/"))
    folder = _kept(f"python-{interpreter}", said, fetch)
    path = folder / "run-by-tollbar"
    text = RUNNER.format(python=python, folder=str(folder), runner=str(Path(program).parent), package=name)
    write(path, text.encode(), 0o755)
    return path


def kept_folder(kind: str, said: str) -> Path:
    """Return the folder for fetched or made things of this name.

    It is in the user's cache; for root in the system's, because root's own is closed to the accounts of its servers.
    Raises TollbarError if it cannot be made.
    """
    try:
        own = cache_folder()
        if os.geteuid() == 0 and not os.environ.get("XDG_CACHE_HOME") and not others_can_pass(Path.home()):
            own = SYSTEM_CACHE
        kept = own / "upgrades" / kind / said.replace("/", "_")
        kept.parent.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:
        hint = "set XDG_CACHE_HOME to a folder that you can write, for example `/var/tmp`"
        raise TollbarError(f"cannot be kept in the cache: {error}", where=said, hint=hint) from error
    return kept


def _kept(kind: str, said: str, fetch: Callable[[Path], None]) -> Path:
    """Return the folder, fetched now or before: it is complete or absent.

    Raises TollbarError.
    """
    kept = kept_folder(kind, said)
    if not os.path.exists(kept):
        with tempfile.TemporaryDirectory(dir=kept.parent, prefix=".", ignore_cleanup_errors=True) as half:
            folder = Path(half) / "whole"
            folder.mkdir()
            fetch(folder)
            if not kept.exists():
                os.rename(folder, kept)
    return kept


def _only(folder: Path, pattern: str, said: str) -> Path:
    """Return the fetched archive.

    Raises TollbarError for none, or several.
    """
    found = [*folder.glob(pattern)]
    if len(found) != 1:
        raise TollbarError(f"{len(found)} archives were fetched; one is needed", where=said, hint="name one version")
    return found[0]


def _pip(python: str, words: Sequence[str], folder: Path) -> None:
    """Fetch the package in the last word by pip, verified by the index's digests.

    Raises TollbarError.
    """
    *_, said = words
    configured = _run((python, *PIP, "config", "list"), said, folder)
    environment = pip_environment(words[0], configured, os.environ)
    _run((python, *PIP, "--quiet", *words), said, folder, ("ERROR:",), environment)


def pip_environment(command: str, configured: str, environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return the environment with the user's settings for this command of pip, without those that are UNVERIFIED.

    `configured` is the output of `pip config list`; the environment takes precedence over its files.
    """
    settings: dict[str, str] = {}
    for section in ("global", command):
        found = re.findall(rf"^{section}\.([\w-]+)=(.+)$", configured, re.MULTILINE)
        settings |= {f"PIP_{name.upper().replace('-', '_')}": str(ast.literal_eval(value)) for name, value in found}
    merged = {**settings, **environment, "PIP_CONFIG_FILE": os.devnull}
    unverified = [f"pip-{name}" for name in UNVERIFIED]
    return {name: value for name, value in merged.items() if name.lower().replace("_", "-") not in unverified}


def _run(
    words: Sequence[str],
    said: str,
    folder: Path,
    errors: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    hint: str | None = None,
) -> str:
    """Return the output of a package manager's command.

    Raises TollbarError with the first line that begins with one of `errors`, the marks of its errors, the best mark
    first.
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
        raise TollbarError(f"cannot be fetched: `{words[0]}` is not installed", where=said) from error
    except subprocess.TimeoutExpired as error:
        hint = "check the network connection, then repeat the command"
        raise TollbarError(f"was not fetched within {LIMIT_S:.0f} s", where=said, hint=hint) from error
    if done.returncode:
        lines = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        marked = [line.removeprefix(mark).strip() for mark in errors for line in lines if line.startswith(mark)]
        raise TollbarError(
            f"cannot be fetched: {(marked or lines or ['no reason was printed'])[0]}", where=said, hint=hint
        )
    return done.stdout.strip()
