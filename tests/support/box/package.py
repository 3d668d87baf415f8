"""The Debian packages of this tree, built once for a state of the tree, and other versions made from them."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from support.box.cache import MAX_SECONDS, keep, scratch
from support.box.trees import laid_out, output, quietly
from support.tools import need

TREE = Path(__file__).resolve().parents[3]
EPOCH = "1764547200"
LIB = Path("usr/lib/mcfd")
ARCHITECTURES = ("amd64", "arm64")
# What the last runs built, by the hash of what it was built from; and the wheels of a lock.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mcfd"
MAX_BUILDS = 24
# What goes into a package, or decides what does.
BOTH = (
    "CHANGELOG.md",
    "Makefile",
    "common",
    "config",
    "debian",
    "docs",
    "packaging",
    "pyproject.toml",
    "systemd",
)
SOURCES = (*BOTH, "bridge", "daemon", "simulator")
HEADQUARTERS = (*BOTH, "headquarters", "relay")
LEVEL = "1"
"""Of the compression: `make deb` has 6, which is a fifth smaller and takes five times as long."""


def own_arch() -> str:
    return output("dpkg", "--print-architecture")


def built(arch: str | None = None) -> Path:
    """The package for this machine, or another one."""
    need("dpkg-deb", "git")
    return _built_by(0, arch or own_arch())


def built_twice(arch: str) -> tuple[Path, Path]:
    """By two builders who agree on nothing but the tree: directory, umask, time zone, language, hash seed."""
    need("dpkg-deb", "git")
    another = _built_by(1, arch)  # first: somebody else may be at the other one
    return _built_by(0, arch), another


def built_headquarters() -> Path:
    """The package of headquarters for this machine."""
    need("dpkg-deb", "git")
    return _cached(f"hq-{own_arch()}", HEADQUARTERS, _build_headquarters)


@functools.cache
def _built_by(number: int, arch: str) -> Path:
    return _cached(f"{arch}-{number}", SOURCES, lambda: _build(number, arch))


def _cached(name: str, sources: Sequence[str], build: Callable[[], Path]) -> Path:
    """Built once for a state of `sources`, whichever worktree has it."""
    need("dh", *(f"{triplet}-linux-gnu-strip" for triplet in ("x86_64", "aarch64")))
    with keep(name, CACHE / "packages" / _state(sources)) as (folder, half):
        folder.parent.touch()
        if half is not None:
            shutil.copy(build(), half)
            _thin_out()
    return next(folder.glob("*.deb"))


def _files(sources: Sequence[str]) -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z", *sources],
        cwd=TREE, check=True, text=True, stdout=subprocess.PIPE,
    ).stdout.split("\0")  # fmt: skip
    return sorted({name for name in listed if name and (TREE / name).is_file()})


def _state(sources: Sequence[str]) -> str:
    """The same for the same sources, wherever the tree is and whatever was committed."""
    found = hashlib.sha256(f"{sys.version} {LEVEL}".encode())
    for name in _files(sources):
        mode = (TREE / name).stat().st_mode & 0o100
        found.update(f"{name}\0{mode}\0{hashlib.sha256((TREE / name).read_bytes()).hexdigest()}\0".encode())
    return found.hexdigest()[:24]


def _thin_out() -> None:
    states = sorted((CACHE / "packages").iterdir(), key=lambda path: path.stat().st_mtime)
    for state in states[:-MAX_BUILDS]:
        shutil.rmtree(state, ignore_errors=True)


def _build(number: int, arch: str) -> Path:
    tree = scratch() / ("a", "another builder's/and a longer way")[number] / arch
    own = ({"TZ": "UTC", "LC_ALL": "C.UTF-8"}, {"TZ": "Asia/Tokyo", "LC_ALL": "C"})[number]
    return _make(tree, "deb", arch, (0o022, 0o077)[number], PYTHONHASHSEED=str(number + 1), **own)


def _build_headquarters() -> Path:
    return _make(scratch() / "a place with spaces/headquarters", "deb-hq", own_arch())


def _make(tree: Path, target: str, arch: str, umask: int = 0o022, **environ: str) -> Path:
    """By `make deb` or `make deb-hq` in a copy of the tree, with this run's Python."""
    for name in _files(SOURCES if target == "deb" else HEADQUARTERS):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(TREE / name, tree / name)
    with subprocess.Popen(
        ["make", target, f"ARCH={arch}", "RUN_STAMP=", "STAMP=", f"BIN={Path(sys.executable).parent}"],
        cwd=tree, umask=umask, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH, "WHEELS": str(CACHE / "wheels"), "COMPRESSION": LEVEL, **environ},
    ) as started:  # fmt: skip
        try:
            output, _ = started.communicate(timeout=MAX_SECONDS)
        finally:
            # With what it has started: pip, on a network that says nothing, has the lock on the wheels that the next run waits for.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGKILL)
    assert started.returncode == 0, output
    return next((tree / "dist").glob("*.deb"))


def unpacked(package: Path) -> Path:
    """The tree of `package`, with what dpkg is told in DEBIAN/."""
    root = scratch() / f"unpacked-{package.parent.name}"
    with (scratch() / "unpacking").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not root.exists():
            subprocess.run(["dpkg-deb", "--raw-extract", package, root], check=True)
    return root


def uncompressed(package: Path) -> Path:
    """The same to dpkg, for who unpacks it often: xz is half of what that takes."""
    with keep(f"uncompressed-{package.parent.name}", scratch()) as (folder, half):
        if half is not None:
            _pack(unpacked(package), half / package.name, "-Znone")
    return folder / package.name


def _pack(root: Path, target: Path, *how: str) -> None:
    quietly("dpkg-deb", "--root-owner-group", *how, "--build", root, target)


def lintian_output(package: Path) -> str:
    """What this machine's lintian says of a package that was built here, pedantic and informative tags included. Asked once for a package."""
    need("lintian")
    version = output("dpkg-query", "--show", "--showformat", "${Version}", "lintian")
    with keep(f"lintian-{version}", package.parent) as (folder, half):
        if half is not None:
            result = output("lintian", "--pedantic", "--display-info", "--fail-on", "none", str(package))
            (half / "told").write_text(result)
    return (folder / "told").read_text()


def other_version(package: Path, version: str, change: Callable[[Path], None] = lambda _: None) -> Path:
    """`package` under another version number, with `change` made to its unpacked tree."""
    place = Path(tempfile.mkdtemp(prefix=f"version-{version}-", dir=scratch()))  # two modules may want the same number
    target = place / f"mcfd_{version}_{own_arch()}.deb"
    with laid_out([unpacked(package)]) as (root, _):
        for path in (root / "DEBIAN/control", next((root / LIB).glob("mcfd-*.dist-info")) / "METADATA"):
            lines = path.read_text().splitlines(keepends=True)
            path.write_text(
                "".join(f"Version: {version}\n" if line.startswith("Version: ") else line for line in lines)
            )
        change(root)
        # A third of the size, for what copies it and makes four hashes of it.
        _pack(root, target, "-Zzstd", "-z1")
    return target
