"""`mcfd doctor --disk FOLDER --pull-the-plug`: does this card keep what it says it has stored?

First step: numbered blocks are written and synced, one after the other, and each number that the card has acknowledged is shown, until the
plug is pulled. Second step, after the restart: the person types the last number that was shown, and every block up to it has to be
there. The number must not come from the card itself, so it is on the screen alone (over the network, the screen of the other end);
two letters after it keep a mistyped one from accusing an honest card.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import struct
from collections.abc import Generator
from pathlib import Path
from typing import Final, NamedTuple

from common.files import sync_path
from common.language import tr
from daemon.doctor.wording import CheckResult, fail, ok, warn

NAME: Final = "mcfd-pull-the-plug"
BLOCK: Final = 4096
MOST: Final = 16_384
"""Blocks of the file, which grows to 64 MiB and is then written over, as a ledger's log is."""
FEWEST: Final = 16
HEAD: Final = struct.Struct(">8s16s16sQQ")
MAGIC: Final = b"mcfdplug"
LETTERS: Final = "ABCDEFGHJKMNPQRSTUVWXYZ"
CODE_WORD: Final = re.compile(r"\s*(\d{1,15})\s*-?\s*([A-Za-z]{2})\s*")
BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
IN_MEMORY: Final = ("tmpfs", "ramfs")


class PlugTest(NamedTuple):
    """One test: its own id, that of the box's start, and how many blocks the file has."""

    run: bytes
    boot: bytes
    blocks: int

    def block(self, number: int) -> bytes:
        head = HEAD.pack(MAGIC, self.run, self.boot, self.blocks, number)
        return head + hashlib.shake_128(head).digest(BLOCK - HEAD.size)

    def place(self, number: int) -> int:
        return (number - 1) % self.blocks

    def code_word(self, number: int) -> str:
        digest = hashlib.sha256(self.run + struct.pack(">Q", number)).digest()
        return f"{number}-{LETTERS[digest[0] % len(LETTERS)]}{LETTERS[digest[1] % len(LETTERS)]}"


class CannotTest(Exception):
    """Why not, and what to do."""


def write_blocks(folder: Path) -> Generator[str, None, None]:
    """Each number once the disk has acknowledged its block, without end; closing it early removes the file. CannotTest, OSError."""
    _check_medium(folder)
    test = PlugTest(secrets.token_bytes(16), _boot(), _room(folder))
    file = folder / NAME
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
            os.pwrite(descriptor, test.block(number), test.place(number) * BLOCK)
            os.fdatasync(descriptor)
            yield test.code_word(number)
    finally:
        os.close(descriptor)
        file.unlink(missing_ok=True)


def judge_blocks(folder: Path, code_word: str) -> CheckResult:
    """`code_word` is what the person has typed. CannotTest when that cannot have been shown."""
    typed = CODE_WORD.fullmatch(code_word)
    if typed is None or not (number := int(typed[1])):
        raise CannotTest(tr("type the number as it was shown, with its letters: 1234-AB"))
    file = folder / NAME
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
    summary = tr("the disk has kept all {count} blocks that it had acknowledged", count=number)
    if test.boot == _boot():
        return warn(
            "disk_honesty",
            summary,
            tr("but the box was not restarted since: that says something only of a card that was itself pulled out"),
        )
    return ok("disk_honesty", summary)


def _missing(test: PlugTest, found: dict[int, int], number: int) -> list[int]:
    """Blocks up to `number` of which neither they nor later ones are in their place. The one that was being written when the power went may
    have spoiled the older one in its place."""
    newest = max(found.values())
    torn = test.place(newest + 1) if newest >= number else -1
    expected = range(max(1, number - test.blocks + 1), number + 1)
    return [each for each in expected if found.get(test.place(each), 0) < each and test.place(each) != torn]


def _read(file: Path) -> dict[int, tuple[PlugTest, int]]:
    """The blocks that are whole, by their place; read from the disk, not from what the kernel has of it."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return {}
    found: dict[int, tuple[PlugTest, int]] = {}
    with os.fdopen(descriptor, "rb") as blocks:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        place = 0
        while content := blocks.read(BLOCK):
            if len(content) == BLOCK:
                magic, run, boot, count, number = HEAD.unpack(content[: HEAD.size])
                test = PlugTest(run, boot, count)
                if (
                    magic == MAGIC
                    and count
                    and number
                    and test.block(number) == content
                    and test.place(number) == place
                ):
                    found[place] = (test, number)
            place += 1
    return found


def _lost(acknowledged: int, count: int, first: int) -> CheckResult:
    return fail(
        "disk_honesty",
        tr(
            "the disk had acknowledged {acknowledged} blocks and has lost {count} of them, from {first} on",
            acknowledged=acknowledged,
            count=count,
            first=first,
        ),
        tr("a power cut takes certifications with it: no ledger on this card or disk; the same test on another one"),
    )


def _check_medium(folder: Path) -> None:
    kind = _file_system(folder)
    if kind in IN_MEMORY:
        raise CannotTest(tr("{folder} is in memory ({kind}): a folder on the disk itself", folder=folder, kind=kind))


def _file_system(folder: Path) -> str:
    """By the device's number, as in proc(5); empty when it is not known."""
    number = folder.stat().st_dev
    device = f"{os.major(number)}:{os.minor(number)}"
    for line in Path("/proc/self/mountinfo").read_text("utf-8", "replace").splitlines():
        mount, _, rest = line.partition(" - ")
        if mount.split()[2] == device:
            return rest.split()[0]
    return ""


def _room(folder: Path) -> int:
    blocks = min(MOST, shutil.disk_usage(folder).free // BLOCK // 2)
    if blocks < FEWEST:
        raise CannotTest(tr("no room in {folder}", folder=folder))
    return blocks


def _boot() -> bytes:
    return bytes.fromhex(BOOT.read_text("ascii").strip().replace("-", ""))
