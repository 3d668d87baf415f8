"""`mcfd archive`: a closed year as one file that a machine without mcfd can check, to the byte."""

import functools
import gzip
import io
import json
import os
import random
import subprocess
import sys
import tarfile
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.cli.command import CONFIG, Command
from support.ledgers.ledger import IFU, Till, invoice, opened_till, tamper

from daemon.core.clock import DAY, millis
from daemon.core.machine.state import FiscalCounters
from daemon.store.decisions import DecisionNote
from daemon.store.maintenance.backup import backup
from daemon.store.maintenance.verify import verify
from daemon.store.tables.book.entries import repair_time
from daemon.whole_box import verify_archive
from daemon.whole_box.year_archive import faults

FLIPS = int(os.environ.get("MCFD_ARCHIVE_FLIPS", "200"))


def at(year: int, month: int, day: int = 10) -> int:
    return millis(datetime(year, month, day, 8, tzinfo=UTC))


async def two_years(path: Path) -> None:
    """2025 and 2026, with a credit note, cash, a refusal, and a sale after the last Z of each year; and a copy of 2025."""
    async with opened_till(path) as (store, till):
        await store.ledger.reconcile(till.book, till.state(), unexplained=0, at=at(2025, 10))
        for month in range(10, 28):
            till.at = at(2025 + (month - 1) // 12, (month - 1) % 12 + 1)
            sale = await till.sell(1000 * month)
            await till.sell(590, "A")
            if month % 3 == 0:
                reference = f"{till.book.nim}-{till.counters.fvc - 1}"
                amounts = (("B", sale.total_ttc),)
                await till.certify(invoice(f"C-{month}", type_="FA", amounts=amounts, reference=reference))
                await till.fail(invoice(f"R-{month}"))
                await till.move_cash(500 * month)
            await till.close()
            await till.sell(70)
            if month == 12:
                backup(path, path.with_name("copy"), at=1)


@pytest.fixture
async def box(tmp_path: Path) -> Command:
    mcfd = Command(tmp_path)
    await two_years(mcfd.ledger)
    return mcfd


def checked_elsewhere(archive: Path, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """By the program in it, in an empty folder, without anything of mcfd."""
    folder.mkdir()
    with tarfile.open(archive) as file:
        (folder / "verify_archive.py").write_bytes(file.extractfile("verify_archive.py").read())
    command = [sys.executable, "-I", "verify_archive.py", str(archive), *more]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


def checked_years(mcfd: Command, folder: Path) -> list[str]:
    """2025 and 2026 are archived onto a stick, and what the program says of each, which finds nothing wrong."""
    for year in ("2025", "2026"):
        mcfd.ok("archive", year, "--into", str(folder / "stick"))
    rows = [checked_elsewhere(archive, folder / archive.stem) for archive in sorted((folder / "stick").glob("*.tar"))]
    assert [done.returncode for done in rows] == [0] * len(rows), rows
    return [done.stdout for done in rows]


def test_a_closed_year_is_one_file_that_is_checked_without_mcfd(box: Command, tmp_path: Path) -> None:
    """Each year by itself; its chain begins where the last Z of the year before stands. One that is not closed has no archive."""
    into = tmp_path / "stick"
    for year, count in (("2025", 13), ("2026", 47)):
        box.ok("archive", year, "--into", str(into))
        archive = into / f"mcfd-archive-{year}-EL02000015-{IFU}-{int(year) - 2024}.tar"
        done = checked_elsewhere(archive, tmp_path / year)
        assert done.returncode == 0, done.stdout
        assert archive.stat().st_mode & 0o777 == 0o600
        assert f"EL02000015-1, {year}, {count}" in done.stdout
        assert "exists already" in box.ok("archive", year, "--into", str(into))
    assert "2027 is not closed" in box.refused(1, "archive", "2027", "--into", str(into))
    fingerprint = done.stdout.split()[-1]
    assert checked_elsewhere(archive, tmp_path / "named", fingerprint).returncode == 0
    other = checked_elsewhere(archive, tmp_path / "other", "0000-" * 7 + "0000")
    assert (other.returncode, "of another box" in other.stdout) == (1, True)
    assert "archive.made" in box.ok("audit", "--json")


async def adopted(till: Till) -> None:
    """An older copy was put back, and what the machine has certified since was taken over: its lines are not known, and no total has it."""
    sale = invoice("FOREIGN-1")
    till.word(sale)
    note = DecisionNote("looked", till.at)
    await till.store.decisions.write(till.store.decisions.adopt, till.book, till.state(sale), unexplained=1, note=note)


async def activated(till: Till) -> None:
    till.counters = FiscalCounters(0, 0, 0)
    state = till.state()
    till.book = await till.store.ledger.begin_epoch(till.book, state, "EL02000015-2", at=till.at)


async def ahead(till: Till) -> None:
    """Sold and closed by a clock three years ahead, which closed the months and years up to then, and was set right."""
    right, till.at = till.at, till.at + 1100 * DAY
    await till.sell(500)
    await till.close()
    await till.sell(40)
    now = right + DAY
    await till.store.decisions.write(repair_time, till.book, now=now, ahead=till.at - now, reason="wrong year")
    till.at = now


async def closed_without_machine(till: Till) -> None:
    await till.sell(300)
    till.at += DAY
    await till.store.ledger.close_period(
        till.book, counters=till.counters, unexplained=0, at=till.at, without_machine=True
    )


@pytest.mark.parametrize("happened", [adopted, activated, ahead, closed_without_machine])
async def test_a_year_in_which_something_happened_has_an_archive_as_well(
    tmp_path: Path, happened: Callable[[Till], Awaitable[None]]
) -> None:
    mcfd = Command(tmp_path)
    async with opened_till(mcfd.ledger) as (store, till):
        await store.ledger.reconcile(till.book, till.state(), unexplained=0, at=at(2025, 11))
        for month in range(11, 28):
            till.at = max(at(2025 + (month - 1) // 12, (month - 1) % 12 + 1), till.at)
            await till.sell(1000 * month)
            if month == 16:
                await happened(till)
            await till.close()
    assert verify(mcfd.ledger).clean
    assert checked_years(mcfd, tmp_path)


@pytest.mark.parametrize(("first", "last", "places"), [(20, 21, 1), (28, 33, 2), (35, 35, 1), (40, 41, 1)])
async def test_a_year_of_which_a_disk_has_lost_records_has_an_archive_that_says_so(
    box: Command, tmp_path: Path, first: int, last: int, places: int
) -> None:
    """Within a period, around two Zs, right before a month's closure, and the sale of a credit note. The program checks the rest, and the totals of the year."""
    tamper(box.ledger, "DELETE FROM certification WHERE seq BETWEEN ? AND ?", first, last)
    box.ok("restore", str(box.ledger.with_name("copy")), "--keep-newer", "--yes")
    assert verify(box.ledger).clean
    into = tmp_path / "stick"
    box.ok("archive", "2026", "--into", str(into))
    [archive] = into.glob("*.tar")
    done = checked_elsewhere(archive, tmp_path / "elsewhere")
    assert done.returncode == 0, done.stdout
    assert f"Records that a disk had lost are missing in {places} place(s)" in done.stdout
    assert f", {47 - (last - first + 1)} attempts" in done.stdout


async def test_records_lost_around_the_end_of_a_year(tmp_path: Path) -> None:
    """What those before it counted is only known together with those after it. Both years have an archive that verifies."""
    mcfd = Command(tmp_path)
    async with opened_till(mcfd.ledger) as (store, till):
        await store.ledger.reconcile(till.book, till.state(), unexplained=0, at=at(2025, 10))
        for month in (*range(10, 18), 25):
            till.at = at(2025 + (month - 1) // 12, (month - 1) % 12 + 1)
            for amount in range(1, 4):
                await till.sell(1000 * month + amount)
            await till.close()
            if month == 10:
                backup(mcfd.ledger, tmp_path / "copy", at=1)
    tamper(mcfd.ledger, "DELETE FROM certification WHERE seq BETWEEN 9 AND 10")
    mcfd.ok("restore", str(tmp_path / "copy"), "--keep-newer", "--yes")
    assert all("a disk had lost" in text for text in checked_years(mcfd, tmp_path))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has a folder that others cannot write to")
async def test_root_archives_into_a_folder_of_its_own(folder: Path) -> None:
    """The ledger is the daemon's, which may not write there, and works on the archive in its own folder."""
    (folder / "var").mkdir()
    mcfd = Command(folder, CONFIG.replace('"mcfd.sqlite3"', '"var/mcfd.sqlite3"'))
    mcfd.ledger = folder / "var/mcfd.sqlite3"
    await two_years(mcfd.ledger)
    for path in (mcfd.ledger.parent, *mcfd.ledger.parent.iterdir()):
        os.chown(path, 65534, 65534)
    into = folder / "root"
    into.mkdir(mode=0o700)
    mcfd.ok("archive", "2025", "--into", str(into))
    [archive] = into.iterdir()
    assert checked_elsewhere(archive, folder / "elsewhere").returncode == 0


async def test_a_year_that_a_fast_clock_closed_and_its_supplement_have_an_archive_each(tmp_path: Path) -> None:
    """Also when both are made at the same time: each Z is in one of them, and both verify."""
    mcfd = Command(tmp_path)
    async with opened_till(mcfd.ledger) as (_, till):
        for month in (11, 12):
            till.at = at(2025, month)
            await till.sell(1000 * month)
            await till.close()
        till.at += 25 * DAY
        await till.sell(500)
        await till.close()
        await till.store.decisions.write(repair_time, till.book, now=at(2025, 12, 11), ahead=25 * DAY, reason="fast")
        for till.at in (at(2025, 12, 30), at(2026, 1, 5), at(2027, 1, 5)):
            await till.sell(70)
            await till.close()
    assert verify(mcfd.ledger).clean
    checked_years(mcfd, tmp_path)
    found, archives = [], sorted((tmp_path / "stick").glob("*.tar"))
    for archive in archives:
        with tarfile.open(archive) as file:
            lines = gzip.decompress(file.extractfile("chain.jsonl.gz").read()).splitlines()
        found.append([line["z_number"] for line in map(json.loads, lines) if line["kind"] == "closure"])
    assert [zs[:2] for zs in found] == [[1, 2], [3, 4], [5]]
    assert [archive.name[13:17] for archive in archives] == ["2025", "2025", "2026"]


def test_the_nightly_backup_makes_the_archives_that_are_missing(box: Command, tmp_path: Path) -> None:
    """And leaves them there when it thins out the copies."""
    into = tmp_path / "backups"
    for _ in range(2):
        box.ok("backup", "--into", str(into), "--keep-daily", "1")
        for copy in into.glob("mcfd-2*.sqlite3"):
            copy.rename(into / "mcfd-20200101T000000Z.sqlite3")
    assert len(list(into.glob("mcfd-archive-*.tar"))) == 2


def test_no_secret_is_in_it_and_nobody_else_signs_it(box: Command, tmp_path: Path) -> None:
    """Neither the box's own key nor what keys and passwords are known by. Who writes a part and its SHA-256 anew has no key of the box."""
    box.ok("keys", "create", "--nim", "EL02000015-1")
    box.ok("archive", "2026", "--into", str(tmp_path))
    archive = next(tmp_path.glob("mcfd-archive-*.tar"))
    with tarfile.open(archive) as file:
        names = file.getnames()
        content = b"".join(file.extractfile(name).read() for name in names)
    assert names == [
        *("manifest.json", "signature.txt", "README.txt", "verify_archive.py"),
        *("chain.jsonl.gz", "decisions.jsonl.gz", "audit.jsonl.gz", "letterheads.jsonl.gz"),
    ]
    assert b"whsk_" not in content
    assert b"scrypt" not in content
    forged = archive.read_bytes().replace(b'"year":"2026"', b'"year":"2027"')
    assert found_in(forged)[:1] == ["manifest.json"]


def places(content: bytes) -> Iterator[tuple[int, int, str]]:
    """Where each part begins and ends, with its header and what fills it up, and what it is called."""
    with tarfile.open(fileobj=io.BytesIO(content)) as file:
        ends = [(member.offset, member.offset_data + member.size + -member.size % 512, member.name) for member in file]
    yield from ends
    yield ends[-1][1], len(content), "end of the file"


def found_in(content: bytes) -> list[str]:
    named: list[str] = []
    try:
        verify_archive.check(io.BytesIO(content), lambda part, _: named.append(part))
    except verify_archive.Broken as broken:
        named.append(broken.args[0])
    return named


@pytest.mark.long
@pytest.mark.timeout(300 + FLIPS)
def test_every_byte_that_is_changed_is_found_and_its_part_named(
    box: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sampled: contents, headers, padding and the end; one that is cut off or has something behind it, too."""
    monkeypatch.setattr(verify_archive, "is_signed", functools.cache(verify_archive.is_signed))
    box.ok("archive", "2026", "--into", str(tmp_path))
    archive = next(tmp_path.glob("mcfd-archive-*.tar"))
    content, draw = archive.read_bytes(), random.Random(7)
    assert (faults(io.BytesIO(content)), found_in(content)) == ([], [])
    for begin, end, name in places(content):
        for _ in range(1 + FLIPS * (end - begin) // len(content)):
            flipped = bytearray(content)
            flipped[place := draw.randrange(begin, end)] ^= 1 << draw.randrange(8)
            assert found_in(bytes(flipped))[:1] == [name], (place, name)
    assert found_in(content[:-1]) == found_in(content + b"\0") == ["end of the file"]
    assert found_in(content[: len(content) // 2]) != []


def test_a_damaged_ledger_has_no_archive(box: Command, tmp_path: Path) -> None:
    """As for every command that reads: one line, exit 3."""
    box.ledger.write_bytes(b"no database" * 1000)
    assert "the ledger is damaged" in box.refused(3, "archive", "2026", "--into", str(tmp_path))


def test_the_signature_is_that_of_rfc_8032() -> None:
    """The second test vector of its section 7.1, and one bit of everything that it is over."""
    public = bytes.fromhex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c")
    signature = bytes.fromhex(
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
    )
    assert verify_archive.is_signed(public, b"\x72", signature)
    assert not verify_archive.is_signed(public, b"\x73", signature)
    for place in range(0, 64, 7):
        changed = bytearray(signature)
        changed[place] ^= 1
        assert not verify_archive.is_signed(public, b"\x72", bytes(changed))


@pytest.mark.parametrize("value", [0, 127, 128, 255, 256, 65535, 65536, 2**40, -1, -32, -33, -129, -40000, -(2**40)])
def test_numbers_are_packed_as_the_chain_packs_them(value: Any) -> None:
    wanted = [value, "é" * 20, "x" * 300, b"y" * 300, None, [1, 2]]
    assert verify_archive.pack(wanted) == msgspec.msgpack.encode(wanted)
    assert verify_archive.unpack(io.BytesIO(msgspec.msgpack.encode(wanted))) == wanted
