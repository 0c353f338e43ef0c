"""Coordinates in words: the value of one coordinate in a sentence, a table, a question or a command."""

from __future__ import annotations

from enum import Enum, auto

from tollbar.catalog.families import LOADS, Family, Setting, Value
from tollbar.core.units import UNPACED

EMBEDDED = "embedded"
EMBEDDED_SERVER = "Tollbar's own server"
"""Name of the server `embedded` for a reader who never wrote a study."""
# Coordinates of every family; their values are clear without a name.
_TITLES = {
    "choice": "choice",
    "provider": "provider",
    "op": "operation",
    "server": "server",
    "users": "users",
    "rate": "arrivals a second",
    "utilisation": "share of a core",
    "threads": "threads",
}
_CLIENT_PLACES = {"beside": "on the server's core", "apart": "on a core of its own"}
_ANSWERS = ("on", "off", "yes", "no", "clear", "plain")
"""Values that need the name of their setting."""


class Form(Enum):
    """Way of writing a value."""

    SENTENCE = auto()
    """In a sentence, a choice by its title, a count with its noun: `SHA-256`, `5 users`, `no AES instructions`."""
    QUESTION = auto()
    """In a question, a choice by its name, a setting as in a sentence: `sha-256`, `4 KiB`."""
    TABLE = auto()
    """In a table, as a study file has it: `sha-256`, `5`, `4 KiB`."""
    TYPED = auto()
    """On the command line, as a word of a command: `sha-256`, `4KiB`, `600000`."""


def column_title(family: Family, name: str) -> str:
    """Return a coordinate's name in a word or two: a setting's own title may be a sentence about its values."""
    setting = family.settings.get(name)
    return setting.title if setting is not None and setting.is_size else _TITLES.get(name, name.replace("-", " "))


def value_words(family: Family | None, name: str, value: Value | None, form: Form = Form.SENTENCE) -> str:
    """Return a coordinate's value without its name; empty if it does not apply, and as in a table without a family."""
    if value is None:
        return ""
    if family is None:
        return str(value) if value or name not in LOADS else UNPACED
    match form:
        case Form.SENTENCE:
            return _in_a_sentence(family, name, value)
        case Form.TYPED:
            return family.typed(name, value)
    if name in LOADS and not value:
        return UNPACED
    setting = family.settings.get(name)
    return str(value) if setting is None else setting.words(value)


def named_value(family: Family, name: str, value: Value, form: Form = Form.SENTENCE) -> str:
    """Return a value, with its coordinate's name unless it is clear alone: `key fresh`, but `4 KiB`."""
    match form:
        case Form.SENTENCE:
            return _named_in_a_sentence(family, name, value)
        case Form.QUESTION:
            is_named = name in family.settings or name in ("client", "threads")
            return _named_in_a_sentence(family, name, value) if is_named else str(value)
        case Form.TABLE:
            return _named_in_a_table(family, name, value)
        case Form.TYPED:
            return f"{name}={family.typed(name, value)}"


def _in_a_sentence(family: Family, name: str, value: Value) -> str:
    if name == "choice" and value in family.choices:
        return family.choices[str(value)].title
    if name == "server" and str(value).partition(" ")[0] == EMBEDDED:
        return EMBEDDED_SERVER
    if name == "client":
        return _CLIENT_PLACES.get(str(value), str(value))
    setting = family.settings.get(name)
    if setting is not None and str(value) in setting.in_words:
        return setting.in_words[str(value)]
    if isinstance(value, str):
        return value
    if name in ("users", "threads"):
        return f"1 {name.removesuffix('s')}" if value == 1 else f"{value:,} {name}"
    if name == "rate":
        return f"{value:,}\u00a0/s" if value else UNPACED
    if name == "utilisation":
        return f"{value}\u00a0% busy" if value else UNPACED
    return f"{value:,}" if setting is None else setting.words(value)


def _named_in_a_sentence(family: Family, name: str, value: Value) -> str:
    setting = family.settings.get(name)
    clear = name in _TITLES or (setting is not None and (setting.is_size or _is_known(family, setting, value)))
    words = _in_a_sentence(family, name, value)
    return words if clear else f"{name.replace('-', ' ')} {words}"


def _named_in_a_table(family: Family, name: str, value: Value) -> str:
    if name in ("choice", "provider", "server", "op"):
        return EMBEDDED_SERVER if name == "server" and str(value).startswith(EMBEDDED) else str(value)
    if name in (*LOADS, "threads"):
        return _in_a_sentence(family, name, value)
    setting = family.settings.get(name)
    words = value_words(family, name, value, Form.TABLE)
    return words if setting is not None and setting.is_size else f"{name} {words}"


def _is_known(family: Family, setting: Setting, value: Value) -> bool:
    """Return whether a setting's value has a name of its own, such as `x25519`, that is unambiguous."""
    if str(value) in setting.in_words:
        return True
    earlier = list(family.settings)[: list(family.settings).index(setting.name)]
    others = (known for name in earlier for known in family.settings[name].values or ())
    names_itself = isinstance(value, str) and value not in _ANSWERS
    return names_itself and value in setting.about and not any(str(other).startswith(str(value)) for other in others)
