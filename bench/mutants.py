"""Mutation tests: `python -m bench mutants` changes one thing at a time in the package and runs its tests.

The changed code measures, plans, keeps and judges. A seeded sample of each package is tried; the share of mutants that
the tests find is its score.

The changes are mutmut's. Its own runner puts all mutants of a module into that and switches between them by name, which
excludes properties, module constants and decorated functions, and runs all tests for each. Here each mutant is a source
file in a copy of the tree, tried by the package's own tests, in a process that can be ended.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import hashlib
import json
import os
import queue
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import cache_from_source, find_spec
from pathlib import Path
from typing import Any

from bench.figures import Figure

ROOT = Path(__file__).parents[1]
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.toml")
GOAL = 0.90
# A mutant may loop for ever: the limit is a multiple of the unchanged tests' time, with a minimum for a busy machine.
TIMES, LEAST_LIMIT_S = 5, 60
UNCHANGED_LIMIT_S = 1800
PYTEST = ("-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "--tb=no")
# Changed arguments would only make these calls raise.
NEVER_CHANGED = {"len", "isinstance"}


@dataclass(frozen=True, slots=True)
class Package:
    """Source and the tests that try it: of all that use it, those that take seconds, the nearest first."""

    source: str
    """Module, or folder of modules, in `src/tollbar`."""
    tests: str
    """Names of their files, separated by blanks."""


JUDGE = (
    "judged_at_the_edges limits sources judge claims claim_kinds choosing rulings candidates contrasts trust"
    " crosstables comparison jointly break_even scaling factors observed_metrics quiet_rounds"
)
PACKAGES: Mapping[str, Package] = {
    "intervals": Package("core/intervals.py", "stats_of_several jointly stats judge"),
    "stats": Package("core/stats.py", "stats_of_several jointly quiet_rounds stats judge"),
    "visits": Package("core/visits.py", "stats_of_several quiet_rounds slices stats judge"),
    "judge": Package("analysis", JUDGE),
    "measure": Package("lab/measure", "schedule promises rounds set_aside would_notice"),
    "plan": Package("study/plan", "drawing factors study"),
    "results": Package("results", "results_kept results"),
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """Change of one place in a source file."""

    file: str
    line: int
    was: str
    now: str
    code: str
    """Whole file as changed."""

    @property
    def key(self) -> tuple[str, str, str]:
        """Return the identity of a mutant, without its line number, which changes with the lines above."""
        return self.file, self.was, self.now


def mutants(file: str) -> Iterator[Callable[[], Mutant | None]]:
    """Yield a maker of each mutant of a source file, which returns None for an identical file or invalid Python."""
    import libcst
    from libcst.metadata import MetadataWrapper, PositionProvider
    from mutmut.mutation.mutators import mutation_operators

    text = (ROOT / file).read_text("utf-8")
    wrapper = MetadataWrapper(libcst.parse_module(text), unsafe_skip_copy=True)
    found: list[Callable[[], Mutant | None]] = []

    def mutant(node: libcst.CSTNode, changed: libcst.CSTNode, line: int) -> Mutant | None:
        code = wrapper.module.deep_replace(node, changed).code  # type: ignore[arg-type,unused-ignore]
        try:
            if ast.dump(ast.parse(code)) == ast.dump(ast.parse(text)):
                return None
        except SyntaxError:
            return None
        apart = [one for one in difflib.ndiff(text.splitlines(), code.splitlines()) if one[:2] in ("- ", "+ ")]
        was, now = ("\n".join(one[2:].strip() for one in apart if one[0] == side) for side in "-+")
        return Mutant(file, line, was, now, code)

    class Visitor(libcst.CSTVisitor):  # type: ignore[misc,unused-ignore]
        METADATA_DEPENDENCIES = (PositionProvider,)

        def on_visit(self, node: libcst.CSTNode) -> bool:
            if _is_left_alone(node):
                return False
            for kind, operator in mutation_operators:
                if isinstance(node, kind):
                    line = self.get_metadata(PositionProvider, node).start.line
                    found.extend(partial(mutant, node, changed, line) for changed in operator(node))
            return True

    wrapper.visit(Visitor())
    yield from found


def _is_left_alone(node: Any) -> bool:
    """Return whether a node is never changed.

    Annotations and `__all__` have no effect at run time; decorators fail at import.
    """
    import libcst
    import libcst.matchers as m

    return (
        isinstance(node, libcst.Annotation | libcst.Decorator | libcst.Import | libcst.ImportFrom)
        or m.matches(node, m.Assign(targets=[m.AssignTarget(target=m.Name("__all__"))]))
        or (isinstance(node, libcst.Call) and m.matches(node.func, m.Name()) and node.func.value in NEVER_CHANGED)
    )


@cache
def equivalents() -> Mapping[tuple[str, str, str], str]:
    """Return mutants that behave like the source or that no test may check, each with the reason."""
    said = tomllib.loads(EQUIVALENT.read_text("utf-8")) if EQUIVALENT.exists() else {}
    return {(one["file"], one["was"], one["now"]): one["because"] for one in said.get("mutant", ())}


def sample(name: str, size: int, seed: int) -> Iterator[Mutant]:
    """Yield a random sample of a package's mutants; equivalent ones among them do not count."""
    made = [make for path in sources(name, ROOT) for make in mutants(str(path.relative_to(ROOT)))]
    random.Random(f"{seed}/{name}").shuffle(made)
    seen: set[tuple[str, str, str]] = set()
    for make in made:
        one = make()
        if one is None or one.key in seen:
            continue
        seen.add(one.key)
        yield one
        size -= one.key not in equivalents()
        if not size:
            return


class Tree:
    """Copy of the committed and staged files, in which one file at a time is changed."""

    def __init__(self, folder: Path) -> None:
        self.root, self._home = folder / "tree", folder / "home"
        words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(words, cwd=ROOT, capture_output=True, check=True, text=True).stdout
        for name in filter(None, names.split("\0")):
            if (ROOT / name).is_file():
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, self.root / name)
        self._home.mkdir()

    def fails(self, tests: Sequence[str], limit_s: float) -> str | None:
        """Return which of these tests fails, or another sign of a fault, or None if all pass."""
        # Files that a mutant writes to a wrong place stay there.
        own = {"PYTHONPATH": str(self.root / "src"), "HOME": str(self._home), "TMPDIR": str(self._home)}
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *PYTEST, *tests],
            cwd=self.root,
            env={**os.environ, **own},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            text=True,
            errors="replace",
        )
        try:
            said, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return f"not done in {limit_s:.0f} s"
        if process.returncode == 0:
            return None
        failed = re.search(r"^(?:FAILED|ERROR) (\S+)", said, re.MULTILINE)
        return failed[1] if failed else f"status {process.returncode}: {said.strip().splitlines()[-1:]}"

    def tried(self, mutant: Mutant, tests: Sequence[str], limit_s: float) -> str | None:
        """Return the same with this mutant in place."""
        path = self.root / mutant.file
        text = path.read_text("utf-8")
        _put(path, mutant.code)
        try:
            return self.fails(tests, limit_s)
        finally:
            _put(path, text)


def _put(path: Path, code: str) -> None:
    """Change a source file and remove its compiled form.

    Python compares time in seconds and size, which two mutants may share.
    """
    path.write_text(code, "utf-8")
    Path(cache_from_source(str(path))).unlink(missing_ok=True)


def paths(name: str) -> list[str]:
    """Return the files of a package's tests."""
    return [f"tests/test_{one}.py" for one in PACKAGES[name].tests.split()]


def sources(name: str, root: Path) -> list[Path]:
    """Return the files of a package in this tree."""
    source = root / "src" / "tollbar" / PACKAGES[name].source
    return sorted(source.glob("*.py")) if source.is_dir() else [source]


def state(name: str, root: Path) -> str:
    """Return a digest of everything that decides a mutant's fate: the package, its tests, and shared test files."""
    shared = {path for path in (root / "tests").glob("*.py") if not path.name.startswith("test_")}
    of = hashlib.sha256()
    for path in [*sources(name, root), *(root / one for one in paths(name)), *sorted(shared)]:
        text = path.read_bytes()
        of.update(f"{path.relative_to(root)} {len(text)}\n".encode() + text)
    return of.hexdigest()


def tried(
    name: str, drawn: Iterable[Mutant], trees: Sequence[Tree], killed: Mapping[tuple[str, str, str], str]
) -> Iterator[tuple[Mutant, str | None]]:
    """Yield each mutant with the test that killed it, or None for a survivor.

    Mutants that were killed before are not tried again.
    """
    drawn = list(drawn)
    began_s = time.monotonic()
    if any(one.key not in killed for one in drawn) and (fault := trees[0].fails(paths(name), UNCHANGED_LIMIT_S)):
        raise RuntimeError(f"the tests of {name} fail without a mutant: {fault}")
    limit_s = max(LEAST_LIMIT_S, TIMES * (time.monotonic() - began_s))
    free: queue.SimpleQueue[Tree] = queue.SimpleQueue()
    for tree in trees:
        free.put(tree)

    def one(mutant: Mutant) -> tuple[Mutant, str | None]:
        if mutant.key in killed:
            return mutant, killed[mutant.key]
        tree = free.get()
        try:
            return mutant, tree.tried(mutant, paths(name), limit_s)
        finally:
            free.put(tree)

    with ThreadPoolExecutor(len(trees)) as pool:
        yield from pool.map(one, drawn)


def killed_before(log: Path, seed: int, digest: str) -> dict[tuple[str, str, str], str]:
    """Return the mutants killed in this log, with the killers; entries of other tests are ignored."""
    lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()] if log.exists() else []
    lines = [one for one in lines if one["by"] and one["seed"] == seed and one.get("state") == digest]
    return {(one["file"], one["was"], one["now"]): one["by"] for one in lines}


def figures(
    names: Sequence[str] = tuple(PACKAGES), size: int = 40, seed: int = 1, jobs: int = 2, log: Path | None = None
) -> Iterator[Figure]:
    """Yield the score of each package; survivors are named on standard error."""
    log = log or Path(tempfile.gettempdir()) / "mutants.jsonl"
    with tempfile.TemporaryDirectory(prefix="tollbar-mutants-") as folder, open(log, "a", buffering=1) as lines:
        trees = []
        for number in range(jobs):
            (Path(folder) / str(number)).mkdir()
            trees.append(Tree(Path(folder) / str(number)))
        for name in names:
            digest = state(name, trees[0].root)
            killed = killed_before(log, seed, digest)
            drawn = list(sample(name, size, seed))
            counted: Counter[str] = Counter()
            counted["equivalent"] = sum(one.key in equivalents() for one in drawn)
            for one, by in tried(name, [one for one in drawn if one.key not in equivalents()], trees, killed):
                counted["survived" if by is None else "killed"] += 1
                if one.key in killed:
                    continue
                said = {"package": name, "seed": seed, "state": digest, "file": one.file, "line": one.line}
                lines.write(json.dumps({**said, "was": one.was, "now": one.now, "by": by}) + "\n")
                if by is None:
                    print(f"{one.file}:{one.line}\n  - {one.was}\n  + {one.now}", file=sys.stderr, flush=True)
            of = counted["killed"] + counted["survived"]
            here = f"{counted['killed']} of {of}, {counted['equivalent']} equivalent ones aside"
            yield Figure(f"mutants of {name} killed", f"≥ {GOAL:.0%}", here, counted["killed"] >= GOAL * of > 0)


def main(arguments: Sequence[str]) -> None:
    """Try mutants; the exit status is 1 if a score misses its goal."""
    parser = argparse.ArgumentParser(prog="python -m bench mutants", description=__doc__)
    parser.add_argument("--module", action="append", choices=PACKAGES, help="only this one (repeatable)")
    parser.add_argument("--sample", type=int, default=40, help="mutants of each")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--log", type=Path, help="a line for each; what these tests killed by it is not tried again")
    said = parser.parse_args(arguments)
    if find_spec("mutmut") is None or find_spec("libcst") is None:
        sys.exit("error: there is no mutmut\n\nhint: make mutants")
    met = True
    for one in figures(said.module or tuple(PACKAGES), said.sample, said.seed, said.jobs, said.log):
        print(f"{one.what}: {one.here} (goal: {one.goal})", flush=True)
        met = met and one.met is True
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main(sys.argv[1:])
