"""The box itself: its disk and its clock."""

from __future__ import annotations

import os
import shutil
import time
from datetime import UTC, datetime

from common.language import tr
from common.language.reasons import from_stored
from common.language.system import reason
from daemon.doctor.wording import CheckResult, fail, ok, warn
from daemon.owner import as_owner
from daemon.settings import Settings
from daemon.store.sqlite.disk_failure import disk_trouble, read_failures
from daemon.tls.authority import YOUNGEST_CLOCK

MEGABYTE = 1024 * 1024
ROOM_FOR_YEARS = 10
"""Times the reserve: with less, somebody should look."""


def check_disk(settings: Settings) -> CheckResult:
    folder = settings.storage.path.parent
    try:
        free = shutil.disk_usage(folder).free // MEGABYTE
        read_only = os.statvfs(folder).f_flag & os.ST_RDONLY
    except OSError as error:
        return fail(
            "disk",
            tr("{folder}: {why}", folder=folder, why=reason(error)),
            tr("sudo systemd-tmpfiles --create mcfd.conf puts it back"),
        )
    with as_owner(folder):
        failures = read_failures(settings.storage.path)
    if trouble := disk_trouble(failures, time.time_ns() // 1_000_000):
        return fail(
            "disk", tr(from_stored(trouble)), tr("mcfd doctor --disk {folder} looks at the disk itself", folder=folder)
        )
    reserve = settings.storage.reserve_mb
    if read_only:
        return fail(
            "disk",
            tr("{folder} is read-only", folder=folder),
            tr("the card or disk is wearing out: dmesg | tail, copy the ledger, replace the medium"),
        )
    if free < reserve:
        return fail(
            "disk",
            tr(
                "{free} MB free in {folder}, less than the reserve ({reserve} MB): certifications are refused",
                folder=folder,
                free=free,
                reserve=reserve,
            ),
            tr(
                "make room: sudo journalctl --vacuum-size=50M, old copies in /var/lib/mcfd/backups to a stick; never "
                "the ledger"
            ),
        )
    if free < ROOM_FOR_YEARS * reserve:
        return warn(
            "disk",
            tr("only {free} MB left in {folder}", folder=folder, free=free),
            tr(
                "make room: sudo journalctl --vacuum-size=50M, old copies in /var/lib/mcfd/backups to a stick; never "
                "the ledger"
            ),
        )
    return ok("disk", tr("{free} MB free in {folder}", folder=folder, free=free))


def check_box_clock(now: datetime | None = None) -> CheckResult:
    now = now or datetime.now(UTC)
    told = f"{now:%Y-%m-%d %H:%M} UTC"
    if now < YOUNGEST_CLOCK:
        return fail(
            "box_clock",
            tr("the box takes it to be {now}", now=told),
            tr("sudo timedatectl set-ntp true, or without internet: sudo timedatectl set-time 'YYYY-MM-DD hh:mm'"),
        )
    return ok("box_clock", tr("it is {now}", now=told))
