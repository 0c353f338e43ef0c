"""Fuzzing of the engine's parsers of foreign bytes: `python -m bench.fuzz --for 1h`, or some targets by name.

`--keep` adds inputs that cover new code to the corpora, and each crash; `--cover` prints which lines of the parsers the
corpora reach. libFuzzer, linked into the engine by its feature `fuzz`, is guided by instrumentation of rustc's stable
options.
"""

from __future__ import annotations

import argparse
import base64
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.figures import Figure, ends_within, unmeasured
from tollbar.core import units

ENGINE = Path(__file__).parents[1] / "engine"
CORPORA = ENGINE / "fuzzing" / "corpora"
TARGETS = tuple(sorted(path.name for path in CORPORA.iterdir()))
HOST = "x86_64-unknown-linux-gnu"
BUILT = ENGINE / "target" / HOST / "fuzz" / "tollbar-fuzzing"
INSTRUMENTED = " ".join([
    "-Cpasses=sancov-module",
    *(
        f"-Cllvm-args=-sanitizer-coverage-{what}"
        for what in ("level=4", "inline-8bit-counters", "pc-table", "trace-compares")
    ),
    "-Clink-dead-code",
])  # fmt: skip
MOST_BYTES = 4096
HANG_S = 1
# libFuzzer reads the wall clock, which goes on while other programs have the core, so its slow inputs are tried again
# for their CPU time. An input that takes this long does not wait for other programs: it hangs.
GIVEN_UP_S = 30
# For each corpus in the repository, in base64.
MOST_KEPT = 11_000
# Folder in which rustup puts LLVM's programs, of the LLVM in its rustc.
WITH_RUSTC = Path("lib", "rustlib", HOST, "bin")
# Other installations may have a version in the names.
LLVM = ("", "-22", "-21", "-20", "-19")
PARSERS = (
    "contract/src/contract.rs", "web/src/http/head.rs", "web/src/http/request.rs", "web/src/http/response.rs",
    "contract/src/runner.rs", "web/src/serve/routes.rs", "web/src/sign_in/api_key.rs", "web/src/sign_in/basic.rs",
    "web/src/sign_in/bearer.rs", "web/src/sign_in/digest/header.rs", "web/src/sign_in/form/fields.rs",
    "web/src/sign_in/hmac/message.rs", "web/src/sign_in/negotiate.rs", "web/src/sign_in/password.rs",
    "web/src/load/task.rs", "store/src/task.rs", "store/src/postgresql/answer.rs", "store/src/postgresql/client.rs",
    "store/src/postgresql/login.rs", "store/src/mariadb/client.rs",
)  # fmt: skip

# Functions in these files that parse no foreign bytes, or read them from a connection that no target makes.
# Others send, prove a random nonce, belong to the process, or need more than an input of 4 KiB: a head of 16 KiB, a
# line of 16 MiB, a task of 1 GiB.
UNFED = {
    "contract/src/contract.rs": ("bytes_if_given", "accept", "refuse", "leave", "refusal"),
    "contract/src/runner.rs": ("of_stdin", "say", "run", "engine_receipt", "optimised", "session", "tell"),
    "web/src/serve/routes.rs": ("needs_certificates",),
    "web/src/sign_in/api_key.rs": ("client", "issue", "entry", "do_wrong", "found"),
    "web/src/sign_in/basic.rs": ("client", "issue", "entry", "found"),
    "web/src/sign_in/bearer.rs": ("found",),
    "store/src/task.rs": ("words", "used", "is_in_server"),
    "store/src/postgresql/answer.rs": ("unsaid",),
    "store/src/postgresql/client.rs": ("connect", "ask_for_tls", "give_up"),
    "store/src/postgresql/login.rs": ("verifier",),
    "store/src/mariadb/client.rs": ("connect",),
}


@dataclass(frozen=True)
class Fuzzed:
    """Outcome of one target."""

    target: str
    inputs: int
    fault: str | None
    """Fault of the input that ended it, or the reason why fuzzing ended early."""


def build(*flags: str) -> Path:
    """Build the engine that fuzzes, with more flags for its own code."""
    member = ["--package", "tollbar-fuzzing", "--features", "fuzz", "--bin", "tollbar-fuzzing"]
    words = ["rustc", "--profile", "fuzz", *member]
    environment = {**os.environ, "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS": INSTRUMENTED}
    command = ["cargo", *words, "--locked", "--quiet", "--target", HOST, "--", *flags]
    subprocess.run(command, cwd=ENGINE, env=environment, check=True)
    return BUILT


def unpack(target: str, folder: Path) -> Path:
    """Write the kept inputs of a target, a file each."""
    corpus = folder / target
    corpus.mkdir()
    for number, line in enumerate((CORPORA / target).read_text().split()):
        (corpus / str(number)).write_bytes(base64.b64decode(line))
    return corpus


def libfuzzer(program: Path, target: str, *words: str | Path, **more: str) -> tuple[int, str]:
    """Return libFuzzer's exit status and output."""
    environment = {**os.environ, "TOLLBAR_FUZZ": target, **more}
    done = subprocess.run([program, *words], env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    return done.returncode, done.stderr.decode(errors="replace")


def fuzz(target: str, program: Path, folder: Path, limits: Sequence[str], keep: bool) -> Fuzzed:
    """Fuzz one target within these limits of libFuzzer's."""
    corpus, found = unpack(target, folder), folder / f"{target}.found-"
    own = (
        "-print_final_stats=1",
        f"-artifact_prefix={found}",
        f"-timeout={GIVEN_UP_S}",
        f"-report_slow_units={HANG_S}",
        f"-max_len={MOST_BYTES}",
    )
    status, said = libfuzzer(program, target, corpus, *own, *limits)
    inputs = int((re.search(r"number_of_executed_units: (\d+)", said) or ["", "0"])[1])
    named = [path for path in folder.iterdir() if path.name.startswith(found.name)]
    crashes = [path for path in named if not is_slow_alone(path, found) or is_hang(program, target, path)]
    fault = None
    if crashes:
        why = re.search(r"panicked at .*\n.*|ERROR: .*|Slowest unit: .*", said)
        lines = [base64.b64encode(path.read_bytes()).decode() for path in crashes]
        fault = f"{why[0] if why else 'a crash'}; as a line of engine/fuzzing/corpora/{target}: {' '.join(lines)}"
        if keep:
            with (CORPORA / target).open("a") as kept:
                kept.writelines(f"{line}\n" for line in lines)
    elif inputs == 0 or (status and all("slow-unit-" in path.name for path in named)):
        # For example if the kernel ended it for its memory; a slow input ends nothing.
        fault = f"status {status} after {inputs:,} inputs, and no input is named: {said.strip().splitlines()[-1:]}"
    elif keep:
        pack(target, program, corpus, folder)
    return Fuzzed(target, inputs, fault)


def is_slow_alone(path: Path, found: Path) -> bool:
    """Return whether an input was reported only as slow."""
    return path.name.removeprefix(found.name).startswith(("slow-unit-", "timeout-"))


def is_hang(program: Path, target: str, path: Path) -> bool:
    """Return whether an input takes over a second of CPU time, with the program's start, never ends, or fails."""
    one = subprocess.Popen(
        [program, path],
        env={**os.environ, "TOLLBAR_FUZZ": target},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    if not ends_within(one.pid, GIVEN_UP_S):
        one.kill()
    _, status, used = os.wait4(one.pid, 0)
    one.returncode = os.waitstatus_to_exitcode(status)
    return one.returncode != 0 or used.ru_utime + used.ru_stime > HANG_S


def pack(target: str, program: Path, corpus: Path, folder: Path) -> None:
    """Keep inputs that cover code which the kept ones do not: the shortest first, while there is room."""
    kept = (CORPORA / target).read_text().split()
    smaller, before = folder / f"{target}.merged", folder / f"{target}.before"
    smaller.mkdir()
    before.mkdir()
    for number, line in enumerate(kept):
        (smaller / f"kept-{number}").write_bytes(base64.b64decode(line))
    libfuzzer(program, target, "-merge=1", smaller, corpus)
    new = [path for path in smaller.iterdir() if not path.name.startswith("kept-")]
    room = MOST_KEPT - sum(len(line) + 1 for line in kept)
    for path in sorted(new, key=lambda path: (path.stat().st_size, path.name)):
        line = base64.b64encode(path.read_bytes()).decode()
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    (CORPORA / target).write_text("".join(f"{line}\n" for line in kept))


def run(targets: Sequence[str], limits: Sequence[str], keep: bool = False) -> Iterator[Fuzzed]:
    """Fuzz each target, with one process for each core."""
    with tempfile.TemporaryDirectory(prefix="tollbar-fuzz-") as name:
        folder = Path(name)
        # A copy, because a build while it fuzzes would replace it.
        program = Path(shutil.copy(build(), folder / "tollbar-fuzzing"))
        one = partial(fuzz, program=program, folder=folder, limits=limits, keep=keep)
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            yield from pool.map(one, targets)


def llvm() -> tuple[str, str]:
    """Return llvm-profdata and llvm-cov of one version, rustc's own first, because one reads the other's output."""
    said = subprocess.run(["rustc", "--print", "sysroot"], cwd=ENGINE, capture_output=True, text=True, check=True)
    path = os.pathsep.join([str(Path(said.stdout.strip()) / WITH_RUSTC), os.environ.get("PATH", os.defpath)])
    for version in LLVM:
        profdata, cov = (shutil.which(f"llvm-{tool}{version}", path=path) for tool in ("profdata", "cov"))
        if profdata and cov:
            return profdata, cov
    sys.exit(
        "error: no llvm-profdata and llvm-cov\n\nhint: rustup component add llvm-tools, or apt-get install llvm-19"
    )


def covered() -> dict[str, tuple[int, int]]:
    """Return for each parser's file the lines that the corpora reach, and all lines; tests are not built."""
    profdata, cov = llvm()
    with tempfile.TemporaryDirectory(prefix="tollbar-fuzz-") as name:
        folder = Path(name)
        program = Path(shutil.copy(build("-Cinstrument-coverage"), folder / "tollbar-fuzzing"))
        for target in TARGETS:
            status, said = libfuzzer(
                program, target, unpack(target, folder), "-runs=0", LLVM_PROFILE_FILE=f"{folder}/{target}.profraw"
            )
            if status:
                sys.exit(f"error: the corpus of {target} ended with status {status}: {said.strip().splitlines()[-1:]}")
        merged = folder / "all.profdata"
        subprocess.run([profdata, "merge", *folder.glob("*.profraw"), "-o", merged], check=True)
        words = [cov, "export", str(program), f"-instr-profile={merged}", "-format=lcov"]
        said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return {name: counted(name, said) for name in PARSERS}


def counted(name: str, said: str) -> tuple[int, int]:
    """Return a file's reached lines and lines by llvm-cov, without those of `UNFED`."""
    path = ENGINE / name
    of_file = said.partition(f"SF:{path}\n")[2].partition("end_of_record")[0]
    counts = {int(line): int(count) for line, count in re.findall(r"^DA:(\d+),(\d+)", of_file, re.MULTILINE)}
    for function in UNFED.get(name, ()):
        for line in lines_of(function, path.read_text()):
            counts.pop(line, None)
    return sum(count > 0 for count in counts.values()), len(counts)


def lines_of(function: str, text: str) -> range:
    """Return the lines of a function as rustfmt sets it, counted from 1."""
    found = re.search(rf"^( *)(?:pub )?fn {function}\b.*?^\1\}}$", text, re.MULTILINE | re.DOTALL)
    if found is None:
        sys.exit(f"error: no function `{function}` among those that nothing is fed to")
    first = text.count("\n", 0, found.start()) + 1
    return range(first, first + found[0].count("\n") + 1)


def figures(inputs: int = 10_000_000) -> Iterator[Figure]:
    """Fuzz this number of inputs, in equal parts of all targets, and yield the figures."""
    done = [*run(TARGETS, [f"-runs={inputs // len(TARGETS) + 1}"])]
    faults = [f"{one.target}: {one.fault}" for one in done if one.fault]
    total = sum(one.inputs for one in done)
    yield Figure("inputs fuzzed", f"≥ {inputs:,}", f"{total:,}", total >= inputs)
    yield Figure(f"panics, and hangs over {HANG_S} s", "0", "; ".join(faults) or "0", not faults)
    what, goal = "lines of the parsers that the corpora reach", "≥ 95 %"
    try:
        lines = covered().values()
    except SystemExit as why:
        yield unmeasured(what, why, goal)
        return
    share = sum(reached for reached, _ in lines) / sum(count for _, count in lines)
    yield Figure(what, goal, f"{share:.1%}", share >= 0.95)


def seconds(said: str) -> float:
    """Return a time in seconds, which may be given in hours."""
    hours = re.fullmatch(r"([\d.]+) ?h", said)
    return float(hours[1]) * 3600 if hours else units.seconds(said)


def main() -> None:
    """Fuzz for some time; the exit status is 1 if something was found."""
    parser = argparse.ArgumentParser(prog="python -m bench.fuzz", description=__doc__)
    parser.add_argument("--for", dest="time", default="1 min", help="for all targets together, as in 1h")
    parser.add_argument("--keep", action="store_true", help="keep what covers something new, and crashes")
    parser.add_argument("--cover", action="store_true", help="say what the corpora reach, and fuzz nothing")
    parser.add_argument("target", nargs="*", help=", ".join(TARGETS))
    said = parser.parse_args()
    unknown = {*said.target} - {*TARGETS}
    if unknown:
        sys.exit(f"error: no such target: {', '.join(unknown)}\n\nhint: known: {', '.join(TARGETS)}")
    if said.cover:
        for name, (reached, lines) in covered().items():
            print(f"{reached / lines:7.1%}  {reached:4} of {lines:4}  {name}")
        return
    targets = said.target or TARGETS
    try:
        each_s = seconds(said.time) * len(os.sched_getaffinity(0)) / len(targets)
    except ValueError as error:
        sys.exit(f"error: --for: {error}\n\nhint: as in `--for 1h`")
    faults = 0
    for one in run(targets, [f"-max_total_time={max(1, round(each_s))}"], said.keep):
        print(f"{one.target:22} {one.inputs:>10,} inputs  {one.fault or 'nothing found'}", flush=True)
        faults += one.fault is not None
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
