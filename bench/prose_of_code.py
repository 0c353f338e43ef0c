"""Prose in code: docstrings, comments and messages of each source file, and the hits of the style's rules in them.

Texts of TOML files, such as titles and notes of families, policies and studies, are messages too.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

SOURCES = (
    "src/**/*.py",
    "src/**/*.toml",
    "bench/**/*.py",
    "tests/*.py",
    "engine/src/**/*.rs",
    "src/tollbar/catalog/runners/**/*",
)
"""Source files, as patterns below the root."""
COMMENT_MARKS: Mapping[str, re.Pattern[str]] = dict.fromkeys(
    (".rs", ".go", ".java", ".cs", ".mjs"),
    re.compile(r"(?:^|(?<=\s))//[/!]?(.*)$|^\s*/?\*+(.*?)(?:\*/)?$", re.MULTILINE),
)
"""Comments of each language but Python, line by line."""
_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_TOML_COMMENT = re.compile(r"""^(?:[^"'#\n]|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')*#(.*)$""", re.MULTILINE)
# Questions are a user's words, and known answers are data: another message has another answer.
_NOT_PROSE = ("question", "answers")
# Shorter texts are names, keys and units.
FEWEST_WORDS = 3
FIRST_WORDS = re.compile(r"(What|Of|Those|That|It|The same|One|Where)\b")
"""First words of a docstring that make no sense in a tooltip: rule 3."""
NONE_IS = re.compile(r"\bNone: ")
"""Help that names Python's value instead of the default: rule 13."""


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts of one source file, for people."""

    docstrings: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    """Comments, and messages, which tests only repeat."""
    helps: tuple[str, ...] = ()
    """Docstrings of commands, which are their help."""


@dataclass(frozen=True)
class Source:
    """Source file, with the hits of the style's rules."""

    name: str
    text: str
    counted: Mapping[str, re.Pattern[str]]
    """Rules that apply to every text, by their name."""

    @cached_property
    def texts(self) -> Texts:
        """Texts for people."""
        if self.name.endswith(".py"):
            return _of_python(self)
        return _of_toml(self) if self.name.endswith(".toml") else _of_others(self)

    def hits(self, rule: str) -> int:
        """Return the number of hits of a rule."""
        if rule == "docstring":
            return sum(FIRST_WORDS.match(text.strip()) is not None for text in self.texts.docstrings)
        if rule == "help":
            return sum(len(NONE_IS.findall(text)) for text in self.texts.helps)
        prose = (re.sub(r"`[^`\n]+`", "code", text) for text in (*self.texts.docstrings, *self.texts.others))
        return sum(len(self.counted[rule].findall(text)) for text in prose)


def sources(root: Path, counted: Mapping[str, re.Pattern[str]]) -> list[Source]:
    """Return the source files that are written by hand."""
    paths = {path for pattern in SOURCES for path in root.glob(pattern)}
    known = sorted(path for path in paths if path.suffix in (".py", ".toml", *COMMENT_MARKS) and path.is_file())
    return [Source(str(path.relative_to(root)), path.read_text("utf-8"), counted) for path in known]


def _of_python(source: Source) -> Texts:
    tree = ast.parse(source.text)
    docstrings = dict(_docstrings(tree))
    is_repeated = source.name.startswith("tests/")
    messages = [] if is_repeated else [*_messages(tree, {id(node) for node in docstrings})]
    comments = [
        token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(source.text).readline)
        if token.type == tokenize.COMMENT
    ]
    is_command = source.name.startswith("src/tollbar/cli/")
    said = tuple(docstrings.values())
    return Texts(said, ("\n".join(comments), *messages), said if is_command else ())


def _docstrings(tree: ast.Module) -> Iterator[tuple[ast.Constant, str]]:
    """Yield the docstrings of the module, its classes, functions and attributes, with their nodes."""
    for node in ast.walk(tree):
        for body in (getattr(node, "body", ()), getattr(node, "orelse", ())):
            for one in body if isinstance(body, list) else ():
                if (
                    isinstance(one, ast.Expr)
                    and isinstance(one.value, ast.Constant)
                    and isinstance(one.value.value, str)
                ):
                    yield one.value, one.value.value


def _messages(tree: ast.Module, docstrings: set[int]) -> Iterator[str]:
    """Yield the texts that may be printed: strings of several words, with the parts of one in one piece."""
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "code" for part in node.values)
            text = "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner | docstrings:
            text = node.value
        else:
            continue
        if len(text.split()) >= FEWEST_WORDS:
            yield text


def _of_toml(source: Source) -> Texts:
    """Return the comments and texts of a TOML file."""
    texts = [text for text in _texts_in(tomllib.loads(source.text)) if len(text.split()) >= FEWEST_WORDS]
    return Texts((), ("\n".join(_TOML_COMMENT.findall(source.text)), *texts))


def _texts_in(said: Any, key: str = "") -> Iterator[str]:
    """Yield the texts in a value of TOML, without questions and known answers."""
    if key in _NOT_PROSE:
        return
    if isinstance(said, str):
        yield said
    elif isinstance(said, dict):
        for name, value in said.items():
            yield from _texts_in(value, name)
    elif isinstance(said, list):
        for value in said:
            yield from _texts_in(value, key)


def _of_others(source: Source) -> Texts:
    """Return the comments and strings of another language."""
    marks = COMMENT_MARKS[Path(source.name).suffix]
    comments = ["".join(filter(None, match.groups())).strip() for match in marks.finditer(source.text)]
    strings = [match[1] for match in _STRING.finditer(marks.sub("", source.text))]
    messages = [text for text in strings if len(text.split()) >= FEWEST_WORDS]
    return Texts((), ("\n".join(comments), *messages))
