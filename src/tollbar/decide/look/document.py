"""`tollbar ask tls --url URL --json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Annotated, NamedTuple

from tollbar.decide.look.looked import Looked
from tollbar.decide.look.offered import CHOICE
from tollbar.decide.look.pasted import pasted
from tollbar.lab.tls.code_points import Group, Scheme, Suite
from tollbar.report.blocks import Brief
from tollbar.report.json_forms.form import Document, Form, Number, Values, high_of, low_of, of


class LookReasonForm(Form):
    what: str
    policy: str | None
    rule: Annotated[str | None, of("rule.id")]
    clause: Annotated[str | None, of("rule.clause")]


class OfferedForm(Form):
    value: str
    title: str
    version: Annotated[str | None, of(lambda one: None if one.setting == CHOICE else one.version)]
    standing: str | None
    because: str | None
    ruling: str
    broken: list[LookReasonForm]
    missing: list[LookReasonForm]


class FactForm(Form):
    fact: Annotated[str, of("title")]
    setting: str
    ruling: Annotated[str | None, of(lambda fact: fact.ruling if fact.is_ruled_on else None)]
    offered: list[OfferedForm]


class ChangeForm(Form):
    setting: str
    change: Annotated[str, of("words")]
    needed: Annotated[bool, of("is_needed")]
    op: Annotated[str | None, of("pair.op")]
    before: Annotated[Values | None, of("pair.before")]
    after: Annotated[Values | None, of("pair.after")]
    server: str | None
    ratio: Annotated[Number, of("toll.ratio.estimate")]
    low: Annotated[Number, low_of("toll.ratio")]
    high: Annotated[Number, high_of("toll.ratio")]
    noisy: Annotated[bool | None, of("toll.ratio.is_noisy")]
    verdict: Annotated[str | None, of("toll.verdict")]
    free_for: str | None
    unpriced: str | None


class CertificateForm(Form):
    kind: str
    subject: str
    issuer: str
    ends: date | None


class _LookAnswer(NamedTuple):
    found: Looked
    words: Brief


class LookDocument(Document):
    question: Annotated[str, of("words.question")]
    """the question in words"""
    headline: Annotated[str, of("words.headline")]
    """the answer in one line"""
    url: Annotated[str, of("found.look.remote.name")]
    """the server"""
    server: Annotated[str | None, of("found.look.server")]
    """the name that the server gives itself, such as `nginx`"""
    policies: Annotated[list[str], of(lambda answer: [one.name for one in answer.found.wanted.policies])]
    """the policies that it is compared with; without one standings decide"""
    on: Annotated[date, of("found.on")]
    """the day that is judged"""
    breaks: Annotated[bool, of("found.breaks")]
    """whether a fact breaks a policy: the status is then 1"""
    facts: Annotated[list[FactForm], of("found.facts")]
    """each kind of value (`fact`, of the family's `setting`) with its `ruling`, null without a rule on it, and the
    `offered` values: the newest `version` that has it, its standing, and the rules that it has `broken`, or that are
    `missing` something"""
    changes: Annotated[list[ChangeForm], of("found.changes")]
    """each change: whether a policy needs it (`needed`), the cells `before` and `after` it, the `ratio` of their server
    CPU on a `server` of this machine with its interval and `verdict`; `free_for`: the clients for which nothing
    changes; `unpriced`: the reason for a missing price"""
    suites: Annotated[dict[str, list[str]], of(lambda answer: _names(answer.found.look.suites))]
    """the accepted suites by version, by OpenSSL's names, in the order in which the server selects them; of versions
    before TLS 1.2 next to newer ones the first alone"""
    own_order: Annotated[dict[str, bool], of("found.look.prefers")]
    """by version whether that order is the server's own"""
    groups: Annotated[dict[str, list[str]], of(lambda answer: _names(answer.found.look.groups))]
    """the accepted groups by version, by OpenSSL's names"""
    signatures: Annotated[dict[str, list[str]], of(lambda answer: _names(answer.found.look.schemes))]
    """the signature schemes of the server's proofs by version"""
    certificates: Annotated[list[CertificateForm], of("found.look.certificates")]
    """the different certificates: kind of key, common names of subject and issuer, last day"""
    unverified: Annotated[str | None, of("found.look.unverified")]
    """why this machine's authorities do not verify the certificate; null: they do"""
    resumption: Annotated[dict[str, list[str]], of("found.look.resumes")]
    """the ways to resume a session by version: `ticket`, `session-id`"""
    connections: Annotated[int, of("found.look.connections")]
    """the number of connections that the look made"""
    doubts: Annotated[list[str], of("found.look.doubts")]
    """answers that leave a part unknown: the status is then 3, unless a fact breaks a policy"""
    paste: Annotated[dict[str, str], of(lambda answer: dict(pasted(answer.found.approved)))]
    """the lines for each server's configuration that offer approved values alone"""
    run: Annotated[str | None, of(lambda answer: str(answer.found.run) if answer.found.run else None)]
    """the directory of the measurements; null: nothing was measured"""


def document(found: Looked, words: Brief) -> LookDocument:
    """Return the document of a look."""
    return LookDocument.read(_LookAnswer(found, words))


def _names(by_version: Mapping[str, Sequence[Suite | Group | Scheme]]) -> Mapping[str, list[str]]:
    return {version: [one.name for one in some] for version, some in by_version.items()}
