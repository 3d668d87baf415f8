"""The electronic journal: every record found again by time, number, state, code, and streamed in flat memory."""

import asyncio
import contextlib
from functools import partial

import msgspec
import pytest
from support.ledgers.ledger import MINUTE, NIM, START, Till, invoice

from daemon.core.ledger.attempt import Record
from daemon.store.store import Store
from daemon.store.tables import journal
from daemon.store.tables.book import attempts
from daemon.store.tables.journal import Page, of_customer

ALWAYS = 1 << 62


async def sold(till: Till, count: int) -> list[Record]:
    return [await till.sell(100 + at) for at in range(count)]


async def test_a_range_is_a_range(store: Store, till: Till) -> None:
    """`start <= t < end`, with checkpoints and beyond the last of them."""
    records = await sold(till, 200)
    await store.ledger.aggregate(till.book)
    records += await sold(till, 20)
    for first, last in [(0, 10), (63, 65), (64, 129), (100, 219), (215, 219), (5, 5)]:
        start, end = records[first].ended_at, records[last].ended_at
        page = Page(start, end, limit=1000)
        expected = records[first:last]
        assert await store.journal.page(till.book, page) == expected[::-1]
        assert [record async for record in store.journal.iterate(till.book, start, end, 0)] == expected


async def test_by_number_and_state(store: Store, till: Till) -> None:
    """A number shows every attempt that it had; a state only those that ended so; open ones are found by their state."""
    refused = await till.fail(invoice("F-1"))
    abandoned = await till.fail(invoice("F-1"), "abandoned", "not sent")
    certified = await till.certify(invoice("F-1"))
    await till.sell()
    pages = {
        Page(0, ALWAYS, number="F-1"): [certified, abandoned, refused],
        Page(0, ALWAYS, number="F-1", state="refused"): [refused],
        Page(0, ALWAYS, number="F-1", before_seq=3): [abandoned, refused],
        Page(0, ALWAYS, number="F-1", limit=1): [certified],
        Page(0, refused.ended_at, number="F-1"): [],
        Page(0, ALWAYS, state="abandoned"): [abandoned],
        Page(0, ALWAYS, number="F-9"): [],
    }
    for page, expected in pages.items():
        assert await store.journal.page(till.book, page) == expected, page
    begun, disputed = await till.begin(invoice("F-2")), await till.begin(invoice("F-3"))
    await store.ledger.dispute(till.book, disputed, "unknown", at=till.at)
    found = [await store.journal.page(till.book, Page(0, ALWAYS, state=state)) for state in ("begun", "disputed")]
    assert [[record.id for record in records] for records in found] == [[begun], [disputed]]
    assert await store.journal.page(till.book, Page(0, ALWAYS, number="F-2")) == []
    await till.certify(invoice("C-1", type_="FA", reference="RRR"))
    sandbox = await Till.of(store, mode="test")
    sales = [
        store.journal.peek(attempts.sales_of_number, *wanted)
        for wanted in ((till.book, "F-1"), (sandbox.book, "F-1"), (till.book, "C-1"))
    ]
    assert sales == [[certified], [], []]
    assert [r.id for r in await store.journal.page(till.book, Page(0, ALWAYS, number="F-2", state="begun"))] == [begun]


async def test_a_stream_can_be_left(store: Store, till: Till) -> None:
    """A client that hangs up in the middle leaves nothing open, and several can read at once."""
    await sold(till, 300)

    async def first() -> Record:
        async with contextlib.aclosing(store.journal.iterate(till.book, 0, ALWAYS, 0)) as stream:
            return await anext(stream)

    assert {record.number for record in await asyncio.gather(*(first() for _ in range(10)))} == {"S-1"}
    assert till.at > START + MINUTE
    assert till.book.nim == NIM


@pytest.mark.parametrize(("steps", "limit"), [((0, 1), 1), ((0, 4), 3), ((3, 7), 2), ((3, 1000), 1), ((1000, 9), 5)])
async def test_a_part_of_a_number_is_found_however_far_back(
    store: Store, till: Till, monkeypatch, steps: tuple[int, int], limit: int
) -> None:
    """On the way back from the newest one or by the indexes of the numbers, in stretches of any length: the same entries, newest first, page
    by page, also with an amount asked for; a part with a wildcard of SQL in it stands for itself."""
    for name, entries in zip(("WALKED", "NUMBERS"), steps, strict=True):
        monkeypatch.setattr(journal, name, entries)
    ways: list[Page] = []

    async def make_way() -> None:
        ways.append(Page(0, ALWAYS))

    records = await sold(till, 30)
    records.append(await till.fail(invoice("S-31")))
    part = records[4].number[-2:]
    for query, count in ((part, 1), ("1", 13)):
        wanted = [record.number for record in reversed(records) if query in record.number]
        assert len(wanted) >= count
        page = Page(0, ALWAYS, part=query, limit=limit)
        found: list[Record] = []
        while piece := await store.journal.with_part(till.book, page, make_way):
            assert len(piece) <= limit
            found += piece
            page = Page(0, ALWAYS, part=query, limit=limit, before_seq=piece[-1].seq)
        assert [record.number for record in found] == wanted
    amount = records[4].total_ttc
    only = await store.journal.with_part(till.book, Page(0, ALWAYS, part=part, amount=amount), make_way)
    assert [record.number for record in only] == [records[4].number]
    ways.clear()
    assert await store.journal.with_part(till.book, Page(0, ALWAYS, part="%"), make_way) == []
    stretches = await store.journal.read(journal.stretches, till.book)
    assert len(ways) == (len(stretches) if steps[0] < len(records) else 0)  # before each of them


async def test_a_part_of_the_number_of_what_has_not_ended(store: Store, till: Till) -> None:
    """It is looked for in those numbers too."""
    begun = [await till.begin(invoice(number)) for number in ("F-12", "F-21", "G-12")]
    found = await store.journal.with_part(
        till.book, Page(0, ALWAYS, part="12", state="begun"), partial(asyncio.sleep, 0)
    )
    assert [record.id for record in found] == [begun[2], begun[0]]
    for types, count in (("EV FV", 2), ("EV FT", 0)):
        page = Page(0, ALWAYS, part="12", state="begun", type=types)
        assert len(await store.journal.with_part(till.book, page, partial(asyncio.sleep, 0))) == count


async def test_entries_of_a_customer_are_told_slice_by_slice(store: Store, till: Till) -> None:
    """In small or capital letters, with accents or without, by the till or by who searches, or without an ASCII letter at all: all that have it, and no
    other with it elsewhere."""
    customers = (
        "Boulangerie Wend Panga",
        "Épicerie Sahel",
        "KABORE Awa",
        "Ŋɔŋɔ",
        "De\u0301po\u0302t central",
        "À LA PAIX",
        "",
    )
    for name in customers:
        sale = invoice(f"C-{name}")
        await till.certify(msgspec.structs.replace(sale, customer=msgspec.structs.replace(sale.customer, name=name)))
    await till.certify(invoice("wend panga, épicerie, kaboré, ŋ"))
    wanted_names = {
        "wend PANGA": 0,
        "épicerie": 1,
        "EPICERIE": 1,
        "Kaboré": 2,
        "kabore awa": 2,
        "ŋ": 3,
        "depot c": 4,
        "a la p": 5,
    }
    for wanted, name in ((wanted, customers[at]) for wanted, at in wanted_names.items()):
        found: list[Record] = []
        before = 0
        while True:
            page = Page(0, ALWAYS, limit=1, before_seq=before, text=wanted)
            piece, before = await store.journal.read(of_customer, till.book, page)
            found += piece
            if not before:
                break
        assert [record.invoice.customer.name for record in found] == [name], wanted
