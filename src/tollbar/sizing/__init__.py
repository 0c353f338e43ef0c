"""Sizing: how many cores a mix of work takes, by costs that were measured."""

from tollbar.sizing.mix import read
from tollbar.sizing.sized import size

__all__ = ["read", "size"]
