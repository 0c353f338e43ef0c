"""Reports and charts of cells that were measured through servers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import pytest

from report_example import digests
from served_example import (
    MATRIX,
    NO_NGINX,
    arrivals,
    asked_only,
    handshakes,
)
from tollbar.analysis import Limit
from tollbar.catalog.families import Degree, Value, families
from tollbar.report.coordinates import EMBEDDED_SERVER, named_value
from tollbar.report.groups import MOST_LINES, at_one_load, by_row, facet_names, facet_sizes, split
from tollbar.report.names import cell_names, labels, place_words, prevailing, varying
from tollbar.report.sections.against import against_baseline
from tollbar.report.sections.cpu import CLIENT, bars, parts_of
from tollbar.report.sections.load import THROUGHPUT, facets, limited, merged_load
from tollbar.report.sections.negotiated import agreements
from tollbar.report.sections.protection import alike
from tollbar.report.sections.trust import proof
from tollbar.report.sections.unmeasured import unavailable

X = "×\u00a0"
Cells = list[dict[str, Value]]


# Words.


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("certificate", "rsa-2048", "rsa-2048"),
        ("key-exchange", "x25519", "x25519"),
        ("key-exchange", "rsa", "key exchange rsa"),
        ("client-certificate", "rsa-2048", "client certificate rsa-2048"),
        ("resumption", "none", "no resumption"),
        ("resumed", 50, "resumed 50 %"),
        ("users", 1, "1 user"),
        ("users", 1600, "1,600 users"),
        ("rate", 400, "400\u00a0/s"),
        ("rate", 0, "unpaced"),
        ("utilisation", 60, "60\u00a0% busy"),
        ("utilisation", 0, "unpaced"),
    ],
)
def test_a_value_stands_by_itself_where_it_says_what_it_is(name: str, value: Value, expected: str) -> None:
    assert expected == named_value(handshakes().study.study.family, name, value)


@pytest.mark.parametrize(
    ("family", "name", "value", "expected"),
    [
        ("web-auth", "directory-cache", "on", "directory's answers kept"),
        ("web-auth", "transport", "clear", "transport clear"),
        ("web-auth", "password-hash", "argon2id", "argon2id"),
        ("storage", "s2k-mode", 1, "s2k mode 1"),
        ("storage", "log", "plain", "log in clear"),
        ("cipher", "cpu", "no-aes", "no AES instructions"),
    ],
)
def test_an_answer_says_to_which_question(family: str, name: str, value: Value, expected: str) -> None:
    assert expected == named_value(families()[family], name, value)


def test_a_server_and_its_library_are_two_things_that_stand_together() -> None:
    study = handshakes()
    assert "provider" not in varying(study.study.rows)
    assert "server" in varying(study.study.rows)
    place, row = place_words(study), study.study.rows[-1]
    httpd = next(r for r in study.study.rows if r.server == "httpd")
    assert "httpd 2.4.71, openssl 3.0.19" == place(httpd.coordinates, ("server", "provider"))
    assert "httpd 2.4.71" == place(httpd.coordinates, ("server",))
    # A server that is not installed has no version.
    assert "nginx, openssl 3.0.19" == place(row.coordinates, ("server", "provider"))


def test_the_load_comes_last() -> None:
    assert ("choice", "server", "certificate", "key-exchange", "dh-parameters", "users") == varying(
        handshakes().study.rows
    )


def test_the_answer_says_whose_cpu_time_it_is_about() -> None:
    first, second = against_baseline(handshakes())
    assert first.startswith(
        "By server CPU per connection and against “no TLS”, in every cell measured, 16 cost more,"
        f" from TLS 1.2 · rsa-1024 · key exchange rsa (disallowed, +166 µs to +210 µs, {X}6.21 to {X}6.26)"
    )
    assert f"to TLS 1.2 · rsa-3072 · dhe · modp-3072 (disallowed, +8.55 ms to +10.9 ms, {X}27" in first
    assert "7 cells could not be measured." == second
    assert against_baseline(asked_only())[0].startswith("By client CPU per connection and against “no TLS”,")
    assert against_baseline(digests())[0].startswith("Against SHA-256,")


def test_what_servers_refuse_is_said() -> None:
    study = handshakes()
    assert (
        "They refused another certificate and another suite."
        " Not tried: an expired certificate: this server checks none." == proof(study)
    )
    rows = tuple(replace(r, refused=(f"certificate {i}",), not_tried=()) for i, r in enumerate(study.study.rows))
    assert proof(replace(study, study=replace(study.study, rows=rows))).endswith(" more.")
    assert proof(digests()).startswith("They met 0 known answers")


def test_a_server_that_is_not_here_is_said_once() -> None:
    assert [f"Not available here, 9 cells on nginx: {NO_NGINX}."] == unavailable(handshakes())
    assert [] == unavailable(digests())


def test_limits_are_said_with_their_reason() -> None:
    bound, idle, stands = limited(handshakes())
    assert re.match(
        r"† hollow, client-bound \(\d+ of 59 cells\): the load client's core was more than 70 % busy", bound
    )
    assert re.match(r"‡ hollow, not saturated \(\d+ of 59 cells\): the server's core was less than 70 % busy", idle)
    assert "Server CPU per connection is valid there too." in stands


def test_what_others_took_is_said() -> None:
    study = handshakes()
    measured = tuple(
        replace(m, limit=Limit.CONTENDED) if m.limit is Limit.NOT_SATURATED else m for m in study.measurements
    )
    _, contended, _ = limited(replace(study, measurements=measured))
    assert contended.startswith("§ hollow, contended (")
    assert "quieter machine" in contended


def test_a_server_with_time_to_spare_is_what_a_given_rate_asks_for() -> None:
    assert {None} == {m.limit for m in arrivals().measurements}
    assert [] == limited(arrivals())


# Grouping of cells.


def _grid(**values: int) -> Cells:
    cells: Cells = [{}]
    for name, number in values.items():
        cells = [{**c, name: f"{name}-{i}"} for c in cells for i in range(number)]
    return cells


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (_grid(choice=12), ()),
        (_grid(choice=6, server=2), ("server",)),
        (_grid(choice=4, certificate=5), ("choice",)),
        (_grid(choice=7, certificate=2), ("certificate",)),
        (_grid(choice=2, server=2, certificate=5, cipher=3), ("server", "choice", "cipher")),
        (_grid(choice=20), ("choice",)),
    ],
)
def test_lines_are_divided_by_as_little_as_it_takes(cells: Cells, expected: tuple[str, ...]) -> None:
    names = [n for n in cells[0] if len({c[n] for c in cells}) > 1]
    found = facet_names(cells, names)
    if expected == ("server", "choice", "cipher"):
        assert "server" == found[0]
    else:
        assert expected == found
    assert max(facet_sizes(cells, found).values()) <= MOST_LINES


def test_what_a_dividing_setting_means_nothing_to_stands_beside_each_of_its_values() -> None:
    """Plaintext has no certificate: it is drawn with every certificate, and counted there."""
    cells: list[Mapping[str, Value]] = [{"choice": "none"}, *({"choice": "tls", "key": k} for k in ("a", "b", "b"))]
    assert {("a",): 2, ("b",): 3} == facet_sizes(cells, ("key",))
    assert {(): 4} == facet_sizes(cells, ())


def test_every_cell_has_a_line_that_a_reader_can_find() -> None:
    found = facets(handshakes())
    assert {EMBEDDED_SERVER, "httpd 2.4.71"} == {f.title.split(" · ")[0] for f in found}
    for facet in found:
        assert len(facet.lines) <= MOST_LINES
        assert len(facet.lines) == len({line.number for line in facet.lines})
        assert len(facet.lines) == len({line.label for line in facet.lines})
        assert "no TLS" in [line.label for line in facet.lines]
    assert len(MATRIX) - 1 + 2 == sum(line.label != "no TLS" for f in found for line in f.lines)


def test_one_name_has_one_look_in_every_facet() -> None:
    looks: dict[str, set[int]] = {}
    for facet in facets(handshakes()):
        for line in facet.lines:
            looks.setdefault(line.label, set()).add(line.number)
    assert {1} == {len(found) for found in looks.values()}


def test_charts_show_the_highest_load_that_all_cells_have() -> None:
    at = at_one_load(handshakes())
    assert {16} == {r.coordinates["users"] for r in at.study.study.rows}
    assert "At 16 users, the most that all cells have; the full table has the others." == at.note
    assert digests() == at_one_load(digests()).study
    rows = tuple(r for r in handshakes().study.rows if not (r.coordinates["users"] == 16 and r.choice == "tls-1.3"))
    fewer = replace(handshakes(), study=replace(handshakes().study, rows=rows))
    assert {4} == {r.coordinates["users"] for r in at_one_load(fewer).study.study.rows}


def test_without_a_load_in_common_each_cell_stands_at_its_highest() -> None:
    rows = tuple(r for r in handshakes().study.rows if (r.coordinates["users"] == 1) is (r.choice == "plaintext"))
    at = at_one_load(replace(handshakes(), study=replace(handshakes().study, rows=rows)))
    assert {1, 16} == {r.coordinates["users"] for r in at.study.study.rows}
    assert "Each cell at the most users that it has; the full table has the others." == at.note


def test_what_means_nothing_to_the_baseline_tells_rows_apart_and_not_panels() -> None:
    """Plaintext has no certificate: all certificates are compared with it in one panel for each server and load."""
    study = handshakes()
    in_rows, in_panels = split(study, study.study.rows)
    assert (["choice", "certificate", "key-exchange", "dh-parameters"], ["server", "users"]) == (in_rows, in_panels)


# Numbers.


def test_the_parts_of_a_bar_are_the_client_and_every_component() -> None:
    study = at_one_load(handshakes()).study
    assert (CLIENT, "web", "directory") == parts_of(study)
    cost = by_row(study, "server-cpu")
    found = bars(study)
    assert 16 + 3 == len(found)
    for bar in found:
        assert cost[bar.row.key].value == pytest.approx(bar.server, rel=0.01)
        assert ({CLIENT, "web", "directory"} if bar.row.server == "httpd" else {CLIENT, "web"}) == set(bar.parts)
    assert [] == bars(asked_only())


def test_what_was_negotiated_is_counted_over_all_trials() -> None:
    found = agreements(arrivals().study.rows)
    trials = [t.load for r in arrivals().study.rows for t in (*r.trials, *r.repeats) if t.load is not None]
    plain, tls = found
    assert ("", "TLSv1.3") == (plain.version, tls.version)
    assert sum(n.count for load in trials for n in load.negotiated) == tls.full + tls.resumed
    assert sum(n.count for load in trials for n in load.negotiated if n.resumed) == tls.resumed
    assert sum(load.connections for load in trials if not load.negotiated) == plain.full


def test_latencies_of_all_trials_make_one_histogram() -> None:
    row = arrivals().study.rows[0]
    merged = merged_load(row)
    assert merged is not None
    loads = [t.load for t in row.trials if t.load is not None]
    assert sum(load.requests for load in loads) == merged.requests
    assert max(bound for load in loads for bound, _ in load.latency_us) == merged.latency_at(1.0)
    assert None is merged_load(replace(row, trials=()))


def test_cells_that_protect_against_the_same_stand_together() -> None:
    groups = alike(handshakes())
    assert len(MATRIX) - 1 == sum(len(names) for _, names in groups)
    hybrid = next(answers for answers, names in groups if "TLS 1.3 · ecdsa-p256 · x25519mlkem768" in names)
    static = next(answers for answers, names in groups if "TLS 1.2 · rsa-2048 · key exchange rsa" in names)
    assert (Degree.YES, Degree.NO) == (hybrid["harvest-now-decrypt-later"].degree, static["key-theft"].degree)
    assert [] == alike(digests())


def test_what_the_client_spoke_through_is_named() -> None:
    """The client's own cost can only be compared between cells with the same library."""
    found = agreements(handshakes().study.rows)
    assert {("rustls 0.23.0",)} == {one.client_libraries for one in found if one.version}
    assert {()} == {one.client_libraries for one in found if not one.version}


def test_metrics_that_are_drawn_are_measured() -> None:
    assert THROUGHPUT in {m.metric for m in handshakes().measurements}


def test_what_nearly_all_cells_have_alike_is_said_once() -> None:
    study = handshakes()
    changed = {r.key for r in study.study.rows if r.coordinates.get("key-exchange") == "x25519mlkem768"}
    rows = tuple(
        replace(r, coordinates={**r.coordinates, "cipher": "chacha20-poly1305"}) if r.key in changed else r
        for r in study.study.rows
    )
    study = replace(study, study=replace(study.study, rows=rows))
    assert {"cipher": "aes-128-gcm"} == prevailing(study)
    named = {label(r) for label in [labels(study, cell_names(study))] for r in rows if r.server == "embedded"}
    assert f"TLS 1.3 · {EMBEDDED_SERVER} · ecdsa-p256 · x25519mlkem768 · chacha20-poly1305" in named
    assert len(MATRIX) == len(named)
    assert {} == prevailing(digests())
