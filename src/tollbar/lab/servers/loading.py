"""Selection of a server's OpenSSL: linked before the system's, and proved from the mapped files."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tollbar.catalog.libraries import Provider
from tollbar.catalog.servers import Installed, NotStarted
from tollbar.core import proc
from tollbar.core.records import Outcome
from tollbar.lab.servers.sandbox import Sandbox

_SONAME_END = re.compile(r"\.so(?:\.\d+)*$")


def environment(found: Installed, provider: Provider, sandbox: Sandbox) -> dict[str, str]:
    """Return the environment with which programs linked with OpenSSL load this provider's: a folder of links to it.

    Raises NotStarted if the provider has no libssl.
    """
    if provider.kind != "libcrypto" or provider.spec == "libcrypto" or provider.path is None:
        return {}
    if not any(component.programs and component.on_provider for component in found.server.components):
        # The engine loads its library by itself.
        return {}
    with sandbox.starting:
        return _linked(provider.path, sandbox.folder_of(provider.spec))


def _linked(path: str, folder: Path) -> dict[str, str]:
    libcrypto = Path(path)
    libssl = libssl_beside(libcrypto)
    if libssl is None:
        reason = f"a TLS server needs a libssl in the folder of {libcrypto}, and there is none"
        raise NotStarted(Outcome.UNSUPPORTED, reason)
    if not folder.exists():
        folder.mkdir()
        folder.chmod(0o711)
        # Wheels rename their libraries, and libssl requests its libcrypto by the new name.
        for library, name in ((libcrypto, "libcrypto"), (libssl, "libssl")):
            for link in {library.name, name + name_end(library)}:
                (folder / link).symlink_to(library)
    return {"LD_LIBRARY_PATH": str(folder)}


def libssl_beside(libcrypto: Path) -> Path | None:
    """Return the libssl that belongs to this libcrypto."""
    beside = sorted(libcrypto.parent.glob("libssl*.so*"))
    return next((path for path in beside if name_end(path) == name_end(libcrypto)), None)


def prove(found: Installed, provider: Provider, pid: int, *, encrypted: bool) -> dict[str, str]:
    """Return the libssl and libcrypto that the server's processes have mapped, for its receipt.

    Raises NotStarted if they are not the provider's, because the row would name another library than the measured one.
    """
    mapped = proc.tls_libraries(proc.tree(pid))
    crypto = mapped["crypto"]
    if provider.kind != "libcrypto":
        wanted: tuple[str, ...] = ()
    elif provider.path is not None and (encrypted or crypto):
        wanted = (os.path.realpath(provider.path),)
    else:
        # Without encryption, a server that loads its cryptography on demand has none.
        wanted = crypto
    if crypto != wanted:
        has = " and ".join(crypto) or "no libcrypto"
        raise NotStarted(
            Outcome.UNSUPPORTED,
            f"{found.server.title} {found.version} runs on {has} instead of {' and '.join(wanted) or 'none'}",
        )
    paths: Mapping[str, str] = {f"lib{name}": " and ".join(files) for name, files in mapped.items() if files}
    return dict(paths)


def digest(path: str) -> str:
    """Return the SHA-256 of a file, in hexadecimal; empty if it cannot be read.

    Only regular files are read, because others may not end.
    """
    with suppress(OSError):
        if os.path.isfile(path):
            with open(path, "rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
    return ""


def name_end(library: Path) -> str:
    """Return the end of a library's file name: `.so.3`."""
    match = _SONAME_END.search(library.name)
    return match.group() if match else ""
