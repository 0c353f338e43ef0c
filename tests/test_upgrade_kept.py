"""Kept downloads: fixed to their names, without rights, and bound to their interpreter."""

from __future__ import annotations

import importlib.metadata
import os
import runpy
import shutil
import stat
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from conftest import lacking
from tollbar.catalog import runners
from tollbar.core.errors import TollbarError
from tollbar.decide.upgrade import builds, fetching

# The user's own `go`, which since 1.21 becomes the requested version and records its arguments.
GO = """#!/bin/sh
[ "$1" = env ] && exit
case "$GOTOOLCHAIN" in
local|go{own}) echo "go version go{own} linux/amd64"; exit;;
esac
echo "${{GOSUMDB-none}}|${{GONOSUMDB-none}}|${{GOINSECURE-none}}|$GOENV|$GOTOOLCHAIN" >> {asked}
{fetch}
"""
FETCHES = """
mkdir -p "$GOMODCACHE/toolchain/bin"
printf '#!/bin/sh\\necho go version %s linux/amd64\\n' "$GOTOOLCHAIN" > "$GOMODCACHE/toolchain/bin/go"
chmod +x "$GOMODCACHE/toolchain/bin/go"
echo "go version $GOTOOLCHAIN linux/amd64"
"""
# A `go` from before 1.21 only knows itself.
OLD = "echo go version go1.19.8 linux/amd64"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of programs before the system's, with an empty cache."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def program(path: Path, text: str) -> Path:
    """Write a program of this text."""
    path.write_text(text)
    path.chmod(0o755)
    return path


def go_of(programs: Path, own: str, fetch: str = FETCHES) -> Path:
    """Write the user's own `go` of this version."""
    return program(programs / "go", GO.format(own=own, asked=programs.parent / "asked", fetch=fetch))


def version_of(place: Path) -> str:
    """Return the version that the `go` found in this place has by itself."""
    found, itself = builds._program(place, builds.files_in(place), ["go"]), {**os.environ, "GOTOOLCHAIN": "local"}
    assert found is not None
    return subprocess.run([found, "version"], capture_output=True, text=True, check=True, env=itself).stdout.split()[2]


def test_a_toolchain_is_of_its_version_whatever_becomes_of_the_users(programs: Path) -> None:
    """The user's own toolchain of that version is used in place and not kept, because it may be upgraded."""
    own = go_of(programs, "1.24.0")
    place = fetching.go("1.24.0")
    assert own.samefile(builds._program(place, builds.files_in(place), ["go"]) or "")
    go_of(programs, "1.26.0")
    assert "go1.24.0" == version_of(fetching.go("1.24.0"))


def test_a_toolchain_is_verified_by_the_checksum_database(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GONOSUMDB", "*")
    monkeypatch.setenv("GOINSECURE", "*")
    monkeypatch.setenv("GOSUMDB", "off")
    go_of(programs, "1.24.0")
    assert fetching.go("1.26.8") == fetching.go("1.26.8")
    assert "go1.26.8" == version_of(fetching.go("1.26.8"))
    assert "none|none|none|off|go1.26.8\n" == (programs.parent / "asked").read_text()


def test_another_toolchain_is_not_taken_for_it(programs: Path) -> None:
    """For example one from before 1.21, or another version that fetched nothing."""
    go_of(programs, "1.19.8", OLD)
    with pytest.raises(TollbarError, match=r"the installed `go` printed go version go1\.19\.8"):
        fetching.go("1.26.8")
    go_of(programs, "1.24.0", 'echo "go version $GOTOOLCHAIN linux/amd64"')
    with pytest.raises(TollbarError, match=r"the installed `go` printed go version go1\.26\.8"):
        fetching.go("1.26.8")


def test_a_package_gives_no_rights(programs: Path, tmp_path: Path) -> None:
    if shutil.which("dpkg-deb") is None:
        lacking("there is no dpkg-deb here")
    content, archive = tmp_path / "content", tmp_path / "some_1_all.deb"
    (content / "DEBIAN").mkdir(parents=True)
    (content / "DEBIAN" / "control").write_text(
        "Package: some\nVersion: 1\nArchitecture: all\nMaintainer: None <none@example>\nDescription: none\n"
    )
    (content / "usr" / "bin").mkdir(parents=True)
    for name, mode in {"su": 0o4755, "wall": 0o2755, "both": 0o6755, "own": 0o700}.items():
        program(content / "usr" / "bin" / name, "").chmod(mode)
    for name, mode in {"var": 0o2775, "var/tmp": 0o1777}.items():
        (content / name).mkdir()
        (content / name).chmod(mode)
    (content / "usr" / "bin" / "away").symlink_to("/etc/hostname")
    before = os.stat("/etc/hostname").st_mode
    subprocess.run(["dpkg-deb", "--build", "--root-owner-group", content, archive], check=True, capture_output=True)
    program(programs / "apt-get", f"#!/bin/sh\ncp {archive} .\n")
    folder = fetching.package("some", "1")
    modes = {str(path.relative_to(folder)): stat.S_IMODE(path.lstat().st_mode) for path in folder.rglob("*")}
    assert 0o755 == modes["usr/bin/su"] == modes["usr/bin/wall"] == modes["usr/bin/both"]
    assert (0o700, 0o775, 0o1777) == (modes["usr/bin/own"], modes["var"], modes["var/tmp"])
    assert before == os.stat("/etc/hostname").st_mode


def test_a_package_of_python_is_its_interpreters(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled modules belong to one interpreter: another one gets others, under a name of its own."""
    fetched = []

    def pip(python: str, words: Sequence[str], folder: Path) -> None:
        fetched.append(Path(python).name)
        (folder / "argon2").mkdir()

    monkeypatch.setattr(fetching, "_pip", pip)
    for tag in ("cpython-311", "cpython-313", "cpython-311"):
        python = str(program(programs / tag, f"#!/bin/sh\necho {tag}\n"))
        monkeypatch.setattr(runners, "command_of", lambda _, python=python: (python, "-I", "runner.py"))
        assert tag in str(fetching.python_runner("argon2-cffi", "25.1.0"))
    assert ["cpython-311", "cpython-313"] == fetched


@pytest.mark.parametrize(
    ("versions", "name"),
    [
        ({"argon2-cffi": "25.1.0", "argon2-cffi-bindings": "21.2.0"}, "argon2-cffi 25.1.0 (bindings 21.2.0)"),
        ({"argon2-cffi": "20.1.0"}, "argon2-cffi 20.1.0 (bindings bundled)"),
    ],
)
def test_a_row_names_the_bindings_of_argon2(
    versions: Mapping[str, str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bindings do the hashing, and may differ behind one version of the calls."""

    def version(package: str) -> str:
        if package not in versions:
            raise importlib.metadata.PackageNotFoundError(package)
        return versions[package]

    monkeypatch.setattr(importlib.metadata, "version", version)
    module = runners.all_platforms()["python"].folder / "with_argon2_cffi.py"
    assert name == runpy.run_path(str(module))["NAME"]
