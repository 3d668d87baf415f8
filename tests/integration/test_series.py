"""The box gives the lowest number of a series that is free (decision 5): also one that was taken for a while, so that none is missing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.ledgers.ledger import invoice as stored_invoice
from support.memory_shop import DEFAULTS, LAST, MemoryShop
from support.shop import invoice
from support.spare import paired

from daemon.core.audit import Actor
from daemon.core.errors import KeyReused, MachineAttention, MachineOffline
from daemon.core.invoice.intake import Defaults
from daemon.core.invoice.number import Series, TakenFrom
from daemon.core.ledger.attempt import Attempt
from daemon.core.ledger.deferred import DeferredSale
from daemon.store.maintenance.backup import backup, restore
from daemon.store.tables.book import attempts, uniqueness
from daemon.store.tables.book.deferred import open_sales
from daemon.store.tables.book.settlements import read_evidence
from daemon.store.tables.meta import write_meta
from daemon.usecases.certification.certify import certify
from daemon.usecases.certification.numbers import numbered
from daemon.usecases.deferred.accept import certify_or_defer, take_back
from daemon.usecases.deferred.certify_waiting import SalesThatWait
from daemon.usecases.worker.machine_worker import MachineWorker

pytestmark = pytest.mark.quick_timers

GIVES = msgspec.structs.replace(DEFAULTS, series=Series())


async def place(worker: MachineWorker, shop: MemoryShop, key: str = "", *, later: bool = False) -> int:
    """Of the number that a sale gets."""
    body, call = invoice(""), shop.call({}, key)
    answered: Any = (
        await certify_or_defer(worker, body, call, is_async=True) if later else await certify(worker, body, call)
    )
    return int(answered.value.number[-6:])


@asynccontextmanager
async def copied(path: Path, copy: Path, gives: Defaults = GIVES) -> AsyncIterator[MemoryShop]:
    """A shop that has sold one, and of which there is a copy."""
    async with MemoryShop(path, defaults=gives) as shop:
        await shop.connected()
        assert await place(shop.worker, shop) == 1
        backup(path, copy, at=1)
        yield shop


async def test_what_a_crash_left_begun_is_given_again(tmp_path: Path) -> None:
    """A till is back before the machine, which then says that it has certified none of them."""
    async with MemoryShop(tmp_path / "ledger", defaults=GIVES) as shop:
        await shop.connected()
        assert await place(shop.worker, shop) == 1
        lost = [asyncio.ensure_future(place(shop.worker, shop)) for _ in range(3)]
        await shop.stop_at(LAST)
        await shop.intents(3)
        await shop.disk(writable=False)  # as a power cut would: nothing more is written down
    await asyncio.gather(*lost, return_exceptions=True)
    shop.session.cut_power(0.0, 0.5)
    async with MemoryShop(tmp_path / "ledger", on=shop.session, defaults=GIVES) as shop:
        assert len(shop.store.ledger.peek(attempts.unfinished, shop.worker.book)) == 3
        with pytest.raises(MachineOffline):
            await place(shop.worker, shop)
        await shop.connected()
        assert [await place(shop.worker, shop) for _ in range(4)] == [2, 3, 4, 5]


async def test_a_number_is_looked_for_behind_those_that_were_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many the shop has sold: the one before, and the next one."""
    looked_at = []
    is_reserved = uniqueness.is_reserved

    def looked(connection: Any, book: Any, number: str) -> bool:
        looked_at.append(int(number[-6:]))
        return is_reserved(connection, book, number)

    monkeypatch.setattr(uniqueness, "is_reserved", looked)
    async with MemoryShop(tmp_path / "ledger", defaults=GIVES) as shop:
        await shop.connected()
        for expected in range(1, 7):
            looked_at.clear()
            assert await place(shop.worker, shop) == expected
            assert set(looked_at) <= {expected - 1, expected}


async def test_what_is_taken_back_while_the_spare_certifies_is_given_again(tmp_path: Path) -> None:
    """By either machine of the pair."""
    async with paired(tmp_path / "ledger") as shop:
        for each in (shop.first, shop.spare):
            each.worker.defaults = GIVES
        await shop.first_dies()
        assert [await place(shop.in_use, shop.first, f"key {each}", later=True) for each in (1, 2)] == [1, 2]
        await shop.take_over()
        await take_back(shop.in_use, "key 1", by=Actor("till"))
        await shop.take_back()
        await shop.first_returns()
        assert sorted([await place(shop.in_use, shop.first) for _ in range(2)]) == [1, 3]


async def test_a_key_of_a_sale_that_waits_at_one_machine_of_a_pair_is_not_accepted_at_the_other(tmp_path: Path) -> None:
    """Both would wait under one key, and neither could be certified."""
    async with paired(tmp_path / "ledger") as shop:
        ledger, books = shop.first.store.ledger, (shop.first.worker.book, shop.spare.worker.book)

        def sale(number: str) -> DeferredSale:
            return DeferredSale(0, "key", b"one", "r", number, "FV", 15000, 1, "x", invoice=stored_invoice(number))

        await ledger.defer(books[0], sale("F-1"), "requested", TakenFrom())
        with pytest.raises(KeyReused):
            await ledger.defer(books[1], sale("F-2"), "requested", TakenFrom())


@pytest.mark.logs("sale.refused")
async def test_what_the_machine_refuses_later_is_given_again(tmp_path: Path) -> None:
    """The number of a sale that has waited."""
    async with MemoryShop(tmp_path / "ledger", defaults=GIVES) as shop:
        await shop.connected()
        assert await place(shop.worker, shop, "key", later=True) == 1
        assert await place(shop.worker, shop) == 2
        shop.session.plan.add("refuse@31h#1")
        await SalesThatWait(shop.worker, pause=0.0).step()
        assert [await place(shop.worker, shop) for _ in range(2)] == [1, 3]


async def test_an_older_ledger_gives_no_number_again_that_its_machine_may_have_used(tmp_path: Path) -> None:
    """The machine names its last invoice alone: those before it are of the same series."""
    path, copy = tmp_path / "ledger", tmp_path / "copy"
    async with copied(path, copy) as shop:
        assert [await place(shop.worker, shop) for _ in range(3)] == [2, 3, 4]
    restore(copy, path, at=2)
    async with MemoryShop(path, on=shop.session, defaults=GIVES) as shop:
        await shop.until(lambda: shop.worker.attention, "a question")
        with pytest.raises(MachineAttention):
            await place(shop.worker, shop)
        await shop.decide("adopt")
        assert [await place(shop.worker, shop) for _ in range(2)] == [5, 6]
    assert len({entry.number for entry in shop.on_machine}) == 6


@pytest.mark.parametrize("pattern", [Series().pattern, "{type}{year}", "fac-{type}-{year}-"])
async def test_an_older_ledger_gives_no_number_of_a_sale_that_waits_in_the_ledger_that_it_replaces(
    tmp_path: Path, pattern: str
) -> None:
    """Its machine knows nothing of it. That ledger may come back, and continues after what the older one has given."""
    path, copy = tmp_path / "ledger", tmp_path / "copy"
    gives = msgspec.structs.replace(DEFAULTS, series=Series(pattern=pattern))
    async with copied(path, copy, gives) as shop:
        assert await place(shop.worker, shop, "key", later=True) == 2
    aside = restore(copy, path, at=2).aside
    assert aside is not None
    async with MemoryShop(path, on=shop.session, defaults=gives) as shop:
        await shop.connected()
        assert [await place(shop.worker, shop) for _ in range(2)] == [3, 4]
    restore(aside, path, at=3)
    async with MemoryShop(path, on=shop.session, defaults=gives) as shop:
        await shop.until(lambda: shop.store.ledger.peek(read_evidence, shop.worker.book), "what the machine says")
        await shop.decide("adopt")
        assert await place(shop.worker, shop) == 5
        (sale,) = shop.store.ledger.peek(open_sales, shop.worker.book, 0, 10)
        assert (sale.number[-6:], sale.state) == ("000002", "doubtful")
    numbers = [entry.number for entry in shop.on_machine]
    assert len(numbers) == len(set(numbers)) == 4


@pytest.mark.parametrize(("years", "number", "next_place"), [(0, 7, 8), (1, 7, 1), (1, 0, 1)])
async def test_what_a_replaced_ledger_has_given_in_another_year_is_none_of_this_one(
    tmp_path: Path, years: int, number: int, next_place: int
) -> None:
    """Where the year stands before the place, with no sign between: a number of the year, and of the next one."""
    series = Series(pattern="{type}{year}")
    async with MemoryShop(tmp_path / "ledger", defaults=msgspec.structs.replace(DEFAULTS, series=series)) as shop:
        await shop.connected()
        year = int(series.prefix("", shop.worker.book.nim, shop.worker.now()))
        series_place = uniqueness.place_of(shop.worker.book.nim, f"FV{year + years}{number:06}")
        assert series_place is not None
        stored = msgspec.json.encode(dict([series_place])).decode()
        await shop.store.retention.write(write_meta, uniqueness.PLACES, stored)
        assert await place(shop.worker, shop) == next_place


@pytest.mark.parametrize("strangers", ["FV", "FV FV", "FV FV FA"])
async def test_what_is_begun_while_strangers_invoices_are_taken_over_is_given_again(
    tmp_path: Path, strangers: str
) -> None:
    """It is not sent, and the number that it had is free; no number is theirs, however many they are."""
    path = tmp_path / "ledger"
    async with MemoryShop(path, defaults=GIVES) as shop:
        await shop.connected()
        assert await place(shop.worker, shop) == 1
        last = (await shop.certified())[-1]
    for type_ in strangers.split():
        shop.session.machine.certify_foreign(invoice_type=type_)
    async with MemoryShop(path, on=shop.session, defaults=GIVES) as shop:
        await shop.until(lambda: shop.worker.attention, "a question")
        sale = msgspec.structs.replace(last.invoice, number=f"{last.number[:-1]}2")
        intent = Attempt(sale, shop.worker.counters, last.ended_at, "request")
        await shop.store.ledger.write(attempts.begin, shop.worker.book, intent)
        case = await shop.case()
        await shop.store.decisions.carry_out(case, "adopt", reason="seen", at=3)
        numbered(shop.worker, invoice(""), credit=False)  # a till is there before the machine
        await shop.until(lambda: not shop.worker.attention and shop.worker.connected, "service")
        assert sorted([await place(shop.worker, shop) for _ in range(2)]) == [2, 3]


@pytest.mark.parametrize(("since", "next_place"), [(("", ""), 4), (("77",), 2), (("", "77"), 3), (("", ""), None)])
async def test_a_sale_that_is_accepted_before_an_older_ledger_was_compared_gets_no_number_that_its_machine_has_used(
    tmp_path: Path, since: tuple[str, ...], next_place: int | None
) -> None:
    """While a person is asked, sales are accepted: by the machine's last invoice, where it answers, and its number is one of the series; no number is given where it does not."""
    path, copy = tmp_path / "ledger", tmp_path / "copy"
    async with copied(path, copy) as shop:
        for number in since:
            await certify(shop.worker, invoice(number), shop.call({}))
    path.unlink()  # else the places of the ledger that is replaced are remembered
    restore(copy, path, at=2)
    if next_place is None:
        shop.session.unplug(0.0, 1e6)
    async with MemoryShop(path, on=shop.session, defaults=GIVES) as shop:
        if next_place is not None:
            await shop.until(lambda: shop.store.ledger.peek(read_evidence, shop.worker.book), "what the machine says")
            assert await place(shop.worker, shop, "key", later=True) == next_place
            await shop.decide("adopt")
            assert await place(shop.worker, shop) == next_place + 1
        else:
            with pytest.raises(MachineOffline):
                await place(shop.worker, shop, "key", later=True)


async def test_a_number_that_the_spare_may_have_used_since_an_older_ledger_is_not_given(tmp_path: Path) -> None:
    """The machine in use was compared with that ledger; the spare, which stood in for it since, was not yet."""
    path, copy = tmp_path / "ledger", tmp_path / "copy"
    async with paired(path) as before:
        before.first.worker.defaults = before.spare.worker.defaults = GIVES
        assert await place(before.in_use, before.first) == 1
        backup(path, copy, at=1)
        await before.first_dies()
        await before.take_over()
        assert await place(before.in_use, before.first) == 2
        before.first.session.plug()
    restore(copy, path, at=2)
    async with paired(path, on=before) as shop:
        shop.first.worker.defaults = shop.spare.worker.defaults = GIVES
        await shop.first.connected()
        await shop.spare.until(lambda: shop.spare.worker.attention, "what the spare has certified found")
        assert await place(shop.in_use, shop.first, "key", later=True) == 3


@pytest.mark.parametrize(
    ("since", "next_places"),
    [
        (("FV", "FA"), {"FV": 3, "FA": 3}),
        (("FA", "FA", "FV", "FV"), {"FV": 4, "FA": 4}),
        (("FA", "FT", "FT", "FV", "FV"), {"FV": 4, "FT": 4, "FA": 3}),
        (("FV",), {"FV": 3, "FT": 2, "FA": 2}),
        (("FV", "FT", "FA"), {"FV": 4, "FT": 4, "FA": 3}),  # two sales of either type: one number of each is left out
    ],
)
async def test_nor_one_of_another_type(tmp_path: Path, since: tuple[str, ...], next_places: dict[str, int]) -> None:
    """The counters tell how many there may be beside the last one and those before it in its series. EV was not in use."""
    path, copy = tmp_path / "ledger", tmp_path / "copy"

    async def sell(shop: MemoryShop, type_: str) -> int:
        credit = {"creditNoteNature": "RRR", "creditNoteRef": "RRR"} if type_ == "FA" else {}
        call, body = shop.call({}), invoice("", invoiceType=type_, **credit)
        record = (await certify(shop.worker, body, call, credit=bool(credit))).value
        return int(record.number[-6:])

    async with MemoryShop(path, defaults=GIVES) as shop:
        await shop.connected()
        assert [await sell(shop, type_) for type_ in ("FT", "FA", "FV")] == [1, 1, 1]
        backup(path, copy, at=1)
        for type_ in since:
            await sell(shop, type_)
    restore(copy, path, at=2)
    async with MemoryShop(path, on=shop.session, defaults=GIVES) as shop:
        await shop.case()
        for type_, place in next_places.items():  # also of a sale that waits until then
            body: Any = numbered(shop.worker, invoice("", invoiceType=type_), credit=type_ == "FA")[0]
            assert int(body["invoiceNumber"][-6:]) == place
        await shop.decide("adopt")
        assert {type_: await sell(shop, type_) for type_ in next_places} == next_places
        assert await sell(shop, "EV") == 1
        assert {type_: await sell(shop, type_) for type_ in next_places} == {
            type_: place + 1 for type_, place in next_places.items()
        }
    numbers = [entry.number for entry in shop.on_machine]
    assert len(set(numbers)) == len(numbers)


async def test_a_free_number_stays_free_where_an_older_ledger_lacks_none_of_its_series(tmp_path: Path) -> None:
    """The invoice that it lacks explains what the counters moved by."""
    path, copy = tmp_path / "ledger", tmp_path / "copy"
    async with MemoryShop(path, defaults=GIVES) as shop:
        await shop.connected()
        assert await place(shop.worker, shop) == 1
        free: Any = numbered(shop.worker, invoice("", invoiceType="FT"), credit=False)[0]
        second = f"{free['invoiceNumber'][:-1]}2"
        await certify(shop.worker, invoice(second, invoiceType="FT"), shop.call({}))
        backup(path, copy, at=1)
        assert await place(shop.worker, shop) == 2
    restore(copy, path, at=2)
    async with MemoryShop(path, on=shop.session, defaults=GIVES) as shop:
        await shop.until(lambda: shop.store.ledger.peek(read_evidence, shop.worker.book), "what the machine says")
        await shop.decide("adopt")
        assert numbered(shop.worker, invoice("", invoiceType="FT"), credit=False)[0] == free
