"""The share of combinations that is tried by default: few, and each value of each parameter among them."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

import share

ROWS = st.integers(1, 4).flatmap(lambda width: st.lists(st.tuples(*[st.integers(0, 5)] * width), max_size=40))


@given(ROWS)
def test_each_value_is_in_a_row_that_is_chosen(rows: list[tuple[int, ...]]) -> None:
    """And no row is chosen that has nothing of its own when it is."""
    chosen = share.diverse(rows)
    every = {cell for row in rows for cell in enumerate(row)}
    assert every == {cell for number in chosen for cell in enumerate(rows[number])}
    assert len(chosen) <= len(every)


@pytest.mark.parametrize(("sizes", "fewest"), [((8, 3), 8), ((8, 2, 2), 8), ((5,), 5), ((4, 4), 4), ((1, 1), 1)])
def test_of_all_combinations_as_many_are_chosen_as_one_parameter_has_values(
    sizes: tuple[int, ...], fewest: int
) -> None:
    """With fewer one value would be left out. And of the shorter ones each is there about as often."""
    rows = [*itertools.product(*map(range, sizes))]
    chosen = [rows[number] for number in share.diverse(rows)]
    assert fewest == len(chosen)
    for column, size in enumerate(sizes):
        times = [sum(row[column] == value for row in chosen) for value in range(size)]
        assert 1 >= max(times) - min(times)


@pytest.mark.parametrize(
    ("number", "expected"), [(0, set()), (1, {0}), (3, {0, 4, 8}), (4, {0, 1, 4, 8}), (99, {*range(9)})]
)
def test_so_many_are_chosen_as_are_asked_for(number: int, expected: set[int]) -> None:
    """Those with values that none before them has come first; and there are no more than there are."""
    assert expected == share.diverse([*itertools.product(range(3), range(3))], number)


def test_of_nothing_nothing_is_chosen() -> None:
    """As where a table is empty."""
    assert set() == share.diverse([])


@pytest.mark.share
@pytest.mark.parametrize("letter", "abc")
@pytest.mark.parametrize("number", [1, 2])
def test_a_test_of_combinations_has_each_value(letter: str, number: int, request: pytest.FixtureRequest) -> None:
    """Asked of the session that runs this: of six there are three, or all."""
    ids = {item.name for item in request.session.items if item.name.startswith("test_a_test_of_combinations_has")}
    assert 6 == len(ids) if share.IS_WHOLE else len(ids) <= 3
