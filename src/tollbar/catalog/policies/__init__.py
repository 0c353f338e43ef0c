"""Policies: requirements of authorities on choices, as data, and whether a cell meets them.

A policy is a dated file of rules, `NAME-EDITION.toml`, each with its clause and its source. A shipped file is never
changed; a new edition is a new file. A user's own policies are any paths, or in `policies/` on `TOLLBAR_PATH`.

A cell that meets a policy meets each of its rules here, which says nothing about the source's other requirements:
`not-judged` lists those that Tollbar cannot see.
"""

from __future__ import annotations

from tollbar.catalog.policies.catalogue import (
    environment,
    environments,
    named,
    policies,
    policy,
    refuse_silent,
    shipped,
    with_edition,
)
from tollbar.catalog.policies.checking import (
    MOST_NAMED,
    NAME,
    CheckedUse,
    CostBudget,
    Processor,
    Project,
    ProjectUse,
    SetOn,
    check_project,
    read_project,
)
from tollbar.catalog.policies.contradictions import Contradiction, contradictions
from tollbar.catalog.policies.definition import (
    Except,
    Judged,
    NotJudged,
    Patterns,
    Policy,
    Rule,
    RuleFinding,
    Ruling,
    Unlisted,
)
from tollbar.catalog.policies.judging import (
    STANDINGS,
    Cell,
    Found,
    day,
    does,
    is_worse,
    judged,
    ruling_of,
    threat_wanted,
)
from tollbar.catalog.policies.policy_file import check

__all__ = [
    "MOST_NAMED",
    "NAME",
    "STANDINGS",
    "Cell",
    "CheckedUse",
    "Contradiction",
    "CostBudget",
    "Except",
    "Found",
    "Judged",
    "NotJudged",
    "Patterns",
    "Policy",
    "Processor",
    "Project",
    "ProjectUse",
    "Rule",
    "RuleFinding",
    "Ruling",
    "SetOn",
    "Unlisted",
    "check",
    "check_project",
    "contradictions",
    "day",
    "does",
    "environment",
    "environments",
    "is_worse",
    "judged",
    "named",
    "policies",
    "policy",
    "read_project",
    "refuse_silent",
    "ruling_of",
    "shipped",
    "threat_wanted",
    "with_edition",
]
