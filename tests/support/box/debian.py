"""A Debian of our own: laid out fresh for each use (`support.box.trees`), entered or booted."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support.box import cgroups
from support.box.cache import MAX_SECONDS, keep
from support.box.trees import BOOKWORM, SID, TRIXIE, base, laid_out, mirror, quietly
from support.tools import cannot, need

__all__ = ["BOOKWORM", "SID", "TRIXIE", "Debian", "debian", "dist_upgrade", "need_debian", "postgresql"]

BOOT_SECONDS = 240.0
CLONE_NEWNET = 0x40000000
C_LIBRARY = ctypes.CDLL(None, use_errno=True)
SOURCES, LISTS, ARCHIVES = "etc/apt/sources.list", "var/lib/apt/lists", "var/cache/apt/archives"
"""apt's."""
UNUSED = ("share/doc", "share/locale", "share/man", "share/perl", "share/bash-completion", "lib/udev/hwdb.d")
"""What Debian's packages bring for people, for hardware, and Perl beyond perl-base, which is all that their own scripts may use."""

UPGRADE = ("--no-install-recommends", "dist-upgrade")
"""Else certificates come along, of which nothing here makes use: half of the processes of the whole upgrade put them in their place."""


def need_debian() -> None:
    if os.geteuid() != 0:
        cannot("a Debian tree is made and entered by root only")
    need("mmdebstrap", "systemd-nspawn", "dpkg-deb", "apt-get", "unshare", "nsenter")


@contextlib.contextmanager
def debian(suite: str = TRIXIE, *layers: Path) -> Iterator[Debian]:
    """A fresh tree, gone afterwards; `layers` lie over the plain one."""
    with laid_out([*layers, base(suite)]) as (tree, written):
        box = Debian(tree, written)
        try:
            yield box
        finally:
            box.switch_off()


def dist_upgrade(box: Debian, suite: str) -> None:
    """`apt dist-upgrade` to `suite`, from what was fetched for that once; the box itself has no network."""
    prepared = prepared_upgrade(suite)
    for name in (SOURCES, LISTS, ARCHIVES):
        quietly("cp", "-a", "--reflink=auto", "-T", prepared / name, box.tree / name)
    options = ["--force-confold", *(f"--path-exclude=/usr/{name}/*" for name in UNUSED)]
    result_to_dpkg = [word for option in options for word in ("-o", f"Dpkg::Options::={option}")]
    box.run("apt-get", "-y", *result_to_dpkg, "--no-download", *UPGRADE)


def prepared_upgrade(suite: str) -> Path:
    """What was fetched for it, quicker to take: apt is told of these packages alone, which is all that it would take (it reads its lists, of
    70 000 packages else, again at each step), and they are not compressed."""
    with keep(f"{base(BOOKWORM).name}-to-{suite}-prepared") as (prepared, half):
        if half is not None:
            fetched = fetched_upgrade(suite)
            for folder in (half / ARCHIVES / "partial", half / LISTS / "partial", (half / SOURCES).parent):
                folder.mkdir(parents=True)
            quietly("cp", "-a", fetched / SOURCES, half / SOURCES)
            packages = {file.name.partition("_")[0]: file for file in sorted((fetched / ARCHIVES).glob("*.deb"))}
            for file in packages.values():
                decompress(file, half / ARCHIVES / file.name)
            for entry in (fetched / LISTS).glob("*_InRelease"):
                shutil.copy(entry, half / LISTS)
            for entry in (fetched / LISTS).glob("*_Packages"):
                about = [
                    as_it_is_now(each, half / ARCHIVES / packages[name].name)
                    for each in entry.read_text().split("\n\n")
                    if (name := each.partition("\n")[0].removeprefix("Package: ")) in packages
                ]
                (half / LISTS / entry.name).write_text("\n\n".join(about) + "\n")
    return prepared


def decompress(package: Path, target: Path) -> None:
    """The same to dpkg, but for the dates of folders. Owners stay: not all of Debian's files are root's, as all of ours are."""
    with tempfile.TemporaryDirectory(prefix="mcfd-deb-") as folder:
        root = Path(folder, "root")
        quietly("dpkg-deb", "--raw-extract", package, root)
        quietly("dpkg-deb", "-Znone", "--build", root, target)


def as_it_is_now(expected: str, package: Path) -> str:
    """What apt is told of a package, by its file."""
    content = package.read_bytes()
    now = {
        "Size": str(len(content)),
        "SHA256": hashlib.sha256(content).hexdigest(),
        "MD5sum": hashlib.md5(content).hexdigest(),  # noqa: S324  apt's format
    }
    lines = (line.partition(": ") for line in expected.splitlines())
    return "\n".join(f"{name}{colon}{now.get(name, value)}" for name, colon, value in lines)


def fetched_upgrade(suite: str) -> Path:
    """apt's lists and all packages that a plain tree of Debian 12 is upgraded to `suite` with."""
    with keep(f"{base(BOOKWORM).name}-to-{suite}") as (fetched, half):
        if half is not None:
            with debian(BOOKWORM) as tree:
                shutil.copy("/etc/resolv.conf", tree.path("/etc/resolv.conf"))
                tree.path("/etc/apt/sources.list").write_text(f"deb {mirror()} {suite} main\n")
                tree.run("apt-get", "update")
                tree.run("apt-get", "-y", "--download-only", *UPGRADE)
                for name in (SOURCES, LISTS, ARCHIVES):
                    (half / name).parent.mkdir(parents=True, exist_ok=True)
                    quietly("cp", "-a", tree.path(name), half / name)
    return fetched


def postgresql(suite: str) -> Path:
    """Debian's PostgreSQL as a layer over the plain tree of that suite."""
    with keep(f"{base(suite).name}-postgresql") as (rest, half):
        if half is not None:
            with debian(suite) as tree:
                if tree.written is None:
                    cannot("no layer can be laid over a tree here")
                for name in (SOURCES, LISTS):
                    quietly("cp", "-a", "-T", fetched_upgrade(suite) / name, tree.path(name))
                shutil.copy("/etc/resolv.conf", tree.path("/etc/resolv.conf"))
                tree.run("apt-get", "-y", "--no-install-recommends", "install", "postgresql")
                tree.run("apt-get", "clean")
                tree.path("/etc/apt/sources.list").write_text("")
                quietly("cp", "-a", f"{tree.written}/.", half)
    return rest


@dataclass
class Debian:
    tree: Path
    written: Path | None
    """The layer that holds what was written to it; none where it is a copy."""
    _nspawn: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _init: int = 0
    _groups: list[Path] = field(default_factory=list, repr=False)

    def run(self, *command: str | Path, check: bool = True, **environment: str) -> subprocess.CompletedProcess[str]:
        """`command` as root in the box: beside its own systemd if it is booted, in a plain chroot if not."""
        words = [str(word) for word in command]
        enter = ["nsenter", "-t", str(self._init), "-a", "--"] if self._init else self._chroot()
        clean = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
        # The box's own paths, but the tools that lead into it are the host's.
        line = [shutil.which(enter[0]) or enter[0], *enter[1:], *words]
        try:
            done = subprocess.run(
                line, env=clean | environment, text=True, stdin=subprocess.DEVNULL, capture_output=True, check=False,
                timeout=MAX_SECONDS,
            )  # fmt: skip
        except subprocess.TimeoutExpired as hung:
            self.switch_off()  # or the next test waits in it as long
            text = b"".join((hung.stdout or b"", hung.stderr or b"")).decode(errors="replace")
            pytest.fail(f"{words} has not ended within {MAX_SECONDS} s; it said:\n{text}")
        assert not check or done.returncode == 0, f"{words} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def _chroot(self) -> list[str]:
        mount = 'mount -t proc proc "$0/proc" && mount --rbind /sys "$0/sys" && exec chroot "$0" "$@"'
        return ["unshare", "--mount", "--propagation", "private", "--", "sh", "-c", mount, str(self.tree)]

    def install(self, package: Path, check: bool = True, **environment: str) -> subprocess.CompletedProcess[str]:
        """`apt install ./package`, without a network: what the package depends on is part of the tree."""
        return self.run(
            "apt-get", "install", "-y", "--allow-downgrades", self.bring(package), check=check, **environment
        )

    def connect(self, port: int, timeout: float) -> socket.socket:
        """A connection to `port` of the booted box, whose network nothing outside reaches: a socket belongs to the network that it was made in."""
        own, inside = (f"/proc/{process}/ns/net" for process in ("thread-self", self._init))
        with open(own, "rb") as back, open(inside, "rb") as network:  # noqa: PTH123  # no files, but what namespaces are named by
            enter_network(network.fileno())
            try:
                return socket.create_connection(("127.0.0.1", port), timeout)
            finally:
                enter_network(back.fileno())

    def bring(self, package: Path) -> str:
        """On a stick, as it were; where it is in the box."""
        shutil.copy(package, self.path("/root") / package.name)
        return f"/root/{package.name}"

    def path(self, inside: str) -> Path:
        """Where a file of the box is on the host."""
        return self.tree / inside.lstrip("/")

    def seen_inside(self, inside: str) -> Path:
        """A file as the booted box's own processes see it: in /run, which the tree has not."""
        return Path(f"/proc/{self._init}/root") / inside.lstrip("/")

    def boot(self) -> None:
        """With its own systemd, process numbers and network: nothing of it is reached from outside."""
        self._groups = cgroups.own(self.tree.parent.name)
        self._nspawn = subprocess.Popen(
            # A run that is killed takes its box with it: on SIGTERM, systemd-nspawn switches the box off.
            [*cgroups.inside(self._groups), "setpriv", "--pdeathsig", "TERM", "systemd-nspawn", "--quiet", "--register=no",
             "--keep-unit", "--private-network", "--console=pipe", "--boot", f"--directory={self.tree}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        deadline = time.monotonic() + BOOT_SECONDS
        while not self._running():
            assert time.monotonic() < deadline, "the box did not boot"
            if self._nspawn.poll() is not None:
                cannot("systemd-nspawn cannot boot a Debian here (it needs root's full rights)")
            time.sleep(0.1)

    def _running(self) -> bool:
        assert self._nspawn
        children = Path(f"/proc/{self._nspawn.pid}/task/{self._nspawn.pid}/children").read_text().split()
        if not children:
            return False
        try:
            name = Path(f"/proc/{children[0]}/comm").read_text()
        except (
            FileNotFoundError,
            ProcessLookupError,
        ):  # a helper of systemd-nspawn's, which has ended between the two looks
            return False
        if name != "systemd\n":
            return False
        self._init = int(children[0])
        # Waits for the end of the boot; before systemd can be asked it says so at once.
        output = self.run("timeout", "60", "systemctl", "is-system-running", "--wait", check=False).stdout
        return output.strip() in {"running", "degraded"}

    def switch_off(self) -> None:
        """As by pulling the plug. The end of its first process is the end of all of them, and only then is the tree still."""
        if self._nspawn is None:
            return
        if self._init:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._init, signal.SIGKILL)
            self._nspawn.wait(BOOT_SECONDS)
        else:
            self._nspawn.kill()
            self._nspawn.wait()
        self._nspawn, self._init = None, 0
        cgroups.remove(self._groups)


def enter_network(namespace: int) -> None:
    """This thread alone is in the network `namespace` from now on; a file descriptor (setns(2))."""
    assert C_LIBRARY.setns(namespace, CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
