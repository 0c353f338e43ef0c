"""CPU instructions that a server's OpenSSL must not use: set at its start, and proved from its memory."""

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
"""Name of the unmasked processor."""

VARIABLE = "OPENSSL_ia32cap"
# OpenSSL's report: the vector of its instructions, in words of 64 bits, and the mask that it was given.
_SAID = re.compile(rf"{VARIABLE}=(0x[0-9a-f]+(?::0x[0-9a-f]+)*)(?: env:(\S+))?")


@dataclass(frozen=True, slots=True)
class Mask:
    """Processor without some instructions, for one libcrypto."""

    name: str
    """Value of the setting: `no-aes`."""
    path: str
    """Path of the libcrypto."""
    told: str
    """Mask given to the library when it is loaded."""
    vector: tuple[int, ...]
    """Instructions that it then reports, in words of 64 bits."""

    @property
    def environment(self) -> dict[str, str]:
        """Environment of the server."""
        return {VARIABLE: self.told}

    def prove(self, pid: int) -> Mapping[str, str]:
        """Return the vector in use by the server's OpenSSL, read from the server's memory, for its receipt.

        A worker with another account may be unreadable to this user: it inherits the vector from the process that
        loaded the library and started it. Raises NotStarted if a vector differs, or none can be read.
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
            reason = f"`{self.name}` cannot be verified in the server's {self.path}: {why}"
            raise NotStarted(Outcome.UNSUPPORTED, reason)
        if any(wanted not in data for data in loaded):
            raise NotStarted(Outcome.FAILED, f"`{self.name}` has no effect on the server's {self.path}")
        return {"cpu": f"{VARIABLE}={':'.join(f'{word:#x}' for word in self.vector)}"}


def mask(found: Installed, provider: Provider, cpu: str) -> Mask | None:
    """Return the mask of these instructions for a server's OpenSSL; None for all instructions.

    Raises NotStarted, with the engine's reason if this provider on this processor cannot be masked.
    """
    if cpu == NATIVE:
        return None
    if not any(component.programs and component.on_provider for component in found.server.components):
        reason = f"{found.server.title} has no switch for instruction sets; only `cpu={NATIVE}` can be measured"
        raise NotStarted(Outcome.UNSUPPORTED, reason)
    record = _told(provider.kind, provider.path, cpu)
    if record.outcome is not Outcome.OK:
        raise NotStarted(record.outcome, record.reason or "")
    said = _SAID.search(str(record.receipt.get("cpu", "")))
    path = record.receipt.get("path")
    if not said or not said[2] or not path:
        reason = f"`{cpu}` cannot be verified: {provider.name} does not report the processor features in use"
        raise NotStarted(Outcome.UNSUPPORTED, reason)
    return Mask(cpu, str(path), said[2], tuple(int(word, 16) for word in said[1].split(":")))


@cache
def _told(kind: str, path: str | None, cpu: str) -> Record:
    """Return the engine's record with this library, which refuses a mask that the library itself does not confirm."""
    named = {"kind": kind, **({"path": path} if path else {})}
    task = {"contract": CONTRACT, "mode": "list", "provider": named, "setting": {"cpu": cpu}}
    return ask((str(engine()), "op"), task, limit_s=LIST_LIMIT_S)
