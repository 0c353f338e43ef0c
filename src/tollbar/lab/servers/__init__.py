"""Servers as processes: configured, started, queried, accounted and stopped."""
