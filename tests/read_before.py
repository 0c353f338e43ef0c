"""Reads the files that most commands read, once for all commands that are forked from the process that imports this."""

from tollbar import families
from tollbar.servers import all_servers

families.families()
all_servers()
