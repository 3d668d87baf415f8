"""Flipped bits in a ledger's file: `mcfd verify` ends with findings and never with a traceback, what an entry holds is found, and the rest of
the journal is served."""

import asyncio
import contextlib
import random
import re
import sqlite3
from datetime import UTC
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.ledgers.filled import filled
from support.ledgers.ledger import NIM, Till, code_of, invoice, opened, opened_till, query, tamper
from support.ledgers.worker import worker_of

from common.language.reasons import from_stored
from daemon.core.errors import LedgerUnusable
from daemon.core.report.journal import Page
from daemon.store.maintenance.verify import verify
from daemon.store.tables import journal as tables_journal
from daemon.store.tables.book import attempts
from daemon.store.tables.book.codec import unpack
from daemon.store.tables.meta import read_damage
from daemon.usecases.reports import journal
from daemon.usecases.reports.journal import search
from daemon.usecases.reports.journal_files import journal_pieces

EVER = 1 << 53
SALES = 40
FLIPS = 300
PAGE = 4096
UNREAD = ("reference_fvc", "reference_epoch")
"""Columns of 0.1.0 that nothing reads any more."""


async def fill(path: Path) -> None:
    async with opened_till(path) as (_, till):
        for number in range(SALES):
            await till.sell(1000 + number)
            if number in (10, 20):
                await till.move_cash()
            if number in (15, 30):
                await till.close()
        await till.fail(invoice("X-1"))
        await till.certify(invoice("C-1", type_="FA", amounts=(("B", 500),), reference=f"{NIM}-1"))


original, path = filled(fill)


def content_of(path: Path) -> list[Any]:
    """What the entries hold, however it is packed."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        found: list[Any] = []
        for table in ("certification", "closure", "entry", "checkpoint", "audit"):
            rows = connection.execute(f"SELECT * FROM {table} NOT INDEXED ORDER BY 1, 2, 3").fetchall()  # noqa: S608  names of ours
            names = [name for (_, name, *_) in connection.execute(f"PRAGMA table_info({table})")]
            for row in rows:
                result = dict(zip(names, row, strict=True))
                found.append(
                    [
                        unpack(value) if name == "payload" else value
                        for name, value in result.items()
                        if name not in UNREAD
                    ]
                )
    return found


@pytest.mark.long
def test_no_flipped_bit_makes_verify_fail_and_none_in_an_entry_is_overlooked(original: Path, tmp_path: Path) -> None:
    """Drawn over the whole file: where `verify` is clean, every entry says what it said before."""
    dice, before = random.Random(11), content_of(original)
    image, path = original.read_bytes(), tmp_path / "ledger.sqlite3"
    found = 0
    for _ in range(FLIPS):
        offset, bit = dice.randrange(len(image)), dice.randrange(8)
        flipped = bytearray(image)
        flipped[offset] ^= 1 << bit
        path.write_bytes(flipped)
        for left in ("-wal", "-shm", "-journal"):
            path.with_name(path.name + left).unlink(missing_ok=True)
        try:
            clean = verify(path).clean
        except LedgerUnusable:
            clean = False
        found += not clean
        assert not clean or content_of(path) == before, (offset, bit)
    assert found > FLIPS // 10


def change(path: Path, before: bytes, after: bytes) -> None:
    """The first row that has it: SQLite fills a page from its end."""
    head, _, tail = path.read_bytes().rpartition(before)
    path.write_bytes(head + after + tail)


def spoil(path: Path, page: int) -> None:
    image = bytearray(path.read_bytes())
    image[(page - 1) * PAGE : page * PAGE] = b"\xff" * PAGE
    path.write_bytes(image)


WITH_DAMAGE = {
    Page(0, EVER, number="S-12"): ["S-12"],
    Page(0, EVER, number="S-12", before_seq=13): ["S-12"],
    Page(0, EVER, number="S-12", before_seq=12): [],
    Page(EVER - 1, EVER, number="S-12"): ["S-12"],
    Page(0, EVER, before_seq=14, limit=3): ["S-13", "S-12", "S-11"],
    Page(0, EVER, part="S-3", limit=3): ["S-39", "S-38", "S-37"],
    Page(0, EVER, part="-1", before_seq=14, limit=9): ["S-13", "S-12", "S-11", "S-10", "S-1"],
}
"""What a page has beside the damaged entry 12, which may match whatever is asked."""


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE certification SET payload = x'02ff' WHERE number = 'S-12'",
        "UPDATE certification SET payload = x'' WHERE number = 'S-12'",
        "UPDATE certification SET code = CAST(x'ff41' AS TEXT) WHERE number = 'S-12'",
        "UPDATE certification SET reason = CAST(x'c3' AS TEXT) WHERE number = 'S-12'",
    ],
)
async def test_a_damaged_row_is_named_and_the_rest_of_the_journal_is_served(path: Path, statement: str) -> None:
    """On pages, as files, in a search; each of them reports the damage."""
    tamper(path, statement)
    async with opened_till(path) as (store, till):
        worker = worker_of(till)
        page = await journal.read_page(worker, Page(0, EVER, limit=1000))
        assert [entry.invoice_number for entry in page.certifications].count("S-12") == 1
        (bad,) = [entry for entry in page.certifications if entry.state == "damaged"]
        assert (bad.seq, bad.invoice_number, bad.z_number) == (12, "S-12", 1)
        assert page.count == SALES + 2
        assert [str(from_stored(found)) for found in store.retention.peek(read_damage).entries] == [
            f"{NIM} (live): entry 12 (invoice 'S-12') cannot be read"
        ]
        for form, damaged, number in (("csv", b",damaged,", b",S-"), ("jsonl", b'"damaged"', b'"S-')):
            pieces = b"".join([piece async for piece in journal_pieces(worker, Page(0, EVER), form, UTC)])
            assert pieces.count(damaged) == 1
            assert pieces.count(number) >= SALES
        found = await search(worker, Page(0, EVER, limit=100, text="S-12"))
        assert "damaged" in {record.state for record, _ in found.records}
        for wanted, numbers in WITH_DAMAGE.items():
            records = await store.journal.page(till.book, wanted)
            assert [(record.number, record.nim) for record in records] == [(number, NIM) for number in numbers], wanted
        with pytest.MonkeyPatch.context() as patch:  # by the indexes of the numbers alone
            patch.setattr(tables_journal, "WALKED", 0)
            page = Page(0, EVER, part="S-12", limit=9)
            records = await store.journal.with_part(till.book, page, partial(asyncio.sleep, 0))
            assert [record.state for record in records] == ["damaged"]
        with pytest.raises(LedgerUnusable, match=r"damaged|entry 12 \(invoice 'S-12'\)"):
            store.ledger.peek(attempts.find_number, till.book, "S-12")
        assert (await journal.read_record(worker, code_of("S-13"))).invoice_number == "S-13"
        await till.certify(invoice("N-1"))
        await till.close()
    problems = verify(path).problems
    assert any("record 12 (invoice 'S-12')" in problem for problem in problems), problems


async def test_twenty_damaged_entries_are_stored(path: Path) -> None:
    """Whatever their number; nothing is written of what is known."""
    tamper(path, "UPDATE certification SET payload = x'' WHERE seq <= 30")
    async with opened_till(path) as (store, till):
        for limit, size in ((15, 15), (50, 20)):
            await store.journal.page(till.book, Page(0, EVER, before_seq=31, limit=limit))
            commits = store.retention.commits
            await store.journal.page(till.book, Page(0, EVER, before_seq=31, limit=limit))
            assert (store.retention.commits, len(store.retention.peek(read_damage).entries)) == (commits, size)


async def test_a_damaged_page_costs_its_entries_alone(path: Path) -> None:
    """Whose numbers are still in the index."""
    pages = query(path, "SELECT pageno FROM dbstat WHERE name = 'certification' AND pagetype = 'leaf' ORDER BY pageno")
    spoil(path, pages[1][0])
    problems = verify(path)
    assert problems.of_file
    unread = [problem for problem in problems.problems if re.search(r"record \d+ cannot be read", problem)]
    with contextlib.ExitStack() as stack:
        stack.enter_context(pytest.MonkeyPatch.context()).setattr("daemon.store.store.examine", lambda _: None)
        async with opened(path) as store:
            worker = worker_of(await Till.of(store))
            page = await journal.read_page(worker, Page(0, EVER, limit=1000))
    states = [entry.state for entry in page.certifications]
    assert 0 < states.count("damaged") == len(unread) < SALES // 2
    assert page.count == SALES + 2
    assert all(entry.invoice_number for entry in page.certifications if entry.state == "damaged")


async def test_a_damaged_movement_of_cash_leaves_the_files(path: Path) -> None:
    """Its line says that it cannot be read."""
    change(path, b'"amount":500', b'"amount":5p0')
    async with opened(path) as store:
        worker = worker_of(await Till.of(store))
        lines = b"".join([piece async for piece in journal_pieces(worker, Page(0, EVER), "jsonl", UTC)]).splitlines()
        content = [msgspec.json.decode(line) for line in lines]
    assert len(content) == SALES + 2 + 2
    (damaged,) = [line for line in content if line["state"] == "damaged"]
    assert (damaged["seq"], damaged["invoiceNumber"]) == (None, "")
    assert not verify(path).clean
