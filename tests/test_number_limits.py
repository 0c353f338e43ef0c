"""Numbers of studies and options: any text is accepted, or refused in one line before anything is measured."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from bench.figures import TOLLBAR

from tollbar import study
from tollbar.core.errors import TollbarError
from tollbar.lab.measure import schedule
from tollbar.study import plan
from tollbar.study.keys import WireStudy

DIGEST = """
question  = "?"
family    = "digest"
choices   = ["md5", "sha-256"]
providers = ["libcrypto"]
baseline  = "md5"
[vary]
op = ["hash"]
"""
SERVED = """
question  = "?"
family    = "tls"
choices   = ["tls-1.3"]
providers = ["libcrypto"]
servers      = ["embedded"]
baseline  = "tls-1.3"
[vary]
op = ["request"]
"""
SCENARIO = """
question  = "?"
family    = "tls"
url       = ["http://localhost:1/"]
choices   = ["plaintext"]
providers = ["aws-lc"]
baseline  = "plaintext"
[vary]
op = ["request"]
[load]
users = [1]
[scenario.values]
page = { range = RANGE }
[[scenario.step]]
get    = "/${page}"
expect = { status = STATUS }
"""
LOAD = '[load]\nrequest = { get = "/bytes/{bytes}" }\n'
CLAIM = '[[claim]]\nsays = "?"\nof = { choice = "md5" }\nover = { choice = "sha-256" }\nmetric = "cost"\n'
# Each numeric key, in a study that is valid except for its value.
KEYS = {
    "measure.chunk": DIGEST + "[measure]\nchunk = VALUE",
    "measure.rounds": DIGEST + "[measure]\nrounds = VALUE",
    "measure.blocks": DIGEST + "[measure]\nblocks = VALUE",
    "measure.pause": DIGEST + "[measure]\npause = VALUE",
    "measure.precision": DIGEST + "[measure]\nprecision = VALUE",
    "measure.longest": DIGEST + '[measure]\nprecision = "2 %"\nlongest = VALUE',
    "judge.threshold": DIGEST + "[judge]\nthreshold = VALUE",
    "load.users": SERVED + LOAD + "users = [VALUE]",
    "load.rates": SERVED + LOAD + 'shape = "open"\nrates = [VALUE]',
    "load.utilisation": SERVED + LOAD + 'shape = "open"\nutilisation = [VALUE]',
    "load.think": SERVED + LOAD + "think = VALUE",
    "load.expect.status": SERVED + LOAD + "expect = { status = VALUE }",
    "load.expect.bytes": SERVED + LOAD + "expect = { bytes = VALUE }",
    "scenario.values.range": SCENARIO.replace("RANGE", "[1, VALUE]").replace("STATUS", "200"),
    "scenario.step.expect.status": SCENARIO.replace("RANGE", "[1, 9]").replace("STATUS", "VALUE"),
    "claim.ratio": DIGEST + CLAIM + "ratio = VALUE",
    "vary of a size": DIGEST + "bytes = [VALUE]",
    "vary of threads": DIGEST + "threads = [VALUE]",
    "baseline of a size": DIGEST.replace('"md5"\n[', '{ choice = "md5", bytes = VALUE }\n['),
    "claim of a size": DIGEST + CLAIM.replace('"md5" }', '"md5", bytes = VALUE }') + "ratio = 2",
    "leave-out of a size": DIGEST + '[[leave-out]]\nwhere = { bytes = VALUE }\nbecause = "?"',
    "vary of a count": DIGEST.replace('"digest"', '"storage"')
    .replace('"md5", "sha-256"', '"plaintext"')
    .replace('"md5"', '"plaintext"')
    .replace('"libcrypto"', '"sqlite"')
    .replace('"hash"', '"read"')
    + "rows = [VALUE]",
    "vary of a share": SERVED + "resumed = [VALUE]",
}
# Values that no key accepts.
NUMBERS = ["-1", "1" + 19 * "0", "1" + 400 * "0", "1e999", "-inf", "nan", "true", '""', "1e-300"]
UNITS = ["ns", "s", "%", "/s", "B", "GiB", ""]
TEXTS = [
    f'"{number} {unit}"' for unit in UNITS for number in ("-1", "1" + 400 * "0", 5000 * "9", "0." + 300 * "0" + "1")
]
# Large or small valid numbers, accepted or refused.
EXTREME = ["0", *(f'"{number} {unit}"' for unit in UNITS for number in ("0", "1" + 19 * "0", "9^99"))]
MOST_LETTERS = 600


def planned(key: str, value: str) -> float:
    """Return the duration in seconds of a plan with this value for its key.

    Raises TollbarError.
    """
    one = study.read("odd", KEYS[key].replace("VALUE", value), where="odd.toml")
    return schedule.of_plan(plan.make([one], seed=1))


@pytest.mark.parametrize("key", KEYS)
def test_what_is_no_number_of_a_key_is_one_line(key: str) -> None:
    for value in [*NUMBERS, *TEXTS]:
        with pytest.raises(TollbarError) as caught:
            planned(key, value)
        assert "\n" not in str(caught.value), value
        assert MOST_LETTERS > len(str(caught.value)), value


@pytest.mark.parametrize("key", KEYS)
def test_an_extreme_number_is_planned_or_one_line(key: str) -> None:
    for value in EXTREME:
        try:
            assert math.isfinite(planned(key, value)), value
        except TollbarError as error:
            assert "\n" not in str(error), value
            assert MOST_LETTERS > len(str(error)), value


def numeric(table: Any, at: str = "") -> Iterator[str]:
    """Yield the keys of a table of a study that are numbers."""
    for name, field in table.__pydantic_fields__.items():
        key, inside = f"{at}{name.replace('_', '-')}", [field.annotation]
        for one in inside:
            inside += get_args(one)
        origins = [getattr(one, "__origin__", None) for one in inside]
        if tables := [one for one in inside if hasattr(one, "__pydantic_fields__")]:
            yield from numeric(tables[0], f"{key}.")
        # Values of coordinates are numbers of settings.
        elif dict not in origins and (int in inside or float in inside):
            yield key


def test_every_numeric_key_is_tried() -> None:
    assert {*numeric(WireStudy)} == {key for key in KEYS if " " not in key}


@pytest.mark.share(2)
@pytest.mark.parametrize("command", ["plan", "run"])
@pytest.mark.parametrize(
    ("key", "value"),
    [("measure.rounds", "1" + 19 * "0"), ("measure.chunk", '"31536000 s"'), ("measure.blocks", "true")],
)
def test_a_command_refuses_it_before_anything_is_measured(command: str, key: str, value: str, tmp_path: Path) -> None:
    (tmp_path / "odd.toml").write_text(KEYS[key].replace("VALUE", value))
    refused = subprocess.run([TOLLBAR, command, "odd.toml"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (2, "") == (refused.returncode, refused.stdout)
    assert [f"error: odd.toml: `{key}`"] == [
        line[: len(f"error: odd.toml: `{key}`")] for line in refused.stderr.splitlines()
    ]
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    "template", ["{bytes:1000000000}", "{bytes!r}", "{op}", "{choice}", "-1 s", "", "1" + 30 * "0"]
)
def test_a_length_that_could_not_be_read_is_refused_before(template: str) -> None:
    with pytest.raises(TollbarError, match=r"load\.expect\.bytes"):
        planned("load.expect.bytes", f'"{template}"')


# Options that take a number, and values that none of them accepts.
OPTIONS = ["--blocks", "--seed", "--users", "--server-pid", "--precision", "--for"]
ODD = ["-1", "1" + 19 * "0", "1" + 400 * "0", "1e999", "nan", "true", "", "1e-300"]


@pytest.mark.parametrize("command", ["plan", "run"])
@pytest.mark.parametrize("option", OPTIONS)
def test_what_is_no_number_of_an_option_is_one_line(
    command: str, option: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from tollbar import cli

    monkeypatch.chdir(tmp_path)
    (tmp_path / "right.toml").write_text(DIGEST)
    for value in ODD:
        words = [
            command,
            "right.toml",
            "--no-report",
            *(["--precision", "2%"] if option == "--for" else []),
            option,
            value,
        ]
        assert 2 == cli._status_of(words), (option, value)
        said = capsys.readouterr().err.splitlines()
        assert 1 == sum(line.startswith("error: ") for line in said), (value, said)
    assert not (tmp_path / "runs").exists()
