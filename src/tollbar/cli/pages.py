"""The help of one command, from its function's signature and docstring as they stand in the source.

Read, not imported: what a command needs to run takes ten times as long to import as its help to show.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from shutil import get_terminal_size
from textwrap import dedent, fill

WIDEST = 100
# How far a parameter's text stands to the right; a longer name has a line of its own.
INDENT = 14


def page(name: str, place: str, epilogue: str) -> str:
    """The help of the command that is the function `module:function` of this package."""
    module, _, function = place.partition(":")
    found = next(node for node in _body(module) if isinstance(node, ast.FunctionDef) and node.name == function)
    about, _, said = dedent(f"    {ast.get_docstring(found, clean=False)}").partition("Parameters\n----------\n")
    texts = dict(re.findall(r"^(\w+)\n((?:    .*\n?)+)", said, re.MULTILINE))
    parameters = [*_parameters(found, texts), ("--help, -h", "This page.")]
    width = min(get_terminal_size().columns, WIDEST)
    shown = [_entry(text, " ".join(meaning.split()), width) for text, meaning in parameters]
    words = " ".join(text for text, _ in parameters if not text.startswith("-"))
    usage = " ".join(filter(None, ["Usage: tollbar", name, words, "[OPTIONS]"]))
    # Examples stand as they are.
    paragraphs = [text if text.startswith("tollbar ") else fill(text, width) for text in about.strip().split("\n\n")]
    return "\n\n".join([usage, *paragraphs, "\n".join(shown), fill(epilogue, width)])


def _body(module: str) -> list[ast.stmt]:
    return ast.parse(Path(__file__).with_name(f"{module}.py").read_text("utf-8")).body


def _entry(shown: str, text: str, width: int) -> str:
    lead = f"{shown:<{INDENT}}" if len(shown) < INDENT else f"{shown}\n{'':<{INDENT}}"
    first, _, rest = lead.rpartition("\n")
    filled = fill(text, width - INDENT).splitlines() or [""]
    return (f"{first}\n" if first else "") + f"\n{'':<{INDENT}}".join([f"{rest}{filled[0]}", *filled[1:]])


def _parameters(function: ast.FunctionDef, texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """How each parameter is written on the command line, and what it means."""
    arguments = function.args
    optional = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
    for number, one in enumerate((*arguments.posonlyargs, *arguments.args)):
        yield one.arg.upper() if number < optional else f"[{one.arg.upper()}]", texts.get(one.arg, "")
    if arguments.vararg:
        yield f"[{arguments.vararg.arg.upper()}…]", texts.get(arguments.vararg.arg, "")
    bodies = (*_body("options"), *_body("answers"))
    shared = {node.name: node for node in bodies if isinstance(node, ast.ClassDef)}
    table = _table(bodies)
    for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if isinstance(one.annotation, ast.Name) and one.annotation.id in shared:
            yield from _fields(shared[one.annotation.id], table)
        else:
            annotation = _said(one.annotation, table)
            yield _option(one.arg, annotation, default), texts.get(one.arg) or _keyword(annotation, "help") or ""


def _table(bodies: Iterable[ast.stmt]) -> Mapping[str, ast.expr]:
    """Return the options that several commands have, by the name of their type."""
    return {
        target.id: node.value
        for node in bodies
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _said(annotation: ast.expr | None, table: Mapping[str, ast.expr]) -> ast.expr | None:
    return table.get(annotation.id, annotation) if isinstance(annotation, ast.Name) else annotation


def _fields(shared: ast.ClassDef, table: Mapping[str, ast.expr]) -> Iterator[tuple[str, str]]:
    """The same of a group of options: each field of its class, with the text below it or that of its type."""
    for field, below in pairwise(shared.body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            annotation = _said(field.annotation, table)
            text = ast.literal_eval(below.value) if isinstance(below, ast.Expr) else _keyword(annotation, "help")
            yield _option(field.target.id, annotation, field.value), text or ""


def _keyword(annotation: ast.expr | None, name: str) -> str | None:
    """Return what an annotation says of an option, by the keyword of its `Parameter`; None where it says nothing."""
    for node in ast.walk(annotation or ast.Constant(None)):
        for keyword in node.keywords if isinstance(node, ast.Call) else ():
            if keyword.arg == name and isinstance(keyword.value, ast.Constant):
                return str(keyword.value.value)
    return None


def _option(name: str, annotation: ast.expr | None, default: ast.expr | None) -> str:
    """Its option: what its annotation says, or else its name; one that is on can be turned off."""
    option = _keyword(annotation, "name") or f"--{name.replace('_', '-')}"
    return f"{option}, --no-{option[2:]}" if isinstance(default, ast.Constant) and default.value is True else option
