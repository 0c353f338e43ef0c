"""Instructions that a server's OpenSSL is to leave unused: said to it at its start, and proved from its memory."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from tollbar.catalog.libraries import LIST_LIMIT_S, Provider
from tollbar.catalog.servers import Installed, NotStarted
from tollbar.core import proc
from tollbar.core.records import CONTRACT, Outcome, Record
from tollbar.core.runner import ask, engine

NATIVE = "native"
"""The processor as it is."""

VARIABLE = "OPENSSL_ia32cap"
# What OpenSSL says of itself: the vector of the instructions that it uses, in words of 64 bits, and what it was told.
_SAID = re.compile(rf"{VARIABLE}=(0x[0-9a-f]+(?::0x[0-9a-f]+)*)(?: env:(\S+))?")


@dataclass(frozen=True, slots=True)
class Mask:
    """A processor that lacks instructions, as far as one libcrypto is concerned."""

    name: str
    """The setting's value: `no-aes`."""
    path: str
    """The libcrypto."""
    told: str
    """What the library is told as it is loaded."""
    vector: tuple[int, ...]
    """What it uses then, by its own account; words of 64 bits."""

    @property
    def environment(self) -> dict[str, str]:
        """What the server is started with."""
        return {VARIABLE: self.told}

    def prove(self, pid: int) -> Mapping[str, str]:
        """The vector that the server's OpenSSL works by, read from the server's memory, for its receipt.

        A worker under an account of its own may be closed to this user: it has the vector from the process that loaded
        the library and made the worker. Raises NotStarted where a vector is another, or none can be read.
        """
        wanted = struct.pack(f"<{len(self.vector)}Q", *self.vector)
        held, why = [], "no process has loaded it"
        for one in proc.tree(pid):
            try:
                held.append(proc.data_of(one, os.path.realpath(self.path)))
            except OSError as error:
                why = error.strerror or str(error)
        loaded = [data for data in held if data]
        if not loaded:
            raise NotStarted(Outcome.UNSUPPORTED, f"no proof of `{self.name}` from the server's {self.path}: {why}")
        if any(wanted not in data for data in loaded):
            raise NotStarted(Outcome.FAILED, f"`{self.name}` is not in effect in the server's {self.path}")
        return {"cpu": f"{VARIABLE}={':'.join(f'{word:#x}' for word in self.vector)}"}


def mask(found: Installed, provider: Provider, cpu: str) -> Mask | None:
    """What keeps a server's OpenSSL from these instructions; None where it is to use all that there are.

    Raises NotStarted, in the engine's words where this provider on this processor cannot be told so.
    """
    if cpu == NATIVE:
        return None
    if not any(component.programs and component.on_provider for component in found.server.components):
        reason = f"{found.server.title} cannot be told to leave instruction sets unused"
        raise NotStarted(Outcome.UNSUPPORTED, reason)
    record = _told(provider.kind, provider.path, cpu)
    if record.outcome is not Outcome.OK:
        raise NotStarted(record.outcome, record.reason or "")
    said = _SAID.search(str(record.receipt.get("cpu", "")))
    path = record.receipt.get("path")
    if not said or not said[2] or not path:
        reason = f"no proof of `{cpu}`: {provider.name} does not say what it was told of the processor"
        raise NotStarted(Outcome.UNSUPPORTED, reason)
    return Mask(cpu, str(path), said[2], tuple(int(word, 16) for word in said[1].split(":")))


@cache
def _told(kind: str, path: str | None, cpu: str) -> Record:
    """The engine with this library, which refuses a mask that the library itself does not confirm."""
    named = {"kind": kind, **({"path": path} if path else {})}
    task = {"contract": CONTRACT, "mode": "list", "provider": named, "setting": {"cpu": cpu}}
    return ask((str(engine()), "op"), task, limit_s=LIST_LIMIT_S)
