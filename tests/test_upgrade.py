"""An upgrade: what two builds are, how packages are fetched, and what became dearer, cheaper, new or gone."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import exp
from pathlib import Path

import pytest

from builders import lognormal, measured, row, run, study, study_run
from conftest import Tollbar, here
from tollbar import plan, upgrading, workloads
from tollbar import study as studies
from tollbar.document.decisions.upgrade import document
from tollbar.errors import TollbarError
from tollbar.families import Value, families
from tollbar.judge import Judgement, StudyJudgement, judge, judge_study
from tollbar.libraries import Provider, open_provider
from tollbar.plan.heats import blocks
from tollbar.present.decisions.upgrade import apart_sentence, upgrade_answer
from tollbar.records import LoadRecord, Negotiated, Outcome
from tollbar.results import Row
from tollbar.upgrading import Kind, Thing, Upgrade, fetching, things

BLOCKS = 12
OLD, NEW = "openssl 3.0.19", "openssl 3.5.9"
RATIOS = {"dearer": 1.10, "cheaper": 0.90, "no change": 1.0}


def side(name: str, spec: str = "libcrypto") -> Thing:
    return Thing(spec, "libcrypto", Provider(spec, name, "libcrypto", f"/lib/{name}", (), {}))


def pair(choice: str, ratio: float, lacks: str | None = None, why: Outcome = Outcome.UNSUPPORTED) -> list[Row]:
    """A choice on the old and the new library, of which one may lack it."""
    base, twin, other = measured([1, 1, ratio], lognormal(0.002), random.Random(choice), blocks=BLOCKS)
    made = {OLD: base, NEW: other}
    found = []
    for name, costs in made.items():
        gone = {"outcome": why, "reason": f"{name} has no {choice}"} if lacks in (name, "both") else {}
        at: Mapping[str, Value] = {"choice": choice, "provider": name}
        twins = twin if name == OLD else ()
        against = row({"choice": choice, "provider": OLD}).key
        found.append(row(at, () if gone else costs, twins_ns=twins if not gone else (), against=against, **gone))
    return found


def of(*rows: Row) -> Upgrade:
    about = replace(study(worth=0.01, blocks=BLOCKS), baseline={"provider": OLD})
    return upgrading.upgrade(side(OLD), side(NEW, "libcrypto:psycopg"), judge(run(study_run(rows, (BLOCKS,), about))))


@pytest.mark.parametrize("kind", RATIOS)
def test_a_row_is_what_its_ratio_says(kind: str) -> None:
    """Of 10 % more, 10 % less and nothing; the whole interval decides."""
    (change,) = of(*pair(kind, RATIOS[kind])).changes
    assert kind == change.kind
    assert change.ratio is not None
    assert change.ratio.estimate == pytest.approx(RATIOS[kind], rel=0.01)


def test_what_one_build_lacks_is_new_or_gone() -> None:
    """With the reason of the build that lacks it; what both lack is told apart, and a failure is none of these."""
    found = of(
        *pair("a", 1.0, lacks=OLD),
        *pair("b", 1.0, lacks=NEW),
        *pair("c", 1.0, lacks="both"),
        *pair("d", 1.0, lacks=NEW, why=Outcome.FAILED),
    )
    kinds = {change.row.choice: change.kind for change in found.changes}
    assert kinds == {"a": Kind.NEW, "b": Kind.GONE, "d": Kind.FAILED}
    assert [f"{NEW} has no b"] == [change.reason for change in found.of(Kind.GONE)]
    assert ["c openssl 3.5.9"] == [title for title, _ in found.neither]
    assert 0 == found.tellable


def test_only_what_is_above_with_its_whole_interval_fails() -> None:
    """Ten per cent more is above five, and not above twelve."""
    found = of(*pair("dearer", 1.10), *pair("cheaper", 0.9))
    assert ["dearer"] == [change.row.choice for change in found.above(0.05)]
    assert not found.above(0.12)
    assert 2 == found.tellable


def test_the_answer_says_on_one_core() -> None:
    """Locks show only in company: what was measured on one core says so, in each of its forms."""
    answer = upgrade_answer(of(*pair("dearer", 1.10), *pair("gone", 1.0, lacks=NEW)), 0.05)
    assert "openssl 3.0.19 → 3.5.9, on one core: 1 dearer and 1 gone." == answer.headline
    assert answer.question.endswith(", on one core?")
    assert any(note.startswith("Above 5 %") for note in answer.notes)
    assert document(of(*pair("dearer", 1.10)), 0.05).changes[0].above


def test_the_document_has_each_row() -> None:
    """Costs, ratio and kind of each; nothing where a build has none."""
    said = document(of(*pair("dearer", 1.10), *pair("new", 1.0, lacks=OLD)), None)
    assert [("dearer", True), ("new", False)] == [(one.kind, one.ratio is not None) for one in said.changes]
    assert said.changes[1].old_ns is None
    assert said.changes[0].old_ns == pytest.approx(100, rel=0.02)


# By default and held, in microseconds: the old one, then the new one.
DEFAULTS = {("by-default", OLD): 200.0, ("by-default", NEW): 248.0, ("held", OLD): 200.0, ("held", NEW): 210.0}
GROUPS = {("by-default", OLD): "x25519", ("by-default", NEW): "X25519MLKEM768"}


def taken_apart() -> StudyJudgement:
    """A study of four cells whose library costs 5 % more, and its new group 19 %."""
    source, rows = random.Random(3), []
    for (choice, provider), cost in DEFAULTS.items():
        costs, twins = ([cost * exp(source.gauss(0, 0.002)) for _ in range(BLOCKS)] for _ in range(2))
        against = row({"choice": choice, "provider": OLD}).key
        made = row(
            {"choice": choice, "provider": provider}, costs, twins_ns=twins if provider == OLD else (), against=against
        )
        group = GROUPS.get((choice, provider), "x25519")
        load = LoadRecord(wall_ns=1, negotiated=(Negotiated(version="TLS 1.3", suite="A", group=group, count=9),))
        rows.append(replace(made, trials=tuple(replace(trial, load=load) for trial in made.trials)))
    factors: dict[str, tuple[Value, Value]] = {"provider": (OLD, NEW), "choice": ("by-default", "held")}
    about = replace(study(worth=0.01, blocks=BLOCKS), baseline={"provider": OLD}, factors=factors)
    return judge_study(study_run(rows, (BLOCKS,), about))


def test_a_change_by_default_is_taken_apart() -> None:
    """24 % are 5 of the library and 19 of the new group; the parts add up, and their intervals hold what was made."""
    judged = taken_apart()
    (found,) = judged.factors
    assert found.split is not None
    parts = {"whole": 1.24, "alike": 1.05, "rest": 1.19}
    for name, made in parts.items():
        got = getattr(found.split, name)
        assert got.low <= made <= got.high
        assert got.half_width < 0.01
    split = found.split
    added = split.alike.estimate - 1 + split.rest.estimate - 1
    assert split.whole.estimate - 1 == pytest.approx(added, rel=1e-9)


def test_what_was_negotiated_is_said_beside_the_parts() -> None:
    """Read from the wire, by each of the four cells."""
    judged = taken_apart()
    found = upgrading.upgrade(side(OLD), side(NEW), Judgement(run(judged.study), (judged,)))
    (apart,) = found.apart
    assert ("TLS 1.3, x25519, A", "TLS 1.3, X25519MLKEM768, A") == apart.negotiated[:2]
    said = apart_sentence(apart)
    assert "X25519MLKEM768, where it was x25519" in said
    assert "on one core: +24 %" in said
    # The parts that are printed add up to the whole that is printed.
    assert "+19 % the new defaults" in said
    assert "+5.0 % the library" in said or "+4.9 % the library" in said


def test_all_four_cells_meet_in_one_heat() -> None:
    """Old and new, by default and held: in each block together."""
    other = open_provider("libcrypto:psycopg")
    if not isinstance(other, Provider):
        pytest.skip("there is no second libcrypto here")
    sides = Thing("a", "libcrypto", open_provider("libcrypto")), Thing("b", "libcrypto", other)  # type: ignore[arg-type]
    (asked,) = upgrading.studies(*sides, ["tls"], 4)
    (planned,) = plan.make([asked], seed=1).studies
    assert 4 == len(planned.cells)
    for heats in blocks(planned, 1, 4):
        assert any(len({visit.cell.key for visit in heat.visits}) == 4 for heat in heats)


@pytest.mark.parametrize("bed", ["nginx", "httpd"])
def test_a_server_as_shipped_is_told_nothing_but_its_versions(bed: str) -> None:
    """No group, suite or session by default; held, one of each but for sessions, which stay the server's own."""
    here(bed)
    text = SHOWN.format(bed=bed)
    (planned,) = plan.make([studies.read("shown", text, where="shown")], seed=1).studies
    made = {cell.choice.name: workloads.of(cell).shown(cell, 1).configuration or "" for cell in planned.cells}
    for word in ("X25519", "AES_256", "SessionCache", "session_cache", "ickets", "NumTickets"):
        assert word not in made["by-default"]
    assert "X25519" in made["held"]
    assert "TLS_AES_256_GCM_SHA384" in made["held"]
    assert "ickets" not in made["held"]
    assert "TLSv1.2" not in made["held"]


SHOWN = """
question = "?"
family   = "tls-defaults"
choices  = ["by-default", "held"]
beds     = ["{bed}"]

[load.request]
get = "/bytes/4096"
"""


@pytest.mark.parametrize("kind", ["libcrypto", "python"])
def test_what_is_asked_is_there_to_be_asked(kind: str) -> None:
    """Each question is a study of a family that there is, whose choices it has."""
    thing = Thing("x", kind, open_provider("libcrypto"))  # type: ignore[arg-type]
    for one in upgrading.studies(thing, thing, (), 4):
        assert one.family.name in families()
        assert one.choices


def test_another_family_is_refused_with_those_there_are() -> None:
    """One line that names the nearest."""
    with pytest.raises(TollbarError, match="no such family to ask of it: `digets`") as caught:
        upgrading.studies(side(OLD), side(NEW), ["digets"], 4)
    assert caught.value.hint is not None
    assert "digest" in caught.value.hint


# Names.


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("libcrypt", "names nothing that can be upgraded"),
        ("./no/such/file.so", "no such file or folder"),
        ("libcrypto:*", "two builds are compared"),
        ("libcrypto:psicopg", "no such libcrypto: `psicopg`"),
        ("/etc/hostname", "cannot be loaded"),
        ("/etc/apt", "holds no libcrypto"),
    ],
)
def test_what_names_no_build_is_refused(said: str, words: str) -> None:
    """In one line, with what to name instead."""
    with pytest.raises(TollbarError) as caught:
        upgrading.both("libcrypto", said)
    assert words in caught.value.what
    assert "\n" not in caught.value.what


def test_the_same_file_twice_is_nothing_to_compare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By whatever names, and whatever folder has the name of a provider."""
    (tmp_path / "libcrypto").mkdir()
    monkeypatch.chdir(tmp_path)
    system = open_provider("libcrypto")
    assert isinstance(system, Provider)
    with pytest.raises(TollbarError, match="the same file twice: nothing to compare"):
        upgrading.both("libcrypto", str(system.path))


def test_a_copy_and_a_folder_are_builds(tmp_path: Path) -> None:
    """The file itself, or the folder that it lies in."""
    system = open_provider("libcrypto")
    assert isinstance(system, Provider)
    shutil.copy(str(system.path), tmp_path / "libcrypto.so.3")
    old, new = upgrading.both("libcrypto", str(tmp_path))
    assert old.name == new.name
    assert str(tmp_path / "libcrypto.so.3") == new.provider.path


# Packages, with fakes for what fetches them.

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
--field) case "$PACKED_FOR" in "") echo amd64;; *) echo "$PACKED_FOR";; esac;;
--extract) mkdir -p "$3/usr/lib"; cp "$LIBRARY" "$3/usr/lib/libcrypto.so.3";;
*) touch "$TOUCHED"; exit 1;;
esac""",
}


@pytest.fixture
def fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Package managers that fetch a copy of the system's libcrypto, and note when they are to change the system."""
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
    """Once: the second time nothing is fetched."""
    folder = fetching.package("libssl3", "1")
    assert folder.is_relative_to(fakes / "cache")
    assert (folder / "usr/lib/libcrypto.so.3").is_file()
    (fakes / "bin" / "apt-get").write_text("#!/bin/sh\nexit 1\n")
    assert folder == fetching.package("libssl3", "1")
    (_, new) = upgrading.both("libcrypto", "libssl3=1")
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
    """One line, and nothing of it is left in the cache."""
    with pytest.raises(TollbarError) as caught:
        upgrading.both("libcrypto", said)
    assert words in caught.value.what
    assert said == caught.value.where
    assert not [*(fakes / "cache").rglob("*.so*")]
    assert not [*(fakes / "cache" / "tollbar" / "upgrades" / "packages").iterdir()]


def test_a_package_of_another_architecture_is_refused(fakes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it is unpacked."""
    monkeypatch.setenv("PACKED_FOR", "arm64")
    with pytest.raises(TollbarError, match="is built for arm64, and this machine is amd64"):
        fetching.package("libssl3", "1")


def test_apt_is_asked_for_what_is_signed_and_to_write_no_cache() -> None:
    """Whatever its configuration allows."""
    words = " ".join(fetching.APT)
    assert "APT::Get::AllowUnauthenticated=false" in words
    assert "Dir::Cache::pkgcache= " in words


def test_nothing_of_the_system_is_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that is fetched is on nobody's list and in no folder of the system: both are compared."""
    if shutil.which("apt-cache") is None:
        pytest.skip("there is no apt here")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    offered = subprocess.run(["apt-cache", "madison", "libssl3"], capture_output=True, text=True, check=True).stdout
    version = offered.split("|")[1].strip() if "|" in offered else "1"
    before = system()
    try:
        assert [*fetching.package("libssl3", version).rglob("libcrypto.so*")]
    except TollbarError as error:
        # Without a network.
        assert "\n" not in error.what
    assert before == system()


def system() -> object:
    """What is installed, and the files that apt and the linker have, by size and time."""
    listed = subprocess.run(["dpkg-query", "-W"], capture_output=True, text=True, check=True).stdout
    places = ["/var/lib/dpkg", "/var/cache/apt", "/etc/apt", "/usr/lib/x86_64-linux-gnu"]
    files = sorted(path for place in places for path in Path(place).glob("*") if path.is_file())
    return listed, [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files]


@pytest.fixture
def pip(fakes: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """A pip that downloads a wheel with this file, a copy of the system's libcrypto, in it."""
    real = fetching._run

    def holding(name: str) -> None:
        def fake(words: object, said: str, folder: Path, errors: str = "") -> str:
            if "pip" not in words:  # type: ignore[operator]
                return real(words, said, folder, errors)  # type: ignore[arg-type]
            with zipfile.ZipFile(folder / "x-1-py3-none-any.whl", "w") as wheel:
                wheel.write(os.environ["LIBRARY"], name)
            return ""

        monkeypatch.setattr(fetching, "_run", fake)

    return holding


def test_a_wheel_that_holds_a_libcrypto_is_a_build(pip: Callable[[str], None]) -> None:
    """Wherever in it that lies, and under whatever name it was given there."""
    pip("x.libs/libcrypto-1a2b3c.so.3")
    (_, new) = upgrading.both("libcrypto", "x==1")
    assert "libcrypto" == new.kind


def test_a_wheel_without_one_says_what_is_driven_otherwise(pip: Callable[[str], None]) -> None:
    """Of those that hold their cryptography inside only some have a runner."""
    pip("x/inside.so")
    with pytest.raises(TollbarError, match="holds no libcrypto of its own") as caught:
        upgrading.both("libcrypto", "x==1")
    assert "cryptography" in (caught.value.hint or "")


def test_two_kinds_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line says what each is."""
    found = {"a": side(OLD), "b": replace(side(NEW), kind=things.PYTHON)}
    monkeypatch.setattr(things, "_found", found.__getitem__)
    with pytest.raises(TollbarError, match="a is a libcrypto, and b a package of Python"):
        upgrading.both("a", "b")


# The command.


def test_an_upgrade_of_nothing_from_command_to_page(tollbar: Tollbar, tmp_path: Path) -> None:
    """A copy of the library beside the library: rows with intervals, none of them new or gone, and a page."""
    system = open_provider("libcrypto")
    assert isinstance(system, Provider)
    copied = tmp_path / "copy"
    copied.mkdir()
    shutil.copy(str(system.path), copied / "libcrypto.so.3")
    page = tmp_path / "upgrade.html"
    done = tollbar("upgrade", "libcrypto", str(copied), "digest", "--for", "4s", "--json", "--page", str(page))
    assert done.returncode in (0, 3), done.stderr
    said = json.loads(done.stdout)
    assert 6 == len(said["changes"])
    assert {one["kind"] for one in said["changes"]} <= {"dearer", "cheaper", "no change", "cannot tell"}
    assert all(one["ratio"]["interval"] for one in said["changes"])
    assert "on one core" in page.read_text()


@pytest.mark.parametrize(
    ("words", "status", "error"),
    [
        (("libcrypto", "libcrypto"), 2, "the same file twice"),
        (("libcrypto", "libcrypto:nothing"), 2, "no such libcrypto: `nothing`"),
        (("libcrypto", "libcrypto:psycopg", "--fail-above", "0%"), 2, "a share above nothing"),
        (("libcrypto", "libcrypto:psycopg", "nothing"), 2, "no such family to ask of it"),
    ],
)
def test_bad_input_is_one_line(words: tuple[str, ...], status: int, error: str, tollbar: Tollbar) -> None:
    """Before anything is measured."""
    done = tollbar("upgrade", *words)
    assert status == done.returncode
    assert error in done.stderr
    assert "Traceback" not in done.stderr
