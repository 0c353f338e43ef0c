"""Inventories of cryptography: what a CycloneDX document lists, as choices that are judged and priced."""

from tollbar.inventory.pricing import Question, price, to_measure
from tollbar.inventory.reading import read

__all__ = ["Question", "price", "read", "to_measure"]
