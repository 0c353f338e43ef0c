"""A project's file: rulings on its uses by policies and threats, without measuring."""

from __future__ import annotations

from pathlib import Path

import pytest

from policy_lab import RULE, TODAY, of_rules
from tollbar.catalog.families import families
from tollbar.catalog.policies import Ruling, check_project, judged, policy, read_project
from tollbar.core.errors import TollbarError

PROJECT = """
policy = ["tlsref-intermediate-6.0", "ours-2026.toml"]

[uses.front]
family = "tls"
choice = "tls-1.3"
setting = { certificate = "ecdsa-p256", key-exchange = "x25519", cipher = "aes-128-gcm", client-certificate = "none" }
threats = ["eavesdropping"]
standing = "acceptable"

[uses.archive]
family = "digest"
choice = "sha-1"
standing = "acceptable"
"""


def project(folder: Path, text: str = PROJECT) -> Path:
    """Write a project's file, with a policy next to it."""
    of_rules(folder, RULE)
    path = folder / "tollbar.toml"
    path.write_text(text)
    return path


def test_a_project_is_checked_without_measuring(tmp_path: Path) -> None:
    front, archive = check_project(read_project(project(tmp_path)), TODAY)
    assert [("tlsref-intermediate-6.0", Ruling.MEETS)] == [(one.policy.name, one.ruling) for one in front.judged]
    assert {"eavesdropping": (Ruling.MEETS, "")} == front.threats
    assert (Ruling.MEETS, None) == (front.ruling, front.fell)
    assert ["ours-2026"] == [one.policy.name for one in archive.judged]
    assert archive.fell is not None
    assert (Ruling.BREAKS, "broken", "SHA-1") == (archive.ruling, str(archive.standing), archive.fell.title)
    assert any("section 11" in one.where for one in archive.fell.authority)


def test_a_use_that_no_policy_speaks_of_is_not_passed_in_silence(tmp_path: Path) -> None:
    text = PROJECT.replace('"digest"', '"mac"').replace('"sha-1"', '"hmac-sha-256"')
    _, archive = check_project(read_project(project(tmp_path, text)), TODAY)
    assert (Ruling.CANNOT_SAY, ()) == (archive.ruling, archive.judged)
    assert "no policy here has a rule on the family mac" == archive.missing
    # The newest edition is the default.
    for name in ("asvs-level-1-5.0.0", "asvs-level-1"):
        _, own = check_project(read_project(project(tmp_path, text + f'policy = "{name}"\n')), TODAY)
        assert (Ruling.MEETS, None) == (own.ruling, own.missing)
        assert ["asvs-level-1-5.0.0"] == [one.policy.name for one in own.judged]


def test_a_use_says_what_performs_it(tmp_path: Path) -> None:
    """A policy on a system's libraries rules on the provider: without one, the ruling is *cannot say*."""
    text = 'policy = ["fedora-default"]\n[uses.front]\nfamily = "tls"\nchoice = "tls-1.3"\nsetting = { SETTING }\n'
    said = 'certificate = "ecdsa-p256", key-exchange = "x25519", cipher = "aes-128-gcm", client-certificate = "none"'
    found = {}
    for provider in (None, "libcrypto", "aws-lc"):
        setting = f'{said}, provider = "{provider}"' if provider else said
        (front,) = check_project(read_project(project(tmp_path, text.replace("SETTING", setting))), TODAY)
        found[provider] = (str(front.ruling), *(one.why for one in front.judged[0].unknown))
    assert {
        None: ("cannot say", "provider is not given"),
        "libcrypto": ("meets",),
        "aws-lc": ("cannot say", "the rules for a library that is not the system's"),
    } == found


BAD_PROJECTS = {
    "unknown policy": ("tlsref-intermediate-6.0", "tlsref-6.0", "no such policy", "`tlsref-"),
    "unknown choice": ('"tls-1.3"', '"tls-1.4"', "no such choice: `tls-1.4`", "`tls-1.3`"),
    "unknown setting": ("key-exchange =", "key-exchnage =", "no such setting", "`key-exchange`"),
    "unknown value": ('"x25519"', '"x25591"', "`x25591` is not one of", "`x25519`"),
    "unknown threat": ('"eavesdropping"', '"eavesdroping"', "no such threat", "`eavesdropping`"),
    "unknown standing": ('standing = "acceptable"', 'standing = "acceptible"', "no such value", "`acceptable`"),
    "a setting of another cell": ("client-certificate", "dh-parameters", "", "is not one of"),
}


@pytest.mark.parametrize("fault", BAD_PROJECTS)
def test_a_bad_project_is_refused_in_one_line(fault: str, tmp_path: Path) -> None:
    find, replacement, words, hint = BAD_PROJECTS[fault]
    path = project(tmp_path, PROJECT.replace(find, replacement, 1))
    with pytest.raises(TollbarError) as caught:
        read_project(path)
    assert words in caught.value.what
    assert hint in caught.value.what + (caught.value.hint or "")
    assert "tollbar.toml" in (caught.value.where or "")


def test_the_examples_of_the_documentation_are_read(tmp_path: Path) -> None:
    """`docs/policies.md` and `docs/check.md` have a policy and a project that hold: a reader may begin with them."""
    docs = Path(__file__).parents[1] / "docs"
    text = "".join((docs / name).read_text("utf-8") for name in ("policies.md", "check.md"))
    blocks = [block.partition("```")[0] for block in text.split("```toml\n")[1:]]
    (ours,) = [block for block in blocks if block.startswith("[policy]")]
    (tmp_path / "ours-2026-11.toml").write_text(ours)
    found = policy(str(tmp_path / "ours-2026-11.toml"))
    assert ["groups"] == [rule.id for rule in found.rules]
    # Its exception is of a use that breaks the rule, so it is needed.
    (excepted,) = found.excepts
    for choice in excepted.where["choice"]:
        said = judged(found, families()["password-hash"], {"choice": choice}, TODAY)
        assert [(excepted.rule, excepted)] == [(one.rule.id, one.excepted) for one in said.findings if one.excepted]
        assert Ruling.MEETS is said.ruling
    (written,) = [block for block in blocks if "[uses." in block]
    (tmp_path / "tollbar.toml").write_text(written)
    assert [Ruling.MEETS] == [one.ruling for one in check_project(read_project(tmp_path / "tollbar.toml"), TODAY)]


def test_a_project_names_no_more_policies_than_can_be_read(tmp_path: Path) -> None:
    """Each use may name its own: five hundred of sixty-four are 32,000 files."""
    uses = ""
    for number in range(65):
        Path(of_rules(tmp_path, RULE)).rename(tmp_path / f"p{number}.toml")
        uses += f'[uses.u{number}]\nfamily = "digest"\nchoice = "sha-1"\npolicy = ["p{number}.toml"]\n'
    with pytest.raises(TollbarError, match="names more than 64 policies") as raised:
        read_project(project(tmp_path, uses))
    assert raised.value.hint
