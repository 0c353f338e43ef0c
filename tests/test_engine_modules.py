"""The engine's modules depend on each other in one direction, without cycles."""

from __future__ import annotations

import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ENGINE = Path(__file__).parents[1] / "engine"
# Libraries of the workspace; Cargo has no circles among them.
CRATES = ("contract", "guard", "primitives", "tls", "sqlite", "store", "web")
PATHS = re.compile(r"\b(crate|(?:super::)*super)::(\{.*?\}|[\w:]+)", re.DOTALL)


def code(file: Path) -> str:
    """Return a module's text without comments and tests."""
    text = re.split(r"#\[cfg\(test\)\]\n(?:pub )?mod tests \{", file.read_text())[0]
    text = re.sub(r"#\[cfg\(test\)\]\s*\n\s*[^\n]*\n", "\n", text)
    return re.sub(r"//[^\n]*", "", text)


def parts(path: str) -> Iterator[list[str]]:
    """Yield the paths that one `use` names: `a::{b, c::d}` has two."""
    if not path.startswith("{"):
        yield path.strip(":").split("::")
        return
    yield from ([word] for word in re.findall(r"(?:^|[{,])\s*(\w+)", path))


def module_of(crate: str, file: Path) -> tuple[str, ...]:
    """Return a file's module, below its crate: `rustls/mod.rs` of `tls` is `("tls", "rustls")`."""
    relative = file.relative_to(ENGINE / crate / "src").with_suffix("")
    parts = relative.parts[:-1] if relative.name in ("mod", "lib") else relative.parts
    return (crate, *parts)


def modules() -> dict[tuple[str, ...], Path]:
    """Return every module except those of tests."""
    found = {module_of(crate, file): file for crate in CRATES for file in (ENGINE / crate / "src").rglob("*.rs")}
    return {module: file for module, file in found.items() if "tests" not in module}


def arrows() -> set[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return which module uses which.

    A path means its longest part that is a module, through its parent's re-exports.
    """
    known = modules()
    texts = {module: code(file) for module, file in known.items()}
    found = set()
    for module, text in texts.items():
        for start, path in PATHS.findall(text):
            base = module[:1] if start == "crate" else module[: -start.count("super")]
            for words in parts(path):
                found.add((module, resolve((*base, *words), known, texts)))
    return {(one, other) for one, other in found if other and one != other}


def resolve(
    path: tuple[str, ...], known: dict[tuple[str, ...], Path], texts: dict[tuple[str, ...], str]
) -> tuple[str, ...]:
    """Return the module that a path leads to."""
    for length in range(len(path), 0, -1):
        module = path[:length]
        if module not in known:
            continue
        if length < len(path):
            name = path[length]
            for source, names in re.findall(r"pub use (\w+)::(\{[^}]*\}|\w+)", texts[module]):
                if re.search(rf"\b{name}\b", names) and (*module, source) in known:
                    return (*module, source)
        return module
    return ()


def siblings() -> dict[tuple[str, ...], dict[str, set[str]]]:
    """Return for each folder which of its modules uses which, except the folder's own `mod.rs`."""
    folders: dict[tuple[str, ...], dict[str, set[str]]] = {}
    for one, other in arrows():
        shared = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
        if shared is not None:
            uses = folders.setdefault(one[:shared], {})
            uses.setdefault(one[shared], set()).add(other[shared])
    return folders


def test_every_crate_that_is_measured_or_measures_is_looked_at() -> None:
    folders = {file.parents[1].name for file in ENGINE.glob("*/src/lib.rs")}
    assert {*CRATES, "sqlcipher", "testing", "fuzzing"} == folders


def test_no_module_uses_the_folder_it_is_in() -> None:
    assert set() == {"/".join(other) for one, other in arrows() if len(other) > 1 and one[: len(other)] == other}


@pytest.mark.parametrize("folder", sorted(siblings()), ids="/".join)
def test_the_modules_of_a_folder_have_no_circle(folder: tuple[str, ...]) -> None:
    uses = siblings()[folder]
    try:
        TopologicalSorter(uses).prepare()
    except CycleError as error:
        pytest.fail(f"in {'/'.join(folder) or 'the engine'}: {' uses '.join(reversed(error.args[1]))}")
