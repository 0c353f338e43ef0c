"""Hostile files: any file gets an answer of one line within limits."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import get_context
from pathlib import Path

import pytest
from pydantic import ValidationError

from conftest import command
from tollbar.study.scenario import WireStep, references
from tollbar.study.scenario_file import read_scenario

MIB = 1024 * 1024
# Far more than each needs on a busy machine, and far less than an unlimited read uses.
MOST_CPU_S = 30
# Address space: libraries reserve more than they use.
MOST_BYTES = 1536 * MIB

COMMANDS: Mapping[str, Sequence[str]] = {
    "price": ["price", "--for", "0s", "{}"],
    "policy of price": ["price", "--for", "0s", "--policy", "{}", "good.json"],
    "size": ["size", "{}"],
    "check": ["check", "policy", "{}"],
    "plan": ["plan", "{}"],
    "new": ["new", "scenario", "--from", "{}"],
}

INVENTORY = b'{"bomFormat": "CycloneDX", "specVersion": "1.6", '
COMPONENT = INVENTORY + b'"components": [{"type": "cryptographic-asset", "cryptoProperties": '


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


def _holding(content: Callable[[], bytes]) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content())


# Files of any kind, each refused by every command.
FILES: Mapping[str, Callable[[Path], object]] = {
    "nothing": lambda path: None,
    "a folder": Path.mkdir,
    "a socket": _socket,
    "a pipe without a writer": os.mkfifo,
    "an endless device": lambda path: path.symlink_to("/dev/zero"),
    "a terminal's device": lambda path: path.symlink_to("/dev/ptmx"),
    "memory": lambda path: path.symlink_to("/proc/self/mem"),
    "a link to itself": lambda path: path.symlink_to(path),
    "a large sparse file": lambda path: (path.touch(), os.truncate(path, 1 << 40)),
    "NUL bytes": _holding(lambda: b"\0" * 1000),
    "UTF-16": _holding(lambda: 'a = "b"'.encode("utf-16")),
    "gzip": _holding(lambda: b"\x1f\x8b\x08" + bytes(range(256))),
    "a million brackets": _holding(lambda: b"[" * 1_000_000),
    "a nested value": _holding(lambda: b"a = " + b"[" * 900_000),
    "a million wrong items": _holding(lambda: b"a = [" + b"[]," * 300_000 + b"]"),
    "many keys": _holding(lambda: b"\n".join(b"a%d = 1" % number for number in range(70_000))),
    "a long key": _holding(lambda: b'x = {"=".' + b"a." * 400_000 + b"b = 1}"),
    "a long string": _holding(lambda: b'a = "' + b"x" * 1_000_000 + b'"'),
    "a long name": _holding(lambda: b"x" * 1_000_000 + b" = 1"),
    "a long name of a table": _holding(lambda: b'[term."' + b"n" * 900_000 + b'"]\nrate = "20 /s"'),
    "a long number of base 16": _holding(lambda: b"a = 0x" + b"f" * 1_000_000),
    "a long number": _holding(lambda: b"a = " + b"9" * 1_000_000),
}

# Inventories of up to 32 MiB each: a right answer, or one line.
INVENTORIES: Mapping[str, tuple[int, Callable[[], bytes]]] = {
    "values that are not read": (0, lambda: INVENTORY + b'"x": [' + b"[]," * 10_000_000 + b"[]]}"),
    "keys that are not read": (0, lambda: INVENTORY + b'"a":1,' * 4_500_000 + b'"b":1}'),
    "values of an asset": (
        0,
        lambda: COMPONENT + b'{"assetType": "algorithm", "x": [' + b"[]," * 10_000_000 + b"[]]}}]}",
    ),
    "components that are numbers": (2, lambda: INVENTORY + b'"components": [' + b"0," * 15_000_000 + b"0]}"),
    "empty components": (2, lambda: INVENTORY + b'"components": [' + b"{}," * 10_000_000 + b"{}]}"),
    "components in components": (2, lambda: INVENTORY + b'"components": ' + b'[{"components": ' * 1_500_000),
    "a nested value": (2, lambda: INVENTORY + b'"x": ' + b"[" * 31_000_000),
    "a huge number": (0, lambda: INVENTORY + b'"x": ' + b"9" * 31_000_000 + b"}"),
    "a huge size": (
        0,
        lambda: (
            COMPONENT
            + b'{"assetType": "related-crypto-material", "relatedCryptoMaterialProperties": {"size": '
            + b"9" * 31_000_000
            + b"}}}]}"
        ),
    ),
    "a long name": (
        0,
        lambda: INVENTORY + b'"components": [{"cryptoProperties": {}, "name": "' + b"x" * 31_000_000 + b'"}]}',
    ),
    "occurrences": (
        0,
        lambda: (
            INVENTORY
            + b'"components": [{"cryptoProperties": {}, "evidence": {"occurrences": ['
            + b'{"location":"a"},' * 1_750_000
            + b"{}]}}]}"
        ),
    ),
    "one key of a hundred thousand references": (
        0,
        lambda: (
            COMPONENT
            + b'{"assetType": "certificate", "certificateProperties": {"relatedCryptographicAssets": ['
            + b'{"type":"publicKey","ref":"k"},' * 100_000
            + b'{}]}}}, {"bom-ref": "k", "cryptoProperties": {}}]}'
        ),
    ),
    "suites of many groups": (
        2,
        lambda: (
            COMPONENT
            + b'{"assetType": "protocol", "protocolProperties": {"cipherSuites": ['
            + (b'{"tlsGroups": [' + b",".join(b'"%d"' % number for number in range(400)) + b"]},") * 400
            + b"{}]}}}]}"
        ),
    ),
    "suites in many places": (
        2,
        lambda: (
            COMPONENT
            + b'{"assetType": "protocol", "protocolProperties": {"cipherSuites": ['
            + b"{}," * 20_000
            + b'{}]}}, "evidence": {"occurrences": ['
            + b",".join(b'{"location": "%d"}' % number for number in range(20_000))
            + b"]}}]}"
        ),
    ),
    "protocols of several certificates": (
        0,
        lambda: (
            COMPONENT
            + b'{"assetType": "protocol", "protocolProperties": {"cryptoRefArray": ["a", "b", "c"]}}},'.join(
                [b"", *[b'{"cryptoProperties": '] * 20_000]
            )
            + b'{"assetType": "protocol"}}'
            + b"".join(
                b', {"bom-ref": "%c", "cryptoProperties": {"assetType": "certificate", "algorithmName": "RSA-2048"}}'
                % one
                for one in b"abc"
            )
            + b"]}"
        ),
    ),
    "empty formulations": (2, lambda: INVENTORY + b'"formulation": [' + b"{}," * 10_000_000 + b"{}]}"),
    "spaces": (2, lambda: b" " * 31_000_000),
    "ends of lines": (2, lambda: b"\n" * 31_000_000),
    "XML": (2, lambda: b"<bom>" * 5_000_000),
    "a list of small tables": (2, lambda: b"[" + b'{"id":1},' * 3_000_000 + b"{}]"),
    "keys of no format": (2, lambda: b"{" + b",".join(b'"%d":0' % number for number in range(2_500_000)) + b"}"),
}


REQUEST = (
    b'{"request": {"method": "POST", "url": "http://a/%b", "headers": [%b],'
    b' "postData": {"mimeType": "%b", "text": "%b"}}'
)
ANSWER = b', "response": {"status": 200, "content": {"mimeType": "%b", "text": "%b"}}}'
JSON, FORM, HTML = b"application/json", b"application/x-www-form-urlencoded", b"text/html"


def _recording(*entries: bytes) -> bytes:
    return b'{"log": {"entries": [' + b",".join(entries) + b"]}}"


def _posted(body: bytes, kind: bytes = FORM, path: bytes = b"", headers: bytes = b"") -> bytes:
    return REQUEST % (path, headers, kind, body) + ANSWER % (HTML, b"")


def _answered(page: bytes, kind: bytes = HTML, body: bytes = b"") -> bytes:
    return REQUEST % (b"", b"", FORM, body) + ANSWER % (kind, page)


def _joined(form: bytes, number: int, by: bytes = b",") -> bytes:
    return by.join(form.replace(b"NUMBER", b"%07d" % one) for one in range(number))


# Recordings of up to 64 MiB each: a right answer, or one line.
RECORDINGS: Mapping[str, tuple[int, Callable[[], bytes]]] = {
    "values that are not read": (2, lambda: b'{"x": [' + b"[]," * 20_000_000 + b'[]], "log": {"entries": []}}'),
    "empty entries": (2, lambda: _recording(*[b"{}"] * 10_000_000)),
    "many entries": (0, lambda: _recording(*[_posted(b"")] * 250_000)),
    "many headers": (
        2,
        lambda: _recording(_posted(b"", headers=_joined(b'{"name": "a-token", "value": "NUMBER"}', 1_000_000))),
    ),
    "empty headers": (2, lambda: _recording(_posted(b"", headers=_joined(b'{"name": ""}', 4_000_000)))),
    "a nested value": (2, lambda: b'{"log": {"x": ' + b"[" * 60_000_000),
    "a nested body": (0, lambda: _recording(_posted(b"[" * 4_000 + b"]" * 4_000, JSON))),
    "a long body": (0, lambda: _recording(_posted(b"a" * 60_000_000))),
    "a long path": (2, lambda: _recording(_posted(b"", path=b"a" * 60_000_000))),
    "parts of paths": (0, lambda: _recording(*[_posted(b"", path="/ä".encode() * 1_400)] * 14_000)),
    "many fields": (0, lambda: _recording(*[_posted(b"&" * 65_000)] * 64)),
    "many headers of no request": (2, lambda: b'{"x": [' + b'{"name":"x"},' * 4_500_000 + b"{}]}"),
    "many parameters": (2, lambda: _recording(*[_posted(b"", path=b"?" + b"&" * 9_000)] * 5_000)),
    "many cookies": (
        2,
        lambda: _recording(
            _posted(b"", headers=b'{"name": "cookie", "value": "%b"}' % _joined(b"a=NUMBER", 3_000_000, b";"))
        ),
    ),
    "many secrets": (
        2,
        lambda: _recording(*(_posted(_joined(b"tokenNUMBER=%dNUMBER" % one, 900, b"&")) for one in range(2))),
    ),
    "a header of beginnings of tokens": (
        0,
        lambda: _recording(_posted(b"a=b", headers=b'{"name": "x", "value": "%b"}' % (b"eyJ" * 300_000))),
    ),
    "beginnings of tokens": (
        0,
        lambda: _recording(
            *[_posted(b"a=b", path=b"/?a=" + b"eyJ" * 3_000, headers=b'{"name": "x", "value": "a.b."}')] * 60
        ),
    ),
    "many requests": (
        2,
        lambda: _recording(*[b'{"request":{"method":"","url":""},"response":{"status":0}}'] * 900_000),
    ),
    "escaped names": (
        2,
        lambda: _recording(*[_posted(b"a=b", headers=b",".join([b'{"n\\u0061me": ""}'] * 900))] * 700),
    ),
    "beginnings of fields": (0, lambda: _recording(*[_answered(b"<input " * 120_000)] * 64)),
    "fields without an end": (0, lambda: _recording(*[_answered(b"<input name='" * 70_000)] * 64)),
    "words of a field": (0, lambda: _recording(*[_answered(b"<input " + b"name " * 200_000)] * 64)),
    "secrets that begin alike": (
        2,
        lambda: _recording(
            _posted(_joined(b"token=aNUMBER", 900, b"&")),
            *[_posted(b"&".join([b"x=" + b"a" * 9_000] * 7))] * 60,
        ),
    ),
    "secrets of special letters": (
        2,
        lambda: _recording(_posted(_joined(b"token=NUMBER" + "ä".encode() * 20, 900, b"&"))),
    ),
    "secrets in secrets": (
        2,
        lambda: _recording(_posted(b"&".join(b"token=" + b"a" * size for size in range(4, 300)))),
    ),
    "long texts": (
        2,
        lambda: _recording(
            _posted(b"token=abcdef", headers=b'{"name": "accept", "value": "%b"}' % (b"a" * 30_000_000))
        ),
    ),
    "secrets of answers": (
        0,
        lambda: _recording(
            *(
                _answered(b"{" + _joined(rb"\"tokenNUMBER\": \"0b%dNUMBER\"" % one, 20_000) + b"}", JSON, body)
                for one, body in enumerate([b"&".join([b"a=" + b"0b" * 4_900] * 2)] * 40)
            )
        ),
    ),
}


def limited() -> None:
    """Set limits in the process of the command, before it begins."""
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_S, MOST_CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))


def told(words: Sequence[str], folder: Path) -> tuple[int, str]:
    """Return the status of a command, and its messages."""
    done = subprocess.run(
        [command(), *words],
        cwd=folder,
        capture_output=True,
        text=True,
        preexec_fn=limited,
        env=os.environ | {"COLUMNS": "120"},
    )
    return done.returncode, done.stderr


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "good.json").write_bytes(INVENTORY + b'"components": []}')
    return tmp_path


# All commands read files by one function, so each file is given to two of them, in turn.
PAIRS = [(what, [*COMMANDS][(place + more) % len(COMMANDS)]) for place, what in enumerate(FILES) for more in (0, 1)]


@pytest.mark.share(8)
@pytest.mark.parametrize(("what", "command_name"), PAIRS)
def test_whatever_a_file_is_a_command_refuses_it_in_one_line(what: str, command_name: str, place: Path) -> None:
    name = "hostile.json" if command_name == "price" else "hostile.toml"
    FILES[what](place / name)
    status, messages = told([word.format(name) for word in COMMANDS[command_name]], place)
    assert 2 == status, messages[-2000:]
    refusal(messages)


def refusal(messages: str) -> tuple[str, str]:
    """Return the line of an error and that of its hint; anything else fails."""
    lines = [line for line in messages.splitlines() if line]
    assert len(lines) in (1, 2), messages[-2000:]
    assert lines[0].startswith("error: "), messages[-2000:]
    assert all(line.startswith("hint: ") for line in lines[1:])
    assert all(6_000 > len(line) for line in lines)
    return lines[0], "".join(lines[1:])


@pytest.mark.share(6)
@pytest.mark.parametrize("what", INVENTORIES)
def test_whatever_an_inventory_holds_it_is_answered_within_limits(what: str, place: Path) -> None:
    expected, content = INVENTORIES[what]
    (place / "cbom.json").write_bytes(content())
    status, messages = told(["price", "--for", "0s", "cbom.json"], place)
    assert expected == status, messages[-2000:]
    if status:
        assert refusal(messages)[1], messages


@pytest.mark.share(6)
@pytest.mark.parametrize("what", RECORDINGS)
def test_whatever_a_recording_holds_it_is_answered_within_limits(what: str, place: Path) -> None:
    expected, content = RECORDINGS[what]
    (place / "site.har").write_bytes(content())
    status, messages = told(["new", "scenario", "--from", "site.har", "--output", "site.toml"], place)
    assert expected == status, messages[-2000:]
    if status:
        refusal(messages)
    else:
        read_scenario(place / "site.toml")


STEP = '[[step]]\nmethod = "POST"\npath = "/"\n'
SIGN_IN = """[values]
secret = {{ env = "PATH" }}
[sign-in]
by = "negotiate"
user = "anna"
password = "${{secret}}"
krb5-config = "{}"
"""
# Each with the words of its refusal.
SCENARIOS: Mapping[str, tuple[str, Callable[[], str]]] = {
    "many captures": (
        "capture 24,000 values; the limit is 1,000",
        lambda: "".join(
            f"{STEP}[step.capture]\n" + "".join(f'c{step}-{one} = {{ field = "a" }}\n' for one in range(400))
            for step in range(60)
        ),
    ),
    "many references": (
        "120,000 references; the limit is 10,000",
        lambda: (
            f"[values]\na = {{ range = [1, 2] }}\n{STEP}[step.headers]\n"
            + "".join(f'h{one} = "{REFERRED}"\n' for one in range(60))
        ),
    ),
    "authorities in a pipe": ("no program writes to this pipe", lambda: f'trust = "pipe"\n{STEP}'),
    "endless authorities": ("it is a device", lambda: f'trust = "/dev/zero"\n{STEP}'),
    "a large file of authorities": ("larger than 4 MiB", lambda: f'trust = "large.pem"\n{STEP}'),
    "no authorities": ("has no certificate", lambda: f'trust = "good.json"\n{STEP}'),
    "many authorities": ("has 501 certificates; the limit is 500", lambda: f'trust = "many.pem"\n{STEP}'),
    "settings of Kerberos in a pipe": ("it is a pipe", lambda: SIGN_IN.format("pipe") + STEP),
    "settings of Kerberos that are two files": ("has a colon", lambda: SIGN_IN.format("a:b") + STEP),
    "endless settings of Kerberos": ("it is a device", lambda: SIGN_IN.format("/dev/zero") + STEP),
}
REFERRED = "${a}" * 2_000


@pytest.mark.share(4)
@pytest.mark.parametrize("what", SCENARIOS)
def test_whatever_a_scenario_holds_it_is_refused_within_limits(what: str, place: Path) -> None:
    expected, text = SCENARIOS[what]
    os.mkfifo(place / "pipe")
    (place / "a:b").touch()
    with (place / "large.pem").open("wb") as file:
        file.write(b"-----BEGIN CERTIFICATE-----\n")
        file.truncate(1 << 30)
    (place / "many.pem").write_text("-----BEGIN CERTIFICATE-----\n" * 501)
    (place / "site.toml").write_text(text())
    # It never answers, and none of these files may be sent to it.
    with socket.create_server(("127.0.0.1", 0)) as server:
        scheme = "https" if "authorities" in what else "http"
        words = ["plan", "--url", f"{scheme}://127.0.0.1:{server.getsockname()[1]}/", "--scenario", "site.toml"]
        status, messages = told(words, place)
    assert 2 == status, messages[-2000:]
    assert expected in refusal(messages)[0]


def test_a_name_of_a_part_is_searched_once_to_the_end_of_its_line() -> None:
    """Steps with a thousand names in a line took more than half a minute."""
    process = get_context("fork").Process(target=_steps_within_limits)
    process.start()
    process.join()
    assert 0 == process.exitcode
    with pytest.raises(ValidationError, match="the value of `token` is in the scenario"):
        _step('name="token"; x\r\nA: b\r\n\r\nv')
    assert _step('name="token"\nA: b\n\n${v}\n').body


def _steps_within_limits() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (10, 10))
    for _ in range(64):
        _step('name="a"' * 1_240)


def _step(body: str) -> WireStep:
    return WireStep.model_validate({"method": "POST", "path": "/", "body": body})


def test_references_without_an_end_are_found_at_once() -> None:
    """A search that reads each of them to the end of the text would take hours."""
    assert ["a"] == references("${a}" + "${" * 5_000_000)
    assert [] == references("${" * 5_000_000)


TERM = '[term."{}"]\nrate = "20 /s"\nfamily = "web-auth"\nchoice = "form"\nop = "sign-on"\nserver = "embedded"\n'
STUDY = 'question = "{}"\nfamily = "digest"\n'
OF_SERVERS = 'question = "?"\nfamily = "tls"\nurl = [' + '"https://127.0.0.1/",' * 101 + "]\n"


@pytest.mark.parametrize(
    ("words", "text", "says"),
    [
        (["size", "FILE", "--for", "0s"], TERM.format("n" * 900_000), "letters; the limit is 200"),
        (
            ["plan", "FILE"],
            STUDY.format("q" * 900_000),
            "`question`: the text has 900,000 letters; the limit is 10,000",
        ),
        (["plan", "FILE"], OF_SERVERS, "`url`: Tuple should have at most 100 items"),
    ],
    ids=["a term's name", "a study's question", "a study's servers"],
)
def test_a_name_or_a_text_that_fills_the_terminal_is_refused(
    words: Sequence[str], text: str, says: str, place: Path
) -> None:
    (place / "long.toml").write_text(text)
    status, messages = told([word.replace("FILE", "long.toml") for word in words], place)
    assert 2 == status
    assert says in refusal(messages)[0]


@pytest.mark.parametrize("form", ["uses.a{0}", 'uses . "a{0}"'])
def test_what_takes_long_to_write_is_not_accepted(place: Path, form: str) -> None:
    """As many uses as a file may have took a minute."""
    text = "".join(
        f'{(use := form.format(number))}.family = "digest"\n{use}.choice = "sha-256"\n' for number in range(500)
    )
    (place / "tollbar.toml").write_text(text)
    status, messages = told(["check", "policy"], place)
    assert 3 > status, messages
    status, messages = told(["check", "policy", "--accept"], place)
    assert 2 == status
    assert "more than 200 dotted keys" in refusal(messages)[0]
    assert text == (place / "tollbar.toml").read_text()


@pytest.mark.parametrize("redirected", ["<&-", "0>file"])
def test_a_standard_input_that_cannot_be_read_is_one_line(place: Path, redirected: str) -> None:
    words = ["bash", "-c", f"{command()} price --for 0s - {redirected}"]
    done = subprocess.run(words, cwd=place, capture_output=True, text=True)
    assert 2 == done.returncode
    assert "standard input" in refusal(done.stderr)[0]


def test_a_pipe_of_a_shell_is_a_file_too(place: Path) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{command()} price --for 0s <(sleep 1; cat good.json)"],
        cwd=place,
        capture_output=True,
        text=True,
    )
    assert (0, "") == (done.returncode, done.stderr)


def test_an_interrupt_ends_the_wait_for_a_pipe(place: Path) -> None:
    os.mkfifo(place / "pipe")
    handle = os.open(place / "pipe", os.O_RDWR)
    try:
        with subprocess.Popen([command(), "price", "pipe"], cwd=place, stderr=subprocess.PIPE) as one:
            while not _waits(one.pid, place / "pipe"):
                time.sleep(0.05)
            one.send_signal(signal.SIGINT)
            assert 130 == one.wait(60)
    finally:
        os.close(handle)


def _waits(pid: int, path: Path) -> bool:
    folder = Path(f"/proc/{pid}/fd")
    try:
        return any(link.resolve() == path for link in folder.iterdir())
    except OSError:
        return False
