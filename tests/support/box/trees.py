"""Trees of files for boxes: what was made once lies below, read only, and each box writes into a layer of its own, in memory where there is
enough (overlayfs). So a tree is there at once, and what dpkg brings to the disk with each step costs nothing."""

import contextlib
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from support.box.cache import MAX_SECONDS, keep
from support.memory import ENOUGH_FOR_ALL, available
from support.tools import cannot

BOOKWORM, TRIXIE, SID = "bookworm", "trixie", "sid"
PACKAGES = "haproxy,python3,systemd,udev"
# Where adapters are made up; it brings a quarter of a tree with it.
MORE = {TRIXIE: ",umockdev"}
# As Debian's installer leaves /usr. Else it is `usrmerge` that does it, with all of Perl, and an upgrade takes it along.
MERGED = {BOOKWORM: ["--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr"]}
# A distribution in the making: its index is old wherever a mirror is a snapshot, and nothing of it reaches a shop.
LENIENT = ['--aptopt=Acquire::Check-Valid-Until "false"']
# Without an fsync for each of three thousand files.
QUICK = ["--dpkgopt=force-unsafe-io"]
PREFIX = "mcfd-debian-"


def mirror() -> str:
    """Where this machine's own apt gets Debian from."""
    targets = output("apt-get", "indextargets", "--format", "$(LABEL) $(REPO_URI)", "Created-By: Packages")
    found = [line.split()[-1] for line in targets.splitlines() if line.startswith("Debian ")]
    if not found:
        cannot("apt of this machine knows no mirror of Debian")
    return found[0]


def base(suite: str) -> Path:
    """What every tree of that suite begins with. Made within a minute where it is not there, from where apt gets its own packages."""
    wanted = hashlib.sha256(packages(suite).encode()).hexdigest()[:8]
    with keep(f"{suite}-{output('dpkg', '--print-architecture')}-{wanted}") as (tree, half):
        if half is not None:
            _make(suite, half)
    return tree


def packages(suite: str) -> str:
    return PACKAGES + MORE.get(suite, "")


def _make(suite: str, target: Path) -> None:
    options = [*QUICK, *MERGED.get(suite, []), *(LENIENT if suite == SID else [])]
    with (
        tempfile.TemporaryDirectory(prefix=f"{PREFIX}{os.getpid()}-", ignore_cleanup_errors=True) as scratch,
        memory(Path(scratch)),
    ):
        tree = Path(scratch, "tree")
        try:
            quietly("mmdebstrap", "--variant=minbase", f"--include={packages(suite)}", *options, suite, tree, mirror())
        except AssertionError as error:
            cannot(f"no Debian tree can be made here: {error}")
        # No apt of the box looks for a network by itself; a test that wants a repository says which.
        (tree / "etc/apt/sources.list").write_text("")
        (tree / "etc/dpkg/dpkg.cfg.d/quick").write_text("force-unsafe-io\n")
        quietly("cp", "-a", f"{tree}/.", target)


def memory(folder: Path) -> contextlib.AbstractContextManager[None]:
    """`folder` in memory, where there is enough."""
    if not can_lay_over() or available() <= ENOUGH_FOR_ALL:
        return contextlib.nullcontext()
    return mounted("-t", "tmpfs", "-o", "size=4g", "mcfd", folder)


@contextlib.contextmanager
def laid_out(below: Sequence[Path]) -> Iterator[tuple[Path, Path | None]]:
    """A tree of its own on what lies `below`, the topmost first; and the layer with all that is written to it, while it lasts. None where
    nothing can be laid over: then the tree is a copy of the last one below."""
    with tempfile.TemporaryDirectory(prefix=f"{PREFIX}{os.getpid()}-", ignore_cleanup_errors=True) as scratch:
        tree = Path(scratch, "tree")
        tree.mkdir()
        if not can_lay_over():
            quietly("cp", "-a", "--reflink=auto", f"{below[-1]}/.", tree)
            yield tree, None
            return
        own = Path(scratch, "own")
        own.mkdir()
        with memory(own):
            upper, work = own / "upper", own / "work"
            upper.mkdir()
            upper.chmod(0o755)  # which the root of the box has from it
            work.mkdir()
            options = f"lowerdir={':'.join(map(str, below))},upperdir={upper},workdir={work}"
            with mounted("-t", "overlay", "-o", options, "mcfd", tree):
                yield tree, upper


@functools.cache
def can_lay_over() -> bool:
    sweep()
    with tempfile.TemporaryDirectory(prefix=f"{PREFIX}{os.getpid()}-") as scratch:
        places = [Path(scratch, name) for name in ("lower", "upper", "work", "tree")]
        for each in places:
            each.mkdir()
        lower, upper, work, tree = places
        options = f"lowerdir={lower},upperdir={upper},workdir={work}"
        try:
            with mounted("-t", "overlay", "-o", options, "mcfd", tree):
                return True
        except AssertionError:
            return False


def sweep() -> None:
    """What runs left that were killed: memory, above all."""
    for mount in reversed([line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]):
        place = Path(mount)
        for folder in place.parents:
            owner = folder.name.removeprefix(PREFIX).partition("-")[0]
            if folder.name.startswith(PREFIX) and owner.isdigit() and not Path("/proc", owner).exists():
                subprocess.run(["umount", "--lazy", place], check=False, capture_output=True)
                with contextlib.suppress(FileNotFoundError):  # another run sweeps too, and was quicker
                    if not any(each.is_mount() for each in folder.iterdir()):
                        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def mounted(*arguments: str | Path) -> Iterator[None]:
    quietly("mount", *arguments)
    try:
        yield
    finally:
        quietly("umount", "--lazy", arguments[-1])


def output(*command: str) -> str:
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout.strip()


def quietly(*command: str | Path) -> None:
    words = [str(word) for word in command]
    done = subprocess.run(words, text=True, capture_output=True, check=False, timeout=MAX_SECONDS)
    assert done.returncode == 0, (
        f"{command[0]} ended with {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    )
