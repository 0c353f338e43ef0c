"""The families' data: every family can be read, every standing names its authority, every answer is right."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path

import pytest

from family_text import A_FAMILY, A_VALUE, as_a_study_writes_it
from test_runners import FAMILIES
from tollbar.catalog import libraries, servers
from tollbar.catalog.families import (
    Authority,
    Choice,
    Degree,
    Family,
    MadeOf,
    Mitigation,
    Setting,
    SettingValue,
    Standing,
    Value,
    families,
    read_family,
)
from tollbar.catalog.runners import all_platforms

NAMES = [
    "cipher",
    "database-sign-on",
    "defaults",
    "digest",
    "key-exchange",
    "mac",
    "password-hash",
    "rsa-api",
    "signature",
    "spin",
    "stack",
    "storage",
    "tls",
    "tls-client",
    "tls-defaults",
    "web-auth",
]

# These families have no strength in bits: a spin protects nothing, a password hash sets the cost of a guess; the
# strength of a library's defaults and of a client's contexts is in `tls`.
WITHOUT_STRENGTH = {"database-sign-on", "defaults", "spin", "password-hash", "tls-client", "tls-defaults", "web-auth"}

# A protocol is as strong as the negotiated settings: the strengths are those of the settings' values.
STRENGTH_IN_SETTINGS = {"stack", "tls"}

# Two connections never agree on the same secrets, so both sides' negotiated parameters are the proof. A value is
# encrypted with a new nonce each time, so reading it back is the proof.
WITHOUT_ANSWERS = {"database-sign-on", "defaults", "stack", "tls", "tls-client", "tls-defaults", "web-auth", "storage"}

# Names of null choices other than `none`.
NULLS = {
    "database-sign-on": "trust",
    "stack": "bare",
    "tls": "plaintext",
    "tls-defaults": "plaintext",
    "web-auth": "anonymous",
    "storage": "plaintext",
}


def complaints(choice: Choice, *, strength: bool = True, answer: bool = True) -> list[str]:
    """Return the facts that a choice is missing."""
    if choice.standing is Standing.NULL:
        return [] if choice.strength is None and not choice.authority else ["a null choice claims something"]
    lacks = [] if choice.authority else ["a standing without an authority"]
    lacks += flaws(choice.authority)
    lacks += [] if choice.answers or not answer else ["no known answer"]
    lacks += [] if choice.spec and choice.year else ["no spec or no year"]
    if strength:
        lacks += [] if choice.strength is not None and choice.strength_from else ["no strength, or no source for it"]
    return lacks


def flaws(authorities: Sequence[Authority]) -> list[str]:
    """Return the facts that the authorities themselves are missing."""
    return [
        f"an authority without {name}"
        for a in authorities
        for name in ("by", "where", "says", "seen")
        if not getattr(a, name)
    ]


def complaints_of_value(value: SettingValue) -> list[str]:
    """Return the facts that a setting's value is missing."""
    lacks = flaws(value.authority)
    if value.standing is not None and not value.authority:
        lacks.append("a standing without an authority")
    if value.strength is not None and not value.strength_from:
        lacks.append("no source for its strength")
    if value.strength is not None and value.standing is None:
        lacks.append("a strength without a standing")
    if value.standing is None and not value.mitigates:
        lacks.append("nothing said")
    return lacks


def all_values() -> Iterator[tuple[Family, Setting, SettingValue]]:
    """Yield every described value of every setting."""
    for family in families().values():
        for setting in family.settings.values():
            # Values of a composed family are described by its members.
            for value in () if isinstance(family, MadeOf) else setting.about.values():
                yield family, setting, value


def all_choices() -> Iterator[tuple[Family, Choice]]:
    """Yield every choice of every family."""
    return ((family, choice) for family in families().values() for choice in family.choices.values())


def test_every_family_reads() -> None:
    expected = NAMES
    assert expected == sorted(families())
    for family in families().values():
        assert family.title
        assert family.operations
        nulls = [choice.name for choice in family.choices.values() if choice.standing is Standing.NULL]
        expected = [NULLS.get(family.name, "none")]
        assert expected == nulls


@pytest.mark.parametrize("name", NAMES)
def test_every_choice_says_what_it_rests_on(name: str) -> None:
    strength, answer = name not in WITHOUT_STRENGTH | STRENGTH_IN_SETTINGS, name not in WITHOUT_ANSWERS
    found = {c.name: complaints(c, strength=strength, answer=answer) for c in families()[name].choices.values()}
    assert not {choice: lacks for choice, lacks in found.items() if lacks}


def test_a_standing_without_authority_is_found(tmp_path: Path) -> None:
    path = tmp_path / "family.toml"
    path.write_text(A_FAMILY)
    assert "a standing without an authority" in complaints(read_family(tmp_path).choices["md5"])


@pytest.mark.parametrize("name", NAMES)
def test_every_value_says_what_it_rests_on(name: str) -> None:
    found = {
        f"{setting.name} {value.name}": complaints_of_value(value)
        for family, setting, value in all_values()
        if family.name == name
    }
    assert not {value: lacks for value, lacks in found.items() if lacks}


def test_a_value_with_a_standing_without_authority_is_found(tmp_path: Path) -> None:
    path = tmp_path / "family.toml"
    path.write_text(A_FAMILY + 'mitigates = { collision = "no" }\n' + A_VALUE)
    value = read_family(tmp_path).settings["length"].about["short"]
    assert "a standing without an authority" in complaints_of_value(value)


def defaults(family: Family, choice: Choice, **given: str) -> dict[str, str | int]:
    """Return a cell's coordinates: the choice, its first operation, and its settings at their defaults."""
    coordinates: dict[str, str | int] = {"choice": choice.name, "op": family.operations[0]}
    for name, setting in family.settings.items():
        if setting.applies(coordinates):
            coordinates[name] = given.get(name, setting.default)
    return coordinates


def test_every_cell_has_a_standing() -> None:
    order = [
        Standing.REFERENCE,
        Standing.BROKEN,
        Standing.DISALLOWED,
        Standing.DEPRECATED,
        Standing.ACCEPTABLE,
        Standing.RECOMMENDED,
        Standing.NULL,
    ]
    for family, choice in all_choices():
        found = family.standing_of(defaults(family, choice))
        assert order.index(found) <= order.index(choice.standing)
        assert (found is Standing.NULL) == (choice.standing is Standing.NULL)


def test_every_family_has_its_strengths_somewhere() -> None:
    for family, choice in all_choices():
        if choice.standing is not Standing.NULL and family.name not in WITHOUT_STRENGTH:
            assert family.strength_means, family.name
            assert family.strength_of(defaults(family, choice)) is not None, f"{family.name}: {choice.name}"


# Cells of TLS with their standing and strength in bits.
TLS_CELLS = {
    ("tls-1.3", "ecdsa-p256", "x25519mlkem768"): (Standing.RECOMMENDED, 128),
    ("tls-1.3", "ml-dsa-87", "mlkem1024"): (Standing.ACCEPTABLE, 128),
    ("tls-1.3", "ecdsa-p384", "secp384r1mlkem1024"): (Standing.ACCEPTABLE, 128),
    ("tls-1.3", "ecdsa-p256", "x25519"): (Standing.ACCEPTABLE, 128),
    ("tls-1.2", "rsa-2048", "ecdhe-p256"): (Standing.ACCEPTABLE, 112),
    ("tls-1.2", "rsa-3072", "rsa"): (Standing.DISALLOWED, 128),
    ("tls-1.2", "rsa-1024", "ecdhe-p256"): (Standing.DISALLOWED, 80),
    ("tls-1.2", "rsa-3072", "dhe"): (Standing.DISALLOWED, 112),
}


@pytest.mark.parametrize("cell", TLS_CELLS, ids=" ".join)
def test_a_cell_has_the_standing_of_its_worst_part(cell: tuple[str, str, str]) -> None:
    family = families()["tls"]
    choice, certificate, key_exchange = cell
    given = {"certificate": certificate, "key-exchange": key_exchange}
    coordinates = defaults(family, family.choices[choice], **given)
    assert TLS_CELLS[cell] == (family.standing_of(coordinates), family.strength_of(coordinates))


@pytest.mark.parametrize("cell", TLS_CELLS, ids=" ".join)
def test_what_lowers_a_standing_is_named(cell: tuple[str, str, str]) -> None:
    """A setting lowers it if its value has the cell's standing and the choice alone is better."""
    family = families()["tls"]
    choice, certificate, key_exchange = cell
    given = {"certificate": certificate, "key-exchange": key_exchange}
    coordinates = defaults(family, family.choices[choice], **given)
    standing, _ = TLS_CELLS[cell]
    by = family.lowered_by(coordinates)
    if family.choices[choice].standing is standing:
        assert by is None
    else:
        assert by is not None
        assert standing is family.settings[by].about[str(coordinates[by])].standing


def test_a_default_keeps_no_choice_out_of_good_standing() -> None:
    """Otherwise every value of that setting is as bad."""
    good = (Standing.RECOMMENDED, Standing.ACCEPTABLE)
    for family, choice in all_choices():
        coordinates = defaults(family, choice, **({"transport": "tls"} if family.name == "web-auth" else {}))
        if choice.standing in good and family.standing_of(coordinates) not in good:
            by = family.lowered_by(coordinates)
            assert by is not None
            values = family.settings[by].values or ()
            better = [value for value in values if family.standing_of({**coordinates, by: value}) in good]
            assert [] == better, (family.name, choice.name, by)


def test_plaintext_protects_nothing() -> None:
    family = families()["tls"]
    coordinates = defaults(family, family.null)
    assert Standing.NULL == family.standing_of(coordinates)
    assert family.strength_of(coordinates) is None
    assert {threat: Mitigation(Degree.NO) for threat in family.threats} == family.mitigations_of(coordinates)


def test_a_value_has_its_own_word_on_a_threat() -> None:
    family = families()["tls"]
    coordinates = defaults(family, family.choices["tls-1.2"])
    key_theft = {
        name: family.mitigations_of({**coordinates, **changed})["key-theft"].degree
        for name, changed in {
            "x25519": {},
            "rsa": {"key-exchange": "rsa"},
            "ticket": {"resumption": "ticket"},
            "ticket in TLS 1.3": {"resumption": "ticket", "choice": "tls-1.3"},
        }.items()
    }
    expected = {
        "x25519": Degree.YES, "rsa": Degree.NO, "ticket": Degree.PARTLY, "ticket in TLS 1.3": Degree.YES,
    }  # fmt: skip
    assert expected == key_theft
    hybrid = {**coordinates, "choice": "tls-1.3", "key-exchange": "x25519mlkem768"}
    assert Mitigation(Degree.YES) == family.mitigations_of(hybrid)["harvest-now-decrypt-later"]
    mutual = {**coordinates, "client-certificate": "ecdsa-p256"}
    assert Mitigation(Degree.YES) == family.mitigations_of(mutual)["client-impersonation"]
    assert Mitigation(Degree.NO) == family.mitigations_of(coordinates)["client-impersonation"]


def test_what_is_partly_mitigated_says_when() -> None:
    for family, choice in all_choices():
        for one in family.mitigations_of(defaults(family, choice)).values():
            assert (one.degree is Degree.PARTLY) == bool(one.condition)
    family = families()["tls"]
    given = {"key-exchange": "dhe", "dh-parameters": "modp-1024", "cipher": "aes-128-cbc"}
    given["mac-order"] = "mac-then-encrypt"
    both = family.mitigations_of(defaults(family, family.choices["tls-1.2"], **given))["eavesdropping"]
    assert Degree.PARTLY == both.degree
    assert "Logjam" in (both.condition or "")
    assert "Lucky Thirteen" in (both.condition or "")
    given["mac-order"] = "encrypt-then-mac"
    other = family.mitigations_of(defaults(family, family.choices["tls-1.2"], **given))["eavesdropping"]
    assert "Lucky Thirteen" not in (other.condition or "")


def test_only_operations_that_repeat_themselves_have_answers() -> None:
    signature = families()["signature"].choices["ed25519"]
    assert () == signature.answers_of("generate-key")
    assert signature.answers == signature.answers_of("sign")


@pytest.mark.parametrize(("written", "expected"), [("0 %", 0), ("50 %", 50), ("100 %", 100)])
def test_shares_are_whole_percents(written: str, expected: int) -> None:
    assert expected == families()["tls"].settings["resumed"].read(written)


@pytest.mark.parametrize("written", [50, "50", "101 %", "0.5 %", "half"])
def test_what_is_no_share_is_refused(written: str | int) -> None:
    with pytest.raises(ValueError, match="%"):
        families()["tls"].settings["resumed"].read(written)


def test_choices_of_a_family_have_titles_of_their_own() -> None:
    for family in families().values():
        titles = [choice.title for choice in family.choices.values()]
        assert len(titles) == len(set(titles)), family.name


def test_defaults_are_among_the_values() -> None:
    for family in families().values():
        for setting in family.settings.values():
            assert setting.default == setting.read(as_a_study_writes_it(setting, setting.default)), setting.name


def known(family: Family, coordinate: str) -> list[str]:
    """Return the values that a coordinate may have, with an empty one if it may be absent."""
    if coordinate == "provider":
        return ["libcrypto", *libraries.built_in(), "runner:./mine", *all_platforms()]
    if coordinate == "server":
        return ["", *servers.all_servers()]
    if coordinate == "threads":
        return ["", "2"]
    if coordinate in ("choice", "op"):
        return [*(family.choices if coordinate == "choice" else family.operations)]
    setting = family.settings[coordinate]
    return [str(value) for value in setting.values or ()] + ([""] if setting.only else [])


def test_settings_apply_to_something() -> None:
    for family in families().values():
        for setting in family.settings.values():
            for coordinate, patterns in setting.only.items():
                for pattern in patterns:
                    there = known(family, coordinate)
                    assert any(fnmatch(name, pattern) for name in there), f"{family.name}: {setting.name}"


LOW_LEVEL, EVP = {"call": "low-level"}, {"call": "evp"}
# Coordinates at which settings have a meaning: family, setting, provider, other settings.
APPLIES: list[tuple[str, str, str, dict[str, str], bool]] = [
    ("digest", "cpu", "libcrypto", {}, True),
    ("digest", "cpu", "libcrypto:/opt/lib/libcrypto.so.3", {}, True),
    ("digest", "cpu", "runner:./mine", {}, True),
    ("digest", "cpu", "node", {}, False),
    ("digest", "lookup", "node", {}, True),
    ("digest", "lookup", "runner:./mine", {}, False),
    ("signature", "key", "python:pycryptodome", {}, True),
    ("signature", "key", "aws-lc", {}, False),
    ("rsa-api", "call", "libcrypto:psycopg", {}, True),
    ("rsa-api", "call", "go", {}, False),
    ("rsa-api", "context", "libcrypto", EVP, True),
    ("rsa-api", "context", "go", {}, False),
    ("rsa-api", "digest", "libcrypto", EVP, True),
    ("rsa-api", "digest", "libcrypto", LOW_LEVEL, False),
    ("rsa-api", "digest", "go", {}, True),
]


@pytest.mark.parametrize(("name", "setting", "provider", "others", "applies"), APPLIES)
def test_a_setting_means_something_where_its_family_says(
    name: str, setting: str, provider: str, others: dict[str, str], applies: bool
) -> None:
    family = families()[name]
    choice = "key-cached" if name == "rsa-api" else "ecdsa-p256" if name == "signature" else "sha-256"
    coordinates = {"choice": choice, "provider": provider, "op": family.operations[-1], **others}
    assert applies is family.settings[setting].applies(coordinates)


# They sign only SHA-256 digests; reusing a hash object in each call is claimed for one class of .NET.
PARTLY = {("signature", "digest"), ("rsa-api", "digest")}


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("platform", list(all_platforms()))
def test_families_and_runners_of_other_platforms_agree(platform: str, name: str) -> None:
    family, (choices, operations, settings) = families()[name], FAMILIES[name]
    assert {*choices} <= {*family.choices}
    for choice, op in itertools.product([*choices, family.null.name], operations):
        assert op in family.operations
        at: dict[str, Value] = {"choice": choice, "provider": platform, "op": op}
        at |= {n: s.default for n, s in family.settings.items() if s.applies(at)}
        # The null signature has no digest; the other null choices have the settings of their neighbours.
        absent = {"digest"} if ("signature", "none") == (name, choice) else set[str]()
        assert {*settings} - absent == {*at} - {"choice", "provider", "op"}
    for setting, values in settings.items():
        allowed = family.settings[setting].values
        assert allowed is None or {*allowed} == {*values} or (name, setting) in PARTLY


def test_settings_stand_behind_those_they_depend_on() -> None:
    """Settings are read in order."""
    for family in families().values():
        before = {"choice", "provider", "server", "op", "threads"}
        for setting in family.settings.values():
            assert set(setting.only) <= before, f"{family.name}: {setting.name}"
            before.add(setting.name)


def test_what_is_said_of_values_applies_somewhere() -> None:
    for family, setting, value in all_values():
        for coordinate, patterns in value.only.items():
            for pattern in patterns:
                there = known(family, coordinate)
                assert any(fnmatch(name, pattern) for name in there), f"{family.name}: {setting.name} {value.name}"


def test_a_family_of_one_s_own_is_called_as_its_folder_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name keeps its `_`, which means `-` only in Tollbar's own folders."""
    text = (families()["spin"].folder / "family.toml").read_text()
    for name in ("of_mine", "web-auth"):
        (tmp_path / "families" / name).mkdir(parents=True)
        (tmp_path / "families" / name / "family.toml").write_text(text)
    monkeypatch.setenv("TOLLBAR_PATH", str(tmp_path))
    found = families()
    assert ("of_mine", False) == (found["of_mine"].name, "of-mine" in found)
    assert "web_auth" == found["web-auth"].folder.name
