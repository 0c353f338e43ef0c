"""`tollbar check`: a project's choices and limits, checked against current policies and measurements."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from builders import run
from conftest import FAKE_RUNNER, Tollbar
from patience import PATIENCE_S
from test_budgets import at_ratio
from tollbar.analysis import Judgement, StudyJudgement
from tollbar.catalog.policies import read_project
from tollbar.cli import check as command
from tollbar.cli import measuring
from tollbar.core.errors import ExitStatus, TollbarError
from tollbar.decide.check.document import CheckDocument
from tollbar.study import Study, load

USES = """
policy = ["asvs-level-2-5.0.0", "ours-2026.toml"]

[uses.archive]
family   = "digest"
choice   = "sha-1"
standing = "acceptable"

[uses.front]
family  = "tls"
choice  = "tls-1.3"
setting = { certificate = "ecdsa-p256", key-exchange = "x25519" }
threats = ["eavesdropping", "harvest-now-decrypt-later"]
"""
OURS = """
[policy]
title = "Ours"
by = "us"
edition = "2026"
date = 2026-01-01
source = "handbook"
seen = 2026-11-23
checked = true
unlisted = "not approved"

[[rule]]
id = "groups"
clause = "4.2"
family = "tls"
only = { key-exchange = ["x25519mlkem768"] }

[[except]]
rule = "groups"
where = { choice = "tls-1.3" }
because = "until release 9"
until = 2026-12-31
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a project that violates some rules."""
    (tmp_path / "tollbar.toml").write_text(USES)
    (tmp_path / "ours-2026.toml").write_text(OURS)
    return tmp_path


def test_policies_are_checked_without_measuring(tollbar: Tollbar, folder: Path) -> None:
    done = tollbar("check", "policy", "--date", "2026-12-31")
    said = " ".join(done.stdout.split())
    assert 1 == done.returncode
    for words in (
        "2 uses break their policies",
        "archive breaks asvs-level-2-5.0.0 (11.2.3: at least 128 bits of security): 61 bits, under 128.",
        "its standing fell from acceptable to broken: SHA-1, Stevens and others (CWI, Google)",
        "front does nothing against harvest-now-decrypt-later",
        "front need not meet ours-2026 (4.2) until 2026-12-31: until release 9.",
        "asvs-level-2-5.0.0: OWASP/ASVS, tag v5.0.0_release",
        "undecided whether",
    ):
        assert words in said
    assert done.stdout == tollbar("check", "policy", "--date", "2026-12-31").stdout
    later = " ".join(tollbar("check", "policy", "--date", "2027-01-01").stdout.split())
    assert "front breaks ours-2026 (4.2): key-exchange x25519 is not approved" in later
    assert "its exception ended on 2026-12-31 (until release 9) and no longer counts" in later
    assert not (folder / "runs").exists()


def test_a_bad_standing_that_nothing_asks_about_is_said(tollbar: Tollbar, folder: Path) -> None:
    """A policy may let SHA-1 pass; its standing, broken, is reported all the same."""
    path = folder / "tollbar.toml"
    use = '[uses.archive]\nfamily = "digest"\nchoice = "sha-1"\npolicy = "asvs-level-1"\n'
    path.write_text(use)
    said = " ".join(tollbar("check", "policy").stdout.split())
    assert "1 use meets its policies" in said
    assert "archive: its standing is broken, which no policy here forbids." in said
    path.write_text(use.replace("sha-1", "sha-256"))
    assert "its standing is" not in tollbar("check", "policy").stdout
    path.write_text(use + 'standing = "broken"\n')
    assert "its standing is" not in tollbar("check", "policy").stdout


def test_an_exception_that_is_not_needed_is_said(tollbar: Tollbar, folder: Path) -> None:
    """An unneeded exception would excuse a later change that it was not made for."""
    (folder / "tollbar.toml").write_text(USES.replace('"x25519"', '"x25519mlkem768"'))
    said = " ".join(tollbar("check", "policy", "--date", "2026-12-31").stdout.split())
    assert "front meets ours-2026 (4.2), and does not need its exception, which is until 2026-12-31." in said
    assert "does not need" not in tollbar("check", "policy", "--date", "2027-01-01").stdout
    for on, until in (("2026-12-31", ["2026-12-31"]), ("2027-01-01", [])):
        _, front = json.loads(tollbar("check", "policy", "--date", on, "--json").stdout)["uses"]
        rules = [rule for one in front["policies"] for rule in one["rules"] if rule["rule"] == "groups"]
        assert until == [rule["exception_not_needed"] for rule in rules]
        assert {"meets"} >= {rule["verdict"] for rule in rules}


def test_the_answer_is_laid_out_for_pull_requests_and_programs(tollbar: Tollbar, folder: Path) -> None:
    markdown = tollbar("check", "policy", "--markdown", "--output", "check.html").stdout
    assert "| archive | sha-1 | standing acceptable | breaks |" in markdown
    assert "its standing fell from acceptable to broken" in (folder / "check.html").read_text()
    said = json.loads(tollbar("check", "policy", "--json").stdout)
    CheckDocument.model_validate(said)
    archive, front = said["uses"]
    assert ("breaks", "broken", "acceptable") == (
        archive["verdict"],
        archive["standing"],
        archive["standing_committed"],
    )
    assert "breaks" == front["verdict"]
    assert [("harvest-now-decrypt-later", "breaks")] == [
        (one["threat"], one["verdict"]) for one in front["threats"] if one["verdict"] == "breaks"
    ]


def test_what_cannot_be_said_fails_where_that_is_asked(tollbar: Tollbar, folder: Path) -> None:
    path = folder / "tollbar.toml"
    path.write_text(USES.replace('"sha-1"', '"sha-256"').replace(', "harvest-now-decrypt-later"', ""))
    assert [0, 3] == [tollbar("check", "policy", *more).returncode for more in ((), ("--strict",))]
    path.write_text(USES)
    assert 1 == tollbar("check", "policy", "--strict").returncode


@pytest.mark.parametrize("lines", ["\n", "# a comment\n"])
def test_a_file_of_very_many_lines_is_read_and_not_written(tollbar: Tollbar, folder: Path, lines: str) -> None:
    path = folder / "tollbar.toml"
    before = USES + "\n" + lines * 21_000
    path.write_text(before)
    assert "broken" in tollbar("check", "policy").stdout
    done = tollbar("check", "policy", "--accept")
    assert 2 == done.returncode
    assert "more than 20,000 lines" in done.stderr
    assert before == path.read_text()


def test_a_name_of_a_use_is_as_long_as_one_of_a_file(tollbar: Tollbar, folder: Path) -> None:
    (folder / "tollbar.toml").write_text(USES.replace("archive", "a" * 150))
    done = tollbar("check", "policy")
    assert 2 == done.returncode
    assert "at most 100 characters" in done.stderr


def test_standings_are_accepted(tollbar: Tollbar, folder: Path) -> None:
    """The file gets the current standings and keeps its mode; violations of rules are still reported."""
    path = folder / "tollbar.toml"
    path.chmod(0o640)
    done = tollbar("check", "policy", "--accept")
    assert "archive: standing broken, was acceptable." in done.stdout
    assert USES.replace('"acceptable"', '"broken"') in path.read_text() + "\n"
    assert 0o640 == path.stat().st_mode & 0o777
    again = tollbar("check", "policy", "--accept")
    assert (1, True) == (again.returncode, "Nothing: the file is up to date." in again.stdout)


def test_nothing_is_accepted_through_a_link(tollbar: Tollbar, folder: Path) -> None:
    """A link in someone else's project may name a file outside it."""
    own = folder / "own.toml"
    (folder / "tollbar.toml").rename(own)
    (folder / "tollbar.toml").symlink_to(own)
    before = own.read_bytes()
    for words in (["policy"], []):
        done = tollbar("check", *words, "--accept")
        assert (2, "") == (done.returncode, done.stdout)
        assert "tollbar.toml: is a symbolic link" in done.stderr
        assert f"`tollbar check --accept {own}`" in " ".join(done.stderr.split())
    assert before == own.read_bytes()
    # Read, the link is the file.
    assert 1 == tollbar("check", "policy").returncode
    tollbar("check", "policy", "--accept", str(own))
    assert before != own.read_bytes()


NOTHING = {
    "nothing at all": ("", (), "has nothing to check; it needs a table `[uses.NAME]` or `[budget.NAME]`"),
    "no uses": (
        BUDGETED := '[budget.a]\nfamily = "spin"\nchoice = "spin-2"\nagainst = "spin-1"\n',
        ("policy",),
        "needs a table `[uses",
    ),
    "no budgets": (USES, ("tolls",), "needs a table `[budget.NAME]`"),
    "no limit": (BUDGETED, ("tolls",), "needs a limit, for example `at-most = 1.5`"),
    "an unknown policy": (USES.replace("asvs-level-2-5", "asvs-level-2-6"), (), "no such policy"),
    "no such file": (USES, ("policy", "tolbar.toml"), "did you mean `tollbar.toml`?"),
    "a misspelt part": (USES, ("polcy",), "did you mean `policy`?"),
    "two files": (USES, ("one.toml", "two.toml"), "2 files are given (one.toml, two.toml)"),
    "no day": (USES, ("policy", "--date", "2030"), "did you mean `2030-01-01`?"),
    "no time": (USES, ("--for", "long"), "--for long"),
    "not TOML": ("[uses", (), "not TOML"),
}


@pytest.mark.parametrize("fault", NOTHING)
def test_what_cannot_be_checked_is_refused_in_one_line(tollbar: Tollbar, folder: Path, fault: str) -> None:
    text, words, said = NOTHING[fault]
    (folder / "tollbar.toml").write_text(text)
    done = tollbar("check", *words)
    assert (2, "") == (done.returncode, done.stdout)
    assert said in " ".join(done.stderr.split())
    assert text == (folder / "tollbar.toml").read_text()
    assert not (folder / "runs").exists()


TOLLS = f"""
[budget.twice]
family  = "spin"
choice  = "spin-2"
against = "spin-1"
setting = {{ provider = "runner:{FAKE_RUNNER}" }}
at-most = 2.5
"""


def test_tolls_are_measured_against_their_limits(tollbar: Tollbar, folder: Path) -> None:
    """Within the limit is status 0, above it 1; the run is kept."""
    path = folder / "tollbar.toml"
    path.write_text(TOLLS + TOLLS.replace("twice", "tight").replace("2.5", "1.2"))
    done = tollbar("check", "tolls", "--for", "4s", "--json")
    assert 1 == done.returncode, done.stderr
    said = json.loads(done.stdout)
    twice, tight = said["budgets"]
    assert ("within", "over") == (twice["verdict"], tight["verdict"])
    assert ["fake 1.0"] == twice["libraries"]
    assert twice["low"] < 2.0 * 1.01
    assert (folder / said["run"] / "run.json").exists()
    path.write_text(TOLLS)
    done = tollbar("check", "--for", "2s")
    assert (0, True) == (done.returncode, "1 budget is within its limit" in done.stdout), done.stderr


def test_a_limit_of_another_processor_is_not_measured(tollbar: Tollbar, folder: Path) -> None:
    there = (
        '[budget.twice.set-on]\nratio = 2.0\nlibraries = []\ncpu = "Z80"\nmodel = ""\nflags = ""\nday = 2026-01-01\n'
    )
    (folder / "tollbar.toml").write_text(TOLLS + there)
    done = tollbar("check", "tolls")
    assert (0, True) == (done.returncode, "its limit was set on Z80, and this is" in " ".join(done.stdout.split()))
    assert 3 == tollbar("check", "tolls", "--strict").returncode
    assert not (folder / "runs").exists()


def test_what_cannot_be_measured_is_a_finding(tollbar: Tollbar, folder: Path) -> None:
    (folder / "tollbar.toml").write_text(TOLLS.replace('"spin-2"', '"spin-rare"'))
    done = tollbar("check", "tolls", "--for", "2s")
    assert (1, True) == (done.returncode, "could not be measured" in done.stdout)


class _Measured:
    """Lab that reports a project's budgets at a known ratio, once."""

    def __init__(self, true: float) -> None:
        self.true = true

    def in_two_interim_looks(
        self, studies: Sequence[Study], is_settled: Callable[[StudyJudgement], bool], **_: object
    ) -> Judgement:
        of = at_ratio(self.true)
        named = [replace(of, study=replace(of.study, study=replace(of.study.study, name=one.name))) for one in studies]
        assert all(map(is_settled, named))
        return Judgement(run(), tuple(named))


def test_limits_are_accepted_and_then_hold(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / "tollbar.toml"
    path.write_text(TOLLS.replace("at-most = 2.5\n", ""))
    monkeypatch.setattr(measuring, "in_two_interim_looks", _Measured(2.0).in_two_interim_looks)
    assert ExitStatus.DONE is command.check("tolls", str(path), accept=True)
    (one,) = read_project(path).budgets
    assert one.at_most is not None
    assert one.set_on is not None
    assert 2.0 < one.at_most < 2.08
    assert ExitStatus.DONE is command.check("tolls", str(path), strict=True)
    monkeypatch.setattr(measuring, "in_two_interim_looks", _Measured(2.1).in_two_interim_looks)
    assert ExitStatus.SOME_FAILED is command.check("tolls", str(path))


def test_an_interrupted_check_writes_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / "tollbar.toml"
    path.write_text(TOLLS)

    class Interrupted(_Measured):
        def in_two_interim_looks(self, *_: object, **__: object) -> Judgement:
            raise KeyboardInterrupt

    class Edited(_Measured):
        def in_two_interim_looks(self, *words: Any, **more: object) -> Judgement:
            path.write_text(TOLLS + "# mine")
            return super().in_two_interim_looks(*words, **more)

    monkeypatch.setattr(measuring, "in_two_interim_looks", Interrupted(2.0).in_two_interim_looks)
    with pytest.raises(KeyboardInterrupt):
        command.check("tolls", str(path), accept=True)
    assert TOLLS == path.read_text()
    monkeypatch.setattr(measuring, "in_two_interim_looks", Edited(2.0).in_two_interim_looks)
    with pytest.raises(TollbarError, match="was changed during the check"):
        command.check("tolls", str(path), accept=True)
    assert TOLLS + "# mine" == path.read_text()


@pytest.mark.share(0)
def test_what_a_first_look_leaves_open_is_measured_on(
    fake_study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest of the time goes to a second look at a tightened confidence; settled budgets get no more blocks."""
    (one,) = load([str(fake_study)])
    asked = [replace(one, name="open", claims=()), replace(one, name="settled", claims=())]
    cores = os.sched_getaffinity(0)
    looks: list[str] = []

    def is_settled(of: StudyJudgement) -> bool:
        looks.append(of.about.name)
        return of.about.name == "settled"

    # Pretend that the first look took half of the time, however busy this machine is.
    moments_s = iter([0.0, 3.0])
    monkeypatch.setattr(measuring, "time", SimpleNamespace(monotonic=lambda: next(moments_s)))
    try:
        judged = measuring.in_two_interim_looks(asked, is_settled, within_s=6, command=(), runs=tmp_path / "runs")
    finally:
        os.sched_setaffinity(0, cores)
    assert ["open", "settled"] == looks
    further, settled = judged.studies
    assert further.trust.whole_blocks > settled.trust.whole_blocks
    assert further.confidence > settled.confidence


def test_policies_are_checked_without_the_judge(folder: Path) -> None:
    """Importing the measuring and judging packages takes most of a check's time."""
    script = (
        "import sys; from tollbar import cli; sys.argv = ['tollbar', 'check', 'policy']\n"
        "try: cli.main()\n"
        "except SystemExit:\n"
        "    left_out = 'numpy', 'rich.progress', 'tollbar.analysis', 'tollbar.study'\n"
        "    print([one for one in left_out if one in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert "[]" == done.stdout.splitlines()[-1], done.stderr


REFUSED_USES = {
    "a standing that settings decide": (
        'family = "password-hash"\nchoice = "argon2id"\nstanding = "recommended"',
        "the standing depends on lanes and memory and passes",
    ),
    "a cell that cannot be": (
        'family = "tls"\nchoice = "tls-1.2"\nsetting = { key-exchange = "x25519mlkem768" }',
        "TLS 1.2 has no hybrid groups",
    ),
    "a control character": (
        'family = "tls"\nchoice = "tls-1.2\\u202e"',
        "the control character U+202E",
    ),
}


@pytest.mark.parametrize("name", REFUSED_USES)
def test_uses_of_which_nothing_true_can_be_said_are_refused(tmp_path: Path, name: str) -> None:
    text, words = REFUSED_USES[name]
    path = tmp_path / "tollbar.toml"
    path.write_text(f"[uses.one]\n{text}\n")
    with pytest.raises(TollbarError) as error:
        read_project(path)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("choice", "setting", "line"),
    [
        ("argon2id", "", None),
        ("scrypt", 'n = "2^17"', None),
        ("pbkdf2-sha-256", "", None),
        ("bcrypt", "", "deprecated at best"),
        ("pbkdf2-sha-1", "", "deprecated at best"),
        ("argon2id", 'memory = "1 MiB"', "disallowed at best"),
        ("argon2id", 'memory = "1 MiB", passes = 1, lanes = 1', "disallowed"),
    ],
)
def test_parameters_that_are_not_given_have_not_the_worst_standing(
    tollbar: Tollbar, tmp_path: Path, choice: str, setting: str, line: str | None
) -> None:
    path = tmp_path / "tollbar.toml"
    path.write_text(f'[uses.u]\nfamily = "password-hash"\nchoice = "{choice}"\nsetting = {{ {setting} }}\n')
    answer = " ".join(tollbar("check", "policy", str(path)).stdout.split())
    assert ("its standing is" in answer) is (line is not None)
    assert line is None or f"u: its standing is {line}, which no policy here forbids." in answer


def test_a_rule_on_standings_does_not_refuse_what_is_not_given(tollbar: Tollbar, tmp_path: Path) -> None:
    policy = OURS.partition("[[rule]]")[0] + '[[rule]]\nid = "good"\nclause = "1"\n'
    policy += 'family = "password-hash"\nstanding = "acceptable"\n'
    (tmp_path / "ours.toml").write_text(policy)
    path = tmp_path / "tollbar.toml"
    for setting, ruling in (("", "cannot say"), ('memory = "1 MiB"', "breaks")):
        use = f'family = "password-hash"\nchoice = "argon2id"\nsetting = {{ {setting} }}\n'
        path.write_text(f'policy = ["ours.toml"]\n[uses.u]\n{use}')
        found = json.loads(tollbar("check", "policy", str(path), "--json").stdout)
        assert ruling == found["uses"][0]["verdict"]


def test_static_rsa_is_not_had_with_a_certificate_of_another_key(tollbar: Tollbar, tmp_path: Path) -> None:
    """RFC 5246, section 7.4.2."""
    path = tmp_path / "tollbar.toml"
    setting = 'key-exchange = "rsa", certificate = "ecdsa-p256"'
    path.write_text(f'[uses.u]\nfamily = "tls"\nchoice = "tls-1.2"\nsetting = {{ {setting} }}\n')
    assert "key exchange `rsa` needs a certificate with an RSA key" in tollbar("check", "policy", str(path)).stderr
    path.write_text(path.read_text().replace("ecdsa-p256", "rsa-2048"))
    assert "needs a certificate" not in tollbar("check", "policy", str(path)).stderr
    nearest = tollbar("choose", "tls", "tls-1.2", "key-exchange=rsa", "--policy", "bcp195", "--for", "0s").stdout
    assert "rsa-2048" in nearest
    assert "ecdsa" not in nearest.replace("rsa-2048+ecdsa-p256", "")
