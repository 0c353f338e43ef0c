"""Words for counts and lists: some names are listed, the rest are counted."""

from __future__ import annotations

import pytest

from tollbar.core.words import few, left_out, more

NAMES = ["a", "b", "c"]


@pytest.mark.parametrize(
    ("names", "most", "spare", "expected"),
    [
        (NAMES, 3, 0, ["a", "b", "c"]),
        (NAMES, 2, 0, ["a", "b", "1 more row"]),
        (NAMES, 1, 0, ["a", "2 more rows"]),
        # A name takes no more room than its count.
        (NAMES, 2, 1, ["a", "b", "c"]),
        (NAMES, 1, 1, ["a", "2 more rows"]),
        ([], 2, 0, []),
    ],
)
def test_few_shows_the_first_and_counts_the_rest(names: list[str], most: int, spare: int, expected: list[str]) -> None:
    assert expected == few(names, most, "row", spare=spare)


def test_more_needs_no_noun_and_groups_its_digits() -> None:
    assert ("1 more", "1,200 more", "1,200 more rows") == (more(1), more(1200), more(1200, "row"))


def test_a_note_of_what_is_left_out_stands_only_where_something_is() -> None:
    assert ([], ["… 3 more rows, 1 of them not measured: the report"]) == (
        left_out(0, "row", "the report"),
        left_out(3, "row", "the report", ", 1 of them not measured"),
    )
