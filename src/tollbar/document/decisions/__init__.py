"""The JSON documents of decisions: a module for each command, whose `Document` is form and value in one."""
