"""Sign-in compared with other implementations, in both directions.

Tokens by `cryptography`, signed requests by Python's `hmac`, passwords and cookies by curl.
"""

from __future__ import annotations

import hashlib
import http.client
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conftest import lacking
from other_sign_in import (
    Elsewhere,
    Headers,
    claims_of,
    signature_headers,
    text_of,
    token,
    user_of_request,
    user_of_token,
)
from patience import PATIENCE_S
from tollbar import study
from tollbar.catalog import servers
from tollbar.core.records import Outcome
from tollbar.core.runner import ask
from tollbar.lab import workloads
from tollbar.lab.servers import driver
from tollbar.lab.servers.sandbox import Sandbox
from tollbar.lab.workloads.accounts import Accounts, accounts_of
from tollbar.lab.workloads.request import RequestWorkload, command
from tollbar.study import plan
from tollbar.study.plan.cells import Cell

STUDY = """
question  = "Who asks?"
family    = "web-auth"
providers = ["aws-lc"]
choices   = ["{choice}"]
servers      = ["embedded"]
load      = {{ users = [2], request = {{ get = "/bytes/{{bytes}}" }} }}
[vary]
op        = ["request"]
accounts  = [{accounts}]
transport = ["clear"]
bytes     = ["100 B"]
{settings}
"""
ACCOUNTS = 8
SIGNATURES = ("hs256", "rs256", "es256", "eddsa")


def cell_of(choice: str, settings: str = "") -> Cell:
    """Return the one cell of a study of this choice."""
    text = STUDY.format(choice=choice, accounts=ACCOUNTS, settings=settings)
    (one,) = plan.make([study.read("some", text, where="some.toml")], seed=1).studies
    (cell,) = one.cells
    return cell


def workload_of(cell: Cell) -> RequestWorkload:
    found = workloads.of(cell)
    assert isinstance(found, RequestWorkload)
    return found


@contextmanager
def ours(cell: Cell) -> Iterator[tuple[str, Accounts]]:
    """Yield the embedded server's address, and its accounts."""
    assert cell.server is not None
    assert not isinstance(cell.server, servers.remote.Remote)
    with Sandbox() as sandbox:
        request = workload_of(cell).request(cell, servers.here(cell.server), 1, sandbox)
        with driver.start(sandbox, request) as server:
            yield server.address, accounts_of(sandbox, ACCOUNTS)


def asked(address: str, headers: Headers, path: str = "/bytes/100", method: str = "GET") -> tuple[int, str | None]:
    """Return the status of an answer, and the user that the server saw."""
    connection = http.client.HTTPConnection(address, timeout=PATIENCE_S)
    connection.request(method, path, headers={"X-Tell-User": "yes", **headers})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, answer.getheader("X-User")


# Tokens.


@pytest.mark.parametrize("signature", SIGNATURES)
def test_tokens_of_another_issuer_are_taken_and_nothing_else(signature: str) -> None:
    with ours(cell_of("jwt", f'signature = ["{signature}"]')) as (address, accounts):
        key, public = (
            path.read_bytes() for path in (accounts.issuer_key(signature), accounts.verification_key(signature))
        )

        def status(given: str) -> tuple[int, str | None]:
            return asked(address, {"Authorization": f"Bearer {given}"})

        assert (200, "u00001") == status(token(key, signature, claims_of("u00001")))
        hour_ago_s = int(time.time()) - 3600
        wrong = {
            "expired": token(key, signature, claims_of("u00001", exp=hour_ago_s)),
            "another audience": token(key, signature, claims_of("u00001", aud="https://other.test")),
            "another issuer": token(key, signature, claims_of("u00001", iss="https://other.test")),
            "another algorithm": token(key, signature, claims_of("u00001"), "HS512"),
            "no algorithm": token(key, signature, claims_of("u00001"), "none").rpartition(".")[0] + ".",
        }
        if signature != "hs256":
            wrong["the public key as a secret"] = token(public, "hs256", claims_of("u00001"))
        assert {(401, None)} == {status(given) for given in wrong.values()}, wrong


# Signed requests (RFC 9421).


def test_requests_signed_elsewhere_are_taken_once() -> None:
    """Signed by Python's `hmac`; refused with another path, age, user or key."""
    with ours(cell_of("hmac")) as (address, accounts):
        keys = {one.name: one.password for one in accounts}
        key, path = keys["u00003"], "/bytes/100?a=1"
        right = signature_headers(key, "u00003", path)
        assert (200, "u00003") == asked(address, right, path)
        assert 401 == asked(address, right, path)[0], "the same a second time"
        for wrong in (
            signature_headers(key, "u00003", path, signs="/bytes/99?a=1"),
            signature_headers(key, "u00003", path, age_s=400),
            signature_headers(key, "u00002", path),
            signature_headers(key[::-1], "u00003", path),
        ):
            assert 401 == asked(address, wrong, path)[0]


# Passwords and cookies, by curl.


def curl(*words: str) -> tuple[int, str]:
    """Return curl's final status, and all headers that it got."""
    program = shutil.which("curl")
    if program is None:
        lacking("curl is not installed")
    done = subprocess.run(
        [program, "-s", "-S", "-i", "-o", "-", "-w", "\n%{http_code}", "--max-time", "10", *words],
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    text = done.stdout.decode(errors="replace")
    return int(text.rsplit("\n", 1)[1]), text


@pytest.mark.parametrize(
    ("choice", "settings", "how"),
    [
        ("basic", 'password-hash = ["bcrypt"]', "--basic"),
        ("digest", 'digest-algorithm = ["md5"]', "--digest"),
        ("digest", 'digest-algorithm = ["sha-256"]', "--digest"),
    ],
)
def test_curl_signs_in_with_a_password(choice: str, settings: str, how: str) -> None:
    with ours(cell_of(choice, settings)) as (address, accounts):
        first = next(iter(accounts))
        for user, status in (
            (f"{first.name}:{first.password}", 200),
            (f"{first.name}:{first.password}x", 401),
            (f"x{first.name}:{first.password}", 401),
        ):
            assert status == curl(how, "-u", user, f"http://{address}/bytes/100")[0], user


@pytest.mark.share(1)
@pytest.mark.parametrize("choice", ["form", "session-cookie"])
def test_curl_fills_in_the_form_and_keeps_the_cookie(choice: str, tmp_path: Path) -> None:
    with ours(cell_of(choice, 'password-hash = ["bcrypt"]')) as (address, accounts):
        first, jar = next(iter(accounts)), str(tmp_path / "jar")
        page = f"http://{address}/bytes/100"
        assert 302 == curl(page)[0]
        right = ["--data", f"name={first.name}", "--data", f"password={first.password}"]
        assert 403 == curl(*right, f"http://{address}/login")[0], "a form of another site"
        token = token_of(f"http://{address}/login", jar)
        assert 403 == curl(*right, "--data", f"token={token}", f"http://{address}/login")[0], "without its cookie"
        # Both made by a neighbour that may set cookies here.
        own = ["-b", "token=mine", "--data", "token=mine"]
        assert 403 == curl(*right, *own, f"http://{address}/login")[0], "a token of another server"
        login = ["-b", jar, "-c", jar, "--data", f"token={token}", "--data", f"name={first.name}", "--data"]
        assert 403 == curl(*login, "password=wrong", f"http://{address}/login")[0]
        assert 302 == curl("-b", jar, page)[0]
        status, heads = curl(*login, f"password={first.password}", f"http://{address}/login")
        assert 302 == status
        assert {"HttpOnly", "SameSite=Lax"} <= attributes(heads, "ticket")
        assert {"HttpOnly", "SameSite=Strict", "Path=/login"} <= attributes(curl(f"http://{address}/login")[1], "token")
        assert 200 == curl("-b", jar, page)[0]
        status, _ = curl("-b", jar, "-X", "POST", f"http://{address}/sign-out")
        # A sealed ticket is valid until it expires: the server keeps no state that it could delete.
        expected = (200, 302) if choice == "session-cookie" else (405, 200)
        assert expected == (status, curl("-b", jar, page)[0])


def attributes(heads: str, name: str) -> set[str]:
    """Return the attributes of the cookie of this name, which an answer sets."""
    (cookie,) = (line for line in heads.splitlines() if line.lower().startswith(f"set-cookie: {name}="))
    return {part.strip() for part in cookie.split(";")[1:]}


def token_of(form: str, jar: str) -> str:
    """Return the token of a form, whose cookie is in the jar."""
    _, page = curl("-k", "-c", jar, form)
    return page.split("token: ")[1].split()[0]


def test_a_session_s_cookie_is_for_tls_alone_where_there_is_tls(tmp_path: Path) -> None:
    """`Secure`, which a browser would not accept in clear."""
    settings = 'password-hash = ["bcrypt"]'
    clear = cell_of("session-cookie", settings)
    (one,) = plan.make(
        [
            study.read(
                "some",
                STUDY.format(choice="session-cookie", accounts=ACCOUNTS, settings=settings).replace('"clear"', '"tls"'),
                where="some.toml",
            )
        ],
        seed=1,
    ).studies
    for cell, scheme, is_secure in ((clear, "http", False), (one.cells[0], "https", True)):
        with ours(cell) as (address, accounts):
            first = next(iter(accounts))
            jar = str(tmp_path / scheme)
            token = token_of(f"{scheme}://{address}/login", jar)
            form = ["--data", f"name={first.name}&password={first.password}&token={token}"]
            _, heads = curl("-k", "-b", jar, *form, f"{scheme}://{address}/login")
            assert is_secure == ("Secure" in attributes(heads, "ticket"))
            assert is_secure == ("Secure" in attributes(curl("-k", f"{scheme}://{address}/login")[1], "token"))


def test_a_token_is_taken_until_it_is_ended() -> None:
    """Random text, of which the server keeps a hash."""
    with ours(cell_of("opaque-token")) as (address, accounts):
        first, second, *_ = accounts
        bearer = {"Authorization": f"Bearer {first.password}"}
        assert (200, first.name) == asked(address, bearer)
        assert 401 == asked(address, {"Authorization": f"Bearer {first.password[::-1]}"})[0]
        kept = hashlib.sha256(first.password.encode())
        for shown in (kept.hexdigest(), text_of(kept.digest())):
            assert 401 == asked(address, {"Authorization": f"Bearer {shown}"})[0]
        assert 200 == asked(address, bearer, "/sign-out", "POST")[0]
        assert 401 == asked(address, bearer)[0]
        assert (200, second.name) == asked(address, {"Authorization": f"Bearer {second.password}"})


# Reverse direction: our client asks a server of Python's own.


def proved_by(cell: Cell, user_of: Callable[[Accounts], Callable[[str, str, Headers], str | None]]) -> tuple[str, ...]:
    """Return the refusals of our client by a foreign server that otherwise accepted it."""
    with Sandbox() as sandbox, Elsewhere(user_of(accounts_of(sandbox, ACCOUNTS))).up() as server:
        task = workload_of(cell)._task(cell, "verify", 1, server, sandbox)
        record = ask(command(), task, limit_s=PATIENCE_S)
    assert (Outcome.OK, None) == (record.outcome, record.reason)
    assert record.proof is not None
    assert "the user that signed in is the one that the server saw" in record.proof.accepted
    return record.proof.refused


@pytest.mark.parametrize("signature", SIGNATURES)
def test_our_tokens_are_taken_elsewhere(signature: str) -> None:

    def checks(accounts: Accounts) -> Callable[[str, str, Headers], str | None]:
        key = accounts.verification_key(signature).read_bytes()

        def user_of(method: str, path: str, headers: Headers) -> str | None:
            given = headers.get("Authorization", "").removeprefix("Bearer ")
            return user_of_token(key, signature, given) if given else None

        return user_of

    refused = proved_by(cell_of("jwt", f'signature = ["{signature}"]'), checks)
    assert {"an expired token", "a forged signature", "a token for another audience"} <= set(refused)


def test_our_signed_requests_are_taken_elsewhere() -> None:

    def checks(accounts: Accounts) -> Callable[[str, str, Headers], str | None]:
        keys, seen = {one.name: one.password for one in accounts}, set()

        def user_of(method: str, path: str, headers: Headers) -> str | None:
            signature = headers.get("Signature", "")
            if signature in seen:
                return None
            name = user_of_request(keys, path, headers)
            if name is not None:
                seen.add(signature)
            return name

        return user_of

    refused = proved_by(cell_of("hmac"), checks)
    assert {"a request that was sent before", "a request whose path was changed"} <= set(refused)
