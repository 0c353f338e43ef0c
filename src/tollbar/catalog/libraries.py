"""Providers: the implementations on this machine that can perform a choice, each with its receipt."""

from __future__ import annotations

import glob
import hashlib
import os
import re
import site
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from tollbar.catalog import runners
from tollbar.catalog.families import families
from tollbar.catalog.runners import NotBuilt
from tollbar.core import spelling
from tollbar.core.errors import TollbarError, unknown
from tollbar.core.patterns import is_like
from tollbar.core.records import CONTRACT, Outcome
from tollbar.core.runner import ask, engine, programs
from tollbar.core.wire import check_depth

OF_EVERY_FAMILY = ("aws-lc", "rustcrypto", "spin")
"""Kinds of provider in the engine, without those of one family."""

SYSTEM = "system"
"""Label of the libcrypto of the system's own programs, which `libcrypto` alone means."""

NOT_BUILT_YET = "is built when a study first asks for it"

# Names of versions or projects that people use for builds, and that are not providers.
_OF_THEIR_OWN = re.compile(r"(?i)openssl|libcrypto|libssl|boringssl|libressl|quictls|aws-?lc")

# Folders of programs with their own OpenSSL, and of custom builds.
FOLDERS = ("/usr/local/lib*", "/usr/local/ssl/lib*", "/usr/local/openssl*/lib*", "/opt/*/lib*")
# Specs of providers by file.
EXAMPLES = {"libcrypto": "libcrypto:/usr/local/lib/libcrypto.so.3", "runner": "runner:./mine"}
# Listing is one process, but a library or a virtual machine may start slowly from a cold disk.
LIST_LIMIT_S = 30.0
# A name is a cell of a table, and a run keeps the receipt.
MOST_OF_NAME, MOST_DEPTH = 200, 20


@dataclass(frozen=True, slots=True)
class Provider:
    """Implementation of choices: its names in a study and in rows, and the way to run it."""

    spec: str
    """Name in a study, and a cell's coordinate: `libcrypto`, `libcrypto:psycopg`, `java`, `runner:./mine`."""
    name: str
    """Name with version, for rows: `openssl 3.0.19`."""
    kind: str
    path: str | None
    runner: tuple[str, ...]
    receipt: Mapping[str, Any]
    package: str | None = None
    """Package of a platform."""
    ready_s: float = 0.04
    """Approximate time to get ready: for the engine, to load a library and a key and to warm up."""
    fault: tuple[Outcome, str] | None = None
    """Known reason against measuring any of its cells: its platform is not installed."""

    @property
    def where(self) -> str:
        """File, or program that performs it, or `built in`."""
        return self.path or ("built in" if self.kind in built_in() else " ".join(self.runner[:1]))

    @property
    def has_threads(self) -> bool:
        """True if its runner can use several threads at once: the engine, and runners that report it."""
        return self.kind in ("libcrypto", *OF_EVERY_FAMILY) or self.receipt.get("threads") is True

    @property
    def in_task(self) -> dict[str, str]:
        """Description of the provider in a task."""
        named = {"kind": self.kind, "path": self.path, "package": self.package}
        return {key: value for key, value in named.items() if value}

    def is_called(self, pattern: str) -> bool:
        """Return whether this spec, pattern, or name with version means it."""
        return pattern in (self.spec, self.name) or is_like(_whole(self.spec), pattern)


@dataclass(frozen=True, slots=True)
class Broken:
    """Library that was found or named but cannot be used, with the reason."""

    spec: str
    path: str | None
    reason: str


def built_in() -> tuple[str, ...]:
    """Return every kind of provider that is part of the engine."""
    return (*OF_EVERY_FAMILY, *(kind for family in families().values() for kind in family.built_in))


def libcryptos() -> dict[str, str | None]:
    """Return every found libcrypto, by label; the system's own is `system`, without a path."""
    found: dict[str, str | None] = {SYSTEM: None}
    for folder in [*site.getsitepackages(), site.getusersitepackages()]:
        for path in sorted(glob.glob(f"{folder}/*.libs/libcrypto*.so*")):
            label = Path(path).parent.name.removesuffix(".libs").removesuffix("_binary")
            found.setdefault(label, path)
    for pattern in FOLDERS:
        for path in sorted(glob.glob(f"{pattern}/libcrypto.so*")):
            real = os.path.realpath(path)
            if real not in found.values():
                found[real] = real
    return {**found, **runners.kept_libcryptos()}


def resolve(specs: Sequence[str], named_libraries: Sequence[str] = ()) -> tuple[Provider, ...]:
    """Return the providers of a study's `providers`, in order, each once."""
    return look_up(specs, named_libraries)[0]


def look_up(
    specs: Sequence[str], named_libraries: Sequence[str] = ()
) -> tuple[tuple[Provider, ...], tuple[Broken, ...]]:
    """Return the providers of a study's `providers`, and the unusable ones that a pattern has found.

    `named_libraries` are libcryptos that the user named in addition: they are added if the study asks for any
    libcrypto. Raises TollbarError for a named provider that is missing or unusable; a pattern only selects usable ones.
    """
    by_name = {one for spec in specs if not _is_pattern(spec) for one in _expand(spec)}
    wanted = [one for spec in specs for one in _expand(spec)]
    if any(spec.startswith("libcrypto") for spec in wanted):
        theirs = [f"libcrypto:{path}" for path in named_libraries]
        by_name |= set(theirs)
        wanted += theirs
    found = {spec: open_provider(spec) for spec in dict.fromkeys(wanted)}
    for spec, one in found.items():
        # Rows of a platform that was named stay, and report why they are empty.
        if isinstance(one, Provider) and one.fault and spec not in by_name:
            found[spec] = Broken(spec, None, one.fault[1])
    providers = tuple(one for one in found.values() if isinstance(one, Provider))
    broken = tuple(one for one in found.values() if isinstance(one, Broken))
    for one in broken:
        if one.spec in by_name or not providers:
            hint = "`tollbar list providers` lists the available ones"
            raise TollbarError(one.reason, where=one.path or one.spec, hint=hint)
    return providers, broken


def everything(named_libraries: Sequence[str] = ()) -> tuple[Provider | Broken, ...]:
    """Return every provider that can be found, and every unusable libcrypto.

    Nothing is built: a platform's runner that is not built yet is only reported as such.
    """
    specs = [*_expand("libcrypto:*"), *(f"libcrypto:{path}" for path in named_libraries), *built_in()]
    found = [open_provider(spec) for spec in dict.fromkeys(specs)]
    for platform in runners.all_platforms().values():
        its_own = _expand(f"{platform.name}:*")
        if platform.lacks or runners.is_built(platform):
            found += [open_provider(spec) for spec in its_own]
        else:
            fault = (Outcome.UNSUPPORTED, NOT_BUILT_YET)
            found += [Provider(spec, spec, platform.name, None, (), {}, fault=fault) for spec in its_own]
    return tuple(found)


def names(providers: Iterable[Provider]) -> Mapping[str, str]:
    """Return each provider's name by its spec, with its origin if two have the same name."""
    by_spec = {one.spec: one.name for one in providers}
    alike = Counter(by_spec.values())
    return {spec: name if alike[name] == 1 else f"{name} ({_label(spec)})" for spec, name in by_spec.items()}


def engine_build() -> str:
    """Return the identity of the engine: its reported version and profile, and a digest of its programs.

    Two builds of one version may have different code or compilers.
    """
    found = open_provider("spin")
    says = "tollbar-engine" if isinstance(found, Broken) else str(found.receipt.get("engine", "tollbar-engine"))
    of_all = hashlib.sha256()
    for path in programs():
        with path.open("rb") as program:
            of_all.update(hashlib.file_digest(program, "sha256").digest())
    return f"{says} {of_all.hexdigest()[:16]}"


def _is_pattern(spec: str) -> bool:
    return "/" not in spec and any(character in spec for character in "*?[")


def kinds() -> Sequence[str]:
    """Return every kind of provider: the part of a spec before its `:`."""
    return ("libcrypto", "runner", *built_in(), *runners.all_platforms())


def named(spec: str) -> str:
    """Return a spec with the own name of its kind: `aws-lc` for `AWS-LC`, `libcrypto` for `openssl`."""
    kind, colon, label = spec.partition(":")
    # Reading all families is only needed for unusual kinds.
    found = kind if kind in ("libcrypto", "runner", *OF_EVERY_FAMILY) else spelling.find(kind, kinds())
    return f"{found or kind}{colon}{label}"


def normal(spec: str) -> str:
    """Return the one spec of a provider that has several: `libcrypto:system` and `openssl` are `libcrypto`."""
    spec = named(spec)
    kind = spec.partition(":")[0]
    return kind if spec == _whole(kind) else spec


def _whole(spec: str) -> str:
    """Return a spec with its optional label."""
    if spec == "libcrypto":
        return f"libcrypto:{SYSTEM}"
    platform = runners.all_platforms().get(spec)
    return f"{spec}:{platform.packages[0]}" if platform else spec


def _label(spec: str) -> str:
    kind, _, label = _whole(spec).partition(":")
    platform = runners.all_platforms().get(kind)
    return kind if platform and platform.build_of else label


def _expand(spec: str) -> list[str]:
    spec = named(spec)
    kind, _, label = _whole(spec).partition(":")
    platforms = runners.all_platforms()
    if kind == "libcrypto" and label in platforms and platforms[label].libcrypto:
        # It comes with the platform's runner, which may have to be built.
        return [spec]
    known = platforms[kind].packages if kind in platforms else tuple(libcryptos()) if kind == "libcrypto" else ()
    if known and "/" not in label:
        matching = [normal(f"{kind}:{name}") for name in known if is_like(name, label)]
        if not matching:
            raise unknown(kind if kind == "libcrypto" else f"package of {kind}", label, known)
        return matching
    # Reading all families is only needed for unusual kinds.
    if kind not in ("libcrypto", "runner", *OF_EVERY_FAMILY) and kind not in built_in():
        raise _unknown_provider(spec)
    return [spec]


def _unknown_provider(spec: str) -> TollbarError:
    if not _OF_THEIR_OWN.match(spec):
        return unknown("provider", spec, [f"{one}:PATH" if one == "runner" else one for one in kinds()])
    hint = (
        "`libcrypto` is the system's; `--library PATH/libcrypto.so.3` measures another build with it, and"
        " `tollbar list providers` lists those that were found"
    )
    return TollbarError(f"no such provider: `{spec}`", hint=hint)


def _libcrypto(label: str) -> str | None:
    """Return the path of the libcrypto with this label. Raises NotBuilt if it is not available."""
    platform = runners.all_platforms().get(label)
    known = libcryptos()
    if platform and label not in known:
        runners.command_of(platform)
        known = libcryptos()
        if label not in known:
            raise NotBuilt(Outcome.UNSUPPORTED, f"not available here: {platform.title} has no libcrypto of its own")
    return known[label]


@cache
def open_provider(spec: str) -> Provider | Broken:
    """Return the provider of this exact spec, with its own report."""
    kind, _, label = _whole(spec).partition(":")
    platform = runners.all_platforms().get(kind)
    provider = Provider(spec, spec, kind, None, (str(engine()), "op"), {}, label if platform else None)
    try:
        if kind == "libcrypto":
            provider = replace(provider, path=label if "/" in label else _libcrypto(label))
        elif kind == "runner":
            provider = replace(provider, runner=(label,))
        elif platform:
            provider = replace(provider, runner=runners.command_of(platform), ready_s=platform.ready)
    except NotBuilt as error:
        return replace(provider, runner=(), fault=(error.outcome, error.reason))
    named = Path(label) if kind == "runner" or (kind == "libcrypto" and "/" in label) else None
    # Opening a pipe would block until the time limit of the list.
    if named is not None and os.path.exists(named) and not os.path.isfile(named):
        return Broken(spec, str(named), f"is not a regular file; name the file itself, for example `{EXAMPLES[kind]}`")
    task = {"contract": CONTRACT, "mode": "list", "provider": provider.in_task}
    record = ask(provider.runner, task, limit_s=LIST_LIMIT_S)
    path = provider.path
    if record.outcome is not Outcome.OK:
        return Broken(spec, path, record.reason or "")
    name = record.receipt.get("name") or record.receipt.get("provider")
    if not name:
        return Broken(spec, path, "the runner must report its provider's version, because every result names it")
    if not isinstance(name, str) or len(name) > MOST_OF_NAME:
        return Broken(spec, path, f"its name must be a text of at most {MOST_OF_NAME} letters, for example `mine 1.0`")
    try:
        check_depth(record.receipt, MOST_DEPTH)
    except ValueError as error:
        return Broken(spec, path, f"its receipt is {error}")
    offers: dict[str, list[str]] = {}
    for offer in record.offers:
        offers.setdefault(offer.family, []).append(offer.choice)
    path = record.receipt.get("path", path) if kind == "libcrypto" else path
    return replace(provider, name=name, path=path, receipt={**record.receipt, "offers": offers})
