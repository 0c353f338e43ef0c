"""Files with very many valid parts: numbers above a limit are refused in one line, before reading."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from policy_lab import of_rules
from tollbar import study
from tollbar.catalog.policies import read_project
from tollbar.catalog.policies.checking import MOST_BUDGETS, MOST_NAMED, MOST_USES
from tollbar.core.errors import TollbarError
from tollbar.decide.size import mix

CELL = 'family = "digest"\nchoice = "sha-256"\n'
TERM = f'rate = "1 /s"\nop = "hash"\n{CELL}'


class Many(NamedTuple):
    """File with a number of equal parts."""

    read: Callable[[Path], object]
    most: int
    text: Callable[[int], str]


def _tables(name: str, inside: str) -> Callable[[int], str]:
    return lambda count: "".join(f"[{name}.n{number}]\n{inside}" for number in range(count))


def _policies(rest: str) -> Callable[[int], str]:
    return lambda count: rest.replace("POLICY", "policy = [" + '"asvs-level-2-5.0.0", ' * count + "]")


MANY: Mapping[str, Many] = {
    "terms": Many(mix.read, mix.MOST_TERMS, _tables("term", TERM)),
    "policies of a mix": Many(mix.read, MOST_NAMED, _policies(f"[mix]\nPOLICY\n[term.one]\n{TERM}")),
    "uses": Many(read_project, MOST_USES, _tables("uses", CELL)),
    "budgets": Many(read_project, MOST_BUDGETS, _tables("budget", f'{CELL}against = "sha-1"\n')),
    "policies of a project": Many(read_project, MOST_NAMED, _policies(f"POLICY\n[uses.one]\n{CELL}")),
    "policies of a use": Many(read_project, MOST_NAMED, _policies(f"[uses.one]\nPOLICY\n{CELL}")),
}


@pytest.mark.parametrize("what", MANY)
def test_a_file_has_a_limited_number_of_parts(what: str, tmp_path: Path) -> None:
    many, path = MANY[what], tmp_path / "many.toml"
    path.write_text(many.text(many.most))
    many.read(path)
    path.write_text(many.text(many.most + 1))
    with pytest.raises(TollbarError, match=f"should have at most {many.most} items") as raised:
        many.read(path)
    assert "\n" not in str(raised.value)


def test_uses_with_the_rules_that_judge_them_are_limited(tmp_path: Path) -> None:
    policy = of_rules(tmp_path, *['standing = "acceptable"'] * 100)
    path = tmp_path / "many.toml"
    path.write_text(f'policy = ["./{Path(policy).name}"]\n' + _tables("uses", CELL)(400))
    read_project(path)
    path.write_text(f'policy = ["./{Path(policy).name}"]\n' + _tables("uses", CELL)(401))
    with pytest.raises(TollbarError, match="judged by more than 40,000 rules"):
        read_project(path)


def test_more_values_of_leave_outs_than_can_be_looked_at_are_refused(tmp_path: Path) -> None:
    """Each a pattern of its own, as many as a file may have took a minute."""
    path = tmp_path / "odd.toml"
    where = ", ".join(f'"q{number}*"' for number in range(101))
    left = f'[[leave-out]]\nwhere = {{ choice = [{where}] }}\nbecause = "?"\n'
    path.write_text(f'question = "?"\nfamily = "digest"\nproviders = ["libcrypto"]\n{left * 100}')
    with pytest.raises(TollbarError, match="`leave-out` has 10,100 values"):
        study.load([str(path)])
