"""Beds: real servers, started for a measurement and stopped after it.

No family that ships today needs one. A bed will be a folder here: what it renders, how it starts, how
readiness is asked for, how it stops.
"""
