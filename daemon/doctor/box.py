"""The box itself: its disk and its clock."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime

from daemon.doctor import wording
from daemon.doctor.finding import Finding, fail, ok, warn
from daemon.settings import Settings
from daemon.tls.authority import YOUNGEST_CLOCK

MEGABYTE = 1024 * 1024
ROOM_FOR_YEARS = 10
"""Times the reserve: with less, somebody should look."""


def check_disk(settings: Settings) -> Finding:
    folder = settings.storage.path.parent
    try:
        free = shutil.disk_usage(folder).free // MEGABYTE
        read_only = os.statvfs(folder).f_flag & os.ST_RDONLY
    except OSError as error:
        return fail("disk", wording.NO_FOLDER(folder=folder, why=error.strerror), wording.NO_FOLDER_ADVICE)
    reserve = settings.storage.reserve_mb
    if read_only:
        return fail("disk", wording.READ_ONLY(folder=folder), wording.READ_ONLY_ADVICE)
    if free < reserve:
        return fail("disk", wording.DISK_FULL(folder=folder, free=free, reserve=reserve), wording.MAKE_ROOM)
    if free < ROOM_FOR_YEARS * reserve:
        return warn("disk", wording.DISK_TIGHT(folder=folder, free=free), wording.MAKE_ROOM)
    return ok("disk", wording.DISK_FREE(folder=folder, free=free))


def check_box_clock(now: datetime | None = None) -> Finding:
    now = now or datetime.now(UTC)
    told = f"{now:%Y-%m-%d %H:%M} UTC"
    if now < YOUNGEST_CLOCK:
        return fail("box_clock", wording.BOX_CLOCK_WRONG(now=told), wording.SET_CLOCK)
    return ok("box_clock", wording.BOX_CLOCK(now=told))
