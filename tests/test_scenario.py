"""Scenarios: their files, the values of their steps, and errors before anything is measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tollbar import study
from tollbar.core.errors import TollbarError
from tollbar.lab.servers import scenario as values
from tollbar.lab.servers.scenario import HIDDEN, exchange_of
from tollbar.lab.tls.url import text_of_scenario
from tollbar.study import Study, plan
from tollbar.study.scenario import WireValue
from tollbar.study.scenario_file import read_scenario

SHOP = """
[load]
users = [20]

[values]
name     = { csv = "users.csv", column = "name" }
password = { csv = "users.csv", column = "password" }
page     = { range = [1, 200] }
word     = { list = ["tea", "coffee"] }

[[step]]
name    = "open the form"
get     = "/login"
expect  = { text = "Sign in" }
capture = { csrf = { field = "csrf_token" } }

[[step]]
name   = "sign in"
method = "POST"
path   = "/login"
form   = { name = "${name}", password = "${password}", csrf_token = "${csrf}" }
expect = { status = 302 }

[[step]]
get    = "/articles/${page}?q=${word}"
expect = { text = "signed in as ${name}" }
"""
SECRET = "correct horse, battery"
USERS = f'name,group,password\nanna,1,"{SECRET}"\nbert,2,other\n'
FIRST, SECOND = "http://localhost:1/", "https://localhost:2/"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "users.csv").write_text(USERS)
    (tmp_path / "shop.toml").write_text(SHOP)
    return tmp_path / "shop.toml"


def _study(file: Path, by_itself: dict[str, str]) -> Study:
    return study.read("url", text_of_scenario(by_itself, (1, 8), read_scenario(file)), where="url")


def test_a_study_has_the_steps_of_the_file_and_no_secret(shop: Path) -> None:
    one = _study(shop, {FIRST: "plaintext"})
    assert one.load is not None
    assert read_scenario(shop).scenario == one.load.scenario
    assert SECRET not in one.text
    cells = plan.make([one], seed=1).cells
    assert ["1 open the form", "2 sign in", "3 GET /articles/${page}"] == [cell.coordinates["step"] for cell in cells]
    assert {20} == {cell.coordinates["users"] for cell in cells}
    assert {cells[0].key} == {cell.against for cell in cells}


def test_two_servers_are_compared_step_by_step_each_in_its_own_version(shop: Path) -> None:
    cells = plan.make([_study(shop, {FIRST: "plaintext", SECOND: "tls-1.3"})], seed=1).cells
    assert 6 == len(cells)
    for cell in cells:
        assert ("plaintext" if cell.server_version == FIRST else "tls-1.3") == cell.choice.name
        against = json.loads(str(cell.against))
        assert (FIRST, cell.coordinates["step"]) == (against["server"], against["step"])


@pytest.mark.parametrize(
    ("head", "load", "steps", "op"),
    [
        ("each-step = false", '[load]\nrates = ["5 /s"]\nthink = "0 s"', 1, "request"),
        ('connection = "new"', "", 3, "connect"),
    ],
)
def test_a_scenario_sets_its_load_and_its_rows(shop: Path, head: str, load: str, steps: int, op: str) -> None:
    shop.write_text(f"{head}\n{SHOP.replace('[load]' + chr(10) + 'users = [20]', load)}")
    cells = plan.make([_study(shop, {FIRST: "plaintext"})], seed=1).cells
    assert {op} == {cell.coordinates["op"] for cell in cells}
    loads = 1 if "rates" in load else 2
    assert steps * loads == len(cells)
    assert ("rates" in load) == all("rate" in cell.coordinates for cell in cells)


def test_the_load_client_gets_the_values_and_a_display_does_not(shop: Path) -> None:
    scenario = read_scenario(shop).scenario
    given = exchange_of(scenario, "2 sign in")
    assert ["open the form", "sign in"] == [step["name"] for step in given["steps"]]
    (source, column), (same, other) = given["values"]["name"], given["values"]["password"]
    assert source == same
    assert ["anna", SECRET] == [given["sources"][source]["rows"][0][place] for place in (column, other)]
    assert {"range": (1, 200)} in given["sources"]
    shown = json.dumps(exchange_of(scenario, is_shown=True))
    assert SECRET not in shown
    assert HIDDEN in shown


def test_secrets_come_from_the_environment_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text("k3y\n")
    file = tmp_path / "api.toml"
    file.write_text(
        '[values]\nuser = { env = "SHOP_USER" }\nkey = { file = "key" }\n'
        '[sign-in]\nby = "basic"\nuser = "${user}"\npassword = "${key}"\n[[step]]\nget = "/"\n'
    )
    scenario = read_scenario(file).scenario
    with pytest.raises(TollbarError, match="the environment variable `SHOP_USER` is not set"):
        exchange_of(scenario)
    monkeypatch.setenv("SHOP_USER", "anna")
    given = exchange_of(scenario)
    assert [[["anna"]], [["k3y"]]] == [source["rows"] for source in given["sources"]]
    assert all(source["is_secret"] for source in given["sources"])
    (tmp_path / "key").write_text("")
    with pytest.raises(TollbarError, match=r"key is empty; the scenario's value `key` needs it"):
        exchange_of(scenario)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("get     =", "gte     =", "`step.0.gte`: no such key"),
        ('"${csrf}"', '"${crsf}"', "step 2 sign in: no such value: `crsf`"),
        ('"${password}"', '"hunter2"', "the value of `password` is in the scenario"),
        ("?q=${word}", "?q=${word}&api%5Fkey=hunter2", "the value of `api_key` is in the scenario"),
        ("form   =", """body = '{"user": {"pin" : 1234}}'\n#""", "the value of `pin` is in the scenario"),
        ("form   =", """body = '{"n": ${page}, "password": "hunter2"}'\n#""", "the value of `password` is in the"),
        ("form   =", 'body = "name=anna&password=hunter2"\n#', "the value of `password` is in the scenario"),
        (
            "form   =",
            """body = '{"users": [{"tokens" : [ "hunter2"]}]}'\n#""",
            "the value of `tokens` is in the scenario",
        ),
        (
            "form   =",
            """body = '{"query": "{ login(password: \\"hunter2\\") }"}'\n#""",
            "the value of `password` is in the",
        ),
        (
            "form   =",
            "body = '<a><w:Password T=\"x\">hunter2</w:Password></a>'\n#",
            "the value of `Password` is in the",
        ),
        ("form   =", 'body = \'<login user="anna" pin="1234"/>\'\n#', "the value of `pin` is in the scenario"),
        (
            "form   =",
            'body = """--b\nContent-Disposition: form-data; name="password"\n\nhunter2\n"""\n#',
            "`password` is in",
        ),
        ("/articles/${page}", "/articles;jsessionid=hunter2/${page}", "the value of `jsessionid` is in the scenario"),
        ("word     =", 'token = { list = ["abc"] }\nword =', "the value of `token` is in the scenario"),
        ('{ field = "csrf_token" }', '{ field = "a", json = "/b" }', "a capture needs exactly one"),
        ('{ list = ["tea", "coffee"] }', "{ list = [] }", "`list` is empty"),
        ("range = [1, 200]", "range = [200, 1]", "`range` must have the smaller number first"),
        (', column = "name"', "", "`csv` and `column` belong together"),
        ('"/login"\nexpect', '"login"\nexpect', "must begin with `/`"),
        ('name   = "sign in"', 'name   = "sign in"\nonce = true', "must precede all others"),
        ("status = 302", "status = 99", "out of range"),
        ('name   = "sign in"', 'name   = "a*"', "without `*`"),
        ("form   =", 'headers = { Host = "x" }\nform   =', "the header `Host` cannot be set"),
        ("[load]", '[sign-in]\nby = "bearer"\ntoken = "abc"\n[load]', "`token` must name a value"),
        ("[load]", '[sign-in]\nby = "basic"\nuser = "abc"\n[load]', "needs exactly `user` and `password`"),
    ],
)
def test_a_wrong_scenario_is_one_line(shop: Path, old: str, new: str, said: str) -> None:
    text = SHOP.replace(old, new, 1)
    assert text != SHOP
    shop.write_text(text)
    with pytest.raises(TollbarError) as caught:
        read_scenario(shop)
    assert said in caught.value.what or said in str(caught.value)
    assert "\n" not in caught.value.what


@pytest.mark.parametrize(
    ("users", "said"),
    [
        (None, "cannot be read: No such file"),
        (USERS.replace("password", "passwort"), "has no column `password`; the first line must name the columns"),
        (f"anna,1,{SECRET.split(',')[0]}\nbert,2,x\n", "has no column `name`"),
        ("name,group,password\n", "has no rows"),
        (USERS + "carl,3\n", "line 4 has 2 fields; the first line has 3"),
        (USERS + 'carl,3,"x"y\n', "line 4 is not CSV"),
        (USERS + "carl,3,x\n" * 3, "has more than 4 rows"),
        (",".join(["name"] * 1001) + "\n", "has 1,001 columns; the limit is 1,000"),
    ],
)
def test_a_wrong_csv_file_is_one_line_without_its_secrets(
    shop: Path, monkeypatch: pytest.MonkeyPatch, users: str | None, said: str
) -> None:
    monkeypatch.setattr(values, "MOST_ROWS", 4)
    file = shop.with_name("users.csv")
    file.unlink()
    if users is not None:
        file.write_text(users)
    with pytest.raises(TollbarError, match=said) as caught:
        exchange_of(read_scenario(shop).scenario)
    assert str(file) in str(caught.value)
    for text in (str(caught.value), caught.value.hint or ""):
        assert SECRET.split(",")[0] not in text


@pytest.mark.parametrize(
    ("limit", "most", "said"),
    [
        ("MOST_ROWS", 5, "has more than 5 rows with the other CSV files"),
        ("MOST_CSV_BYTES", 2 * len(USERS.encode()), "with the other CSV files of the scenario; 0 MiB is their limit"),
    ],
)
def test_all_csv_files_have_the_limits_of_one(
    shop: Path, monkeypatch: pytest.MonkeyPatch, limit: str, most: int, said: str
) -> None:
    """A hundred files of 8 MiB took 40 s and 1 GB."""
    scenario = read_scenario(shop).scenario
    users = str(shop.with_name("users.csv"))
    others = {}
    for number in range(3):
        others[f"other{number}"] = WireValue(csv=f"{users}.{number}", column="name")
        Path(f"{users}.{number}").write_text(USERS)
    many = scenario.model_copy(update={"values": {**scenario.values, **others}})
    assert exchange_of(many)["sources"]
    monkeypatch.setattr(values, limit, most)
    assert exchange_of(scenario)["sources"]
    with pytest.raises(TollbarError, match=said) as caught:
        exchange_of(many)
    assert f"{users}.1" == caught.value.where


def test_values_of_users_fit_into_a_task(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A column of 8 MiB under a hundred names was a task of 800 MB."""
    scenario = read_scenario(shop).scenario
    assert exchange_of(scenario)["sources"]
    monkeypatch.setattr(values, "MOST_LETTERS", len("anna" + SECRET + "bert"))
    with pytest.raises(TollbarError, match=r"the values of its users have more than \d+ letters") as caught:
        exchange_of(scenario)
    assert str(shop.with_name("users.csv")) == caught.value.where


def test_only_a_line_feed_ends_a_row(shop: Path) -> None:
    odd = "correct\u2028horse\x0b\x85battery"
    shop.with_name("users.csv").write_text(f"name,group,password\r\nanna,1,{odd}\r\nbert,2,x\r\n")
    given = exchange_of(read_scenario(shop).scenario)
    (source, column) = given["values"]["password"]
    assert [odd, "x"] == [row[column] for row in given["sources"][source]["rows"]]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("?q=${word}", "?q=${word}&key=${password}&monkey=tea&token="),
        ("form   =", """body = '{"password": "${password}", "passage": 5, "note": "key: x"}'\n#"""),
        ("form   =", 'body = "password=${password}&csrf_token=${csrf}"\n#'),
        ("form   =", """body = '<a><password>${password}</password><passage n="5">x</passage><pin/></a>'\n#"""),
        ("form   =", """body = '{"query": "{ login(password: \\"${password}\\", page: 5) }", "tokens": []}'\n#"""),
        ("form   =", 'body = """--b\nContent-Disposition: form-data; name="password"\n\n${password}\n--b--"""\n#'),
        ("/articles/${page}", "/articles/token/${page};a=1/key/5"),
    ],
)
def test_a_secret_by_its_reference_may_be_anywhere(shop: Path, old: str, new: str) -> None:
    assert old in SHOP
    shop.write_text(SHOP.replace(old, new, 1))
    assert read_scenario(shop).step


def test_a_scenario_needs_a_url_and_no_other_requests(shop: Path) -> None:
    text = text_of_scenario({FIRST: "plaintext"}, (1,), read_scenario(shop))
    with pytest.raises(TollbarError, match="`scenario` needs `url`"):
        study.read("own", text.replace(f'url       = ["{FIRST}"]\n', ""), where="own")
    with pytest.raises(TollbarError, match="next to `scenario`"):
        study.read("own", text.replace("[load]\n", '[load]\nrequest = { get = "/" }\n'), where="own")
