"""Signing in, held against other implementations: what ours accepts theirs accept, and the other way round.

Tokens by `cryptography`, signed requests by Python's `hmac`, passwords and cookies by curl.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import secrets
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from conftest import lacking
from tollbar import beds, plan, study, workloads
from tollbar.accounts import Accounts, accounts_of
from tollbar.beds import driver
from tollbar.beds.sandbox import Sandbox
from tollbar.plan import Cell
from tollbar.runner import Outcome, ask
from tollbar.workloads.request import RequestWorkload, command

STUDY = """
question  = "Who asks?"
family    = "web-auth"
providers = ["aws-lc"]
choices   = ["{choice}"]
beds      = ["embedded"]
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
ISSUER, AUDIENCE = "https://issuer.tollbar.test", "https://web.tollbar.test"
COVERED = '("@method" "@authority" "@path" "@query")'

Headers = Mapping[str, str]


def cell_of(choice: str, settings: str = "") -> Cell:
    """The one cell of a study of this choice."""
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
    """The embedded server, and the accounts that it knows."""
    assert cell.bed is not None
    assert not isinstance(cell.bed, beds.remote.Remote)
    with Sandbox() as sandbox:
        request = workload_of(cell).request(cell, beds.here(cell.bed), 1, sandbox)
        with driver.start(sandbox, request) as server:
            yield server.address, accounts_of(sandbox, ACCOUNTS)


def asked(address: str, headers: Headers, path: str = "/bytes/100", method: str = "GET") -> tuple[int, str | None]:
    """The status of an answer, and the user that the server saw."""
    connection = http.client.HTTPConnection(address, timeout=10)
    connection.request(method, path, headers={"X-Tell-User": "yes", **headers})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, answer.getheader("X-User")


# Tokens.


def text_of(some: bytes) -> str:
    return base64.urlsafe_b64encode(some).rstrip(b"=").decode()


def bytes_of(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def claims_of(name: str, **changes: object) -> dict[str, Any]:
    now_s = int(time.time())
    return {"iss": ISSUER, "aud": AUDIENCE, "sub": name, "iat": now_s, "exp": now_s + 600, **changes}


def signed(key: bytes, message: bytes, signature: str) -> bytes:
    if signature == "hs256":
        return hmac.digest(key, message, "sha256")
    private: Any = load_pem_private_key(key, None)
    if signature == "rs256":
        return bytes(private.sign(message, padding.PKCS1v15(), hashes.SHA256()))
    if signature == "eddsa":
        return bytes(private.sign(message))
    r, s = decode_dss_signature(private.sign(message, ec.ECDSA(hashes.SHA256())))
    return r.to_bytes(32, "big") + s.to_bytes(32, "big")


def token(key: bytes, signature: str, claims: Mapping[str, object], algorithm: str | None = None) -> str:
    """A token by this signature, which may call itself otherwise."""
    name = algorithm or ("EdDSA" if signature == "eddsa" else signature.upper())
    parts = [text_of(json.dumps(part).encode()) for part in ({"typ": "JWT", "alg": name}, claims)]
    return ".".join([*parts, text_of(signed(key, ".".join(parts).encode(), signature))])


def user_of_token(key: bytes, signature: str, given: str) -> str | None:
    """Whose token it is, if it is good."""
    head, claims, sealed = given.split(".")
    message, made = f"{head}.{claims}".encode(), bytes_of(sealed)
    if json.loads(bytes_of(head))["alg"] != ("EdDSA" if signature == "eddsa" else signature.upper()):
        return None
    try:
        if signature == "hs256":
            if not hmac.compare_digest(signed(key, message, signature), made):
                return None
        else:
            public: Any = load_pem_public_key(key)
            if signature == "rs256":
                public.verify(made, message, padding.PKCS1v15(), hashes.SHA256())
            elif signature == "eddsa":
                public.verify(made, message)
            else:
                r, s = int.from_bytes(made[:32], "big"), int.from_bytes(made[32:], "big")
                public.verify(encode_dss_signature(r, s), message, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return None
    said = json.loads(bytes_of(claims))
    good = said["iss"] == ISSUER and said["aud"] == AUDIENCE and said["exp"] > time.time()
    return str(said["sub"]) if good else None


@pytest.mark.parametrize("signature", SIGNATURES)
def test_tokens_of_another_issuer_are_taken_and_nothing_else(signature: str) -> None:
    """By each algorithm; one whose key, claims or algorithm are others is refused."""
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


def signature_headers(key: str, name: str, path: str, *, signs: str | None = None, age_s: int = 0) -> Headers:
    """Of a request for a path, of which another one may be what is signed."""
    created_s = int(time.time()) - age_s
    nonce = secrets.token_hex(8)
    parameters = f'{COVERED};created={created_s};keyid="{name}";alg="hmac-sha256";nonce="{nonce}"'
    made = base64.b64encode(hmac.digest(key.encode(), base_of("GET", "localhost", signs or path, parameters), "sha256"))
    return {"Host": "localhost", "Signature-Input": f"sig={parameters}", "Signature": f"sig=:{made.decode()}:"}


def base_of(method: str, authority: str, target: str, parameters: str) -> bytes:
    path, _, query = target.partition("?")
    return (
        f'"@method": {method}\n"@authority": {authority}\n"@path": {path}\n"@query": ?{query}\n'
        f'"@signature-params": {parameters}'
    ).encode()


def test_requests_signed_elsewhere_are_taken_once() -> None:
    """Signed by Python's `hmac`: the right one is taken, and once; of another path, age, user or key none is."""
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
    """The status that curl ends up with, and all heads that it was sent."""
    program = shutil.which("curl")
    if program is None:
        lacking("curl is not installed")
    done = subprocess.run(
        [program, "-s", "-S", "-i", "-o", "-", "-w", "\n%{http_code}", "--max-time", "10", *words],
        capture_output=True,
        timeout=30,
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
    """With the right one, and with no other; nor as a user that there is not."""
    with ours(cell_of(choice, settings)) as (address, accounts):
        first = next(iter(accounts))
        for user, status in (
            (f"{first.name}:{first.password}", 200),
            (f"{first.name}:{first.password}x", 401),
            (f"x{first.name}:{first.password}", 401),
        ):
            assert status == curl(how, "-u", user, f"http://{address}/bytes/100")[0], user


@pytest.mark.parametrize("choice", ["form", "session-cookie"])
def test_curl_fills_in_the_form_and_keeps_the_cookie(choice: str, tmp_path: Path) -> None:
    """The cookie is kept from scripts and from what other sites post; what the server can end is ended."""
    with ours(cell_of(choice, 'password-hash = ["bcrypt"]')) as (address, accounts):
        first, jar = next(iter(accounts)), str(tmp_path / "jar")
        page = f"http://{address}/bytes/100"
        assert 302 == curl(page)[0]
        right = ["--data", f"name={first.name}", "--data", f"password={first.password}"]
        assert 403 == curl(*right, f"http://{address}/login")[0], "a form of another site"
        token = token_of(f"http://{address}/login", jar)
        assert 403 == curl(*right, "--data", f"token={token}", f"http://{address}/login")[0], "without its cookie"
        # Both made up by a neighbour that may set cookies here.
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
        # A sealed ticket is good until it runs out: the server keeps nothing that it could forget.
        expected = (200, 302) if choice == "session-cookie" else (405, 200)
        assert expected == (status, curl("-b", jar, page)[0])


def attributes(heads: str, name: str) -> set[str]:
    """What a browser is told of the cookie of this name, which an answer sets."""
    (cookie,) = (line for line in heads.splitlines() if line.lower().startswith(f"set-cookie: {name}="))
    return {part.strip() for part in cookie.split(";")[1:]}


def token_of(form: str, jar: str) -> str:
    """The token that a form comes with; its cookie is in the jar."""
    _, page = curl("-k", "-c", jar, form)
    return page.split("token: ")[1].split()[0]


def test_a_session_s_cookie_is_for_tls_alone_where_there_is_tls(tmp_path: Path) -> None:
    """`Secure`, which a browser would not take in clear."""
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


# The other way round: our client asks a server of Python's own.


@dataclass
class Elsewhere:
    """A server that knows its users by a function of a request's method, path and headers."""

    user_of: Callable[[str, str, Headers], str | None]
    address: str = ""
    components: Mapping[str, int] = field(default_factory=dict)
    work_dirs: Mapping[str, Path] = field(default_factory=dict)

    def fault(self, within_s: float = 0.0) -> str | None:
        return None

    def complaint(self) -> str | None:
        return None

    @contextmanager
    def up(self) -> Iterator[Elsewhere]:
        """While it answers."""
        user_of = self.user_of

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                user = user_of("GET", self.path, dict(self.headers))
                there = self.path.partition("?")[0] == "/bytes/100"
                status = 404 if not there else 401 if user is None else 200
                body = b"x" * 100 if status == 200 else b""
                self.send_response(status)
                if user is not None:
                    self.send_header("X-User", user)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - as in the class
                """Nothing is said of a request."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.address = f"127.0.0.1:{server.server_address[1]}"
        try:
            yield self
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


def proved_by(cell: Cell, user_of: Callable[[Accounts], Callable[[str, str, Headers], str | None]]) -> tuple[str, ...]:
    """What a server elsewhere refused of our client, which it otherwise let in."""
    with Sandbox() as sandbox, Elsewhere(user_of(accounts_of(sandbox, ACCOUNTS))).up() as server:
        task = workload_of(cell)._task(cell, "verify", 1, server, sandbox)
        record = ask(command(), task, limit_s=60)
    assert (Outcome.OK, None) == (record.outcome, record.reason)
    assert record.proof is not None
    assert "the user that signed in is the one that the server saw" in record.proof.accepted
    return record.proof.refused


@pytest.mark.parametrize("signature", SIGNATURES)
def test_our_tokens_are_taken_elsewhere(signature: str) -> None:
    """Verified by `cryptography`, which refuses what ours should refuse."""

    def checks(accounts: Accounts) -> Callable[[str, str, Headers], str | None]:
        key = accounts.verification_key(signature).read_bytes()

        def user_of(method: str, path: str, headers: Headers) -> str | None:
            given = headers.get("Authorization", "").removeprefix("Bearer ")
            return user_of_token(key, signature, given) if given else None

        return user_of

    refused = proved_by(cell_of("jwt", f'signature = ["{signature}"]'), checks)
    assert {"an expired token", "a forged signature", "a token for another audience"} <= set(refused)


def test_our_signed_requests_are_taken_elsewhere() -> None:
    """Verified by Python's `hmac` over the text that RFC 9421 has signed."""

    def checks(accounts: Accounts) -> Callable[[str, str, Headers], str | None]:
        keys, seen = {one.name: one.password for one in accounts}, set()

        def user_of(method: str, path: str, headers: Headers) -> str | None:
            parameters = headers.get("Signature-Input", "").removeprefix("sig=")
            given = headers.get("Signature", "")
            if not parameters or given in seen:
                return None
            values = dict(part.split("=", 1) for part in parameters.removeprefix(COVERED).split(";") if part)
            name = values["keyid"].strip('"')
            base = base_of(method, headers["Host"], path, parameters)
            right = base64.b64encode(hmac.digest(keys.get(name, "no key").encode(), base, "sha256")).decode()
            if given != f"sig=:{right}:" or abs(int(values["created"]) - time.time()) > 300:
                return None
            seen.add(given)
            return name if name in keys else None

        return user_of

    refused = proved_by(cell_of("hmac"), checks)
    assert {"a request that was sent before", "a request whose path was changed"} <= set(refused)
