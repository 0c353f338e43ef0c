"""Independent implementations of sign-in: tokens by `cryptography`, signed requests by `hmac`, Python's own server."""

from __future__ import annotations

import base64
import hmac
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

ISSUER, AUDIENCE = "https://issuer.tollbar.test", "https://web.tollbar.test"
COVERED = '("@method" "@authority" "@path" "@query")'

Headers = Mapping[str, str]


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
    """Return a token with this signature, whose header may name another algorithm."""
    name = algorithm or ("EdDSA" if signature == "eddsa" else signature.upper())
    parts = [text_of(json.dumps(part).encode()) for part in ({"typ": "JWT", "alg": name}, claims)]
    return ".".join([*parts, text_of(signed(key, ".".join(parts).encode(), signature))])


def user_of_token(key: bytes, signature: str, given: str) -> str | None:
    """Return the user of a valid token, or None."""
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


# Signed requests (RFC 9421).


def signature_headers(key: str, name: str, path: str, *, signs: str | None = None, age_s: int = 0) -> Headers:
    """Return the signature headers of a request for a path; `signs` is the signed path if it differs."""
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


def user_of_request(keys: Mapping[str, str], path: str, headers: Headers) -> str | None:
    """Return who signed a request, if its signature is valid and at most five minutes old."""
    parameters = headers.get("Signature-Input", "").removeprefix("sig=")
    if not parameters:
        return None
    values = dict(part.split("=", 1) for part in parameters.removeprefix(COVERED).split(";") if part)
    name = values["keyid"].strip('"')
    base = base_of("GET", headers["Host"], path, parameters)
    right = base64.b64encode(hmac.digest(keys.get(name, "no key").encode(), base, "sha256")).decode()
    good = headers.get("Signature", "") == f"sig=:{right}:" and abs(int(values["created"]) - time.time()) <= 300
    return name if good and name in keys else None


# Server.


@dataclass
class Elsewhere:
    """Server that finds its user by a function of a request's method, path and headers."""

    user_of: Callable[[str, str, Headers], str | None]
    address: str = ""
    components: Mapping[str, int] = field(default_factory=dict)
    work_dirs: Mapping[str, Path] = field(default_factory=dict)
    nodes: Mapping[str, Any] = field(default_factory=dict)
    given: Mapping[str, Path] = field(default_factory=dict)

    def client_account(self, like: str | None = None) -> None:
        return None

    def fault(self, within_s: float = 0.0) -> str | None:
        return None

    def complaint(self) -> str | None:
        return None

    @contextmanager
    def up(self) -> Iterator[Elsewhere]:
        """Yield while the server answers."""
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
                """Suppress the log of requests."""

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
