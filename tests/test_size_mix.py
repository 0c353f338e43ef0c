"""Invalid mixes, and the measured costs that a mix uses."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from builders import run
from size_lab import HANDSHAKE_TERM, HASH_TERM, LOGIN_TERM, TODAY, handshakes, hashes, made, mix, sized
from tollbar import study as studies
from tollbar.catalog import families
from tollbar.catalog.families import Value
from tollbar.core.errors import TollbarError
from tollbar.core.records import Outcome
from tollbar.decide.size import size
from tollbar.decide.size.document import document
from tollbar.decide.size.words import questions, size_answer
from tollbar.results import StudyRun
from tollbar.study import default_load


def test_what_was_not_measured_is_answered_by_its_question(tmp_path: Path) -> None:
    of = mix(tmp_path, LOGIN_TERM + HANDSHAKE_TERM.format(rate=5, resumed=80))
    none = sized(of)
    assert none.cores is None
    first, second = questions(none)
    load = "utilisation=60% client=apart"
    assert f"tollbar ask web-auth form op=sign-on server=embedded {load}" == first
    assert f"tollbar ask tls tls-1.3 plaintext op=connect resumption=none,ticket {load}" == second
    for one in (first, second):
        _, _, family, *words = shlex.split(one)
        assert studies.of_words(family, words).tables
    other = mix(tmp_path, HASH_TERM.format(rate=1, choice="sha-256") + 'setting = { bytes = "1 KiB" }\n')
    found = sized(other, hashes({"sha-256": 7000.0}), handshakes())
    assert {"hashes": "the nearest that was measured has `bytes=4096` for `1024`"} == found.missing
    assert "no run here has the family web-auth" == sized(of, handshakes()).missing["logins"]
    assert (None, ["tollbar ask digest sha-256 op=hash bytes=1KiB"]) == (document(found).cores, document(found).ask)


def test_a_cell_that_failed_is_missing_for_its_reason(tmp_path: Path) -> None:
    one = hashes({"sha-256": 7000.0, "sha-512": 9000.0})
    rows = [replace(one.rows[0], outcome=Outcome.FAILED, reason="its server was 23 % busy", trials=()), one.rows[1]]
    of = mix(tmp_path, HASH_TERM.format(rate=1, choice="sha-256"))
    found = sized(of, replace(one, rows=tuple(rows)))
    assert {"hashes": "its measurement failed: its server was 23 % busy"} == found.missing


def test_costs_of_other_requests_are_not_taken(tmp_path: Path) -> None:
    of = mix(tmp_path, LOGIN_TERM)
    usual = made(
        "web-auth", {"form": {"choice": "form", "op": "sign-on", "server": "embedded", "users": 8}}, {"form": 2e7}
    )
    load = default_load(usual.study.family)
    own = replace(usual, study=replace(usual.study, load=replace(load, users=(2,), rates_hz=(5.0,))))
    for other, said in (
        ({"get": "/bytes/1048576"}, f"`load.request.get=/bytes/1048576` for `{load.get}`"),
        ({"connection": "new"}, "`load.connection=new` for `–`"),
        ({"think_s": 0.5}, "`load.think=0.5` for `–`"),
        ({"unique_query": True}, "`load.request.unique=True` for `–`"),
    ):
        more = made("web-auth", {"form": usual.rows[0].coordinates}, {"form": 9e7})
        more = replace(more, study=replace(more.study, load=replace(load, **other)))  # type: ignore[arg-type]
        assert {"logins": f"the nearest that was measured has {said}"} == sized(of, more).missing
        for runs in ((more, own), (own, more)):
            found = sized(of, *runs)
            assert found.cores is not None
            assert 20 * 0.02 / 0.6 == pytest.approx(found.cores.estimate)


@pytest.mark.parametrize("words", [("digest", "sha-256", "server=embedded"), ("tls", "tls-1.3"), ("web-auth", "form")])
def test_a_question_s_requests_are_those_that_a_mix_wants(words: tuple[str, ...]) -> None:
    asked = studies.read("asked", studies.of_words(words[0], words[1:]).text(5), where="asked")
    assert default_load(families.family(words[0])) == asked.load


def test_costs_of_several_threads_are_not_taken(tmp_path: Path) -> None:
    of = mix(tmp_path, HASH_TERM.format(rate=1000, choice="sha-256"))
    sha: Mapping[str, Value] = {"choice": "sha-256", "op": "hash", "bytes": 4096}
    eight = made("digest", {"eight": {**sha, "threads": 8}}, {"eight": 20_000.0})
    assert {"hashes": "the nearest that was measured has `threads=8` for `1`"} == sized(of, eight).missing
    cells = {"eight": {**sha, "threads": 8}, "one": {**sha, "threads": 1}}
    found = sized(of, made("digest", cells, {"eight": 20_000.0, "one": 7000.0}))
    assert 1 == found.terms[0].cell.row.coordinates["threads"]


def test_a_provider_that_is_not_said_is_the_family_s(tmp_path: Path) -> None:
    text = HASH_TERM.format(rate=1000, choice="sha-256")

    def ran(**costs: float) -> StudyRun:
        sha: Mapping[str, Value] = {"choice": "sha-256", "op": "hash", "bytes": 4096}
        return made("digest", {name: {**sha, "provider": name} for name in costs}, costs)

    for runs in ((ran(go=5e4, libcrypto=7e3),), (ran(go=5e4), ran(libcrypto=7e3)), (ran(libcrypto=7e3), ran(go=5e4))):
        assert "libcrypto" == sized(mix(tmp_path, text), *runs).terms[0].cell.row.coordinates["provider"]
    assert "go" == sized(mix(tmp_path, text), ran(go=5e4)).terms[0].cell.row.coordinates["provider"]
    with pytest.raises(TollbarError, match="the runs have several providers") as fault:
        sized(mix(tmp_path, text), ran(java=6e4, go=5e4))
    assert 'for example `provider = "go"`; measured: go, java' == fault.value.hint
    said = sized(mix(tmp_path, text + 'provider = "java"\n'), ran(go=5e4, java=6e4))
    assert "java" == said.terms[0].cell.row.coordinates["provider"]


def test_runs_of_two_machines_are_not_summed(tmp_path: Path) -> None:
    of = mix(tmp_path, HASH_TERM.format(rate=1, choice="sha-256"))
    runs = [replace(run(hashes({"sha-256": 7000.0})), fingerprint={"cpu": cpu}) for cpu in ("one", "other")]
    with pytest.raises(TollbarError, match=r"another machine.*cpu: one / other"):
        size(of, runs, TODAY)


@pytest.mark.parametrize(("cpu", "is_summed"), [("one", True), ("other", False)])
def test_a_machine_of_a_role_is_one_of_a_run(tmp_path: Path, cpu: str, is_summed: bool) -> None:
    """Costs of a remote server are summed with the lab's own if both machines are of one kind."""
    of = mix(tmp_path, HASH_TERM.format(rate=1, choice="sha-256"))
    alone = replace(run(hashes({"sha-256": 7000.0})), fingerprint={"cpu": "one"})
    web = {"address": "10.0.0.2", "host": "web", "fingerprint": {"cpu": cpu}, "is_simulated": False}
    for runs in ([alone, replace(alone, nodes={"web": web})], [replace(alone, nodes={"web": web}), alone]):
        if is_summed:
            assert size(of, runs, TODAY).cores is not None
            continue
        with pytest.raises(TollbarError, match=r"another machine.*web: cpu: (one / other|other / one)"):
            size(of, runs, TODAY)


@pytest.mark.parametrize(
    ("cpus", "refused"),
    [
        ({"web": "other"}, None),
        ({"web": "other", "database": "other"}, None),
        ({"web": "other", "database": "one"}, "the role web and the role database: cpu: other / one"),
        ({"database": "one"}, None),
        ({"database": "other"}, "the lab and the role database: cpu: one / other"),
    ],
)
def test_unlike_machines_of_one_run_are_not_summed(tmp_path: Path, cpus: dict[str, str], refused: str | None) -> None:
    """The load client's machine has no part in the costs of remote servers."""
    of = mix(tmp_path, LOGIN_TERM.replace("embedded", "httpd"))
    cell = {"choice": "form", "op": "sign-on", "server": "httpd", "users": 8}
    nodes = {role: {"address": "10.0.0.2", "host": role, "fingerprint": {"cpu": cpu}} for role, cpu in cpus.items()}
    apart = replace(run(made("web-auth", {"form": cell}, {"form": 2e7})), fingerprint={"cpu": "one"}, nodes=nodes)
    if refused is None:
        assert size(of, [apart], TODAY).cores is not None
    else:
        with pytest.raises(TollbarError, match=refused):
            size(of, [apart], TODAY)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (LOGIN_TERM.replace("20 /s", "0 /s"), "must be from 0.000001 /s"),
        (LOGIN_TERM.replace("20 /s", "20"), "needs a unit"),
        # The error for a number without quotes prints the text to write.
        (LOGIN_TERM.replace('"20 /s"', "20"), '`term.logins.rate`: needs a unit, for example `rate = "20 /s"`'),
        (LOGIN_TERM.replace('"20 /s"', "0.5"), '`rate = "0.5 /s"`'),
        (
            "[mix]\nutilisation = 60\n" + LOGIN_TERM,
            '`mix.utilisation`: needs a unit, for example `utilisation = "60 %"`',
        ),
        ("[mix]\nutilisation = 0.6\n" + LOGIN_TERM, '`utilisation = "60 %"`'),
        ("[mix]\nutilisation = inf\n" + LOGIN_TERM, '`utilisation = "60 %"`'),
        ("[mix]\nutilisation = true\n" + LOGIN_TERM, "valid string"),
        (HANDSHAKE_TERM.format(rate=1, resumed=80).replace('"80 %"', "80"), '`resumed = "80 %"`'),
        # Files of another kind.
        ('{"metrics": {"http_reqs": {"rate": 12.5}}}', "use `http_reqs` of a k6 summary as the `rate` of a term"),
        ('\n {"bomFormat": "CycloneDX"}', "a JSON document is not a mix; a mix is a TOML file"),
        ("<html>", "docs/mix.toml"),
        ('[study]\ntitle = "Mine"\n', "known: mix, term"),
        (LOGIN_TERM.replace("rate ", "rat "), "did you mean `rate`"),
        (LOGIN_TERM.replace('"form"', '"fromm"'), "did you mean `form`"),
        (LOGIN_TERM.replace("web-auth", "web-aut"), "did you mean `web-auth`"),
        (LOGIN_TERM.replace("embedded", "embeded"), "did you mean `embedded`"),
        (LOGIN_TERM.replace('op     = "sign-on"', ""), "known: request, sign-on"),
        (LOGIN_TERM + 'setting = { signature = "rs256" }', "`signature` does not apply to this cell"),
        # Its place and its load are set elsewhere, once.
        *(
            (f"{LOGIN_TERM}setting = {{ {said} }}", f"`{said.partition(' ')[0]}` does not apply to this cell")
            for said in (
                'op = "request"',
                'server = "nginx"',
                'provider = "aws-lc"',
                "users = 8",
                'rate = "50/s"',
                'utilisation = "60%"',
                'client = "apart"',
                "threads = 1",
            )
        ),
        (LOGIN_TERM + 'setting = { store = "sql,file" }', "one value"),
        (LOGIN_TERM + 'resumed = "20 %"', "cannot resume connections"),
        (HANDSHAKE_TERM.format(rate=1, resumed=120), "must be a whole percentage from 0 % to 100 %"),
        (HANDSHAKE_TERM.format(rate=1, resumed=99.6), "must be a whole percentage from 0 % to 100 %"),
        (HANDSHAKE_TERM.format(rate=1, resumed=0.4), "must be a whole percentage from 0 % to 100 %"),
        # Its name is used for a study, whose directory a check makes.
        *(
            (LOGIN_TERM.replace("term.logins", f'term."{name}"'), "a name of letters, digits")
            for name in ("a/b", "../x", "")
        ),
        (HANDSHAKE_TERM.format(rate=1, resumed=20).replace("plaintext", "plain"), "did you mean `plaintext`"),
        (LOGIN_TERM + 'off = "something"', '{ choice = "anonymous" }'),
        (HANDSHAKE_TERM.format(rate=1, resumed=20).replace("plaintext", "tls-1.2"), '`off = { choice = "plaintext" }`'),
        (LOGIN_TERM.replace("20 /s", f"{'9' * 400} /s"), "must be a number with a unit"),
        (LOGIN_TERM.replace("20 /s", "0.0000001 /s"), "must be from 0.000001 /s to 1,000,000,000 /s"),
        (LOGIN_TERM + "at-once = inf", "finite"),
        ('[mix]\nutilisation = "0 %"\n' + LOGIN_TERM, "must be a whole percentage from 1 % to 90 %"),
        ('[mix]\nutilisation = "95 %"\n' + LOGIN_TERM, "must be a whole percentage from 1 % to 90 %"),
        ('[mix]\nutilisation = "unpaced"\n' + LOGIN_TERM, "cannot be `unpaced`"),
        ("[mix]\nsurvive = 1\n" + LOGIN_TERM, "cores-each"),
        ("[mix]\nsurvive = -1\n" + LOGIN_TERM, "greater than or equal to 0"),
        (f"[mix]\ncores-each = {10**400}\n" + LOGIN_TERM, "less than or equal to 1000000"),
        (f"[mix]\ncores-each = 8\nsurvive = {10**400}\n" + LOGIN_TERM, "less than or equal to 1000000"),
        ('[mix]\npolicy = ["asvs-levl-2"]\n' + LOGIN_TERM, "did you mean"),
        ("[term]", "no term"),
        (LOGIN_TERM + HANDSHAKE_TERM.format(rate=1, resumed=20).partition("off")[0], "has the request path of"),
    ],
)
def test_a_mix_that_cannot_be_meant_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(TollbarError) as fault:
        mix(tmp_path, text)
    assert said in f"{fault.value} {fault.value.hint}"
    assert "\n" not in f"{fault.value}"


def test_terms_that_share_a_path_say_so(tmp_path: Path) -> None:
    bare = HANDSHAKE_TERM.format(rate=1, resumed=20).partition("off")[0]
    for off in ('off = { choice = "plaintext" }', 'off = "nothing"'):
        assert 2 == len(mix(tmp_path, f"{LOGIN_TERM}{bare}{off}").terms)


def test_costs_of_the_mix_s_load_come_first(tmp_path: Path) -> None:
    """Costs of a server that always had a next request are used as a fallback, with a note."""
    of = mix(tmp_path, LOGIN_TERM)
    form: Mapping[str, Value] = {"choice": "form", "op": "sign-on", "server": "embedded"}
    at: Mapping[str, Value] = {**form, "client": "apart", "utilisation": 60}
    busy = made("web-auth", {"form": {**form, "users": 8}}, {"form": 20e6})
    idle = made("web-auth", {"form": at}, {"form": 25e6})
    less = made("web-auth", {"form": {**at, "utilisation": 30}}, {"form": 30e6})
    for runs, cost_s, at_load in (((busy,), 0.020, False), ((busy, less, idle), 0.025, True)):
        found = sized(of, *runs)
        assert found.cores is not None
        assert 20 * cost_s / 0.6 == pytest.approx(found.cores.estimate)
        assert (at_load, at_load) == (found.terms[0].is_at_load, document(found).terms[0].at_load)
        assert at_load != any("is woken for each" in note for note in size_answer(found).notes)
    found = sized(of, less)
    assert not found.terms[0].is_at_load
    (note,) = (note for note in size_answer(found).notes if "load" in note)
    assert (
        "Measured under another load than the mix's `utilisation=60% client=apart`: `logins` (30\u00a0% busy)." == note
    )
