"""Users' studies: sets and their members, `new`, `show --toml`, and the reference of keys."""

from __future__ import annotations

import inspect
import json
import re
import tomllib
import types
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Union, get_args, get_origin

import pytest
from pydantic_core import PydanticUndefined

from conftest import Tollbar
from tollbar import study
from tollbar.catalog.families import families
from tollbar.cli import plan as plan_command
from tollbar.cli import run
from tollbar.core import units
from tollbar.core.errors import TollbarError
from tollbar.core.wire import Strict, text_of
from tollbar.study import keys, plan

REFERENCE = (Path(__file__).parent.parent / "docs" / "studies.md").read_text("utf-8")
# The table of limits has rows of this form too, and comes before.
KEY_TABLES = REFERENCE.split("## Keys of a study")[1]
ROWS = dict(re.findall(r"^\| `([\w.-]+)` \| [^|]* \| ([^|]*) \|$", KEY_TABLES, re.MULTILINE))

LEAST = "question = '?'\nfamily = '{}'\nchoices = {}\n"


def _keys(table: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every key that the reader knows, and its default."""
    for name, field in table.__pydantic_fields__.items():
        key = path + (field.alias or name)
        yield key, field.get_default(call_default_factory=True)
        for inner in _tables(field.annotation):
            yield from _keys(inner, f"{key}.")


def _tables(annotation: Any) -> Iterator[Any]:
    if isinstance(annotation, type) and not get_args(annotation) and issubclass(annotation, Strict):
        yield annotation
    elif get_origin(annotation) in (tuple, Union, types.UnionType):
        for inner in get_args(annotation):
            yield from _tables(inner)


KEYS = dict(_keys(keys.WireStudy))


def test_the_reference_has_every_key_and_no_other() -> None:
    assert set(KEYS) == set(ROWS)


@pytest.mark.parametrize("key", KEYS)
def test_the_reference_has_each_default(key: str) -> None:
    default, said = KEYS[key], ROWS[key]
    written = re.match(r"`(.*?)`", said)
    if default is PydanticUndefined:
        assert said == "required"
    elif isinstance(default, Strict):
        assert said == "below"
    elif default in (None, (), {}):
        assert written is None
    else:
        assert written is not None, said
        value = json.loads(written.group(1))
        read = {
            "judge.threshold": units.share,
            "measure.chunk": units.seconds,
            "load.think": units.seconds,
            "measure.pause": units.seconds,
        }
        if key in read:
            value = read[key](value)
        assert default == (tuple(value) if isinstance(value, list) else value)


def test_the_reference_has_every_unit() -> None:
    table = re.findall(r"^\| a .*$", REFERENCE.split("## Units")[1].split("##")[0], re.MULTILINE)
    listed = {unit for row in table for unit in re.findall(r"`([^`]+)`", row) if '"' not in unit}
    assert {*units.BYTES, *units.SECONDS, "%", "/s"} == listed


# Cells of the reference's examples.
EXAMPLES = {"least": 2, "parameters": 3}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_of_the_reference_is_a_study(name: str) -> None:
    text = REFERENCE.split(f"<!-- {name} -->")[1].split("```")[1].removeprefix("toml")
    (planned,) = plan.make([study.read(name, text, where="docs")], seed=0).studies
    assert EXAMPLES[name] == len(planned.cells)
    assert 1 == len({cell.against for cell in planned.cells})


@pytest.mark.parametrize("name", families())
def test_question_family_and_choices_are_enough(name: str) -> None:
    family = families()[name]
    one = study.read("least", LEAST.format(name, [*family.choices][-2:]), where="least")
    (planned,) = plan.make([one], seed=0).studies
    assert family.servers == one.servers
    assert bool(family.servers) == all(cell.server is not None for cell in planned.cells)
    assert bool(family.servers and family.load) == all(cell.load is not None for cell in planned.cells)


@pytest.mark.parametrize("name", families())
def test_a_study_to_begin_with_runs_as_it_is(name: str) -> None:
    text, family = study.begun(name), families()[name]
    one = study.read("new", text, where="new")
    (planned,) = plan.make([one], seed=0).studies
    assert planned.cells
    assert all(re.search(rf"^# {setting} = ", text, re.MULTILINE) for setting in family.settings)
    assert all(re.search(rf"^#   {choice} ", text, re.MULTILINE) for choice in family.choices)
    whole = study.read("new", re.sub(r"^# ([a-z0-9-]+ = |\[)", r"\1", text, flags=re.MULTILINE), where="uncommented")
    # Named explicitly, the usual chunk and rounds hold for quick operations too.
    assert (replace(one.measure, is_adapted=False), one.threshold) == (whole.measure, whole.threshold)
    assert {"op", *family.settings} == set(whole.vary)
    assert (1, 1) == (len(whole.leave_out), len(whole.claims))
    defaults = {setting: (of.default,) for setting, of in family.settings.items()}
    assert defaults == {key: values for key, values in whole.vary.items() if key != "op"}


def test_new_writes_a_file_once(tollbar: Tollbar, tmp_path: Path) -> None:
    assert study.begun("digest") == tollbar("new", "digest").stdout
    assert 0 == tollbar("new", "digest", "--output", "mine.toml").returncode
    assert study.begun("digest") == (tmp_path / "mine.toml").read_text("utf-8")
    again = tollbar("new", "mac", "--output", "mine.toml")
    assert 2 == again.returncode
    assert "already exists" in again.stderr
    assert study.begun("digest") == (tmp_path / "mine.toml").read_text("utf-8")
    assert "did you mean `digest`?" in tollbar("new", "digets").stderr


@pytest.mark.parametrize("name", study.members())
def test_a_member_of_a_set_has_its_name(name: str) -> None:
    try:
        (one,) = study.load([name])
    except TollbarError as error:
        assert "/" not in name
        meant = re.findall(r"[\w-]+/[\w-]+", error.hint or "")
        assert 2 <= len(meant)
        assert {name} == {study.load([full])[0].name for full in meant}
    else:
        assert name.rpartition("/")[2] == one.name


def test_a_study_outside_all_sets_comes_before_members() -> None:
    """`digests` is the whole study, though `quick` has one of that name."""
    assert len(study.load(["digests"])[0].choices) > len(study.load(["quick/digests"])[0].choices)


def test_names_nearby_are_those_of_members_too() -> None:
    for name, near in {
        "tls-post-quantm": "`tls-post-quantum`",
        "tls-today/tls-mutal": "`tls-today/tls-mutual`",
    }.items():
        with pytest.raises(TollbarError) as raised:
            study.load([name])
        assert near in (raised.value.hint or "")


def test_a_folder_of_ones_own_is_a_set(tollbar: Tollbar, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    assert "has no study" in tollbar("plan", "mine").stderr
    for name in ("b", "a"):
        (folder / f"{name}.toml").write_text(LEAST.format("digest", ["md5", "sha-1"]))
    planned = json.loads(tollbar("plan", "mine", "--json").stdout)
    assert ["a", "b"] == [one["study"] for one in planned["studies"]]
    (folder / "c.toml").write_text("family = 1")
    done = tollbar("plan", "mine")
    assert 2 == done.returncode
    assert "mine/c.toml" in done.stderr


def test_what_a_family_does_not_have_is_told_with_who_has_it() -> None:
    text = LEAST.format("key-exchange", ["x25519"]) + "[vary]\ncertificate = ['rsa-2048']\n"
    with pytest.raises(TollbarError) as raised:
        study.read("mine", text, where="mine.toml")
    assert "the family key-exchange has no setting `certificate`" in str(raised.value)
    assert "tls has it" in (raised.value.hint or "")


def test_show_takes_several_words(tollbar: Tollbar) -> None:
    one = tollbar("show", "tls-post-quantum", "nginx", "x25519mlkem768", "tls-1.3", "--json")
    assert 0 == one.returncode, one.stderr
    task = json.loads(one.stdout)["task"]
    assert "x25519mlkem768" in json.dumps(task)
    assert one.stdout == tollbar("show", "tls-post-quantum", "nginx x25519mlkem768 tls-1.3", "--json").stdout


def test_show_prints_the_study_itself(tollbar: Tollbar) -> None:
    assert study.load(["tls-mutual"])[0].text == tollbar("show", "tls-mutual", "--toml").stdout
    several = tollbar("show", "tls-today", "--toml")
    assert (2, "") == (several.returncode, several.stdout)
    assert "tls-mutual" in several.stderr


def test_plan_takes_what_run_takes(tollbar: Tollbar, fake_runs: Path) -> None:
    elsewhere = {"on", "nodes", "simulate"}
    assert {*inspect.signature(run.run).parameters} - elsewhere == {*inspect.signature(plan_command.plan).parameters}
    blocks = json.loads(tollbar("plan", "self-test", "--blocks", "40", "--json").stdout)
    assert 40 == blocks["studies"][0]["blocks"]
    assert "at least one block" in tollbar("plan", "--blocks", "0").stderr
    assert "no server answers" in tollbar("plan", "--url", "http://127.0.0.1:9/", "--users", "3", "--json").stderr
    assert "attack" in tollbar("plan", "--url", "http://192.0.2.1/").stderr
    resumed = json.loads(tollbar("plan", "--resume", fake_runs / "one", "--json").stdout)
    assert 3 == resumed["studies"][0]["cells"]


@pytest.mark.share(0)
def test_providers_are_listed_with_what_their_names_mean(tollbar: Tollbar) -> None:
    rows = {row["provider"]: row for row in json.loads(tollbar("list", "providers", "--json").stdout)}
    assert "the system's own" == rows["libcrypto"]["is"]
    assert "came with the Python package psycopg" == rows["libcrypto:psycopg"]["is"]
    assert {rows["libcrypto"]["name"], rows["libcrypto:psycopg"]["name"]} <= {*rows["libcrypto:*"]["name"].split(", ")}
    assert all(row["is"] for row in rows.values())


@pytest.mark.parametrize("word", ["plain", "", 'a"b\\c', "line\nend", "\x00\x1f\x7f\u2028", "ß×🔑"])
def test_what_is_written_is_read_back(word: str) -> None:
    tables = {
        "": {"a": word, "longer": [word, 1, True]},
        "of": {"b": {"c": word}},
        "several": [{"d": word}, {"d": 2.5}],
    }
    assert {**tables[""], **{name: tables[name] for name in ("of", "several")}} == tomllib.loads(text_of(tables))
