"""Who goes first on the cores. A shop's box has mcfd alone: machines, tills and browsers are devices of their own, and here they share its cores."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

AHEAD = (os.SCHED_FIFO, os.sched_param(1))
AS_USUAL = (os.SCHED_OTHER, os.sched_param(0))
_BEHIND = (os.SCHED_IDLE, os.sched_param(0))


def behind_all() -> None:
    """This process only runs where nobody else wants to. One that is merely nice is let end its slice of some milliseconds: an invoice beside it took 15 ms more."""
    os.sched_setscheduler(0, *_BEHIND)


def machines_first(machines: Iterable[int]) -> str:
    """These processes wait for nobody, as a machine does not wait for the box's processor; what a note says of it. Without that right they share like all
    others."""
    try:
        for machine in machines:
            for task in Path(f"/proc/{machine}/task").iterdir():
                os.sched_setscheduler(int(task.name), *AHEAD)
    except PermissionError:
        return "machines share the cores"
    return "machines ahead of all"
