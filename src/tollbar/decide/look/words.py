"""Answer of a look: the policies that the server breaks, its facts with changes and prices, and lines to paste."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date

from tollbar.catalog.families import Standing
from tollbar.catalog.policies import STANDINGS, Rule, Ruling
from tollbar.core.words import capitalised, counted, enumeration, few
from tollbar.decide.look.looked import Looked
from tollbar.decide.look.offered import FACTS, KEY_EXCHANGE, Fact, Offered, version_title
from tollbar.decide.look.pasted import pasted
from tollbar.decide.look.proposed import Change
from tollbar.report.blocks import Brief, Code, Column, Listing, Table, TableCell, numbers, texts
from tollbar.report.numbers import NOISY, bracket, marked, times
from tollbar.report.standings import standing_words

MOST_NAMED = 6
"""Limit of the values that the first sentence names."""
MOST_LETTERS, MOST_IN_RULE = 50, 4
"""Limits of the values of a fact: letters in its line, and names before a rule. The JSON document has all."""
KEYS = (
    "A certificate has one key: an ECDSA key is a new key and a new certificate next to the RSA one, and the server"
    " presents the one that the client accepts."
)
NOTHING_CHANGES = "`none`: clients that stay connected negotiate the same as before."
_UNSEEN = " in the part that could be seen; the rest is unknown"
ML_KEM = "OpenSSL before 3.5 refuses a list with a group of ML-KEM: leave that group out there."


def answer(of: Looked) -> Brief:
    """Return the whole answer in the brief form."""
    # A server without a change needs no lines.
    codes = [Code(server, text) for server, text in pasted(of.approved).items()] if of.changes else []
    listings = [_facts(of), _changes(of), _rules(of), _certificates(of)]
    return Brief(
        f"Which TLS does {of.look.remote.name} accept, and how much does each change cost?",
        _headline(of),
        paragraphs=[*_not_judged(of)],
        how=[*_how(of)],
        listings=[one for one in listings if one is not None],
        notes=[*_notes(of)],
        warnings=of.look.doubts,
        codes=codes,
    )


def _headline(of: Looked) -> str:
    url, facts = of.look.remote.name, counted(len(of.facts), "fact")
    by = enumeration([one.name for one in of.wanted.policies])
    worst = [one.title for fact in of.breaking for one in fact.breaking]
    named = enumeration(few(dict.fromkeys(worst), MOST_NAMED))
    number = len(of.breaking)
    open_ = [one.title for one in of.facts if one.ruling is Ruling.CANNOT_SAY]
    if of.breaks and by:
        said = f"{url} breaks {by} in {number} of {facts}: {named}."
    elif of.breaks:
        said = f"{number} of {facts} of {url} {'is' if number == 1 else 'are'} below acceptable: {named}."
    elif by:
        all_but = f", except that {enumeration(open_)} cannot be decided" if open_ else ""
        said = f"{url} meets {by}{all_but}{_UNSEEN if of.is_incomplete else ''}."
    else:
        said = f"All {facts} of {url} are acceptable or better{_UNSEEN if of.is_incomplete else ''}."
    return " ".join([said, *_prices(of)])


def _prices(of: Looked) -> Iterator[str]:
    """Yield the price of the change that readers ask for first: another key exchange, else the first required one."""
    known = [one for one in of.changes if one.toll is not None and one.toll.ratio is not None]
    exchange = [one for one in known if one.setting == KEY_EXCHANGE and not one.is_needed]
    for one in [*exchange, *sorted(known, key=lambda one: not one.is_needed)][:1]:
        assert one.toll
        assert one.toll.ratio
        ratio = f"{marked(times(one.toll.ratio.estimate), one.toll.ratio.is_noisy)} {bracket(one.toll.ratio)}"
        yield f"{capitalised(one.words)}: {ratio} of server CPU per {_unit(one)}."


def _unit(one: Change) -> str:
    return "connection" if one.pair and one.pair.op == "connect" else "request"


def _facts(of: Looked) -> Listing:
    policy = "policy" if len(of.wanted.policies) == 1 else "policies" if of.wanted.policies else "ruling"
    columns = (Column("fact", names=True), Column("offered"), *texts("standing", leaves=1), Column(policy))
    return Listing("", tables=[Table("", columns, [_fact(one) for one in of.facts])])


def _fact(fact: Fact) -> Sequence[TableCell]:
    standing = _standing(fact)
    return (
        TableCell(fact.title, small="; ".join(_violations(fact)) or None),
        TableCell(_within([*dict.fromkeys(one.title for one in _ordered(fact))])),
        TableCell(standing_words(standing) if standing else "", standing=standing),
        TableCell(fact.ruling.words if fact.is_ruled_on else "no rule", good=_is_good(fact)),
    )


def _changes(of: Looked) -> Listing | None:
    if not of.changes:
        return None
    columns = (
        Column("fact", names=True),
        Column("change", names=True),
        Column("required"),
        *numbers("server CPU"),
        *texts("interval", "on", leaves=1),
    )
    return Listing("Changes", tables=[Table("", columns, [_change(one) for one in of.changes])])


def _change(one: Change) -> Sequence[TableCell]:
    required = TableCell("yes" if one.is_needed else "no")
    named = (TableCell(FACTS[one.setting], small=one.unpriced), TableCell(one.words), required)
    if one.toll is not None and one.toll.ratio is not None:
        ratio = one.toll.ratio
        price = TableCell(marked(times(ratio.estimate), ratio.is_noisy), ratio.estimate)
        return (*named, price, TableCell(bracket(ratio)), TableCell(one.server or ""))
    return (*named, TableCell("none" if one.free_for else ""), TableCell(""), TableCell(""))


def _ordered(fact: Fact) -> Sequence[Offered]:
    """Return the values of a fact, those that break a policy first."""
    return [*fact.breaking, *(one for one in fact.offered if one.ruling is not Ruling.BREAKS)]


def _standing(fact: Fact) -> Standing | None:
    found = [one.standing for one in fact.offered if one.standing is not None]
    return min(found, key=STANDINGS.index, default=None)


def _is_good(fact: Fact) -> bool | None:
    return False if fact.ruling is Ruling.BREAKS else None


def _within(titles: Sequence[str]) -> str:
    """Return as many titles as a line has room for, and the number of the others."""
    most = next((n for n in range(len(titles), 1, -1) if len(", ".join(titles[:n])) <= MOST_LETTERS), 1)
    return ", ".join(few(titles, most))


def _violations(fact: Fact) -> Iterator[str]:
    """Yield the values that break the same rules, or leave them open, with the rules' ids."""
    found: dict[str, list[str]] = {}
    for one in _ordered(fact):
        if one.broken:
            rules = dict.fromkeys(reason.rule.id if reason.rule else reason.what for reason in one.broken)
            found.setdefault(", ".join(rules), []).append(one.title)
        elif one.missing:
            what = (f"{reason.what}{f' ({reason.rule.id})' if reason.rule else ''}" for reason in one.missing)
            found.setdefault(", ".join(dict.fromkeys(what)), []).append(one.title)
    for words, titles in found.items():
        yield f"{enumeration(few(dict.fromkeys(titles), MOST_IN_RULE, spare=1))}: {words}"


def _rules(of: Looked) -> Listing | None:
    reasons = [
        reason for fact in of.facts for one in fact.offered for reason in (*one.broken, *one.missing) if reason.rule
    ]
    said = dict.fromkeys(f"{one.policy}: {_rule_words(one.rule)}." for one in reasons if one.rule)
    return Listing("Rules named above", [*said]) if said else None


def _rule_words(rule: Rule) -> str:
    read = "" if rule.checked else "; clause not read, known from quotations"
    return f"`{rule.id}`, {rule.clause}{read}"


def _certificates(of: Looked) -> Listing:
    found = [
        f"{one.title}{f', for {one.subject}' if one.subject else ''}{f', issued by {one.issuer}' if one.issuer else ''}"
        f"{_validity(one.ends, of.wanted.today)}."
        for one in of.look.certificates
    ]
    bad = of.look.unverified
    verified = (
        f"The authorities of this machine do not verify it: {bad}."
        if bad
        else "The authorities of this machine verify it."
    )
    return Listing("Certificates", [*(found or ["None was seen."]), verified], notes=[KEYS])


def _validity(ends: date | None, today: date) -> str:
    """Return the last day of a certificate, as the end of its line."""
    if ends is None:
        return ""
    return f", until {ends}" if ends >= today else f", expired since {ends}"


def _how(of: Looked) -> Iterator[str]:
    look = of.look
    own = enumeration([version_title(version) for version, is_own in look.prefers.items() if is_own])
    clients = enumeration([version_title(version) for version, is_own in look.prefers.items() if not is_own])
    yield (
        f"Learnt by {counted(look.connections, 'connection')}, one after another."
        f"{f' The server prefers its own order of suites in {own}.' if own else ''}"
        f"{f' It follows the order of the client in {clients}.' if clients else ''}"
    )
    for version, why in look.not_tried.items():
        yield f"Resumption in {version_title(version)} was not tried: {why}."
    if of.run is not None:
        on = enumeration([*dict.fromkeys(one.server for one in of.changes if one.server and one.toll)])
        yield (
            f"Server CPU: with the change over without it, per connection (for ciphers per request of 16 KiB), on this"
            f" machine's {on}; kept in {of.run}."
        )


def _notes(of: Looked) -> Iterator[str]:
    if any(one.toll and one.toll.ratio and one.toll.ratio.is_noisy for one in of.changes):
        yield f"{NOISY}."
    if any(one.free_for for one in of.changes):
        yield NOTHING_CHANGES
    if of.changes and any("mlkem" in one.lower() for one in of.approved.groups):
        yield ML_KEM


def _not_judged(of: Looked) -> Iterator[str]:
    for policy in of.wanted.policies:
        for part in policy.all_of_it:
            what = "; ".join(one.what for one in part.not_judged)
            if what:
                yield f"`{part.name}` has requirements that are not judged here: {what}."
