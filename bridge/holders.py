"""Which programs have a serial port open, read from /proc: the port itself is not touched. Only root sees everybody's."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

PROC = Path("/proc")
FAR_END = "ptmx"
"""Who has this open holds the far end of a pseudo-terminal: the machine (a simulator), not another till."""


class Holder(msgspec.Struct, frozen=True):
    pid: int
    name: str

    def __str__(self) -> str:
        return f"{self.name} ({self.pid})"


def find_holders(device: Path, proc: Path = PROC) -> list[Holder]:
    """Without this process; a link stands for what it leads to."""
    target = os.path.realpath(device)
    identity = _identity(target)
    others = (process for process in proc.glob("[0-9]*") if int(process.name) != os.getpid())
    found = [Holder(int(process.name), _name(process)) for process in others if _holds(process, target, identity)]
    return sorted(found, key=lambda holder: holder.pid)


def _holds(process: Path, target: str, identity: tuple[int, int] | None) -> bool:
    """The name alone does not tell: a container has a /dev/pts/0 of its own."""
    holds = False
    try:
        with os.scandir(process / "fd") as descriptors:
            for descriptor in descriptors:
                leads_to = _link(descriptor.path)
                if leads_to.endswith(FAR_END):
                    return False
                holds = holds or (leads_to == target and _identity(descriptor.path) == identity)
    except OSError:  # not ours to see, or gone meanwhile
        return False
    return holds


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116  as below
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _link(path: str) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115  thousands of them: strings will do
    except OSError:
        return ""


def _name(process: Path) -> str:
    try:
        return (process / "comm").read_text("utf-8", "replace").strip()
    except OSError:
        return "?"
