"""Figures beside their goals. Nothing here is a test: a machine may miss a goal and the program be right."""
