"""Sections of a study's report: one module for each subject, drawn alike by page, terminal and Markdown."""
