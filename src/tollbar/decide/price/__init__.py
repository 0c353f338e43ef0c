"""Inventories of cryptography: the assets of a CycloneDX document as choices that are judged and priced."""

from tollbar.decide.price.inventory import STANDARD_INPUT, read
from tollbar.decide.price.pricing import FamilyQuestion, price, to_measure

__all__ = ["STANDARD_INPUT", "FamilyQuestion", "price", "read", "to_measure"]
