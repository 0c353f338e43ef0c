"""Upgrades: two builds of one thing, found or fetched; their common questions; and their changes.

It measures nothing itself, and takes its ratios from the analysis.
"""

from tollbar.decide.upgrade.changed import Change, Kind, Upgrade, upgrade
from tollbar.decide.upgrade.questions import LIBSSL_HINT, not_asked, shared_settings, studies
from tollbar.decide.upgrade.things import Thing, both

__all__ = [
    "LIBSSL_HINT",
    "Change",
    "Kind",
    "Thing",
    "Upgrade",
    "both",
    "not_asked",
    "shared_settings",
    "studies",
    "upgrade",
]
