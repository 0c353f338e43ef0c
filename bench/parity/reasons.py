"""Differences between the calls of a family's choices, with reasons: by family, by call, and by choice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from bench.parity.counting import Row

# Smaller differences are occasional calls: a full page, the end of a batch.
MORE = 0.5
# Waits and receives of a server are counted without disturbing it, and must be equal for all its requests.
MORE_TURNS = 0.05


@dataclass(frozen=True, slots=True)
class Kind:
    """Choices of a family with the same steps, which are only compared with each other."""

    name: str
    choices: str
    """Patterns, with spaces between them."""
    does: str
    """Distinguishing work of the kind."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Reason why some choices make more of a call than the one of their kind that makes the fewest."""

    family: str
    """Pattern of the family."""
    what: str
    """Patterns of the call, with spaces between them; `_` means a space in it."""
    choices: str
    """Patterns of the explained choices, with spaces between them: a choice, then its settings after `+`."""
    why: str

    def explains(self, family: str, difference: Difference) -> bool:
        """Return whether the reason explains this difference."""
        what, label = difference.what.replace(" ", "_"), difference.row.label.replace(" ", "+")
        label = f"{label}+op={difference.row.operation}+by={difference.row.by.partition(',')[0]}"
        return fnmatchcase(family, self.family) and _fits(what, self.what) and _fits(label, self.choices)


@dataclass(frozen=True, slots=True)
class Difference:
    """Excess of a row's calls over the row of its kind with the fewest."""

    row: Row
    what: str
    count: float
    least: float

    def __str__(self) -> str:
        row = self.row
        return f"{row.label} ({row.operation}, {row.by}): {self.what} {self.count:g}, elsewhere {self.least:g}"


# Calls that are not compared, because their number varies by itself.
VARYING: Sequence[Reason] = (
    Reason(
        "*",
        "getpid *:_getpid",
        "*",
        "a library looks whether the process has forked, each time it draws random numbers",
    ),
    Reason("*", "futex *:_futex", "*", "threads wait for each other as it happens"),
    Reason(
        "storage",
        "database:_kill database:_io_uring_enter",
        "*",
        "a commit wakes the server's writers, which may be awake, and do several at once",
    ),
    Reason(
        "storage",
        "database:_waits database:_receives",
        "pgp-*+op=find+*",
        "a search takes longer than the scheduler's slice, and chance decides how often the client goes first",
    ),
    Reason("web-auth", "pselect6 times wait4", "*+by=httpd", "Apache's parent looks after its children once a second"),
    Reason("web-auth", "directory:_*", "*", "a directory has work of its own, which goes on meanwhile"),
    Reason(
        "tls",
        "SSL_read SSL_get_error SSL_do_handshake ERR_clear_error",
        "*+op=connect+*",
        "strace stops the server, and the client's next message is there sooner; `waits` and `receives` are counted "
        "without it",
    ),
)

KINDS: Mapping[str, Sequence[Kind]] = {
    "key-exchange": (
        Kind("finite fields", "ffdhe*", "a key pair of a named group, and a secret from the other side's public key"),
        Kind("curves", "ecdh-* x25519 x448", "a key pair on a curve, and a secret from the other side's public key"),
        Kind("RSA", "rsa-*", "no key pair of its own: the client encrypts a secret, and the server decrypts it"),
        Kind("ML-KEM", "ml-kem-*", "the client makes a key pair and decapsulates, the server encapsulates"),
        Kind("hybrid", "x25519mlkem768", "as ML-KEM, for both halves in one call of the library"),
    ),
    "rsa-api": (
        Kind("key kept", "key-cached key-pooled", "the key is there, and one signature or check is made with it"),
        Kind("key made anew", "key-from-*", "the key is made for each call, and freed after it"),
    ),
    "storage": (
        Kind(
            "symmetric, or in the client",
            "plaintext table-encryption sqlcipher aes-* blind-index envelope-* rsa-oaep encrypt-*",
            "the server answers within the scheduler's slice (3 ms)",
        ),
        Kind(
            "OpenPGP in the server",
            "pgp-*",
            "an answer takes the server up to some milliseconds: then the client goes first, and the server is spared "
            "one wait and one receive, 1 µs",
        ),
    ),
    "stack": (
        Kind("for everyone", "bare", "a page, and its row as it is"),
        Kind("protected", "page", "a page for its users, and its row as the storage has it"),
    ),
    "tls": (
        Kind("in clear", "plaintext", "no handshake, and no records"),
        Kind("TLS 1.2", "tls-1.2", "two flights of the server in a full handshake, one in a resumed one"),
        Kind("TLS 1.3", "tls-1.3", "one flight of the server, and tickets only where they are asked for"),
    ),
}  # fmt: skip

REASONS: Sequence[Reason] = (
    Reason("cipher", "RAND_bytes", "*-cbc+*", "an IV of CBC must not be foreseen, and is drawn for each message"),
    Reason(
        "cipher", "EVP_CIPHER_CTX_ctrl", "*-gcm+* chacha20-poly1305+*", "takes the tag, or sets the one to be checked"
    ),
    Reason(
        "key-exchange",
        "EVP_PKEY_CTX_new_id EVP_PKEY_CTX_set_ec_paramgen_curve_nid OBJ_sn2nid",
        "ecdh-*",
        "one algorithm for several curves: which is said by its number",
    ),
    Reason("key-exchange", "EVP_PKEY_CTX_new_from_name", "x25519+* x448+*", "the curve is an algorithm of its own"),
    Reason("rsa-api", "BIO_* ERR_clear_error PEM_*", "key-from-pem*", "PEM is read through a buffer of the library's"),
    Reason("rsa-api", "d2i_*", "key-from-der*", "DER is read by one function"),
    Reason(
        "rsa-api", "EVP_PKEY_CTX_* EVP_PKEY_fromdata*", "key-from-parameters*", "the key is put together by a context"
    ),
    Reason("password-hash", "EVP_Digest", "salted-*", "one call of a plain hash"),
    Reason("password-hash", "PKCS5_PBKDF2_HMAC", "pbkdf2-*", "the library's function for PBKDF2"),
    Reason("password-hash", "EVP_PBE_scrypt", "scrypt*", "the library's function for scrypt"),
    Reason(
        "password-hash",
        "sched_yield",
        "argon2id-rfc9106-64m+*",
        "its four lanes are filled by threads, of which one that has no work gives way",
    ),
    Reason(
        "tls",
        "bytes_sent",
        "*+op=connect+*",
        "certificates, signatures and key shares are as long as their algorithms have them; who resumes is sent none",
    ),
    Reason(
        "tls",
        "bytes_received",
        "*+op=connect+*",
        "so are a client's key share and its certificate; and who resumes shows a ticket or a session's number",
    ),
    Reason(
        "tls",
        "bytes_*",
        "tls-1.2+*cipher=aes-*+op=request+*",
        "in a record of TLS 1.2, AES-GCM has a part of its nonce, and CBC an IV, a MAC and padding",
    ),
    Reason(
        "tls",
        "write sendto waits receives",
        "tls-1.2+*resumption=none*",
        "a full handshake has two flights of the server",
    ),
    Reason(
        "tls",
        "receives",
        "tls-*+op=request+by=nginx",
        "nginx reads under TLS until nothing is left: one more, of half a microsecond",
    ),
    Reason(
        "tls",
        "waits receives",
        "tls-1.3+*+op=connect+*",
        "OpenSSL looks for the client's next message before it waits, and finds it where the client went first. "
        "That happens after the scheduler's slice (3 ms), or where another program had the core, and more often the "
        "longer the turn. Then it is spared one try and one wait of half a microsecond each. A client by libssl "
        "(`rsa-1024`) sends the end of its handshake and its request apart, which may cost one more",
    ),
    Reason(
        "storage",
        "pwrite64",
        "plaintext+op=insert+* blind-index+op=insert+* rsa-oaep+op=insert+*",
        "what can be looked up is written into an index too; and longer rows fill more pages",
    ),
    Reason(
        "storage",
        "SQL_statement SQL_step fcntl statements_sent database:_lseek database:_sendto sendto recvfrom database:_waits "
        "database:_receives",
        "aes-256-gcm+op=find+* envelope-*+op=find+* rsa-oaep+op=find+*",
        "what is encrypted with random numbers has no index: all card numbers are read and opened, and then the row",
    ),
    Reason(
        "storage",
        "bytes_*",
        "pgp-*-encrypt+* encrypt-iv+* encrypt-iv-hmac+* aes-encrypt+*",
        "the server, which encrypts, is sent the key with each statement; and what it decrypts comes back as text",
    ),
    Reason(
        "storage",
        "bytes_*",
        "aes-256-gcm+* blind-index+* envelope-*+* rsa-oaep+*",
        "ciphertexts are longer than their values; and where there is no index, those of all rows are sent",
    ),
    Reason(
        "web-auth",
        "SQL_statement fcntl pwrite64 SHA-256",
        "session-cookie+*+op=sign-on+*",
        "the password is looked up, the session's hash is written and then looked up",
    ),
    Reason(
        "web-auth",
        "SQL_statement fcntl",
        "*+store=sql+*+by=embedded session-cookie+* opaque-token+* api-key+* hmac+*",
        "what stands for the user is looked up in SQL, and SQLite locks what it reads; a file was read at the start, "
        "and a ticket or a JWT has all in itself",
    ),
    Reason(
        "web-auth",
        "SHA-256",
        "session-cookie+* opaque-token+* api-key+*",
        "of what the client shows, the table has the hash",
    ),
    Reason(
        "web-auth",
        "password_hash",
        "basic+* form+*+op=sign-on+* session-cookie+*+op=sign-on+*",
        "the password is there, and is checked: with each request, or when the form is filled in",
    ),
    Reason("web-auth", "digest_hash", "digest+*", "two hashes make the answer: of what is asked, and of all"),
    Reason("web-auth", "ticket_opened ticket_sealed", "form+*", "the cookie is a sealed ticket"),
    Reason("web-auth", "signature_verified", "jwt+*", "a token is signed, whatever with"),
    Reason(
        "web-auth",
        "HMAC",
        "hmac+* form+*+op=sign-on+* session-cookie+*+op=sign-on+*",
        "the request is signed with the user's key; or a form comes with a token, which its server signs and checks",
    ),
    Reason(
        "storage",
        "database:_waits database:_receives",
        "pgp-sym-encrypt+op=read+*",
        "an answer is shorter than the scheduler's slice, which one with a private key is not",
    ),
    Reason("web-auth", "bytes_*", "client-certificate+*", "in TLS: a record has a head and a tag"),
    Reason("web-auth", "bytes_received", "*", "what proves the user is in the request, as long as it is"),
    Reason(
        "web-auth",
        "bytes_sent waits receives sendto writev newfstatat epoll_ctl",
        "basic+*+op=sign-on+* digest+*+op=sign-on+* form+*+op=sign-on+* "
        "session-cookie+*+op=sign-on+* kerberos+*+op=sign-on+*",
        "several requests: the first is refused with a challenge, or shown a form, which is filled in and leads back",
    ),
    Reason(
        "web-auth",
        "bytes_sent",
        "digest+*+op=request+by=httpd",
        "the server proves itself too, in `Authentication-Info`",
    ),
    Reason("web-auth", "bytes_sent", "kerberos+*+op=request+*", "the server proves itself too, by a token"),
    Reason(
        "web-auth",
        "bytes_sent",
        "form+*+op=request+by=httpd",
        "what is behind a session may be in no cache, which the answer says",
    ),
    Reason(
        "web-auth",
        "bytes_sent",
        "ntlm+*+op=request+*",
        "the answer says that the connection stands for the user",
    ),
    Reason(
        "web-auth",
        "authenticator:_* waits receives writev getsockopt ioctl sendto connect close setsockopt socket epoll_ctl",
        "*+runs=auth-request+*",
        "nginx asks a second server for each request, which checks the password or the ticket",
    ),
    Reason(
        "web-auth",
        "setsockopt",
        "*+op=sign-on+by=nginx",
        "nginx turns the delay of small packets off on a connection that it keeps for a second request",
    ),
    Reason(
        "web-auth",
        "close openat newfstatat receives pread64",
        "*+store=file+*+by=nginx *+store=file+*+by=httpd",
        "nginx and Apache open the file of passwords for each request, and read up to the user's line",
    ),
    Reason(
        "web-auth",
        "waits receives sendto database:_*",
        "*+store=sql+*+by=httpd",
        "Apache asks PostgreSQL, a process of its own, which answers",
    ),
    Reason(
        "web-auth",
        "access close fcntl getrandom getdents64 lseek mprotect newfstatat openat receives write unlink*",
        "kerberos+*+by=httpd",
        "a ticket is opened with a key from a file, and remembered in another one, so that it is taken once",
    ),
    Reason(
        "web-auth",
        "bytes_sent close connect fcntl getuid newfstatat waits receives socket uname write writev epoll_ctl",
        "ntlm+*+op=sign-on+*",
        "a challenge and its answer, which winbind, a process of its own, has the directory check",
    ),
    Reason(
        "web-auth",
        "getppid getrandom gettid getuid",
        "form+*+op=sign-on+by=httpd",
        "Apache seals name and password into the cookie with a key that it derives with a new salt",
    ),
    Reason(
        "web-auth",
        "waits",
        "*+op=request+by=httpd",
        "Apache takes milliseconds to open a form's session, longer than the slice: the client goes first, and "
        "Apache is spared a wait that all others have",
    ),
    Reason(
        "stack",
        "bytes_received ticket_opened",
        "page+sign-in=form*",
        "the user's cookie goes with each request, and is opened",
    ),
    Reason("stack", "pwrite64", "page+*op=insert*", "SQLite writes a row's pages, and one more where one is full"),
)


def kind_of(family: str, row: Row) -> str:
    """Return the name of a row's kind; empty if its family has a single kind."""
    return next((kind.name for kind in KINDS.get(family, ()) if _fits(row.choice, kind.choices)), "")


def differences(family: str, rows: Iterable[Row]) -> Iterator[Difference]:
    """Yield excesses of rows over another one of the same kind, operation, and library or server.

    The null choice `none` is left out.
    """
    of_kind: dict[tuple[str, str, str], list[tuple[Row, Mapping[str, float]]]] = {}
    in_turn: dict[tuple[str, str, str], list[tuple[Row, Mapping[str, float]]]] = {}
    for row in rows:
        if row.choice != "none":
            at = (row.operation, row.by, kind_of(family, row))
            of_kind.setdefault(at, []).append((row, row.does))
            # A request is one turn of its server, in clear and under TLS. A handshake has turns of its own.
            at = (row.operation, row.by, "") if row.operation == "request" else at
            in_turn.setdefault(at, []).append((row, row.taken))
    for groups, most in ((of_kind, MORE), (in_turn, MORE_TURNS)):
        for group in groups.values():
            yield from (one for one in _more(group, most) if not varies(family, one))


def _more(group: Sequence[tuple[Row, Mapping[str, float]]], most: float) -> Iterator[Difference]:
    """Yield each excess of a call, above `most`, over the row with the fewest."""
    for what in dict.fromkeys(name for _, counts in group for name in counts):
        least = min(counts.get(what, 0.0) for _, counts in group)
        for row, counts in group:
            # Counts have two digits.
            if round(counts.get(what, 0.0) - least, 2) > most:
                yield Difference(row, what, counts[what], least)


def reason(family: str, difference: Difference) -> Reason | None:
    """Return the reason for a difference, or None if it is unknown."""
    return next((one for one in REASONS if one.explains(family, difference)), None)


def unused(parts: Mapping[str, Iterable[Row]]) -> list[Reason]:
    """Return reasons that explain nothing any more."""
    used = {reason(family, difference) for family, rows in parts.items() for difference in differences(family, rows)}
    return [one for one in REASONS if one not in used]


def varies(family: str, difference: Difference) -> bool:
    """Return whether the number of calls varies independently of the row's choice."""
    return any(one.explains(family, difference) for one in VARYING)


def _fits(text: str, patterns: str) -> bool:
    return any(fnmatchcase(text, pattern) for pattern in patterns.split())
