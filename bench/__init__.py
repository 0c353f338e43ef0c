"""Figures compared with their goals.

Nothing here is a test: a machine may miss a goal although the program is right.
"""
