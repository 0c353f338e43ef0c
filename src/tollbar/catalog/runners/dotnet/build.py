"""Build of the .NET runner: with the SDK on the path, or with mcs against a runtime from pip.

python3 build.py BUILD    build into the directory BUILD; BUILD/run starts the runner, wherever BUILD is moved to
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
SOURCES = sorted(FOLDER.glob("*.cs"))
# Assemblies of the runtime that the sources use.
REFERENCES = (
    "System.Private.CoreLib",
    "System.Collections",
    "System.Collections.Concurrent",
    "System.Memory",
    "System.Runtime",
    "System.Runtime.Extensions",
    "System.Runtime.InteropServices",
    "System.Runtime.InteropServices.RuntimeInformation",
    "System.Security.Cryptography.Algorithms",
    "System.Security.Cryptography.Csp",
    "System.Security.Cryptography.Encoding",
    "System.Security.Cryptography.OpenSsl",
    "System.Security.Cryptography.Primitives",
    "System.Security.Cryptography.X509Certificates",
    "System.Text.Json",
)
OPENSSL = ("libssl", "libcrypto")
RUN = """#!/bin/sh
here=${0%/*}
"""
# No libicu is needed, and no locale affects the measurement. The compiler's second tier starts after 30 calls of a
# method, without the usual 100 ms in which nothing new may be called: warm after a second, and the same code in the
# end. Without diagnostics there are no pipes and no debugger socket among the temporary files, where they would outlive
# a killed trial. .NET Core 3.1 only knows the first name of these settings, later ones both.
SETTINGS = """export DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1
export COMPlus_TC_CallCountingDelayMs=0 DOTNET_TC_CallCountingDelayMs=0
export COMPlus_EnableDiagnostics=0 DOTNET_EnableDiagnostics=0
"""
CONFIGURATION = """{"runtimeOptions": {"tfm": "netcoreapp3.1",
 "framework": {"name": "Microsoft.NETCore.App", "version": "3.1.23"}}}
"""


def main() -> None:
    version, build = sdk_version(), Path(sys.argv[1])
    if version is None:
        with_mcs(build)
    else:
        with_sdk(version, build)


def sdk_version() -> str | None:
    """Return the version of the .NET SDK on the path; None if there is none, or only a runtime."""
    if shutil.which("dotnet") is None:
        return None
    asked = subprocess.run(["dotnet", "--version"], check=False, capture_output=True, text=True)
    return asked.stdout.strip() if asked.returncode == 0 else None


def with_sdk(version: str, build: Path) -> None:
    """Build with `dotnet build`, which uses no packages but the SDK's own."""
    major, minor = version.split(".")[:2]
    framework = f"net{major}.{minor}" if int(major) >= 5 else f"netcoreapp{major}.{minor}"
    source = build / "source"
    source.mkdir()
    for path in [FOLDER / "runner.csproj", *SOURCES]:
        shutil.copy(path, source)
    environment = os.environ | {"DOTNET_CLI_TELEMETRY_OPTOUT": "1", "DOTNET_NOLOGO": "1"}
    command = ["dotnet", "build", "--configuration", "Release", "--output", str(build / "app"), "--nologo"]
    command += [f"-p:TargetFramework={framework}", str(source / "runner.csproj")]
    subprocess.run(command, check=True, env=environment, stdout=sys.stderr)
    shutil.rmtree(source)
    launch(build, 'exec dotnet "$here/app/runner.dll"\n')


def with_mcs(build: Path) -> None:
    """Build with mcs, the runtime of one wheel, and the OpenSSL 1.1 of another."""
    wheels = build / "wheels"
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    pip += ["--require-hashes", "--requirement", str(FOLDER / "requirements.lock"), "--dest", str(wheels)]
    # The wheels are only unpacked, so the version of this Python does not matter.
    pip += ["--only-binary", ":all:", "--implementation", "cp", "--python-version", "3.11", "--abi", "cp311"]
    pip += ["--abi", "none", "--platform", "manylinux1_x86_64", "--platform", "manylinux_2_28_x86_64"]
    subprocess.run(pip, check=True, stdout=sys.stderr)
    unpack(next(wheels.glob("dotnetcore2-*.whl")), "dotnetcore2/bin/", build / "dotnet")
    for name in OPENSSL:
        unpack(next(wheels.glob("pymssql-*.whl")), "pymssql.libs/", build / "openssl", name)
    shutil.rmtree(wheels)
    (build / "dotnet" / "dotnet").chmod(0o755)
    for name in OPENSSL:
        # .NET looks for distributions' names; libssl looks for the wheel's libcrypto.
        (found,) = (build / "openssl").glob(f"{name}-*.so.1.1.1*")
        (build / "openssl" / f"{name}.so.1.1").symlink_to(found.name)
    (framework,) = (build / "dotnet" / "shared" / "Microsoft.NETCore.App").iterdir()
    references = [f"-r:{framework / name}.dll" for name in REFERENCES]
    command = ["mcs", "-nostdlib", "-noconfig", "-langversion:latest", "-optimize", *references]
    subprocess.run([*command, f"-out:{build / 'runner.dll'}", *map(str, SOURCES)], check=True, stdout=sys.stderr)
    (build / "runner.runtimeconfig.json").write_text(CONFIGURATION, "utf-8")
    launch(build, 'export LD_LIBRARY_PATH="$here/openssl"\nexec "$here/dotnet/dotnet" "$here/runner.dll"\n')


def unpack(wheel: Path, inside: str, to: Path, named: str = "") -> None:
    """Extract the files of this folder of a wheel, or those whose names begin with `named`."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.startswith(inside + named) and not name.endswith("/"):
                path = to / name.removeprefix(inside)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(archive.read(name))


def launch(build: Path, how: str) -> None:
    """Write the program that starts the runner and becomes it by exec."""
    run = build / "run"
    run.write_text(RUN + SETTINGS + how, "utf-8")
    run.chmod(0o755)


if __name__ == "__main__":
    main()
