"""A family's file: syntax errors and contradictions are reported in one line."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from family_text import A_FAMILY, A_VALUE
from tollbar.catalog.families import families, read_family
from tollbar.catalog.families.family_tables import MOST_ANSWERS, MOST_LIKE
from tollbar.core.errors import TollbarError

# Additions to a good family, or changes of it, and words that the error must contain.
BAD_FAMILIES = {
    "no word on a threat": ("", A_VALUE, "needs the threat `collision`"),
    "unknown threat of a choice": ('mitigates = { theft = "no" }', A_VALUE, "the family has no threat `theft`"),
    "unknown threat of a value": (
        'mitigates = { collision = "no" }',
        A_VALUE + 'mitigates = { theft = "no" }',
        "`setting.length.value.short.mitigates`: the family has no threat `theft`",
    ),
    "partly without a condition": ('mitigates = { collision = "partly" }', A_VALUE, "choice.md5.mitigates.collision"),
    "a value that the setting has not": (
        'mitigates = { collision = "no" }',
        A_VALUE + '\n[setting.length.value.long]\ntitle = "long output"\n',
        "`setting.length.value.long`: must be one of the values of the setting",
    ),
    "a null value": (
        'mitigates = { collision = "no" }',
        A_VALUE.replace("deprecated", "null"),
        "`setting.length.value.short.standing` cannot be `null`",
    ),
    "a value as a reference": (
        'mitigates = { collision = "no" }',
        A_VALUE.replace("deprecated", "reference"),
        "`setting.length.value.short.standing` cannot be `reference`; only a choice can",
    ),
}


@pytest.mark.parametrize("fault", BAD_FAMILIES)
def test_a_family_that_does_not_fit_together_is_refused(fault: str, tmp_path: Path) -> None:
    choice, rest, words = BAD_FAMILIES[fault]
    path = tmp_path / "family.toml"
    path.write_text(A_FAMILY + choice + "\n" + rest)
    with pytest.raises(TollbarError) as caught:
        read_family(tmp_path)
    assert words in caught.value.what


def test_a_family_kept_by_an_earlier_build_is_read(tmp_path: Path) -> None:
    """Its default lists the choices that are references today."""
    authority = '{ by = "x", where = "y", says = "z", seen = 2026-11-27 }'
    default = f'choice = "md5"\nreason = "a test"\nauthority = [{authority}]\n'
    text = A_FAMILY.replace('standing = "broken"', f'standing = "acceptable"\n\n[default]\n{default}')
    (tmp_path / "family.toml").write_text(f'{text}never = ["none"]\n')
    assert "md5" == read_family(tmp_path, with_answers=False).default.choice  # type: ignore[union-attr]


def test_an_operation_that_the_family_has_not_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "family.toml"
    path.write_text(A_FAMILY.replace('["hash"]', '["hash", "sing"]\nunanswered = ["sing"]'))
    assert ("sing",) == read_family(tmp_path).choices["md5"].unanswered
    path.write_text(A_FAMILY.replace('["hash"]', '["hash"]\nunanswered = ["sing"]'))
    with pytest.raises(TollbarError, match="no such operation: `sing`"):
        read_family(tmp_path)


def test_a_null_choice_that_mitigates_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "family.toml"
    text = A_FAMILY.replace('standing = "null"', 'standing = "null"\nmitigates = { collision = "yes" }')
    path.write_text(text + 'mitigates = { collision = "no" }\n' + A_VALUE)
    with pytest.raises(TollbarError, match="the null choice cannot mitigate"):
        read_family(tmp_path)


def test_a_choice_named_twice_is_refused(tmp_path: Path) -> None:
    """The file is TOML, in which a repeated key does not parse."""
    path = tmp_path / "family.toml"
    path.write_text(A_FAMILY + '\n[choice.md5]\ntitle = "again"\nspec = "none"\nstanding = "broken"\n')
    with pytest.raises(TollbarError, match="md5"):
        read_family(tmp_path)


def test_an_unknown_key_is_named(tmp_path: Path) -> None:
    path = tmp_path / "family.toml"
    path.write_text(A_FAMILY + 'colour = "red"\n')
    with pytest.raises(TollbarError) as caught:
        read_family(tmp_path)
    assert str(path) == caught.value.where
    assert "choice.md5.colour" in caught.value.what


SETTING = '[setting.length]\ntitle = "length"\n{}\n'
# Changes of a good family and the error's text: file, key, and the nearest valid one.
BAD = {
    "unknown key": ('title = "MD5"', 'titel = "MD5"', "`choice.md5.titel`: no such key", "`title`"),
    "another key": (
        'spec = "RFC 1321"',
        'spec = ""\nstrenght = 0',
        "`choice.md5.strenght`: no such",
        "`strength`",
    ),
    "unknown head": (
        'operations = ["hash"]',
        'operations = ["hash"]\nunansered = []',
        "`family.unansered`",
        "`unanswered`",
    ),
    "no operations": ('operations = ["hash"]', "", "`family.operations` is missing", None),
    "unknown standing": ('"broken"', '"broke"', "`choice.md5.standing`: no such value: `broke`", None),
    "no standing": ('standing = "broken"', "", "a choice needs either a `standing` or `level`s", None),
    "a standing and levels": (
        "",
        '[[choice.md5.level]]\nstanding = "broken"\nauthority = []\n',
        "a choice needs either a `standing` or `level`s",
        None,
    ),
    "no last level": (
        'standing = "broken"',
        '[[choice.md5.level]]\nat-least = { rounds = 2 }\nstanding = "broken"\nauthority = []\n',
        "the last `level` cannot have `at-least`",
        None,
    ),
    "a level of an unknown setting": (
        'standing = "broken"',
        '[[choice.md5.level]]\nat-least = { round = 2 }\nstanding = "broken"\nauthority = []\n'
        '[[choice.md5.level]]\nstanding = "broken"\nauthority = []\n'
        '[setting.rounds]\ntitle = "rounds"\ndefault = 2\n',
        "`choice.md5.level.at-least`",
        "`rounds`",
    ),
    "a default out of bounds": (
        "",
        SETTING.format("default = 1\nleast = 2"),
        "`setting.length.default`: `1` is too small; it must be at least 2",
        None,
    ),
    "an unknown setting to break even with": (
        "",
        SETTING.format("default = 1\nbreaks-even-with = { lenght = 2 }"),
        "`setting.length.breaks-even-with`",
        "`length`",
    ),
    "words for a value that the setting has not": (
        "",
        SETTING.format('values = ["short"]\ndefault = "short"\nin-words = { long = "long output" }'),
        "`setting.length.in-words.long`: must be one of the values of the setting",
        None,
    ),
    "an unknown setting's share": (
        "",
        SETTING.format("default = 1\nleast-each = { lenght = 2 }"),
        "`setting.length.least-each`",
        "`length`",
    ),
    "unsupported where nothing is": (
        "",
        SETTING.format('default = 1\nunsupported = [{ where = { sevrer = ["nginx"] }, because = "it lacks it" }]'),
        "`setting.length.unsupported.where`: no such coordinate: `sevrer`",
        "did you mean `server`?",
    ),
    "unknown table": ("[choice.md5]", "[choices.md5]", "`choices`: no such key", "did you mean `choice`?"),
    "no file": ('spec = "RFC 1321"', 'spec = ""\nanswers = [{ file = "md5.json" }]', "answers/md5.json", None),
    "two nulls": ('"broken"', '"null"', 'exactly one choice with `standing = "null"`', None),
    "unit and values": (
        "",
        SETTING.format('unit = "bytes"\nvalues = [1]\ndefault = "1 B"'),
        "`setting.length`",
        "`unit`",
    ),
    "no such default": (
        "",
        SETTING.format('values = ["short", "long"]\ndefault = "sort"'),
        "`setting.length.default`",
        "`short`",
    ),
    "only elsewhere": (
        "",
        SETTING.format('default = 1\nonly = { chioce = ["md5"] }'),
        "`setting.length.only.chioce`",
        "`choice`",
    ),
    "like none": (
        'title = "MD5"',
        'title = "MD5"\nlike = "md4"',
        "`md5.like`: `md4` must be a choice above this one",
        None,
    ),
    "like itself": ('title = "MD5"', 'title = "MD5"\nlike = "md5"', "`md5` must be a choice above this one", "none"),
    "another's metric": ("", '[metric.cpu]\ntitle = "t"\nunit = "s"\n', "`metric.cpu`", None),
}


@pytest.mark.parametrize("fault", BAD)
def test_a_bad_family_is_refused_in_words(fault: str, tmp_path: Path) -> None:
    find, replacement, words, hint = BAD[fault]
    (tmp_path / "family.toml").write_text(A_FAMILY.replace(find, replacement, 1) if find else A_FAMILY + replacement)
    with pytest.raises(TollbarError) as caught:
        read_family(tmp_path)
    said = str(caught.value)
    assert str(tmp_path / "family.toml") == caught.value.where
    assert words in said
    assert "\n" not in said
    assert hint is None or hint in said + (caught.value.hint or "")


def test_a_choice_like_another_has_what_it_does_not_say(tmp_path: Path) -> None:
    again = '[choice.md5-again]\nlike = "md5"\ntitle = "MD5 again"\nyear = 1993\n'
    thrice = '[choice.md5-thrice]\nlike = "md5-again"\ntitle = "MD5 thrice"\n'
    (tmp_path / "family.toml").write_text(f"{A_FAMILY}year = 1992\n{again}{thrice}")
    choices = read_family(tmp_path).choices
    expected = {"md5": ("MD5", 1992), "md5-again": ("MD5 again", 1993), "md5-thrice": ("MD5 thrice", 1993)}
    assert expected == {name: (choices[name].title, choices[name].year) for name in expected}
    assert {("RFC 1321", "broken")} == {(choices[name].spec, str(choices[name].standing)) for name in expected}


def test_families_on_the_search_path_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("mine", "digest"):
        (tmp_path / "families" / name).mkdir(parents=True)
        (tmp_path / "families" / name / "family.toml").write_text(A_FAMILY)
    shipped = [*families()]
    assert "mine" not in shipped
    monkeypatch.setenv("TOLLBAR_PATH", str(tmp_path))
    assert sorted([*shipped, "mine"]) == sorted(families())
    assert "Test" == families()["mine"].title
    assert "Test" != families()["digest"].title


MANY = "".join(f'[choice.b{number}]\nlike = "md5"\n' for number in range(6_000))
AMPLIFIED = {
    "authorities": "authority = [" + '{ by = "b", where = "w", says = "s", seen = 2026-11-21 },' * 5_000 + "]",
    "answers": "answers = [" + '{ is = "a" },' * 500 + "]",
    "settings": "setting = { " + ", ".join(f"k{number} = 1" for number in range(5_000)) + " }",
    "levels": "level = [" + '{ standing = "broken", authority = [] },' * 5_000 + "]",
}


@pytest.mark.parametrize("what", AMPLIFIED)
def test_choices_take_no_more_from_others_than_they_could_say(what: str, tmp_path: Path) -> None:
    """A file of 1 MiB took gigabytes, and no Ctrl-C ended it."""
    text = A_FAMILY.replace('standing = "broken"', "") if what == "levels" else A_FAMILY
    (tmp_path / "family.toml").write_text(f"{text}{AMPLIFIED[what]}\n{MANY}")
    with pytest.raises(TollbarError, match=f"more than {MOST_LIKE:,} values of choices"):
        read_family(tmp_path)


def test_more_known_answers_than_any_family_has_are_refused(tmp_path: Path) -> None:
    answers = '{ file = "one.json" },' * (MOST_ANSWERS + 1)
    (tmp_path / "family.toml").write_text(f"{A_FAMILY}answers = [{answers}]\n")
    with pytest.raises(TollbarError, match="1,001 known answers of all choices; the limit is 1,000"):
        read_family(tmp_path)


# What is written into a file of a known answer, or makes it, and what the error must name.
ANSWERS: Mapping[str, tuple[str | Callable[[Path], object], str]] = {
    "a pipe": (os.mkfifo, "it is a pipe"),
    "an endless device": (lambda path: path.symlink_to("/dev/zero"), "it is a device"),
    "nothing": (lambda path: None, "No such file"),
    "too long": ('{"is": "' + "a" * (64 << 10) + '"}', "it is larger than 65,536 bytes"),
    "no JSON": ("{", "one.json: not JSON"),
    "deep": ("[" * 60_000, "at most 1,000 values"),
    "nested": ('{"a":' * 900, "one.json: not JSON"),
    "a list": ("[]", "valid dictionary"),
    "a number": ('{"is": 7}', "`is`: Input should be a valid string"),
    "a long number": ('{"is": "a", "x": ' + "9" * 5_000 + "}", "one.json: not JSON"),
    "another file": ('{"file": "one.json"}', "a known answer needs `is`"),
    "an escape": ('{"is": "\\u001b[2J"}', "control character U+001B"),
}


@pytest.mark.parametrize("what", ANSWERS)
def test_whatever_the_file_of_an_answer_is_it_is_one_line(what: str, tmp_path: Path) -> None:
    content, words = ANSWERS[what]
    (tmp_path / "answers").mkdir()
    path = tmp_path / "answers" / "one.json"
    path.write_text(content) if isinstance(content, str) else content(path)
    (tmp_path / "family.toml").write_text(A_FAMILY + 'answers = [{ file = "one.json" }]\n')
    with pytest.raises(TollbarError) as caught:
        read_family(tmp_path)
    assert words in str(caught.value)
    assert 1 == len(str(caught.value).splitlines())


@pytest.mark.parametrize("name", ["/dev/zero", "..", "a\\u0000b", "pipe.pem", "large.pem"])
def test_whatever_the_file_of_a_key_is_it_is_one_line(name: str, tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()
    os.mkfifo(tmp_path / "keys" / "pipe.pem")
    (tmp_path / "keys" / "large.pem").write_text("a" * 20_000)
    (tmp_path / "family.toml").write_text(f'{A_FAMILY}key = "{name}"\n')
    with pytest.raises(TollbarError, match=r"cannot be |control") as caught:
        read_family(tmp_path)
    assert 1 == len(str(caught.value).splitlines())


def test_more_settings_than_any_family_has_are_refused(tmp_path: Path) -> None:
    """To judge a run with nine thousand took minutes."""
    many = "".join(f'[setting.s{number}]\ntitle = "t"\nvalues = ["a"]\ndefault = "a"\n' for number in range(201))
    (tmp_path / "family.toml").write_text(A_FAMILY + many)
    with pytest.raises(TollbarError, match="at most 200 items"):
        read_family(tmp_path)


def test_more_choices_of_a_part_than_any_has_are_refused(tmp_path: Path) -> None:
    many = ", ".join(f'"q{number}*"' for number in range(201))
    part = f'[part.p]\ntitle = "t"\nfamily = "digest"\nchoices = [{many}]\ndefault = "md5"\n'
    (tmp_path / "family.toml").write_text(A_FAMILY + part)
    with pytest.raises(TollbarError, match="at most 200 items"):
        read_family(tmp_path)


def test_more_operations_than_any_family_has_are_refused(tmp_path: Path) -> None:
    many = ", ".join(f'"o{number}"' for number in range(101))
    (tmp_path / "family.toml").write_text(A_FAMILY.replace('"hash"', many))
    with pytest.raises(TollbarError, match="at most 100 items"):
        read_family(tmp_path)
