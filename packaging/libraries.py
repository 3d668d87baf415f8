# ruff: noqa: INP001 -- a script, run by debian/rules; a package of this name would hide PyPI's `packaging`
"""The libraries of a lock, for every Python that a Debian brings, side by side in one directory; and their list
(CycloneDX 1.5), with the hash of every unpacked wheel.

A compiled module carries its Python in its name (`loop.cpython-313-aarch64-linux-gnu.so`), and everything else of a
library is the same for all Pythons; both are checked while they are laid out. So one package serves them all.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import uuid
import zipfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from email.parser import HeaderParser
from pathlib import Path

# Debian 12 has 3.11, Debian 13 has 3.13, later ones 3.14. Only tested versions are in this list.
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
# Minor version of Debian 12's C library; wheels for a newer one are excluded.
GLIBC_MINOR = 36


# Architectures: Debian's name, and the wheels'.
ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64"}

# Required by a library in the lock, but imported by nothing that runs here, with the reason. A test imports all our
# modules from the finished package, so a library that is needed after all is noticed.
LEFT_OUT = {
    "faker": "only for examples that polyfactory makes up",
    "polyfactory": "only for litestar's made-up examples, which the API's description does not use",
    "litestar-htmx": "no page of ours is made with it",
    "rich": "only for litestar's own command line",
    "rich-click": "only for litestar's own command line",
    "pillow": "only for pictures in fpdf2; a logo and a QR code are drawn as dots",
    "pygments": "only for rich and httpx's own command line",
    "pycparser": "only for cffi at build time; cryptography uses its compiled part",
    "setuptools": "only to build",
}
# Parts of a library that are only for building or for its command line, and C extensions without use here.
PRUNED = (
    "*.data/**/*",
    "**/*.c",
    "**/*.h",
    "**/*.pyx",
    "**/*.pxd",
    "*.dist-info/RECORD",
    "*.dist-info/WHEEL",
    "*.dist-info/entry_points.txt",
    "*.dist-info/top_level.txt",
    "*.dist-info/DESCRIPTION*",
    "*.dist-info/sboms/**/*",
    "litestar/cli/**/*",
    "multidict/_testcapi.*",
    "fontTools/**/*.so",  # pure Python is fast enough: a document takes a second
    *(
        f"fontTools/{part}/**/*" for part in ("cu2qu", "merge", "mtiLib", "qu2cu", "ufoLib", "voltLib")
    ),  # other formats of fonts
    *(f"sqlalchemy/{part}/**/*" for part in ("ext", "orm", "testing")),  # only SQLAlchemy Core is used
    "sqlalchemy/dialects/m*sql/**/*",
    "sqlalchemy/dialects/oracle/**/*",
    "yaml/_yaml.*",  # the API's description is JSON; litestar's import needs only pure Python
    "**/py.typed",
    "**/*.pyi",
)


NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "urn:mcfd:package")


@dataclass(frozen=True)
class Library:
    """One library of the package, from its wheels' metadata."""

    name: str
    version: str
    license: str
    wheels: tuple[tuple[str, str], ...]
    """(file name, SHA-256) of each unpacked wheel."""


def download(locks: list[Path], arch: str, cache: Path) -> list[Path]:
    """The wheels of all Pythons for `arch`, each with a hash in a lock; downloaded once for these locks."""
    folder = cache / hashlib.sha256(b"".join(lock.read_bytes() for lock in locks)).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor() as pool:
        folders = pool.map(lambda python: _fetched(locks, arch, python, folder / f"{arch}-{python}"), PYTHONS)
    wheels = {wheel.name: wheel for found in folders for wheel in found.glob("*.whl")}
    return [wheels[name] for name in sorted(wheels)]


def _fetched(locks: list[Path], arch: str, python: str, folder: Path) -> Path:
    with folder.with_name(f"{folder.name}.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not folder.is_dir():
            half = folder.with_name(f"{folder.name}.half")
            shutil.rmtree(half, ignore_errors=True)
            _download(locks, arch, python, half)
            half.rename(folder)
    return folder


def _download(locks: list[Path], arch: str, python: str, folder: Path) -> None:
    tags = [f"manylinux_2_{minor}" for minor in range(GLIBC_MINOR, 4, -1)]
    tags += ["manylinux2014", "manylinux2010", "manylinux1"]
    abis = [f"cp{python.replace('.', '')}", "abi3", "none"]
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "--quiet", "--quiet",
               "download", "--require-hashes", "--only-binary", ":all:", "--no-deps", "--implementation", "cp",
               "--python-version", python, "--dest", str(folder)]  # fmt: skip
    command += [f"--requirement={lock}" for lock in locks]
    command += [f"--platform={tag}_{ARCHITECTURES[arch]}" for tag in tags] + [f"--abi={abi}" for abi in abis]
    subprocess.run(command, check=True)  # noqa: S603  # pip with constant options


def install(wheels: list[Path], lib: Path, without: set[str]) -> list[Library]:
    """Unpacks the wheels into `lib`, except those in `without`; returns the libraries."""
    found: dict[str, list[Path]] = {}
    for wheel in wheels:
        name = wheel.name.split("-")[0].replace("_", "-").lower()
        if name not in without:
            found.setdefault(name, []).append(wheel)
    for wheel in (wheel for name in sorted(found) for wheel in found[name]):
        _unpack(wheel, lib)
    _tidy(lib)
    return [_describe(name, found[name]) for name in sorted(found)]


def _differs(name: str) -> bool:
    """Files that describe a wheel, are pruned, and differ for each Python."""
    return name.endswith(("/WHEEL", "/RECORD")) or ".dist-info/sboms/" in name


def _unpack(wheel: Path, lib: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            target = lib / name
            if name.endswith("/"):
                continue
            content = archive.read(name)
            if target.exists() and not _differs(name) and target.read_bytes() != content:
                sys.exit(f"mcfd: {name} of {wheel.name} is another one than for another Python")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)


def _tidy(lib: Path) -> None:
    for pattern in PRUNED:
        for path in list(lib.glob(pattern)):
            if path.is_file():
                path.unlink()
    for module in lib.rglob("*.py"):
        content = module.read_bytes()
        if content.startswith(b"#!"):  # only imported, and the named interpreter may not exist
            module.write_bytes(content.partition(b"\n")[2])
    for folder in sorted((path for path in lib.rglob("*") if path.is_dir()), reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()


def _describe(name: str, wheels: list[Path]) -> Library:
    with zipfile.ZipFile(wheels[0]) as archive:
        info = next(entry for entry in archive.namelist() if entry.endswith(".dist-info/METADATA"))
        metadata = HeaderParser().parsestr(archive.read(info).decode("utf-8"))
        # Without any other information, the first line of the licence's text is used.
        entries = [
            entry for entry in sorted(archive.namelist()) if ".dist-info/" in entry and "/LICEN" in entry.upper()
        ]
        heads = [archive.read(entry).decode("utf-8").split("\n", 1)[0].strip() for entry in entries if entry[-1] != "/"]
    kinds = [line.rsplit(" :: ", 1)[1] for line in metadata.get_all("Classifier", []) if line.startswith("License")]
    licence = metadata["License-Expression"] or ", ".join(kinds) or metadata["License"] or ", ".join(heads)
    if not licence:
        sys.exit(f"mcfd: {wheels[0].name} does not say its licence")
    sums = tuple((wheel.name, hashlib.sha256(wheel.read_bytes()).hexdigest()) for wheel in wheels)
    return Library(name, str(metadata["Version"]), str(licence).splitlines()[0], sums)


def sbom(package: str, version: str, libraries: list[Library], arch: str, pythons: Sequence[str]) -> str:
    epoch = int(os.environ["SOURCE_DATE_EPOCH"])
    own = {"type": "application", "bom-ref": package, "name": package, "version": version}
    content = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(NAMESPACE, f'{package} {version} {arch} {epoch}')}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": own,
            "properties": [
                {"name": "mcfd:architecture", "value": arch},
                {"name": "mcfd:pythons", "value": " ".join(pythons)},
            ],
        },
        "components": [_component(library) for library in libraries],
        "dependencies": [
            {"ref": package, "dependsOn": [_purl(library) for library in libraries]},
            *({"ref": _purl(library)} for library in libraries),
        ],
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _purl(library: Library) -> str:
    return f"pkg:pypi/{library.name}@{library.version}"


def _component(library: Library) -> dict[str, object]:
    """The licence as an SPDX expression if the library has one, otherwise as text."""
    spdx = re.fullmatch(r"[\w.+-]+( (AND|OR|WITH) [\w.+-]+)*", library.license)
    licence = {"expression": library.license} if spdx else {"license": {"name": library.license}}
    return {
        "type": "library",
        "bom-ref": _purl(library),
        "name": library.name,
        "version": library.version,
        "purl": _purl(library),
        "licenses": [licence],
        "hashes": [{"alg": "SHA-256", "content": sha} for _, sha in library.wheels],
        "properties": [{"name": "mcfd:wheel", "value": f"{name} sha256:{sha}"} for name, sha in library.wheels],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("locks", nargs="+", type=Path)
    parser.add_argument("--arch", choices=ARCHITECTURES, required=True)
    parser.add_argument("--cache", type=Path, required=True, help="where downloads are kept")
    parser.add_argument("--into", type=Path, required=True)
    parser.add_argument(
        "--without", nargs="*", default=[], metavar="LIBRARY", help="which this package does not import"
    )
    parser.add_argument("--package", required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--sbom", type=Path, required=True, help="the list of libraries (CycloneDX) that is written")
    arguments = parser.parse_args()
    wheels = download(arguments.locks, arguments.arch, arguments.cache)
    found = install(wheels, arguments.into, {*LEFT_OUT, *arguments.without})
    # Read by `mcfd --version`.
    metadata = arguments.into / f"mcfd-{arguments.version}.dist-info/METADATA"
    metadata.parent.mkdir()
    metadata.write_text(f"Metadata-Version: 2.1\nName: mcfd\nVersion: {arguments.version}\n", encoding="utf-8")
    arguments.sbom.parent.mkdir(parents=True)
    listed = sbom(arguments.package, arguments.version, found, arguments.arch, PYTHONS)
    arguments.sbom.write_text(listed, encoding="utf-8")


if __name__ == "__main__":
    main()
