"""Selection of tests: marks by processes started and by time taken, their order, and the share of cases that runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

import share

# Modules whose servers are started once for all of their tests, so one worker gets each module.
ONE_LABORATORY = ("gssapi", "labs", "negotiate", "samba", "services", "sign_in", "sign_in_faults", "storage_elsewhere")
# Modules that plan every shipped study, which takes longer than their tests; one worker gets each module.
OF_ALL_STUDIES = ("document", "headlines", "batches", "published", "sets", "terminal_width")
# The longest test of each module starts first; begun last, it would keep one worker busy after the others are done.
# Among laboratories pytest-xdist starts those with most tests first.
LONGEST = (
    *(
        "kills",
        "fleet_on_ray",
        "survivors",
        "roles",
        "run",
        "source_pages",
        "providers",
        "runners",
        "coverage",
        "precision",
    ),
    *("client_core", "conformance", "check", "compare", "engine_replaced", "report_browser", "gather_sent", "secrets"),
    *("database_faults", "document", "published", "sets", "url_served", "served", "databases", "batches", "run_read"),
)
# Tests that start no process and are still slow, by module or name: hundreds of simulated runs, or checks of each
# shipped study, policy and choice.
LONG = {
    *("coverage", "batches", "published", "sets", "source_pages", "the_documents_are_what_the_schema_says"),
    *("every_shipped_study_has_a_line", "whatever_components_hold_each_is_an_asset_or_none"),
    *("many_choices_are_told_by_the_least_and_the_greatest", "a_thousand_cells", "toll_scales_with_its_cell"),
    *("shipped_policies_say_of_every_choice_what_was_reviewed", "estimate_of_more_blocks_is_about_right"),
    *("intervals_cover_what_was_made", "a_value_does_more_than_its_choice_only_where_the_family_says_so"),
    *("what_means_nothing_to_a_cell_is_not_combined", "every_shipped_study_can_be_planned"),
    *("no_ratio_or_verdict_of_a_shipped_study_is_cut", "of_many_rows_that_cost_the_same_none_is_told"),
    *(
        "a_limit_that_was_accepted_holds_when_nothing_changed_and_is_broken_by_five_per_cent",
        "a_sum_of_means_is_linear",
    ),
    *("no_advice_leads_to_what_cannot_be_had_or_stands_no_better", "what_a_family_has_not_keeps_a_verdict_open"),
    *("a_group_is_that_of_its_document", "nothing_that_is_refused_or_disallowed_is_proposed"),
    # Plans of studies that ask each platform's runner for its choices.
    *("a_choice_that_all_rows_have_is_said_once", "question_family_and_choices_are_enough"),
    *("a_study_to_begin_with_runs_as_it_is", "all_that_the_judge_gives_is_shown"),
}
# Fixtures and names in modules that start the command, a server, a runner or a browser.
STARTING = {
    *("at", "browser", "fake_runs", "fake_study", "lab", "pages", "runs_made", "service", "short_study", "tollbar"),
    *("Sandbox", "Session", "ask", "engine", "start", "started", "session", "subprocess", "tune", "command"),
    *("a_ground", "ground", "survivors", "counting"),
}
# Modules without these names in which Tollbar starts processes.
STARTING_WITHIN = ("bench_fuzz", "bench_supply", "conformance", "gather_sent")


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Mark tests that start servers or other processes, group those that share a laboratory, and put the longest first.

    A share is taken of the tests that `-k` and `-m` leave; cases that are named one by one all run.
    """
    for item in items:
        module = getattr(item, "module", None)
        name = item.path.stem.removeprefix("test_")
        named = {*getattr(item, "fixturenames", ())} | {*vars(module or item)}
        if STARTING & named or name in STARTING_WITHIN:
            item.add_marker(pytest.mark.servers)
        if {name, getattr(item, "originalname", "").removeprefix("test_")} & LONG:
            item.add_marker(pytest.mark.long)
        if name in ONE_LABORATORY:
            item.add_marker(pytest.mark.xdist_group(name))
        if name in OF_ALL_STUDIES:
            item.add_marker(pytest.mark.xdist_group("studies"))
        # A browser takes seconds to start, and pages of a thousand rows as long to write.
        if {"browser", "pages"} & {*getattr(item, "fixturenames", ())}:
            item.add_marker(pytest.mark.xdist_group("pages"))
    order = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.path.stem.removeprefix("test_"), len(order)))
    yield
    left = set() if share.IS_WHOLE or any("::" in argument for argument in config.args) else left_out(items)
    if left:
        config.hook.pytest_deselected(items=[item for item in items if item in left])
        items[:] = [item for item in items if item not in left]


def left_out(items: Sequence[pytest.Item]) -> set[pytest.Item]:
    """Return the cases of tests marked by `share` that are not in their share."""
    found: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("share"):
            found.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left: set[pytest.Item] = set()
    for cases in found.values():
        mark = cases[0].get_closest_marker("share")
        # A test without cases has no such values.
        rows = [tuple(map(repr, case.callspec.params.values())) if hasattr(case, "callspec") else () for case in cases]
        numbers = mark.args if mark else ()
        # With `HAS_EVERY_TEST` a test that a share would leave out keeps a case for each value.
        chosen = share.diverse(rows, *(() if share.HAS_EVERY_TEST and numbers == (0,) else numbers))
        left |= {case for number, case in enumerate(cases) if number not in chosen}
    return left


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report that cases were left out."""
    if not share.IS_WHOLE:
        terminalreporter.write_line("of combinations and moments at most a share: TOLLBAR_WHOLE=1 has them all")
