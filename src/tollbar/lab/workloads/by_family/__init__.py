"""Workloads of families that need more than a runner, or a server and its load client: one module a family."""
