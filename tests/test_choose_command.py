"""The command `choose`: errors in a command line, an answer from a run, and a measured answer."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from builders import run
from conftest import FAKE_RUNNER, Tollbar
from policy_lab import OURS
from test_choosing import digests
from tollbar.catalog.families import Standing, family
from tollbar.catalog.servers import Unavailable
from tollbar.cli.choose import _nearby
from tollbar.cli.choose import choose as command
from tollbar.cli.layouts import Layout
from tollbar.core.errors import ExitStatus, TollbarError
from tollbar.core.intervals import FEWEST_BLOCKS
from tollbar.decide.rulings import wanted

# Arguments, options of the run, and the line that the error prints with its hint.
MISTAKES: dict[str, tuple[tuple[str, ...], dict[str, object], str]] = {
    "family": (("digst",), {}, "no such family: `digst` did you mean `digest`"),
    "policy": (("digest",), {"policy": ("asvs-levl-2",)}, "no such policy: `asvs-levl-2` did you mean `asvs-level-2"),
    "threat": (("digest",), {"threat": ("colision",)}, "no such threat: `colision` did you mean `collision`"),
    "degree": (("digest",), {"threat": ("collision=partl",)}, "`partl` must be `yes` or `partly`"),
    "day": (
        ("digest",),
        {"on": "2032"},
        "`2032` is not a date; it must be written as YYYY-MM-DD did you mean `2032-01-01`",
    ),
    "coordinate": (("digest", "byts=4KiB"), {}, "no setting `byts` did you mean `bytes`"),
    "choice": (("digest", "sha-265"), {}, "no such choice of digest: `sha-265` did you mean `sha-256`"),
    "time": (("digest",), {"for_": "soon"}, "soon"),
    "no day": (
        ("digest",),
        {"on": ""},
        "`` is not a date; it must be written as YYYY-MM-DD for example `--date 2032-01-01`",
    ),
    "run": (("digest",), {"run": Path("none")}, "not a run"),
    "a run that is measured": (("digest",), {"run": Path("none"), "for_": "20s"}, "which measures nothing"),
    "an empty trust store": (("tls-client", "no-trust"), {}, "`no-trust` is measured for comparison only"),
    "no protection": (("digest", "none", "sha-256"), {}, "`none` is measured for comparison only"),
    "a combination": (("tls", "tls-1.2", "key-exchange=x25519mlkem768"), {}, "TLS 1.2 has no hybrid groups"),
    "a policy of other families": (
        ("mac",),
        {"policy": ("cnsa",)},
        "cnsa-2.0-2024-12: the policy has no rule for the family mac; it needs one policies with "
        "such rules: asvs-level-1-5.0.0, ",
    ),
    "a level and no edition": (
        ("digest",),
        {"policy": ("asvs-level",)},
        "no such policy: `asvs-level` did you mean `asvs-level-",
    ),
    "a policy's file": (("digest",), {"policy": ("none.toml",)}, "no such policy: `none.toml`"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line_with_the_nearest(mistake: str) -> None:
    words, options, expected = MISTAKES[mistake]
    with pytest.raises(TollbarError) as error:
        command(*words, layout=Layout(), **options)  # type: ignore[arg-type]
    assert expected in f"{error.value.where}: {error.value.what} {error.value.hint or ''}"


def test_a_run_is_chosen_from_without_what_measures() -> None:
    """Importing the measuring packages takes a fifth of such an answer's time."""
    script = "import sys, tollbar.cli.choose; print(*(name for name in sys.modules if name.startswith('tollbar.lab')))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "\n" == done.stdout


def test_a_run_answers_by_itself_and_without_the_family_says_what_it_has(
    fake_runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A fake runner does work of a known size: the run has no signature and not every choice."""
    run = fake_runs / "one"
    command("spin", run=run, layout=Layout(json=True))
    assert "spin" == json.loads(capsys.readouterr().out)["family"]
    with pytest.raises(TollbarError, match="the run has no cells of the family signature") as error:
        command("signature", run=run)
    assert error.value.hint == "it has spin"
    with pytest.raises(TollbarError, match="no row of the run has `choice=spin-5`"):
        command("spin", "spin-5", run=run)


ON_SPIN = OURS.replace('family = "digest"', 'family = "spin"')


@pytest.mark.parametrize(("only", "status"), [("spin-5", ExitStatus.DONE), ("spin-6", ExitStatus.SOME_FAILED)])
def test_what_the_run_lacks_is_counted_and_qualifies(
    only: str, status: ExitStatus, fake_runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A choice that meets the policy but was not measured is counted; more time would not add it to the run."""
    (path := tmp_path / "ours-2026.toml").write_text(
        ON_SPIN.replace('["sha3-*"] }', f'["{only}"] }}\nabsent = ["{only}"]')
    )
    assert status is command("spin", policy=(str(path),), run=fake_runs / "one", layout=Layout(json=True))
    said = json.loads(capsys.readouterr().out)
    measured = {one["choice"] for place in said["places"] for one in place["refused"]}
    lacks = {one["choice"] for one in said["unmeasured"]}
    assert {"spin-5"} <= lacks
    assert set() == measured & lacks
    assert {
        name for name, one in family("spin").choices.items() if one.standing is not Standing.NULL
    } == measured | lacks
    assert status is command("spin", policy=(str(path),), run=fake_runs / "one")
    text = " ".join(capsys.readouterr().out.split())
    assert "--for" not in text
    if status is ExitStatus.DONE:
        assert "Nothing that was measured qualifies; spin-5 would, and was not." in text
        assert "Not in the run, but would qualify: spin-5. To measure them, leave out `--run`." in text
    else:
        assert "Nothing qualifies." in text
        assert "The nearest misses" in text


def test_without_time_what_qualifies_is_named_and_nothing_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = tmp_path / "runs"
    asked_for = {"policy": ("asvs-level-2",), "for_": "0s", "runs": runs}
    assert ExitStatus.DONE is command("digest", **asked_for, layout=Layout(json=True))  # type: ignore[arg-type]
    said = json.loads(capsys.readouterr().out)
    (place,) = said["places"]
    assert ([], [], "nothing was measured") == (place["ranks"], said["unmeasured"], said["costs_from"])
    assert "blake3" in {one["choice"] for one in place["unpriced"]}
    assert "md5" in {one["choice"] for one in place["refused"]}
    assert {None} == {one["cost"] for group in ("unpriced", "refused") for one in place[group]}
    assert ExitStatus.DONE is command("digest", **asked_for)  # type: ignore[arg-type]
    text = " ".join(capsys.readouterr().out.split())
    assert "Of the cells near what was asked" in text
    assert "qualify; nothing was measured." in text
    assert "cheapest first" not in text
    assert ExitStatus.SOME_FAILED is command("digest", "md5", **asked_for)  # type: ignore[arg-type]
    assert not runs.exists()


@pytest.mark.parametrize(
    ("words", "policy"),
    [
        ("argon2id memory=1MiB passes=1 lanes=1", "owasp-password-storage"),
        ("pbkdf2-sha-256 iterations=29000", "owasp-password-storage"),
        ("pbkdf2-sha-256 iterations=29000", "asvs-level-2"),
        ("scrypt n=2^10 r=8 p=1", "owasp-password-storage"),
        ("scrypt n=2^15 r=8 p=1", "owasp-password-storage"),
        ("bcrypt cost=5", "owasp-password-storage"),
    ],
)
def test_parameters_that_a_policy_refuses_never_qualify(
    words: str, policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked_for = {"policy": (policy,), "for_": "0s"}
    assert ExitStatus.SOME_FAILED is command("password-hash", *words.split(), **asked_for)  # type: ignore[arg-type]
    assert "Nothing qualifies." in capsys.readouterr().out


def test_of_two_values_each_is_judged(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("password-hash", "argon2id", "memory=1MiB,19MiB", "passes=2", "lanes=1")
    asked_for = {"policy": ("owasp-password-storage",), "for_": "0s", "layout": Layout(json=True)}
    assert ExitStatus.DONE is command(*words, **asked_for)  # type: ignore[arg-type]
    (place,) = json.loads(capsys.readouterr().out)["places"]
    memory = {group: [one["setting"]["memory"] for one in place[group]] for group in ("unpriced", "refused")}
    assert {"unpriced": [19 << 20], "refused": [1 << 20]} == memory


def test_without_time_what_was_given_stands_in_every_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Sizes decide nothing and are printed as given; options that only a measurement uses are refused."""
    command("digest", "bytes=16KiB", policy=("asvs-level-2",), for_="0s", layout=Layout(json=True))
    (place,) = json.loads(capsys.readouterr().out)["places"]
    assert {16384} == {one["setting"]["bytes"] for one in (*place["unpriced"], *place["refused"])}
    for words, options, expected in (
        (("digest", "provider=nonsense"), {}, "nonsense"),
        (("digest",), {"seed": 1}, "which measures nothing"),
        (("digest",), {"library": (tmp_path / "libcrypto.so",)}, "which measures nothing"),
    ):
        with pytest.raises(TollbarError) as error:
            command(*words, for_="0s", **options)  # type: ignore[arg-type]
        assert expected in f"{error.value.where}: {error.value.what}"


def test_without_a_run_what_qualifies_is_measured_and_kept(tollbar: Tollbar, tmp_path: Path) -> None:
    """The time is over before the few blocks begin; a busy core gets some more because quiet moments are missing."""
    words = ("spin", "spin-1", "spin-2", f"provider=runner:{FAKE_RUNNER}", "--for", "0.1s", "--json")
    done = tollbar("choose", *words)
    assert 0 == done.returncode, done.stderr
    said = json.loads(done.stdout)
    (place,) = said["places"]
    assert ["spin-1", "spin-2"] == [one["choice"] for rank in place["ranks"] for one in rank["candidates"]]
    (made,) = (tmp_path / "runs").iterdir()
    (kept,) = json.loads((made / "run.json").read_text())["studies"].values()
    assert FEWEST_BLOCKS <= kept["blocks"] <= 2 * FEWEST_BLOCKS
    again = json.loads(tollbar("choose", "spin", "--run", made, "--json").stdout)
    assert place["where"] == again["places"][0]["where"]


def test_a_run_of_load_clients_is_no_run_of_servers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    of = digests()
    clients = replace(of, study=replace(of.study, measure=replace(of.study.measure, cost="client-cpu")))
    monkeypatch.setattr("tollbar.cli.choose.read_run", lambda *_, **__: run(clients))
    with pytest.raises(TollbarError, match="the run has only the load client's CPU time for digest"):
        command("digest", run=tmp_path)


def test_a_choice_that_only_a_server_has_says_which_and_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No provider performs it: planned, it would be a cell that cannot be measured."""
    missing = Unavailable("postgresql", "PostgreSQL is not installed; to install it: apt-get install postgresql")
    monkeypatch.setattr("tollbar.cli.choose.servers.find", lambda _: missing)
    assert ExitStatus.DONE is command("storage", "pgp-sym-encrypt", for_="5s", runs=tmp_path / "runs")
    said = " ".join(capsys.readouterr().out.split())
    expected = f"could be measured here: it needs `server=postgresql`; {missing.reason}."
    assert expected in said
    assert not (tmp_path / "runs").exists()
    near = _nearby(wanted("storage", standing=Standing.ACCEPTABLE), {})
    measured = {str(one.coordinates["choice"]) for one in near.to_measure(len(near.candidates))}
    assert measured == {name for name, one in family("storage").choices.items() if not one.servers} - {"plaintext"}


@pytest.mark.parametrize(
    ("words", "first"),
    [
        (("tls",), "TLS 1.3 · x25519mlkem768, the default, qualifies."),
        (("tls", "key-exchange=x25519"), "The default, TLS 1.3 · x25519mlkem768, is not among the choices"),
    ],
)
def test_the_default_is_named_with_the_settings_that_make_it(
    words: tuple[str, ...], first: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ExitStatus.DONE is command(*words, for_="0s")
    assert first in " ".join(capsys.readouterr().out.split())
