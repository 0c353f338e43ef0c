"""Budgets: what one choice may cost beside another, and what a measured ratio says of that.

Ratios alone, never nanoseconds: a slower machine breaks no budget. `policies.read_project` reads them from a project's
`tollbar.toml`, a run measures each as a study, and `judging` says what came of it. `checked` is all that is found of a
project, and `accepting` writes it into the file.
"""
