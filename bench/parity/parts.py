"""Counted parts: per family the studies whose cells are rows of its table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

RUNNER = """
question  = "What does each choice do?"
family    = "{family}"
providers = ["{provider}"]
choices   = [{choices}]
servers      = [{servers}]
vary      = {{ {vary} }}
"""
SERVED = """
question  = "What does each choice do?"
family    = "{family}"
providers = ["{provider}"]
choices   = [{choices}]
servers      = ["{server}"]
load      = {{ users = [1], request = {{ get = "/bytes/{{bytes}}" }} }}
[vary]
bytes     = ["4 KiB"]
{settings}
"""


def runner(
    family: str, vary: str, *, choices: Sequence[str] = ("*",), provider: str = "libcrypto", servers: Sequence[str] = ()
) -> str:
    """Return a study of a runner, or of one that asks a database."""
    return RUNNER.format(
        family=family, provider=provider, choices=_listed(choices), servers=_listed(servers), vary=vary
    ).replace("servers      = []\n", "")


def served(family: str, server: str, provider: str, choices: Sequence[str], settings: str) -> str:
    """Return a study through a server."""
    return SERVED.format(family=family, server=server, provider=provider, choices=_listed(choices), settings=settings)


def _listed(words: Sequence[str]) -> str:
    return ", ".join(f'"{word}"' for word in words)


# psycopg, which Tollbar needs, has a newer libcrypto than the system may have.
NEWER = "libcrypto:psycopg"
# A row to a commit, so that each insert shows all calls of a commit; and few rows, so that a search of all is short.
STORED = 'op = ["insert", "read", "find"], rows-per-commit = [1], rows = [20]'
LARGE = """
[[leave-out]]
where   = { choice = "argon2id-rfc9106-2g" }
because = "it takes two gigabytes, and does otherwise what `argon2id-rfc9106-64m` does"
"""
# A hash that is quick everywhere, because costs do not matter here; Apache supports it only without a salt.
ACCOUNTS = """
op               = ["request", "sign-on"]
accounts         = [1000]
password-hash    = ["sha-1"]
transport        = ["clear"]
"""
SIGN_IN = f"""{ACCOUNTS}
signature        = ["hs256", "rs256", "es256", "eddsa"]
digest-algorithm = ["sha-256", "md5"]
"""
MUTUAL = """
op        = ["request"]
accounts  = [1000]
transport = ["tls"]
"""
WITHOUT_SIGN_ON = """
[[leave-out]]
where   = { choice = ["jwt", "opaque-token", "api-key", "hmac", "client-certificate"], op = "sign-on" }
because = "it proves itself with each request: there is no sign-on that later requests build on"
"""
STORES = f'store = ["sql", "file"]\n{WITHOUT_SIGN_ON}'
BY_ANOTHER = f"""
store = ["file"]
runs  = ["in-server", "auth-request"]
{WITHOUT_SIGN_ON}"""
CONNECTED = """
op           = ["connect"]
certificate  = [{certificates}]
key-exchange = [{key_exchanges}]
"""
# With nothing and with each part alone: the calls of a part show compared with the page without it.
WHOLE = """
op        = ["read", "insert"]
sign-in   = ["anonymous", "form"]
transport = ["plaintext"]
storage   = ["plaintext", "aes-256-gcm"]
sign-in-accounts = [1000]
sign-in-password-hash = ["sha-1"]
storage-rows = [20]
"""
CERTIFICATES = (
    "rsa-1024",
    "rsa-2048",
    "rsa-3072",
    "rsa-4096",
    "ecdsa-p256",
    "ecdsa-p384",
    "ed25519",
    "ml-dsa-65",
    "ml-dsa-87",
    "rsa-2048+ecdsa-p256",
)
KEY_EXCHANGES = ("rsa", "dhe", "ecdhe-p256", "x25519", "x25519mlkem768", "mlkem768", "mlkem1024")
CIPHERS = ("aes-128-gcm", "aes-256-gcm", "aes-128-cbc", "chacha20-poly1305")
MAC_ORDERS = ("encrypt-then-mac", "mac-then-encrypt")
TLS = ("tls-1.2", "tls-1.3")


def _tls(provider: str) -> tuple[str, ...]:
    """Return studies of one setting after another, all others at one value, so that each setting's calls show."""
    certificates = CONNECTED.format(certificates=_listed(CERTIFICATES), key_exchanges='"x25519"')
    groups = CONNECTED.format(certificates='"rsa-2048"', key_exchanges=_listed(KEY_EXCHANGES))
    resumed = CONNECTED.format(certificates='"ecdsa-p256"', key_exchanges='"x25519"')
    mutual = resumed + 'client-certificate = ["none", "ecdsa-p256", "rsa-2048"]'
    resumed += 'resumption = ["none", "session-id", "ticket"]'
    records = f'op = ["request"]\ncipher = [{_listed(CIPHERS)}]\nmac-order = [{_listed(MAC_ORDERS)}]'
    return (
        served("tls", "embedded", provider, ("plaintext",), 'op = ["connect", "request"]'),
        *(served("tls", "embedded", provider, TLS, settings) for settings in (certificates, groups, mutual, records)),
        served("tls", "embedded", provider, ("tls-1.2",), resumed),
    )


def _requests(server: str) -> tuple[str, ...]:
    """Return studies of requests in clear and under TLS on a server of its own."""
    under_tls = 'op = ["request"]\ncertificate = ["ecdsa-p256"]\nkey-exchange = ["x25519"]'
    return (
        served("tls", server, "libcrypto", ("plaintext",), 'op = ["request"]'),
        served("tls", server, "libcrypto", TLS, under_tls),
    )


# By family: its choices, if one of these studies supports them. Choices that none supports are listed with the reason.
PARTS: Mapping[str, Sequence[str]] = {
    "digest": (
        runner("digest", 'op = ["hash"]'),
        runner("digest", 'op = ["hash"]', choices=["blake3"], provider="rustcrypto"),
    ),
    "mac": (runner("mac", 'op = ["authenticate"]'),),
    "cipher": (runner("cipher", 'op = ["encrypt", "decrypt"]'),),
    "signature": (
        runner("signature", 'op = ["sign", "verify"]'),
        runner("signature", 'op = ["sign", "verify"]', choices=["ml-dsa-*", "slh-dsa-*"], provider=NEWER),
    ),
    "key-exchange": (
        runner("key-exchange", 'op = ["client", "server"]'),
        runner("key-exchange", 'op = ["client", "server"]', choices=["ml-kem-*", "x25519mlkem768"], provider=NEWER),
    ),
    "password-hash": (
        runner("password-hash", 'op = ["hash"]') + LARGE,
        runner("password-hash", 'op = ["hash"]', provider="rustcrypto") + LARGE,
    ),
    "rsa-api": (runner("rsa-api", 'op = ["sign", "verify"]'),),
    "spin": (runner("spin", 'op = ["spin"]', provider="spin"),),
    "tls": (*_tls("libcrypto"), *_tls("aws-lc"), *_requests("nginx"), *_requests("httpd")),
    "storage": (
        runner("storage", STORED, choices=["plaintext", "*"], provider="sqlite"),
        runner("storage", STORED, choices=["plaintext", "sqlcipher"], provider="sqlcipher"),
        *(
            runner(
                "storage",
                STORED + ', loop = ["client"]',
                choices=["plaintext", "*"],
                provider="aws-lc",
                servers=[server],
            )
            for server in ("postgresql", "mariadb")
        ),
    ),
    "stack": (served("stack", "embedded", "aws-lc", ("bare", "page"), WHOLE),),
    "web-auth": (
        served("web-auth", "embedded", "aws-lc", ("anonymous", "*"), SIGN_IN + STORES),
        served("web-auth", "embedded", "aws-lc", ("client-certificate",), MUTUAL),
        served("web-auth", "nginx", "libcrypto", ("anonymous", "*"), ACCOUNTS + BY_ANOTHER),
        served("web-auth", "httpd", "libcrypto", ("anonymous", "*"), SIGN_IN.replace('"sha-256", ', "") + STORES),
    ),
}

# Families without a table, and why.
UNCOUNTED: Mapping[str, str] = {
    "database-sign-on": "each operation has PostgreSQL start and end a process, whose own calls are most of all",
    "defaults": "what it takes is counted as `password-hash` and `signature`",
    "tls-client": "a context and a connection are two calls each, and `first` is done by another process",
    "tls-defaults": "what it negotiates is counted as `tls`",
}
