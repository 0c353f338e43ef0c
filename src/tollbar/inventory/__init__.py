"""Inventories of cryptography: what a CycloneDX document lists, as choices that are judged and priced."""
