"""Patterns of names in a foreign file: reading them costs little time and memory."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy_lab import A_POLICY, of_rules
from tollbar.catalog.libraries import Broken, open_provider
from tollbar.catalog.policies import policy
from tollbar.catalog.policies.policy_file import MOST_EXTENDED, MOST_RULES
from tollbar.core.errors import TollbarError
from tollbar.core.patterns import MOST_LETTERS, is_like
from tollbar.study import load
from tollbar.study.plan import make

LONG = {"stars": "*a" * 500_000, "brackets": "[" * 900_000, "letters": "a" * 1_000_000}


def test_a_pattern_fits_as_in_a_shell() -> None:
    assert is_like("sha-256", "sha-*")
    assert is_like("sha-256", "sha-[1-3]??")
    assert not is_like("sha-256", "SHA-*")
    assert is_like("x" * 200, "*" * MOST_LETTERS)
    assert not is_like("x" * 200, "*" * (MOST_LETTERS + 1))
    assert is_like("x" * 200, "x" * 200)


def test_a_pattern_may_end_in_a_bound_of_a_number() -> None:
    assert is_like("rsa-1536", "rsa-<2048")
    assert not is_like("rsa-2048", "rsa-<2048")
    assert not is_like("rsa-", "rsa-<2048")
    assert not is_like("rsa-2048+ecdsa-p256", "rsa-<3072")


@given(st.text("ab]![?*\\", max_size=6), st.text("ab]![?*\\", max_size=8))
def test_a_pattern_fits_as_in_the_library_of_python(name: str, pattern: str) -> None:
    assert is_like(name, pattern) == (name == pattern or fnmatchcase(name, pattern))


@pytest.mark.parametrize(
    "pattern", ["[a-c]", "[!a-c]", "[a-]", "[-a]", "[]-a]", "[a-c-e]", "[!-a]", "[c-a]", "[!c-a]", "[]a]x*"]
)
@pytest.mark.parametrize("name", ["a", "b", "c", "d", "-", "]", "!", "", "ax", "]xy"])
def test_a_range_fits_as_in_the_library_of_python(name: str, pattern: str) -> None:
    assert is_like(name, pattern) == fnmatchcase(name, pattern)


@pytest.mark.parametrize("pattern", LONG.values(), ids=LONG)
def test_a_long_pattern_is_never_made(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tollbar.core.patterns._parts", lambda _: pytest.fail("a long pattern was made"))
    assert not is_like("sha-256", pattern)


@pytest.mark.parametrize("key", ["only", "never", "where"])
def test_a_long_pattern_of_a_policy_is_one_line(tmp_path: Path, key: str) -> None:
    more = 'standing = "acceptable"\n' if key == "where" else ""
    with pytest.raises(TollbarError, match=r"letters; a pattern must have at most 100, for example `sha-\*`") as raised:
        policy(of_rules(tmp_path, f'{more}{key} = {{ choice = "' + "*a" * 51 + '" }'))
    assert 200 > len(raised.value.what)


ASKS = 'standing = "acceptable"'
EXCEPT = '[[except]]\nrule = "r0"\nbecause = "b"\nuntil = 2030-01-01\n'


@pytest.mark.parametrize(
    ("rule", "counted"),
    [
        ("family = [" + '"digest", ' * 500 + f"]\n{ASKS}", 500),
        ('family = "password-hash"\nat-least = [' + "{ iterations = 1 }, " * 499 + "]", 500),
        (f"{ASKS}\n{EXCEPT * 499}", 500),
    ],
    ids=["families", "sets", "exceptions"],
)
def test_each_rule_counts_for_its_families_and_sets(tmp_path: Path, rule: str, counted: int) -> None:
    """Exceptions count, too: the ruling of one cell looks at each of them."""
    more = [ASKS] * (MOST_RULES - counted)
    policy(of_rules(tmp_path, rule, *more))
    with pytest.raises(TollbarError, match="more than 1,000 rules or 2,000 patterns"):
        policy(of_rules(tmp_path, rule, *more, ASKS))


def test_rules_of_extended_policies_count_too(tmp_path: Path) -> None:
    of_rules(tmp_path, *[ASKS] * 600)
    (tmp_path / "ours-2026.toml").rename(tmp_path / "first.toml")
    path = of_rules(tmp_path, *[ASKS] * 401, head=f'{A_POLICY}extends = ["./first.toml"]\n')
    with pytest.raises(TollbarError, match="more than 1,000 rules or 2,000 patterns"):
        policy(path)


def test_the_same_policy_extended_again_and_again_is_one_line(tmp_path: Path) -> None:
    names = '"tr-02102-2026-01", ' * (MOST_EXTENDED + 1)
    with pytest.raises(TollbarError, match="extends more than 64 others"):
        policy(of_rules(tmp_path, ASKS, head=f"{A_POLICY}extends = [{names}]\n"))


@pytest.mark.parametrize(
    ("key", "value", "most"),
    [
        ("choices", '"sha-*"', 1000),
        ("providers", '"libcrypto"', 100),
        ("servers", '"embedded"', 1000),
        ("factors", '"choice"', 1000),
    ],
)
def test_a_study_names_a_limited_number_of_things(tmp_path: Path, key: str, value: str, most: int) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f'question = "q"\nfamily = "digest"\n{key} = [' + f"{value}," * (most + 1) + "]\n")
    with pytest.raises(TollbarError, match=f"`{key}`: Tuple should have at most {most} items"):
        load([str(path)])


def test_a_path_longer_than_any_is_one_that_is_not_there() -> None:
    found = open_provider(f"libcrypto:/{'a' * 10_000}")
    assert isinstance(found, Broken)


@pytest.mark.parametrize(
    ("key", "letters", "says"),
    [
        ("word", 101, "`policy.word`: String should have at most 100 characters"),
        ("title", 1_001, "`policy.title`: String should have at most 1000 characters"),
        ("source", 1_001, "`policy.source`: String should have at most 1000 characters"),
        ("note", 1_001, "`policy.note`: String should have at most 1000 characters"),
    ],
)
def test_a_text_that_each_finding_repeats_is_limited(tmp_path: Path, key: str, letters: int, says: str) -> None:
    """A `word` of 900,000 letters made 28 MiB of output and 350 MiB of memory."""
    lines = [line for line in A_POLICY.splitlines() if not line.startswith(f"{key} =")]
    head = "\n".join([*lines, f'{key} = "{"x" * letters}"', ""])
    with pytest.raises(TollbarError, match=says):
        policy(of_rules(tmp_path, ASKS, head=head))


@pytest.mark.parametrize(("key", "letters"), [("id", 101), ("clause", 1_001), ("cannot-say", 1_001), ("note", 1_001)])
def test_a_text_of_a_rule_is_limited(tmp_path: Path, key: str, letters: int) -> None:
    texts = {
        "id": "a",
        "clause": "1",
        **({} if key == "cannot-say" else {"standing": "acceptable"}),
        key: "x" * letters,
    }
    rule = "".join(f'{name} = "{text}"\n' for name, text in texts.items())
    path = tmp_path / "ours-2026.toml"
    path.write_text(f'{A_POLICY}\n[[rule]]\nfamily = "digest"\n{rule}')
    with pytest.raises(TollbarError, match=f"`rule.0.{key}`: String should have at most {letters - 1} characters"):
        policy(str(path))


def test_the_values_that_no_family_has_are_limited(tmp_path: Path) -> None:
    """Each pattern of a rule is compared with them."""
    rule = 'only = { choice = ["sha-*"] }\nabsent = [' + '"x", ' * 1_001 + "]"
    with pytest.raises(TollbarError, match=r"`rule\.0\.absent`: Tuple should have at most 1000 items"):
        policy(of_rules(tmp_path, rule))


@pytest.mark.parametrize(
    ("more", "most"),
    [
        ("[[leave-out]]\nbecause = 'b'\nwhere = { choice = [" + '"x*", ' * 876 + "] }\n", "3,500,000"),
        (
            "[[claim]]\nsays = 's'\nof = { choice = 'sha-256' }\nover = { choice = 'sha-512' }\norder = 'more'\n" * 501,
            "400,000",
        ),
        ("[[table]]\ntitle = 't'\nrows = 'choice'\ncolumns = 'bytes'\n" * 501, "400,000"),
    ],
    ids=["leave-outs", "claims", "tables"],
)
def test_a_plan_makes_a_limited_number_of_comparisons(tmp_path: Path, more: str, most: str) -> None:
    """A thousand claims about ten thousand combinations took more than half a minute."""
    sizes = ", ".join(f'"{size} B"' for size in range(64, 2_064))
    path = tmp_path / "mine.toml"
    head = 'question = "q"\nfamily = "digest"\nchoices = ["sha-256", "sha-512"]\n[vary]\nop = ["hash"]\n'
    path.write_text(f"{head}bytes = [{sizes}]\n{more}")
    with pytest.raises(TollbarError, match=f"more than {most} comparisons") as raised:
        make(load([str(path)]), seed=0)
    assert raised.value.hint
