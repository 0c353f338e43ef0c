"""Sections of a study's report: one module for each subject, drawn equally by page, terminal and Markdown."""
