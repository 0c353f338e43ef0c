"""Inventories: any file is read, or refused in one line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from test_inventory import algorithm, asset, made
from tollbar.core import spelling
from tollbar.core.errors import TollbarError
from tollbar.decide import price
from tollbar.decide.price import facts, keys, limits, mapping, parts, texts
from tollbar.decide.price.inventory import parse
from tollbar.decide.price.mapping import mapped


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is an empty file; it must be JSON"),
        (b'{"bomFormat": "CycloneDX", "specVersion": "1.6", "components": [{"na', "ends too early"),
        (b'<?xml version="1.0"?><bom xmlns="http://cyclonedx.org/schema/bom/1.6"/>', "XML"),
        (b"\xff\xfe\x00", "is not UTF-8"),
        (b"[1]", "not CycloneDX"),
        (b'{"spdxVersion": "SPDX-2.3"}', "SPDX document"),
        (b'{"bomFormat": "CycloneDX", "specVersion": "1.4"}', "CycloneDX 1.4"),
        (b'{"bomFormat": "CycloneDX", "specVersion": 1.6}', "`specVersion` is the number 1.6"),
        (b"[" * 200_000, "not CycloneDX"),
        (b'{"x": ' + b"[" * 200_000, "nested too deeply"),
        (b'{"bomFormat": "CycloneDX", "version": ' + b"9" * 5000 + b"}", "without `specVersion`"),
        (b"\0" * 100, "is a binary file; it must be JSON"),
        (b"\x1f\x8b\x08\x00", "compressed by gzip"),
        (
            b'{"bomFormat": "CycloneDX", "specVersion": "1.6", "components": ["x"]}',
            "`components\\[0\\]`: Expected 'object'",
        ),
        (b'{"bomFormat": "CycloneDX", "specVersion": "1.6", "x": "\xff"}', "is not UTF-8"),
    ],
)
def test_what_is_no_inventory_is_said_in_one_line(content: bytes, said: str) -> None:
    with pytest.raises(TollbarError, match=said) as raised:
        parse(content, Path("cbom.json"))
    assert "cbom.json" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_BYTES", 1024 * 1024)
    (tmp_path / "large.json").write_bytes(b" " * (1024 * 1024 + 1))
    with pytest.raises(TollbarError, match="larger than 1 MiB"):
        price.read(tmp_path / "large.json")


def test_hostile_texts_are_shown_without_what_a_terminal_obeys() -> None:
    """Control characters, marks that reverse a line, and endless names; a fault is in its row."""
    name = "AES-128-GCM\x1b[2J\u202e\n| <script>`" + "x" * 100_000
    read = made(
        algorithm(name),
        {"type": "cryptographic-asset", "name": "bad", "cryptoProperties": {"assetType": 7, "oid": {}}},
        {"type": "cryptographic-asset", "name": "bare"},
        {"type": "cryptographic-asset", "name": "new", "cryptoProperties": {"assetType": "hologram"}},
        {"type": "library"},
    )
    first, bad, bare, new = read.assets
    assert 80 >= len(first.name)
    assert not {"\x1b", "\u202e", "\n", "`"} & {*first.name}
    assert 1 == read.others
    reasons = [one.reason for one in mapped(read)]
    assert "oid" in str(bad.fault)
    assert str(bare.fault) in str(reasons[2])
    assert "hologram" == new.kind
    assert "do not have" in str(reasons[3])


def test_components_are_found_however_deep_they_nest() -> None:
    nested: dict[str, Any] = {"name": "leaf", "components": [algorithm("SHA-256")]}
    for number in range(300):
        nested = {"name": f"part {number}", "components": [nested]}
    read = made(nested)
    assert [("SHA-256", ("leaf",))] == [(one.name, one.places) for one in read.assets]
    assert 301 == read.others


def test_ten_thousand_assets_are_known_by_few_lookups() -> None:
    read = made(*(algorithm("SHA-256" if number % 2 else "MD5", f"r{number}") for number in range(10_000)))
    assert 2 == len({id(one) for one in mapped(read)})


_TEXT = st.text(max_size=30) | st.sampled_from(
    ["RSA", "aes-gcm", "SHA256withRSA", "1.2.840.113549.1.1.1", "tls", "1.3", "r"]
)
_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXT,
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=6,
)
_PROPERTIES = st.dictionaries(
    st.sampled_from(
        [
            *("primitive", "algorithmFamily", "parameterSetIdentifier", "curve", "mode", "padding", "cryptoFunctions"),
            *("type", "version", "cipherSuites", "size", "algorithmRef", "subjectPublicKeyRef"),
            "relatedCryptographicAssets",
        ]
    ),
    _TEXT
    | _ANY
    | st.lists(st.dictionaries(st.sampled_from(["name", "algorithms", "ref", "type", "tlsGroups"]), _TEXT | _ANY)),
    max_size=5,
)
_COMPONENTS = st.fixed_dictionaries(
    {
        "type": st.just("cryptographic-asset"),
        "name": _TEXT | _ANY,
        "cryptoProperties": st.fixed_dictionaries(
            {"assetType": st.sampled_from(["algorithm", "certificate", "protocol", "related-crypto-material"]) | _TEXT},
            optional={
                f"{kind}Properties": _PROPERTIES
                for kind in ("algorithm", "certificate", "protocol", "relatedCryptoMaterial")
            }
            | {"oid": _TEXT | _ANY},
        )
        | _ANY,
    },
    optional={"bom-ref": _TEXT | _ANY, "evidence": st.dictionaries(st.just("occurrences"), _ANY)},
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(_COMPONENTS, max_size=5))
def test_whatever_components_hold_each_is_an_asset_or_none(components: list[object]) -> None:
    read = made(*components)
    assert len(read.assets) + read.others >= len(components)
    for one in mapped(read):
        assert one.uses or one.reason
        assert all(use.coordinates["choice"] in use.family.choices for use in one.uses)


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_whatever_a_file_holds_it_is_an_inventory_or_one_line(content: bytes) -> None:
    try:
        parse(content, Path("cbom.json"))
    except TollbarError as error:
        assert "\n" not in str(error)


def key(name: str, *refers: str, **more: object) -> dict[str, object]:
    related = [{"type": "algorithm", "ref": one} for one in refers]
    return asset(name, "related-crypto-material", name, type="public-key", relatedCryptographicAssets=related, **more)


def certificate(name: str, *keys: str) -> dict[str, object]:
    related = [{"type": "publicKey", "ref": one} for one in keys]
    return asset(name, "certificate", name, relatedCryptographicAssets=related)


def test_each_asset_that_others_refer_to_is_followed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Certificates, keys and algorithms of which each refers to all of the next kind: their product is not walked."""
    names = {kind: [f"{kind}{number}" for number in range(60)] for kind in "cka"}
    looked: list[str] = []

    class Counted(dict[str, parts.Asset]):
        def get(self, reference: str, default: object = None) -> Any:
            looked.append(reference)
            return super().get(reference)

    read = made(
        *(certificate(name, *names["k"]) for name in names["c"]),
        *(key(name, *names["a"]) for name in names["k"]),
        *(algorithm("RSA-2048", name) for name in names["a"]),
    )
    mapped(replace(read, by_reference=Counted(read.by_reference)))
    assert 2 * 60 * 60 == len(looked)


def test_a_certificate_is_what_its_keys_and_their_algorithms_say() -> None:
    read = made(
        certificate("c", "k1", "k2"), key("k1", "a1"), key("k2", size=2048), algorithm("RSA", "a1", padding="pss")
    )
    said = texts.texts_of(read.assets[0], texts.Followed(read))
    assert {"name": "RSA", "size": "2048", "padding": "pss", "type": "public-key", "kind": "certificate"} == said


def test_references_in_a_circle_end() -> None:
    read = made(*(key(f"k{number}", f"k{(number + 1) % 100}") for number in range(100)), certificate("c", "c", "k1"))
    assert 101 == len(mapped(read))


@pytest.mark.parametrize(
    ("limit", "most", "components"),
    [
        ("MOST_ASSETS", 3, [algorithm("MD5")] * 4),
        (
            "MOST_ASSETS",
            3,
            [asset("p", "protocol", cipherSuites=[{"name": "s", "tlsGroups": ["a", "b"]}] * 2)],
        ),
        ("MOST_COMPONENTS", 3, [{"name": "library"}] * 4),
        ("MOST_COMPONENTS", 3, [{"components": [{"components": [{"components": [{}]}]}]}]),
        ("MOST_REFERENCES", 3, [certificate("c", "a", "b", "c", "d")]),
        (
            "MOST_PLACES",
            3,
            [
                asset("p", "protocol", cipherSuites=[{"name": "s"}] * 2)
                | {"evidence": {"occurrences": [{"location": x} for x in "ab"]}}
            ],
        ),
        ("MOST_PLACES", 3, [algorithm("MD5") | {"evidence": {"occurrences": [{"location": x} for x in "abcd"]}}]),
    ],
)
def test_more_than_a_limit_is_refused_in_one_line(
    limit: str, most: int, components: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, limit, most)
    with pytest.raises(TollbarError, match="more than 3 ") as raised:
        made(*components)
    assert ("cbom.json", True) == (raised.value.where, bool(raised.value.hint))


def test_more_different_assets_than_can_be_looked_at_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapping, "MOST_DIFFERENT", 3)
    assert 4 == len(mapped(made(*(algorithm(f"name {number % 3}") for number in range(4)))))
    with pytest.raises(TollbarError, match="more than 3 different assets"):
        mapped(made(*(algorithm(f"name {number}") for number in range(4))))


def test_more_letters_of_different_assets_than_can_be_looked_at_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two thousand assets with a thousand letters each took 7 s."""
    long = [algorithm(f"name {number}", parameterSetIdentifier="x" * 390) for number in range(3)]
    assert 3 == len(mapped(made(*long)))
    monkeypatch.setattr(mapping, "MOST_OF_DIFFERENT", 600)
    assert 6 == len(mapped(made(*long[:2] * 3)))
    with pytest.raises(TollbarError, match="more than 600 letters of different assets"):
        mapped(made(*long))


def _never(*_: object) -> NoReturn:
    raise AssertionError("called")


def test_an_inventory_of_too_many_different_assets_is_refused_before_any_is_mapped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mapping, "MOST_DIFFERENT", 3)
    monkeypatch.setattr(mapping, "Facts", _never)
    with pytest.raises(TollbarError, match="more than 3 different assets"):
        mapped(made(*(algorithm(f"name {number}") for number in range(4))))


def test_certificates_of_many_protocols_are_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up = []

    class Counted(facts.Facts):
        def __init__(self, said: Mapping[str, str]) -> None:
            looked_up.append(said)
            super().__init__(said)

    monkeypatch.setattr(mapping, "Facts", Counted)
    suites = [{"name": "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}]
    front = [
        asset("front", "protocol", type="tls", version="1.2", cipherSuites=suites, cryptoRefArray=["c"])
        for _ in range(50)
    ]
    found = mapped(made(*front, certificate("c", "k"), key("k", "a"), algorithm("RSA-2048", "a")))
    assert 53 == len(found)
    assert {"rsa-2048"} == {use.coordinates["certificate"] for one in found[:50] for use in one.uses}
    assert 4 == len(looked_up)


def test_a_value_that_a_family_does_not_have_is_compared_with_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A suggestion takes a millisecond, and an inventory may have thousands of such values."""
    monkeypatch.setattr(spelling, "nearest", _never)
    suite = {"name": "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "tlsGroups": ["secp999r1"]}
    (found,) = mapped(made(asset("front", "protocol", type="tls", version="1.2", cipherSuites=[suite])))
    assert any("secp999r1" in sentence for use in found.uses for sentence in use.beyond)


def test_an_asset_with_properties_that_are_too_large_has_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_OF_ASSET", 1024 * 1024)
    (one,) = made(algorithm("MD5", x="y" * 1024 * 1024)).assets
    assert ("MD5", "`cryptoProperties`: it is larger than 1 MiB, the limit") == (one.name, one.fault)


def test_a_byte_order_mark_is_passed_over() -> None:
    content = json.dumps({"bomFormat": "CycloneDX", "specVersion": "1.6"}).encode("utf-8-sig")
    assert () == parse(content, Path("cbom.json")).assets


_KEY = st.sampled_from(["name", "type", "x", "\\u006eame", 'a\\"name', "bom-ref"])
_VALUE = st.recursive(
    st.sampled_from(["0", "{}", '"name"', '"a\\\\"', '"{"', '"\\"name\\":1"', "null", '"}"']),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda some: f"[{','.join(some)}]")
        | st.lists(st.tuples(_KEY, inner), max_size=4).map(
            lambda some: "{" + ",".join(f'"{key}" :{value}' for key, value in some) + "}"
        )
    ),
    max_leaves=12,
)


@given(text=_VALUE)
def test_a_key_that_an_object_has_twice_is_found_as_a_reader_of_all_keys_finds_it(text: str) -> None:
    found = []
    json.loads(text, object_pairs_hook=lambda pairs: found.append([key for key, _ in pairs]))
    expected = any(some.count(key) > 1 for some in found for key in ("name", "type", "bom-ref"))
    assert expected is (keys.twice(text.encode(), ["name", "type", "bom-ref"]) is not None)


@pytest.mark.parametrize("unit", ['{"x":{}},', '{"name":0,"type":0,"bom-ref":0},', '{"\\u006e":0},'])
def test_more_keys_than_the_limit_are_refused_in_one_line(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_KEYS", 1_000)
    parse(f'{{"bomFormat":"CycloneDX","specVersion":"1.7","x":[{unit * 100}0]}}'.encode(), Path("cbom.json"))
    with pytest.raises(TollbarError, match=r"cbom.json: has more than 1,000 objects and keys, the limit"):
        parse(f'{{"bomFormat":"CycloneDX","specVersion":"1.7","x":[{unit * 2_000}0]}}'.encode(), Path("cbom.json"))


def test_objects_without_two_keys_that_are_read_count_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_KEYS", 20)
    places = ",".join('{"location":"a.c","line":1}' for _ in range(1_000))
    parse(f'{{"bomFormat":"CycloneDX","specVersion":"1.7","x":[{places}]}}'.encode(), Path("cbom.json"))
