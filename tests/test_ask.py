"""Questions without a file: their words, the study that they make, and the sentence that answers them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from conftest import FAKE_RUNNER, Tollbar
from tollbar import lab, results, study
from tollbar.cli.ask import ask
from tollbar.core import units
from tollbar.core.errors import TollbarError
from tollbar.core.intervals import FEWEST_BLOCKS
from tollbar.lab.measure import schedule
from tollbar.lab.measure.schedule import Pace
from tollbar.study import Study, plan
from tollbar.study.plan import Plan


def _question(line: str, against: str | None = None) -> study.Question:
    family, *words = line.split()
    return study.of_words(family, words, against)


def _study(line: str, against: str | None = None) -> Study:
    return study.read(study.ASKED, _question(line, against).text(), where=study.ASKED)


def _planned(*studies: Study) -> Plan:
    return plan.make(studies, seed=0)


# Typed words, words of the error, and words of its hint.
MISTAKES = {
    "a misspelt family": ("dgest sha-256", "no such family: `dgest`", "`digest`"),
    "a choice instead of the family": ("sha-256 blake3", "is a choice of digest", "tollbar ask digest sha-256 blake3"),
    "no choice": ("digest", "needs a choice of digest", "sha-256"),
    "a misspelt choice": ("digest sha265", "no such choice of digest: `sha265`", "`sha-256`"),
    "a choice of another family": ("digest aes-128-gcm", "no such choice", "a choice of cipher"),
    "a setting's value": ("tls tls-1.3 x25519mlkem768", "no such choice", "`key-exchange=x25519mlkem768`"),
    "an operation": ("signature ed25519 sign", "no such choice", "`op=sign`"),
    "a server": ("tls tls-1.3 nginx", "no such choice", "`server=nginx`"),
    "a provider": ("digest sha-256 rustcrypto", "no such choice", "`provider=rustcrypto`"),
    "a setting without a value": ("digest sha-256 bytes", "no such choice", "`bytes=4KiB`"),
    "a misspelt setting": ("tls tls-1.3 certifcate=rsa-2048", "no setting `certifcate`", "`certificate`"),
    "the beginning of a setting": ("password-hash argon2id memo=46MiB", "no setting `memo`", "did you mean `memory`?"),
    "a setting of another family": ("digest md5 certificate=rsa-2048", "no setting `certificate`", "tls has it"),
    "a misspelt value": ("tls tls-1.3 certificate=rsa-2049", "`rsa-2049` is not one of", "`rsa-2048`"),
    "a misspelt server": ("tls tls-1.3 server=ngin", "no such server: `ngin`", "`nginx`"),
    "a misspelt operation": ("signature ed25519 op=sing", "no such op: `sing`", "`sign`"),
    "half a unit": ("digest md5 bytes=4K", "`4 KB` (4,000 B) or `4 KiB` (4,096 B)", None),
    "no unit": (
        "digest md5 bytes=4096",
        "`4096` needs a unit, for example `4096 B` or `4096 KiB`",
        "type `bytes=4096B`",
    ),
    "no unit of a size": (
        "mac hmac-sha-256 size=64",
        "`64` needs a unit, for example `64 B` or `64 KiB`",
        "type `size=64B`",
    ),
    "memory without a unit": ("password-hash argon2id memory=46", "`46 MiB` or `46 KiB`", "type `memory=46MiB`"),
    "memory as in a hash string": ("password-hash argon2id m=65536", "`65536 KiB` or `65536 MiB`", "`m=65536KiB`"),
    "a unit in small letters": ("digest md5 bytes=4kb", "did you mean `4 KB`?", "type `bytes=4KB`"),
    "a unit in words": ("digest md5 bytes=64bytes", "did you mean `64 B`?", "type `bytes=64B`"),
    "thousands apart": (
        "password-hash pbkdf2-sha-256 iterations=600,000",
        "is read as 2 values",
        "type `iterations=600000`",
    ),
    "thousands apart without a unit": ("digest md5 bytes=4,096", "`4,096` is read as 2 values", "type `bytes=4096B`"),
    "choices apart by commas": (
        "digest sha-256,blake3",
        "no such choice",
        "separate choices by spaces: `sha-256 blake3`",
    ),
    "no memory": ("password-hash argon2id memory=0B", "too small; it must be at least 8 KiB", None),
    "a cost that would take hours": ("password-hash bcrypt cost=31", "too large; it must be at most 18", None),
    "no number": ("password-hash pbkdf2-sha-256 iterations=600k", "must be a whole number", None),
    "no power of two": ("password-hash scrypt n=100000", "must be a power of two, for example `2^16`", None),
    "needs at least one value": ("digest md5 bytes=64B,", "a value is missing", "bytes=4KiB"),
    "no number of threads": (
        "digest md5 threads=two",
        "`two` must be a whole number of threads above 0",
        "`threads=1,2`",
    ),
    "more threads than cores": ("digest md5 threads=4096", "4096 threads need a core each", "at most `threads="),
    "users without a server": ("digest md5 users=8", "`users` needs a server", "server=embedded"),
    "users of a family that has none": (
        "storage plaintext aes-256-gcm server=postgresql users=8",
        "has no load",
        None,
    ),
    "nothing but what does nothing": ("digest none", "`none` alone cannot be compared", "another choice of digest"),
    "users in words": ("tls tls-1.3 users=eight", "must be a whole number of users", "users=1,8"),
    "a rate without a unit": ("tls tls-1.3 rate=200", "needs a unit", None),
    "a share above one": ("web-auth jwt verified=cached hit-share=1.5", "needs a unit", None),
    "a share that is not whole": ("web-auth jwt verified=cached hit-share=0.995", "must be a whole percentage", None),
    "a time to live that is over first": (
        "web-auth jwt verified=cached time-to-live=5",
        "too small; it must be at least 60",
        None,
    ),
    "one setting twice": ("digest md5 bytes=64B bytes=4KiB", "`bytes` is given twice", "bytes=64B,4KiB"),
    "one choice twice": ("digest sha-256 sha-256", "the choice `sha-256` is given twice", "self-test"),
    "one choice in two spellings": ("digest sha-256 SHA256", "twice, as `sha-256` and `SHA256`", "remove one"),
    "one value twice": ("tls tls-1.3 certificate=rsa-2048,RSA2048", "`rsa-2048` is given twice", "each value once"),
    "one size twice": ("digest md5 bytes=4KiB,4096B", "`4KiB` is given twice, as `4KiB` and `4096B`", "once"),
    "an algorithm of any key size": ("signature RS256", "no such choice", "`rsa-2048` or `rsa-3072` or `rsa-4096`"),
    "a choice in another spelling first": (
        "SHA256 blake3",
        "is a choice of digest",
        "tollbar ask digest sha-256 blake3",
    ),
    "a value in another spelling": ("tls tls-1.3 AES256-GCM", "no such choice", "`cipher=aes-256-gcm`"),
    "a choice with a name": ("digest choice=md5", "a choice must be given without `choice=`", "tollbar ask digest md5"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_what_it_is(mistake: str) -> None:
    line, what, hint = MISTAKES[mistake]
    with pytest.raises(TollbarError) as raised:
        _question(line)
    assert what in str(raised.value)
    assert hint is None or hint in (raised.value.hint or "")


# Typed words, and the same question in Tollbar's own names.
TAKEN = {
    "digest SHA256 BLAKE3": "digest sha-256 blake3",
    "hash SHA2-256 sha3_256": "digest sha-256 sha3-256",
    "digest 'SHA3-*' sha-256": "digest sha3-* sha-256",
    "cipher AES256-GCM size=4KB": "cipher aes-256-gcm bytes=4KB",
    "key-exchange X25519MLKEM768 secp256r1": "key-exchange x25519mlkem768 ecdh-p256",
    "signature P-256 P-384 Ed25519 operation=signing": "signature ecdsa-p256 ecdsa-p384 ed25519 op=sign",
    "TLS TLSv1.3 certificate=P-256,RSA2048 op=handshake": "tls tls-1.3 certificate=ecdsa-p256,rsa-2048 op=connect",
    "tls tls-1.3 key-exchange=secp256r1,X25519": "tls tls-1.3 key-exchange=ecdhe-p256,x25519",
    "tls tls-1.3 cipher=TLS_AES_128_GCM_SHA256,CHACHA20_POLY1305": ("tls tls-1.3 cipher=aes-128-gcm,chacha20-poly1305"),
    "web-auth jwt signature=ES256,RS256": "web-auth jwt signature=es256,rs256",
    "digest sha-256 provider=AWS-LC,OpenSSL": "digest sha-256 provider=aws-lc,libcrypto",
    "password-hash scrypt N=2^14": "password-hash scrypt n=2^14",
}


@pytest.mark.parametrize("line", TAKEN)
def test_names_of_the_field_ask_the_same_question(line: str) -> None:
    assert _question(TAKEN[line]).text() == _question(line.replace("'", "")).text()


def test_what_is_compared_with_may_be_in_another_spelling() -> None:
    first, second = (study.of_words("digest", ["sha-256"], one).text() for one in ("blake3", "BLAKE3"))
    assert first == second


QUESTIONS = {
    "digest sha-256 blake3 bytes=64B,16KB": ("rustcrypto",),
    "digest sha-256 sha-512 cpu=native,no-sha": ("libcrypto",),
    "cipher aes-* chacha20-poly1305 op=encrypt": ("libcrypto",),
    "signature ed25519 op=sign,verify": ("libcrypto",),
    "password-hash bcrypt-10 argon2id-owasp-19m": ("rustcrypto",),
    "password-hash argon2id memory=46MiB,64MiB passes=1 lanes=1": ("rustcrypto",),
    "password-hash bcrypt argon2id cost=10,12 memory=19MiB": ("rustcrypto",),
    "password-hash scrypt n=2^14,2^15 p=5": ("libcrypto",),
    "password-hash pbkdf2-sha-256 iterations=600000,1_000_000": ("libcrypto",),
    "spin spin-1 spin-2": ("spin",),
    "key-exchange x25519 provider=libcrypto,aws-lc": ("libcrypto", "aws-lc"),
    "digest md5 sha-1 server=embedded users=1,8": ("libcrypto",),
    "tls tls-1.3 certificate=ecdsa-p256,rsa-2048 key-exchange=x25519,x25519mlkem768": ("aws-lc",),
    "tls tls-1.2 tls-1.3 server=nginx resumed=50% resumption=ticket rate=200/s": ("libcrypto",),
    "storage plaintext aes-256-gcm rows=1000": ("sqlite",),
    "storage sqlcipher aes-256-gcm": ("sqlcipher",),
    "web-auth anonymous jwt accounts=1000": ("aws-lc",),
}


@pytest.mark.parametrize("line", QUESTIONS)
def test_a_question_and_its_file_are_one_plan(line: str, tmp_path: Path) -> None:
    path = tmp_path / "saved.toml"
    path.write_text(_question(line).text(7), "utf-8")
    (saved,) = study.load([str(path)])
    asked = study.read(study.ASKED, _question(line).text(7), where=study.ASKED)
    assert QUESTIONS[line] == saved.providers
    assert (7, saved.measure) == (saved.measure.blocks, asked.measure)
    (one,), (other,) = _planned(asked).studies, _planned(saved).studies
    assert [(cell.key, cell.against, cell.load) for cell in one.cells] == [
        (cell.key, cell.against, cell.load) for cell in other.cells
    ]


BASELINES = {
    ("digest sha-512 sha-256", None): {"choice": "sha-512"},
    ("digest sha-512", "sha-256"): {"choice": "sha-256"},
    ("digest sha-512", None): {"choice": "none"},
    ("digest sha-256 provider=libcrypto:*,aws-lc", None): {"provider": "libcrypto"},
    ("digest sha-256 sha-512", "provider=libcrypto"): {"provider": "libcrypto"},
    ("digest sha-256 bytes=64B,4KiB", None): {"bytes": 64},
    ("digest sha-256 bytes=64B,4KiB cpu=native,no-sha", None): {"cpu": "native"},
    ("tls tls-1.3 certificate=rsa-2048,ecdsa-p256", None): {"certificate": "rsa-2048"},
    ("tls tls-1.3 server=nginx,embedded", None): {"server": "nginx"},
    ("password-hash argon2id memory=46MiB,64MiB passes=1", None): {"memory": 46 * 1024**2},
    ("password-hash argon2id bcrypt memory=46MiB,64MiB cost=10,12", None): {
        "choice": "argon2id",
        "memory": 46 * 1024**2,
    },
    ("password-hash bcrypt cost=12,10", None): {"cost": 12},
    ("password-hash scrypt n=2^14,32768", None): {"n": 2**14},
}


@pytest.mark.parametrize(("line", "against"), BASELINES)
def test_what_is_compared_with_what(line: str, against: str | None) -> None:
    assert BASELINES[line, against] == dict(_study(line, against).baseline)


def test_a_family_that_only_servers_perform_has_one_and_users() -> None:
    asked = _study("tls tls-1.3")
    assert asked.load is not None
    assert (("embedded",), ("connect",), False) == (asked.servers, asked.vary["op"], asked.load.is_open)
    assert () == _study("digest sha-256").servers


def test_sizes_are_echoed_to_the_byte() -> None:
    assert "64 B, 16,000 B, 4 KiB" == _question("digest md5 bytes=64B,16KB,4KiB").echo["bytes"]


def test_parameters_are_echoed_as_they_are_written() -> None:
    asked = _question("password-hash argon2id scrypt memory=46MiB,47103KiB n=32768", "memory=46MiB")
    assert ("46 MiB, 47,103 KiB", "2^15") == (asked.echo["memory"], asked.echo["n"])
    assert "against memory 46 MiB?" in asked.text()


def test_blocks_fill_the_time_and_are_never_too_few() -> None:
    (planned,) = _planned(_study("spin spin-1 spin-2")).studies
    block_s = schedule.of_block(planned, 0)
    some = schedule.blocks_within(planned, 0, 100 * block_s, 4)
    assert 95 <= some <= 100
    assert FEWEST_BLOCKS == schedule.blocks_within(planned, 0, 0.0, FEWEST_BLOCKS)
    slow = {(cell.study, cell.key): Pace(0.04, 1.0) for cell in planned.cells}
    assert schedule.blocks_within(planned, 0, 100 * block_s, 4, slow) < some / 4


def test_a_question_is_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run has the plan that the estimate was of, with the blocks that fill the time."""
    made: list[Plan] = []
    begun: list[Plan] = []

    def make(*arguments: Any, **more: Any) -> Plan:
        made.append(plan_make(*arguments, **more))
        return made[-1]

    def begin(planned: Plan, **_: object) -> None:
        begun.append(planned)
        raise TollbarError("stopped before it is measured")

    plan_make = plan.make
    monkeypatch.setattr(plan, "make", make)
    monkeypatch.setattr(lab, "begin_planned", begin)
    with pytest.raises(TollbarError, match="stopped"):
        ask("spin", "spin-1", "spin-2", for_="3 s", seed=5)
    ((estimated,), (measured,)) = made, begun
    (few,), (many,) = estimated.studies, measured.studies
    assert 5 == measured.seed
    assert FEWEST_BLOCKS == few.study.measure.blocks < many.study.measure.blocks
    assert plan_make([many.study], seed=5) == measured


def test_an_estimate_is_of_what_each_operation_took() -> None:
    (planned,) = _planned(_study("spin spin-1 spin-2")).studies
    measure, cell = planned.study.measure, planned.cells[0]
    quick, slow = (schedule.trial_s(cell, measure, Pace(0.5, operation_s)) for operation_s in (0.001, 2.0))
    assert 0.5 + measure.rounds * measure.chunk_s < quick < 0.6
    assert 0.5 + 2.0 < slow < 0.5 + 2.0 + 0.1
    # A chunk of a counted number of operations lasts as long as they do, and every round has one.
    counted = [schedule.trial_s(cell, measure, Pace(0.0, each_s, is_counted=True)) for each_s in (0.0001, 2.0)]
    assert counted[1] - counted[0] == pytest.approx(measure.rounds * 1.9999)
    only = {(cell.study, cell.key): Pace(0.5, 0.001)}
    both = {(one.study, one.key): Pace(0.5, 0.001) for one in planned.cells}
    assert 0 == schedule.of_block(planned, 0, {})
    assert 0 < schedule.of_block(planned, 0, only) < schedule.of_block(planned, 0, both)


# A runner with made-up costs: with measured work, a 96 % interval may give another verdict.
FAKE = f"provider=runner:{FAKE_RUNNER}"
SENTENCE = re.compile(
    r"spin-2 costs [12]\.\d\d times spin-1's CPU \[\S+, \S+\] on fake \S+:"
    r" costs( \d+ % more)?; (both \w+|(\w+ ?)+, where spin-1 is \w+)\."
)


def test_a_question_is_answered_in_a_sentence(tollbar: Tollbar, tmp_path: Path) -> None:
    """The answer comes first, the plan only with `--verbose`; the run and the saved study are ordinary ones."""
    words = ("spin", "spin-2", FAKE, "--baseline", "spin-1", "--for", "2 s")
    done = tollbar("ask", *words, "--save", "mine.toml")
    assert 0 == done.returncode, done.stderr
    # A machine that is never quiet marks the cost as noisy.
    assert re.match(r"\s*2000 steps: 2\.00 µs~? of CPU per spin\. 4000 steps costs", done.stdout), done.stdout
    assert {"study", "report"} == {*_labels(done.stderr)}
    (directory,) = (tmp_path / "runs").iterdir()
    run = results.read(directory)
    assert (directory / "report.html").exists()
    planned = json.loads(tollbar("plan", "mine.toml", "--json").stdout)
    assert {row.key for row in run.studies[0].rows} == {cell["key"] for cell in planned["cells"]}
    assert run.studies[0].study.measure.blocks == planned["studies"][0]["blocks"] >= FEWEST_BLOCKS


def test_details_show_how_a_question_was_read_and_the_plan(tollbar: Tollbar) -> None:
    done = tollbar("ask", "spin", "spin-2", FAKE, "--baseline", "spin-1", "--for", "1 s", "--no-report", "--verbose")
    # On a busy machine the line `time` takes the place of `measure`, because it takes longer than requested.
    labels = _labels(done.stderr)
    assert ["question", "choice", "provider", "plan", "data"] == labels[:5]
    assert labels[5] in ("measure", "time")


def _labels(messages: str) -> list[str]:
    """Return the first words of the lines that are no warnings."""
    return [line.split()[0] for line in messages.splitlines() if line.startswith("  ")]


def test_an_answer_as_markdown_has_its_table(tollbar: Tollbar) -> None:
    done = tollbar("ask", "spin", "spin-1", "spin-2", FAKE, "--for", "1s", "--no-report", "--markdown")
    assert 0 == done.returncode, done.stderr
    assert done.stdout.startswith("### ")
    assert "| --- |" in done.stdout


def test_an_answer_as_json_is_one_document(tollbar: Tollbar) -> None:
    done = tollbar("ask", "spin", "spin-1", "spin-2", FAKE, "--for", "1s", "--no-report", "--json")
    assert 0 == done.returncode, done.stderr
    (answered,) = json.loads(done.stdout)["studies"]
    assert "ask" == answered["study"]
    assert SENTENCE.fullmatch(answered["answers"]["sentences"][-1])
    assert "spin-2 costs" not in done.stderr


def test_what_cannot_be_measured_is_said_with_its_reason(tollbar: Tollbar) -> None:
    done = tollbar("ask", "digest", "sha-256", "blake3", "provider=libcrypto", "--for", "1s", "--no-report")
    assert 0 == done.returncode, done.stderr
    assert re.search(r"^ *unsupported: blake3: ", done.stdout, re.M), done.stdout


def test_a_baseline_that_cannot_be_measured_is_said(tollbar: Tollbar) -> None:
    done = tollbar("ask", "digest", "blake3", "sha-256", "provider=libcrypto", "--for", "1s", "--no-report")
    assert 0 == done.returncode, done.stderr
    assert re.search(r"^ *unsupported: blake3: ", done.stdout, re.M), done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "needs a family and its choices"),
        (["digest", "sha255"], "did you mean `sha-256`"),
        (["digest", "md5", "bytes=4K"], "needs a unit"),
        (["digest", "md5", "sha-1", "--for", "20"], "`20` needs a unit, for example `20 s`"),
        (["digest", "md5", "sha-1", "--for", "5sec"], "did you mean `5 s`?"),
        (["digest", "md5", "sha-1", "--precision", "1"], "`1` needs a unit, for example `1 %`"),
        (["digest", "md5", "sha-1", "lookup=implicit"], "`lookup` applies to no cell"),
        (["password-hash", "argon2id", "memory=4095GiB"], "needs 4,095 GiB of memory;"),
        (["password-hash", "argon2id", "memory=64KiB", "lanes=16"], "16 `lanes` need at least 128 KiB"),
        (["web-auth", "jwt", "verified=cached", "cache-entries=4"], "8 `users` need at least 8 (1 each)"),
        (["digest", "md5", "sha-1", "--save", "there.toml"], "already exists"),
        (["digest", "md5", "sha-1", "--save", "no/where.toml"], "cannot be written"),
    ],
)
def test_a_bad_question_starts_nothing(tollbar: Tollbar, tmp_path: Path, words: list[str], said: str) -> None:
    (tmp_path / "there.toml").write_text("kept")
    done = tollbar("ask", *words)
    assert (2, "") == (done.returncode, done.stdout)
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert ["there.toml"] == [path.name for path in tmp_path.iterdir()]
    assert "kept" == (tmp_path / "there.toml").read_text()


@pytest.mark.parametrize("text", ["4K", "4 M", "1 g"])
def test_half_a_unit_of_size_is_refused(text: str) -> None:
    """K may be 1,000 or 1,024: both are named, neither is guessed."""
    with pytest.raises(ValueError, match=r"needs a unit, for example `\d [KMG]B` .* or `\d [KMG]iB`"):
        units.size_bytes(text)


def test_the_baseline_has_no_setting_that_means_nothing_to_it() -> None:
    """No share is remembered if every request is verified: the baseline has no such setting, and the cells are five."""
    asked = study.of_words("web-auth", ["jwt", "verified=each-time,cached", "hit-share=0,0.5,0.9,0.99"])
    read = study.read(study.ASKED, asked.text(), where=study.ASKED)
    assert {"verified": "each-time"} == read.baseline
    (planned,) = plan.make([read], seed=1).studies
    assert [None, 0, 50, 90, 99] == [cell.coordinates.get("hit-share") for cell in planned.cells]
