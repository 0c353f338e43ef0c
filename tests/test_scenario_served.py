"""Scenarios of a user's own site, measured: a known difference, its secrets, and errors before anything is measured."""

from __future__ import annotations

import csv
import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

import own_server
from conftest import Tollbar, lacking
from own_server import Own, nginx
from tollbar.lab.servers import driver
from tollbar.lab.tls import Certificates

ACCOUNTS, ARTICLES = 500, 200
EXTRA_MS, TOLERANCE_MS = 2.0, 0.2
SCENARIO = f"""
each-step = false

[load]
users = [20]

[values]
name     = {{ csv = "users.csv", column = "name" }}
password = {{ csv = "users.csv", column = "password" }}
page     = {{ range = [1, {ARTICLES}] }}

[[step]]
name    = "open the form"
get     = "/login"
expect  = {{ text = "Sign in" }}
capture = {{ csrf = {{ field = "csrf_token" }} }}

[[step]]
name   = "sign in"
method = "POST"
path   = "/login"
form   = {{ name = "${{name}}", password = "${{password}}", csrf_token = "${{csrf}}" }}
expect = {{ status = 302 }}

[[step]]
name   = "read an article"
get    = "/articles/${{page}}"
expect = {{ text = "signed in as ${{name}}" }}
"""


def _password(number: int) -> str:
    return f"pässword &{number * 7919:08}"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return a folder with a database, its users as CSV, and a scenario."""
    if find_spec("flask") is None:
        lacking("flask is not installed; `make develop` installs it")
    accounts = [(f"user{number:03}", _password(number)) for number in range(ACCOUNTS)]
    with closing(sqlite3.connect(tmp_path / "shop.sqlite")) as database, database:
        database.execute("CREATE TABLE accounts (name TEXT PRIMARY KEY, password TEXT)")
        database.execute("CREATE TABLE articles (id INTEGER PRIMARY KEY, title TEXT)")
        database.executemany("INSERT INTO accounts VALUES (?, ?)", accounts)
        articles = [(number, f"Article {number}") for number in range(1, ARTICLES + 1)]
        database.executemany("INSERT INTO articles VALUES (?, ?)", articles)
    with (tmp_path / "users.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("name", "password"), *accounts])
    (tmp_path / "shop.toml").write_text(SCENARIO)
    return tmp_path


@contextmanager
def _shop(site: Path, extra_ms: float = 0.0) -> Iterator[Own]:
    port = driver.free_port()
    program = str(Path(__file__).with_name("shop.py"))
    words = [sys.executable, program, str(site / "shop.sqlite"), str(extra_ms), str(port)]
    with own_server.started(words, port) as process:
        yield Own(process, f"http://127.0.0.1:{port}/")


def _refused(done: subprocess.CompletedProcess[str]) -> str:
    """Return the one line of an error before anything was measured."""
    assert (2, "") == (done.returncode, done.stdout)
    return done.stderr.splitlines()[0]


def test_a_known_difference_is_found_and_no_secret_is_kept(tollbar: Tollbar, site: Path) -> None:
    with _shop(site) as plain, _shop(site, EXTRA_MS) as slow:
        pids = ["--server-pid", plain.pid, "--server-pid", slow.pid]
        words = ["--url", slow.http, "--against", plain.http, "--scenario", "shop.toml", *pids]
        done = tollbar("run", *words, "--blocks", 12, "--json")
    assert 0 == done.returncode, done.stderr
    document = json.loads(done.stdout)
    (study,) = document["studies"]
    (toll,) = [toll for toll in study["tolls"] if toll["server"] == slow.http]
    assert ("costs", "3 read an article", 20) == (toll["verdict"], toll["setting"]["step"], toll["setting"]["users"])
    # A noisy ratio is of moments next to other programs, and only its interval is promised.
    under_ms = toll["difference"] / (toll["ratio"] - 1) / 1e6
    low, high = (under_ms * (toll[end] - 1) if toll["noisy"] else toll["difference"] / 1e6 for end in ("low", "high"))
    assert low - TOLERANCE_MS <= EXTRA_MS <= high + TOLERANCE_MS
    metrics = {result["metric"] for result in study["results"] if result["server"] == slow.http}
    assert {"server-cpu", "throughput", "latency-p50", "latency-p95"} <= metrics
    kept = [path.read_bytes() for path in (site / document["run"]).rglob("*") if path.is_file()]
    assert len(kept) > 3
    for text in (*kept, done.stdout.encode(), done.stderr.encode()):
        # All passwords begin so; only their numbers differ.
        assert "pässword".encode() not in text
        assert b"p%C3%A4ssword" not in text
        assert b"p\\u00e4ssword" not in text


def test_a_step_that_fails_is_one_line_without_a_secret(tollbar: Tollbar, site: Path) -> None:
    wrong = {
        "status = 302": ("status = 200", "step 2 (sign in): expected status 200, got 302"),
        '"${password}"': (
            '"not ${password}"',
            "step 2 (sign in): expected status 302, got 403: wrong password: […], not",
        ),
        '"csrf_token" }': ('"csrf" }', "step 1 (open the form): the form's field csrf is not in the answer"),
        "signed in as": ("signed out as", "step 3 (read an article): the expected text is not in the answer"),
    }
    with _shop(site) as plain:
        for old, (new, said) in wrong.items():
            (site / "wrong.toml").write_text(SCENARIO.replace(old, new))
            for command in ("plan", "run"):
                line = _refused(tollbar(command, "--url", plain.http, "--scenario", "wrong.toml"))
                assert said in line
                assert "pässword" not in line
        (site / "users.csv").unlink()
        assert "users.csv: cannot be read" in _refused(tollbar("run", "--url", plain.http, "--scenario", "shop.toml"))
    assert not (site / "runs").exists()


def test_a_certificate_must_verify_before_a_secret_is_sent(
    tollbar: Tollbar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nginx").mkdir()
    authority = Certificates(tmp_path / "nginx" / "certificates").server("ecdsa-p256").authority
    text = (
        '[values]\nkey = { env = "SHOP_KEY" }\n[sign-in]\nby = "bearer"\ntoken = "${key}"\n'
        '[[step]]\nget = "/page"\nexpect = { text = "hello" }\n'
    )
    (tmp_path / "open.toml").write_text(text)
    (tmp_path / "trusting.toml").write_text(f"trust = {json.dumps(str(authority))}\n{text}")
    with nginx(tmp_path / "nginx") as own:
        words = ["--url", own.https, "--users", 2, "--scenario"]
        assert "the environment variable `SHOP_KEY` is not set" in _refused(tollbar("plan", *words, "trusting.toml"))
        monkeypatch.setenv("SHOP_KEY", "a-secret-of-mine")
        assert "the certificate does not verify" in _refused(tollbar("plan", *words, "open.toml"))
        done = tollbar("run", *words, "trusting.toml", "--blocks", 1)
    assert 0 == done.returncode, done.stderr
    assert "a-secret-of-mine" not in done.stdout + done.stderr
    for path in (tmp_path / "runs").rglob("*"):
        assert not path.is_file() or b"a-secret-of-mine" not in path.read_bytes()
