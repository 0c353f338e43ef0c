"""Families as their files have them, to be changed by tests."""

from __future__ import annotations

A_FAMILY = """
[family]
title = "Test"
operations = ["hash"]

[choice.none]
title = "nothing"
spec = "none"
standing = "null"

[choice.md5]
title = "MD5"
spec = "RFC 1321"
standing = "broken"
"""


A_VALUE = """
[threat.collision]
title = "two messages with one hash"

[setting.length]
title = "length of the output"
values = ["short", 512]
default = 512

[setting.length.value.short]
title = "short output"
standing = "deprecated"
"""
