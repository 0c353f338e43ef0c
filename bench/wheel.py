"""Wheel: installed alone, as a user without a toolchain has it, and asked three questions."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
import venv
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from bench.figures import Figure, unmeasured

ROOT = Path(__file__).parents[1]
# A system without the toolchains and servers of this one.
PLAIN_PATH = "/usr/bin:/bin"
GOAL_S = 20
QUESTIONS = (
    ("digest", "sha-256", "blake3"),
    ("tls", "tls-1.3", "server=embedded", "certificate=ecdsa-p256,rsa-2048"),
    ("storage", "plaintext", "aes-256-gcm", "op=insert"),
)
PROGRAMS = re.compile(r"/tollbar-(?:engine|primitives|services)$")
LIMIT_S = 300


def figures() -> Iterator[Figure]:
    """Yield the size of the wheel, its oldest glibc, and the time to the first answer of each question."""
    with tempfile.TemporaryDirectory(prefix="tollbar-wheel-") as name:
        folder = Path(name)
        try:
            wheel = built(folder)
        except subprocess.CalledProcessError as error:
            yield unmeasured("wheel", error)
            return
        yield Figure("wheel: size", "", f"{wheel.stat().st_size / 1e6:.0f} MB", None)
        yield Figure("wheel: oldest glibc", "", oldest_glibc(wheel, folder), None)
        tollbar = installed(wheel, folder / "environment")
        # The first question pays for the cache of a new user.
        for words in QUESTIONS:
            took_s = first_answer_s(tollbar, words, folder / "home")
            here = "no answer" if took_s is None else f"{took_s:.1f} s"
            met = took_s is not None and took_s <= GOAL_S
            yield Figure(f"wheel: first line of `ask {' '.join(words)}`", f"≤ {GOAL_S} s", here, met)


def built(folder: Path) -> Path:
    """Build the wheel by the compilers of `make setup`, and return its path."""
    subprocess.run(["make", "wheel", f"WHEELS={folder}"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    (wheel,) = folder.glob("*.whl")
    return wheel


def installed(wheel: Path, environment: Path) -> Path:
    """Install the wheel and its locked dependencies into a new environment, and return its `tollbar`."""
    venv.create(environment, with_pip=True)
    pip: list[str | Path] = [environment / "bin" / "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, "--require-hashes", "-r", ROOT / "requirements.lock"], check=True)
    subprocess.run([*pip, "--no-deps", wheel], check=True)
    return environment / "bin" / "tollbar"


def first_answer_s(tollbar: Path, words: tuple[str, ...], home: Path) -> float | None:
    """Return the seconds from the prompt to the first line of an answer; None if the command failed."""
    home.mkdir(exist_ok=True)
    environment: Mapping[str, str] = {"PATH": PLAIN_PATH, "HOME": str(home), "LANG": "C.UTF-8"}
    start = time.perf_counter()
    with subprocess.Popen(
        [tollbar, "ask", *words], env=environment, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        # Space precedes the answer.
        line = next((line for line in process.stdout if line.strip()), b"")
        took_s = time.perf_counter() - start
        process.stdout.read()
        status = process.wait(LIMIT_S)
    return took_s if line and status == 0 else None


def oldest_glibc(wheel: Path, folder: Path) -> str:
    """Return the newest version of glibc's symbols that a program of the wheel uses."""
    if shutil.which("objdump") is None:
        return "not known: no objdump"
    with zipfile.ZipFile(wheel) as archive:
        programs = [
            Path(archive.extract(name, folder / "wheel")) for name in archive.namelist() if PROGRAMS.search(name)
        ]
    used = subprocess.run(["objdump", "-T", *programs], capture_output=True, text=True, check=True).stdout
    versions = {tuple(map(int, text.split("."))) for text in re.findall(r"GLIBC_([\d.]+)", used)}
    return ".".join(map(str, max(versions)))
