"""The journal is read in pieces, page by page and as a file, and what comes of it does not depend on the pieces."""

import asyncio
import csv
import io
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from support.ledgers.ledger import MINUTE, ZONE, Till, invoice, opened, opened_till
from support.ledgers.worker import worker_of

from daemon.core.report.journal import Page
from daemon.store.sqlite.high_water import mark_path
from daemon.usecases.reports import journal, journal_files
from daemon.usecases.reports.journal import credits_of, read_page, search
from daemon.usecases.reports.journal_files import journal_pieces
from daemon.usecases.worker.machine_worker import MachineWorker

EVER = 1 << 53
STEPS = "ssmsszmfscsszssm"
"""Sales, movements of cash, Z, a failure and a credit note."""
WIDE = 5
"""Items of each third sale."""


@pytest.fixture(params=[(2, 1, 1), (3, 2, 6), (64, 16, 128)], ids=["small", "between", "usual"])
def pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int, int]:
    """Records read at once, and records and items worked on at once; also small files."""
    batch, slice_, items = request.param
    for module in (journal, journal_files):
        monkeypatch.setattr(module, "BATCH", batch)
    monkeypatch.setattr(journal, "STRETCH", batch)
    monkeypatch.setattr(journal, "SLICE", slice_)
    monkeypatch.setattr(journal, "SLICE_ITEMS", items)
    monkeypatch.setattr(journal_files, "PIECE", 100 * batch)
    return batch, slice_, items


class Filled(NamedTuple):
    """`ended`: the numbers of what is in the journal, or `cash`, oldest first, with the Z of each, 0 while it is open."""

    path: Path
    ended: list[tuple[str, int]]

    @property
    def attempts(self) -> list[tuple[str, int]]:
        return [each for each in self.ended if each[0] != "cash"]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Filled:
    path = tmp_path_factory.mktemp("journal") / "ledger.sqlite3"

    async def fill() -> list[tuple[str, int]]:
        async with opened_till(path) as (_, till):
            return await filled(till)

    return Filled(path, asyncio.run(fill()))


@pytest.fixture
def ledger(original: Filled, tmp_path: Path) -> Filled:
    shutil.copy(mark_path(original.path), mark_path(tmp_path / "ledger.sqlite3"))
    return original._replace(path=Path(shutil.copy(original.path, tmp_path / "ledger.sqlite3")))


async def filled(till: Till) -> list[tuple[str, int]]:
    """What ends in the journal, oldest first, with its Z; and an attempt that has not ended."""
    messages: list[tuple[str, int]] = []
    z_number = 1
    for step in STEPS:
        match step:
            case "s":
                messages.append((f"S-{len(messages)}", z_number))
                amounts = [("B", 1000)] * (WIDE if len(messages) % 3 == 0 else 1)
                await till.certify(invoice(messages[-1][0], amounts=amounts))
            case "c":
                messages.append(("C-1", z_number))
                await till.certify(invoice("C-1", type_="FA", amounts=(("B", 500),), reference=f"{till.book.nim}-1"))
            case "f":
                messages.append(("X-1", z_number))
                await till.fail(invoice("X-1"))
            case "m":
                messages.append(("cash", z_number))
                await till.move_cash()
            case "z":
                await till.close()
                z_number += 1
    await till.begin(invoice("O-1"))
    return [(number, z if z < z_number else 0) for number, z in messages]


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("state", [None, "certified"])
async def test_all_pages_are_the_journal(ledger: Filled, state: str | None) -> None:
    """Newest first, each entry once with its Z, no page longer than asked for, and after the last one nothing."""
    expected = [each for each in reversed(ledger.attempts) if state is None or each[0] != "X-1"]
    async with opened(ledger.path) as store:
        worker = worker_of(await Till.of(store))
        for limit in (1, 2, 3, 4, 100):
            found: list[tuple[str, int]] = []
            cursor: str | None = "0"
            while cursor is not None:
                before = int(cursor.partition(".")[0])
                page = await read_page(worker, Page(0, EVER, before_seq=before, limit=limit, state=state))
                assert 0 < page.count == len(page.certifications) <= limit
                found += [(entry.invoice_number, entry.z_number or 0) for entry in page.certifications]
                cursor = page.next
            assert found == expected


async def file_of(worker: MachineWorker, form: str, page: Page) -> list[bytes]:
    return [piece async for piece in journal_pieces(worker, page, form, ZONE)]


async def test_a_file_has_all_that_ended_and_the_cash_in_its_place(
    ledger: Filled, pieces: tuple[int, int, int]
) -> None:
    """Oldest first, with the Z of each; in pieces that are not small but for the last one."""
    async with opened(ledger.path) as store:
        worker = worker_of(await Till.of(store))
        files = {form: await file_of(worker, form, Page(0, EVER)) for form in ("csv", "excel-fr", "jsonl")}
    texts = {form: b"".join(parts).decode("utf-8-sig") for form, parts in files.items()}
    for parts in files.values():
        assert all(len(part) >= 100 * pieces[0] for part in parts[:-1])
    lines = [msgspec.json.decode(line) for line in texts["jsonl"].splitlines()]
    assert [(line.get("invoiceNumber", "cash"), line["zNumber"] or 0) for line in lines] == ledger.ended
    for form, delimiter in (("csv", ","), ("excel-fr", ";")):
        rows = list(csv.reader(io.StringIO(texts[form]), delimiter=delimiter))
        assert len(rows) == len(ledger.ended) + 1
        for row, (number, z_number) in zip(rows[1:], ledger.ended, strict=True):
            assert (number in row) or number == "cash"
            assert (str(z_number) in row) or not z_number


@pytest.mark.parametrize("after", [0, 1, 3, 9])
async def test_a_file_is_the_book_as_it_was_when_it_was_begun(
    ledger: Filled, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    """A Z, sales and cash of the time in which it is read: no row of the open period has that Z, and nothing newer is in it."""
    for module in (journal, journal_files):
        monkeypatch.setattr(module, "BATCH", 2)
    async with opened_till(ledger.path) as (_, till):
        worker, ways = worker_of(till), 0

        async def make_way(_: MachineWorker) -> None:
            nonlocal ways
            ways += 1
            if ways == after + 1:
                await till.certify(invoice("N-1"))
                await till.move_cash()
                await till.close()
                await till.certify(invoice("N-2"))

        monkeypatch.setattr(journal, "SLICE", 1)
        monkeypatch.setattr(journal, "make_way", make_way)
        lines = b"".join(await file_of(worker, "jsonl", Page(0, EVER))).splitlines()
    assert ways > after
    content = [msgspec.json.decode(line) for line in lines]
    assert [(line.get("invoiceNumber", "cash"), line["zNumber"] or 0) for line in content] == ledger.ended


async def test_pages_show_the_journal_as_the_first_of_them(ledger: Filled) -> None:
    """Who walks on after a Z sees the period of the first page as still open on the others too."""
    async with opened_till(ledger.path) as (_, till):
        worker, found = worker_of(till), []
        page = await read_page(worker, Page(0, EVER, limit=2))
        await till.close()
        while True:
            found += [(entry.invoice_number, entry.z_number or 0) for entry in page.certifications]
            if page.next is None:
                break
            before_seq, upto_z = map(int, page.next.split("."))
            page = await read_page(worker, Page(0, EVER, before_seq=before_seq, limit=2, upto_z=upto_z))
    assert found == ledger.attempts[::-1]


async def test_a_file_of_one_number_or_state_has_no_cash(ledger: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only attempts have those; a credit note is of the sale it names; what has not ended comes on one page."""
    async with opened_till(ledger.path) as (_, till):
        worker = worker_of(till)
        for page, lines in (
            (Page(0, EVER, number="S-1"), 1),
            (Page(0, EVER, state="refused"), 1),
            (Page(till.at - MINUTE, EVER), 1),
            (Page(till.at - MINUTE + 1, EVER), 0),
        ):
            parts = await file_of(worker, "jsonl", page)
            assert b"".join(parts).count(b"\n") == lines, page
        records = await worker.journal.page(till.book, Page(0, EVER, limit=100))
        notes = {record.number: [note.number for note in await credits_of(worker, record)] for record in records}
        assert {number: found for number, found in notes.items() if found} == {"S-0": ["C-1"]}
        assert notes["C-1"] == notes["X-1"] == []
        monkeypatch.setattr(journal, "BATCH", 1)
        for number in ("O-2", "O-3"):
            await till.begin(invoice(number))
        begun = await read_page(worker, Page(0, EVER, state="begun"))
        assert ([entry.invoice_number for entry in begun.certifications], begun.next) == (["O-3", "O-2", "O-1"], None)


NOTHING = Page(0, EVER, state="refused")
READERS: dict[str, Callable[[MachineWorker], Awaitable[object]]] = {
    "page": lambda worker: read_page(worker, NOTHING),
    "file": lambda worker: _whole(journal_pieces(worker, NOTHING, "csv", ZONE)),
    "amount": lambda worker: search(worker, Page(0, EVER, amount=1)),
    "text": lambda worker: search(worker, Page(0, EVER, text="nobody")),
}


async def _whole(pieces: AsyncIterator[bytes]) -> list[bytes]:
    return [piece async for piece in pieces]


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
async def test_tills_go_first_also_where_nothing_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[MachineWorker], Awaitable[object]]
) -> None:
    """After each piece that was looked through in vain."""
    for name in ("STRETCH", "BATCH", "SEARCH_SLICE"):
        monkeypatch.setattr(journal, name, 3)
    looks: list[bool] = []
    async with opened_till(tmp_path / "ledger.sqlite3") as (_, till):
        for _ in range(9):
            await till.sell()
        worker = worker_of(till)
        worker.till_waits = lambda: bool(looks.append(False))
        await read(worker)
        assert 2 <= len(looks) <= 7
