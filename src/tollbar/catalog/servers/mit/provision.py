"""Make a Kerberos realm and an LDAP directory of the same accounts in the current folder.

provision.py ACCOUNTS KDB5_UTIL KADMIN_LOCAL SLAPADD

Secrets are made here and written to files that only their owner can read; none is an argument, or printed. `kerberos/`
is the KDC's database, `ldap/` slapd's; `accounts.tsv` has names, passwords and numbers of groups; `web1.keytab` to
`web5.keytab` are the web server's keys, and `bind.password` is that of the account it searches with.
"""

from __future__ import annotations

import base64
import ctypes
import hashlib
import hmac
import math
import os
import secrets
import struct
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

REALM = "TOLLBAR.TEST"
SUFFIX = "dc=tollbar,dc=test"
ACCOUNTS_DN = f"ou=accounts,{SUFFIX}"
BIND_DN = f"cn=svcweb,{SUFFIX}"
GROUPS = 700
# Upper index of accounts, and their number of groups; all others have none. A few have a ticket of 7 KB.
MEMBERS = ((250, 100), (500, 50), (510, 700))
# Options of kadmin for each service: a machine's, an account's, one trusted for delegation, one with RC4 only, and a
# machine's that is trusted for delegation.
SERVICES = {
    "web1": "",
    "web2": "",
    "web3": "+ok_as_delegate ",
    "web4": "-e arcfour-hmac:normal ",
    "web5": "+ok_as_delegate ",
}
# Principal that is copied for all accounts, except names and keys.
TEMPLATE = "template"

AES_256 = 18
# RFC 3962.
PBKDF2_ROUNDS = 4096
# GnuTLS's numbers of algorithms.
GNUTLS_SHA_1, GNUTLS_AES_256_CBC = 3, 5
# slapd is linked with GnuTLS, whose PBKDF2 takes half the time of OpenSSL 3.0's, and Python itself has no AES.
gnutls = ctypes.CDLL("libgnutls.so.30")


class Datum(ctypes.Structure):
    """Byte string of GnuTLS."""

    _fields_ = (("data", ctypes.c_char_p), ("size", ctypes.c_uint))

    def __init__(self, data: bytes) -> None:
        super().__init__(data, len(data))


def main(count: int, kdb5_util: str, kadmin: str, slapadd: str) -> None:
    """Make the realm, the directory and the list of accounts."""
    os.umask(0o077)
    secret = secrets.token_bytes(32)
    passwords = {name: password_of(name, secret) for name in (f"u{index:05d}" for index in range(count))}
    make_directory(passwords, slapadd)
    make_realm(passwords, kdb5_util, kadmin)
    lines = [f"{name}\t{password}\t{groups_of(index)}\n" for index, (name, password) in enumerate(passwords.items())]
    Path("accounts.tsv").write_text("".join(lines))


def password_of(name: str, secret: bytes) -> str:
    """Return an account's password, derived from one random secret."""
    return base64.urlsafe_b64encode(hmac.digest(secret, name.encode(), "sha256")[:18]).decode()


def groups_of(index: int) -> int:
    """Return the number of this account's groups."""
    return next((groups for below, groups in MEMBERS if index < below), 0)


def make_directory(passwords: dict[str, str], slapadd: str) -> None:
    """Load the accounts, their groups, and the account for searches."""
    bind_password = secrets.token_urlsafe(24)
    Path("bind.password").write_text(bind_password)
    Path("ldap").mkdir()
    entries = [
        f"dn: {SUFFIX}\nobjectClass: dcObject\nobjectClass: organization\no: Tollbar",
        f"dn: {ACCOUNTS_DN}\nobjectClass: organizationalUnit",
        f"dn: {BIND_DN}\nobjectClass: organizationalRole\nobjectClass: simpleSecurityObject\n"
        f"userPassword: {ssha(bind_password)}",
        *(
            f"dn: uid={name},{ACCOUNTS_DN}\nobjectClass: inetOrgPerson\ncn: {name}\nsn: {name}\n"
            f"userPassword: {ssha(password)}"
            for name, password in passwords.items()
        ),
    ]
    memberships = [(name, groups_of(index)) for index, name in enumerate(passwords)][: MEMBERS[-1][0]]
    for group in range(GROUPS):
        of_group = [name for name, groups in memberships if group < groups]
        members = "".join(f"\nmember: uid={name},{ACCOUNTS_DN}" for name in of_group)
        # With few accounts a group may have no members, and such a group is not allowed.
        entries += [f"dn: cn=g{group:03d},{ACCOUNTS_DN}\nobjectClass: groupOfNames{members}"] if members else []
    run([slapadd, "-f", "slapd.conf", "-q"], "\n\n".join(entries) + "\n")


def ssha(password: str) -> str:
    """Return slapd's default stored form: SHA-1 with salt. The passwords are random, and cannot be guessed."""
    salt = secrets.token_bytes(8)
    # SHA-1, because the measured server uses it.
    digest = hashlib.sha1(password.encode() + salt).digest()
    return "{SSHA}" + base64.b64encode(digest + salt).decode()


def make_realm(passwords: dict[str, str], kdb5_util: str, kadmin: str) -> None:
    """Make the realm with its services, and load the accounts.

    kadmin takes 6 ms for an account, so it makes one, and the others are loaded from a dump.
    """
    Path("kerberos").mkdir()
    # kadmin needs a principal if the account has no name.
    as_admin = [kadmin, "-p", "tollbar/admin"]
    master = secrets.token_urlsafe(24)
    run([kdb5_util, "create", "-s"], f"{master}\n{master}\n")
    commands = [f"addprinc -randkey {TEMPLATE}"]
    for host, options in SERVICES.items():
        service = f"HTTP/{host}.{REALM.lower()}"
        commands += [f"addprinc -randkey {options}{service}", f"ktadd -norandkey -k {host}.keytab {service}"]
    run(as_admin, "\n".join(commands) + "\n")
    run([kdb5_util, "dump", "kerberos/dump"])
    header, *lines = Path("kerberos/dump").read_text().splitlines()
    (template,) = (line.split("\t") for line in lines if f"\t{TEMPLATE}@{REALM}\t" in line)
    Path("kerberos/dump").write_text("\n".join([header, *entries_like(template, passwords)]) + "\n")
    run([kdb5_util, "load", "-update", "kerberos/dump"])
    run(as_admin, f"delprinc -force {TEMPLATE}\n")
    for dump in Path("kerberos").glob("dump*"):
        dump.unlink()


def entries_like(template: list[str], passwords: dict[str, str]) -> Iterator[str]:
    """Yield the accounts' lines of a dump: copies of the template's, each with its own name and key."""
    kind, base_length, _, extras, _, rest_length, _, *header = template[:15]
    # Type, length and content of each extra; the keys follow.
    kept = template[15 : 15 + 3 * int(extras)]
    # Key usage 0.
    encryption, integrity = (derived(stashed(), b"\0\0\0\0" + end) for end in (b"\xaa", b"\x55"))
    # ctypes releases the interpreter lock during calls.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, key in zip(passwords, pool.map(key_of, passwords, passwords.values()), strict=True):
            principal = f"{name}@{REALM}"
            sealed = struct.pack("<H", len(key)) + encrypted(key, encryption, integrity)
            # One key, of version 1, with the salt that a client expects.
            keys = ["1", "1", str(AES_256), str(len(sealed)), sealed.hex()]
            front = [kind, base_length, str(len(principal)), extras, "1", rest_length, principal]
            yield "\t".join([*front, *header, *kept, *keys, "-1;"])


def key_of(name: str, password: str) -> bytes:
    """Return an account's key (RFC 3962)."""
    seed = ctypes.create_string_buffer(32)
    word, salt = Datum(password.encode()), Datum(f"{REALM}{name}".encode())
    size = ctypes.c_size_t(len(seed.raw))
    check(gnutls.gnutls_pbkdf2(GNUTLS_SHA_1, ctypes.byref(word), ctypes.byref(salt), PBKDF2_ROUNDS, seed, size))
    return derived(seed.raw, b"kerberos")


def derived(key: bytes, constant: bytes) -> bytes:
    """Return RFC 3961's DK: the folded constant encrypted, and that encrypted again, which CBC over zeros does."""
    return aes_cbc(key, folded(constant, 16) + bytes(16))


def encrypted(plain: bytes, encryption: bytes, integrity: bytes) -> bytes:
    """Return RFC 3962's encryption of whole blocks.

    A random block precedes them, the last two are exchanged, and a code follows.
    """
    confounded = secrets.token_bytes(16) + plain
    cipher = aes_cbc(encryption, confounded)
    code = hmac.digest(integrity, confounded, "sha1")[:12]
    return cipher[:-32] + cipher[-16:] + cipher[-32:-16] + code


def folded(data: bytes, size: int) -> bytes:
    """Return RFC 3961's n-fold: copies, each rotated by 13 bits more, added with end-around carry."""
    bits = 8 * len(data)
    value, mask = int.from_bytes(data, "big"), (1 << 8 * size) - 1
    copies = math.lcm(len(data), size) // len(data)
    turns = [13 * copy % bits for copy in range(copies)]
    rotated = b"".join(
        ((value >> turn | value << bits - turn) & (1 << bits) - 1).to_bytes(len(data), "big") for turn in turns
    )
    total = sum(int.from_bytes(rotated[at : at + size], "big") for at in range(0, len(rotated), size))
    while total > mask:
        total = (total & mask) + (total >> 8 * size)
    return total.to_bytes(size, "big")


def aes_cbc(key: bytes, plain: bytes) -> bytes:
    """Return AES-256 in CBC mode, from a block of zeros."""
    handle, text = ctypes.c_void_p(), ctypes.create_string_buffer(plain, len(plain))
    word, start = Datum(key), Datum(bytes(16))
    check(gnutls.gnutls_cipher_init(ctypes.byref(handle), GNUTLS_AES_256_CBC, ctypes.byref(word), ctypes.byref(start)))
    check(gnutls.gnutls_cipher_encrypt(handle, text, ctypes.c_size_t(len(plain))))
    gnutls.gnutls_cipher_deinit(handle)
    return text.raw


def stashed() -> bytes:
    """Return the realm's master key, from its stash keytab."""
    file = Path("kerberos/stash").read_bytes()
    # After the version and the entry's length: the number of words in the name; the realm is one more.
    (words,), at = struct.unpack_from(">H", file, 6), 8
    for _ in range(words + 1):
        at += 2 + struct.unpack_from(">H", file, at)[0]
    # Type of the name, time and version of the key, its type and its length.
    kind, length = struct.unpack_from(">IIBHH", file, at)[3:]
    if kind != AES_256:
        sys.exit(f"the master key has the encryption type {kind}, and not {AES_256}")
    return file[at + 13 : at + 13 + length]


def check(status: int) -> None:
    """Exit if GnuTLS reports an error."""
    if status < 0:
        sys.exit(f"GnuTLS: error {status}")


def run(words: list[str], told: str = "") -> None:
    """Run a program; exit with its output if it fails."""
    done = subprocess.run(words, input=told, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    # kadmin.local ends with status 0, even if its commands fail.
    failed = done.returncode or "while " in done.stdout
    if failed:
        sys.exit(f"{Path(words[0]).name}: {done.stdout.strip()}")


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
