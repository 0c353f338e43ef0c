"""Runtime of the charts, Vega and its companions as one script, made once and kept in the user's cache."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from importlib.metadata import version

from tollbar.core.errors import TollbarError
from tollbar.core.files import cache_folder, write_atomically

# Vega-Lite version that the templates in `charts/` are written for.
VEGA_LITE = "6.4"

# Making the bundle starts a JavaScript engine of some 150 MB: a child frees it when it ends.
_MAKE = """import sys, vl_convert
sys.stdout.buffer.write(vl_convert.javascript_bundle(vl_version=sys.argv[1]).encode())"""


def script() -> str:
    """Return the runtime as JavaScript, safe in a script element. Raises TollbarError if it cannot be made."""
    name = f"vega-{VEGA_LITE}-vl-convert-{version('vl-convert-python')}.js"
    with suppress(OSError, RuntimeError, UnicodeDecodeError):
        kept = (cache_folder() / name).read_text("utf-8")
        if kept:
            return kept
    made = _make()
    # A cache that cannot be written only costs two seconds the next time.
    with suppress(OSError, RuntimeError):
        cache_folder().mkdir(parents=True, exist_ok=True)
        write_atomically(cache_folder() / name, made)
    return made


def _make() -> str:
    child = subprocess.run([sys.executable, "-c", _MAKE, VEGA_LITE], capture_output=True, check=False)
    made = child.stdout.decode("utf-8", "replace")
    if child.returncode != 0 or "vegaEmbed" not in made:
        last = child.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise TollbarError(f"the charts' runtime could not be made: {''.join(last) or 'no output'}")
    # Either would end or confuse the script element that contains the runtime.
    if "</script" in made.lower() or "<!--" in made:
        raise TollbarError("the charts' runtime holds text that would end its script element")
    return made
