"""The families' threats: each choice has a sourced statement on each, and cells follow it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from family_text import A_FAMILY, A_VALUE
from tollbar.catalog.families import Degree, Family, Mitigation, Standing, Value, at_defaults, families, read_family
from tollbar.catalog.families.coordinates import is_one_of
from tollbar.catalog.families.threats import complaints, raised
from tollbar.core.errors import TollbarError

# Families that measure time alone: their choices do not differ in protection.
WITHOUT_THREATS = {"defaults", "rsa-api", "spin", "tls-defaults"}
WITH_THREATS = sorted({*families()} - WITHOUT_THREATS)


@pytest.mark.parametrize("name", WITH_THREATS)
def test_every_choice_says_something_of_every_threat_from_a_source(name: str) -> None:
    """Sources have author, place, date of access, and whether they were read."""
    family = families()[name]
    assert family.threats
    for choice, threat in itertools.product(family.choices.values(), family.threats.values()):
        if choice.standing is not Standing.NULL:
            assert threat.name in choice.mitigates
            found = [one.authority for one in threat.sources if is_one_of(choice.name, one.of)]
            assert found, f"{choice.name}: {threat.name}"
            assert all(one.by and one.where and one.says and one.seen for one in found)


@pytest.mark.parametrize("name", [*families()])
def test_what_a_family_says_of_its_threats_fits_together(name: str) -> None:
    assert not [*complaints(families()[name])]


def cells_of(family: Family) -> Iterator[Mapping[str, Value]]:
    """Yield each choice at its defaults, with every value of every two described settings."""
    told = [(name, value) for name, setting in family.settings.items() for value in setting.about]
    for choice in family.choices:
        for some in itertools.combinations([*told, ("", ""), ("", "")], 2):
            given = {name: value for name, value in some if name}
            yield at_defaults(family, {"choice": choice, **given})


@pytest.mark.share(4)
@pytest.mark.parametrize("name", WITH_THREATS)
def test_a_value_does_more_than_its_choice_only_where_the_family_says_so(name: str) -> None:
    family = families()[name]
    assert not {str(cell): found for cell in cells_of(family) if (found := raised(family, cell))}


@pytest.mark.parametrize("name", WITH_THREATS)
def test_what_a_value_raises_some_choice_does_less_about(name: str) -> None:
    """A name in `raises` is a mistake if every choice already protects as much."""
    family = families()[name]
    order = list(Degree)
    told = [(setting, value) for setting in family.settings.values() for value in setting.about.values()]
    for setting, value in told:
        by_itself = [at_defaults(family, {"choice": choice, setting.name: value.name}) for choice in family.choices]
        for threat in value.raises:
            most = max(order.index(one.degree) for one in value.mitigates[threat])
            done = [family.mitigations_of(c, of_choice=True)[threat] for c in by_itself if setting.name in c]
            assert any(order.index(one.degree) < most for one in done), f"{setting.name} {value.name}: {threat}"


def test_a_condition_that_a_coordinate_settles_follows_the_cell() -> None:
    """With a known key exchange TLS 1.3 says yes or no; otherwise it names the condition."""
    family = families()["tls"]
    threat = "harvest-now-decrypt-later"
    found = {
        key_exchange: family.mitigations_of({"choice": "tls-1.3", "key-exchange": key_exchange})[threat]
        for key_exchange in ("x25519mlkem768", "mlkem1024", "x25519", "ecdhe-p256")
    }
    post_quantum = {"x25519mlkem768": Degree.YES, "mlkem1024": Degree.YES}
    expected = {**post_quantum, "x25519": Degree.NO, "ecdhe-p256": Degree.NO}
    assert expected == {name: one.degree for name, one in found.items()}
    unsettled = family.mitigations_of({"choice": "tls-1.3"})[threat]
    assert Mitigation(Degree.PARTLY, "with a post-quantum key exchange") == unsettled


@pytest.mark.parametrize(
    ("persistence", "expected"), [("request", Degree.PARTLY), ("connection", Degree.PARTLY), ("session", Degree.NO)]
)
def test_a_ticket_with_each_request_is_not_replayed_as_a_cookie_is(persistence: str, expected: Degree) -> None:
    """Kerberos' protection against replay depends on the proof of later requests."""
    family = families()["web-auth"]
    cell = {"choice": "kerberos", "persistence": persistence, "transport": "clear"}
    assert expected == family.mitigations_of(cell)["replay"].degree


THREAT = '[threat.collision]\ntitle = "two messages with one hash"\n'
# The statement on the one threat, the rest of the file, and words of the error.
BAD_STATEMENTS = {
    "a raise without leave": (
        'mitigates = { collision = "no" }',
        A_VALUE + 'mitigates = { collision = "yes" }\n',
        "`setting.length.value.short.mitigates.collision`: cannot be more than `choice.md5` has",
    ),
    "a raise of nothing": (
        'mitigates = { collision = "no" }',
        A_VALUE + 'raises = ["collision"]\n',
        "`setting.length.value.short.raises`",
    ),
    "a source of no choice": (
        'mitigates = { collision = "no" }',
        THREAT + 'authority = [{ of = ["md4"], by = "x", where = "y", says = "z", seen = 2026-11-22 }]\n',
        "`threat.collision.authority.of`: no such choice: `md4`",
    ),
    "an unknown coordinate": (
        'mitigates = { collision = [{ is = "yes", when = { lenght = ["short"] } }, { is = "no" }] }',
        A_VALUE,
        "`choice.md5.mitigates.collision.when`: the family has no setting `lenght`",
    ),
    "no last statement": (
        'mitigates = { collision = [{ is = "yes", when = { length = ["short"] } }] }',
        A_VALUE,
        "only the last case must have no `when`",
    ),
    "two things at once": (
        'mitigates = { collision = [{ is = "yes", partly = "at times" }] }',
        A_VALUE,
        "must have either `is` or `partly`",
    ),
}


@pytest.mark.parametrize("fault", BAD_STATEMENTS)
def test_a_statement_that_does_not_fit_is_refused(fault: str, tmp_path: Path) -> None:
    choice, rest, words = BAD_STATEMENTS[fault]
    (tmp_path / "family.toml").write_text(A_FAMILY + choice + "\n" + rest)
    with pytest.raises(TollbarError) as caught:
        read_family(tmp_path)
    assert words in caught.value.what
    assert "\n" not in caught.value.what


def test_a_value_may_raise_what_it_names(tmp_path: Path) -> None:
    text = A_FAMILY + 'mitigates = { collision = "no" }\n' + A_VALUE + 'mitigates = { collision = "yes" }\n'
    (tmp_path / "family.toml").write_text(text + 'raises = ["collision"]\n')
    cell = {"choice": "md5", "length": "short"}
    assert Mitigation(Degree.YES) == read_family(tmp_path).mitigations_of(cell)["collision"]
    (tmp_path / "family.toml").write_text(text)
    kept = read_family(tmp_path, with_answers=False)
    assert Mitigation(Degree.YES) == kept.mitigations_of(cell)["collision"]
