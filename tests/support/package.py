"""The Debian package of this tree, built once for all tests that want it, and other versions made from it."""

from __future__ import annotations

import atexit
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
    path = Path(tempfile.mkdtemp(prefix="mcfd-package-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


@functools.cache
def built_twice() -> tuple[Path, Path]:
    """By two builders who agree on nothing but the tree: directory, umask, time zone, language, hash seed."""
    need("dpkg-deb", "git")
    if sys.version_info[:2] != (3, 11):
        cannot("the package is built by Python 3.11, Debian 12's")
    first, second = scratch() / "a", scratch() / "another builder's/and a longer way"
    files = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=TREE, check=True, text=True, stdout=subprocess.PIPE
    ).stdout.split("\0")
    for name in files:
        if name and (TREE / name).is_file():
            (first / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(TREE / name, first / name)
    shutil.copytree(first, second)
    builders = [
        _builder(first, 0o022, TZ="UTC", LC_ALL="C.UTF-8", PYTHONHASHSEED="1"),
        _builder(second, 0o077, TZ="Asia/Tokyo", LC_ALL="C", PYTHONHASHSEED="2"),
    ]
    for builder in builders:
        output, _ = builder.communicate()
        assert builder.returncode == 0, output
    one, two = (next((tree / "dist").glob("mcfd_*.deb")) for tree in (first, second))
    return one, two


def _builder(tree: Path, umask: int, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, tree / "packaging/build_deb.py"],
        cwd=tree, umask=umask, env={**os.environ, **environment, "SOURCE_DATE_EPOCH": EPOCH},
        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


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
