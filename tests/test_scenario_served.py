"""Scenarios of a user's own site, measured: a known difference, its secrets, and errors before anything is measured."""

from __future__ import annotations

import csv
import http.client
import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest

import own_server
from conftest import Tollbar, lacking
from har_lab import entry, write_har
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


def _visited(url: str, site: Path) -> None:
    """Visit the shop as a browser does, and write the recording."""
    host = urlsplit(url).netloc
    entries, cookie, token = [], "", ""
    name, password = "user007", _password(7)
    for method, target in (("GET", "/login"), ("POST", "/login"), ("GET", "/articles/3")):
        form = urlencode({"name": name, "password": password, "csrf_token": token}) if method == "POST" else None
        headers = {"Cookie": cookie} if cookie else {}
        kind = {"Content-Type": "application/x-www-form-urlencoded"} if form else {}
        with closing(http.client.HTTPConnection(host)) as connection:
            connection.request(method, target, form, headers | kind)
            answer = connection.getresponse()
            page = answer.read().decode()
        token = page.partition('value="')[2].partition('"')[0] or token
        given = answer.headers["Set-Cookie"]
        entries.append(
            entry(
                method,
                target,
                site=url.rstrip("/"),
                status=answer.status,
                headers=headers,
                body=(kind["Content-Type"], form) if form else None,
                answer=(answer.headers["Content-Type"], page),
                answer_headers={"Set-Cookie": given} if given else {},
            )
        )
        cookie = given.partition(";")[0] if given else cookie
    write_har(site / "site.har", entries)


def test_a_recorded_visit_can_be_performed(tollbar: Tollbar, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with _shop(site) as shop:
        _visited(shop.http, site)
        made = tollbar("new", "scenario", "--from", "site.har", "--output", "site.toml")
        assert 0 == made.returncode, made.stderr
        words = ["--url", shop.http, "--scenario", "site.toml"]
        assert "the environment variable `SITE_NAME` is not set" in _refused(tollbar("plan", *words))
        monkeypatch.setenv("SITE_NAME", "user008")
        monkeypatch.setenv("SITE_PASSWORD", _password(8))
        done = tollbar("plan", *words)
        assert 0 == done.returncode, done.stderr
        monkeypatch.setenv("SITE_PASSWORD", "another")
        assert "step 2 (POST /login): expected status 302, got 403" in _refused(tollbar("plan", *words))
    text = (site / "site.toml").read_text()
    assert "user007" not in text
    assert str(7 * 7919) not in text


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
