"""Upgrades: two builds of one thing, found or fetched; what is asked of both; and what became dearer, cheaper or new.

It measures nothing itself, and takes its ratios from the judge.
"""

from tollbar.upgrading.changed import Change, Kind, Upgrade, upgrade
from tollbar.upgrading.questions import shared_settings, studies
from tollbar.upgrading.things import Thing, both

__all__ = ["Change", "Kind", "Thing", "Upgrade", "both", "shared_settings", "studies", "upgrade"]
