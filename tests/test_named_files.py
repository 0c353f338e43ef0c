"""Providers that are named by a file: what is no regular file is refused before anything opens it."""

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
    # Nothing is started for it.
    monkeypatch.setattr(libraries, "ask", None)
    libraries.open_provider.cache_clear()
    with pytest.raises(TollbarError, match="is no regular file"):
        libraries.resolve([f"{kind}:{tmp_path / 'odd'}"])
