"""Providers named by a file: anything but a regular file is refused before it is opened."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from tollbar.catalog import libraries
from tollbar.core.errors import TollbarError


def pipe(path: Path) -> None:
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.mkdir()


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def listener(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


@pytest.mark.parametrize("kind", ["libcrypto", "runner"])
@pytest.mark.parametrize("made", [pipe, folder, device, listener])
def test_what_is_no_regular_file_is_no_provider(
    kind: str, made: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made(Path("odd"))  # type: ignore[operator]
    # No process is started for the refusal.
    monkeypatch.setattr(libraries, "ask", None)
    libraries.open_provider.cache_clear()
    with pytest.raises(TollbarError, match="is not a regular file"):
        libraries.resolve([f"{kind}:{tmp_path / 'odd'}"])
