"""Kinds of runs that `python -m bench survive` strikes, its means, and its checks afterwards."""
