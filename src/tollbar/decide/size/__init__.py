"""Sizing: how many cores a mix of work takes, by costs that were measured."""

from tollbar.decide.size.mix import read
from tollbar.decide.size.sized import size

__all__ = ["read", "size"]
