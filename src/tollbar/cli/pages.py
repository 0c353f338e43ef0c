"""Help of one command, from its function's signature and docstring in the source.

The source is read, not imported: a command's imports take ten times as long as its help.
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
# Indent of a parameter's text; a longer name has a line of its own.
INDENT = 14


def page(name: str, place: str, epilogue: str) -> str:
    """Return the help of the command that is the function `module:function` of this package."""
    module, _, function = place.partition(":")
    found = next(node for node in _body(module) if isinstance(node, ast.FunctionDef) and node.name == function)
    about, _, said = dedent(f"    {ast.get_docstring(found, clean=False)}").partition("Parameters\n----------\n")
    texts = dict(re.findall(r"^(\w+)\n((?:    .*\n?)+)", said, re.MULTILINE))
    parameters = [*_parameters(found, texts), ("--help, -h", "Print this page.")]
    width = min(get_terminal_size().columns, WIDEST)
    shown = [_entry(text, " ".join(meaning.split()), width) for text, meaning in parameters]
    words = " ".join(text for text, _ in parameters if not text.startswith("-"))
    usage = " ".join(filter(None, ["Usage: tollbar", name, words, "[OPTIONS]"]))
    # Examples are printed unchanged.
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
    """Yield each parameter as written on the command line, and its meaning."""
    arguments = function.args
    optional = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
    for number, one in enumerate((*arguments.posonlyargs, *arguments.args)):
        yield one.arg.upper() if number < optional else f"[{one.arg.upper()}]", texts.get(one.arg, "")
    if arguments.vararg:
        yield f"[{arguments.vararg.arg.upper()}…]", texts.get(arguments.vararg.arg, "")
    bodies = (*_body("options"), *_body("layouts"))
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
    """Yield the options of a group: each field of its class, with the text below it or that of its type."""
    for field, below in pairwise(shared.body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            annotation = _said(field.annotation, table)
            text = ast.literal_eval(below.value) if isinstance(below, ast.Expr) else _keyword(annotation, "help")
            yield _option(field.target.id, annotation, field.value), text or ""


def _keyword(annotation: ast.expr | None, name: str) -> str | None:
    """Return a keyword of an annotation's `Parameter`; None where it has none."""
    for node in ast.walk(annotation or ast.Constant(None)):
        for keyword in node.keywords if isinstance(node, ast.Call) else ():
            if keyword.arg == name and isinstance(keyword.value, ast.Constant):
                return str(keyword.value.value)
    return None


def _option(name: str, annotation: ast.expr | None, default: ast.expr | None) -> str:
    """Return the option of a field: its annotation's name, or its own; one that is on can be turned off."""
    option = _keyword(annotation, "name") or f"--{name.replace('_', '-')}"
    return f"{option}, --no-{option[2:]}" if isinstance(default, ast.Constant) and default.value is True else option
