"""Scenarios from a browser's recording: their steps, captures and references, and no secret in any output."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from conftest import Tollbar
from har_lab import SITE, entry, write_har
from tollbar.core.errors import TollbarError
from tollbar.study.recorded import scenario_of
from tollbar.study.scenario import MOST_STEPS, WireScenario
from tollbar.study.scenario_file import read_scenario

FORM, JSON = "application/x-www-form-urlencoded", "application/json"
MANY_TOKENS = "&".join(f"token{number}=value{number}" for number in range(101))
PASSWORD = 'päss "word"/&+1'
SECRETS = {
    "user": "anna.fischer",
    "password": PASSWORD,
    "token": "k7-Xq/9+Zt==",
    "session": "5e551on-0f-anna",
    "old cookie": "b4sk3t-77",
    "API key": "live_0123456789",
    "bearer": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm5hIn0.c2lnbmF0dXJl",
    "pin": "904417",
    "one-time code": "ZX81-ZX82",
}
FIELD = f'<input type="hidden" value="{SECRETS["token"]}" name="csrf_token"><input type=password name="geheim">'


def _visit() -> list[dict[str, Any]]:
    """Return a visit to a shop, with each kind of secret."""
    session, password = SECRETS["session"], SECRETS["password"]
    cookie = {"Set-Cookie": f"sid={session}; Path=/; HttpOnly"}
    form = f"user={SECRETS['user']}&geheim={quote_plus(password)}&csrf_token={quote(SECRETS['token'], safe='')}&go=1"
    order = {"article": 4711, "pin": int(SECRETS["pin"]), "note": f"for {SECRETS['user']}, {password}"}
    return [
        entry("GET", "/login", answer=("text/html", f"<form>{FIELD}</form>"), answer_headers=cookie),
        entry("GET", "/style.css", answer=("text/css", "p {}")),
        entry("GET", "/logo", answer=("image/png", "")),
        entry("GET", "/count", site="https://elsewhere.example"),
        entry(
            "POST",
            "/login",
            status=302,
            headers={"Cookie": f"sid={session}; basket={SECRETS['old cookie']}", "Origin": SITE, "Referer": f"{SITE}/"},
            body=(FORM, form),
        ),
        entry(
            "GET",
            f"/orders;sid={session}?code={SECRETS['one-time code']}&next={quote('/?p=' + password, safe='')}",
            headers={"X-Api-Key": SECRETS["API key"], "Accept": "application/json"},
            answer=(JSON, json.dumps({"orders": [{"id": "order-00042"}], "access_token": SECRETS["bearer"]})),
        ),
        entry("GET", "/orders/order-00042", headers={"Authorization": f"Bearer {SECRETS['bearer']}"}),
        entry("POST", "/orders", status=201, body=(JSON, json.dumps(order))),
    ]


def forms(secret: str) -> set[str]:
    """Return a secret in the encodings that a URL, a form, JSON or TOML may have."""
    plain = {secret, quote(secret), quote(secret, safe=""), quote_plus(secret), quote(secret, safe="").lower()}
    quoted = {json.dumps(one, ensure_ascii=is_ascii)[1:-1] for one in plain for is_ascii in (True, False)}
    base64 = {b64encode(secret.encode()).decode(), b64encode(f"{SECRETS['user']}:{secret}".encode()).decode()}
    return plain | quoted | base64 | {json.dumps(one)[1:-1] for one in quoted}


def _read(tmp_path: Path, entries: list[dict[str, Any]]) -> WireScenario:
    made = scenario_of(write_har(tmp_path / "site.har", entries))
    (tmp_path / "made.toml").write_text(made.text)
    return read_scenario(tmp_path / "made.toml").scenario


def test_a_visit_becomes_steps_with_references(tmp_path: Path) -> None:
    scenario = _read(tmp_path, _visit())
    first, sign_in, orders, order, buy = scenario.step
    assert {"csrf_token": {"field": "csrf_token"}, "sid": {"cookie": "sid"}} == {
        name: place.named for name, place in first.capture.items()
    }
    assert {"user": "${user}", "geheim": "${geheim}", "csrf_token": "${csrf_token}", "go": "1"} == sign_in.form
    assert {"Origin": SITE, "Cookie": "basket=${basket}"} == sign_in.headers
    assert (302, "POST") == (sign_in.expect.status, sign_in.method)
    assert "/orders;sid=${sid}?code=${code}&next=%2F%3Fp%3D${geheim}" == orders.target
    assert {"X-Api-Key": "${x_api_key}", "Accept": "application/json"} == orders.headers
    assert {"access_token": {"json": "/access_token"}, "path": {"json": "/orders/0/id"}} == {
        {"id": "path"}.get(name, name): place.named for name, place in orders.capture.items()
    }
    assert "/orders/${id}" == order.target
    assert {"Authorization": "Bearer ${access_token}"} == order.headers
    assert {"article": 4711, "pin": "${pin}", "note": "for ${user}, ${geheim}"} == json.loads(str(buy.body))
    assert ["basket", "user", "geheim", "code", "x_api_key", "pin"] == [*scenario.values]
    assert "SITE_GEHEIM" == scenario.values["geheim"].env


def test_no_secret_is_in_any_output(tollbar: Tollbar, tmp_path: Path) -> None:
    write_har(tmp_path / "site.har", _visit())
    printed = tollbar("new", "scenario", "--from", "site.har", "--verbose")
    written = tollbar("new", "scenario", "--from", "site.har", "--output", "site.toml")
    assert (0, 0) == (printed.returncode, written.returncode), printed.stderr
    assert printed.stdout == (tmp_path / "site.toml").read_text()
    for remark in ("2 × request for an image, font, style or script", "1 × request to another site"):
        assert remark in printed.stderr
    output = printed.stdout + printed.stderr + written.stdout + written.stderr
    assert all(form not in output for secret in SECRETS.values() for form in forms(secret))
    assert 5 == len(read_scenario(tmp_path / "site.toml").step)


def test_basic_becomes_a_sign_in_and_its_challenge_no_step(tmp_path: Path) -> None:
    credentials = b64encode(f"{SECRETS['user']}:{PASSWORD}".encode()).decode()
    first = entry("GET", "/", status=401, answer_headers={"WWW-Authenticate": "Basic"})
    target = f"/?u={SECRETS['user']}&c={quote(credentials, safe='')}"
    second = entry("GET", target, headers={"Authorization": f"Basic {credentials}"})
    scenario = _read(tmp_path, [first, second])
    assert scenario.sign_in is not None
    assert ("basic", "${user}", "${password}") == (
        scenario.sign_in.by,
        scenario.sign_in.user,
        scenario.sign_in.password,
    )
    assert ["/?u=${user}&c=${credentials}"] == [step.target for step in scenario.step]
    text = (tmp_path / "made.toml").read_text()
    assert all(form not in text for secret in (SECRETS["user"], PASSWORD, credentials) for form in forms(secret))


@pytest.mark.parametrize(("scheme", "by"), [("Digest", "digest"), ("Negotiate", "negotiate"), ("NTLM", "negotiate")])
def test_other_sign_ins_need_a_user_and_a_password(tmp_path: Path, scheme: str, by: str) -> None:
    secret = 'username="anna.fischer", response="0123456789abcdef"'
    scenario = _read(tmp_path, [entry("GET", "/", headers={"Authorization": f"{scheme} {secret}"})])
    assert scenario.sign_in is not None
    assert by == scenario.sign_in.by
    assert {"user", "password"} == {*scenario.values}
    assert "anna" not in (tmp_path / "made.toml").read_text()


def test_a_secret_that_precedes_its_answer_is_no_capture(tmp_path: Path) -> None:
    """A capture must precede each use."""
    answer = (JSON, json.dumps({"token": SECRETS["API key"]}))
    early = entry("GET", f"/?token={SECRETS['API key']}", answer=answer)
    scenario = _read(tmp_path, [early, entry("GET", "/next", headers={"X-Token": SECRETS["API key"]})])
    assert [{}, {}] == [step.capture for step in scenario.step]
    assert ["/?token=${token}", {"X-Token": "${token}"}] == [scenario.step[0].target, scenario.step[1].headers]


@pytest.mark.parametrize(
    ("made", "left"),
    [
        (
            entry("POST", "/", body=(JSON, '{"auth": {"a": {"value": "VALUE"}}}')),
            '{"auth": {"a": {"value": "${value}"}}}',
        ),
        (entry("POST", "/", body=(JSON, '{"tokens": ["VALUE"]}')), '{"tokens": ["${tokens}"]}'),
        (entry("POST", "/", body=(FORM, "user[pin]=VALUE")), "${user_pin}"),
        (entry("GET", "/?eyJhbGciOiJIUzI1NiJ9.VALUE.VALUE&a=b"), "/?${query}&a=b"),
        (entry("GET", "/eyJhbGciOiJIUzI1NiJ9.VALUE.VALUE"), "/${path}"),
        (entry("GET", "/?eyJhbGciOiJIUzI1NiJ9.VALUE.VALUE=1"), "/?${query}=1"),
        (entry("POST", "/", body=(FORM, "eyJhbGciOiJIUzI1NiJ9.VALUE.VALUE")), "${field}"),
        (entry("POST", "/", body=(JSON, '{"eyJhbGciOiJIUzI1NiJ9.VALUE.VALUE": 1}')), '{"${key}": 1}'),
        (entry("GET", "/?go=%252F%253Fx%253DVALUE%252521&pin=VALUE%21"), "/?go=%252F%253Fx%253D${pin}&pin=${pin}"),
        (entry("GET", "/", headers={"X-Session-Id": "VALUE", "User-Agent": "VALUE"}), "${x_session_id}"),
    ],
)
def test_a_secret_is_found_by_its_place_and_its_form(tmp_path: Path, made: dict[str, Any], left: str) -> None:
    scenario = _read(tmp_path, [json.loads(json.dumps(made).replace("VALUE", "q7PxW2Lk"))])
    assert left in [*scenario.step[0].texts]
    assert "q7PxW2Lk" not in (tmp_path / "made.toml").read_text()


def test_a_reference_in_a_recording_is_a_text(tmp_path: Path) -> None:
    scenario = _read(tmp_path, [entry("POST", "/a${b}", body=(JSON, '{"text": "${c}"}'))])
    assert "/a$${b}" == scenario.step[0].target
    assert '{"text": "$${c}"}' == scenario.step[0].body


def test_more_requests_than_steps_are_left_out(tmp_path: Path) -> None:
    made = scenario_of(write_har(tmp_path / "site.har", [entry("GET", f"/{number}") for number in range(70)]))
    (tmp_path / "made.toml").write_text(made.text)
    scenario = read_scenario(tmp_path / "made.toml")
    assert (MOST_STEPS.most, False) == (len(scenario.step), scenario.each_step)
    assert made.remarks == ("left out: 6 × request after the first 64, the limit of steps",)


def test_a_body_that_cannot_be_sent_is_left_out(tmp_path: Path) -> None:
    body = ("multipart/form-data; boundary=x", f"--x\r\n\r\n{PASSWORD}\r\n--x--")
    made = scenario_of(write_har(tmp_path / "site.har", [entry("POST", "/upload", body=body)]))
    assert made.remarks == ("left out: 1 × body that is neither a form nor JSON, or is too large",)
    assert PASSWORD not in made.text


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([], "has no request to a site"),
        ([entry("GET", "/", status=0)], "has no request to a site"),
        ([entry("GET", "/", site="chrome-extension://abc")], "has no request to a site"),
        ([{"request": {}}], "is not a HAR file"),
        (
            [entry("POST", "/", body=(FORM, MANY_TOKENS))],
            "101 different secrets",
        ),
    ],
)
def test_a_recording_without_a_scenario_is_one_line(tmp_path: Path, entries: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(TollbarError) as caught:
        scenario_of(write_har(tmp_path / "site.har", entries))
    assert said in caught.value.what
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("words", [("scenario",), ("digest", "--from", "site.har")])
def test_a_scenario_needs_a_recording_and_a_family_has_none(tollbar: Tollbar, words: tuple[str, ...]) -> None:
    done = tollbar("new", *words)
    assert 2 == done.returncode
    assert "error: `tollbar new scenario` needs `--from FILE`" in done.stderr
    assert "tollbar new scenario --from site.har" in done.stderr


# Letters that URLs, forms, JSON, TOML and scenarios write in another way.
SECRET = some.text(some.sampled_from("aZ09-_.~ +/%&=;,:\"'\\${}<>äß€😀"), min_size=12, max_size=24)


@settings(max_examples=int(os.environ.get("TOLLBAR_EXAMPLES", 60)), deadline=None, suppress_health_check=[*HealthCheck])
@given(secret=SECRET.filter(lambda one: one.strip() == one and ";" not in one), data=some.data())
def test_a_secret_of_any_letters_is_replaced_wherever_it_is(
    tmp_path_factory: pytest.TempPathFactory, secret: str, data: some.DataObject
) -> None:
    texts = [
        entry("POST", "/login", body=(FORM, f"user=u&password={quote_plus(secret)}")),
        entry("POST", "/api", body=(JSON, json.dumps({"a": {"b": [f"x{secret}y"]}, "password": secret}))),
        entry("GET", f"/a/{quote(secret, safe='')}?q=1{quote(secret, safe='')}2&r={quote_plus(secret)}"),
        entry("POST", "/form", body=(FORM, f"comment=of+{quote_plus(secret)}")),
    ]
    first, *others = data.draw(some.permutations(texts))
    # Some text must say that it is a secret.
    named = texts[0]
    chosen = [named, first, *others[: data.draw(some.integers(0, 3))]]
    path = tmp_path_factory.getbasetemp() / "any.har"
    made = scenario_of(write_har(path, data.draw(some.permutations(chosen))))
    inside = made.text.replace("SITE_PASSWORD", "")
    assert all(form not in inside for form in forms(secret))
    (path.with_suffix(".toml")).write_text(made.text)
    assert len(chosen) == len(read_scenario(path.with_suffix(".toml")).step)
