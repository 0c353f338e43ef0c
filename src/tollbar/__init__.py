"""Tollbar: what each security design choice costs, on this machine."""

from importlib.metadata import version

__version__ = version("tollbar")
