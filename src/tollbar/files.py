"""Files that are there whole or not at all, and only for whom they are meant."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO


def write_atomically(path: Path, text: str) -> None:
    """Writes a file so that whoever looks finds the old one or the new one, whole and on the disk. Raises OSError."""
    # An ordinary file: who may read it is for the user's mask to say.
    with _unfinished(path, 0o666) as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())


def write(path: Path, content: bytes, mode: int) -> None:
    """Writes a file of this mode, whatever the mask is; others see none of it before. Raises OSError."""
    with _unfinished(path, mode & 0o700) as file:
        os.fchmod(file.fileno(), mode)
        file.write(content)


@contextmanager
def _unfinished(path: Path, mode: int) -> Iterator[IO[bytes]]:
    """A new file beside this one, in whose place it is put at the end."""
    # Opened anew and with its mode: never a file or a link that was laid there, and never a moment for others to read.
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        os.replace(beside, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise
