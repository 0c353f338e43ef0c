"""Runners of other platforms: a folder each, built with the platform's own tool when a study first uses it.

`runner.toml` has the folder's requirements, its build steps and its command (docs/runners.md). A build is kept in the
user's cache, under a key of all that it depends on, and only if it is complete.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field
from pydantic.dataclasses import dataclass

from tollbar.core import units, wire
from tollbar.core.files import cache_folder, folders_with
from tollbar.core.records import Outcome
from tollbar.core.runner import start_engine
from tollbar.core.wire import KEYS, Strict

# Maven and pip fetch some tens of megabytes, and compile for half a minute on a busy machine.
BUILD_LIMIT_S = 600.0
VERSION_LIMIT_S = 30.0
# A build that was unused for this time is removed when another one is made.
UNUSED_LIMIT_S = 90 * 86400.0
# The guard itself gives up after ten seconds.
KILLED_S = 12.0


@dataclass(config=KEYS, frozen=True, slots=True, eq=False, kw_only=True)
class Platform(Strict):
    """Platform in one folder, as its `runner.toml` describes it."""

    folder: Path
    title: str
    packages: tuple[str, ...] = Field(min_length=1)
    """Packages of its providers; the first is the default."""
    programs: tuple[str, ...] = Field(min_length=1)
    """Programs that must be on the user's path."""
    install: str
    """Command that would install the programs."""
    versions: tuple[str, ...] = Field(min_length=1)
    """Command that prints the versions on which a build depends."""
    build: tuple[tuple[str, ...], ...]
    command: tuple[str, ...] = Field(min_length=1)
    ready: Annotated[float, BeforeValidator(units.seconds)]
    """Approximate time to get ready and warm, in seconds, for a plan's estimate."""
    libcrypto: str | None = None
    """Library beneath it, if its build brings one that can also be called directly."""
    runtime: str | None = None
    """Program that is the runtime, which another build can replace."""
    build_of: str | None = None
    """Platform that this is another build of, and that an upgrade compares it with."""

    @property
    def name(self) -> str:
        """Name of its folder, which is the kind of its providers."""
        return self.folder.name

    @property
    def lacks(self) -> str | None:
        """Reason why it is not available here, with a remedy; None if it is."""
        missing = [program for program in self.programs if shutil.which(program) is None]
        if not missing:
            return None
        return f"{self.title} needs {', '.join(missing)}; to install it: {self.install}"


class NotBuilt(Exception):
    """Raised for a runner that cannot run: `unsupported` if its platform is missing, else `failed` or `timed-out`."""

    def __init__(self, outcome: Outcome, reason: str) -> None:
        self.outcome = outcome
        self.reason = reason
        super().__init__(f"{outcome}: {reason}")


def all_platforms() -> Mapping[str, Platform]:
    """Return every platform that ships or is on the user's search path, by name."""
    return {name: read(folder) for name, folder in folders_with("runner.toml", Path(__file__).parent).items()}


@cache
def read(folder: Path) -> Platform:
    """Return the platform in this folder. Raises TollbarError with the file, the key and the nearest valid one."""
    return wire.read(folder / "runner.toml", Platform, folder=folder)


def is_built(platform: Platform) -> bool:
    """Return whether its command is available without a build."""
    with suppress(NotBuilt):
        return not platform.build or _mark(_build_folder(platform)).exists()
    return False


def kept_libcryptos() -> Mapping[str, str]:
    """Return the libcryptos of existing builds, by platform."""
    found = {}
    for platform in all_platforms().values():
        # Without a home, or with another user's, nothing is kept.
        with suppress(RuntimeError, OSError):
            builds = cache_folder().glob(f"runners/{platform.name}-*/.built") if platform.libcrypto else ()
            for mark in sorted(builds, key=lambda mark: mark.stat().st_mtime):
                (path,) = _filled([str(platform.libcrypto)], platform, mark.parent)
                # Some ways of building do not bring it.
                if os.path.exists(path):
                    found[platform.name] = path
    return found


def command_of(platform: Platform) -> tuple[str, ...]:
    """Return the command that runs it, after building it if necessary. Raises NotBuilt."""
    if platform.lacks:
        raise NotBuilt(Outcome.UNSUPPORTED, f"not available here: {platform.lacks}")
    build = _build_folder(platform)
    if platform.build:
        _ensure(platform, build)
    return tuple(_filled(platform.command, platform, build))


def _build_folder(platform: Platform) -> Path:
    """Return the folder of its build, existing or not. Raises NotBuilt."""
    try:
        versions = _said(platform.versions, os.environ.get("PATH", os.defpath))
        kept = cache_folder() / "runners"
        kept.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise NotBuilt(Outcome.FAILED, f"the runner of {platform.title} cannot be built: {error}") from error
    except RuntimeError as error:
        reason = f"the runner of {platform.title} has no folder to be built in: {error}; set XDG_CACHE_HOME"
        raise NotBuilt(Outcome.FAILED, reason) from error
    depends_on = hashlib.sha256(versions)
    for path in sorted(path for path in platform.folder.rglob("*") if path.is_file() and path.suffix != ".pyc"):
        depends_on.update(path.relative_to(platform.folder).as_posix().encode() + path.read_bytes())
    return kept / f"{platform.name}-{depends_on.hexdigest()[:16]}"


@cache
def _said(versions: tuple[str, ...], path: str) -> bytes:
    """Return the output of this command with this path, cached for all packages of a platform.

    The next `tollbar` finds a toolchain that is installed meanwhile. Raises OSError, SubprocessError.
    """
    return subprocess.run(
        versions,
        env={**os.environ, "PATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=VERSION_LIMIT_S,
        check=True,
    ).stdout


def _mark(build: Path) -> Path:
    """Return the file that marks a complete build, and the time of its last use."""
    return build / ".built"


def _ensure(platform: Platform, build: Path) -> None:
    """Make the build, unless it exists. Raises NotBuilt."""
    with open(f"{build}.lock", "w") as lock:
        # Two runs may need the same build, and only one makes it.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _mark(build).exists():
            _remove_unused(build.parent)
            logging.getLogger("tollbar").info("building the runner of %s, once", platform.title)
            # An earlier attempt may have left an incomplete build.
            shutil.rmtree(build, ignore_errors=True)
            build.mkdir()
            deadline = time.monotonic() + BUILD_LIMIT_S
            for step in platform.build:
                _run(_filled(step, platform, build), build, deadline, platform)
        _mark(build).touch()


def _remove_unused(folder: Path) -> None:
    for mark in folder.glob("*/.built"):
        with suppress(OSError):
            if time.time() - mark.stat().st_mtime > UNUSED_LIMIT_S:
                shutil.rmtree(mark.parent)


def _run(words: Sequence[str], build: Path, deadline: float, platform: Platform) -> None:
    """Run one step in the build's folder. It ends with the lab, together with its children. Raises NotBuilt."""
    # `with_suffix` would replace the end of a version in the name.
    log = build.with_name(f"{build.name}.log")
    failed = f"the runner of {platform.title} cannot be built: {Path(words[0]).name}"
    guarded = ["guard", "--tree", "--child-of", str(os.getpid()), "--", *words]
    with open(log, "wb") as output:
        process = start_engine(
            guarded, cwd=build, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    try:
        status = process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise NotBuilt(Outcome.TIMED_OUT, f"{failed} took longer than {BUILD_LIMIT_S:.0f} s; see {log}") from None
    finally:
        # The guard asks the step to end at the first SIGTERM, and kills it at the second.
        for limit_s in (1.0, KILLED_S):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(limit_s)
    if status != 0:
        last = log.read_text("utf-8", errors="replace").strip().splitlines()[-1:]
        reason = ": ".join([f"{failed} ended with status {status}", *last])
        raise NotBuilt(Outcome.FAILED, f"{reason} (all of it: {log})")


def _filled(words: Sequence[str], platform: Platform, build: Path) -> list[str]:
    return [word.replace("{folder}", str(platform.folder)).replace("{build}", str(build)) for word in words]
