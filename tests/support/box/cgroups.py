"""A group of processes (cgroups(7)) for each box. systemd-nspawn boots a box below the group that it is started in, so that two boxes of one run
would have the same `mcfd.service`: where one ends it while the other begins it, the other's does not start."""

import contextlib
from pathlib import Path

ENTER = 'while [ "$1" != -- ]; do echo $$ > "$1/cgroup.procs"; shift; done; shift; exec "$@"'


def own(name: str) -> list[Path]:
    """Groups of that name below this process' own, in each hierarchy that systemd goes by; none where no group can be made."""
    items = []
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, kind, path = line.split(":", 2)
        mount = _mounted(kind) if kind in ("", "name=systemd") else None
        if mount is not None:
            group = mount / path.lstrip("/") / name
            with contextlib.suppress(OSError):
                group.mkdir(exist_ok=True)  # a box that was off boots again
                items.append(group)
    return items


def inside(groups: list[Path]) -> list[str]:
    """Before a command: it runs in those groups."""
    return ["sh", "-c", ENTER, "enter", *map(str, groups), "--"]


def remove(groups: list[Path]) -> None:
    """With those that a box has made in them. Nothing is left in any once its first process has ended."""
    for group in groups:
        for folder in sorted(group.rglob("*/"), reverse=True):
            with contextlib.suppress(OSError):
                folder.rmdir()
        with contextlib.suppress(OSError):
            group.rmdir()


def _mounted(kind: str) -> Path | None:
    """Where the hierarchy of systemd's names is, or for an empty `kind` the one of version 2."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        where, _, what = line.partition(" - ")
        system, _, options = what.split(" ", 2)
        if (system == "cgroup" and kind in options.split(",")) if kind else system == "cgroup2":
            return Path(where.split()[4])
    return None
