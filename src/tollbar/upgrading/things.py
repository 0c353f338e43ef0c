"""The two sides of an upgrade: a library by its name or file, a Debian package or a wheel by its version."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

from tollbar import beds
from tollbar.beds import Installed
from tollbar.errors import TollbarError, nearest
from tollbar.libraries import Provider, libcryptos, look_up, normal
from tollbar.upgrading import fetching

LIBCRYPTO, PYTHON, SERVER = "libcrypto", "python", "server"
"""What may be upgraded, by which it is known what to ask of it."""
WAYS = (
    "name a libcrypto (`libcrypto:psycopg`), a file or folder (`./lib/libcrypto.so.3`), a Debian package"
    " (`libssl3=3.0.20-1~deb12u2`) or a wheel (`pycurl==7.49.0`)"
)
# In this order: a version of a wheel begins with the sign of a package's.
# No conditions and no patterns, which apt and pip would understand: one build is named.
_VERSION = "([A-Za-z0-9.+!~:_-]+)"
_WHEEL = re.compile(f"([A-Za-z0-9][A-Za-z0-9._-]*)=={_VERSION}")
_PACKAGE = re.compile(f"([a-z0-9][a-z0-9+.-]+(?::[a-z0-9-]+)?)={_VERSION}")
# Of several files of one library, the one that programs are linked with.
_LIBRARY = "libcrypto*.so*"


@dataclass(frozen=True, slots=True)
class Thing:
    """One side of an upgrade."""

    said: str
    """As the command names it."""
    kind: str
    provider: Provider
    """Of a server, what it runs on: the system's libcrypto."""
    bed: Installed | None = None

    @property
    def name(self) -> str:
        """With its version: `openssl 3.0.19`."""
        return self.provider.name if self.bed is None else self.said.replace("=", " ")

    @property
    def file(self) -> str:
        """What is measured."""
        return self.provider.where if self.bed is None else str(self.bed.programs[self.bed.bed.frontend.name])


def both(old: str, new: str) -> tuple[Thing, Thing]:
    """The two sides, of one kind, each found or fetched. Raises TollbarError for what cannot be had or compared."""
    one, other = (_found(said) for said in (old, new))
    if one.kind != other.kind:
        raise TollbarError(f"{old} is a {_TITLES[one.kind]}, and {new} a {_TITLES[other.kind]}: nothing to compare")
    files = [os.path.realpath(side.file) for side in (one, other)]
    if files[0] == files[1]:
        raise TollbarError("the same file twice: nothing to compare", where=files[0], hint="name two builds")
    return one, other


_TITLES = {LIBCRYPTO: "libcrypto", PYTHON: "package of Python", SERVER: "server"}


def _found(said: str) -> Thing:
    if wheel := _WHEEL.fullmatch(said):
        return _of_wheel(said, *wheel.groups())
    kind, _, label = said.partition(":")
    if "/" in said or (kind != LIBCRYPTO and os.path.exists(said)):
        # `libcrypto:./lib/libcrypto.so.3` names the same file.
        return _libcrypto(said, _library_in(Path(said.removeprefix(f"{LIBCRYPTO}:")), said))
    if package := _PACKAGE.fullmatch(said):
        folder = fetching.package(*package.groups())
        bed = fetching.server_in(folder, said)
        if bed is None:
            return _libcrypto(said, _library_in(folder, said))
        found = beds.find(bed)
        if isinstance(found, beds.Unavailable):
            raise TollbarError(found.reason, where=said)
        return replace(_opened(said, SERVER, LIBCRYPTO), bed=found)
    if kind != LIBCRYPTO:
        near = nearest(said, [LIBCRYPTO, *(f"{LIBCRYPTO}:{name}" for name in libcryptos())]) or ""
        raise TollbarError("names nothing that can be upgraded", where=said, hint=near if "mean" in near else WAYS)
    if "*" in label:
        raise TollbarError("two builds are compared, and not what a pattern stands for", where=said, hint=WAYS)
    return _opened(said, LIBCRYPTO, normal(said))


def _of_wheel(said: str, name: str, version: str) -> Thing:
    folder = fetching.wheel(name, version)
    if any(folder.rglob(_LIBRARY)):
        return _libcrypto(said, _library_in(folder, said))
    package = name.lower()
    if package not in fetching.PYTHON_PACKAGES:
        raise TollbarError(
            "the wheel holds no libcrypto of its own that can be called",
            where=said,
            hint=f"by their own calls Tollbar drives {' and '.join(fetching.PYTHON_PACKAGES)}",
        )
    return _opened(said, PYTHON, f"runner:{fetching.python_runner(package, version)}")


def _libcrypto(said: str, path: Path) -> Thing:
    return _opened(said, LIBCRYPTO, f"{LIBCRYPTO}:{path}")


def _opened(said: str, kind: str, spec: str) -> Thing:
    """Raises TollbarError for what cannot be loaded: of another architecture, for example."""
    try:
        (provider,), _ = look_up((spec,))
    except TollbarError as error:
        raise TollbarError(error.what, where=said, hint=error.hint) from error
    return Thing(said, kind, provider)


def _library_in(path: Path, said: str) -> Path:
    """The libcrypto that this is or that lies somewhere in it. Raises TollbarError where there is none, or several."""
    # Not `Path.exists`, which raises for a name that is too long.
    if not os.path.exists(path):
        raise TollbarError("no such file or folder", where=said)
    if path.is_file():
        return path.resolve()
    found = {Path(os.path.realpath(one)) for one in path.rglob(_LIBRARY) if one.is_file()}
    if not found:
        raise TollbarError("holds no libcrypto", where=said, hint=WAYS)
    if len(found) > 1:
        several = ", ".join(sorted(str(one.relative_to(path.resolve())) for one in found))
        raise TollbarError(f"holds several: {several}", where=said, hint="name one of these files")
    return found.pop()
