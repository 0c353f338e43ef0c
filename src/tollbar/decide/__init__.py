"""Decisions: a folder for each, with its question, its words and its document, and the modules that several share."""
