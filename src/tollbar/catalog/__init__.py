"""Families, policies, published sources, servers and runners, as data with their readers."""
