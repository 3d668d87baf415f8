# ruff: noqa: INP001 -- beside build_deb.py; a package of this name would hide PyPI's `packaging`
"""The libraries of the lock, for every Python that a Debian brings, side by side in one directory.

A compiled module carries its Python in its name (`loop.cpython-313-aarch64-linux-gnu.so`), and everything else of a
library is the same for all Pythons; both are checked while they are laid out. So one package serves them all.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path

TREE = Path(__file__).resolve().parent.parent
LOCK = TREE / "requirements/run.txt"
# Debian 12 has 3.11, Debian 13 has 3.13, and the next ones 3.14. Tested in each, or it is not in this list.
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
# Debian 12's C library; a wheel that asks for a newer one is not for us.
GLIBC_MINOR = 36


@dataclass(frozen=True)
class Architecture:
    debian: str
    wheel: str
    triplet: str


ARCHITECTURES = {
    "amd64": Architecture("amd64", "x86_64", "x86_64-linux-gnu"),
    "arm64": Architecture("arm64", "aarch64", "aarch64-linux-gnu"),
}

# In the lock because a library asks for them, and imported by nothing that runs here, with the reason. A test imports
# every module of ours from the finished package, so one that is wanted after all is noticed.
LEFT_OUT = {
    "faker": "only for examples that polyfactory makes up",
    "polyfactory": "only for litestar's made-up examples, which the API's description does not use",
    "litestar-htmx": "no page of ours is made with it",
    "rich": "only for litestar's own command line",
    "rich-click": "only for litestar's own command line",
    "markdown-it-py": "only for rich",
    "mdurl": "only for rich",
    "pygments": "only for rich and httpx's own command line",
    "pycparser": "only for cffi at build time; cryptography uses its compiled part",
    "setuptools": "only to build",
}
# Within a library: what only builds it or starts it by hand, and the parts in C that do nothing here.
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
    "*.dist-info/licenses/**/*",  # they are in /usr/share/doc/mcfd/copyright
    "*.dist-info/LICEN[CS]E*",
    "*.dist-info/DESCRIPTION*",
    "*.dist-info/sboms/**/*",
    "litestar/cli/**/*",
    "multidict/_testcapi.*",
    "yaml/_yaml.*",  # the API's description is written in JSON; pure Python does for what litestar imports
    "**/py.typed",
    "**/*.pyi",
)


@dataclass(frozen=True)
class Library:
    """One library of the package, as its wheels describe themselves."""

    name: str
    version: str
    license: str
    license_texts: tuple[str, ...]
    wheels: tuple[tuple[str, str], ...]
    """(file name, SHA-256) of each wheel that was unpacked."""


def download(arch: Architecture, cache: Path) -> list[Path]:
    """The wheels of all Pythons for `arch`, each with a hash that the lock names; fetched once for a lock, whoever asks first."""
    lock = hashlib.sha256(LOCK.read_bytes()).hexdigest()[:16]
    with ThreadPoolExecutor() as pool:
        folders = pool.map(lambda python: _fetched(arch, python, cache / lock / f"{arch.debian}-{python}"), PYTHONS)
    wheels = {wheel.name: wheel for folder in folders for wheel in folder.glob("*.whl")}
    return [wheels[name] for name in sorted(wheels)]


def _fetched(arch: Architecture, python: str, folder: Path) -> Path:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not folder.is_dir():
            _download(arch, python, folder)
    return folder


def _download(arch: Architecture, python: str, folder: Path) -> None:
    half = folder.with_name(f"{folder.name}.half")
    shutil.rmtree(half, ignore_errors=True)
    platforms = [f"manylinux_2_{minor}_{arch.wheel}" for minor in range(GLIBC_MINOR, 4, -1)]
    platforms += [f"{old}_{arch.wheel}" for old in ("manylinux2014", "manylinux2010", "manylinux1")]
    abis = [f"cp{python.replace('.', '')}", "abi3", "none"]
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "--quiet", "--quiet",
               "download", "--require-hashes", "--only-binary", ":all:", "--no-deps", "--implementation", "cp",
               "--python-version", python, "--dest", str(half), "--requirement", str(LOCK)]  # fmt: skip
    command += [f"--platform={platform}" for platform in platforms] + [f"--abi={abi}" for abi in abis]
    subprocess.run(command, check=True)  # noqa: S603  # pip, with what is written above
    half.rename(folder)


def install(wheels: list[Path], lib: Path) -> list[Library]:
    """Lays the wheels out in `lib`, without what is left out, and says what is there."""
    found: dict[str, list[Path]] = {}
    for wheel in wheels:
        name = wheel.name.split("-")[0].replace("_", "-").lower()
        if name not in LEFT_OUT:
            found.setdefault(name, []).append(wheel)
    libraries = [_describe(name, found[name]) for name in sorted(found)]
    for wheel in (wheel for name in sorted(found) for wheel in found[name]):
        _unpack(wheel, lib)
    _tidy(lib)
    return libraries


def _differs(name: str) -> bool:
    """What describes a wheel, and is pruned; another one for each Python."""
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
        if content.startswith(b"#!"):  # imported only, and the interpreter that it names need not be there
            module.write_bytes(content.partition(b"\n")[2])
    for folder in sorted((path for path in lib.rglob("*") if path.is_dir()), reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()


def _describe(name: str, wheels: list[Path]) -> Library:
    with zipfile.ZipFile(wheels[0]) as archive:
        info = next(entry for entry in archive.namelist() if entry.endswith(".dist-info/METADATA"))
        metadata = HeaderParser().parsestr(archive.read(info).decode("utf-8"))
        folder = info.removesuffix("METADATA")
        texts = [
            archive.read(entry).decode("utf-8")
            for entry in sorted(archive.namelist())
            if entry.startswith(folder) and any(word in entry.upper() for word in ("LICEN", "COPYING", "NOTICE"))
            if not entry.endswith("/")
        ]
    classifiers = [
        line.rsplit(" :: ", 1)[1] for line in metadata.get_all("Classifier", []) if line.startswith("License")
    ]
    # Who says it nowhere else says it in the first line of the text.
    told = [text.strip().splitlines()[0] for text in texts if "licen" in text.strip().splitlines()[0].lower()]
    license_name = metadata["License-Expression"] or ", ".join(classifiers) or metadata["License"] or ", ".join(told)
    if not license_name:
        sys.exit(f"mcfd: {wheels[0].name} does not say its licence")
    sums = tuple((wheel.name, hashlib.sha256(wheel.read_bytes()).hexdigest()) for wheel in wheels)
    return Library(name, str(metadata["Version"]), str(license_name).splitlines()[0], tuple(texts), sums)


def strip(arch: Architecture, lib: Path) -> None:
    """Without debugging symbols: three quarters of what compiled libraries weigh."""
    tool = f"{arch.triplet}-strip"
    if shutil.which(tool) is None:
        sys.exit(f"mcfd: {tool} is missing; apt-get install binutils-{arch.triplet.replace('_', '-')}")
    modules = sorted(str(path) for path in lib.rglob("*.so*"))
    sections = ["--remove-section=.comment", "--remove-section=.note"]
    subprocess.run([tool, "--strip-unneeded", *sections, *modules], check=True)  # noqa: S603  # as Debian's own packages
    for path in lib.rglob("*.so*"):
        path.chmod(0o644)
