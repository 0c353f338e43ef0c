"""Upgrades without a change, none of which may be called more expensive, and of digests that take 3 % more; `upgrade`.

Three quarters of an hour.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.figures import TOLLBAR, Figure, timed, unmeasured
from bench.studies import Unmeasured
from tollbar.catalog.libraries import Provider, open_provider
from tollbar.lab.servers.loading import libssl_beside

UNCHANGED, INJECTED = 40, 10
# One of this number of unchanged upgrades is also of TLS.
TLS_IN = 4
FOUND_GOAL = 9
# An undecided row is no right answer either.
UNCHANGED_GOAL = 0.8
FOR = "30s"
# A connection's four cells and their parts, to one per cent.
TLS_FOR = "2min"
DEARER = 0.03
# Hashing a long message takes this much longer; the rest is the library's own. It reports its own version, so it has a
# file of its own.
SLOWER = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
static int (*digest)(const void *, size_t, unsigned char *, unsigned *, const void *, void *);
static int (*begin)(void *, const void *, void *);
static int (*update)(void *, const void *, size_t);
static void *(*context_new)(void);
static const char *(*version)(int);
static void *context;
__attribute__((constructor)) static void bind(void) {
  digest = dlsym(RTLD_NEXT, "EVP_Digest");
  begin = dlsym(RTLD_NEXT, "EVP_DigestInit_ex");
  update = dlsym(RTLD_NEXT, "EVP_DigestUpdate");
  context_new = dlsym(RTLD_NEXT, "EVP_MD_CTX_new");
  version = dlsym(RTLD_NEXT, "OpenSSL_version");
}
const char *OpenSSL_version(int type) { return version(type); }
int EVP_Digest(const void *data, size_t size, unsigned char *out, unsigned *length, const void *type, void *engine) {
  if (size >= 1024) {
    if (!context) begin(context = context_new(), type, NULL);
    update(context, data, size * SHARE);
  }
  return digest(data, size, out, length, type, engine);
}
"""


def figures(unchanged: int = UNCHANGED, injected: int = INJECTED) -> Iterator[Figure]:
    """Yield the system's libcrypto compared with a copy of itself, and with a slower one."""
    system = open_provider("libcrypto")
    if not isinstance(system, Provider) or system.path is None:
        yield unmeasured("upgrade", "there is no libcrypto here")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy = folder / "libcrypto.so.3"
        shutil.copy(system.path, copy)
        found = Counter(kind for _ in range(unchanged) for kind in _kinds(folder, copy).values())
        yield _of_nothing(f"upgrade: digests, {unchanged} of nothing", found)
        few = unchanged // TLS_IN
        what = f"upgrade: TLS, {few} of nothing"
        if libssl := libssl_beside(Path(system.path)):
            shutil.copy(libssl, folder)
            found = Counter(kind for _ in range(few) for kind in _kinds(folder, copy, "tls", TLS_FOR).values())
            yield _of_nothing(what, found)
        else:
            yield unmeasured(what, f"there is no libssl next to {system.path}")
        slower = _slower(folder, system.path)
        rows = [_kinds(folder, slower)["sha-256", 16384] for _ in range(injected)]
        yield Figure(
            f"upgrade: digests, {injected} of {DEARER:.0%} more",
            f"{FOUND_GOAL} of {INJECTED} dearer",
            _said(Counter(rows)),
            rows.count("dearer") * INJECTED >= FOUND_GOAL * injected,
        )


def _of_nothing(what: str, found: Counter[str]) -> Figure:
    """Return the figure of unchanged rows: any other kind (dearer, cheaper, gone, failed, cannot tell) is wrong."""
    is_told = found["no change"] >= UNCHANGED_GOAL * found.total() > 0
    goal = f"0 rows dearer, {UNCHANGED_GOAL:.0%} without change"
    return Figure(what, goal, _said(found), found["dearer"] == 0 and is_told)


def _slower(folder: Path, library: str) -> Path:
    source, made = folder / "slower.c", folder / "libcrypto-slower.so"
    source.write_text(SLOWER)
    words = ["cc", "-shared", "-fPIC", "-O2", f"-DSHARE={DEARER}", str(source), "-o", str(made)]
    subprocess.run([*words, "-Wl,--no-as-needed", library, "-ldl"], check=True)
    return made


def _kinds(folder: Path, new: Path, family: str = "digest", time: str = FOR) -> dict[tuple[str, int | None], str]:
    """Return the kind of each row, by choice and size.

    Raises Unmeasured if there is none.
    """
    words: Sequence[str] = ("upgrade", "libcrypto", str(new), family, "--for", time, "--json")
    done = timed(TOLLBAR, *words, cwd=folder, done=(0, 1))
    changes = json.loads(done.out)["changes"] if done.status in (0, 1) else ()
    if not changes:
        raise Unmeasured(f"`tollbar {' '.join(words)}` ended with status {done.status}, and compared nothing")
    return {(one["cell"]["choice"], one["cell"].get("bytes")): one["kind"] for one in changes}


def _said(found: Counter[str]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in found.most_common())
