"""Choices with parameters: their standing, impossible values, and memory limits."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tollbar import study
from tollbar.catalog.families import Choice, Family, Standing, Value, families
from tollbar.core import machine, units
from tollbar.core.errors import TollbarError
from tollbar.core.records import Outcome, Record
from tollbar.lab.workloads import Given
from tollbar.lab.workloads.operation import OperationWorkload, beyond_memory
from tollbar.report.coordinates import Form, named_value
from tollbar.study import plan
from tollbar.study.plan.cells import Cell

FAMILY = families()["password-hash"]
LEVELLED = [(family, choice) for family in families().values() for choice in family.choices.values() if choice.levels]


def at(family: Family, choice: str, **given: str | int) -> dict[str, Value]:
    """Return coordinates of a choice: its settings at their defaults, except those given as a study writes them."""
    read = {name: family.settings[name].read(value) for name, value in given.items()}
    coordinates: dict[str, Value] = {"choice": choice, "op": family.operations[0]}
    for name, setting in family.settings.items():
        if setting.applies(coordinates):
            coordinates[name] = read.pop(name, setting.default)
    assert not read, f"{choice} has no {list(read)}"
    return coordinates


# A choice with its parameters, their standing, and its authority.
THRESHOLD = [
    ("argon2id", {"memory": "46 MiB", "passes": 1}, Standing.RECOMMENDED, "OWASP"),
    ("argon2id", {"memory": "47103 KiB", "passes": 1}, Standing.DISALLOWED, "OWASP"),
    ("argon2id", {"memory": "19 MiB", "passes": 2, "lanes": 4}, Standing.RECOMMENDED, "OWASP"),
    ("argon2id", {"memory": "7 MiB", "passes": 4}, Standing.DISALLOWED, "OWASP"),
    ("argon2id", {"memory": "7 MiB", "passes": 5}, Standing.RECOMMENDED, "OWASP"),
    ("argon2id", {"memory": "64 MiB", "passes": 3, "lanes": 4}, Standing.RECOMMENDED, "IRTF"),
    ("scrypt", {"n": "2^17"}, Standing.ACCEPTABLE, "OWASP"),
    ("scrypt", {"n": 16384, "p": 5}, Standing.ACCEPTABLE, "OWASP"),
    ("scrypt", {"n": "2^14", "p": 1}, Standing.DISALLOWED, "OWASP"),
    ("bcrypt", {"cost": 12}, Standing.DEPRECATED, "OWASP"),
    ("bcrypt", {"cost": 9}, Standing.DISALLOWED, "OWASP"),
    ("pbkdf2-sha-256", {"iterations": 600_000}, Standing.ACCEPTABLE, "OWASP"),
    ("pbkdf2-sha-256", {"iterations": 599_999}, Standing.DISALLOWED, "OWASP"),
    ("pbkdf2-sha-512", {"iterations": 220_000}, Standing.ACCEPTABLE, "OWASP"),
    ("pbkdf2-sha-1", {"iterations": 1_400_000}, Standing.DEPRECATED, "OWASP"),
]


@pytest.mark.parametrize(("choice", "given", "standing", "by"), THRESHOLD)
def test_parameters_decide_the_standing_of_a_choice(
    choice: str, given: dict[str, str | int], standing: Standing, by: str
) -> None:
    coordinates = at(FAMILY, choice, **given)
    (part,) = FAMILY.parts_of(coordinates)
    assert (standing, standing) == (FAMILY.standing_of(coordinates), part.standing)
    assert by == part.authority[0].by


@pytest.mark.parametrize(("family", "choice"), LEVELLED, ids=lambda one: one.name)
def test_a_named_set_has_the_standing_of_its_parameters(family: Family, choice: Choice) -> None:
    algorithm = family.choices[str(choice.setting.get("algorithm", choice.name))]
    given = {name: value for name, value in choice.setting.items() if name in family.settings}
    unnamed, named = {**at(family, algorithm.name), **given}, at(family, choice.name)
    assert family.standing_of(unnamed) is family.standing_of(named)
    assert algorithm.memory_bytes(unnamed) == choice.memory_bytes(named)


@pytest.mark.parametrize(("family", "choice"), LEVELLED, ids=lambda one: one.name)
def test_every_level_says_what_it_rests_on(family: Family, choice: Choice) -> None:
    assert all(level.authority for level in choice.levels)
    assert {} == choice.levels[-1].at_least
    # A missing parameter counts as the best possible, so the values below all levels are given explicitly.
    lowest = {name: 0 for level in choice.levels for name in level.at_least}
    for level in choice.levels:
        parameters = {**at(family, choice.name), **(level.at_least or lowest)}
        assert level is next(one for one in choice.levels if one.is_met(parameters))


def test_memory_is_what_the_parameters_say() -> None:
    """Argon2id's own, and scrypt's by its formula; the others have none."""
    assert 46 * 1024**2 == FAMILY.choices["argon2id"].memory_bytes(at(FAMILY, "argon2id", memory="46 MiB"))
    assert 128 * 2**15 * 8 == FAMILY.choices["scrypt"].memory_bytes(at(FAMILY, "scrypt", n="2^15"))
    assert 0 == FAMILY.choices["bcrypt"].memory_bytes(at(FAMILY, "bcrypt"))


# Values that a study may not give a setting, and the error.
REFUSED = [
    ("memory", "46", "`46` needs a unit, for example `46 MiB` or `46 KiB`"),
    ("memory", "0 B", "`0 B` is too small; it must be at least 8 KiB"),
    ("memory", "9000 GiB", "`9000 GiB` is too large; it must be at most 4,095 GiB"),
    ("memory", "46 MB", "`46 MB` (46,000,000 B) must be a multiple of 1 KiB, for example `44921KiB` or `44922KiB`"),
    ("passes", 0, "`0` is too small; it must be at least 1"),
    ("lanes", 65, "`65` is too large; it must be at most 64"),
    ("cost", "99", "`99` is too large; it must be at most 18"),
    ("cost", "ten", "`ten` must be a whole number, for example `12`"),
    ("cost", "-1", "`-1` must be a whole number, for example `12`"),
    ("n", 100_000, "`100000` must be a power of two, for example `2^16` (65,536) or `2^17` (131,072)"),
    ("n", "2^40", "`2^40` is too large; it must be at most 2^24"),
    ("iterations", "600k", "`600k` must be a whole number, for example `600_000`"),
]


@pytest.mark.parametrize(("name", "value", "words"), REFUSED)
def test_what_a_parameter_cannot_be_is_said(name: str, value: str | int, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        FAMILY.settings[name].read(value)


@pytest.mark.parametrize(
    ("name", "value", "number", "words"),
    [
        ("memory", "46MiB", 46 * 1024**2, "46 MiB"),
        ("memory", "47103 KiB", 47103 * 1024, "47,103 KiB"),
        ("n", "2^17", 131072, "2^17"),
        ("n", 65536, 65536, "2^16"),
        ("cost", "12", 12, "12"),
        ("iterations", "1_000_000", 1_000_000, "1,000,000"),
    ],
)
def test_a_parameter_is_read_and_said_in_its_unit(name: str, value: str | int, number: int, words: str) -> None:
    setting = FAMILY.settings[name]
    assert number == setting.read(value)
    assert words == setting.words(number)


def cells(choice: str, **vary: str | int) -> tuple[Cell, ...]:
    """Return the planned cells of a study of one choice with these parameters."""
    lines = [f"{name} = [{json.dumps(value)}]" for name, value in vary.items()]
    head = f'question = "?"\nfamily = "password-hash"\nproviders = ["rustcrypto"]\nchoices = ["{choice}"]\n[vary]\n'
    text = "\n".join([head, *lines])
    return plan.make([study.read("mine", text, where="mine.toml")], seed=0).studies[0].cells


def test_parameters_that_cannot_be_together_are_refused() -> None:
    """Lanes need memory: the plan prints how much, and nothing starts."""
    words = "`memory` is 64 KiB; 16 `lanes` need at least 128 KiB (8 KiB each)"
    with pytest.raises(TollbarError, match=re.escape(words)):
        cells("argon2id", memory="64 KiB", lanes=16)
    assert cells("argon2id", memory="128 KiB", lanes=16)


def test_a_parameter_of_the_baseline_alone_is_what_the_study_says() -> None:
    asked = study.of_words("password-hash", ["argon2id", "bcrypt", "memory=46MiB", "cost=12"])
    planned = plan.make([study.read("mine", asked.text(), where="mine.toml")], seed=0)
    found = {cell.choice.name: cell for cell in planned.studies[0].cells}
    baseline = found["argon2id"]
    assert 46 * 1024**2 == baseline.coordinates["memory"]
    assert baseline.key == baseline.against == found["bcrypt"].against


@pytest.mark.parametrize("choice", ["argon2id", "argon2id-rfc9106-2g", "scrypt-owasp"])
def test_what_memory_cannot_hold_is_not_tried(choice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (cell,) = cells(choice)
    assert beyond_memory(cell) is None or choice.endswith("2g")
    monkeypatch.setattr(machine, "available_memory_bytes", lambda: 1024**2)

    def unasked(*_: object, **__: object) -> Record:
        raise AssertionError("a runner was asked")

    proven = OperationWorkload().prove(cell, 0, Given(None, unasked))
    words = f"one operation needs {units.show_size(cell.memory_bytes)} of memory; 1 MiB are free here"
    assert (Outcome.UNSUPPORTED, words) == (proven.outcome, proven.reason)


# The folder of a group's memory limit for the content of /proc/self/cgroup, and the file in it.
GROUPS = {
    "0::/mine": "sys/fs/cgroup/mine/memory.max",
    "0::/": "sys/fs/cgroup/memory.max",
    "4:memory:/mine": "sys/fs/cgroup/memory/mine/memory.limit_in_bytes",
    "4:memory:/elsewhere": "sys/fs/cgroup/memory/memory.limit_in_bytes",
}


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize(
    ("limit", "expected"), [("1048576", 1024**2), ("max", 2 * 1024**2), ("9999999999", 2 * 1024**2)]
)
def test_free_memory_is_that_of_the_container(group: str, limit: str, expected: int, tmp_path: Path) -> None:
    for path, text in (
        ("proc/meminfo", "MemTotal:  8192 kB\nMemAvailable:  2048 kB\n"),
        ("proc/self/cgroup", f"3:cpuset:/\n{group}\n"),
        (GROUPS[group], limit),
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert expected == machine.available_memory_bytes(tmp_path)


# Larger than a thousand, where people write a comma.
NUMBERS = (1_000, 600_000, 2**20)


@pytest.mark.parametrize("name", families())
def test_a_value_in_advice_is_read_as_itself(name: str) -> None:
    """A pasted `iterations=600,000` would be two values."""
    family = families()[name]
    for setting in family.settings.values():
        numbers = () if setting.values or setting.is_share or not setting.is_number else NUMBERS
        in_range = [
            n for n in numbers if (setting.least or 0) <= n <= (setting.most or n) and not n % setting.multiple_of
        ]
        for value in (setting.default, *(setting.values or ()), *in_range):
            if setting.unit == "power-of-two" and value in (1_000, 600_000):
                continue
            word = named_value(family, setting.name, value, Form.TYPED)
            ((found, (read,)),) = study.coordinates_of(family, [word]).items()
            assert (setting.name, value) == (found, setting.read(read)), word
