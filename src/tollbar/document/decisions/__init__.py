"""The JSON documents of decisions: a module for each command, with the form of its document."""
