"""The default share of combinations: few, with each value of each parameter."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import share
from selection import left_out

ROWS = st.integers(1, 4).flatmap(lambda width: st.lists(st.tuples(*[st.integers(0, 5)] * width), max_size=40))


@given(ROWS)
def test_each_value_is_in_a_row_that_is_chosen(rows: list[tuple[int, ...]]) -> None:
    chosen = share.diverse(rows)
    every = {cell for row in rows for cell in enumerate(row)}
    assert every == {cell for number in chosen for cell in enumerate(rows[number])}
    assert len(chosen) <= len(every)


@pytest.mark.parametrize(("sizes", "fewest"), [((8, 3), 8), ((8, 2, 2), 8), ((5,), 5), ((4, 4), 4), ((1, 1), 1)])
def test_of_all_combinations_as_many_are_chosen_as_one_parameter_has_values(
    sizes: tuple[int, ...], fewest: int
) -> None:
    """With fewer rows a value would be missing; values of parameters with fewer values appear about equally often."""
    rows = [*itertools.product(*map(range, sizes))]
    chosen = [rows[number] for number in share.diverse(rows)]
    assert fewest == len(chosen)
    for column, size in enumerate(sizes):
        times = [sum(row[column] == value for row in chosen) for value in range(size)]
        assert 1 >= max(times) - min(times)


@pytest.mark.parametrize(
    ("number", "expected"), [(0, set()), (1, {0}), (3, {0, 5, 7}), (4, {0, 2, 5, 7}), (99, {*range(9)})]
)
def test_so_many_are_chosen_as_are_asked_for(number: int, expected: set[int]) -> None:
    assert expected == share.diverse([*itertools.product(range(3), range(3))], number)


def test_of_nothing_nothing_is_chosen() -> None:
    assert set() == share.diverse([])


@dataclass(frozen=True, eq=False)
class Case:
    """Attributes that the collection reads from a test's case."""

    nodeid: str
    values: tuple[object, ...] = ()
    mark: pytest.Mark | None = None

    @property
    def callspec(self) -> SimpleNamespace:
        return SimpleNamespace(params=dict(enumerate(self.values)))

    def get_closest_marker(self, _: str) -> pytest.Mark | None:
        return self.mark


@pytest.mark.parametrize("has_every_test", [False, True])
def test_of_each_test_that_is_marked_a_share_is_kept(has_every_test: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share, "HAS_EVERY_TEST", has_every_test)
    values = [*itertools.product("abc", [1, 2])]
    marks = {"each": pytest.mark.share, "two": pytest.mark.share(2), "none": pytest.mark.share(0)}
    cases = [Case(f"{name}[{at}]", at, mark.mark) for name, mark in marks.items() for at in values]
    others = [Case(f"unmarked[{at}]", at) for at in values]
    left = left_out([*cases, *others])  # type: ignore[list-item]
    kept = {name: [one.values for one in cases if one not in left and one.nodeid.startswith(name)] for name in marks}
    assert {"each": 3, "two": 2, "none": 3 if has_every_test else 0} == {
        name: len(found) for name, found in kept.items()
    }
    assert ({*"abc"}, {1, 2}) == tuple({*column} for column in zip(*kept["each"], strict=True))
    assert not left & {*others}


def test_what_lies_apart_comes_first() -> None:
    """In a sorted table of one column the choice skips no kind."""
    rows = [(number,) for number in range(42)]
    assert {0, 1, 2} == {row // 14 for row in share.diverse(rows, 4)}


@pytest.mark.xdist_group("by-one-worker")
def test_what_is_one_group_is_known_as_one(request: pytest.FixtureRequest) -> None:
    """pytest-xdist recognises groups by a suffix of names, which not every version of pytest allows."""
    assert request.config.getoption("loadgroup", False) == request.node.nodeid.endswith("@by-one-worker")
