"""The Debian package of this tree, built once for all tests that want it, and other versions made from it."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from support.tools import cannot, need

TREE = Path(__file__).resolve().parents[2]
EPOCH = "1764547200"
LIB = Path("opt/mcfd/lib")


@functools.cache
def scratch() -> Path:
    """One for all processes of a run of the tests; the last to end removes it."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or str(os.getpid())
    path = Path(tempfile.gettempdir()) / f"mcfd-package-{run}"
    path.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(path / "users", os.O_CREAT | os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    atexit.register(_leave, path, descriptor)
    return path


def _leave(path: Path, descriptor: int) -> None:
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    os.close(descriptor)


def built() -> Path:
    return _built_by(0)


def built_twice() -> tuple[Path, Path]:
    """By two builders who agree on nothing but the tree: directory, umask, time zone, language, hash seed."""
    another = _built_by(1)  # first: somebody else may be at the other one
    return _built_by(0), another


@functools.cache
def _built_by(number: int) -> Path:
    need("dpkg-deb", "git")
    if sys.version_info[:2] != (3, 11):
        cannot("the package is built by Python 3.11, Debian 12's")
    tree = scratch() / ("a", "another builder's/and a longer way")[number]
    with (scratch() / f"builder-{number}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (tree / "dist").is_dir():
            _copy_tree(tree)
            _build(tree, number)
    return next((tree / "dist").glob("mcfd_*.deb"))


def _copy_tree(target: Path) -> None:
    files = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=TREE, check=True, text=True, stdout=subprocess.PIPE
    ).stdout.split("\0")
    for name in files:
        if name and (TREE / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(TREE / name, target / name)


def _build(tree: Path, number: int) -> None:
    own = ({"TZ": "UTC", "LC_ALL": "C.UTF-8"}, {"TZ": "Asia/Tokyo", "LC_ALL": "C"})[number]
    seed = {"PYTHONHASHSEED": str(number + 1), "SOURCE_DATE_EPOCH": EPOCH}
    done = subprocess.run(
        [sys.executable, tree / "packaging/build_deb.py"],
        cwd=tree, umask=(0o022, 0o077)[number], env={**os.environ, **own, **seed},
        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def other_version(package: Path, version: str, change: Callable[[Path], None] = lambda _: None) -> Path:
    """`package` under another version number, with `change` made to its unpacked tree."""
    root = scratch() / f"tree-{version}"
    subprocess.run(["dpkg-deb", "--raw-extract", package, root], check=True)
    for path in (root / "DEBIAN/control", next((root / LIB).glob("mcfd-*.dist-info")) / "METADATA"):
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(f"Version: {version}\n" if line.startswith("Version: ") else line for line in lines))
    change(root)
    target = scratch() / f"mcfd_{version}.deb"
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", "-Znone", "--build", root, target],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return target
