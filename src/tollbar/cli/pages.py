"""The help of one command, from its function's signature and docstring as they stand in the source.

Read, not imported: what a command needs to run takes ten times as long to import as its help to show.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from shutil import get_terminal_size
from textwrap import dedent, fill

WIDEST = 100
# How far a parameter's text stands to the right; a longer name has a line of its own.
INDENT = 14


def page(name: str, place: str, epilogue: str) -> str:
    """The help of the command that is the function `module:function` of this package."""
    module, _, function = place.partition(":")
    tree = ast.parse(Path(__file__).with_name(f"{module}.py").read_text("utf-8"))
    found = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function)
    about, _, said = dedent(f"    {ast.get_docstring(found, clean=False)}").partition("Parameters\n----------\n")
    texts = {"help": "This page."}
    texts |= {key: " ".join(text.split()) for key, text in re.findall(r"^(\w+)\n((?:    .*\n?)+)", said, re.MULTILINE)}
    width = min(get_terminal_size().columns, WIDEST)
    shown = [_entry(text, texts.get(key, ""), width) for key, text in _parameters(found)]
    words = " ".join(text for _, text in _parameters(found) if not text.startswith("-"))
    usage = " ".join(filter(None, ["Usage: tollbar", name, words, "[OPTIONS]"]))
    # Examples stand as they are.
    paragraphs = [text if text.startswith("tollbar ") else fill(text, width) for text in about.strip().split("\n\n")]
    return "\n\n".join([usage, *paragraphs, "\n".join(shown), fill(epilogue, width)])


def _entry(shown: str, text: str, width: int) -> str:
    lead = f"{shown:<{INDENT}}" if len(shown) < INDENT else f"{shown}\n{'':<{INDENT}}"
    first, _, rest = lead.rpartition("\n")
    filled = fill(text, width - INDENT).splitlines() or [""]
    return (f"{first}\n" if first else "") + f"\n{'':<{INDENT}}".join([f"{rest}{filled[0]}", *filled[1:]])


def _parameters(function: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    """The name of each parameter, and how it is written on the command line."""
    arguments = function.args
    optional = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
    for number, one in enumerate((*arguments.posonlyargs, *arguments.args)):
        yield one.arg, one.arg.upper() if number < optional else f"[{one.arg.upper()}]"
    if arguments.vararg:
        yield arguments.vararg.arg, f"[{arguments.vararg.arg.upper()}…]"
    for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        flag = _flag(one)
        yield (
            one.arg,
            f"{flag}, --no-{flag[2:]}" if isinstance(default, ast.Constant) and default.value is True else flag,
        )
    yield "help", "--help, -h"


def _flag(one: ast.arg) -> str:
    """Its option: what its annotation says, or else its name."""
    said = [
        keyword.value.value
        for node in ast.walk(one.annotation or one)
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "name" and isinstance(keyword.value, ast.Constant)
    ]
    return str(said[0]) if said else f"--{one.arg.replace('_', '-')}"
