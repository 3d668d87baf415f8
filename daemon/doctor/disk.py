"""`mcfd doctor --disk FOLDER`: how quickly that folder's disk syncs, what is free on it, and how worn it says it is."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from common.language import tr
from common.language.system import reason
from daemon.doctor.wording import CheckResult, fail, ok, warn
from daemon.owner import as_owner

BLOCK: Final = bytes(4096)
SYNCS: Final = 100
LONGEST: Final = 10.0
"""Seconds for all of them."""
SLOW: Final = 0.1
"""Seconds; a certification waits for two syncs or three."""
RESERVE_MB: Final = 160
MEGABYTE: Final = 1024 * 1024
WORN: Final = 80
"""Percent of what its maker promises."""
SMART_SECONDS: Final = 20.0
LIFE_LEFT: Final = (202, 231, 233, 177)
"""ATA attributes whose value is what is left, in percent."""


def look_at_disk(folder: Path, sys: Path = Path("/sys")) -> Iterator[CheckResult]:
    try:
        with as_owner(folder):
            took = _syncs(folder)
        free = shutil.disk_usage(folder).free // MEGABYTE
    except OSError as error:
        yield fail(
            "disk_sync",
            tr("{folder}: {why}", folder=folder, why=reason(error)),
            tr("another folder, or another card or disk; the kernel says more: dmesg | tail"),
        )
        return
    yield _speed(took)
    if free < RESERVE_MB:
        yield warn("disk_room", tr("only {free} MB left in {folder}", free=free, folder=folder), tr("make room there"))
    else:
        yield ok("disk_room", tr("{free} MB free in {folder}", free=free, folder=folder))
    yield _wear(folder, sys)


def _syncs(folder: Path) -> list[float]:
    """Seconds that each took."""
    took: list[float] = []
    began = time.monotonic()
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        while len(took) < SYNCS and time.monotonic() - began < LONGEST:
            file.write(BLOCK)
            before = time.monotonic()
            os.fdatasync(file.fileno())
            took.append(time.monotonic() - before)
    return took


def _speed(took: list[float]) -> CheckResult:
    usual, longest = statistics.median(took), max(took)
    summary = tr(
        "a sync takes {usual} ms, the longest of {count} took {longest} ms",
        usual=f"{usual * 1000:.1f}",
        longest=f"{longest * 1000:.1f}",
        count=len(took),
    )
    if usual > SLOW:
        return warn(
            "disk_sync",
            summary,
            tr("tills wait for it at each invoice: a card for industry, or an SSD, is ten times faster"),
        )
    return ok("disk_sync", summary)


def _wear(folder: Path, sys: Path) -> CheckResult:
    device = _device(folder, sys)
    if device is None:
        return ok("disk_wear", tr("not known: {folder} is on no disk of this box by itself", folder=folder))
    worn, is_failing = _worn(device)
    if worn is None and not is_failing:
        return ok(
            "disk_wear",
            tr("{device} does not say how worn it is (SD cards do not; others may, with the package smartmontools)", device=device.name),
        )  # fmt: skip
    if worn is None:
        summary = tr("{device} says that it is failing", device=device.name)
    else:
        summary = tr("{device}: {percent} % of its life is used", device=device.name, percent=worn)
    todo = tr("replace it: sudo mcfd backup --all, a new card or disk, mcfd restore there")
    if is_failing or (worn or 0) >= 100:  # noqa: PLR2004  percent
        return fail("disk_wear", summary, todo)
    return warn("disk_wear", summary, todo) if (worn or 0) >= WORN else ok("disk_wear", summary)


def _device(folder: Path, sys: Path) -> Path | None:
    """In /sys; the whole disk of a partition."""
    number = folder.stat().st_dev
    found = sys / "dev" / "block" / f"{os.major(number)}:{os.minor(number)}"
    if not found.exists():
        return None
    found = found.resolve()
    return found.parent if (found / "partition").exists() else found


def _worn(device: Path) -> tuple[int | None, bool]:
    """Percent of its life, and whether it says that it fails."""
    with contextlib.suppress(OSError, ValueError):  # an eMMC's ext_csd: tenths, of two kinds of its memory
        tenths = max(int(each, 16) for each in (device / "device" / "life_time").read_text("ascii").split())
        end = int((device / "device" / "pre_eol_info").read_text("ascii"), 16)
        return (tenths * 10 if tenths else None), end > 1
    return _smart(device.name)


def _smart(name: str) -> tuple[int | None, bool]:
    program = shutil.which("smartctl")
    if program is None:
        return None, False
    try:
        done = subprocess.run(  # noqa: S603  a device of this box
            [program, "--json", "-H", "-A", f"/dev/{name}"],
            capture_output=True,
            check=False,
            timeout=SMART_SECONDS,
        )
        report: dict[str, Any] = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None, False
    is_failing = report.get("smart_status", {}).get("passed") is False
    worn = report.get("nvme_smart_health_information_log", {}).get("percentage_used")
    for attribute in report.get("ata_smart_attributes", {}).get("table", ()):
        if worn is None and attribute.get("id") in LIFE_LEFT:
            worn = max(0, 100 - int(attribute.get("value", 100)))
    return (int(worn) if isinstance(worn, int) else None), is_failing
