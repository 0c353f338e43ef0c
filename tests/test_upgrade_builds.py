"""Names of a build: files, folders, servers and runtimes of an unpacked package."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import Tollbar
from tollbar.catalog import servers
from tollbar.catalog.libraries import Provider, open_provider
from tollbar.catalog.runners import all_platforms
from tollbar.core.errors import TollbarError
from tollbar.decide import upgrade
from tollbar.decide.upgrade import builds, fetching, things
from tollbar.lab.servers.loading import libssl_beside
from upgrade_lab import NEW, OLD, side


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("libcrypt", "is not a build that can be compared"),
        ("./no/such/file.so", "no such file or folder"),
        ("libcrypto:*", "a pattern cannot be compared"),
        ("libcrypto:psicopg", "no such libcrypto: `psicopg`"),
        ("/etc/hostname", "cannot be loaded: file too short"),
        ("/etc/apt", "has no libcrypto"),
        ("x" * 300, "is not a build that can be compared"),
        (f"./{'x' * 300}", "no such file or folder"),
        ("x==1;python_version<'3'", "is not a build that can be compared"),
        ("cryptography==42.*", "is not a build that can be compared"),
        ("libssl3=3.*", "is not a build that can be compared"),
        ("node@22", "is not a build that can be compared"),
        ("java@17.0.1", "is not a build that can be compared"),
    ],
)
def test_what_names_no_build_is_refused(said: str, words: str) -> None:
    with pytest.raises(TollbarError) as caught:
        upgrade.both("libcrypto", said)
    assert words in caught.value.what
    assert "\n" not in caught.value.what


def test_a_version_without_a_name_is_told_how_builds_are_named() -> None:
    for old, new, hint in (
        ("cryptography", "44.0.0", "`tollbar upgrade cryptography==OLD cryptography==44.0.0`"),
        ("node", "22.11.0", "`tollbar upgrade node@OLD node@22.11.0`"),
    ):
        with pytest.raises(TollbarError, match="is a version without a name") as caught:
            upgrade.both(old, new)
        assert hint in str(caught.value.hint)


def test_the_same_file_twice_is_nothing_to_compare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "libcrypto").mkdir()
    monkeypatch.chdir(tmp_path)
    system = open_provider("libcrypto")
    assert isinstance(system, Provider)
    with pytest.raises(TollbarError, match="both builds are this file"):
        upgrade.both("libcrypto", str(system.path))


def test_a_copy_and_a_folder_are_builds(tmp_path: Path) -> None:
    system = open_provider("libcrypto")
    assert isinstance(system, Provider)
    shutil.copy(str(system.path), tmp_path / "libcrypto.so.3")
    old, new = upgrade.both("libcrypto", str(tmp_path))
    assert old.name == new.name
    assert str(tmp_path / "libcrypto.so.3") == new.provider.path


TWO_KINDS = [
    ("cryptography==36.0.2", "django==5.2.1", "package of Python", "package of password hashes"),
    ("django==5.2.1", "node@22.11.0", "package of password hashes", "build of Node"),
    ("node@22.11.0", "go@1.24.0", "build of Node", "build of Go"),
    ("nginx=1", "apache2-bin=2", "build of nginx", "build of Apache httpd"),
    ("libssl3=1", "openjdk-17-jre-headless=2", "libcrypto", "build of Java"),
    ("libcrypto:psycopg", "node@22.11.0", "libcrypto", "build of Node"),
    ("postgresql-15=1", "libcrypto", "build of PostgreSQL", "libcrypto"),
]


@pytest.mark.parametrize(("old", "new", "one", "other"), TWO_KINDS)
def test_two_kinds_are_refused_before_anything_is_fetched(
    old: str, new: str, one: str, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "_run", lambda *words: pytest.fail(f"fetched: {words}"))
    monkeypatch.setattr(fetching, "_pip", lambda *words: pytest.fail(f"fetched: {words}"))
    for pair, titles in (((old, new), (one, other)), ((new, old), (other, one))):
        with pytest.raises(TollbarError) as caught:
            upgrade.both(*pair)
        what = f"{pair[0]} is a {titles[0]} and {pair[1]} a {titles[1]}; both must be builds of the same thing"
        assert what == caught.value.what


def test_a_file_is_looked_at_before_another_build_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system = open_provider("libcrypto")
    assert isinstance(system, Provider)
    shutil.copy(str(system.path), tmp_path / "libcrypto.so.3")
    monkeypatch.setattr(fetching, "_run", lambda *words: pytest.fail(f"fetched: {words}"))
    with pytest.raises(TollbarError, match="both must be builds of the same thing"):
        upgrade.both("node@22.11.0", str(tmp_path))


def test_a_build_folder_that_has_the_two_libraries_apart_is_a_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CMake leaves them apart: both are copied side by side, and copied again when one has changed."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    system = open_provider("libcrypto")
    assert isinstance(system, Provider)
    folder = tmp_path / "build"
    for name in ("crypto", "ssl"):
        (folder / name).mkdir(parents=True)
    shutil.copy(str(system.path), folder / "crypto" / "libcrypto.so.3")
    libssl = libssl_beside(Path(str(system.path)))
    assert libssl is not None
    shutil.copy(libssl, folder / "ssl" / "libssl.so.3")
    _, new = upgrade.both("libcrypto", str(folder))
    assert new.provider.path is not None
    assert libssl_beside(Path(new.provider.path)) is not None
    assert {} == upgrade.not_asked(new, new, ["tls"])
    assert new.provider.path == upgrade.both("libcrypto", str(folder))[1].provider.path


def test_a_libcrypto_without_its_libssl_is_found_before_anything_is_measured(tmp_path: Path, tollbar: Tollbar) -> None:
    system = open_provider("libcrypto")
    assert isinstance(system, Provider)
    shutil.copy(str(system.path), tmp_path / "libcrypto.so.3")
    done = tollbar("upgrade", "libcrypto", "./libcrypto.so.3", "tls")
    assert (2, "") == (done.returncode, done.stdout)
    assert f"there is no libssl next to {tmp_path / 'libcrypto.so.3'}" in done.stderr
    assert "copy libssl.so next to libcrypto.so" in done.stderr
    assert not (tmp_path / "runs").exists()
    old, new = upgrade.both("libcrypto", str(tmp_path))
    assert {"tls"} == set(upgrade.not_asked(old, new, ()))
    assert "tls" not in [one.name for one in upgrade.studies(old, new, (), 4)]


def test_links_of_a_package_lead_into_it(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "own").touch()
    for name, to in {"conf": "/etc/own", "system": "/etc/passwd", "beside": "etc/own"}.items():
        (tmp_path / name).symlink_to(to)
    fetching.lead_inside(tmp_path)
    links = {name: os.readlink(tmp_path / name) for name in ("conf", "system", "beside")}
    assert links == {"conf": "etc/own", "system": "/etc/passwd", "beside": "etc/own"}


def test_a_server_of_a_package_may_lie_under_any_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For example with letters beyond ASCII, or characters special in regular expressions."""
    monkeypatch.setenv("TOLLBAR_PATH", "")
    folder = tmp_path / r"josé \1" / "nginx=1"
    program = folder / "usr" / "sbin" / "nginx"
    program.parent.mkdir(parents=True)
    program.touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    server = builds.server_in(folder, "nginx=1")
    assert server is not None
    assert str(program) in server.components[0].programs


# Servers in an unpacked package, by their paths there.
UNPACKED = {
    "httpd": ("usr/sbin/apache2", "usr/lib/apache2/modules/mod_ssl.so"),
    "nginx": ("usr/sbin/nginx",),
    "postgresql": ("usr/lib/postgresql/15/bin/postgres", "usr/lib/postgresql/15/bin/initdb"),
}


@pytest.mark.parametrize("name", UNPACKED)
def test_a_server_of_a_package_has_its_own_programs_and_folders(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOLLBAR_PATH", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "package"
    for path in UNPACKED[name]:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).touch()
    made, system = builds.server_in(folder, f"{name}=1"), servers.all_servers()[name]
    assert made is not None
    assert (f"{name}=1", name, name) == (made.name, made.build_of, made.kind)
    assert made == servers.all_servers()[made.name]
    (component,), (before,) = made.components, system.components
    assert (str(folder / UNPACKED[name][0]),) == component.programs
    for tool, names in before.tools.items():
        there = folder / "usr/lib/postgresql/15/bin" / tool
        assert ((str(there),) if there.exists() else names) == component.tools[tool]
    for place, folders in system.places.items():
        assert (str(folder / "usr/lib/apache2/modules"), *folders) == made.places[place]
    kept = [
        (one.start, one.ready.by, one.prepare and one.prepare.commands, one.environment) for one in (before, component)
    ]
    assert kept[0] == kept[1]
    assert [one.pattern for one in before.refusals] == [one.pattern for one in component.refusals]
    assert builds.server_in(tmp_path / "none", "none") is None


def test_a_program_in_a_linked_folder_is_found_and_no_link_is_followed_further(tmp_path: Path) -> None:
    (tmp_path / "programs" / "more").mkdir(parents=True)
    (tmp_path / "programs" / "nginx").touch()
    (tmp_path / "bin").symlink_to("programs")
    (tmp_path / "all").symlink_to("/")
    found = {str(path.relative_to(tmp_path)) for path in builds.files_in(tmp_path)}
    assert {"programs/nginx", "bin/nginx", "bin/more"} == found
    assert tmp_path / "bin" / "nginx" == builds._program(tmp_path, builds.files_in(tmp_path), ["nginx"])


def test_a_folder_of_more_than_any_build_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To search `/` for each server and runtime took minutes, and the run of a stranger may name it."""
    monkeypatch.setattr(builds, "MOST_ENTRIES", 20)
    for number in range(21):
        (tmp_path / f"folder-{number}").mkdir()
    with pytest.raises(TollbarError, match="has more than 20 files and folders, the limit of a build"):
        things._found(str(tmp_path))


@pytest.mark.parametrize("name", [one.name for one in all_platforms().values() if one.runtime])
def test_a_runtime_runs_the_same_runner(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOLLBAR_PATH", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    platform = all_platforms()[name]
    folder = tmp_path / "a=b c"
    program, library = folder / "usr" / "bin" / str(platform.runtime), folder / "usr" / "lib" / "libx.so.1"
    for path in (program, library):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('#!/bin/sh\necho "$LD_LIBRARY_PATH|$*"\n')
        path.chmod(0o755)
    found = builds.runtime_in(folder, f"{name}@1")
    assert found is not None
    kind, spec, by = found
    made = all_platforms()[spec]
    assert (name, f"{name}@1", program, name) == (kind, spec, by, made.build_of)
    started = made.folder / str(platform.runtime)
    assert started.samefile(made.programs[platform.programs.index(str(platform.runtime))])
    said = subprocess.run([started, "a b", "c"], capture_output=True, text=True, check=True).stdout
    assert f"{library.parent}|a b c\n" == said
    assert platform.title == made.title
    assert len(platform.build) == len(made.build)
    assert not any(word == platform.runtime for step in (*made.build, made.command, made.versions) for word in step[:1])
    assert builds.runtime_in(program, "by its file") is not None
    assert builds.runtime_in(library, "another file") is None


def test_builds_at_different_paths_are_different_builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    paths = ["./a/node", "../a/node", "/a/node", "./a-node/node", "./\u00e9/node", "./\u00fc/node", "./node"]
    paths += ["/".join(("a" * 100, letter * 100, "c" * 80)) for letter in "bd"]
    slugs = {builds._slug(path) for path in paths}
    assert len(paths) == len(slugs)
    # A folder and sockets in it have that name.
    assert 41 == max(map(len, slugs))
    assert "nginx=1.22.1-9" == builds._slug("nginx=1.22.1-9")


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a user's servers, where `nginx-new` and `nginx=1` are other servers than nginx."""
    folder = tmp_path / "mine" / "servers"
    for name in ("nginx-new", "nginx=1"):
        shutil.copytree(servers.all_servers()["httpd"].folder, folder / name)
    monkeypatch.setenv("TOLLBAR_PATH", str(folder.parent))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def nginx_in(folder: Path) -> Path:
    """Write a program there that identifies itself as nginx."""
    program = folder / "sbin" / "nginx"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho nginx version: nginx/9.9.9 >&2\n")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize("said", ["nginx", "nginx-new", "build", "/".join(("a" * 100, "b" * 100, "c" * 80))])
def test_a_folder_here_is_a_build_whatever_has_its_name(
    said: str, mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = set()
    for place in ("one", "other"):
        program = nginx_in(tmp_path / place / said)
        monkeypatch.chdir(tmp_path / place)
        thing = things._found(said)
        assert thing.server is not None
        assert ("nginx", "nginx", str(program)) == (thing.kind, thing.server.server.build_of, thing.file)
        made.add(thing.server.server.name)
    assert 2 == len(made)


def test_a_name_that_is_taken_names_no_build(mine: Path, tmp_path: Path) -> None:
    nginx_in(tmp_path / "package")
    with pytest.raises(TollbarError, match="this build of nginx needs the name `nginx=1`"):
        builds.server_in(tmp_path / "package", "nginx=1")
    shutil.copytree(all_platforms()["python"].folder, mine.parent / "runners" / "node@22.0.0")
    node = tmp_path / "package" / "bin" / "node"
    node.parent.mkdir()
    node.touch(0o755)
    with pytest.raises(TollbarError, match=r"this build of node needs the name `node@22\.0\.0`"):
        builds.runtime_in(tmp_path / "package", "node@22.0.0")


def test_two_kinds_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"a": side(OLD), "b": replace(side(NEW), kind=things.PACKAGE)}
    monkeypatch.setattr(things, "_found", found.__getitem__)
    with pytest.raises(TollbarError, match="a is a libcrypto and b a package of Python"):
        upgrade.both("a", "b")
