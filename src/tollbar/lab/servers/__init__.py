"""Servers as processes: rendered, started, asked, accounted and stopped."""
