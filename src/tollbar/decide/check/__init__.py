"""Budgets: the limit of one choice's cost relative to another's, and the verdict of a measured ratio on it.

Budgets are ratios, never nanoseconds: a slower machine breaks none. `policies.read_project` reads them from a project's
`tollbar.toml`, a run measures each as a study, and `judging` gives the verdict. `checked` has all results of a project,
and `accepting` writes them into the file.
"""
