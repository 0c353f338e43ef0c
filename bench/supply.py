"""Supply chain: bill of materials, licences, and reproducible wheels.

`python -m bench.supply sbom` writes a CycloneDX bill of materials, `licences` judges those of the Python packages, and
`reproducible` builds the wheel twice, in two places, and compares.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import uuid
import zipfile
from collections.abc import Iterator, Mapping
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any
from urllib.parse import quote

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bench.figures import Figure, unmeasured

ROOT = Path(__file__).parents[1]
NAMESPACE = uuid.UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")  # that of URLs (RFC 9562)
# By the words of packages that name no SPDX expression.
NAMED = {
    "MIT License": "MIT",
    "BSD License": "BSD-3-Clause",
    "Apache Software License": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
# Used unchanged. LGPL: psycopg, a package of its own, which a user can replace.
ALLOWED = {
    "0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "LGPL-3.0-only", "MIT", "MIT-0", "PSF-2.0", "Zlib",
}  # fmt: skip
# Time recorded for the build; wheels are zip archives, whose times begin in 1980.
BUILT_S = "1767225600"


def packages() -> Mapping[str, Distribution]:
    """Return the Python packages that Tollbar needs to run, with their own needs, as installed here."""
    found: dict[str, Distribution] = {}
    ways = [("tollbar", "")]
    while ways:
        name, extra = ways.pop()
        if (key := canonicalize_name(name)) in found and not extra:
            continue
        found[key] = distribution(name)
        for text in found[key].requires or ():
            needs = Requirement(text)
            if needs.marker is None or needs.marker.evaluate({"extra": extra}):
                ways += [(needs.name, one) for one in ("", *needs.extras)]
    return found


def licence(package: Distribution) -> str:
    """Return a package's licence as an SPDX expression, or else in the package's words."""
    said = package.metadata
    words = [one.split(" :: ")[-1] for one in said.get_all("Classifier", []) if one.startswith("License ::")]
    (expression,) = said.get_all("License-Expression", [None])
    first = expression or next((NAMED[one] for one in words if one in NAMED), None)
    (named,) = said.get_all("License", [None])
    text = (named or "not stated").splitlines()[0]
    return first or NAMED.get(text, text)


def _reference(kind: str, name: str, version: str) -> str:
    return f"pkg:{kind}/{name}@{quote(version)}"


def _component(kind: str, name: str, version: str, spdx: str, **more: Any) -> dict[str, Any]:
    reference = _reference(kind, name, version)
    return {"type": "library", "bom-ref": reference, "name": name, "version": version, "purl": reference,
            "licenses": [{"expression": spdx}], **more}  # fmt: skip


def _of_python() -> Iterator[tuple[dict[str, Any], list[str]]]:
    found = packages()
    for name, package in found.items():
        needs = [Requirement(text) for text in package.requires or ()]
        used = [
            canonicalize_name(one.name) for one in needs if one.marker is None or one.marker.evaluate({"extra": ""})
        ]
        inner = [_reference("pypi", one, found[one].version) for one in used if one in found]
        yield _component("pypi", name, package.version, licence(package)), sorted(set(inner))


def _of_rust() -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Yield the engine and the crates of a build for this platform, each with its digest in the lock file."""
    words = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", "x86_64-unknown-linux-gnu"]
    said = json.loads(subprocess.run(words, cwd=ROOT / "engine", capture_output=True, check=True).stdout)
    locked = tomllib.loads((ROOT / "engine/Cargo.lock").read_text())["package"]
    digests = {(one["name"], one["version"]): one.get("checksum") for one in locked}
    crates = {one["id"]: one for one in said["packages"]}
    uses = {
        one["id"]: {inner["pkg"]: {kind["kind"] for kind in inner["dep_kinds"]} for inner in one["deps"]}
        for one in said["resolve"]["nodes"]
    }
    reached: dict[str, str] = {said["resolve"]["root"]: "required"}
    ways = list(reached)
    while ways:
        at = ways.pop(0)
        for inner, kinds in uses[at].items():
            # Sources that a build script compiles are shipped, but the compiler's driver is not.
            ships = reached[at] == "required" and (None in kinds or crates[inner]["name"].endswith("-src"))
            scope = "required" if ships else "excluded"
            if reached.get(inner, "") not in ("required", scope) and kinds != {"dev"}:
                reached[inner] = scope
                ways.append(inner)
    for key, scope in reached.items():
        one = crates[key]
        digest = digests[one["name"], one["version"]]
        more = {"hashes": [{"alg": "SHA-256", "content": digest}]} if digest else {}
        spdx = one["license"].replace("/", " OR ")
        inner = [
            _reference("cargo", crates[use]["name"], crates[use]["version"]) for use in uses[key] if use in reached
        ]
        yield _component("cargo", one["name"], one["version"], spdx, scope=scope, **more), sorted(inner)


def bill() -> dict[str, Any]:
    """Return a CycloneDX document, version 1.6, equal for equal lock files."""
    python, rust = [*_of_python()], [*_of_rust()]
    (itself,) = [pair for pair in python if pair[0]["name"] == "tollbar"]
    engine = rust[0][0]["bom-ref"]
    rest = sorted((pair for pair in (*python, *rust) if pair is not itself), key=lambda pair: str(pair[0]["bom-ref"]))
    graph = [(itself[0]["bom-ref"], [*itself[1], engine]), *((one["bom-ref"], inner) for one, inner in rest)]
    content = {
        "metadata": {"component": {**itself[0], "type": "application"}},
        "components": [one for one, _ in rest],
        "dependencies": [{"ref": reference, "dependsOn": inner} for reference, inner in graph],
    }
    serial = uuid.uuid5(NAMESPACE, json.dumps(content, sort_keys=True))
    head = {"bomFormat": "CycloneDX", "specVersion": "1.6", "serialNumber": f"urn:uuid:{serial}", "version": 1}
    return {**head, **content}


def fault_of(document: str) -> str | None:
    """Return the violation that CycloneDX's own schema finds in it, or None.

    Raises ImportError if its validator is not installed.
    """
    from cyclonedx.schema import SchemaVersion  # type: ignore[import-not-found,unused-ignore]
    from cyclonedx.validation.json import JsonStrictValidator  # type: ignore[import-not-found,unused-ignore]

    found = JsonStrictValidator(SchemaVersion.V1_6).validate_str(document)
    return None if found is None else str(found)[:300]


def licences() -> list[str]:
    """Return each package under a licence that was not reviewed."""
    found = {name: licence(package) for name, package in packages().items()}
    words = {name: re.split(r" (?:OR|AND) ", spdx) for name, spdx in found.items()}
    return [f"{name}: {found[name]}" for name, each in words.items() if not {*each} <= ALLOWED]


def wheel(folder: Path) -> Path:
    """Build the wheel of the committed files, in a folder of its own with a target directory of its own."""
    source = folder / "source"
    source.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x"], cwd=source, input=archive, check=True)
    home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    # Places that differ between machines: of the source, of the build, and of the crates.
    places = {source: "/tollbar", folder / "target": "/target", home: "/cargo"}
    rust = " ".join(f"--remap-path-prefix={place}={name}" for place, name in places.items())
    c = " ".join(f"-ffile-prefix-map={place}={name}" for place, name in places.items())
    environment = {**os.environ, "SOURCE_DATE_EPOCH": BUILT_S, "CARGO_TARGET_DIR": str(folder / "target"),
                   "RUSTFLAGS": rust, "CFLAGS": c, "CXXFLAGS": c}  # fmt: skip
    wheel = [sys.executable, "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps"]
    subprocess.run([*wheel, "-w", folder, source], env=environment, check=True)
    (built,) = folder.glob("*.whl")
    return built


def reproducible() -> list[str]:
    """Return the differences between two wheels of one commit, built in different places."""
    with tempfile.TemporaryDirectory(prefix="tollbar-one-") as one, tempfile.TemporaryDirectory(prefix="t-") as other:
        wheels = [wheel(Path(one)), wheel(Path(other) / "of/another/depth")]
        digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in wheels]
        print(*(f"{digest}  {path.name}" for digest, path in zip(digests, wheels, strict=True)), sep="\n")
        if digests[0] == digests[1]:
            return []
        contents = []
        for path in wheels:
            with zipfile.ZipFile(path) as archive:
                contents.append({name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()})
        first, second = contents
        return sorted(name for name in {*first, *second} if first.get(name) != second.get(name)) or [
            "the archive alone"
        ]


def figures() -> Iterator[Figure]:
    """Yield licences, the bill of materials against its schema, and two wheels."""
    odd = licences()
    yield Figure("Python packages of a licence not looked at", "0", ", ".join(odd) or "0", not odd)
    document = bill()
    try:
        fault = fault_of(json.dumps(document))
        here = fault or f"valid, of {len(document['components'])} components"
        yield Figure("bill of materials, by CycloneDX's schema", "valid", here, fault is None)
    except ImportError:
        yield unmeasured("bill of materials, by CycloneDX's schema", "not judged here: make sbom", "valid")
    differ = reproducible()
    yield Figure("files that differ between two wheels", "0", ", ".join(differ) or "0", not differ)


def main() -> None:
    """Run one check; the exit status is 1 if something is found."""
    match sys.argv[1:]:
        case ["sbom"]:
            document = json.dumps(bill(), indent=1)
            print(document)
            try:
                fault = fault_of(document)
            except ImportError:
                sys.exit("error: not validated\n\nhint: pip install 'cyclonedx-python-lib[json-validation]'")
            sys.exit(f"error: not as CycloneDX 1.6 has it: {fault}" if fault else 0)
        case ["licences"]:
            found = licences()
        case ["reproducible"]:
            found = reproducible()
        case _:
            sys.exit("error: which part?\n\nhint: sbom, licences, or reproducible")
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
