"""Files of policies: their names, and refused content."""

from __future__ import annotations

from pathlib import Path

import pytest

from policy_lab import A_POLICY, RULE, TODAY, of_rules
from tollbar.catalog import families
from tollbar.catalog.policies import (
    catalogue,
    checking,
    contradictions,
    named,
    policies,
    policy,
    policy_file,
    read_project,
    shipped,
    with_edition,
)
from tollbar.core.errors import TollbarError


def test_policies_on_the_search_path_have_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "policies"
    folder.mkdir()
    of_rules(folder, RULE)
    (folder / "cnsa-2.0-2024-12.toml").write_text("nothing")
    monkeypatch.setenv("TOLLBAR_PATH", str(tmp_path))
    assert sorted([*shipped(), "ours-2026"]) == list(policies())
    assert "Ours" == policy("ours-2026").title
    assert "CNSA 2.0" == policy("cnsa-2.0-2024-12").title


def chain(folder: Path, count: int, *, each: int) -> str:
    """Return the path of the first of `count` policies, each of which extends the next one `each` times."""
    for number in range(count):
        named = [f"p{number + 1}.toml"] * each if number < count - 1 else []
        head = A_POLICY.replace('title = "Ours"', f'title = "Ours"\nextends = {named}'.replace("'", '"'))
        Path(of_rules(folder, RULE.replace("md5", "sha-1") if number else RULE, head=head)).rename(
            folder / f"p{number}.toml"
        )
    return str(folder / "p0.toml")


def test_a_policy_that_is_extended_on_many_ways_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two ways at each of sixteen steps are 32,768 ways to the last one."""
    read: list[Path] = []
    monkeypatch.setattr(
        catalogue, "read_policy", lambda path, extended: (read.append(path), policy_file.read_policy(path, extended))[1]
    )
    found = policy(chain(tmp_path, catalogue.MOST_DEPTH, each=2))
    assert catalogue.MOST_DEPTH == len(read) == len([*found.all_of_it])
    assert "p15" == next(found.all_of_it).name
    assert found.is_about("digest")


def test_a_long_chain_of_policies_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(TollbarError, match="16 policies extend one another in a chain") as raised:
        policy(chain(tmp_path, 3000, each=1))
    assert "\n" not in str(raised.value)
    assert raised.value.hint


def test_a_policy_that_extends_many_is_refused_in_one_line(tmp_path: Path) -> None:
    for number in range(100):
        Path(of_rules(tmp_path, RULE)).rename(tmp_path / f"p{number}.toml")
    names = [f"p{number}.toml" for number in range(65)]
    head = A_POLICY.replace('title = "Ours"', f'title = "Ours"\nextends = {names}'.replace("'", '"'))
    with pytest.raises(TollbarError, match="extends more than 64 others"):
        policy(of_rules(tmp_path, RULE, head=head))


@pytest.mark.parametrize(
    "rules",
    [
        [RULE] * 3_000,
        ['never = { choice = ["md5", ' + '"sha-1*", ' * 11_000 + "] }"],
        ['family = ["digest", ' + '"digest", ' * 2_000 + ']\nnever = { choice = ["md5", ' + '"sha*",' * 1_000 + "] }"],
    ],
    ids=["rules", "patterns", "patterns of families"],
)
def test_a_policy_of_many_rules_is_refused_in_one_line(tmp_path: Path, rules: list[str]) -> None:
    with pytest.raises(TollbarError, match="more than 1,000 rules or 2,000 patterns") as raised:
        policy(of_rules(tmp_path, *rules))
    assert "\n" not in str(raised.value)


def test_an_unknown_policy_has_the_nearest_beside_it(tmp_path: Path) -> None:
    with pytest.raises(TollbarError, match="no such policy: `asvs-level-2`") as caught:
        policy("asvs-level-2")
    assert "`asvs-level-2-5.0.0`" in (caught.value.hint or "")
    of_rules(tmp_path, RULE)
    for name in ("ours-2062.toml", "ours-2026.tml"):
        with pytest.raises(TollbarError, match=f"no such policy: `{name}`") as caught:
            policy(name, beside=tmp_path)
        assert "`ours-2026.toml`" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("asvs-level", "`asvs-level-1-5.0.0`"), ("sp800", "sp800-63b-aal1-4"), ("asvs", "asvs-level-1")],
)
def test_a_name_that_several_policies_begin_with_is_none_of_them(name: str, nearest: str) -> None:
    """The digit after the name is a level, not an edition: none is chosen silently."""
    assert name == with_edition(name)
    with pytest.raises(TollbarError, match=f"no such policy: `{name}`") as caught:
        policy(with_edition(name))
    assert nearest in (caught.value.hint or "")


def test_of_several_editions_of_a_policy_the_newest_is_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Editions share a title; a second policy whose name begins the same makes the name ambiguous."""
    folder = tmp_path / "policies"
    folder.mkdir()
    for edition in ("2025", "2026"):
        head = A_POLICY.replace("date = 2026-01-01", f"date = {edition}-01-01")
        Path(of_rules(folder, RULE, head=head)).rename(folder / f"our-{edition}.toml")
    monkeypatch.setenv("TOLLBAR_PATH", str(tmp_path))
    assert "our-2026" == with_edition("our")
    Path(of_rules(folder, RULE, head=A_POLICY.replace('"Ours"', '"Others"'))).rename(folder / "our-2-2026.toml")
    assert "our" == with_edition("our")


# Rules, changes of the file, and the text of the error with its hint.
BAD: dict[str, tuple[str, str, str, str]] = {
    "no clause": (RULE, 'clause = "0.1"\n', "", "`rule.0.clause` is missing"),
    "an empty clause": (RULE, 'clause = "0.1"', 'clause = ""', "`rule.0.clause`"),
    "no source": (RULE, 'source = "our handbook"\n', "", "`policy.source` is missing"),
    "no date": (RULE, "date = 2026-01-01\n", "", "`policy.date` is missing"),
    "no day": (RULE, "date = 2026-01-01", 'date = "soon"', "`policy.date`"),
    "two conditions": (RULE + "\nstrength = 128", "", "", "has 2 requirements; it must have exactly one of `standing`"),
    "no condition": ("", "", "", "has 0 requirements"),
    "unknown key": (RULE + '\nnevre = { choice = ["x"] }', "", "", "`rule.0.nevre`: no such key"),
    "unknown family": ('family = "digst"\n' + RULE, "", "", "no such family: `digst` did you mean `digest`"),
    "unknown choice": ('never = { choice = ["sha-265"] }', "", "", "no `sha-265` did you mean `sha-256`"),
    "unknown setting": ('never = { chioce = ["md5"] }', "", "", "no setting `chioce` did you mean `choice`"),
    "unknown threat": ('mitigates = { colision = "yes" }', "", "", "no threat `colision` did you mean `collision`"),
    "unknown parameter": ("at-least = [{ byts = 2 }]", "", "", "no setting `byts` did you mean `bytes`"),
    "a size without unit": ("at-least = [{ bytes = 2 }]", "", "", "`at-least.bytes`: `2` needs a unit"),
    "a size that fits nothing": ('never = { bytes = ["64"] }', "", "", "`never.bytes`: `64` needs a unit"),
    "a pattern of numbers": ('never = { bytes = ["6*"] }', "", "", "`6*` must be a number `at-least` sets"),
    "a word that is at least": (
        'family = "signature"\nat-least = [{ digest = "sha-256" }]',
        "",
        "",
        "`at-least.digest`: it must be a number",
    ),
    "at least nothing": ("at-least = [{}]", "", "", "has an empty set in `at-least`"),
    "a threat that need not be mitigated": (
        'mitigates = { collision = "no" }',
        "",
        "",
        "requires nothing for collision",
    ),
    "no family": ("family = []\n" + RULE, "", "", "`rule.0.family`"),
    "less than no bits": ("strength = -1", "", "", "`rule.0.strength`"),
    "a blank clause": (RULE, 'clause = "0.1"', 'clause = "  "', "`rule.0.clause`"),
    "a blank source": (RULE, '"our handbook"', '" "', "`policy.source`"),
    "ends before it begins": (RULE + "\nfrom = 2027-01-01\nuntil = 2026-01-01", "", "", "ends before it begins"),
    "extends none": (RULE, "checked = true", 'extends = ["asvs-level-1"]', "did you mean `asvs-level-1-5.0.0`"),
    "cannot extend itself": (RULE, "checked = true", 'extends = ["ours-2026.toml"]', "cannot extend itself"),
}


@pytest.mark.parametrize("fault", BAD)
def test_a_bad_policy_is_refused_in_one_line(fault: str, tmp_path: Path) -> None:
    rule, find, replacement, words = BAD[fault]
    path = Path(of_rules(tmp_path, rule))
    path.write_text(path.read_text().replace(find, replacement, 1) if find else path.read_text())
    with pytest.raises(TollbarError) as caught:
        policy(str(path))
    line = f"{caught.value.where}: {caught.value.what} {caught.value.hint or ''}"
    assert words in line
    assert "ours-2026.toml" in line
    assert "\n" not in line


def test_a_policy_that_extends_long_files_is_refused_in_one_line(tmp_path: Path) -> None:
    """Each of sixty-four may have 1 MiB of comments."""
    for number in range(20):
        path = tmp_path / f"p{number}.toml"
        Path(of_rules(tmp_path, RULE.replace("md5", "sha-1"))).rename(path)
        path.write_text(f"{path.read_text()}\n#{'x' * 1_000_000}")
    names = [f"p{number}.toml" for number in range(20)]
    head = A_POLICY.replace('title = "Ours"', f'title = "Ours"\nextends = {names}'.replace("'", '"'))
    with pytest.raises(TollbarError, match="the policies have more than 4 MiB together") as raised:
        policy(of_rules(tmp_path, RULE, head=head))
    assert raised.value.hint


def test_the_policies_of_a_project_share_the_limit_of_their_files(tmp_path: Path) -> None:
    """Each of sixty-four could extend files of the whole limit."""
    uses = []
    for number in range(8):
        path = tmp_path / f"p{number}.toml"
        Path(of_rules(tmp_path, RULE)).rename(path)
        path.write_text(f"{path.read_text()}\n#{'x' * 700_000}")
        uses.append(f'[uses.u{number}]\nfamily = "digest"\nchoice = "sha-256"\npolicy = ["p{number}.toml"]\n')
    project = tmp_path / "tollbar.toml"
    project.write_text("".join(uses))
    with pytest.raises(TollbarError, match="the policies have more than 4 MiB together") as raised:
        read_project(project)
    assert raised.value.hint
    with pytest.raises(TollbarError, match="the policies have more than 4 MiB together"):
        named([str(tmp_path / f"p{number}.toml") for number in range(8)])


def test_a_command_reads_each_policy_once(tmp_path: Path) -> None:
    Path(of_rules(tmp_path, RULE)).rename(tmp_path / "base.toml")
    head = A_POLICY.replace('title = "Ours"', 'title = "Ours"\nextends = ["base.toml"]')
    for name in ("one", "other"):
        Path(of_rules(tmp_path, RULE, head=head)).rename(tmp_path / f"{name}.toml")
    one, other = named([str(tmp_path / f"{name}.toml") for name in ("one", "other")])
    assert one.bases[0] is other.bases[0]


def test_policies_that_have_many_rules_are_not_compared(tmp_path: Path) -> None:
    """Two policies of a thousand rules took a minute: each pair was judged for each choice."""
    paths = []
    for name in ("one", "other"):
        Path(of_rules(tmp_path, *[f'only = {{ choice = ["sha-*"] }}\nnote = "{name}"'] * 320)).rename(
            tmp_path / f"{name}.toml"
        )
        paths.append(str(tmp_path / f"{name}.toml"))
    with pytest.raises(TollbarError, match="need 102,400 pairs of rules of the family digest to be compared") as raised:
        contradictions(named(paths), families.family("digest"), TODAY)
    assert raised.value.hint


def test_rules_on_every_setting_are_not_compared_cell_by_cell(tmp_path: Path) -> None:
    """The cells are all combinations of the settings that two rules name."""
    family = families.family("web-auth")
    where = ", ".join(f'{name} = ["*"]' for name, one in family.settings.items() if one.values)
    paths = []
    for name, ask in (("one", "acceptable"), ("other", "recommended")):
        rule = f'family = "web-auth"\nstanding = "{ask}"\nwhere = {{ {where} }}'
        Path(of_rules(tmp_path, rule)).rename(tmp_path / f"{name}.toml")
        paths.append(str(tmp_path / f"{name}.toml"))
    with pytest.raises(TollbarError, match="rulings on cells of the family web-auth"):
        contradictions(named(paths), family, TODAY)


@pytest.mark.parametrize(("limit", "unit"), [("MOST_MATCHED", "patterns"), ("MOST_LETTERS", "letters")])
def test_uses_that_many_patterns_or_texts_judge_are_refused(
    limit: str, unit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, limit, 100)
    Path(of_rules(tmp_path, RULE)).rename(tmp_path / "p.toml")
    uses = [f'[uses.u{number}]\nfamily = "digest"\nchoice = "sha-256"\n' for number in range(101)]
    project = tmp_path / "tollbar.toml"
    project.write_text('policy = ["p.toml"]\n' + "".join(uses))
    with pytest.raises(TollbarError, match=f"more than 100 {unit} of rules, each counted for each use"):
        read_project(project)
