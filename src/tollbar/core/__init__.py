"""Errors, files, units, statistics, the machine and the contract with runners: nothing here knows of security."""
