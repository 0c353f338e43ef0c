"""`tollbar.toml` accepts the same spellings of a choice as the command line, by the one table of aliases."""

from __future__ import annotations

from pathlib import Path

import pytest

from tollbar.catalog import families
from tollbar.catalog.policies.checking import read_project
from tollbar.core import spelling
from tollbar.core.errors import TollbarError


def use(tmp_path: Path, family: str, choice: str) -> object:
    path = tmp_path / "tollbar.toml"
    path.write_text(f'[uses.a]\nfamily = "{family}"\nchoice = "{choice}"\n')
    (one,) = read_project(path).uses
    return one.cell["choice"]


@pytest.mark.parametrize(
    ("family", "written", "choice"),
    [
        ("password-hash", "Argon2ID", "argon2id"),
        ("password-hash", "pbkdf2-sha256", "pbkdf2-sha-256"),
        ("tls", "TLS 1.2", "tls-1.2"),
        ("tls", "TLSv1.3", "tls-1.3"),
        ("digest", "SHA256", "sha-256"),
    ],
)
def test_a_use_has_the_choice_that_its_spelling_means(tmp_path: Path, family: str, written: str, choice: str) -> None:
    assert choice == use(tmp_path, family, written)


@pytest.mark.parametrize("family", ["digest", "cipher", "mac", "signature", "key-exchange", "tls", "password-hash"])
def test_each_choice_is_taken_in_capitals_with_blanks_and_by_its_other_names(tmp_path: Path, family: str) -> None:
    """An alias must mean that choice alone; otherwise the error names the nearest."""
    choices = families.families()[family].choices
    for choice in choices:
        others = spelling.table()["also"].get(choice, ())
        for written in (choice.upper(), choice.replace("-", " "), choice.replace("-", "_"), *others):
            meant = spelling.find(written, choices)
            if meant is None:
                with pytest.raises(TollbarError, match="no such choice"):
                    use(tmp_path, family, written)
            else:
                assert meant == use(tmp_path, family, written)
