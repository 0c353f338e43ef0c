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
from tollbar.core.runner import ask, engine

OF_EVERY_FAMILY = ("aws-lc", "rustcrypto", "spin")
"""Kinds that are part of the engine, beside those of one family."""

SYSTEM = "system"
"""The label of the libcrypto that the system's own programs use: `libcrypto` alone means that one."""

NOT_BUILT_YET = "is built when a study first asks for it"

# Builds that people name by a version or a project, and that are no provider by that name.
_OF_THEIR_OWN = re.compile(r"(?i)openssl|libcrypto|libssl|boringssl|libressl|quictls|aws-?lc")

# Where programs that bring their own OpenSSL, or people who build one, put it.
FOLDERS = ("/usr/local/lib*", "/usr/local/ssl/lib*", "/usr/local/openssl*/lib*", "/opt/*/lib*")
# How a provider is named by its file.
EXAMPLES = {"libcrypto": "libcrypto:/usr/local/lib/libcrypto.so.3", "runner": "runner:./mine"}
# Listing is one process; a library or a virtual machine on a cold disk may take its time.
LIST_LIMIT_S = 30.0


@dataclass(frozen=True, slots=True)
class Provider:
    """An implementation: how a study names it, how a row names it, and how to reach it."""

    spec: str
    """As a study names it, and a cell's coordinate: `libcrypto`, `libcrypto:psycopg`, `java`, `runner:./mine`."""
    name: str
    """With its version, as rows show it: `openssl 3.0.19`."""
    kind: str
    path: str | None
    runner: tuple[str, ...]
    receipt: Mapping[str, Any]
    package: str | None = None
    """Which of a platform's packages."""
    ready_s: float = 0.04
    """About how long it takes to be ready: the engine, to load a library and a key and to be warm."""
    fault: tuple[Outcome, str] | None = None
    """Why none of its cells can be measured, where that is known beforehand: its platform is not here."""

    @property
    def where(self) -> str:
        """Its file; the program that performs it; or that it is built in."""
        return self.path or ("built in" if self.kind in built_in() else " ".join(self.runner[:1]))

    @property
    def has_threads(self) -> bool:
        """Whether its runner performs an operation on several threads at once: the engine, and who says so."""
        return self.kind in ("libcrypto", *OF_EVERY_FAMILY) or self.receipt.get("threads") is True

    @property
    def in_task(self) -> dict[str, str]:
        """How a task names it."""
        named = {"kind": self.kind, "path": self.path, "package": self.package}
        return {key: value for key, value in named.items() if value}

    def is_called(self, pattern: str) -> bool:
        """Whether a study means it by these words: its spec, a pattern of it, or its name with the version."""
        return pattern in (self.spec, self.name) or is_like(_whole(self.spec), pattern)


@dataclass(frozen=True, slots=True)
class Broken:
    """A library that was found or named and cannot be used, with the reason."""

    spec: str
    path: str | None
    reason: str


def built_in() -> tuple[str, ...]:
    """Every kind of provider that is part of the engine."""
    return (*OF_EVERY_FAMILY, *(kind for family in families().values() for kind in family.built_in))


def libcryptos() -> dict[str, str | None]:
    """Every libcrypto that was found, by label; the system's own is `system`, without a path."""
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
    """The providers that a study's `providers` stand for, in order, each once."""
    return look_up(specs, named_libraries)[0]


def look_up(
    specs: Sequence[str], named_libraries: Sequence[str] = ()
) -> tuple[tuple[Provider, ...], tuple[Broken, ...]]:
    """The providers that a study's `providers` stand for, and what a pattern has found that cannot be used.

    `named_libraries` are libcryptos that the user named beside the study: they join wherever the study asks
    for any libcrypto. Raises TollbarError for what was asked for by name and is not there or cannot be used: a
    pattern asks for what works.
    """
    by_name = {one for spec in specs if not _is_pattern(spec) for one in _expand(spec)}
    wanted = [one for spec in specs for one in _expand(spec)]
    if any(spec.startswith("libcrypto") for spec in wanted):
        theirs = [f"libcrypto:{path}" for path in named_libraries]
        by_name |= set(theirs)
        wanted += theirs
    found = {spec: open_provider(spec) for spec in dict.fromkeys(wanted)}
    for spec, one in found.items():
        # Rows of a platform that was asked for by name stay, and say why they are empty.
        if isinstance(one, Provider) and one.fault and spec not in by_name:
            found[spec] = Broken(spec, None, one.fault[1])
    providers = tuple(one for one in found.values() if isinstance(one, Provider))
    broken = tuple(one for one in found.values() if isinstance(one, Broken))
    for one in broken:
        if one.spec in by_name or not providers:
            hint = "`tollbar list providers` shows what is here"
            raise TollbarError(one.reason, where=one.path or one.spec, hint=hint)
    return providers, broken


def everything(named_libraries: Sequence[str] = ()) -> tuple[Provider | Broken, ...]:
    """Every provider that can be found, and every libcrypto that was found and cannot be used.

    Nothing is built for it: of a platform's runner that is not built yet only that is said.
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
    """Each provider's name by its spec, with where it comes from wherever two have the same one."""
    by_spec = {one.spec: one.name for one in providers}
    alike = Counter(by_spec.values())
    return {spec: name if alike[name] == 1 else f"{name} ({_label(spec)})" for spec, name in by_spec.items()}


def engine_build() -> str:
    """Which engine this is: its version and profile as it says them, and a digest of its program.

    Two builds of one version may be of different code, or by different compilers.
    """
    found = open_provider("spin")
    says = "tollbar-engine" if isinstance(found, Broken) else str(found.receipt.get("engine", "tollbar-engine"))
    with engine().open("rb") as program:
        return f"{says} {hashlib.file_digest(program, 'sha256').hexdigest()[:16]}"


def _is_pattern(spec: str) -> bool:
    return "/" not in spec and any(character in spec for character in "*?[")


def kinds() -> Sequence[str]:
    """Return every kind of provider: the part of a spec before its `:`."""
    return ("libcrypto", "runner", *built_in(), *runners.all_platforms())


def named(spec: str) -> str:
    """Return a spec with the own name of its kind: `aws-lc` for `AWS-LC`, `libcrypto` for `openssl`."""
    kind, colon, label = spec.partition(":")
    # All families are read only for what is none of the usual.
    found = kind if kind in ("libcrypto", "runner", *OF_EVERY_FAMILY) else spelling.find(kind, kinds())
    return f"{found or kind}{colon}{label}"


def normal(spec: str) -> str:
    """Return the one spec of a provider that has several: `libcrypto:system` and `openssl` are `libcrypto`."""
    spec = named(spec)
    kind = spec.partition(":")[0]
    return kind if spec == _whole(kind) else spec


def _whole(spec: str) -> str:
    """A spec with the label that may be left out."""
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
    # All families are read only for what is none of the usual.
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
    """Where the libcrypto of this label is. Raises NotBuilt for one that cannot be had."""
    platform = runners.all_platforms().get(label)
    known = libcryptos()
    if platform and label not in known:
        runners.command_of(platform)
        known = libcryptos()
        if label not in known:
            raise NotBuilt(Outcome.UNSUPPORTED, f"not available here: {platform.title} brought no libcrypto of its own")
    return known[label]


@cache
def open_provider(spec: str) -> Provider | Broken:
    """Asks the provider of this exact spec who it is."""
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
    # A pipe would hold up whoever opens it until the list's time is over.
    if named is not None and os.path.exists(named) and not os.path.isfile(named):
        return Broken(spec, str(named), f"is no regular file; name the file itself, for example `{EXAMPLES[kind]}`")
    task = {"contract": CONTRACT, "mode": "list", "provider": provider.in_task}
    record = ask(provider.runner, task, limit_s=LIST_LIMIT_S)
    path = provider.path
    if record.outcome is not Outcome.OK:
        return Broken(spec, path, record.reason or "")
    name = record.receipt.get("name") or record.receipt.get("provider")
    if not name:
        return Broken(spec, path, "a runner that cannot say its provider's version measures nothing")
    offers: dict[str, list[str]] = {}
    for offer in record.offers:
        offers.setdefault(offer["family"], []).append(offer["choice"])
    path = record.receipt.get("path", path) if kind == "libcrypto" else path
    return replace(provider, name=str(name), path=path, receipt={**record.receipt, "offers": offers})
