"""Words of a question: the choice, coordinate or value that each of them means, in the names of a family."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from tollbar.catalog import families, libraries, policies, servers
from tollbar.catalog.families import DEFAULT_PROVIDERS, Family, Setting, Value
from tollbar.catalog.families.settings import NotAValue
from tollbar.core import machine, spelling, units
from tollbar.core.errors import TollbarError, nearest
from tollbar.core.patterns import is_like, is_pattern
from tollbar.study import stored_hashes
from tollbar.study.naming import nearest_setting
from tollbar.study.values import CLIENT_PLACES, NOT_SETTINGS

# Limit of the digits of a number of users or threads.
MOST_DIGITS = 18
# Number with separated thousands.
_THOUSANDS = re.compile(r"[0-9]{1,3}(?:,[0-9]{3}){1,4}")
# Words between choices, as people write them.
_BETWEEN = ("vs", "vs.", "versus", "against", "and", "or", "to", "with")
_SIZE = re.compile(r"[0-9][0-9_.]*\s?(?:[kKmMgG]i?[bB]?|[bB]|[mun]?s|%)")
# The server that needs no installation.
DEFAULT_SERVER = "embedded"
_EXAMPLES = {
    "server": DEFAULT_SERVER,
    "users": "8",
    "rate": "200/s",
    "utilisation": "60%",
    "client": "apart",
    "threads": "1,2",
}
# Key of a study for each of these coordinates, and the reader of one value.
PACES: Mapping[str, tuple[str, Callable[[str], float]]] = {
    "rate": ("rates", units.arrivals),
    "utilisation": ("utilisation", units.utilisation),
}


def coordinates_of(family: Family, words: Sequence[str]) -> dict[str, tuple[Value, ...]]:
    """Return the coordinates and values of words with `=`, as a study writes them. Raises TollbarError."""
    varied = dict(coordinate_of(family, word) for word in words)
    if len(varied) < len(words):
        named = [(_named_coordinate(family, name), values) for name, _, values in (w.partition("=") for w in words)]
        twice = next(name for name in varied if sum(name == other for other, _ in named) > 1)
        values = ",".join(some for name, some in named if name == twice)
        raise TollbarError(f"`{twice}` is given twice; all its values must be in one word", hint=f"`{twice}={values}`")
    return varied


def choices_of(family: Family, words: Sequence[str]) -> list[str]:
    """Return the choices and patterns that words mean, by the family's own names.

    Raises TollbarError for a word that is not a choice of this family, with its other meanings, and for a choice that
    is given twice.
    """
    found = [choice_of(family, word) for word in words]
    for place, name in enumerate(found):
        if name in found[:place]:
            also = f", as `{words[found.index(name)]}` and `{words[place]}`" if words[place] != name else ""
            hint = "remove one; `tollbar run self-test` measures equal work twice, to show chance differences"
            raise TollbarError(f"the choice `{name}` is given twice{also}", hint=hint)
    return found


def choice_homes(word: str) -> Mapping[str, str]:
    """Return the families that have a choice of this name, each with its own name for it."""
    found = {family.name: spelling.find(word, family.choices) for family in families.families().values()}
    return {family: choice for family, choice in found.items() if choice is not None}


def choice_of(family: Family, word: str) -> str:
    """Return the choice or the pattern that a word means. Raises TollbarError."""
    found = spelling.find(word, family.choices)
    if found is not None:
        return found
    if is_pattern(word):
        # A pattern in capitals, or without separators, is compared as names are.
        for pattern in (word, word.casefold()):
            if any(is_like(name, pattern) for name in family.choices):
                return pattern
    _refuse_stored_hash(word)
    what = f"no such choice of {family.name}: `{word}`"
    raise TollbarError(what, hint=next(_other_kinds(family, word), nearest(word, family.choices)))


def _refuse_stored_hash(word: str) -> None:
    """Raise TollbarError for a stored password hash, without its salt and hash, with the words for its parameters."""
    if (asked := stored_hashes.words_of(word)) is not None:
        choice = asked.partition(" ")[0]
        what = f"a stored hash of {choice} cannot be asked about; its parameters are needed"
        raise TollbarError(what, hint=f"type `{asked}`, which are choice and settings of password-hash")


def _other_kinds(family: Family, word: str) -> Iterator[str]:
    """Yield hints on the meaning of a word that is not a choice."""
    several = [spelling.find(one, family.choices) for one in re.split(r"[,;+]\s*", word) if one]
    if len(several) > 1 and None not in several:
        yield f"separate choices by spaces: `{' '.join(str(one) for one in several)}`"
    if word.casefold() in _BETWEEN:
        yield f"remove `{word}`: choices are separated by spaces"
    # A shorter word is rather a choice than the beginning of a policy.
    if len(word) >= 4 and (policy := policies.with_edition(word)) in policies.shipped():
        yield f"it is a policy: `tollbar choose {family.name} --policy {policy}`"
    written, sign, typed = word.partition(":")
    if sign and (name := _named_coordinate(family, written)) in (*family.settings, *NOT_SETTINGS):
        yield f"write `{name}={typed or 'VALUE'}`, without a space"
    if _SIZE.fullmatch(word):
        yield f"a value follows its name and `=` without a space, for example `NAME={word}`"
    if len(spelling.meant(word, family.choices)) > 1 or spelling.is_near(word, family.choices):
        # It is an ambiguous choice, not another kind of word.
        return
    for setting in family.settings.values():
        value = spelling.find(word, [str(value) for value in setting.values or ()])
        if value is not None:
            yield f"it is a value of `{setting.name}`: write `{setting.name}={value}`"
    if (operation := spelling.find(word, family.operations)) is not None:
        yield f"it is an operation: write `op={operation}`"
    if (server := spelling.find(word, servers.all_servers())) is not None:
        yield f"it is a server: write `server={server}`"
    if (provider := libraries.named(word)).partition(":")[0] in libraries.kinds():
        yield f"it is a provider: write `provider={provider}`"
    if (name := _named_coordinate(family, word)) in (*family.settings, *NOT_SETTINGS):
        yield f"it is a coordinate: give it a value, for example `{name}={_example(family, name)}`"
    homes = choice_homes(word)
    if homes:
        home, choice = next(iter(homes.items()))
        near = spelling.nearest(word, family.choices)
        of_own = f"; of {family.name} the nearest is `{near[0]}`" if near else ""
        yield f"it is a choice of {' and of '.join(homes)}: `{home} {choice}`{of_own}"


def _example(family: Family, name: str) -> str:
    setting = family.settings.get(name)
    if setting is None:
        return {"op": family.operations[0], **_EXAMPLES}.get(name, DEFAULT_PROVIDERS[0])
    if setting.values:
        return str(setting.values[-1])
    return setting.typed(setting.default)


def coordinate_of(family: Family, word: str) -> tuple[str, tuple[Value, ...]]:
    """Return the name and the values of a word with `=`, as a study writes them."""
    _refuse_stored_hash(word)
    written, _, said = word.partition("=")
    name = _named_coordinate(family, written)
    values = tuple(value.strip() for value in said.split(","))
    if name in ("choice", "choices"):
        raise TollbarError(
            "a choice must be given without `choice=`", where=word, hint=f"`tollbar ask {family.name} {said}`"
        )
    if name not in [*NOT_SETTINGS, *family.settings]:
        what = f"the family {family.name} has no setting `{name}`"
        raise TollbarError(what, where=word, hint=nearest_setting(family, name))
    if "" in values:
        raise TollbarError("a value is missing", where=word, hint=f"for example `{name}={_example(family, name)}`")
    if _THOUSANDS.fullmatch(said) and any(value.startswith("0") for value in values):
        what = f"`{said}` is read as {len(values)} values, because commas separate values"
        raise TollbarError(what, where=word, hint=_hint_for(family, name, said.replace(",", "")))
    found = tuple(_value(family, name, value, word) for value in values)
    setting = family.settings.get(name)
    meant = [setting.read(value) if setting else value for value in found]
    for place, value in enumerate(meant):
        if value in meant[:place]:
            shown = values[meant.index(value)]
            also = f", as `{shown}` and `{values[place]}`" if values[place] != shown else ""
            raise TollbarError(f"the value `{shown}` is given twice{also}", where=word, hint="name each value once")
    return name, found


def _hint_for(family: Family, name: str, said: str) -> str:
    """Return a hint with the words to type for a value, in an accepted form."""
    typed = f"{name}={said}"
    try:
        _value(family, name, said, typed)
    except TollbarError as error:
        return error.hint or f"for example `{name}={_example(family, name)}`"
    return f"type `{typed}`"


def _named_coordinate(family: Family, written: str) -> str:
    """Return the coordinate that a word means, by its own name, or the word itself if it means none."""
    return spelling.find(written.strip(), [*NOT_SETTINGS, *family.settings]) or written


def _value(family: Family, name: str, said: str, word: str) -> Value:
    if name in family.settings:
        return _of_setting(family.settings[name], said, word)
    if name in ("users", "threads"):
        # The study itself has narrower limits; Python refuses numbers of thousands of digits.
        if not said.isdecimal() or not 1 <= len(said) <= MOST_DIGITS or int(said) < 1:
            hint = f"for example `{name}={'1,8' if name == 'users' else '1,2'}`"
            raise TollbarError(
                f"`{units.quoted(said)}` must be a whole number of {name} above 0", where=word, hint=hint
            )
        if name == "threads" and (lack := machine.lacks_cores(int(said))) is not None:
            raise TollbarError(lack, where=word, hint=f"at most `threads={len(machine.CORES)}`")
        return int(said)
    if name in PACES:
        try:
            PACES[name][1](said)
        except ValueError as error:
            raise TollbarError(str(error), where=word, hint=_typed(word, error)) from error
    if name == "provider":
        return libraries.named(said)
    known = {"op": family.operations, "server": tuple(servers.all_servers()), "client": CLIENT_PLACES}.get(name)
    if known is None:
        return said
    found = spelling.find(said, known)
    if found is None:
        likely = known
        if name == "server" and family.servers:
            # A web server's family is not measured on databases.
            kinds = {servers.all_servers()[one].frontend.name for one in family.servers}
            likely = tuple(one for one, at in servers.all_servers().items() if at.frontend.name in kinds)
        raise TollbarError(f"no such {name}: `{said}`", where=word, hint=nearest(said, likely))
    return found


def _of_setting(setting: Setting, said: str, word: str) -> Value:
    """Return a setting's value as a study writes it: whole numbers as such, sizes and shares with the given unit."""
    of_number = setting.values and isinstance(setting.default, int) and said.isdecimal() and len(said) <= MOST_DIGITS
    value: Value = int(said) if of_number else said
    try:
        read = setting.read(value)
    except NotAValue as error:
        raise TollbarError(error.what, where=word, hint=error.hint) from error
    except ValueError as error:
        hint = _typed(word, error) or _as_exponent(setting, said)
        raise TollbarError(str(error), where=word, hint=hint) from error
    return read if setting.is_count or setting.values else value


def _as_exponent(setting: Setting, said: str) -> str | None:
    """Return the hint for `cost=2^10` of a setting whose value is the exponent itself."""
    exponent = said.removeprefix("2^").removeprefix("2**")
    if exponent == said or not exponent.isdecimal() or len(exponent) > 2 or setting.unit == "power-of-two":
        return None
    is_allowed = (setting.least or 0) <= int(exponent) <= (setting.most or 0)
    return f"did you mean `{setting.name}={exponent}`?" if is_allowed else None


def _typed(word: str, error: ValueError) -> str | None:
    """Return a hint with the word and the meant unit."""
    meant = error.meant if isinstance(error, units.Misread) else ()
    name = word.partition("=")[0]
    return f"type `{name}={meant[0].replace(' ', '')}`" if meant and "," not in word else None
