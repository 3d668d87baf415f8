"""The Debian packages of this tree, built once for a state of the tree, and other versions made from them."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from support.box.kept import scratch
from support.tools import need

TREE = Path(__file__).resolve().parents[3]
EPOCH = "1764547200"
LIB = Path("usr/lib/mcfd")
ARCHITECTURES = ("amd64", "arm64")
# What the last runs built, by the hash of what it was built from; and the wheels of a lock.
KEPT = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mcfd"
KEPT_BUILDS = 6
# What goes into a package, or decides what does.
SOURCES = ("bridge", "config", "daemon", "docs", "exchange", "packaging", "pagekit", "requirements/run.txt", "simulator", "systemd",
           "pyproject.toml", "CHANGELOG.md")  # fmt: skip


def own_arch() -> str:
    return subprocess.run(
        ["dpkg", "--print-architecture"], check=True, text=True, stdout=subprocess.PIPE
    ).stdout.strip()


def built(arch: str | None = None) -> Path:
    """The package for this machine, or another one."""
    need("dpkg-deb", "git")
    return _built_by(0, arch or own_arch())


def built_twice(arch: str) -> tuple[Path, Path]:
    """By two builders who agree on nothing but the tree: directory, umask, time zone, language, hash seed."""
    need("dpkg-deb", "git")
    another = _built_by(1, arch)  # first: somebody else may be at the other one
    return _built_by(0, arch), another


@functools.cache
def _built_by(number: int, arch: str) -> Path:
    need("dpkg-deb", *(f"{triplet}-linux-gnu-strip" for triplet in ("x86_64", "aarch64")))
    kept = KEPT / "packages" / _state()
    folder = kept / f"{arch}-{number}"
    folder.mkdir(parents=True, exist_ok=True)
    kept.touch()
    with (KEPT / f"{arch}-{number}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not list(folder.glob("mcfd_*.deb")):
            tree = scratch() / ("a", "another builder's/and a longer way")[number]
            _copy_tree(tree)
            _build(tree, number, arch)
            for package in (tree / "dist").glob(f"mcfd_*_{arch}.deb"):
                shutil.copy(package, folder / "half")
                (folder / "half").rename(folder / package.name)
            _thin_out()
    return next(folder.glob("mcfd_*.deb"))


def _files() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z", *SOURCES],
        cwd=TREE, check=True, text=True, stdout=subprocess.PIPE,
    ).stdout.split("\0")  # fmt: skip
    return sorted({name for name in listed if name and (TREE / name).is_file()})


def _state() -> str:
    """The same for the same sources, wherever the tree is and whatever was committed."""
    found = hashlib.sha256(sys.version.encode())
    for name in _files():
        mode = (TREE / name).stat().st_mode & 0o100
        found.update(f"{name}\0{mode}\0{hashlib.sha256((TREE / name).read_bytes()).hexdigest()}\0".encode())
    return found.hexdigest()[:24]


def _thin_out() -> None:
    states = sorted((KEPT / "packages").iterdir(), key=lambda path: path.stat().st_mtime)
    for state in states[:-KEPT_BUILDS]:
        shutil.rmtree(state, ignore_errors=True)


def _copy_tree(target: Path) -> None:
    for name in _files():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(TREE / name, target / name)


def _build(tree: Path, number: int, arch: str) -> None:
    own = ({"TZ": "UTC", "LC_ALL": "C.UTF-8"}, {"TZ": "Asia/Tokyo", "LC_ALL": "C"})[number]
    seed = {"PYTHONHASHSEED": str(number + 1), "SOURCE_DATE_EPOCH": EPOCH}
    with wheels(arch) as kept:
        done = subprocess.run(
            [sys.executable, tree / "packaging/build_deb.py", "--arch", arch, "--wheels", kept],
            cwd=tree, umask=(0o022, 0o077)[number], env={**os.environ, **own, **seed},
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout


@contextlib.contextmanager
def wheels(arch: str) -> Iterator[Path]:
    """Where what a build downloads is kept, for all of them; one of them at a time."""
    KEPT.mkdir(parents=True, exist_ok=True)
    with (KEPT / f"wheels-{arch}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield KEPT / "wheels"


def unpacked(package: Path) -> Path:
    """The tree of `package`, with what dpkg is told in DEBIAN/."""
    root = scratch() / f"unpacked-{package.parent.name}"
    with (scratch() / "unpacking").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not root.exists():
            subprocess.run(["dpkg-deb", "--raw-extract", package, root], check=True)
    return root


def other_version(package: Path, version: str, change: Callable[[Path], None] = lambda _: None) -> Path:
    """`package` under another version number, with `change` made to its unpacked tree."""
    place = Path(tempfile.mkdtemp(prefix=f"version-{version}-", dir=scratch()))  # two modules may want the same number
    root = place / "tree"
    subprocess.run(["cp", "-a", "--reflink=auto", unpacked(package), root], check=True)
    for path in (root / "DEBIAN/control", next((root / LIB).glob("mcfd-*.dist-info")) / "METADATA"):
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(f"Version: {version}\n" if line.startswith("Version: ") else line for line in lines))
    change(root)
    target = place / f"mcfd_{version}_{own_arch()}.deb"
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", "-Znone", "--build", root, target],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    shutil.rmtree(root)
    return target
