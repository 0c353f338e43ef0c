"""Preload the files that most commands read, once for all commands that are forked from this process."""

from tollbar.catalog import families
from tollbar.catalog.servers import all_servers

families.families()
all_servers()
