"""`tollbar size` measures the terms that no named run has, within its time, and keeps them as a run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from builders import run
from conftest import Tollbar
from size_lab import HANDSHAKE_TERM, HASH_TERM, LOGIN_TERM, hashes, made
from tollbar import lab
from tollbar.catalog.families import Value
from tollbar.cli import measuring
from tollbar.cli import size as command
from tollbar.cli.layouts import Layout
from tollbar.core import machine, method
from tollbar.core.errors import ExitStatus, TollbarError
from tollbar.lab.measure import schedule
from tollbar.results import Run, StudyRun
from tollbar.study import Study

FORM: Mapping[str, Value] = {
    "choice": "form",
    "op": "sign-on",
    "server": "embedded",
    "client": "apart",
    "utilisation": 60,
}
LOGINS = made("web-auth", {"form": FORM}, {"form": 20e6})
HASHES = hashes({"sha-256": 7000.0})
MIX = LOGIN_TERM + HASH_TERM.format(rate=1000, choice="sha-256")


@dataclass
class FakeLab:
    """Lab that answers any plan with one made-up run, and records its orders."""

    answer: Run
    asked: list[Study] = field(default_factory=list)
    within_s: float = 0.0
    runs: Path | None = None

    def begin(self, asked: Sequence[Study], *, command: Sequence[str], runs: Path) -> tuple[Any, Any]:
        self.asked, self.runs = list(asked), runs
        return None, None

    def carry_out(self, planned: Any, store: Any, *, report: bool, how_long: lab.HowLong) -> Any:
        self.within_s = how_long.within_s or 0.0
        return SimpleNamespace(run=self.answer)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeLab:
    found = FakeLab(replace(run(LOGINS, HASHES), name="measured-now"))
    monkeypatch.setattr(lab, "begin", found.begin)
    monkeypatch.setattr(measuring, "carry_out", found.carry_out)
    return found


def _size(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str], **options: Any) -> tuple[ExitStatus, Any]:
    (tmp_path / "mix.toml").write_text(text, "utf-8")
    status = command.size(tmp_path / "mix.toml", layout=Layout(json=True), **options)
    return status, json.loads(capsys.readouterr().out)


def _named(monkeypatch: pytest.MonkeyPatch, *studies: StudyRun, **about: Any) -> dict[str, Any]:
    """Return the option `--run` with a run of these studies, by this machine unless `about` names another."""
    found = replace(run(*studies), **{"name": "named", "fingerprint": machine.fingerprint(), **about})
    monkeypatch.setattr(command, "read_run", lambda path: found)
    return {"run": (Path("named"),)}


def test_missing_terms_are_measured_and_then_answered(
    fake: FakeLab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, answer = _size(tmp_path, MIX, capsys, runs=tmp_path / "mine")
    assert (ExitStatus.DONE, ["measured-now"], {}) == (status, answer["runs"], answer["missing"])
    assert (20 * 0.02 + 1000 * 7e-6) / 0.6 == pytest.approx(answer["cores"]["estimate"])
    assert ["size-logins", "size-hashes"] == [one.name for one in fake.asked]
    assert tmp_path / "mine" == fake.runs
    assert 30 < 2 * fake.within_s < 90


def test_a_cell_of_two_terms_is_measured_once(
    fake: FakeLab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    twice = HASH_TERM.format(rate=1000, choice="sha-256") + HASH_TERM.format(rate=5, choice="sha-256").replace(
        "term.hashes", "term.more"
    )
    status, _ = _size(tmp_path, twice, capsys)
    assert (ExitStatus.DONE, ["size-hashes"]) == (status, [one.name for one in fake.asked])


def test_without_time_the_questions_are_listed(
    fake: FakeLab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, answer = _size(tmp_path, MIX, capsys, for_="0s")
    assert (ExitStatus.SOME_FAILED, 2, []) == (status, len(answer["ask"]), fake.asked)


def test_terms_of_named_runs_are_not_measured_again(
    fake: FakeLab, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.answer = replace(fake.answer, fingerprint=machine.fingerprint())
    status, answer = _size(tmp_path, MIX, capsys, **_named(monkeypatch, HASHES))
    assert (ExitStatus.DONE, ["named", "measured-now"]) == (status, answer["runs"])
    assert ["size-logins"] == [one.name for one in fake.asked]
    fake.asked.clear()
    status, answer = _size(tmp_path, MIX, capsys, **_named(monkeypatch, HASHES, LOGINS))
    assert (ExitStatus.DONE, ["named"], []) == (status, answer["runs"], fake.asked)


@pytest.mark.parametrize("about", ["a role", "a fingerprint"])
def test_terms_of_another_machine_are_not_measured_here(
    fake: FakeLab, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, about: str
) -> None:
    web = {"address": "10.0.0.2", "host": "web", "fingerprint": machine.fingerprint(), "is_simulated": False}
    other = {"fingerprint": {"cpu": "other"}} if about == "a fingerprint" else {"nodes": {"web": web}}
    named = _named(monkeypatch, HASHES, **other)
    with pytest.raises(TollbarError) as fault:
        _size(tmp_path, MIX, capsys, **named)
    assert "--for 0s" in (fault.value.hint or "")
    status, answer = _size(tmp_path, MIX, capsys, for_="0s", **named)
    assert (ExitStatus.SOME_FAILED, ["logins"], []) == (status, [*answer["missing"]], fake.asked)


def test_costs_of_two_versions_of_the_method_are_not_added(
    fake: FakeLab, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.answer = replace(fake.answer, fingerprint=machine.fingerprint())
    earlier = _named(monkeypatch, HASHES, method=method.FIRST)
    with pytest.raises(TollbarError, match=f"versions {method.FIRST} and {method.VERSION} of the method"):
        _size(tmp_path, MIX, capsys, **earlier)
    assert not fake.asked
    # Without a measurement no versions are mixed.
    _size(tmp_path, MIX, capsys, for_="0s", **earlier)
    status, _ = _size(tmp_path, MIX, capsys, across_methods=True, **earlier)
    assert ExitStatus.DONE == status


def test_costs_of_an_earlier_version_of_the_method_are_not_checked_by_this_one(
    fake: FakeLab, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = _named(monkeypatch, HASHES, LOGINS, method=method.FIRST)
    with pytest.raises(TollbarError, match=f"versions {method.FIRST} and {method.VERSION} of the method") as refused:
        _size(tmp_path, MIX, capsys, check=True, **earlier)
    assert "--across-methods" in (refused.value.hint or "")
    assert not fake.asked
    status, _ = _size(tmp_path, MIX, capsys, **earlier)
    assert (ExitStatus.DONE, []) == (status, fake.asked), "one version alone is mixed with nothing"


def test_terms_that_the_time_does_not_hold_stay_questions(
    fake: FakeLab, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule, "of_plan", lambda plan: 50.0)
    fake.answer = replace(run(LOGINS), name="measured-now")
    (tmp_path / "mix.toml").write_text(MIX, "utf-8")
    assert ExitStatus.SOME_FAILED == command.size(tmp_path / "mix.toml")
    told = capsys.readouterr()
    assert ["size-logins"] == [one.name for one in fake.asked]
    assert "`hashes` is not measured in this time; `--for 100s` measures all" in " ".join(told.err.split())
    assert "tollbar ask digest sha-256" in told.out


def test_a_term_that_cannot_be_planned_leaves_the_others(
    fake: FakeLab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    absent = (
        HASH_TERM.format(rate=1, choice="sha-256").replace("term.hashes", "term.other") + 'provider = "libcrypto:/no"\n'
    )
    status, answer = _size(tmp_path, LOGIN_TERM + absent, capsys)
    assert (ExitStatus.SOME_FAILED, ["other"]) == (status, [*answer["missing"]])
    assert ["size-logins"] == [one.name for one in fake.asked]


def test_a_check_without_time_is_refused(fake: FakeLab, tmp_path: Path) -> None:
    (tmp_path / "mix.toml").write_text(MIX, "utf-8")
    with pytest.raises(TollbarError, match="`--check` needs time"):
        command.size(tmp_path / "mix.toml", check=True, for_="0s")


def test_a_mixture_and_its_null_are_one_study(
    fake: FakeLab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _size(tmp_path, HANDSHAKE_TERM.format(rate=5, resumed=80), capsys)
    (one,) = fake.asked
    assert ("size-handshakes", {"tls-1.3", "plaintext"}) == (one.name, {*map(str, one.choices)})


def test_the_command_measures_and_keeps_a_run(tollbar: Tollbar, tmp_path: Path) -> None:
    (tmp_path / "mix.toml").write_text(HASH_TERM.format(rate=50_000, choice="sha-256"), "utf-8")
    done = tollbar("size", "mix.toml", "--for", "1s", "--json")
    assert 0 == done.returncode, done.stderr
    (folder,) = (tmp_path / "runs").iterdir()
    again = tollbar("size", "mix.toml", "--run", folder, "--for", "0s", "--json")
    assert json.loads(done.stdout) == json.loads(again.stdout)
