"""Servers of the user's own: the study of their URLs, and permission to ask them."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from conftest import Tollbar
from tollbar import cli, study
from tollbar.catalog.servers.remote import Remote
from tollbar.core import errors
from tollbar.core.errors import TollbarError
from tollbar.lab import workloads
from tollbar.lab.servers import driver
from tollbar.lab.tls import url as urls
from tollbar.lab.tls.url import text_of
from tollbar.study import Study, plan

LOOPBACK = ("http://127.0.0.1:1/", "https://localhost:8443/path?x=1", "http://127.8.9.10/", "http://[::1]:80/")
# Addresses without a name lookup; the last is written as a number that means another machine.
OTHERS = ("http://192.0.2.1/", "https://198.51.100.7:8443/", "http://[2001:db8::1]/", "http://3221225985/")
NOT_URLS = (
    "localhost",
    "ftp://localhost/",
    "https://",
    "http://localhost:port/",
    "http://localhost:99999/",
    "http://user:word@localhost/",
)


def _of(by_itself: dict[str, str], users: tuple[int, ...] = (1,)) -> Study:
    return study.read("url", text_of(by_itself, users), where="url")


@pytest.fixture
def everything_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Accept connections to every address, and send nothing."""
    monkeypatch.setattr(socket, "create_connection", lambda address, limit_s: socket.socket())


@pytest.mark.parametrize("url", LOOPBACK)
def test_this_machine_may_be_asked(everything_listens: None, url: str) -> None:
    """Loopback by name or number needs no permission."""
    (one,) = urls.with_servers([_of({url: "plaintext"})], (), ())
    assert urls.addresses_of(url)[0] == one.remotes[0].address


@pytest.mark.parametrize("url", OTHERS)
def test_another_machine_is_refused_until_named_again(everything_listens: None, url: str) -> None:
    one = _of({"http://localhost/": "plaintext", url: "plaintext"})
    for owned in ((), ("localhost",), ("192.0.2.2",)):
        with pytest.raises(TollbarError, match="not this machine") as caught:
            urls.with_servers([one], owned, ())
    hint = caught.value.hint or ""
    assert "--i-own-this-server" in hint
    (asked,) = urls.with_servers([one], ("localhost", hint.split()[-1].strip("`")), ())
    assert ("--i-own-this-server", hint.split()[-1].strip("`")) == urls.named_again([asked])


def test_a_name_is_looked_up_once(everything_listens: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checked address is measured, whatever the name means afterwards."""
    addresses = iter(["127.0.0.1", "192.0.2.1"])

    def look_up(host: str, port: int, **more: object) -> list[tuple[object, ...]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(addresses), port))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    asked = urls.with_servers([_of({"http://changing.example:8080/": "plaintext"})], (), ())
    (one,) = plan.make(asked, seed=0).studies
    assert {"127.0.0.1:8080"} == {cell.server.address for cell in one.cells if cell.server}
    assert {"http://changing.example:8080/"} == {cell.server_version for cell in one.cells}
    assert "192.0.2.1" == next(addresses)


@pytest.mark.parametrize("url", NOT_URLS)
def test_what_is_no_url_is_refused_in_words(url: str) -> None:
    """A URL begins with http or https, and has no password, which a report would show."""
    with pytest.raises(TollbarError, match="not a URL"):
        urls.addresses_of(url)


WITH_PASSWORDS = (
    "http://anna:9Q@localhost/",
    "http://anna:9Q@[::1/",
    "http://anna:9Q@localhost:99999/",
    "http://:9Q@localhost/",
    "http://anna:x@y:9Q@localhost/",
    "http://anna:a/9Q/b@localhost/",
    "http://anna:1/9Q@localhost:99999/",
    "http://anna:a?9Q#@localhost/",
    "http:/anna:9Q@localhost/",
    "http:anna:9Q@localhost/",
    "//anna:9Q@localhost/",
    "anna:9Q@localhost",
    "ftp://anna:9Q@localhost/",
    f"http://anna:{'9Q' * 1000}@localhost/",
)


@pytest.mark.parametrize("url", WITH_PASSWORDS)
def test_a_refused_url_is_printed_without_its_password(url: str) -> None:
    with pytest.raises(TollbarError, match=r"not a URL|has no address") as refused:
        urls.addresses_of(url)
    assert "9Q" not in f"{refused.value} {refused.value.hint}"


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--url", "URL"],
        ["run", "--url", "http://localhost:1/", "--against", "URL"],
        ["run", "--url", "URL", "--against", "URL"],
        ["run", "--url", "http://localhost:1/", "--scenario", "URL"],
        ["ask", "tls", "--url", "URL"],
        ["ask", "tls", "url=URL"],
        ["run", "study.toml"],
        ["plan", "study.toml"],
        ["plan", "URL"],
        ["judge", "URL"],
        ["price", "URL"],
        ["list", "URL"],
        ["upgrade", "URL", "URL"],
    ],
    ids=" ".join,
)
def test_no_command_prints_the_password_of_a_url(words: list[str], tollbar: Tollbar, tmp_path: Path) -> None:
    url = WITH_PASSWORDS[0]
    (tmp_path / "study.toml").write_text(f'question = "q"\nfamily = "tls"\nurl = "{url}"\n')
    done = tollbar(*(word.replace("URL", url) for word in words))
    assert 2 == done.returncode, done.stderr
    assert done.stderr.startswith("error: ")
    assert "9Q" not in done.stdout + done.stderr


SHOWN = {
    "https://localhost/": "https://localhost/",
    "https://localhost/a?": "https://localhost/a?",
    "https://localhost/a?token=9Q": "https://localhost/a?token=…",
    "https://localhost/a?token=9Q=&9Q&b=9Q?9Q": "https://localhost/a?token=…&…&b=…",
    "https://localhost/?mail=9Q@9Q": "https://localhost/?mail=…",
    "https://localhost/a#9Q?9Q": "https://localhost/a#…",
    "https://localhost/a?b=9Q#9Q": "https://localhost/a?b=…#…",
    "https://localhost/a?b=…": "https://localhost/a?b=…",
}


@pytest.mark.parametrize("url", SHOWN)
def test_a_server_is_named_without_the_values_of_its_query(url: str) -> None:
    assert SHOWN[url] == Remote(url).name == Remote(url).server_version
    assert "9Q" not in errors.masked_url(url)
    assert "9Q" not in errors.masked(f"see {url} there") or "?" not in SHOWN[url]


@pytest.mark.parametrize("url", ["http://anna:9Q@localhost/?token=9Q", "http://anna:a?b=9Q@localhost/", "localhost?9Q"])
def test_a_refused_url_has_neither_password_nor_query(url: str) -> None:
    with pytest.raises(TollbarError) as refused:
        urls.addresses_of(url)
    assert "9Q" not in f"{refused.value} {refused.value.hint}"


def test_a_study_keeps_no_value_of_a_query() -> None:
    url = "https://localhost:8443/a?token=9Q&b=9Q"
    text = text_of({url: "tls-1.3", f"{url}1": "tls-1.3", "http://localhost/": "plaintext"}, (1,))
    with pytest.raises(TollbarError, match="differ in the values of their queries only"):
        study.read("url", text, where="url")
    one = _of({url: "tls-1.3", f"{url}9Q&c=1": "tls-1.3", "http://localhost/": "plaintext"})
    assert "9Q" not in one.text + one.question + str(one.baseline) + str(one.leave_out)
    assert [url, f"{url}9Q&c=1", "http://localhost/"] == [remote.url for remote in one.remotes]
    (planned,) = plan.make([one], seed=0).studies
    assert {remote.name for remote in one.remotes} == {cell.coordinates["server"] for cell in planned.cells}
    assert "9Q" not in "".join(cell.key for cell in planned.cells)


def test_a_url_that_is_escaped_in_its_file_is_refused() -> None:
    escaped = "https://localhost/?token=" + chr(92) + "u0039Q"
    with pytest.raises(TollbarError, match="%22") as refused:
        study.read("own", f'question = "?"\nfamily = "tls"\nurl = "{escaped}"\n', where="own.toml")
    assert "9Q" not in str(refused.value)


def test_the_study_of_a_url_asks_for_what_the_url_says() -> None:
    (one,) = plan.make([_of({"https://localhost:8443/a?b={c}": "tls-1.2"}, (1, 4))], seed=0).studies
    assert 8 == len(one.cells)
    assert {"choice", "provider", "server", "op", "users"} == set(one.cells[0].coordinates)
    assert {"/a?b={c}"} == {cell.server.path for cell in one.cells if cell.server}
    assert "client-cpu" == one.study.measure.cost
    # The server's own choice is compared with the other version.
    assert {("tls-1.2", "request")} == {
        (cell.choice.name, cell.coordinates["op"]) for cell in one.cells if cell.is_baseline
    }


@pytest.mark.parametrize("plain", ["http://localhost:8080/", "http://[::1]:8080/[b]*"])
def test_two_urls_are_compared_with_each_other(plain: str) -> None:
    (one,) = plan.make([_of({plain: "plaintext", "https://localhost:8443/": "tls-1.3"})], seed=0).studies
    cells = {cell.key: cell for cell in one.cells}
    assert {("https", "tls-1.2"), ("https", "tls-1.3"), ("http", "plaintext")} == {
        (str(cell.coordinates["server"]).partition(":")[0], cell.choice.name) for cell in one.cells
    }
    assert 6 == len(cells)
    for cell in one.cells:
        over = cells[cell.against or ""]
        assert (plain, cell.coordinates["op"]) == (over.coordinates["server"], over.coordinates["op"])


def test_the_command_refuses_another_machine(tollbar: Tollbar) -> None:
    for words in (["--url", "http://192.0.2.1/"], ["--url", "http://localhost/", "--against", "http://192.0.2.1/"]):
        done = tollbar("run", *words)
        assert 2 == done.returncode
        assert "not this machine" in done.stderr
        assert "--i-own-this-server 192.0.2.1" in done.stderr


@pytest.mark.parametrize("command", ["run", "plan"])
def test_a_port_on_which_nothing_listens_is_one_line(tollbar: Tollbar, tmp_path: Path, command: str) -> None:
    port = driver.free_port()
    for words in (
        ["--url", f"http://localhost:{port}/"],
        ["--url", f"https://localhost:{port}/", "--against", f"http://localhost:{port}/"],
    ):
        done = tollbar(command, *words)
        assert (2, "") == (done.returncode, done.stdout)
        said = done.stderr.splitlines()[0]
        assert f"{words[-1]}: no server answers: 127.0.0.1:{port}: Connection refused" in said
    assert not (tmp_path / "runs").exists()


def test_clients_offer_sessions_where_that_is_asked_for() -> None:
    by_itself = {"http://localhost:1/": "plaintext", "https://localhost:2/": "tls-1.3"}
    text = text_of(by_itself, (1,), resumption="ticket")
    (one,) = plan.make([study.read("url", text, where="url")], seed=0).studies
    assert {("connect", "tls-1.2"), ("connect", "tls-1.3")} == {
        (cell.coordinates["op"], cell.choice.name) for cell in one.cells if "resumption" in cell.coordinates
    }
    for cell in one.cells:
        (client,) = workloads.of(cell).shown(cell, 1).task["load"]["clients"]
        assert ("resumption" in cell.coordinates) == bool(client["tls"] and client["tls"].get("resume"))
    assert "resumption" not in text_of(by_itself, (1,))


USELESS = {
    "sessions in clear text": (["--url", "http://localhost:1/", "--resumption", "ticket"], "needs an https URL"),
    "sessions of no server": (["self-test", "--resumption", "ticket"], "`--resumption` needs `--url`"),
    "twice the same": (["--url", "http://localhost:1/", "--against", "http://localhost:1/"], "must be different URLs"),
    "nothing to be held against": (["--against", "http://localhost:1/"], "`--against` needs `--url`"),
    "no server of the user's own": (["self-test", "--server-pid", "1"], "`--server-pid` needs `--url`"),
    "no users": (["--url", "http://localhost:1/", "--users", "0"], "at least one user"),
}


@pytest.mark.parametrize("fault", USELESS)
def test_options_that_mean_nothing_are_refused(tollbar: Tollbar, tmp_path: Path, fault: str) -> None:
    words, said = USELESS[fault]
    done = tollbar("run", *words)
    assert (2, "") == (done.returncode, done.stdout)
    assert said in done.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("host", ["a" * 64, "a..b", ".", "é" * 70, f"[fe80::1%{'x' * 100}]"])
def test_a_host_that_no_name_service_takes_is_one_line(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == cli._status_of(["plan", "--url", f"http://{host}/"])
    (refused,) = capsys.readouterr().err.splitlines()
    assert refused.startswith("error: http://")
