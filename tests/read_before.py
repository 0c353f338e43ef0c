"""Reads the files that most commands read, once for all commands that are forked from the process that imports this."""

from tollbar import families
from tollbar.beds import all_beds

families.families()
all_beds()
