"""Advice on unsupported cells: a setting that their provider supports, found by trying it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from conftest import Tollbar
from tollbar.catalog import libraries
from tollbar.catalog.families import Family, Value, at_defaults, families
from tollbar.catalog.libraries import Provider, open_provider
from tollbar.core.errors import TollbarError
from tollbar.core.records import Outcome, Proof, Record, failed
from tollbar.lab import measure
from tollbar.lab.workloads.instead import settings_instead
from tollbar.study import plan, read
from tollbar.study.plan.cells import Cell

UNSERVED = [one for one in families().values() if not one.servers and one.name not in ("storage", "stack")]
WHY = "this library has no such setting"


def cell_of(family: Family, choice: str, op: str, provider: Provider) -> Cell:
    """Return a choice at all defaults."""
    at = at_defaults(family, {"choice": choice, "provider": provider.spec, "op": op})
    return Cell("s", family.name, family.choices[choice], provider, None, None, at, family.standing_of(at), None, None)


def system() -> Provider:
    found = open_provider("libcrypto")
    assert isinstance(found, Provider)
    return found


@pytest.mark.parametrize("family", UNSERVED, ids=lambda one: one.name)
def test_a_reason_ends_with_the_only_value_that_is_supported(family: Family) -> None:
    provider = Provider("runner:x", "x 1", "runner", None, ("x",), {})
    for choice in list(family.choices)[:2]:
        cell = cell_of(family, choice, family.operations[0], provider)
        for name, value, other in settings_instead(cell):

            def ask(command: object, task: Any, name: str = name, value: Value = value, **_: object) -> Record:
                if task["setting"].get(name) != value:
                    return failed(WHY, Outcome.UNSUPPORTED)
                proof = Proof(answer=task["inputs"].get("expected_hex"), accepted=["one"], refused=["another"])
                return Record(outcome=Outcome.OK, receipt={"provider": "x"}, proof=proof)

            (proven,) = measure.prove([cell], 1, ask=ask)
            assert Outcome.UNSUPPORTED == proven.outcome
            assert f"{WHY}; ask with `{name}={value}`" == proven.reason
            assert other.coordinates[name] == value
            # Values that the study already has are not advised.
            assert WHY == next(measure.prove([cell, other], 1, ask=ask)).reason


def offered() -> Iterator[tuple[Provider, Family, str]]:
    """Yield everything that the providers here offer, family by family."""
    for one in libraries.everything():
        if not isinstance(one, Provider) or one.fault:
            continue
        for family in UNSERVED:
            for choice in family.choices:
                if choice in one.receipt.get("offers", {}).get(family.name, ()):
                    yield one, family, choice


@pytest.mark.share(0)
def test_no_provider_leaves_a_reason_without_its_way_out() -> None:
    tried = 0
    for provider, family, choice in offered():
        for op in family.operations:
            cell = cell_of(family, choice, op, provider)
            (proven,) = measure.prove([cell], 1)
            if proven.outcome is not Outcome.UNSUPPORTED:
                continue
            possible = [
                f"; ask with `{name}={value}`"
                for name, value, other in settings_instead(cell)
                if next(measure.prove([other], 1)).outcome is Outcome.OK
            ]
            assert not possible or (proven.reason or "").endswith(possible[0]), (provider.spec, choice, proven.reason)
            tried += bool(possible)
    assert tried


ASKED = {
    "signature ecdsa-p384 op=sign provider=aws-lc": "digest=sha-384",
    "cipher aes-256-gcm op=encrypt provider=node": "key=fresh",
    "rsa-api key-cached op=sign provider=node": "digest=implicit",
    "rsa-api key-cached op=sign provider=python": "digest=implicit",
}


@pytest.mark.parametrize("words", ASKED)
def test_what_was_asked_for_names_the_words_to_type(words: str, tollbar: Tollbar) -> None:
    provider = words.rpartition("=")[2]
    try:
        (found,), _ = libraries.look_up((provider,))
    except TollbarError as error:
        pytest.skip(str(error))
    if found.fault:
        pytest.skip(found.fault[1])
    done = tollbar("ask", *words.split(), "--for", "1s")
    assert f"ask with `{ASKED[words]}`" in " ".join(done.stdout.split())
    right = tollbar("ask", *words.split(), ASKED[words], "--for", "1s")
    assert 0 == right.returncode, right.stderr
    assert "unsupported" not in right.stdout


def test_a_plan_is_proved_with_advice() -> None:
    """The default digest is not supported by AWS-LC for the curve."""
    text = """
    question  = "?"
    family    = "signature"
    providers = ["aws-lc"]
    choices   = ["ecdsa-p384"]
    baseline  = "ecdsa-p384"
    vary      = { op = ["sign"], digest = ["sha-256", "sha-384"] }
    """
    (planned,) = plan.make([read("some", text, where="some")], seed=1).studies
    reasons = [one.reason or "" for one in measure.prove(planned.cells, 1)]
    assert not any("ask with" in reason for reason in reasons)
