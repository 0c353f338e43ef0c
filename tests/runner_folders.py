"""The runners of other platforms: each folder of `src/tollbar/runners`, built by its `runner.toml`."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent / "src" / "tollbar" / "runners"
BUILD_LIMIT_S = 280


@dataclass(frozen=True)
class Platform:
    """One folder, as its `runner.toml` describes it."""

    folder: Path
    description: Mapping[str, Any]

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def packages(self) -> list[str]:
        return list(self.description["packages"])

    @property
    def missing(self) -> list[str]:
        """Programs that it needs and that are not on the path."""
        return [program for program in self.description["programs"] if shutil.which(program) is None]


def platforms() -> Iterator[Platform]:
    """Every folder with a `runner.toml`."""
    for path in sorted(ROOT.glob("*/runner.toml")):
        yield Platform(path.parent, tomllib.loads(path.read_text("utf-8"))["runner"])


@cache
def command_of(folder: Path) -> tuple[str, ...]:
    """The command that runs it, once it is built; a build is kept by what the folder holds."""
    description = tomllib.loads((folder / "runner.toml").read_text("utf-8"))["runner"]
    versions = subprocess.run(description["versions"], capture_output=True, check=True).stdout
    state = hashlib.sha256(versions)
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts):
        state.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    kept = Path(tempfile.gettempdir()) / f"tollbar-test-builds-{os.getuid()}"
    kept.mkdir(exist_ok=True)
    build = kept / f"{folder.name}-{state.hexdigest()[:16]}"
    environment = {name: _filled(text, folder, build) for name, text in description.get("environment", {}).items()}
    with open(f"{build}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (done := Path(f"{build}.done")).exists():
            shutil.rmtree(build, ignore_errors=True)
            build.mkdir()
            for step in description["build"]:
                words = [_filled(word, folder, build) for word in step]
                ran = subprocess.run(
                    words, cwd=build, env={**os.environ, **environment}, capture_output=True, timeout=BUILD_LIMIT_S
                )
                assert 0 == ran.returncode, f"{words}: {(ran.stdout + ran.stderr).decode()[-2000:]}"
            done.touch()
    words = [_filled(word, folder, build) for word in description["command"]]
    return ("env", *(f"{name}={value}" for name, value in environment.items()), *words) if environment else tuple(words)


def _filled(text: str, folder: Path, build: Path) -> str:
    return text.replace("{folder}", str(folder)).replace("{build}", str(build))
