"""Environments: rules with sources for a place of use, and the choice there."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from conftest import Tollbar
from tollbar.catalog import families, policies
from tollbar.catalog.policies import Ruling, check
from tollbar.core.errors import TollbarError
from tollbar.decide.rulings import candidate, wanted


@pytest.mark.parametrize("name", policies.environments())
def test_every_rule_has_a_source_and_known_values(name: str) -> None:
    one = policies.environment(name)
    check(one, name)
    assert one.rules
    assert all(rule.source and rule.clause for rule in one.rules)


@pytest.mark.parametrize(
    ("name", "family", "cell", "ruling"),
    [
        ("public-site", "web-auth", {"choice": "session-cookie", "transport": "tls"}, Ruling.MEETS),
        ("public-site", "web-auth", {"choice": "session-cookie", "transport": "clear"}, Ruling.BREAKS),
        ("public-site", "web-auth", {"choice": "kerberos", "transport": "tls"}, Ruling.BREAKS),
        ("intranet", "web-auth", {"choice": "kerberos", "mechanism": "spnego"}, Ruling.MEETS),
        ("intranet", "web-auth", {"choice": "form"}, Ruling.BREAKS),
        ("single-server", "web-auth", {"choice": "kerberos", "identity": "service"}, Ruling.BREAKS),
        ("server-farm", "web-auth", {"choice": "kerberos", "identity": "service"}, Ruling.MEETS),
        # A rule on the identity of Kerberos' service excludes no other sign-in.
        ("server-farm", "web-auth", {"choice": "session-cookie"}, Ruling.MEETS),
        ("single-server", "web-auth", {"choice": "form"}, Ruling.MEETS),
        ("server-farm", "web-auth", {"choice": "anonymous"}, Ruling.CANNOT_SAY),
        ("server-farm", "tls", {"choice": "tls-1.2", "resumption": "session-id"}, Ruling.BREAKS),
        ("certificate-file", "rsa-api", {"choice": "key-from-store"}, Ruling.BREAKS),
        ("certificate-file", "rsa-api", {"choice": "key-from-parameters"}, Ruling.MEETS),
        ("certificate-store", "rsa-api", {"choice": "key-from-parameters"}, Ruling.BREAKS),
        ("browsers", "web-auth", {"choice": "jwt"}, Ruling.BREAKS),
        ("browsers", "web-auth", {"choice": "form"}, Ruling.MEETS),
        ("services", "web-auth", {"choice": "form"}, Ruling.BREAKS),
        ("services", "web-auth", {"choice": "jwt"}, Ruling.MEETS),
    ],
)
def test_a_choice_suits_its_environment(name: str, family: str, cell: dict[str, str], ruling: Ruling) -> None:
    asked = replace(wanted(family), policies=(policies.environment(name, family),))
    assert ruling is candidate(asked, cell).ruling


def test_a_rule_of_an_environment_is_printed_with_its_source_and_year(tollbar: Tollbar) -> None:
    done = tollbar("choose", "web-auth", "server=httpd", "--environment", "browsers", "--for", "0s")
    rule = "browsers: `no-digest`, below figure 2: few browsers have Digest; source: Performance Comparison: Security"
    assert f"{rule} Design Choices (Priya Dhawan, 2002)." in " ".join(done.stdout.split())


def test_an_unknown_environment_has_the_nearest_name() -> None:
    with pytest.raises(TollbarError) as caught:
        policies.environment("intranets")
    assert "no such environment" in caught.value.what
    assert "intranet" in (caught.value.hint or "")


def test_an_environment_without_rules_on_a_family_is_refused() -> None:
    with pytest.raises(TollbarError, match="no rule for the family digest") as caught:
        policies.environment("intranet", "digest")
    assert "intranet" == caught.value.where
    with pytest.raises(TollbarError) as other:
        policies.environment("intranet", "tls")
    assert "server-farm" in (other.value.hint or "")


def test_the_choice_follows_the_environment(tollbar: Tollbar) -> None:
    words = ["choose", "web-auth", "--for", "0s", "--json"]
    at_home = json.loads(tollbar(*words, "server=httpd", "--environment", "intranet").stdout)
    assert {"kerberos"} == {one["choice"] for place in at_home["places"] for one in place["unpriced"]}
    public = json.loads(tollbar(*words, "--environment", "public-site").stdout)
    choices = {one["choice"] for place in public["places"] for one in place["unpriced"]}
    assert "session-cookie" in choices
    assert not {"kerberos", "digest"} & choices


def test_a_choice_that_another_server_has_is_named(tollbar: Tollbar) -> None:
    done = tollbar("choose", "web-auth", "--for", "0s", "--environment", "intranet")
    assert 1 == done.returncode
    assert "the embedded server has no Kerberos; ask with `server=httpd`" in done.stderr


def test_environments_are_listed(tollbar: Tollbar) -> None:
    said = tollbar("list", "environments", "rsa-api", "--json")
    assert ["certificate-file", "certificate-store"] == [one["environment"] for one in json.loads(said.stdout)]
    assert all(families.family("rsa-api").name in one["families"] for one in json.loads(said.stdout))
