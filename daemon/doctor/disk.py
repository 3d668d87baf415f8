"""`mcfd doctor --disk FOLDER`: sync times of that folder's disk, free space, and reported wear.

With `--pull-the-plug`: does the card store what it acknowledges? First step: numbered blocks are written and synced one
by one, and each acknowledged number is printed, until the plug is pulled. Second step, after the restart: the person
types the last number printed, and every block up to it must be there. The number must not come from the card, so it is
only on the screen (over the network, on the remote screen); two letters after it detect typing errors."""

import contextlib
import hashlib
import json
import os
import re
import secrets
import shutil
import statistics
import struct
import subprocess
import tempfile
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from common.files import sync_path
from common.language import Text, tr
from common.language.system import reason
from daemon.doctor.wording import Check, CheckResult
from daemon.owner import as_owner

BLOCK: Final = bytes(4096)
SYNCS: Final = 100
LONGEST: Final = 10.0
"""Seconds for all syncs."""
SLOW: Final = 0.1
"""Seconds; a certification waits for two or three syncs."""
RESERVE_MB: Final = 160
MEGABYTE: Final = 1024 * 1024
WORN: Final = 80
"""Percent of the lifetime given by the manufacturer."""
SMART_SECONDS: Final = 20.0
LIFE_LEFT: Final = (202, 231, 233, 177)
"""ATA attributes whose value is the remaining lifetime in percent."""

PLUG_FILE: Final = "mcfd-pull-the-plug"
PLUG_BLOCK: Final = 4096
MAX_BLOCKS: Final = 16_384
"""Blocks of the file: it grows to 64 MiB and is then overwritten, like a ledger's write-ahead log."""
FEWEST: Final = 16
HEAD: Final = struct.Struct(">8s16s16sQQ")
MAGIC: Final = b"mcfdplug"
LETTERS: Final = "ABCDEFGHJKMNPQRSTUVWXYZ"
CODE_WORD: Final = re.compile(r"\s*(\d{1,15})\s*-?\s*([A-Za-z]{2})\s*")
BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
IN_MEMORY: Final = ("tmpfs", "ramfs")


def check_disk_health(folder: Path, sys: Path = Path("/sys")) -> Iterator[CheckResult]:
    try:
        with as_owner(folder):
            took = _syncs(folder)
        free = shutil.disk_usage(folder).free // MEGABYTE
    except OSError as error:
        yield Check("disk_sync").fail(
            "{folder}: {why}",
            "another folder, or another card or disk; the kernel says more: dmesg | tail",
            folder=folder,
            why=reason(error),
        )
        return
    yield _speed(took)
    if free < RESERVE_MB:
        yield Check("disk_room").warn("only {free} MB left in {folder}", "make room there", free=free, folder=folder)
    else:
        yield Check("disk_room").ok("{free} MB free in {folder}", free=free, folder=folder)
    yield _wear(folder, sys)


def _syncs(folder: Path) -> list[float]:
    """Duration of each sync in seconds."""
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
    summary = Text(
        "a sync takes {usual} ms, the longest of {count} took {longest} ms",
        usual=f"{usual * 1000:.1f}",
        longest=f"{longest * 1000:.1f}",
        count=len(took),
    )
    if usual > SLOW:
        return Check("disk_sync").warn(
            summary, "tills wait for it at each invoice: a card for industry, or an SSD, is ten times faster"
        )
    return Check("disk_sync").ok(summary)


def _wear(folder: Path, sys: Path) -> CheckResult:
    device = _device(folder, sys)
    if device is None:
        return Check("disk_wear").ok("not known: {folder} is on no disk of this box by itself", folder=folder)
    worn, is_failing = _worn(device)
    if worn is None and not is_failing:
        return Check("disk_wear").ok(
            "{device} does not say how worn it is (SD cards do not; others may, with the package smartmontools)",
            device=device.name,
        )
    if worn is None:
        summary = Text("{device} says that it is failing", device=device.name)
    else:
        summary = Text("{device}: {percent} % of its life is used", device=device.name, percent=worn)
    todo = Text("replace it: sudo mcfd backup --all, a new card or disk, mcfd restore there")
    if is_failing or (worn or 0) >= 100:  # noqa: PLR2004  percent
        return Check("disk_wear").fail(summary, todo)
    return Check("disk_wear").warn(summary, todo) if (worn or 0) >= WORN else Check("disk_wear").ok(summary)


def _device(folder: Path, sys: Path) -> Path | None:
    """The disk's path in /sys; for a partition that of its disk."""
    number = folder.stat().st_dev
    found = sys / "dev" / "block" / f"{os.major(number)}:{os.minor(number)}"
    if not found.exists():
        return None
    found = found.resolve()
    return found.parent if (found / "partition").exists() else found


def _worn(device: Path) -> tuple[int | None, bool]:
    """Used lifetime in percent, and whether the disk reports a failure."""
    with contextlib.suppress(OSError, ValueError):  # an eMMC's ext_csd: tenths, for two kinds of memory
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


class PlugTest(NamedTuple):
    """One test: its id, the id of the box's boot, and the number of blocks in the file."""

    run: bytes
    boot: bytes
    blocks: int

    def block(self, number: int) -> bytes:
        head = HEAD.pack(MAGIC, self.run, self.boot, self.blocks, number)
        return head + hashlib.shake_128(head).digest(PLUG_BLOCK - HEAD.size)

    def place(self, number: int) -> int:
        return (number - 1) % self.blocks

    def code_word(self, number: int) -> str:
        digest = hashlib.sha256(self.run + struct.pack(">Q", number)).digest()
        return f"{number}-{LETTERS[digest[0] % len(LETTERS)]}{LETTERS[digest[1] % len(LETTERS)]}"


class CannotTest(Exception):
    """Why the test is impossible, and what to do."""


def write_blocks(folder: Path) -> Generator[str, None, None]:
    """Yields each number acknowledged by the disk, without end; closing early removes the file. CannotTest, OSError."""
    if (kind := _file_system(folder)) in IN_MEMORY:
        raise CannotTest(tr("{folder} is in memory ({kind}): a folder on the disk itself", folder=folder, kind=kind))
    test = PlugTest(secrets.token_bytes(16), _boot(), _room(folder))
    file = folder / PLUG_FILE
    try:
        descriptor = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
    except FileExistsError as error:
        raise CannotTest(
            tr(
                "a test was begun here: the number that was shown last, with --shown; or delete {file} and begin anew",
                file=file,
            )
        ) from error
    try:
        sync_path(folder)
        number = 0
        while True:
            number += 1
            os.pwrite(descriptor, test.block(number), test.place(number) * PLUG_BLOCK)
            os.fdatasync(descriptor)
            yield test.code_word(number)
    finally:
        os.close(descriptor)
        file.unlink(missing_ok=True)


def judge_blocks(folder: Path, code_word: str) -> CheckResult:
    """`code_word` was typed by the person. Raises CannotTest if this test cannot have printed it."""
    typed = CODE_WORD.fullmatch(code_word)
    if typed is None or not (number := int(typed[1])):
        raise CannotTest(tr("type the number as it was shown, with its letters: 1234-AB"))
    file = folder / PLUG_FILE
    found = _read(file)
    test = next((test for test, _ in found.values()), None)
    if test is None:
        return _lost(number, number, 1)
    if test.code_word(number) != f"{number}-{typed[2].upper()}":
        raise CannotTest(tr("{shown} was not shown by this test: look again, or a letter is mistyped", shown=code_word))
    lost = _missing(test, {place: at for place, (_, at) in found.items()}, number)
    if lost:
        return _lost(number, len(lost), lost[0])
    file.unlink()
    summary = Text("the disk has kept all {count} blocks that it had acknowledged", count=number)
    if test.boot == _boot():
        return Check("disk_honesty").warn(
            summary,
            "but the box was not restarted since: that says something only of a card that was itself pulled out",
        )
    return Check("disk_honesty").ok(summary)


def _missing(test: PlugTest, found: dict[int, int], number: int) -> list[int]:
    """Blocks up to `number` with neither themselves nor a later block in their place. The block being written at the
    power cut may have destroyed the older one in its place."""
    newest = max(found.values())
    torn = test.place(newest + 1) if newest >= number else -1
    expected = range(max(1, number - test.blocks + 1), number + 1)
    return [each for each in expected if found.get(test.place(each), 0) < each and test.place(each) != torn]


def _read(file: Path) -> dict[int, tuple[PlugTest, int]]:
    """The complete blocks by their place, read from the disk, not from the kernel's cache."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return {}
    found: dict[int, tuple[PlugTest, int]] = {}
    with os.fdopen(descriptor, "rb") as blocks:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        place = 0
        while content := blocks.read(PLUG_BLOCK):
            if len(content) == PLUG_BLOCK:
                magic, run, boot, count, number = HEAD.unpack(content[: HEAD.size])
                test = PlugTest(run, boot, count)
                is_ours = magic == MAGIC and count and number and test.block(number) == content
                if is_ours and test.place(number) == place:
                    found[place] = (test, number)
            place += 1
    return found


def _lost(acknowledged: int, count: int, first: int) -> CheckResult:
    return Check("disk_honesty").fail(
        "the disk had acknowledged {acknowledged} blocks and has lost {count} of them, from {first} on",
        "a power cut takes certifications with it: no ledger on this card or disk; the same test on another one",
        acknowledged=acknowledged,
        count=count,
        first=first,
    )


def _file_system(folder: Path) -> str:
    """By device number, as in proc(5); empty if unknown."""
    number = folder.stat().st_dev
    device = f"{os.major(number)}:{os.minor(number)}"
    for line in Path("/proc/self/mountinfo").read_text("utf-8", "replace").splitlines():
        mount, _, rest = line.partition(" - ")
        if mount.split()[2] == device:
            return rest.split()[0]
    return ""


def _room(folder: Path) -> int:
    blocks = min(MAX_BLOCKS, shutil.disk_usage(folder).free // PLUG_BLOCK // 2)
    if blocks < FEWEST:
        raise CannotTest(tr("no room in {folder}", folder=folder))
    return blocks


def _boot() -> bytes:
    return bytes.fromhex(BOOT.read_text("ascii").strip().replace("-", ""))
