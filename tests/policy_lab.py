"""Policies made by tests, and requests that use them, all on one day."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from tollbar.catalog.families import Standing
from tollbar.decide.rulings import Wanted, wanted

TODAY = date(2026, 11, 23)

A_POLICY = """
[policy]
title = "Ours"
by = "Us"
edition = "2026"
date = 2026-01-01
source = "our handbook"
seen = 2026-11-23
checked = true
"""
OURS = f"""{A_POLICY}
[[rule]]
id = "one"
clause = "1.1"
family = "digest"
only = {{ choice = ["sha3-*"] }}
unlisted = "not approved"
"""

RULE = 'never = { choice = ["md5"] }'


def of_rules(folder: Path, *rules: str, head: str = A_POLICY) -> str:
    """Return the path of a policy with these rules, by default of the family digest."""
    texts = []
    for number, rule in enumerate(rules):
        start = f'[[rule]]\nid = "r{number}"\nclause = "{number}.1"\n'
        texts.append(start + ("" if "family" in rule else 'family = "digest"\n') + rule)
    path = folder / "ours-2026.toml"
    path.write_text(head + "\n" + "\n".join(texts))
    return str(path)


def asked(family: str, *policies: str, threats: tuple[str, ...] = (), on: str | None = None) -> Wanted:
    """Return a request with these policies and threats, for choices of acceptable standing."""
    return wanted(family, policies, threats, on, today=TODAY, standing=Standing.ACCEPTABLE)
